"""Characters that nobody sees, by which text is smuggled past people."""

from __future__ import annotations

import re

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_BLANK = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb"
)
_SHORTHAND = "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
_TAGS = "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
_PICTURE = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_SHAPED = "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1800-\u18af"
"""Scripts in which a joiner changes how a word is written: Arabic and its neighbours, those of
India, and others."""
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_BRAILLE = "\u2801-\u28ff"
_HIEROGLYPHS = "\U00013000-\U0001342f"

_HIDDEN_WHERE = (
    f"[{_BIDI}{_BLANK}{_TAGS}{_CONTROL}{_SHORTHAND}]",
    # the blank of Braille outside of Braille, and what joins hieroglyphs outside of them
    f"(?<![{_BRAILLE}])\u2800(?![{_BRAILLE}])",
    f"(?<![{_HIEROGLYPHS}])[\U00013430-\U0001345f]",
    # joiners that have nothing to join
    f"(?<![{_SHAPED}])\u200c",
    f"\u200c(?![{_SHAPED}])",
    f"(?<![{_SHAPED}{_PICTURE}\ufe0f])\u200d",
    f"\u200d(?![{_SHAPED}{_PICTURE}])",
    # variation selectors, but for those of a picture and of Han
    f"(?<![{_PICTURE}0-9#*])[\ufe0e\ufe0f]",
    "[\ufe00-\ufe0d]",
    f"(?<![{_HAN}])[\U000e0100-\U000e01ef]",
)
_HIDDEN = re.compile("|".join(_HIDDEN_WHERE))


def strip_invisible(text: str) -> tuple[str, int]:
    """The text without them, and how many there were. What writes a word or a picture rightly
    stays."""
    if text.isascii() and text.isprintable():
        return text, 0
    return _HIDDEN.subn("", text.replace("\r\n", "\n").replace("\r", "\n"))


def escape_invisible(text: str) -> str:
    """The text with each of them written out, as `\\u202e`, and all else as it is. Two texts that
    differ still do, unless one has such an escape in its letters."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: escape_char(found[0]), text)


def escape_char(char: str) -> str:
    """A character by its number."""
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
