"""Sends notifications to browsers: of questions, and of turns that ended while nobody was
waiting."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from datetime import tzinfo

import anyio
from msgspec.structs import replace

from ..assembly.host import Host
from ..languages.sentences import say_notice
from ..store.base import OpenAsk
from ..store.queries import find_session_row, inbox_seen_by
from ..types.errors import DeskhandError, PushFailed, PushGone, PushLater
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.people import People
from ..types.push import PushDevice
from ..users.notification_times import NotificationTimes
from ..users.queries import get_token, language_of, notification_times_of
from ..web.missed_turns import MissedTurn, iter_missed, read_outcome
from ..web.names import format_session_name
from . import queries
from .devices import StoredPushDevices
from .notices import INBOX_TAG, Notice, join_notices, make_notice

log = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0
GRACE_S = 5.0
"""Who looks at the page is the first to know."""
QUIET_LOOK_S = 15.0
AT_ONCE = 8
AGAIN_S = 30.0
MAX_AGAIN_S = 1800.0


class PushSender:
    """Follows the log for everybody who has a browser that gets notifications. What was answered or
    seen meanwhile is not told; quiet hours and digests are those of their person. Each thing is
    told once, and again only where this process ended before it was written down: then it takes the
    place of the first. `zone` is that of the times of a day."""

    def __init__(
        self, host: Host, people: People, devices: StoredPushDevices, zone: Callable[[], tzinfo]
    ) -> None:
        self._host = host
        self._people = people
        self._devices = devices
        self._zone = zone
        self._seen = -1
        self._next_look = 0.0
        self._looked_to: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                await self.look()
            except DeskhandError as error:
                log.warning("Notifications are sent later: %s", error)
                self._look_again(AGAIN_S)
            await anyio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Tell every browser what there is. Raises StoreUnavailable."""
        seq = self._host.store.last_seq()
        if seq == self._seen and self._host.clock.monotonic() < self._next_look:
            return
        self._seen = seq
        self._next_look = math.inf
        devices = await queries.list_devices(self._host.store)
        at_once = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as tasks:
            for device in devices:
                tasks.start_soon(self._try_to_tell, device, at_once)

    async def _try_to_tell(self, device: PushDevice, at_once: anyio.CapacityLimiter) -> None:
        """A push service that is slow or that fails holds up nobody else."""
        async with at_once:
            try:
                await self._tell(device)
            except DeskhandError as error:
                log.warning("Notifications to %s are sent later: %s", _describe(device), error)
                self._look_again(AGAIN_S)

    def _look_again(self, in_s: float) -> None:
        self._next_look = min(self._next_look, self._host.clock.monotonic() + in_s)

    async def _tell(self, device: PushDevice) -> None:
        person = await self._find_person(device)
        if person is None:
            await self._forget(device, "its login has ended")
            return
        wait_s = self._not_before.get(device.id, 0.0) - self._host.clock.monotonic()
        if wait_s > 0:
            self._look_again(wait_s)
            return
        asks = await self._list_asks(device, person)
        turns = await self._list_turns(device, person)
        if not (asks or turns):
            return
        outcomes = [await self._make_outcome(turn, person) for turn in turns]
        questions = [self._make_question(ask, person) for ask in asks]
        try:
            for notice in await self._localize(join_notices([*questions, *outcomes]), person):
                await self._devices.open_pusher().push(device, notice)
        except PushGone as error:
            await self._forget(device, str(error))
            return
        except PushLater as error:
            self._try_again(device, error)
            return
        except PushFailed as error:
            log.warning("A notification to %s was not sent: %s", _describe(device), error)
        self._failures.pop(device.id, None)
        asked_at = max([device.asked_at, *(ask.at for ask in asks)])
        ended_seq = max([device.ended_seq, *(turn.ended.seq for turn in turns)])
        await self._host.store.change([queries.mark_told(device.id, asked_at, ended_seq)])

    async def _find_person(self, device: PushDevice) -> Principal | None:
        """Whose browser it is; None where they have logged out, or may do nothing any more."""
        token = await get_token(self._host.store, device.token)
        now = self._host.clock.now()
        if token is None or (token.expires_at is not None and token.expires_at <= now):
            return None
        grant = self._people.make_grant(device.person, device.token, math.inf)
        return grant.principal if grant is not None else None

    async def _forget(self, device: PushDevice, why: str) -> None:
        log.info("Notifications to %s end: %s", _describe(device), why)
        for known in (self._failures, self._not_before, self._looked_to):
            known.pop(device.id, None)
        await self._host.store.change([queries.drop_device(device.id)])

    def _try_again(self, device: PushDevice, error: PushLater) -> None:
        failures = self._failures.get(device.id, 0)
        self._failures[device.id] = failures + 1
        wait_s = error.wait_s or min(AGAIN_S * 2**failures, MAX_AGAIN_S)
        log.info("Notifications to %s are sent later: %s", _describe(device), error)
        self._not_before[device.id] = self._host.clock.monotonic() + wait_s
        self._look_again(wait_s)

    # ------------------------------------------------------------------ what there is

    async def _list_asks(self, device: PushDevice, person: Principal) -> list[OpenAsk]:
        wanted = await notification_times_of(self._host.store, person.id)
        at_once = replace(wanted, digest=())  # a question expires
        return [
            ask
            for ask in await self._host.store.open_asks(person)
            if ask.at > device.asked_at and self._is_time(ask.at, at_once)
        ]

    async def _list_turns(self, device: PushDevice, person: Principal) -> list[MissedTurn]:
        """The oldest first. What was looked at once, and is nothing for this person, is not looked
        at again."""
        store = self._host.store
        wanted = await notification_times_of(store, person.id)
        seen = await inbox_seen_by(store, person.id)
        after = max(device.ended_seq, seen, self._looked_to.get(device.id, 0))
        now = self._host.clock.now()
        found = [turn async for turn in iter_missed(store, person, now, self._seen + 1, after)]
        if not found:
            self._looked_to[device.id] = self._seen
        return [turn for turn in reversed(found) if self._is_time(turn.ended.at, wanted)]

    def _is_time(self, at: float, wanted: NotificationTimes) -> bool:
        now = self._host.clock.now()
        if at <= now < at + GRACE_S:
            self._look_again(at + GRACE_S - now)
            return False
        if wanted.must_wait(at, now, self._zone()):
            self._look_again(QUIET_LOOK_S)
            return False
        return True

    # ------------------------------------------------------------------ what is said of it

    def _make_question(self, ask: OpenAsk, person: Principal) -> Notice:
        text = self._host.redact(ask.question.partition("\n")[0])
        name = self._name(ask.session, person)
        notice = make_notice(ask.title, text, f"ask-{ask.ask_id}", name, ask.at)
        return replace(notice, is_question=True)

    async def _make_outcome(self, turn: MissedTurn, person: Principal) -> Notice:
        session = turn.ended.session
        row = await find_session_row(self._host.store, session)
        text = self._host.redact(await read_outcome(self._host.store, turn))
        said = mark_text("Failed: {why_text}").format(why_text=text) if turn.has_failed else text
        title = row.title if row is not None else ""
        tag = f"turn-{turn.ended.seq}"
        notice = make_notice(title, said, tag, self._name(session, person), turn.ended.at)
        return replace(notice, has_failed=turn.has_failed)

    async def _localize(self, notices: Sequence[Notice], person: Principal) -> list[Notice]:
        """In the language of this person, what Deskhand says itself."""
        host = self._host
        language = await language_of(host.store, person.id) or host.settings().config.language
        return [
            replace(each, body=say_notice(each.body, language))
            if each.has_failed or each.tag == INBOX_TAG
            else each
            for each in notices
        ]

    def _name(self, session: str, person: Principal) -> str:
        return format_session_name(session, person, self._host.settings().agents[0])


def _describe(device: PushDevice) -> str:
    return f"{device.label} of {device.person}"
