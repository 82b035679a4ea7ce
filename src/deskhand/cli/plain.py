"""Text of models and tools made harmless for a terminal: control sequences are shown, never
obeyed."""

from __future__ import annotations

import re
import unicodedata

_C0 = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_SYMBOLS = _C0 | {0x7F: "\N{SYMBOL FOR DELETE}"}

# C1 controls, which some terminals obey as they do ESC; marks that reverse the direction of what
# follows, so that a command reads other than it runs (https://trojansource.codes); what has no
# width and can hide words from a reader; line separators; and the tag block, in which whole
# sentences can be written that nobody sees.
_INVISIBLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
# A joiner is honest only between letters of a script that needs it, or between the parts of one
# picture.
_JOINABLE = rf"[^\x00-\x7f\u200c\u200d{_INVISIBLE}]"
_UNSAFE = (
    rf"[{_INVISIBLE}]",
    rf"(?<!{_JOINABLE})[\u200c\u200d]",
    rf"[\u200c\u200d](?!{_JOINABLE})",
    r"(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]",  # a second selector
)
UNSAFE_CHARS = re.compile("|".join(_UNSAFE))
_MAX_HELD = 64


def escape_control(text: str) -> str:
    """`text` with every control character and every invisible one written out: `␛[31m`, `<U+202E>`.

    Line ends become one newline; tabs stay. The result holds no byte that a terminal obeys but
    those two.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return UNSAFE_CHARS.sub(
        lambda match: _SYMBOLS.get(ord(match[0])) or f"<U+{ord(match[0]):04X}>", text
    )


def shorten_line(text: str, width: int) -> str:
    """The beginning of `text` on one line of at most `width` cells, cut with an ellipsis."""
    line = " ".join(escape_control(text[: 8 * width + 8]).split())
    if cell_width(line) <= width and len(text) <= 8 * width + 8:
        return line
    used = 0
    kept = []
    for character in line:
        used += cell_width(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def cell_width(text: str) -> int:
    """How many columns it takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(bool(unicodedata.combining(character)) for character in text)


class Pieces:
    """`plain` for text that comes in pieces: what the next piece may change is held back until it
    is there."""

    def __init__(self) -> None:
        self._held = ""

    def __call__(self, piece: str, *, last: bool = False) -> str:
        """The part that is certain now; with `last` everything."""
        text = self._held + piece
        end = len(text) if last else _find_certain_end(text)
        if len(text) - end > _MAX_HELD:
            end = len(text)
        self._held = text[end:]
        return escape_control(text[:end])


def _find_certain_end(text: str) -> int:
    """Up to where nothing that follows changes how the text is written: behind its last character
    of ASCII, but before a CR, which may be half of a line end."""
    for end in range(len(text), 0, -1):
        if "\n" <= text[end - 1] < "\x7f":
            return end - 1 if text[end - 1] == "\r" else end
    return 0
