"""Telegram, for tests."""
