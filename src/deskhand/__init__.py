"""A self-hosted personal AI agent with eyes and hands on the machine."""
