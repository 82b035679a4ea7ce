"""Text in which nothing hides, and that turns nothing round."""

from __future__ import annotations

_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Characters that count as letters or signs and look like nothing."""


def visible(text: str) -> str:
    """The text with everything in it that cannot be seen, line ends too, written out: `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() and c not in _BLANK else _escaped(c) for c in text)


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
