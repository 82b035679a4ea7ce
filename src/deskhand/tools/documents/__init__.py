"""Turns documents that strangers made into text. It runs inside the sandbox, one process for each
document.

So it imports the standard library, its own modules, and the libraries of the extra [web] where it
needs them.
"""
