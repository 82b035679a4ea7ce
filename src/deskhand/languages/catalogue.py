"""The languages that there are, and which of them somebody gets: the first of those that they ask
for. The page and the chats read the same files."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path

import msgspec

LANGUAGES = Path(__file__).parent
"""One file for each language but English."""
MAX_HEADER_CHARS = 500


class Formats(msgspec.Struct, frozen=True):
    """How figures and dates are written, as Unicode CLDR has them: what stands between thousands
    and before decimals, a time of `{year}`, `{month}`, `{day}` and `{clock}`, and the names of days
    and months, Sunday and January first. `last` stands before the last of a list."""

    group: str = ","
    decimal: str = "."
    time: str = ""
    last: str = ""
    weekdays: tuple[str, ...] = ()
    months: tuple[str, ...] = ()


class Language(msgspec.Struct, frozen=True):
    """`name` is its own for itself, `dir` the direction in which it is read. `texts` are those of
    the page, by the English ones, `sentences` what the server writes; what they do not have is said
    in English."""

    code: str = "en"
    name: str = "English"
    dir: str = "ltr"
    formats: Formats = Formats()
    sentences: dict[str, str] = {}
    texts: dict[str, str | dict[str, str]] = {}

    def say(self, text: str) -> str:
        """The text in this language."""
        said = self.texts.get(text) or self.sentences.get(text)
        return said if isinstance(said, str) and said else text


ENGLISH = Language()


def choose_language(accepted: str) -> Language:
    """The language for an `Accept-Language` header, such as `de-AT,de;q=0.9,en;q=0.8` (RFC 9110,
    section 12.5.4)."""
    known = (find_language(each) for each in _sort_wanted(accepted[:MAX_HEADER_CHARS]))
    return next(filter(None, known), ENGLISH)


def find_language(wanted: str) -> Language | None:
    """The language of a tag such as `de-AT` or `de_AT.UTF-8` (RFC 5646; as a locale is called);
    None where there is none of it."""
    known = _list_codes()
    tag = wanted.partition(".")[0].replace("_", "-").lower()
    for code in (tag, tag.partition("-")[0]):
        if code == ENGLISH.code:
            return ENGLISH
        if code in known:
            return _read_language(known[code])
    return None


def all_languages() -> list[Language]:
    """Every language, English first."""
    return [ENGLISH, *(_read_language(code) for code in sorted(_list_codes().values()))]


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
    """The languages beside English as `js/language.js` is told of them: `da=Dansk;de=Deutsch`.
    Escaped for HTML."""
    codes = sorted(_list_codes().values())
    return escape(";".join(f"{code}={_read_language(code).name}" for code in codes))


@cache
def _list_codes() -> dict[str, str]:
    """The codes as their files are called, by what they are in small letters."""
    return {file.stem.lower(): file.stem for file in LANGUAGES.glob("*.json")}


@cache
def _read_language(code: str) -> Language:
    data = (LANGUAGES / f"{code}.json").read_bytes()
    return msgspec.structs.replace(msgspec.json.decode(data, type=Language), code=code)
