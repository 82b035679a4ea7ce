"""Doubles that we ship and support, and the suites that every implementation passes."""
