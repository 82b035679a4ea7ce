"""Which characters bytes stand for, when what is said about them may be wrong."""

from __future__ import annotations

import re
from importlib import import_module

_HEAD_BYTES = 2048
_DECLARED_CHARSET = re.compile(
    rb"""
      <\?xml [^>]{0,200} encoding \s* = \s* [\"'] ([\w.:-]{1,40})
    | <meta [^>]{0,400} charset \s* = \s* [\"']? \s* ([\w.:-]{1,40})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
# The names of https://encoding.spec.whatwg.org/#names-and-labels that pages use. Nothing else is
# believed: Python also knows utf-7, punycode and others in which text hides.
SAFE_ENCODINGS = {
    "ascii": "cp1252", "us-ascii": "cp1252", "iso-8859-1": "cp1252", "latin1": "cp1252", "iso8859-1": "cp1252",
    "iso-8859-2": "iso8859-2", "iso-8859-5": "iso8859-5", "iso-8859-7": "iso8859-7", "iso-8859-8": "iso8859-8",
    "iso-8859-9": "cp1254", "iso-8859-15": "iso8859-15", "macintosh": "mac-roman", "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    **{f"windows-{n}": f"cp{n}" for n in (874, *range(1250, 1259))}, **{f"cp{n}": f"cp{n}" for n in range(1250, 1259)},
    "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "windows-31j": "cp932", "euc-jp": "euc-jp",
    "iso-2022-jp": "iso2022-jp", "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "gb2312": "gb18030", "gbk": "gb18030",
    "gb18030": "gb18030", "big5": "big5-hkscs",
}  # fmt: skip


def decode_text(data: bytes, declared: str = "") -> str:
    """The text of `data`. A byte order mark is believed, then that it is UTF-8 where it is valid,
    then what the server (`declared`) and the document itself say. Of the rest it is guessed, or
    read as Windows-1252 without the extra `web`."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    wide = _detect_utf16(data)
    if wide is not None:
        return data.decode(wide, "replace")

    said = [declared]
    found = _DECLARED_CHARSET.search(data[:_HEAD_BYTES])
    if found is not None:
        said += [each.decode() for each in found.groups(b"")]
    labels = [each.strip().strip("\"'").lower() for each in said]
    names = [SAFE_ENCODINGS[label] for label in labels if label in SAFE_ENCODINGS]
    if b"\x1b" not in data:  # ISO-2022 is all ASCII
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            # Cut off within a character; where that is the only one, it is another encoding.
            cut = error.reason == "unexpected end of data" and not data[: error.start].isascii()
            if not names and cut:
                return data.decode("utf-8", "replace")
    for name in names:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    if _is_mostly_utf8(data):
        return data.decode("utf-8", "replace")
    return data.decode(names[0] if names else _guess_encoding(data), "replace")


def _guess_encoding(data: bytes) -> str:
    try:
        guess = import_module(f"{__package__}.guess")
    except ModuleNotFoundError:
        return "cp1252"
    name: str = guess.guess_encoding(data)
    return name


def _detect_utf16(data: bytes) -> str | None:
    """UTF-16 without a mark: every second byte of its beginning is zero."""
    head = data[:200]
    if len(head) < 8 or b"\0" not in head:
        return None
    for start, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        half = head[start::2]
        if half.count(0) > 0.9 * len(half) and head[1 - start :: 2].count(0) < 0.1 * len(half):
            return name
    return None


def _is_mostly_utf8(data: bytes) -> bool:
    """A broken character or two among many good ones."""
    text = data[: 1 << 16].decode("utf-8", "replace")
    beyond = sum(char > "\x7f" for char in text)
    return text.count("\ufffd") * 4 < beyond
