"""Twitch."""
