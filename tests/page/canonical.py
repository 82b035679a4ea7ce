"""HTML as a list of what matters in it: one list for CommonMark's HTML and for what the page drew
of the same text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final
from urllib.parse import unquote

_EMPTY: Final = {"br", "hr", "img", "input"}
_UNWRAPPED: Final = {"div", "label", "section", "tbody", "thead"}


def canonical(html: str) -> list[str]:
    """Tags with the attributes that count, and words behind a quotation mark.

    Titles of links are left out: they could name another address.
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.joined()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._found: list[tuple[str, bool]] = []  # tag or words; whether it is a tag
        self._ends: list[tuple[str, str]] = []  # open elements, and what to say at their end
        self._dropped = 0
        self._pre = self._link = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        kinds = has.get("class", "").split()
        if not self._dropped and ("picture" in kinds or "remote" in kinds):
            self._found.append((f"<img {_address(has.get('data-url') or has['data-path'])}>", True))
        if self._dropped or {"code-bar", "host", "picture", "remote", "table-bar"} & {*kinds}:
            self._dropped += tag not in _EMPTY
            return
        end = ""
        if tag == "a" or "file-link" in kinds:
            end = self._address(_address(has.get("data-path", has.get("href", ""))))
        elif tag == "img":
            self._picture(_address(has.get("src", "")), has.get("alt", ""))
        elif tag != "span" and tag not in _UNWRAPPED and "sort" not in kinds:
            self._tag(tag, has)
            end = f"</{tag}>"
        self._pre += tag == "pre"
        if tag not in _EMPTY:
            self._ends.append((tag, end))

    def _tag(self, tag: str, has: dict[str, str]) -> None:
        kept = [f"{name}={has[name]}" for name in ("start", "align") if name in has]
        kept += [
            kind
            for kind in has.get("class", "").split()
            if tag == "code" and kind.startswith("language-")
        ]
        self._found.append((f"<{' '.join((tag, *kept))}>", True))

    def _address(self, href: str) -> str:
        """The start of a link; what is to be said at its end."""
        self._link += 1
        if href.startswith("#"):
            return " "
        if re.match(r"https?:|mailto:", href) or _is_local(href):
            self._found.append((f"<a {href}>", True))
            return "</a>"
        shown = re.sub(r"\s+", " ", href[:80])
        return f" (link removed{f': {shown}' if href else ''})"

    def _picture(self, src: str, alt: str) -> None:
        if self._link:
            self._found.append((alt, False))
        elif re.match(r"https?:", src) or _is_local(src):
            self._found.append((f"<img {src}>", True))
        else:
            self._found.append((f"(picture removed{f': {alt}' if alt else ''})", False))

    def handle_endtag(self, tag: str) -> None:
        if tag in _EMPTY:
            return
        if self._dropped:
            self._dropped -= 1
            return
        if not self._ends or self._ends[-1][0] != tag:
            return  # of HTML that is not well formed
        _, end = self._ends.pop()
        self._pre -= tag == "pre"
        self._link -= end == "</a>" or end.startswith(" ")
        if end:
            self._found.append((end, end.startswith("<")))

    def handle_data(self, data: str) -> None:
        if not self._dropped:
            self._found.append((data if self._pre else re.sub(r"\s+", " ", data), False))

    def joined(self) -> list[str]:
        """Words that follow each other are one; space at the edges of blocks is none."""
        found: list[str] = []
        words = ""
        for text, is_tag in [*self._found, ("", True)]:
            if not is_tag:
                words += text
                continue
            if words.strip():
                found.append(f'"{words.strip()}')
            words = ""
            found.append(text)
        return [each for each in found if each]


def _address(href: str) -> str:
    """As browsers write it, but for its %-signs."""
    href = unquote(href).removeprefix("./")
    if re.match(r"(?:https?|mailto):", href, re.IGNORECASE):
        scheme, _, rest = href.partition(":")
        rest = re.sub(r"^(//[^/?#]+)/?(?=[?#]|$)", r"\1", rest)
        return f"{scheme.lower()}:{rest}"
    return href


def _is_local(href: str) -> bool:
    return (
        bool(href)
        and not re.match(r"[a-z][a-z0-9+.-]*:|[/#?~]", href, re.IGNORECASE)
        and "\\" not in href
    )
