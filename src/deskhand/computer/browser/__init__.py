"""Chromium, driven over the Chrome DevTools Protocol."""
