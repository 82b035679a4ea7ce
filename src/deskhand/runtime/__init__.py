"""Wires the rooms together and keeps them running."""
