"""Sends what is in the outbox: in order within a chat, side by side for different chats, and marked
when it may be sent twice."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from ..channels.base import Channel, Editing, Reacting
from ..config.clock import SteadyClock
from ..languages.sentences import say_notice
from ..store.base import Store
from ..types.clock import Clock
from ..types.commit import OutboxRow, OutboxState, Outgoing
from ..types.errors import ChannelError, SendRefused, StoreUnavailable
from ..types.events import EVENT_TYPES, Recorded
from ..types.marked_texts import mark_text
from .channel_switch import IsOn, always_on
from .queries import due_beside, last_outbox_id, limit_outbox_wait, was_refused_before
from .reader_language import Localize, leave_english
from .streamed_replies import Draft, Drafts

log = logging.getLogger(__name__)

POLL_S = 1.0
DRAIN_POLL_S = 0.02
BATCH = 200
TRIES = 12
SEND_S = 60.0
LATE_S = 3600.0
RESTART_MAX_WAIT_S = 10.0
"""After a restart nothing waits for longer, as the clock may have been set meanwhile."""
MAX_PAUSE_S = 3600.0
"""Nothing waits for longer, whatever a platform asks. A row that is due later shows that the clock
went back."""
DUPLICATE = mark_text("may be a duplicate")
LATE = mark_text("late")


def pause_s(attempts: int) -> float:
    """How long to wait after so many tries: 1, 2, 4, … at most 300 seconds."""
    return float(min(2 ** max(attempts - 1, 0), 300))


def mark_of(row: OutboxRow, channel: Channel, now: float, *, restarted: bool) -> str:
    """What the reader is told with the text: a send that a crash cut off may have arrived."""
    if row.state == "sending" and not channel.idempotent:
        return DUPLICATE
    return LATE if restarted and now - row.at > LATE_S else ""


Render = Callable[[OutboxRow], Awaitable[Outgoing]]
"""Makes the message of a row. The same row always gives the same message."""


async def render_unchanged(row: OutboxRow) -> Outgoing:
    return row.outgoing


class Preparation(Protocol):
    """Makes what takes long before it is sent, so that no chat waits for it."""

    def is_ready(self, row: OutboxRow) -> bool:
        """Whether this row can be sent now."""
        ...

    async def prepare(self, row: OutboxRow) -> None:
        """Make it so that it can. Raises StoreUnavailable."""
        ...

    def forget(self, row: OutboxRow) -> None:
        """The row was sent, or never will be."""
        ...


class HoldBack(Protocol):
    """Lets some messages wait for a better time."""

    async def sift(self, rows: Sequence[OutboxRow], /) -> list[OutboxRow]:
        """Those that may be sent now, as they are to be sent. Raises StoreUnavailable."""
        ...

    async def release(self) -> None:
        """Let go what has waited for long enough. Raises StoreUnavailable."""
        ...


class Outbox:
    """Sends the outbox of this process."""

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        clock: Clock,
        drafts: Drafts,
        render: Render = render_unchanged,
        is_on: IsOn = always_on,
    ) -> None:
        self._store = store
        self._all = channels
        self._is_on = is_on
        self._clock = clock
        self.render = render
        self._steady = SteadyClock(clock)
        self._drafts = drafts
        self._news = anyio.Event()
        self._busy: dict[str, int] = {}  # the first row that each chat is busy with
        self._old = 0
        self._running = False
        self.preparation: Preparation | None = None
        self.deferral: HoldBack | None = None
        self.localize: Localize = leave_english
        self._preparing: set[str] = set()

    @property
    def _channels(self) -> dict[str, Channel]:
        """Those that are on. What is owed on another one waits."""
        return {name: channel for name, channel in self._all.items() if self._is_on(name)}

    listens_to = EVENT_TYPES
    """Any event may bring something to send."""

    def on_event(self, recorded: Recorded) -> None:
        """Look for something new to send. Never waits."""
        self.wake()

    def wake(self) -> None:
        """There may be something new to send."""
        self._news.set()

    async def run(self) -> None:
        """Send for ever."""
        self._old = await last_outbox_id(self._store)
        latest = self._steady.now() + RESTART_MAX_WAIT_S
        await self._store.change([limit_outbox_wait(latest)])
        self._running = True
        try:
            await self._send_loop()
        finally:
            self._running = False

    async def drain(self) -> None:
        """Wait until everything that is due was sent or put off. A send that is cut off would have
        to be marked as a possible duplicate."""
        while self._running and (self._busy or await self._is_due()):
            self.wake()
            await anyio.sleep(DRAIN_POLL_S)

    async def _is_due(self) -> bool:
        try:
            due = await self._store.outbox_due(self._steady.now(), BATCH, self._channels)
            return any(map(self._is_ready, due))
        except StoreUnavailable:
            return False

    async def _send_loop(self) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                self._news = anyio.Event()
                try:
                    if self.deferral is not None:
                        await self.deferral.release()
                    due = await self._find_due(self._channels, tasks)
                except StoreUnavailable as error:
                    log.warning("Sending paused: the store is not available (%s).", error)
                    due = {}
                for chat, rows in due.items():
                    self._busy[chat] = rows[0].id
                    tasks.start_soon(self._send_chat, chat, rows)
                with anyio.move_on_after(POLL_S):
                    await self._news.wait()

    async def _find_due(
        self, channels: Mapping[str, Channel], tasks: TaskGroup
    ) -> dict[str, list[OutboxRow]]:
        """What is due in the chats that are not busy. Where busy ones owe a whole batch, nobody
        else waits for them. What has to be prepared first is left for later."""
        now = self._steady.now()
        due = await self._store.outbox_due(now, BATCH, channels)
        is_all = len(due) < BATCH
        due = await self._sift(due)
        found = self._leave_busy(_by_chat(due, channels))
        if not is_all and not found:
            due = await due_beside(self._store, now, BATCH, channels, self._busy.values())
            is_all = len(due) < BATCH
            due = await self._sift(due)
            found = self._leave_busy(_by_chat(due, channels))
        if not is_all and found:
            self._news.set()  # there may be more
        for row in due:
            if not self._is_ready(row) and row.outgoing.key not in self._preparing:
                self._preparing.add(row.outgoing.key)
                tasks.start_soon(self._prepare, row)
        ready = {chat: list(filter(self._is_ready, rows)) for chat, rows in found.items()}
        return {chat: rows for chat, rows in ready.items() if rows}

    async def _sift(self, due: list[OutboxRow]) -> list[OutboxRow]:
        """Those that nobody wants to be told later."""
        if self.deferral is None or all(row.outgoing.unasked is None for row in due):
            return due
        return await self.deferral.sift(due)

    def _is_ready(self, row: OutboxRow) -> bool:
        return self.preparation is None or self.preparation.is_ready(row)

    async def _prepare(self, row: OutboxRow) -> None:
        try:
            if self.preparation is not None:
                await self.preparation.prepare(row)
        except StoreUnavailable as error:
            log.warning("Sending paused: the store is not available (%s).", error)
        except Exception as error:
            log.exception("An answer could not be prepared.")
            await self._store.outbox_failed(row.outgoing.key, f"{type(error).__name__}: {error}")
        finally:
            self._preparing.discard(row.outgoing.key)
            self.wake()

    def _leave_busy(self, chats: Mapping[str, list[OutboxRow]]) -> dict[str, list[OutboxRow]]:
        return {chat: rows for chat, rows in chats.items() if chat not in self._busy}

    async def _send_chat(self, chat: str, rows: list[OutboxRow]) -> None:
        """Send the rows of one chat in order. A row that must wait holds up those behind it."""
        try:
            for row in rows:
                if not await self._send(row):
                    break
        except StoreUnavailable as error:
            log.warning("Sending paused: the store is not available (%s).", error)
        finally:
            self._busy.pop(chat, None)
            if len(rows) > 1:
                self._news.set()

    async def _send(self, row: OutboxRow) -> bool:
        channel = self._all[row.outgoing.address.channel]
        key = row.outgoing.key
        mark = mark_of(row, channel, self._clock.now(), restarted=row.id <= self._old)
        is_answer = row.outgoing.aloud is None and not row.outgoing.reaction
        draft = await self._drafts.claim(row) if is_answer else None
        if draft is not None and not draft.platform_id and not channel.idempotent:
            mark = DUPLICATE  # its beginning may have been posted
        try:
            if row.outgoing.aloud is not None and await was_refused_before(self._store, row):
                raise SendRefused("the written answer was not taken")
            outgoing = await self.localize(await self.render(row), always=bool(mark))
            await self._store.outbox_sending(key, mark)
            with anyio.fail_after(SEND_S):
                platform_id = await _deliver(channel, outgoing, mark, draft)
        except SendRefused as error:
            self._settle(row)
            await self._store.outbox_failed(key, str(error))
            log.error("%s refused an answer: %s", channel.name, error)
            if draft is not None:
                await self._drafts.drop(draft)
            return True
        except ChannelError as error:
            await self._retry_later(row, error)
            return False
        except TimeoutError:
            await self._retry_later(row, ChannelError("the platform did not answer in time"))
            return False
        except Exception as error:
            log.exception("%s failed while sending.", channel.name)
            await self._store.outbox_sending(key, mark)  # it may have failed before that
            await self._retry_later(row, ChannelError(f"{type(error).__name__}: {error}"))
            return False
        self._settle(row)
        if draft is None:
            await self._store.outbox_sent(key, platform_id)
        else:
            await self._drafts.complete(row, draft, platform_id)
        return True

    def _settle(self, row: OutboxRow) -> None:
        if self.preparation is not None:
            self.preparation.forget(row)

    async def _retry_later(self, row: OutboxRow, error: ChannelError) -> None:
        """Try again later. What may have arrived stays `sending`, so that the next try is
        marked."""
        if row.attempts + 1 >= TRIES:
            await self._store.outbox_failed(row.outgoing.key, str(error))
            return
        pause = min(
            error.retry_after_s if error.retry_after_s is not None else pause_s(row.attempts + 1),
            MAX_PAUSE_S,
        )
        state: OutboxState = "pending" if error.unsent and row.state == "pending" else "sending"
        await self._store.outbox_retry(
            row.outgoing.key, state, self._steady.now() + pause, str(error)
        )


async def _deliver(channel: Channel, outgoing: Outgoing, mark: str, draft: Draft | None) -> str:
    """Send it, or write it over its draft. Returns the platform's id."""
    if mark:
        mark = say_notice(mark, outgoing.language)
    if outgoing.reaction:
        if not isinstance(channel, Reacting):
            raise SendRefused(f"nobody can react on {channel.name}")
        await channel.react(outgoing.address, outgoing.reply_to, outgoing.reaction)
        return ""
    if draft is not None and draft.platform_id and isinstance(channel, Editing):
        return await channel.edit(draft.platform_id, outgoing, mark)
    return await channel.send(outgoing, mark)


def _by_chat(rows: list[OutboxRow], channels: Mapping[str, Channel]) -> dict[str, list[OutboxRow]]:
    chats: dict[str, list[OutboxRow]] = {}
    for row in rows:
        address = row.outgoing.address
        if address.channel in channels:
            key = f"{address.channel}\0{address.account}\0{address.chat}\0{address.thread}"
            chats.setdefault(key, []).append(row)
    return chats
