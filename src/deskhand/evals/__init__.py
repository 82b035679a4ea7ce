"""Turns of the log run again, with something else tried on them."""
