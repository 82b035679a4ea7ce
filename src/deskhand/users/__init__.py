"""Who may talk to agents: users, roles, identities, tokens, pairing; and how owners are told
something."""
