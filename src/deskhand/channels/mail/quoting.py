"""What of a mail its sender typed, and what stands in it of others: quoted, or passed on."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

_FORWARDED = re.compile(
    r"^(-{2,} ?[^-\s][^\n]{2,60}[^-\s] ?-{2,}|Begin forwarded message:|_{10,})$"
)
_FROM = re.compile(r"^\W{0,3}(From|Von|De|Da|Van|Från|Fra|Od) ?:", re.IGNORECASE)
_FIELD = re.compile(r"^\W{0,3}[^\W\d_]{2,12} ?:")
_TIME = re.compile(r"\d{1,2}[:.]\d{2}")
_TAG = re.compile(r"(<[^<>]*>)")
_TAG_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)")
_BREAKS = frozenset(
    ("p", "div", "br", "li", "tr", "h1", "h2", "h3", "blockquote", "pre", "hr", "table")
)
_QUOTING = ("gmail_quote", "moz-forward-container", "divrplyfwdmsg", "appendonsend")
MAX_HEAD_LINES = 3


def split_quoted(text: str) -> tuple[str, str]:
    """What was typed, without a signature; and what stands there of others."""
    lines = text.replace("\r\n", "\n").split("\n")
    own: list[str] = []
    quoted: list[str] = []
    signed = False
    for i, line in enumerate(lines):
        bare = line.strip()
        if _begins_forwarded(lines, i):
            quoted += lines[i:]
            break
        if bare.startswith(">"):
            signed = False
            _move_head(own, quoted)
            quoted.append(line)
        elif signed or line in ("-- ", "--"):
            signed = True
        else:
            own.append(line)
    _move_head(own, quoted, at_end=True)
    return "\n".join(own).strip(), "\n".join(quoted).strip()


def is_forwarded(quoted: str) -> bool:
    """Whether it holds a mail that was passed on, which need not have been said here."""
    lines = quoted.split("\n")
    return any(_begins_forwarded(lines, i) for i in range(len(lines)))


def _begins_forwarded(lines: list[str], i: int) -> bool:
    """A line between dashes, or the head of a mail."""
    bare = lines[i].strip()
    if _FORWARDED.match(bare):
        return True
    after = [each.strip() for each in lines[i + 1 : i + 3]]
    return bool(_FROM.match(bare)) and len(after) == 2 and all(map(_FIELD.match, after))


def _move_head(own: list[str], quoted: list[str], *, at_end: bool = False) -> None:
    """The words above a quote that say whose it is (`On Friday at 8:00 Ann wrote:`, on one line or
    on some) are no words of the sender either."""
    end = len(own)
    while end and not own[end - 1].strip():
        end -= 1
    if not end or not own[end - 1].rstrip().endswith(":"):
        return
    for count in range(1, MAX_HEAD_LINES + 1):
        start = end - count
        if start < 0 or not own[start].strip():
            return
        head = " ".join(each.strip() for each in own[start:end])
        named = "@" in head if at_end else "@" in head or _TIME.search(head)
        begins = start == 0 or not own[start - 1].strip()
        if named and begins and len(head) < 400:
            quoted += own[start:]
            del own[start:]
            return


def html_to_text(page: str) -> str:
    """The words of a page in lines; what is quoted begins with `>`. In time with its length,
    whatever it holds."""
    for begins, ends in (("<!--", "-->"), ("<style", "</style"), ("<script", "</script")):
        page = _drop_between(page, begins, ends)
    lines: list[str] = [""]
    quotes: list[bool] = []
    passed_on = False
    for piece in _TAG.split(page):
        if not piece.startswith("<"):
            words = html.unescape(" ".join(piece.split()))
            begins = " " if piece[:1].isspace() and lines[-1] not in ("", "> ") else ""
            lines[-1] += begins + words + (" " if words and piece[-1:].isspace() else "")
            continue
        found = _TAG_NAME.match(piece)
        name = found[1].lower() if found else ""
        low = piece.lower()
        passed_on = passed_on or "divrplyfwdmsg" in low
        if name in ("div", "blockquote"):
            if piece.startswith("</"):
                quotes[-1:] = []
            else:
                quotes.append(name == "blockquote" or any(each in low for each in _QUOTING))
        if name in _BREAKS:
            lines.append("> " if passed_on or any(quotes) else "")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_clean(lines))).strip()


def _clean(lines: list[str]) -> Iterator[str]:
    """Without what is empty in a quote, and one space where there are several."""
    for line in lines:
        text = " ".join(line.split())
        if text != ">":
            yield text


def _drop_between(text: str, begins: str, ends: str) -> str:
    kept: list[str] = []
    low = text.lower()
    at = 0
    while (start := low.find(begins, at)) >= 0:
        kept.append(text[at:start])
        end = low.find(ends, start + len(begins))
        if end < 0:
            return "".join(kept)
        at = end + len(ends)
    return "".join([*kept, text[at:]])
