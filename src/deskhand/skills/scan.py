"""Scans a proposed skill for what skills have been used for against people. Pure functions over its
text.

The scan rejects what is plainly bad and shows a person where to look. It is not the protection:
whatever a skill says, its reader can only do what policy allows, and no skill is active before a
person accepts it.

Seen in the skills of one market: made-up prerequisites, droppers in base64, commands piped from the
web into a shell, text about other skills and memories.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
import yaml

from ..tools.documents.invisible_characters import strip_invisible
from .skill import DESCRIPTION_CHARS, NAME_CHARS

LONGEST_CHARS = 24_000
EXCERPT_CHARS = 90
WINDOW_CHARS = 2 * LONGEST_CHARS
OVERLAP_CHARS = 2_000
"""A long text is searched in windows of this size, which overlap by so much."""
RESERVED = frozenset(
    {
        "skill",
        "skills",
        "system",
        "agent",
        "rules",
        "soul",
        "memory",
        "deskhand",
        "con",
        "nul",
        "aux",
    }
)
_PART = re.compile(r"<([A-Z]+)>")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_STYLED = re.compile(
    r"(?:LATIN (?:SMALL|CAPITAL)? ?LETTER (?:SMALL CAPITAL |DOTLESS |SCRIPT )?|REGIONAL "
    r"INDICATOR SYMBOL LETTER "
    r"|NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL LETTER )([A-Z])(?: WITH .*)?"
)
"""Unicode names of letters that people read as plain ones, besides those that NFKD maps."""
_SPACED = re.compile(r"\b(?:\w[ .\-_]){3,}\w\b")
_WRAPPED = re.compile(r"(?<=[^\n])\n(?=[^\n\S]*[^\s\-*+>#|`\d])")
_FENCED = re.compile(r"(^[^\S\n]*(?:```|~~~)[\s\S]*?(?:^[^\S\n]*(?:```|~~~)|\Z))", re.MULTILINE)
_INNER_QUOTES = re.compile(
    r"(?<=\w)(?!'(?:s|t|re|ve|ll|d|m)(?:[\s.,;:!?)]|$))[\"'`\\]+(?=\w)", re.IGNORECASE
)
"""Quotes inside words, except for those of words such as `don't`."""
_PROSE = frozenset({"approvals", "secrecy", "other-skills"})
"""Rules about sentences, which may go over several lines."""
_LINE_MARKERS = re.compile(r"[ >|]*((?:(?:[-*+]|\d+[.)]) +)*)(#+ *)?(?:(?:```|~~~)\w*$)?[ >|]*")
_BREAKS_OFF = re.compile(
    r"(?:\bnot|n't|\bdont|\bnever|\bever|\bwithout|\bno need to|\bavoid|\bskip|\bbypass) "
    r"*+(?:: *+)?$"
)
_LOOKALIKE_SCRIPTS = frozenset(
    {"CYRILLIC", "GREEK", "CHEROKEE", "ARMENIAN", "LISU", "COPTIC", "CANADIAN", "DESERET", "OSAGE"}
)
"""Scripts with letters that look like Latin ones."""

Severity = Literal["bad", "look"]
"""`bad`: the skill is never accepted. `look`: a person should look at this first."""


class ScanFinding(msgspec.Struct, frozen=True):
    """Something found in a skill. `words` say what is wrong, `excerpt` shows where."""

    severity: Severity
    rule: str
    words: str
    excerpt: str = ""


class ScanRule(msgspec.Struct, frozen=True):
    """A pattern to search for."""

    severity: Severity
    name: str
    words: str
    pattern: re.Pattern[str]


@cache
def load_rules() -> tuple[ScanRule, ...]:
    """The rules in scan.yaml."""
    table = yaml.safe_load(files(__package__).joinpath("scan.yaml").read_text("utf-8"))
    found = []
    for each in table["rules"]:
        patterns = "|".join(
            f"(?:{_PART.sub(lambda part: table['parts'][part[1]], each)})"
            for each in each["patterns"]
        )
        found.append(ScanRule(each["severity"], each["name"], each["words"], re.compile(patterns)))
    return tuple(found)


def scan_skill(
    name: str, description: str, body: str, taken: frozenset[str] = frozenset()
) -> tuple[ScanFinding, ...]:
    """The findings in a skill, the worst first. `taken` are names that skills have already."""
    found = [*_check_name(name, taken), *_check_letters(name, description, body)]
    if not description.strip() or len(description) > DESCRIPTION_CHARS:
        found.append(
            ScanFinding(
                "bad",
                "description",
                f"it needs a description of at most {DESCRIPTION_CHARS} characters",
            )
        )
    if not body.strip() or len(body) > LONGEST_CHARS:
        found.append(
            ScanFinding(
                "bad", "length", f"it needs instructions of at most {LONGEST_CHARS:,} characters"
            )
        )
    found += match_rules(f"{description[: 2 * DESCRIPTION_CHARS]}\n{body[:WINDOW_CHARS]}")
    return tuple(sorted(found, key=lambda each: each.severity))


def scan_files(description: str, texts: Iterable[str]) -> tuple[ScanFinding, ...]:
    """The findings in the files of a skill, of any length, and in its description. The worst
    first."""
    found = {finding.rule: finding for finding in match_rules(description)}
    for text in texts:
        for start in range(0, max(1, len(text)), WINDOW_CHARS - OVERLAP_CHARS):
            piece = text[start : start + WINDOW_CHARS]
            for finding in (*_check_letters("", "", piece), *match_rules(piece)):
                found.setdefault(finding.rule, finding)
    return tuple(sorted(found.values(), key=lambda each: each.severity))


def match_rules(text: str) -> Iterator[ScanFinding]:
    """The rules that match a text in any of its readings, each once."""
    readings = tuple(generate_readings(text))
    sentences = (*readings, *(_join_sentences(reading) for reading in readings))
    for rule in load_rules():
        for reading in sentences if rule.name in _PROSE else readings:
            match = rule.pattern.search(reading)
            if match is not None:
                excerpt = _excerpt_around(reading, match)
                yield ScanFinding(rule.severity, rule.name, rule.words, excerpt)
                break


def has_bad_finding(findings: tuple[ScanFinding, ...]) -> bool:
    return any(each.severity == "bad" for each in findings)


def generate_readings(text: str) -> Iterator[str]:
    """The text as a person reads it, and as a model or a shell could: with joined lines, without
    marks and styles of letters, with character references resolved, and without quotes inside
    words."""
    seen: set[str] = set()
    for way in (text, _strip_inner_quotes(_strip_styles(text))):
        plain = to_plain_text(way)
        for each in (plain, _unwrap_lines(plain)):
            if each not in seen:
                seen.add(each)
                yield each


def to_plain_text(text: str) -> str:
    """The text in lower case, without fullwidth or styled letters, invisible characters and
    emphasis inside words, and with continued commands on one line."""
    text = unicodedata.normalize("NFKC", strip_invisible(text)[0]).casefold()
    text = text.replace("\u2019", "'").replace("\\\n", " ")
    text = re.sub(r"\*\*|(?<=\w)(?:__|\*|``|\"\"|'')(?=\w)", "", text)
    return re.sub(r"[^\S\n]+", " ", text)


def _strip_styles(text: str) -> str:
    """The text with plain letters: no marks, no styles, no blanks between the letters of a word."""
    text = _SPACED.sub(lambda word: re.sub(r"[ .\-_]", "", word[0]), html.unescape(text))
    if text.isascii():
        return text
    return "".join(map(_plain_letter, unicodedata.normalize("NFKD", text)))


@cache
def _plain_letter(sign: str) -> str:
    if sign.isascii():
        return sign
    if unicodedata.category(sign)[0] == "M":
        return ""
    found = _STYLED.fullmatch(unicodedata.name(sign, ""))
    return found[1].lower() if found else {"\u0251": "a", "\u0269": "i"}.get(sign, sign)


def _strip_inner_quotes(text: str) -> str:
    return _INNER_QUOTES.sub("", text)


def _unwrap_lines(text: str) -> str:
    """The text with each paragraph on one line. Lines of code stay."""
    pieces = _FENCED.split(text)
    return "".join(
        piece if number % 2 else _WRAPPED.sub(" ", piece) for number, piece in enumerate(pieces)
    )


def _join_sentences(text: str) -> str:
    """The text with sentences joined that go over lines of quotes, lists, headings and code,
    without the markers of these. Items of a list, headings and paragraphs stay apart, unless one
    breaks off, as after "never"."""
    pieces: list[str] = []
    last = ""
    apart = False
    item = False
    head = False
    for line in text.split("\n"):
        before = _LINE_MARKERS.match(line)
        words = line[before.end() :] if before else line
        was = (item, head)
        item = bool(before and before[1])
        head = bool(before and before[2])
        if not words:
            apart = apart or not line.strip(" >|")
            continue
        apart = (apart or head or was[1] or (item and was[0])) and not _BREAKS_OFF.search(last)
        pieces += ["\n" if apart else " ", words]
        last = words
        apart = False
    return "".join(pieces)


def _check_name(name: str, taken: frozenset[str]) -> Iterator[ScanFinding]:
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARS:
        words = (
            "its name must consist of lower case letters, digits and single hyphens, at most "
            f"{NAME_CHARS}"
        )
        yield ScanFinding("bad", "name", words, ascii(name)[1 : EXCERPT_CHARS + 1])
    elif name in RESERVED:
        yield ScanFinding("bad", "name", "its name is reserved", name)
    elif name in taken:
        yield ScanFinding("bad", "name", "a skill has this name already", name)


def _check_letters(name: str, description: str, body: str) -> Iterator[ScanFinding]:
    hidden = strip_invisible(f"{name}{description}{body}")[1]
    if hidden:
        yield ScanFinding("bad", "invisible", f"it has {hidden} invisible characters")
    for word in re.findall(r"\w{3,}", f"{description} {body}"):
        scripts = {
            unicodedata.name(letter, "").split(" ")[0] for letter in word if letter.isalpha()
        }
        if "LATIN" in scripts and scripts & _LOOKALIKE_SCRIPTS:
            words = (
                "it has a word that mixes letters of several scripts and looks like another word"
            )
            yield ScanFinding("bad", "look-alikes", words, ascii(word)[1:EXCERPT_CHARS])
            return


def _excerpt_around(text: str, match: re.Match[str]) -> str:
    start = max(0, match.start() - 20)
    return " ".join(text[start : match.end() + 20].split())[:EXCERPT_CHARS]
