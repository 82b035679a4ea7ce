"""What may be used: tokens and dollars, and what was."""
