"""Where people talk: one file per platform, which only translates."""
