"""Mail, for tests."""
