"""Long work that goes on by itself until it is done, its goal is reached, or nothing is left to
spend."""
