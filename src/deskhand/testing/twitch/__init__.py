"""Twitch, for tests."""
