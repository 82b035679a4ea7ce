"""The tools `list_channels`, `read_channel` and `read_thread`: what was written on a platform
before, for those who could read it there themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar
from zoneinfo import ZoneInfo

import msgspec

from ..channels.base import Channel, PastMessage, Reading, Room
from ..tools.base import Context, Done, Tool, call_label, make_result
from ..tools.define import tool
from ..types.errors import ChannelError, SendRefused, ToolError
from ..types.identity import Address
from ..types.labels import LOCAL, Label
from ..types.marked_texts import mark_text
from ..types.messages import Text, clean_text

MAX_COUNT = 100
MAX_ROOMS = 300
MAX_MESSAGE_CHARS = 4_000
MAX_CHARS = 30_000
"""Of all that is read at once; the oldest messages are left out first."""
MAX_NAME_CHARS = 80
_OWNERS = ("role:owner",)
_ERRORS = Label("untrusted", source=mark_text("what a platform says of an error"))
_OWN_ROOM_ONLY = (
    "you may read only the room that this conversation is in; leave out `channel` for that. Other "
    "rooms are read for owners"
)

T = TypeVar("T")


def make_room_tools(
    channels: Iterable[Channel], is_on: Callable[[str], bool], zone: Callable[[], str]
) -> tuple[Tool, ...]:
    """The tools, for those of the channels that can be read; () where none can. `is_on` tells
    whether a channel is switched on; times are shown in the time zone `zone`."""
    readers = {each.name: each for each in channels if isinstance(each, Reading)}
    if not readers:
        return ()
    rooms = _Rooms(readers, is_on, zone)

    @tool(effect="fetch")
    async def list_channels(context: Context) -> Done:
        """List the rooms on Slack, Discord or Matrix that you can read, and their ids."""
        return await rooms.list_all(context)

    @tool(effect="fetch")
    async def read_channel(context: Context, channel: str = "", count: int = 20) -> Done:
        """Read the last messages of a room, the newest last.

        channel: name or id, ACCOUNT/ID on another account; this room if left out
        count: at most 100
        """
        return await rooms.read(context, channel, "", count)

    @tool(effect="fetch")
    async def read_thread(
        thread_id: str, context: Context, channel: str = "", count: int = 50
    ) -> Done:
        """Read the last messages of a thread, the newest last.

        thread_id: as read_channel shows it
        channel: that the thread is in, as for read_channel
        count: at most 100
        """
        if not thread_id.strip():
            raise ToolError("thread_id is empty: read_channel shows the threads of a room")
        return await rooms.read(context, channel, thread_id.strip(), count)

    return list_channels, read_channel, read_thread


class _Place(msgspec.Struct, frozen=True):
    """A room of an account. `own`: the conversation is in it."""

    account: str
    room: Room
    own: bool


class _Rooms:
    def __init__(
        self,
        readers: Mapping[str, Reading],
        is_on: Callable[[str], bool],
        zone: Callable[[], str],
    ) -> None:
        self._readers = readers
        self._is_on = is_on
        self._zone = zone

    async def list_all(self, context: Context) -> Done:
        """The rooms of all accounts for an owner, and the own one for anybody else."""
        here = context.address
        if not _sees_all(context):
            place = self._find_own(context)
            return _make_list([(place, _show_room(place, prefix=""))], context)

        shown: list[tuple[_Place, str]] = []
        failed: list[str] = []
        for account in self._list_accounts():
            prefix = "" if account == here.channel else f"{account}/"
            try:
                found = await _ask(self._readers[account].list_rooms())
            except ToolError as error:
                failed.append(f"{account}: {error}")
                continue
            for room in sorted(found, key=lambda each: (not each.joined, each.name)):
                own = account == here.channel and room.id == here.chat
                place = _Place(account, room, own)
                shown.append((place, _show_room(place, prefix)))
        if failed and not shown:
            raise ToolError("\n".join(failed), _ERRORS)
        return _make_list(shown, context, failed)

    async def read(self, context: Context, channel: str, thread: str, count: int) -> Done:
        """The last messages of the room that `channel` names, or of a thread in it."""
        place = await self._find(channel.strip(), context)
        if not place.room.joined:
            raise ToolError(
                f"the bot is not in {place.room.name}: somebody has to invite it there",
                _make_label(context, place, ""),
            )
        address = Address(place.account, chat=place.room.id, thread=thread)
        if place.own:
            address = msgspec.structs.replace(context.address, thread=thread)
        count = min(max(count, 1), MAX_COUNT)
        reader = self._readers[place.account]
        found = await _ask(reader.read_history(address, count))
        return self._make_reading(place, found[-count:], context)

    def _make_reading(self, place: _Place, found: Sequence[PastMessage], context: Context) -> Done:
        """Each message with the label of who wrote it, as many of the newest as fit."""
        zone = ZoneInfo(self._zone())
        parts: list[Text] = []
        room = MAX_CHARS
        for each in reversed(found):
            text = _render(each, zone)
            room -= len(text)
            if room < 0 and parts:
                break
            author = f"{_clean(each.name)} ({_clean(each.sender)})"
            parts.append(Text(text, _make_label(context, place, author)))
        if not parts:
            return make_result("[no messages]", call_label(context))
        if missing := len(found) - len(parts):
            parts.append(Text(f"[{missing} older messages do not fit: ask for fewer]\n", LOCAL))
        return Done(tuple(reversed(parts)))

    # Which room is meant, and who may read it

    async def _find(self, wanted: str, context: Context) -> _Place:
        """Raises ToolError where there is no such room, or they may not read it."""
        here = context.address
        if not _sees_all(context):
            place = self._find_own(context)
            if wanted.removeprefix(f"{here.channel}/") in ("", here.chat):
                return place
            # The same words whether or not there is such a room.
            for room in await _ask(self._readers[here.channel].list_rooms()):
                if room.id == here.chat and _is_called(room, wanted):
                    return _Place(here.channel, room, own=True)
            raise ToolError(_OWN_ROOM_ONLY)

        account, name = self._split(wanted, here)
        if account == here.channel and name in ("", here.chat):
            return self._find_own(context)
        if not name:
            raise ToolError("say which room to read; list_channels shows them")
        found = await _ask(self._readers[account].list_rooms())
        fitting = [each for each in found if each.id == name]
        fitting = fitting or [each for each in found if _is_called(each, name)]
        if len(fitting) > 1:
            ids = ", ".join(each.id for each in fitting)
            raise ToolError(f"several rooms are called {name!r}: name one by its id: {ids}")
        if fitting:
            own = account == here.channel and fitting[0].id == here.chat
            return _Place(account, fitting[0], own)
        return _Place(account, Room(name, name, "room"), own=False)

    def _find_own(self, context: Context) -> _Place:
        """The room of the conversation. Raises ToolError where it is in none that can be read."""
        here = context.address
        if here.channel not in self._list_accounts() or not here.chat:
            raise ToolError("this conversation is in no room that can be read")
        return _Place(here.channel, Room(here.chat, here.chat, "room"), own=True)

    def _split(self, wanted: str, here: Address) -> tuple[str, str]:
        """The account and the room in it that are meant. Raises ToolError."""
        accounts = self._list_accounts()
        account, slash, name = wanted.partition("/")
        if slash and account in accounts:
            return account, name
        if here.channel in accounts:
            return here.channel, wanted
        if len(accounts) == 1:
            return accounts[0], wanted
        known = ", ".join(f"{each}/…" for each in accounts) or "none is switched on"
        raise ToolError(f"say on which account the room is: {known}")

    def _list_accounts(self) -> list[str]:
        return [name for name in self._readers if self._is_on(name)]


def _sees_all(context: Context) -> bool:
    """Whether an owner asks, or what acts for one."""
    return "owner" in context.principal.roles


async def _ask(answer: Awaitable[T]) -> T:
    """What the platform answers. Raises ToolError with its words, which come from outside."""
    try:
        return await answer
    except ChannelError as error:
        hint = "; list_channels shows the rooms" if isinstance(error, SendRefused) else ""
        raise ToolError(f"{error}{hint}", _ERRORS) from error


def _make_label(context: Context, place: _Place, author: str) -> Label:
    """The label of what stands in a room. What not everybody could read who reads this conversation
    is for owners alone."""
    shared = place.own or (place.room.public and place.account == context.address.channel)
    room = f"{_clean(place.room.name)} ({_clean(place.room.id)})"
    source = f"{place.account}: {room}, {author}".rstrip(", ")
    return Label("untrusted", None if shared else _OWNERS, source)


def _make_list(
    shown: Sequence[tuple[_Place, str]], context: Context, failed: Sequence[str] = ()
) -> Done:
    """The rooms line by line; what not everybody may see who reads this stands in a part of its
    own."""
    by_label: dict[Label, list[str]] = {}
    for place, line in shown[:MAX_ROOMS]:
        readers = _make_label(context, place, "").readers
        label = Label("untrusted", readers, "names of rooms")
        by_label.setdefault(label, []).append(line)
    parts = [Text("".join(lines), label) for label, lines in by_label.items()]
    parts += [Text(f"[{each}]\n", _ERRORS) for each in failed]
    missing = len(shown) - MAX_ROOMS
    if missing > 0:
        parts.append(Text(f"[{missing} more rooms are not shown]\n", LOCAL))
    return Done(tuple(parts)) if parts else make_result("no rooms", call_label(context))


def _show_room(place: _Place, prefix: str) -> str:
    room = place.room
    facts = [room.kind]
    if place.own:
        facts.append("this conversation is in it")
    if not room.joined:
        facts.append("the bot is not in it")
    name = f"{_clean(room.name)}: " if room.name != room.id else ""
    return f"{name}{prefix}{room.id} ({', '.join(map(_clean, facts))})\n"


def _render(message: PastMessage, zone: ZoneInfo) -> str:
    """When, who and what, with further lines indented, so that none reads like a message of its
    own."""
    when = f"{datetime.fromtimestamp(message.at, zone):%Y-%m-%d %H:%M}"
    who = "you" if message.ours else f"{_clean(message.name)} ({_clean(message.sender)})"
    text = clean_text(message.text)
    if more := max(len(text) - MAX_MESSAGE_CHARS, 0):
        text = f"{text[:MAX_MESSAGE_CHARS]}… [{more:,} more characters]"
    thread = f" [thread {_clean(message.thread)}]" if message.thread else ""
    return "\n  ".join(f"{when}{thread} {who}: {text}".splitlines()) + "\n"


def _is_called(room: Room, name: str) -> bool:
    return room.name.lstrip("#").casefold() == name.lstrip("#").casefold()


def _clean(name: str) -> str:
    """A name from outside in one line, as a source or beside what is said."""
    return " ".join(clean_text(name).split())[:MAX_NAME_CHARS]
