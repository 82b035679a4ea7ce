"""Discord, for tests."""
