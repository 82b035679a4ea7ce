"""Reads a proposed skill for what skills have been used for against people. Pure, and by the letter alone.

It keeps out what is plainly bad, and shows a person where to look. It is not what protects them: whatever a skill says,
its reader can only do what policy allows, and no skill is active before a person said yes.

What was seen in the wild, in the skills of one market: made-up prerequisites, droppers in base64, commands piped from
the web into a shell, words about other skills and memories.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from importlib.resources import files
from typing import Literal

import msgspec
import yaml

from ..tools.documents.invisible import without_invisible
from .skill import DESCRIPTION_CHARS, NAME_CHARS

LONGEST_CHARS, EXCERPT_CHARS = 24_000, 90
RESERVED = frozenset({"skill", "skills", "system", "agent", "rules", "soul", "memory", "deskhand", "con", "nul", "aux"})
_PART = re.compile(r"<([A-Z]+)>")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

Severity = Literal["bad", "look"]
"""`bad`: it is never taken. `look`: a person should look at this before they say yes."""


class Finding(msgspec.Struct, frozen=True):
    """Something that stands in a skill. `words` say what is wrong with it, `excerpt` is where."""

    severity: Severity
    rule: str
    words: str
    excerpt: str = ""


class Rule(msgspec.Struct, frozen=True):
    """What is searched for."""

    severity: Severity
    name: str
    words: str
    pattern: re.Pattern[str]


def rules() -> tuple[Rule, ...]:
    """What is searched for: the table in scan.yaml."""
    table = yaml.safe_load(files(__package__).joinpath("scan.yaml").read_text("utf-8"))
    found = []
    for each in table["rules"]:
        patterns = "|".join(f"(?:{_PART.sub(lambda part: table['parts'][part[1]], each)})" for each in each["patterns"])
        found.append(Rule(each["severity"], each["name"], each["words"], re.compile(patterns)))
    return tuple(found)


def scan(name: str, description: str, body: str, taken: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    """What stands in a skill of this name, the worst first. `taken` are names that skills have already."""
    found = [*_of_name(name, taken), *_of_letters(name, description, body)]
    if not description.strip() or len(description) > DESCRIPTION_CHARS:
        found.append(Finding("bad", "description", f"it needs a description of at most {DESCRIPTION_CHARS} characters"))
    if not body.strip() or len(body) > LONGEST_CHARS:
        found.append(Finding("bad", "length", f"it needs instructions of at most {LONGEST_CHARS:,} characters"))
    text = plainly(f"{description[: 2 * DESCRIPTION_CHARS]}\n{body[: 2 * LONGEST_CHARS]}")
    hits = ((rule, rule.pattern.search(text)) for rule in rules())
    found += [Finding(rule.severity, rule.name, rule.words, _around(text, hit)) for rule, hit in hits if hit]
    return tuple(sorted(found, key=lambda each: each.severity))


def bad(findings: tuple[Finding, ...]) -> bool:
    return any(each.severity == "bad" for each in findings)


def plainly(text: str) -> str:
    """The text as one reads it: no case, no fullwidth or styled letters, nothing invisible, no emphasis inside of
    words, commands on one line that go on over several."""
    text = unicodedata.normalize("NFKC", without_invisible(text)[0]).casefold()
    text = text.replace("\u2019", "'").replace("\\\n", " ")
    text = re.sub(r"\*\*|(?<=\w)(?:__|\*|``|\"\"|'')(?=\w)", "", text)
    return re.sub(r"[^\S\n]+", " ", text)


def _of_name(name: str, taken: frozenset[str]) -> Iterator[Finding]:
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARS:
        words = f"its name is not of lower case letters, digits and single hyphens, at most {NAME_CHARS}"
        yield Finding("bad", "name", words, ascii(name)[1 : EXCERPT_CHARS + 1])
    elif name in RESERVED:
        yield Finding("bad", "name", "its name means something else", name)
    elif name in taken:
        yield Finding("bad", "name", "a skill has this name already", name)


def _of_letters(name: str, description: str, body: str) -> Iterator[Finding]:
    hidden = without_invisible(f"{name}{description}{body}")[1]
    if hidden:
        yield Finding("bad", "invisible", f"it has {hidden} characters that nobody sees")
    for word in re.findall(r"\w{3,}", f"{description} {body}"):
        scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in word if letter.isalpha()}
        if "LATIN" in scripts and scripts & {"CYRILLIC", "GREEK", "CHEROKEE", "ARMENIAN"}:
            words = "it has a word of letters of several scripts, which is read as another"
            yield Finding("bad", "look-alikes", words, ascii(word)[1:EXCERPT_CHARS])
            return


def _around(text: str, match: re.Match[str]) -> str:
    start = max(0, match.start() - 20)
    return " ".join(text[start : match.end() + 20].split())[:EXCERPT_CHARS]
