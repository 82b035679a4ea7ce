"""Shows an answer while it is written, in a message that then becomes the answer.

Such a message is a draft: an outbox row in state `drafting`, written before the message is posted and given the
platform's id after. The answer is written over it, and both rows change in one transaction. So whenever the process
dies, the next one finds the draft: it goes on in it, completes it, or says that it was broken off. Where nobody knows
whether a draft was posted, the answer comes with a mark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..channels.base import Channel, Editing
from ..store.base import Store
from ..types.clock import Clock
from ..types.commit import Change, OutboxRow, Outgoing
from ..types.door import Progress
from ..types.errors import ChannelError, SendRefused
from ..types.events import CommandRun, ModelReplied, Recorded, TurnEnded
from ..types.identity import Address
from ..types.labels import LOCAL
from ..types.messages import Text

log = logging.getLogger(__name__)

FIRST_S = 0.8
"""What is written sooner is not shown before it is done."""
BUSY_S = 1.0
SEND_S = 60.0
MEND_S = 30.0
PLACES = 1_000
SHOWN_CHARS = 2000
"""So much is shown of what is being written: it fits into one message anywhere."""
GOES_ON, BROKEN_OFF = " …", "(This answer was broken off.)"

Place = Callable[[str], tuple[Address, str] | None]
"""Where a session's turn is answered, and to which message; None while no turn is open."""
_decode = msgspec.json.Decoder(Outgoing).decode
_encode = msgspec.json.Encoder().encode


class Draft(msgspec.Struct, frozen=True):
    """A draft as the store has it. Without a `platform_id` nobody knows whether it was posted."""

    id: int
    platform_id: str


class Live:
    """A reply that is being written: event `n` of its session, so far."""

    def __init__(self, session: str, n: int, address: Address, reply_to: str) -> None:
        self.session, self.n, self.address, self.reply_to = session, n, address, reply_to
        self.over, self.ended = anyio.Event(), anyio.Event()
        self._pieces: list[str] = []

    def add(self, item: Progress) -> None:
        self.n = item.n
        if item.kind == "reset":
            self._pieces.clear()
        else:
            self._pieces.append(item.text)

    @property
    def text(self) -> str:
        """What can be shown of it; '' while there is nothing."""
        text = "".join(self._pieces)[:SHOWN_CHARS].strip()
        return text + GOES_ON if text else ""


