"""Text in which nothing hides, that turns nothing round, and of which two that differ look
different."""

from __future__ import annotations

import re
from unicodedata import combining, is_normalized, normalize

# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties, where Python calls them
# printable; and what counts as a letter or sign and looks like nothing.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
    "|(?<![\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff0-9#*])[\ufe0e\ufe0f]"
)
"""The last two choose how a picture is drawn, and are seen behind one."""


def escape_invisible(text: str) -> str:
    """The text with everything in it that cannot be seen, line ends too, written out: `\\u202e`. So
    is what would look the same otherwise: an accent that could be a part of its letter, a letter
    that stands for another one."""
    if text.isascii() and text.isprintable():
        return text
    unseen = {found.start() for found in _UNSEEN.finditer(text)}
    shown = list[str]()
    before = ""
    for at, char in enumerate(text):
        plain = char.isascii() or (
            normalize("NFC", char) == char and len(normalize("NFC", before + char)) > len(before)
        )
        shown.append(
            char if plain and char.isprintable() and at not in unseen else _escape_char(char)
        )
        before = before if combining(char) else char
    found = "".join(shown)
    if is_normalized("NFC", found):
        return found
    return "".join(_escape_char(char) if combining(char) else char for char in found)


def _escape_char(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
