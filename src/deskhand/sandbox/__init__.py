"""Runs commands where they can do no harm, or does not run them."""
