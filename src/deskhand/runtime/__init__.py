"""Wires the rooms together: the App, its HTTP server, and what the page asks of it."""
