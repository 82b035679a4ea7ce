"""Rich Text Format (Microsoft, version 1.9.1): its plain text."""

from __future__ import annotations

import re

from .found import ExtractedText

_TOKEN = re.compile(
    rb"""
      \\ (?P<word> [a-zA-Z]{1,32} ) (?P<number> -?\d{1,10} )? [ ]?
    | \\' (?P<byte> [0-9a-fA-F]{2} )
    | \\ (?P<sign> [^a-zA-Z] )
    | (?P<brace> [{}] )
    | (?P<plain> [^\\{}\r\n]+ )
    | [\r\n]+
    | \\                       # at the end of the file
    """,
    re.VERBOSE,
)
_SILENT_GROUPS_TEXT = b"""
fonttbl colortbl stylesheet listtable listoverridetable info pict object header headerl headerr
headerf footer footerl footerr footerf themedata colorschememapping latentstyles datastore xmlnstbl
rsidtbl generator fldinst bkmkstart bkmkend annotation atnid atnauthor filetbl revtbl private
"""
_SILENT_GROUPS = frozenset(_SILENT_GROUPS_TEXT.split())
_SYMBOLS = {
    b"par": "\n\n",
    b"sect": "\n\n",
    b"page": "\n\n",
    b"line": "\n",
    b"tab": " ",
    b"cell": " | ",
    b"row": "\n",
    b"emdash": "\N{EM DASH}",
    b"endash": "\N{EN DASH}",
    b"bullet": "\N{BULLET}",
    b"~": "\N{NO-BREAK SPACE}",
    b"lquote": "\N{LEFT SINGLE QUOTATION MARK}",
    b"rquote": "\N{RIGHT SINGLE QUOTATION MARK}",
    b"_": "-",
    b"ldblquote": "\N{LEFT DOUBLE QUOTATION MARK}",
    b"rdblquote": "\N{RIGHT DOUBLE QUOTATION MARK}",
    b"\\": "\\",
    b"{": "{",
    b"}": "}",
}
_CODE_PAGES = {437, 850, 866, 874, 932, 936, 949, 950, *range(1250, 1259)}


def read_rtf(data: bytes, found: ExtractedText) -> None:
    """The text. Raises Full."""
    state = _State(found)
    for token in _TOKEN.finditer(data):
        if token["brace"]:
            state.handle_brace(token["brace"])
        elif token["word"]:
            state.handle_word(token["word"], int(token["number"]) if token["number"] else 1)
        elif token["sign"] == b"*":
            state.silent = True
        elif token["sign"]:
            state.add_text(_SYMBOLS.get(token["sign"], ""))
        elif token["byte"]:
            state.write(bytes.fromhex(token["byte"].decode()))
        elif token["plain"]:
            state.write(token["plain"])


class _State:
    """What holds in the group that is read. `_skip`: what follows a character of Unicode, for older
    readers."""

    def __init__(self, found: ExtractedText) -> None:
        self._found = found
        self.silent = False
        self._hidden = False
        self._each_skips = 1
        self._skip = 0
        self._page = "cp1252"
        self._outer: list[tuple[bool, bool, int]] = []

    def handle_brace(self, sign: bytes) -> None:
        if sign == b"{":
            self._outer.append((self.silent, self._hidden, self._each_skips))
        elif self._outer:
            self.silent, self._hidden, self._each_skips = self._outer.pop()

    def handle_word(self, word: bytes, number: int) -> None:
        if word in _SILENT_GROUPS:
            self.silent = True
        elif word == b"v":
            self._hidden = number != 0
        elif word == b"uc":
            self._each_skips = min(max(number, 0), 8)
        elif word == b"ansicpg" and number in _CODE_PAGES:
            self._page = f"cp{number}"
        elif word == b"u":
            self.add_text(chr(number & 0xFFFF))
            self._skip = self._each_skips
        else:
            self.add_text(_SYMBOLS.get(word, ""))

    def write(self, text: bytes) -> None:
        said = text[self._skip :].decode(self._page, "replace")
        self._skip = max(0, self._skip - len(text))
        self.add_text(said)

    def add_text(self, text: str) -> None:
        if self.silent or not text:
            return
        if self._hidden:
            self._found.hidden["hidden text"] += 1
        else:
            self._found.add(text)
