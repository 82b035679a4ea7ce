"""The vocabulary: what the rooms say to each other. No input or output here."""
