"""What the real servers of other systems answered, and how ours are compared with it."""
