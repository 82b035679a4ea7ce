"""What was written in the rooms of a Matrix account before.

https://spec.matrix.org/latest/client-server-api/#get_matrixclientv3roomsroomidmessages, and
#get_matrixclientv1roomsroomidrelationseventidreltype for threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from ...types.identity import Address
from ..base import PastMessage, Room
from ..patience import retry_after_waits
from .reader import Json, read_words

PAGE = 100
MAX_PAGES = 5
_MESSAGE = "m.room.message"
_ENCRYPTION = "m.room.encryption"
_NAMES = ("m.room.name", "m.room.canonical_alias", _ENCRYPTION)
_NOTHING: Json = {"types": []}
_ROOMS = {
    "presence": _NOTHING,
    "account_data": _NOTHING,
    "room": {
        "timeline": {"limit": 1},
        "state": {"types": list(_NAMES), "lazy_load_members": True},
        "ephemeral": _NOTHING,
        "account_data": _NOTHING,
    },
}
"""A first sync that tells how the rooms are called, and little else. Without an event in its
timeline a room without a name would be left out, and only who loads members lazily is told of those
that it can be called by."""


class Call(Protocol):
    async def __call__(self, path: str, params: Mapping[str, str]) -> Any:
        """What a GET of this path, below /_matrix/client, is answered with. Raises
        ChannelError."""


class History:
    """Reads for one account, which asks its homeserver by `call`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def list_rooms(self) -> tuple[Room, ...]:
        """See `Reading.list_rooms`: the rooms that the account has joined."""
        about = {"filter": msgspec.json.encode(_ROOMS).decode(), "timeout": "0"}
        found = await self._fetch("/v3/sync", about)
        joined: Mapping[str, Json] = (found.get("rooms") or {}).get("join") or {}
        return tuple(_read_room(name, told) for name, told in joined.items())

    async def read(self, address: Address, count: int, me: str) -> tuple[PastMessage, ...]:
        """See `Reading.read_history`; `me` is the account."""
        room = f"rooms/{quote(address.chat, safe='')}"
        if not address.thread:
            wanted = {"filter": msgspec.json.encode({"types": [_MESSAGE]}).decode()}
            found = await self._read_pages(f"/v3/{room}/messages", wanted, count, _find_end)
        else:
            root = quote(address.thread, safe="")
            path = f"/v1/{room}/relations/{root}/m.thread"
            found = await self._read_pages(path, {}, count, _find_next_batch)
            if len(found) < count:
                first = await self._fetch(f"/v3/{room}/event/{root}", {})
                found += filter(_is_said, (first,))
        return tuple(_read_message(each, me) for each in reversed(found[:count]))

    async def _read_pages(
        self,
        path: str,
        wanted: Mapping[str, str],
        count: int,
        find_more: Callable[[Json], str],
    ) -> list[Json]:
        """At least `count` messages where there are so many, the newest first."""
        found: list[Json] = []
        after: Mapping[str, str] = {}
        for _ in range(MAX_PAGES):
            page = await self._fetch(path, {"dir": "b", "limit": str(PAGE), **wanted, **after})
            found += filter(_is_said, page.get("chunk") or ())
            more = find_more(page)
            if len(found) >= count or not more:
                break
            after = {"from": more}
        return found

    async def _fetch(self, path: str, params: Mapping[str, str]) -> Any:
        return await retry_after_waits(partial(self._call, path, params))


def _find_end(page: Json) -> str:
    """Where the page before this one begins."""
    return str(page.get("end") or "") if page.get("chunk") else ""


def _find_next_batch(page: Json) -> str:
    return str(page.get("next_batch") or "")


def _read_room(name: str, told: Json) -> Room:
    state = (told.get("state") or {}).get("events") or ()
    recent = (told.get("timeline") or {}).get("events") or ()
    facts = {str(each.get("type")): each.get("content") or {} for each in (*state, *recent)}
    summary = told.get("summary") or {}
    heroes = ", ".join(map(str, summary.get("m.heroes") or ()))
    shown = (
        facts.get("m.room.name", {}).get("name")
        or facts.get("m.room.canonical_alias", {}).get("alias")
        or heroes
        or name
    )
    kind = "encrypted room, which cannot be read" if _ENCRYPTION in facts else "room"
    return Room(name, str(shown), kind)


def _is_said(event: Json) -> bool:
    """Whether it is a message that is still there, and no new text of one before."""
    content = event.get("content") or {}
    relation = content.get("m.relates_to") or {}
    said = event.get("type") == _MESSAGE and relation.get("rel_type") != "m.replace"
    return said and bool(content.get("body"))


def _read_message(event: Json, me: str) -> PastMessage:
    content = event["content"]
    relation = content.get("m.relates_to") or {}
    related = (event.get("unsigned") or {}).get("m.relations") or {}
    edited = ((related.get("m.replace") or {}).get("content") or {}).get("m.new_content")
    sender = str(event["sender"])
    text = read_words({**content, **(edited or {})})
    if "url" in content or "file" in content:
        text = f"[file {content.get('filename') or text}]"
    begins = str(event["event_id"]) if "m.thread" in related else ""
    is_in_thread = relation.get("rel_type") == "m.thread"
    return PastMessage(
        id=str(event["event_id"]),
        sender=sender,
        name=sender,  # others give themselves any name that they like
        at=float(event.get("origin_server_ts") or 0) / 1000,
        text=text.strip(),
        thread=str(relation.get("event_id", "")) if is_in_thread else begins,
        ours=sender == me,
    )