class Drafts:
    """All drafts of this process. `channels` are those that can edit."""

    def __init__(self, store: Store, channels: Mapping[str, Channel], clock: Clock, place: Place) -> None:
        self._store, self._clock, self._place = store, clock, place
        self.channels = {name: each for name, each in channels.items() if isinstance(each, Editing)}
        self._sending = channels
        self.first_s, self.mend_s = FIRST_S, MEND_S
        self._live: dict[str, list[Live]] = {}
        self._free_at: dict[tuple[str, str, str], float] = {}
        self._claiming = anyio.Lock()
        self._tasks: TaskGroup | None = None

    def see(self, session: str, item: Recorded | Progress) -> None:
        """Hear what happens in a session. Never waits."""
        lives = self._live.get(session)
        if isinstance(item, Recorded):
            if lives and _ends(item):
                lives[-1].over.set()
        elif item.kind in ("text", "reset"):
            if lives and not lives[-1].over.is_set():
                lives[-1].add(item)
            elif item.kind == "text":
                self._begin(session, item)

    def _begin(self, session: str, item: Progress) -> None:
        place = self._place(session)
        channel = self.channels.get(place[0].channel) if place is not None else None
        if self._tasks is None or place is None or channel is None or not channel.edits_at(place[0]):
            return
        live = Live(session, item.n, *place)
        live.add(item)
        self._live.setdefault(session, []).append(live)
        self._tasks.start_soon(self._show, live, channel)

    async def run(self) -> None:
        """Show what there is to show, for ever; and now and then see to what was left behind."""
        try:
            async with anyio.create_task_group() as self._tasks:
                while True:
                    await self._mend()
                    await anyio.sleep(self.mend_s)
        finally:
            self._tasks = None
            self._live.clear()

    # ------------------------------------------------------------------ while it is written

    async def _show(self, live: Live, channel: Editing) -> None:
        key = f"{live.session}#draft.{live.n}"
        try:
            if not await _over(live, self.first_s):
                await self._keep_showing(live, channel, key)
        except (ChannelError, TimeoutError) as error:  # a preview is dropped; the answer comes in any case
            log.info("an answer at %s is not shown while it is written: %s", live.address.channel, error)
        finally:
            live.ended.set()
            lives = self._live.get(live.session, [])
            if live in lives:
                lives.remove(live)
            if not lives:
                self._live.pop(live.session, None)

    async def _keep_showing(self, live: Live, channel: Editing, key: str) -> None:
        """Post it and change it until it is over. Raises ChannelError, TimeoutError."""
        platform_id, shown = "", ""
        pause_s = channel.edits_at(live.address)
        while not live.over.is_set():
            text = live.text
            place = (live.address.channel, live.address.account, live.address.chat)
            wait_s = self._free_at.get(place, 0.0) - self._clock.monotonic()
            if not text or text == shown or wait_s > 0:
                await _over(live, max(wait_s, 0.05))
                continue
            now = self._clock.monotonic()
            if len(self._free_at) >= PLACES:
                self._free_at = {each: at for each, at in self._free_at.items() if at > now}
            self._free_at[place] = now + pause_s
            outgoing = Outgoing(key, live.address, (Text(text, LOCAL),), live.reply_to)
            if not platform_id:
                platform_id, posted = await self._post(live, outgoing)
                if not platform_id:
                    await _over(live, BUSY_S)
                    continue
                shown = text if posted else ""
            if text != shown:
                with anyio.fail_after(SEND_S):
                    await channel.edit(platform_id, outgoing, "")
                shown = text

    async def _post(self, live: Live, outgoing: Outgoing) -> tuple[str, bool]:
        """The id of this session's draft, and whether it was posted just now; '' while others come first. Raises
        ChannelError where it cannot be posted, or nobody knows whether it was."""
        session, address = live.session, live.address
        async with self._claiming:
            body = _encode(outgoing)
            if (await self._store.rows("draft_waits", (session, body)))[0][0]:
                return "", False
            draft = await self._find(session, address)
            if draft is None:
                args = (outgoing.key, session, body, self._clock.now(), address.channel)
                await self._store.change((Change("draft_open", args),))
                draft = await self._find(session, address)
                if draft is None:
                    return "", False
            elif not draft.platform_id:
                raise ChannelError("the last time it was not known whether it was posted")
        if draft.platform_id:
            return draft.platform_id, False
        try:
            with anyio.fail_after(SEND_S):
                platform_id = await self._sending[address.channel].send(outgoing, "")
        except ChannelError as error:
            if error.unsent or isinstance(error, SendRefused):
                await self._store.change((Change("draft_drop", (draft.id,)),))
            raise
        await self._store.change((Change("draft_posted", (platform_id, draft.id)),))
        return platform_id, True

    async def _find(self, session: str, address: Address, before: int = 2**62) -> Draft | None:
        for number, platform_id, body in await self._store.rows("draft_before", (session, before)):
            if _decode(body).address == address:
                return Draft(number, platform_id)
        return None

    # ------------------------------------------------------------------ when it is there

    async def before(self, row: OutboxRow) -> Draft | None:
        """The draft that this row completes. Nobody touches it from now on but the caller."""
        n = event_of(row.outgoing.key)
        if n is None or row.outgoing.address.channel not in self.channels:
            return None
        for live in [each for each in self._live.get(row.session, ()) if each.n <= n]:
            live.over.set()
            await live.ended.wait()
        draft = await self._find(row.session, row.outgoing.address, row.id)
        if draft is None:
            return None
        events = await self._store.events(row.session, n - 1)
        return None if events and isinstance(events[0].event, CommandRun) else draft

    async def complete(self, row: OutboxRow, draft: Draft, platform_id: str) -> None:
        """The row was sent, in the draft's place or beside it: both are settled at once."""
        sent = Change("outbox_sent", (platform_id, row.outgoing.key))
        await self._store.change((sent, Change("draft_close", (draft.id,))))

    async def drop(self, draft: Draft) -> None:
        """Nothing will be written over it."""
        await self._store.change((Change("draft_close", (draft.id,)),))

    async def _mend(self) -> None:
        """Say of each draft that nothing will complete that it was broken off."""
        async with self._claiming:
            for number, platform_id, body in await self._store.rows("drafts_left", ()):
                outgoing = _decode(body)
                channel = self.channels.get(outgoing.address.channel)
                if channel is None:
                    continue
                try:
                    if platform_id:
                        over = msgspec.structs.replace(outgoing, parts=(Text(BROKEN_OFF, LOCAL),))
                        with anyio.fail_after(SEND_S):
                            await channel.edit(platform_id, over, "")
                except SendRefused as error:
                    log.info("a draft at %s is gone: %s", outgoing.address.channel, error)
                except (ChannelError, TimeoutError) as error:
                    log.warning("a draft at %s is left for later: %s", outgoing.address.channel, error)
                    continue
                await self._store.change((Change("draft_close", (number,)),))


def event_of(key: str) -> int | None:
    """The event after which this was said; None for what a tool sends, which has another kind of key."""
    n, _, number = key.rpartition("#")[2].partition(".")
    return int(n) if n.isdecimal() and number.isdecimal() else None


def _ends(recorded: Recorded) -> bool:
    """Whether nothing more is written to that answer. What was cut off at its length goes on in the next reply."""
    event = recorded.event
    if isinstance(event, ModelReplied):
        return event.finish != "length" or bool(event.message.calls)
    return isinstance(event, TurnEnded)


async def _over(live: Live, seconds: float) -> bool:
    """Wait so long, or until it is over. Returns whether it is."""
    with anyio.move_on_after(seconds):
        await live.over.wait()
    return live.over.is_set()
