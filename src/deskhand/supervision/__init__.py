"""Keeps it running: the worker process, its parts, health, logs, service units."""
