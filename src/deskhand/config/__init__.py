"""Settings: the file, variables, edits that keep comments, the last good copy."""
