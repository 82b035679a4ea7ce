"""Triggers: the lines under `on` in JOB.md. Pure functions."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from ...types.errors import JobInvalid
from ...types.marked_texts import mark_text

Kind = Literal["webhook", "file", "mqtt", "session-end", "page"]
WEBHOOK_PATH = "/api/hooks/"
"""Where webhooks come in. The name of the job follows."""
DEFAULT_SILENCE_S = 900.0
DEFAULT_PAGE_INTERVAL_S = 3600.0
MIN_SILENCE_S = 10.0
MIN_PAGE_INTERVAL_S = 60.0
TOPIC_BYTES = 500
_SPAN = re.compile(r"([1-9]\d{0,6})(s|m|h|d)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SYNTAX = "`webhook`, `file PATH`, `page URL [1h]`, `mqtt TOPIC` or `session-end [15m]`"


class Trigger(msgspec.Struct, frozen=True):
    """An event that starts a job. `what` is the path, URL or topic. `every_s` is how often a page
    is fetched, or after how much silence a conversation has ended."""

    kind: Kind
    what: str = ""
    every_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.what}".strip()


def parse_trigger(line: str) -> Trigger:
    """The trigger of one line. Raises JobInvalid that says what would be right."""
    kind, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    match kind:
        case "webhook" if not rest:
            return Trigger("webhook")
        case "file" if rest:
            return Trigger("file", parse_path(rest))
        case "mqtt" if rest:
            return Trigger("mqtt", parse_topic(rest))
        case "page" if rest:
            url, _, span = rest.partition(" ")
            return Trigger(
                "page",
                parse_page_url(url),
                _parse_interval(span, DEFAULT_PAGE_INTERVAL_S, MIN_PAGE_INTERVAL_S),
            )
        case "session-end":
            return Trigger(
                "session-end", "", _parse_interval(rest, DEFAULT_SILENCE_S, MIN_SILENCE_S)
            )
        case _:
            raise JobInvalid(
                mark_text("{line} is not a trigger; write {syntax}").format(
                    line=repr(line[:80]), syntax=SYNTAX
                )
            )


def parse_duration(text: str) -> float | None:
    """`90s`, `5m`, `2h` or `1d` in seconds; None for anything else."""
    found = _SPAN.fullmatch(text.strip().lower())
    return float(found[1]) * _UNITS[found[2]] if found else None


def _parse_interval(text: str, usual_s: float, shortest_s: float) -> float:
    if not text.strip():
        return usual_s
    seconds = parse_duration(text)
    if seconds is None or seconds < shortest_s:
        raise JobInvalid(
            mark_text(
                "{written} is not a duration of {shortest_number}s or more; write one such "
                "as 15m or 1h"
            ).format(written=repr(text.strip()[:40]), shortest_number=f"{shortest_s:g}")
        )
    return seconds


def parse_path(written: str) -> str:
    """A path in the workspace, in its one spelling. Raises JobInvalid."""
    parts = [part for part in written.split("/") if part not in ("", ".")]
    if written.startswith(("/", "~")) or ".." in parts or "\0" in written or not parts:
        raise JobInvalid(
            mark_text(
                "{written} is not a path in the workspace; write one such as inbox or "
                "notes/today.md"
            ).format(written=repr(written[:80]))
        )
    return "/".join(parts)


def parse_page_url(url: str) -> str:
    """The same URL. Raises JobInvalid when it is not that of a page, or has a password."""
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        named = False
    if not named or parts.username or parts.password:
        raise JobInvalid(
            mark_text(
                "{url} is not the URL of a page; write one such as https://example.org/news"
            ).format(url=repr(url[:80]))
        )
    return url


def parse_topic(topic: str) -> str:
    """The same topic filter (MQTT 3.1.1, section 4.7): `+` is one level, `#` all that follow.
    Raises JobInvalid."""
    levels = topic.split("/")
    wild = any(
        ("+" in level and level != "+") or ("#" in level and level != "#") for level in levels
    )
    if wild or "#" in levels[:-1] or "\0" in topic or len(topic.encode()) > TOPIC_BYTES:
        raise JobInvalid(
            mark_text(
                "{topic} is not a topic; write one such as home/door or home/+/motion"
            ).format(topic=repr(topic[:80]))
        )
    return topic


def topic_matches(pattern: str, topic: str) -> bool:
    """True when the pattern covers the topic. Wildcards at the front leave out topics that begin
    with `$`, which are the broker's own (section 4.7.2)."""
    wanted = pattern.split("/")
    given = topic.split("/")
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    if wanted[-1] == "#":
        wanted = wanted[:-1]
        given = given[: len(wanted)] if len(given) >= len(wanted) else given
    return len(wanted) == len(given) and all(
        one in ("+", other) for one, other in zip(wanted, given, strict=True)
    )
