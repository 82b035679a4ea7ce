"""Slack, for tests."""
