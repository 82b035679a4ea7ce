"""Lines of texts and lists: in which form new ones are added, and where. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from .tables import to_json_value
from .values import TextValue

HEADING = re.compile(r"(?:#+ .*\n(?:[ \t]*\n)*)?")
_SETTING = re.compile(r"\s*[\"']?([\w.-]+)[\"']?\s*[=:]\s*[\"']?(.*?)[\"']?\s*")
_ENTRY = re.compile(r"([ \t]*)(?:([-*+\u2022]) (\[[ xX]\] )?|(\d+)([.)]) )")


class Line(TextValue):
    """A line of a file. What it starts with may be indented."""

    __slots__ = ()

    def startswith(  # type: ignore[override]
        self, prefix: str | tuple[str, ...], start: int | None = None, end: int | None = None
    ) -> bool:
        """See str.startswith."""
        return super().startswith(prefix, start, end) or (
            start is None and str(self).lstrip().startswith(prefix)
        )


def match_list_style(before: str, new: str, *, top: bool = False) -> str:
    """New lines in the style of the list that a file ends with, or with `top` begins with: bullets,
    boxes, numbers."""
    entries = [line for line in before.splitlines() if line.strip() and not line.startswith("#")]
    matches = [match for line in entries if (match := _ENTRY.match(line))]
    marked = any(_ENTRY.match(line) or line.startswith("#") for line in new.splitlines())
    if not matches or len(matches) < len(entries) or marked:
        return new
    like = matches[0 if top else -1]
    lines = [line for line in new.splitlines() if line.strip()]
    if like[4]:
        return (
            new
            if top
            else "\n".join(
                f"{like[1]}{int(like[4]) + n}{like[5]} {line}" for n, line in enumerate(lines, 1)
            )
        )
    box = "[ ] " if like[3] else ""
    return "\n".join(f"{like[1]}{like[2]} {box}{line}" for line in lines)


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
    ends = (r"(?<!\w)" if old[:1].isalnum() else "", r"(?!\w)" if old[-1:].isalnum() else "")
    for pattern in (f"{ends[0]}{re.escape(old)}{ends[1]}", re.escape(old)):
        if re.search(pattern, text):
            return re.sub(pattern, lambda _: new, text)
    if (after := _replace_setting(text, old, new)) is not None:
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
    if not (before and after and before[2] and before[1].casefold() == after[1].casefold()):
        return None
    setting = (
        rf"(?<![\w.-])({re.escape(before[1])}[\"']?[ \t]*[=:][ "
        rf"\t]*[\"']?){re.escape(before[2])}(?!\w)"
    )
    changed, times = re.subn(setting, lambda found: found[1] + after[2], text, flags=re.IGNORECASE)
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
    return [line for line in lines if whole.search(line)] or [
        line for line in lines if text.lower() in line.lower()
    ]


def find_section_end(text: str, heading: str) -> int | None:
    """The number of the line behind the last one that stands under a heading; None where there is
    no such heading. A heading begins with `#`, ends with a colon, or stands alone between blank
    lines."""
    lines = split_lines(text)
    wanted = heading.strip("#: \t*_").casefold()
    at = next(
        (n for n, line in enumerate(lines) if line.strip("#: \t*_").casefold() == wanted), None
    )
    if at is None:
        return None
    end = at + 1
    for n in range(at + 1, len(lines)):
        if lines[n].startswith("#") or (
            not lines[n].strip() and end > at + 1 and not lines[at].startswith("#")
        ):
            break
        if lines[n].strip():
            end = n + 1
    return end


def insert_lines(text: str, new: str, at: int) -> str:
    """The text with new lines before the line of this number, in the style of the entries
    around."""
    lines = split_lines(text)
    around = [
        line
        for line in (*reversed(lines[:at]), *lines[at:])
        if line.strip() and not line.startswith("#")
    ]
    like = around[0] if around else ""
    return "\n".join([*lines[:at], *match_list_style(like, new).splitlines(), *lines[at:]]) + "\n"


def tick_entries(text: str, words: str, done: bool) -> str | None:
    """The text with the boxes of the entries ticked in which these words occur; None where there is
    none."""
    box = re.compile(r"^(\s*[-*+] \[)[ xX](\] .*)$")
    lines = text.split("\n")
    meant = find_lines([line for line in lines if box.match(line)], words.strip())
    for n, line in enumerate(lines):
        if line in meant:
            lines[n] = box.sub(rf"\g<1>{'x' if done else ' '}\g<2>", line)
    return "\n".join(lines) if meant else None
