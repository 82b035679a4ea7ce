"""Lines of texts and lists: in which form new ones are added, and where. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from .tables import to_json_value
from .values import TextValue

HEADING = re.compile(r"(?:#+ .*\n(?:[ \t]*\n)*)?")
_SETTING = re.compile(
    r"""
    \s* [\"']? (?P<name> [\w.-]+ ) [\"']?
    \s* [=:]
    \s* [\"']? (?P<value> .*? ) [\"']?
    \s*
    """,
    re.VERBOSE,
)
_ENTRY = re.compile(
    r"""
    (?P<indent> [ \t]* )
    (?:
        (?P<bullet> [-*+\u2022] ) [ ] (?P<box> \[ [ xX] \] [ ] )?
      | (?P<number> \d+ ) (?P<sign> [.)] ) [ ]
    )
    """,
    re.VERBOSE,
)


class Line(TextValue):
    """A line of a file. What it starts with may be indented."""

    __slots__ = ()

    def startswith(  # type: ignore[override]
        self, prefix: str | tuple[str, ...], start: int | None = None, end: int | None = None
    ) -> bool:
        """See str.startswith."""
        if super().startswith(prefix, start, end):
            return True
        return start is None and str(self).lstrip().startswith(prefix)


def match_list_style(before: str, new: str, *, top: bool = False) -> str:
    """New lines in the style of the list that a file ends with, or with `top` begins with: bullets,
    boxes, numbers."""
    has_marks = any(_ENTRY.match(line) or line.startswith("#") for line in new.splitlines())
    entries = [line for line in before.splitlines() if line.strip() and not line.startswith("#")]
    matches = list(filter(None, map(_ENTRY.match, entries)))
    if has_marks or not matches or len(matches) < len(entries):
        return new

    like = matches[0 if top else -1]
    indent = like["indent"]
    lines = [line for line in new.splitlines() if line.strip()]
    if not like["number"]:
        box = "[ ] " if like["box"] else ""
        return "\n".join(f"{indent}{like['bullet']} {box}{line}" for line in lines)

    if top:  # all that follow would have to be numbered anew
        return new
    numbered = enumerate(lines, int(like["number"]) + 1)
    return "\n".join(f"{indent}{number}{like['sign']} {line}" for number, line in numbered)


def to_text(value: Any) -> str:
    """A value as the text of a file: the lines of a list, JSON for a dict."""
    if isinstance(value, dict):
        return json.dumps(to_json_value(value), indent=2, ensure_ascii=False, default=str)
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        return "\n".join(
            to_text(each) if isinstance(each, dict) else str(each).rstrip("\n") for each in value
        )
    return str(value)


def loose_pattern(text: str) -> str:
    """The text whatever its case and its blanks, as whole words; '' where it is nothing but
    blanks."""
    parts = [part for part in re.split(r"\s*([=:])\s*", text) if part.strip()]
    inner = r"\s*".join(r"\s+".join(map(re.escape, part.split())) for part in parts)
    return rf"(?<!\w){inner}(?!\w)" if inner else ""


def replace_text(text: str, old: str, new: str) -> str | None:
    """The text with `new` for `old`: where that stands as a whole, else within words, else as a
    setting that is written otherwise (`port: 80` for `port = 80`), else in another case or with
    other blanks. None where it stands nowhere."""
    begin = r"(?<!\w)" if old[:1].isalnum() else ""
    end = r"(?!\w)" if old[-1:].isalnum() else ""
    anywhere = re.escape(old)
    for pattern in (begin + anywhere + end, anywhere):
        if re.search(pattern, text):
            return re.sub(pattern, lambda _: new, text)

    after = _replace_setting(text, old, new)
    if after is not None:
        return after

    loose = loose_pattern(old)
    if loose and re.search(loose, text, re.IGNORECASE):
        return re.sub(loose, lambda _: new, text, flags=re.IGNORECASE)
    return None


def _replace_setting(text: str, old: str, new: str) -> str | None:
    """The text with the value of a setting changed, whichever of `=`, `:` and quotes it is written
    with."""
    before = _SETTING.fullmatch(old)
    after = _SETTING.fullmatch(new)
    if before is None or after is None or not before["value"]:
        return None
    if before["name"].casefold() != after["name"].casefold():
        return None

    name = rf"(?<![\w.-]){re.escape(before['name'])}[\"']?"
    sign = r"[ \t]*[=:][ \t]*[\"']?"
    value = rf"{re.escape(before['value'])}(?!\w)"
    changed, times = re.subn(
        f"({name}{sign}){value}",
        lambda found: found[1] + after["value"],
        text,
        flags=re.IGNORECASE,
    )
    return changed if times else None


def split_lines(text: str) -> list[str]:
    """The lines of a text. A form feed, and what else `splitlines` takes for an end, belongs to its
    line."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines


def find_lines(lines: list[str], text: str) -> list[str]:
    """The lines in which a text occurs, whatever its case: as a whole word, or where there are none
    within words; the empty lines for an empty text."""
    if not text.strip():
        return [line for line in lines if not line.strip()]
    whole = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
    found = [line for line in lines if whole.search(line)]
    if found:
        return found
    return [line for line in lines if text.lower() in line.lower()]


def find_section_end(text: str, heading: str) -> int | None:
    """The number of the line behind the last one that stands under a heading; None where there is
    no such heading. A heading begins with `#`, ends with a colon, or stands alone between blank
    lines."""
    lines = split_lines(text)
    names = [_heading_name(line) for line in lines]
    wanted = _heading_name(heading)
    if wanted not in names:
        return None

    at = names.index(wanted)
    first = at + 1
    end = first
    is_marked = lines[at].startswith("#")  # else the section ends at a blank line
    for number in range(first, len(lines)):
        is_blank = not lines[number].strip()
        if lines[number].startswith("#"):
            break
        if is_blank and end > first and not is_marked:
            break
        if not is_blank:
            end = number + 1
    return end


def _heading_name(line: str) -> str:
    return line.strip("#: \t*_").casefold()


def insert_lines(text: str, new: str, at: int) -> str:
    """The text with new lines before the line of this number, in the style of the entries
    around."""
    lines = split_lines(text)
    around = (*reversed(lines[:at]), *lines[at:])
    entries = (line for line in around if line.strip() and not line.startswith("#"))
    like = next(entries, "")
    added = match_list_style(like, new).splitlines()
    return "\n".join([*lines[:at], *added, *lines[at:]]) + "\n"


def tick_entries(text: str, words: str, done: bool) -> str | None:
    """The text with the boxes of the entries ticked in which these words occur; None where there is
    none."""
    box = re.compile(r"^(\s*[-*+] \[)[ xX](\] .*)$")
    lines = text.split("\n")
    meant = find_lines([line for line in lines if box.match(line)], words.strip())
    if not meant:
        return None

    mark = "x" if done else " "
    for number, line in enumerate(lines):
        if line in meant:
            lines[number] = box.sub(rf"\g<1>{mark}\g<2>", line)
    return "\n".join(lines)
