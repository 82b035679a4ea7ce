"""The languages of the page, and which of them a page has that the server writes by itself: the
first of those that the browser asks for and that there is."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path

import msgspec

LANGUAGES = Path(__file__).parent / "static" / "languages"
"""One file for each language but English, as `js/language.js` reads it."""
MAX_HEADER_CHARS = 500


class PageLanguage(msgspec.Struct, frozen=True):
    """A language of the page. `name` is its own for itself, `dir` the direction in which it is
    read; what `texts` do not have is said in English."""

    code: str = "en"
    name: str = "English"
    dir: str = "ltr"
    texts: dict[str, str | dict[str, str]] = {}

    def say(self, text: str) -> str:
        """The text in this language."""
        said = self.texts.get(text)
        return said if isinstance(said, str) and said else text


ENGLISH = PageLanguage()


def choose_language(accepted: str) -> PageLanguage:
    """The language for an `Accept-Language` header, such as `de-AT,de;q=0.9,en;q=0.8` (RFC 9110,
    section 12.5.4)."""
    known = _list_codes()
    for wanted in _sort_wanted(accepted[:MAX_HEADER_CHARS]):
        for code in (wanted, wanted.partition("-")[0]):
            if code == ENGLISH.code:
                return ENGLISH
            if code in known:
                return _read_language(known[code])
    return ENGLISH


def _sort_wanted(accepted: str) -> list[str]:
    """The codes, what is wanted most first."""
    found: list[tuple[float, str]] = []
    for each in accepted.lower().split(","):
        code, _, weight = each.partition(";")
        try:
            wanted = float(weight.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if wanted > 0:
            found.append((wanted, code.strip()))
    return [code for _, code in sorted(found, key=lambda each: -each[0])]


@cache
def list_languages() -> str:
    """The languages as `js/language.js` is told of them: `da=Dansk;de=Deutsch`. Escaped for
    HTML."""
    codes = sorted(_list_codes().values())
    return escape(";".join(f"{code}={_read_language(code).name}" for code in codes))


@cache
def _list_codes() -> dict[str, str]:
    """The codes as their files are called, by what they are in small letters."""
    return {file.stem.lower(): file.stem for file in LANGUAGES.glob("*.json")}


@cache
def _read_language(code: str) -> PageLanguage:
    data = (LANGUAGES / f"{code}.json").read_bytes()
    return msgspec.structs.replace(msgspec.json.decode(data, type=PageLanguage), code=code)
