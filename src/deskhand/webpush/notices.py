"""The notifications: what a browser shows of what waits for its person. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from ..types.marked_texts import mark_text

TITLE_CHARS = 80
BODY_CHARS = 240
HASH_CHARS = 1000
AT_ONCE = 3
"""More than so many are told as one."""
INBOX = "#/inbox"
INBOX_TAG = "inbox"
"""The tag of the notification that counts others."""
_ASKED_ONE = mark_text("1 question waits for you")
_ASKED = mark_text("{count_number} questions wait for you")
_FAILED = mark_text("{count_number} failed")
_FINISHED = mark_text("{count_number} finished")


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The newer of two with the same `tag` takes the place of the other. `hash` is the part of the
    page that opens when somebody presses it. `at` is in seconds since the epoch."""

    title: str
    body: str
    tag: str
    hash: str
    at: float
    is_question: bool = False
    has_failed: bool = False


def make_notice(title: str, body: str, tag: str, name: str, at: float) -> Notice:
    """One for the conversation that the page knows as `name`."""
    place = f"#/c/{quote(name, safe='')}"
    return Notice(
        _shorten(title, TITLE_CHARS) or "Deskhand",
        _shorten(body, BODY_CHARS),
        tag,
        place if len(place) <= HASH_CHARS else INBOX,
        at,
    )


def join_notices(notices: Sequence[Notice]) -> list[Notice]:
    """A few as they are, and many as one that counts them."""
    if len(notices) <= AT_ONCE:
        return list(notices)
    asked = sum(each.is_question for each in notices)
    failed = sum(each.has_failed for each in notices)
    finished = len(notices) - asked - failed
    parts = (
        _ASKED_ONE if asked == 1 else _ASKED.format(count_number=asked) if asked else "",
        _FAILED.format(count_number=failed) if failed else "",
        _FINISHED.format(count_number=finished) if finished else "",
    )
    said = " · ".join(part for part in parts if part)
    last = max(each.at for each in notices)
    return [Notice("Deskhand", said, INBOX_TAG, INBOX, last, asked > 0)]


def encode_notice(notice: Notice) -> bytes:
    return msgspec.json.encode(notice)


def _shorten(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
