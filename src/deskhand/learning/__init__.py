"""What is learned from conversations: facts, notes, and skills that are proposed."""
