"""What a person corrects of the turn before: a fact that was to be remembered, the time of a
reminder. Pure."""

from __future__ import annotations

import re

from .shim_request import FILE_NAME
from .shim_turn import ShimTurn


def make_correction_program(turn: ShimTurn) -> str:
    """The program that puts right what was said to be remembered, or when something will be said;
    '' for a request that corrects nothing."""
    request = " ".join(turn.request.split())
    if len(request) > MAX_REQUEST_CHARS or FILE_NAME.search(request) or request.endswith("?"):
        return ""

    told = list[str]()
    for role, text in reversed(turn.earlier[-EARLIER_MESSAGES:]):
        if role == "assistant":
            told += text.split("\n")
    return _correct_fact(request, told) or _correct_time(request, told)


MAX_REQUEST_CHARS = 160
EARLIER_MESSAGES = 6


def _correct_fact(request: str, told: list[str]) -> str:
    if not _MISTAKEN.search(request):
        return ""

    values = re.findall(r"\b([a-z]\w+) ([\w.:-]*\d[\w.:-]*\w|\d)\b", request, re.IGNORECASE)
    for line in told:
        if not line.startswith(REMEMBERED_PREFIX):
            continue
        fact = line.removeprefix(REMEMBERED_PREFIX)
        for word, value in values:
            old = rf"\b({word}) [\w.:-]*\d[\w.:-]*\b"
            new, times = re.subn(old, rf"\1 {value}", fact, flags=re.IGNORECASE)
            if times == 1 and new != fact:
                return f"forget({fact!r})\nremember({new!r})"
    return ""


def _correct_time(request: str, told: list[str]) -> str:
    times = _TIME.findall(request)
    if len(times) != 1 or not _MOVED.search(request):
        return ""
    meant = _find_meant_reminder(request, told)
    if meant is None:
        return ""

    when, changed = _TIME_SAID.subn(f" at {times[0]}", meant[2])
    what = meant[3]
    if changed != 1:
        return ""
    if meant[1] == "tell":
        return f"cancel({what!r})\nevery({when.removeprefix('every ')!r}, {what!r})"
    return f"cancel({what!r})\nremind({when!r}, {what!r})"


def _find_meant_reminder(request: str, told: list[str]) -> re.Match[str] | None:
    """The reminder that the request shares a word with, or the only one that was told of."""
    reminders = dict[str, re.Match[str]]()
    for line in reversed(told):
        if found := _WILL_TELL.fullmatch(line):
            reminders[found[3]] = found

    words = _long_words(request)
    meant = [found for what, found in reminders.items() if words & _long_words(what)]
    if not meant and len(reminders) == 1:
        meant = list(reminders.values())
    return meant[0] if len(meant) == 1 else None


def _long_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", text.lower()))


REMEMBERED_PREFIX = "I will remember: "
_WILL_TELL = re.compile(r"I will (tell|remind) you (.+?\d:\d\d): (.+)")
_MISTAKEN = re.compile(
    r"\b("
    r"sorry|mixed|mistake|wrong|no,|actually|i meant|i mean"
    r"|correct|correction|not \w+ \d|oops|rather"
    r")",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"\b(make|move|change|shift|set|push|instead|rather|better|later|earlier|actually)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b\d{1,2}:\d\d(?:\s?[ap]m)?\b"
    r"|\b\d{1,2}\s?(?:am|pm|o'clock)\b"
    r"|(?:(?<=\bat )|(?<=\bto )|(?<=\bby ))\d{1,2}\b(?! \w+s\b)",
    re.IGNORECASE,
)
_TIME_SAID = re.compile(r"(?:, | at )\d{1,2}:\d\d\b")
