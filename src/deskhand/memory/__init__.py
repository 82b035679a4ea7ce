"""What is known: facts with where they come from, found again by words and by meaning."""
