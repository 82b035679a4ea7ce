"""Shows progress while tools run, and an answer while it is written, in a message that becomes the
answer.

Such a message is a draft: an outbox row in state `drafting`. The row is written before the message
is posted, and gets the platform's id afterwards. The answer is written over the message, and both
rows change in one transaction. So after a crash the next process finds the draft: it goes on,
completes it, or says that it was broken off. When nobody knows whether a draft was posted, the
answer is marked as a possible duplicate.

Progress has a draft of its own, sent without a notification. It is removed when the answer or the
next question begins: that is a new message, with a notification.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..channels.base import Channel, Editing, Removing
from ..store.base import Store
from ..store.queries import mark_sent
from ..types.clock import Clock
from ..types.commit import Actions, OutboxRow, Outgoing
from ..types.door import Progress
from ..types.errors import ChannelError, SendRefused
from ..types.events import (
    ApprovalAnswered,
    CommandRun,
    ModelReplied,
    Recorded,
    Transcribed,
    TurnEnded,
)
from ..types.identity import Address
from ..types.labels import LOCAL
from ..types.marked_texts import mark_text
from ..types.messages import Text
from ..types.turn import ReplyTarget
from . import queries
from .channel_switch import IsOn, always_on
from .progress_text import render_progress
from .reader_language import Localize, leave_english

log = logging.getLogger(__name__)

FIRST_S = 0.8
"""An answer that is ready sooner is not shown while it is written."""
WORK_S = 2.0
"""Progress of tools is shown when they take longer."""
BUSY_S = 1.0
SEND_S = 60.0
ORPHAN_CHECK_S = 30.0
MAX_PLACES = 1_000
SHOWN_CHARS = 2000
"""So much of an unfinished answer is shown: it fits into one message on every platform."""
GOES_ON = " …"
BROKEN_OFF = mark_text("(This answer was broken off.)")

_WORK = "work"
"""How the last part of the key of a progress draft begins."""


FindPlace = Callable[[str], ReplyTarget | None]
"""Gives where the open turn of a session is answered, or None without one."""


class Draft(msgspec.Struct, frozen=True):
    """A draft in the store. Without a `platform_id` nobody knows whether it was posted. `of_work`:
    it shows progress of tools."""

    id: int
    platform_id: str
    of_work: bool


class LiveDraft:
    """A reply that is being written, which becomes event `n` of its session. `of_work`: the
    progress of tools before that event."""

    def __init__(self, session: str, n: int, target: ReplyTarget, *, of_work: bool = False) -> None:
        self.session = session
        self.n = n
        self.address = target.address
        self.reply_to = target.reply_to
        self.actions = Actions(target.turn, ("stop",)) if of_work else None
        self.of_work = of_work
        self.over = anyio.Event()
        self.ended = anyio.Event()
        self._pieces: list[str] = []

    @property
    def key(self) -> str:
        return f"{self.session}#{_WORK if self.of_work else 'draft'}.{self.n}"

    def set_progress(self, n: int, doing: str) -> None:
        """Show this progress instead, before event n."""
        self.n = n
        self._pieces = [doing]

    def add(self, item: Progress) -> None:
        self.n = item.n
        if item.kind == "reset":
            self._pieces.clear()
        else:
            self._pieces.append(item.text)

    @property
    def text(self) -> str:
        """The text to show now, or ''."""
        text = "".join(self._pieces)[:SHOWN_CHARS].strip()
        return text + GOES_ON if text else ""


class Drafts:
    """The drafts of this process, on the channels that can edit messages."""

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        clock: Clock,
        place: FindPlace,
        is_on: IsOn = always_on,
    ) -> None:
        self._store = store
        self._is_on = is_on
        self._clock = clock
        self._place = place
        self.channels = {name: each for name, each in channels.items() if isinstance(each, Editing)}
        self._sending = channels
        self.first_s = FIRST_S
        self.work_s = WORK_S
        self.orphan_check_s = ORPHAN_CHECK_S
        self.localize: Localize = leave_english
        self._live: dict[str, list[LiveDraft]] = {}
        self._doing: dict[str, str] = {}
        self._stays: set[int] = set()
        self._free_at: dict[tuple[str, str, str], float] = {}
        self._claiming = anyio.Lock()
        self._tasks: TaskGroup | None = None

    def on_item(self, session: str, item: Recorded | Progress) -> None:
        """Follow what happens in a session. Never waits."""
        live = self._current_draft(session)
        if isinstance(item, Recorded):
            doing = self._progress_after(item)
            if live is not None and doing and live.of_work and not _has_text(item):
                live.set_progress(item.n + 1, doing)
                return
            if live is not None and _is_final(item):
                live.over.set()
            if doing and (live := self._start_draft(session, item.n + 1, of_work=True)) is not None:
                live.set_progress(item.n + 1, doing)
        elif item.kind == "step":
            if live is not None and live.of_work and session in self._doing:
                live.set_progress(live.n, f"{self._doing[session]}\n{item.text}")
        elif item.kind in ("text", "reset"):
            if live is not None and live.of_work and item.kind == "text":
                live.over.set()
                live = None
            if live is None and item.kind == "text":
                live = self._start_draft(session, item.n)
            if live is not None and not live.of_work:
                live.add(item)

    def _current_draft(self, session: str) -> LiveDraft | None:
        """What is being shown in this session now."""
        lives = self._live.get(session)
        return lives[-1] if lives and not lives[-1].over.is_set() else None

    def _progress_after(self, item: Recorded) -> str:
        """What tools do after this event, in a line; '' for nothing."""
        session = item.session
        event = item.event
        if isinstance(event, ModelReplied) and event.message.calls:
            self._doing[session] = render_progress(event.message.calls)
            if len(self._doing) > MAX_PLACES:
                del self._doing[next(iter(self._doing))]
            return self._doing[session]
        if isinstance(event, ApprovalAnswered) and event.choice in ("once", "always"):
            return self._doing.get(session, "")
        if isinstance(event, ModelReplied | TurnEnded):
            self._doing.pop(session, None)
        return ""

    def _start_draft(self, session: str, n: int, *, of_work: bool = False) -> LiveDraft | None:
        """Begin to show a reply or progress. None when the place does not support that."""
        place = self._place(session)
        is_on = place is not None and self._is_on(place.address.channel)
        channel = self.channels.get(place.address.channel) if place is not None and is_on else None
        if (
            self._tasks is None
            or place is None
            or channel is None
            or not channel.edit_interval_s(place.address)
        ):
            return None
        live = LiveDraft(session, n, place, of_work=of_work)
        before = self._live.setdefault(session, [])
        self._tasks.start_soon(self._show, live, channel, tuple(before))
        before.append(live)
        return live

    async def run(self) -> None:
        """Show drafts until cancelled, and close now and then what was left behind."""
        try:
            async with anyio.create_task_group() as self._tasks:
                while True:
                    await self._close_orphans()
                    await anyio.sleep(self.orphan_check_s)
        finally:
            self._tasks = None
            self._live.clear()

    # ------------------------------------------------------------------ while it is written

    async def _show(self, live: LiveDraft, channel: Editing, before: Sequence[LiveDraft]) -> None:
        try:
            if not await _wait_until_over(live, self.work_s if live.of_work else self.first_s):
                for each in before:
                    await each.ended.wait()
                if not live.of_work:
                    await self._remove_progress(live.session, live.address)
                await self._update_until_over(live, channel, live.key)
        except (ChannelError, TimeoutError) as error:
            # Only the preview is dropped: the answer is sent in any case.
            log.info(
                "Could not show an answer at %s while it is written: %s",
                live.address.channel,
                error,
            )
        finally:
            live.ended.set()
            lives = self._live.get(live.session, [])
            if live in lives:
                lives.remove(live)
            if not lives:
                self._live.pop(live.session, None)

    async def _update_until_over(self, live: LiveDraft, channel: Editing, key: str) -> None:
        """Post it and change it until it is over. Raises ChannelError, TimeoutError."""
        draft: Draft | None = None
        shown = ""
        pause_s = channel.edit_interval_s(live.address)
        while not live.over.is_set():
            text = live.text
            place = (live.address.channel, live.address.account, live.address.chat)
            wait_s = self._free_at.get(place, 0.0) - self._clock.monotonic()
            is_on = self._is_on(live.address.channel)
            if not text or text == shown or wait_s > 0 or not is_on:
                await _wait_until_over(live, max(wait_s, 0.05))
                continue
            now = self._clock.monotonic()
            if len(self._free_at) >= MAX_PLACES:
                self._free_at = {each: at for each, at in self._free_at.items() if at > now}
            self._free_at[place] = now + pause_s
            # Only the whole answer is checked, so until then no link leads anywhere.
            parts: tuple[Text, ...] = (Text(text),)
            if live.of_work:
                parts = (Text(text.removesuffix(GOES_ON), LOCAL), Text(GOES_ON))
            outgoing = Outgoing(
                key,
                live.address,
                parts,
                live.reply_to,
                silent=live.of_work,
                links=(),
                actions=live.actions,
            )
            outgoing = await self.localize(outgoing)
            if draft is None:
                draft, posted = await self._post(live, outgoing)
                if draft is None:
                    await _wait_until_over(live, BUSY_S)
                    continue
                shown = text if posted else ""
            if text != shown:
                with anyio.fail_after(SEND_S):
                    platform_id = await channel.edit(draft.platform_id, outgoing, "")
                shown = text
                if platform_id != draft.platform_id:  # somebody had deleted it
                    draft = replace(draft, platform_id=platform_id)
                    await self._store.change((queries.mark_draft_posted(draft.id, platform_id),))

    async def _post(self, live: LiveDraft, outgoing: Outgoing) -> tuple[Draft | None, bool]:
        """The draft of this session, and whether it was posted just now. None while something else
        is to be sent first. Raises ChannelError when it cannot be posted, or when nobody knows
        whether it was."""
        session = live.session
        address = live.address
        async with self._claiming:
            if await queries.is_outbox_busy(self._store, session, outgoing):
                return None, False
            draft = await self._find_draft(session, address)
            if draft is None:
                opened = queries.open_draft(session, outgoing, self._clock.now())
                await self._store.change((opened,))
                draft = await self._find_draft(session, address)
                if draft is None:
                    return None, False
            elif not draft.platform_id:
                raise ChannelError("the last time it was not known whether it was posted")
        if draft.platform_id:
            return draft, False
        try:
            with anyio.fail_after(SEND_S):
                platform_id = await self._sending[address.channel].send(outgoing, "")
        except ChannelError as error:
            if error.unsent or isinstance(error, SendRefused):
                await self._store.change((queries.drop_draft(draft.id),))
            raise
        await self._store.change((queries.mark_draft_posted(draft.id, platform_id),))
        return replace(draft, platform_id=platform_id), True

    async def _find_draft(
        self, session: str, address: Address, before: int = 2**62
    ) -> Draft | None:
        found = await queries.find_draft(self._store, session, before)
        if found is None or found.outgoing.address != address:
            return None
        of_work = _is_progress_key(found.outgoing.key) and found.id not in self._stays
        return Draft(found.id, found.platform_id, of_work)

    async def _remove_progress(self, session: str, address: Address, before: int = 2**62) -> None:
        """Remove the progress message at this place. On a platform that cannot, it becomes an
        ordinary draft. After an error of the connection it is closed later."""
        draft = await self._find_draft(session, address, before)
        if draft is None or not draft.of_work:
            return
        try:
            gone = await self._remove(draft.platform_id, address)
        except (ChannelError, TimeoutError) as error:
            log.info("Could not remove the progress message at %s: %s", address.channel, error)
            return
        if gone:
            await self.drop(draft)
        else:
            self._stays.add(draft.id)

    async def _remove(self, platform_id: str, address: Address) -> bool:
        """Remove a message. Returns whether it is gone. Raises ChannelError, TimeoutError."""
        channel = self._sending[address.channel]
        if not platform_id:  # nobody knows whether it was posted
            return True
        if not isinstance(channel, Removing):
            return False
        try:
            with anyio.fail_after(SEND_S):
                await channel.remove(platform_id, address)
        except SendRefused:
            return False
        return True

    # ------------------------------------------------------------------ when it is there

    async def claim(self, row: OutboxRow) -> Draft | None:
        """The draft that this row completes, or None. From now on only the caller changes it."""
        n = parse_event_number(row.outgoing.key)
        if n is None or row.outgoing.address.channel not in self.channels:
            return None
        session = row.session
        address = row.outgoing.address
        lives = [each for each in self._live.get(session, ()) if each.n <= n]
        if not lives and await self._find_draft(session, address, row.id) is None:
            return None
        events = await self._store.events(session, n - 1)
        if events and isinstance(events[0].event, CommandRun | Transcribed):
            return None
        for live in lives:
            live.over.set()
            await live.ended.wait()
        await self._remove_progress(session, address, row.id)
        draft = await self._find_draft(session, address, row.id)
        return None if draft is None or draft.of_work else draft

    async def complete(self, row: OutboxRow, draft: Draft, platform_id: str) -> None:
        """The row was sent, over the draft or as a new message: settle both at once."""
        self._stays.discard(draft.id)
        sent = mark_sent(row.outgoing.key, platform_id)
        await self._store.change((sent, queries.close_draft(draft.id)))

    async def drop(self, draft: Draft) -> None:
        """Close a draft that no answer will be written over."""
        self._stays.discard(draft.id)
        await self._store.change((queries.close_draft(draft.id),))

    async def _close_orphans(self) -> None:
        """Mark the drafts that nothing will complete as broken off."""
        async with self._claiming:
            for draft in await queries.orphaned_drafts(self._store):
                outgoing = draft.outgoing
                platform_id = draft.platform_id
                channel = self.channels.get(outgoing.address.channel)
                if channel is None:
                    continue
                try:
                    if _is_progress_key(outgoing.key) and await self._remove(
                        platform_id, outgoing.address
                    ):
                        platform_id = ""
                    if platform_id:
                        words = (Text(BROKEN_OFF, LOCAL),)
                        over = replace(outgoing, parts=words, actions=None)
                        over = await self.localize(over)
                        with anyio.fail_after(SEND_S):
                            await channel.edit(platform_id, over, "")
                except SendRefused as error:
                    log.info(
                        "Could not close a draft at %s, as it is gone: %s",
                        outgoing.address.channel,
                        error,
                    )
                except (ChannelError, TimeoutError) as error:
                    log.warning(
                        "Could not close a draft at %s; trying again later: %s",
                        outgoing.address.channel,
                        error,
                    )
                    continue
                await self._store.change((queries.close_draft(draft.id),))


def _is_progress_key(key: str) -> bool:
    return key.rpartition("#")[2].startswith(f"{_WORK}.")


def parse_event_number(key: str) -> int | None:
    """The number of the event in the key of an answer. None for what a tool sends, whose key is
    different."""
    n, _, number = key.rpartition("#")[2].partition(".")
    return int(n) if n.isdecimal() and number.isdecimal() else None


def _has_text(recorded: Recorded) -> bool:
    """Whether the model says something beside its calls: that is a message of its own."""
    event = recorded.event
    return isinstance(event, ModelReplied) and bool(event.message.text.strip())


def _is_final(recorded: Recorded) -> bool:
    """Whether nothing more is written to that answer. What was cut off at its length goes on in the
    next reply."""
    event = recorded.event
    if isinstance(event, ModelReplied):
        return event.finish != "length" or bool(event.message.calls)
    return isinstance(event, TurnEnded)


async def _wait_until_over(live: LiveDraft, seconds: float) -> bool:
    """Wait so long, or until it is over. Returns whether it is."""
    with anyio.move_on_after(seconds):
        await live.over.wait()
    return live.over.is_set()
