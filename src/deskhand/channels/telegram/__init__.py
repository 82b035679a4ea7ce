"""Telegram.

Its library imports what decrypts Telegram Passport, and its HTTP client a command line of its own.
Both do without, and it saves 10 MB of 25.
"""

from ..lean_import import leave_out

with leave_out("cryptography.hazmat.backends", "httpx._main"):
    import telegram as telegram
