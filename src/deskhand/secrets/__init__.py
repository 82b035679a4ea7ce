"""Values of secrets, what hides them, and which host a command may reach with which of them."""
