"""What Deskhand says, in the languages of those who read it."""
