"""Clients of other systems, written from their documents alone, with our token added."""
