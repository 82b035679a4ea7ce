"""What a tool is, and the plain ones."""
