"""Matrix, for tests."""
