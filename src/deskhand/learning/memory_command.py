"""What `/memory` says and does: a person sees what is remembered of them, why, and takes it
back."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import anyio

from ..agent.state import State
from ..assembly.host import Host
from ..memory.facts import (
    Fact,
    Viewer,
    close_fact,
    make_unrestricted_viewer,
    promote_fact,
    undo_last_change,
)
from ..memory.recall import Memory
from ..memory.rendering import explain_fact, read_source_text
from ..policy.links import defang_text
from ..types.commit import Change
from ..types.errors import StoreUnavailable
from ..types.events import CommandRun, Recorded
from ..types.identity import Principal, Waiting, is_read_by_others, list_reader_names, only_person

log = logging.getLogger(__name__)

NAME = "memory"
MARK = "asked"
MAX_LISTED = 30
LINE_CHARS = 200
CATCH_UP = 200
PAUSE_S = 5.0
USAGE = "Write /memory why, undo, keep or forget with its number."
NOT_HERE = (
    "Others read here too, so what is your own is not shown: write /memory where you are alone "
    "with me."
)
_PROMISED = re.compile(r"#(\d+) (is forgotten|is taken back|holds again|is kept)\b")


class MemoryCommand:
    """One for each App. What the answer to a command promises is done at once afterwards; the log
    holds the promise, so that it is also kept by a process that comes after a crash, and once."""

    def __init__(self, ground: Host, memory: Memory) -> None:
        self._ground = ground
        self._memory = memory
        self._promised = deque[Recorded]()
        self._news = anyio.Event()

    # What is said

    def answer(self, state: State, row: Waiting, args: str) -> str:
        """What the person reads. Changes nothing."""
        if not self._ground.settings().config.memory.enabled:
            return "Memory is switched off: memory.enabled in the configuration."
        viewer = _make_viewer(state, row)
        who = row.principal
        word, _, rest = args.strip().partition(" ")
        number = rest.strip().removeprefix("#")
        if not word:
            return self._render_list(viewer, who)
        if word == "undo" and not number:
            number = str(self._last_changed(viewer))
        if word not in ("why", "undo", "keep", "forget") or not (
            number.isdecimal() and len(number) < 16
        ):
            return f"{USAGE} /memory alone lists what there is."
        fact = self._memory.get_sync(int(number), viewer)
        if fact is None or not _may_see(fact, viewer, who):
            missing = (
                f"There is no memory #{number} here."
                if int(number)
                else "There is nothing to take back."
            )
            return f"{missing} {'/memory lists what there is.' if viewer.private else NOT_HERE}"
        if word == "why":
            return self._explain(fact, state, who)
        if fact.scope != "user" and "owner" not in who.roles:
            return f"#{number} is told to others too, so that is for an owner to decide."
        return _render_promise(word, fact)

    def _render_list(self, viewer: Viewer, who: Principal) -> str:
        found = self._memory.list_facts_sync(viewer, limit=1_000)
        seen = [fact for fact in found if _may_see(fact, viewer, who)]
        own, others = (
            [fact for fact in seen if (fact.scope == "user") is mine] for mine in (True, False)
        )
        lines = [NOT_HERE] if not viewer.private else []
        for title, facts in (
            ("What I remember of you, and tell nobody else:", own),
            ("What I remember and tell everybody here:", others),
        ):
            lines += [title, *(_render_line(fact) for fact in facts[:MAX_LISTED])] if facts else []
            lines += [f"… and {len(facts) - MAX_LISTED} more: ask me about something."] * (
                len(facts) > MAX_LISTED
            )
        if not seen:
            return "\n".join(
                [*lines, "I remember nothing here yet. Tell me to remember something."]
            )
        return "\n".join([*lines, USAGE])

    def _explain(self, fact: Fact, state: State, who: Principal) -> str:
        zone = ZoneInfo(self._ground.settings().config.timezone)
        theirs = fact.scope == "user" or fact.session == state.session
        said = (
            read_source_text(self._ground.store.query_sync("fact_said", (fact.session, fact.n)))
            if theirs
            else ""
        )
        day = lambda at: f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M}"  # noqa: E731 -- beside its only use
        pairs = explain_fact(fact, said, day, "/memory keep")
        shown = [pair for pair in pairs if theirs or pair[0] != "from"]
        return "\n".join(
            [f"#{fact.id} {_render_text(fact)}", *(f"{name}: {value}" for name, value in shown)]
        )

    def _last_changed(self, viewer: Viewer) -> int:
        """The memory of this person to which something happened last; 0: none."""
        rows = (
            self._ground.store.query_sync("fact_latest_of", ("user", viewer.person))
            if viewer.private
            else []
        )
        return int(rows[0][0]) if rows else 0

    # What is done

    def on_event(self, recorded: Recorded) -> None:
        """An event passes. Never waits."""
        if _promised_id(recorded):
            self._promised.append(recorded)
            self._news.set()

    async def run(self) -> None:
        """For ever, in the process that drives."""
        latest = await self._ground.store.latest_events(
            Principal("owner", ("owner",)), ("command_run",), CATCH_UP
        )
        self._promised.extendleft(each for each in reversed(latest) if _promised_id(each))
        while True:
            self._news = anyio.Event()
            try:
                await self.apply_promises()
            except StoreUnavailable as error:
                log.warning("what was said about memories is done later: %s", error)
                await anyio.sleep(PAUSE_S)
                continue
            await self._news.wait()

    async def apply_promises(self) -> None:
        """Do all that was promised and has not been done. Raises StoreUnavailable."""
        store = self._ground.store
        while self._promised:
            promise = self._promised[0]
            done = await store.query("gathered_get", (MARK, promise.session))
            if not done or done[0][0] < promise.n:
                mark = (
                    MARK,
                    promise.session,
                    promise.n,
                    promise.n,
                    self._ground.clock.now(),
                    "processed",
                    "",
                )
                await store.change([*self._changes(promise), Change("gathered_set", mark)])
            self._promised.popleft()

    def _changes(self, promise: Recorded) -> Sequence[Change]:
        fact = self._memory.get_sync(_promised_id(promise), make_unrestricted_viewer())
        if fact is None or not isinstance(promise.event, CommandRun):
            return ()
        now = self._ground.clock.now()
        said = _PROMISED.match(promise.event.reply)
        wanted = (promise.event.args.split() or [""])[0]
        if wanted == "keep":
            return promote_fact(fact, now)
        if wanted == "forget":
            return (close_fact(fact.id, now, "forgotten"),)
        return (
            undo_last_change(fact, now)
            if said and (fact.valid_to is None) == (said[2] == "is taken back")
            else ()
        )


def _make_viewer(state: State, row: Waiting) -> Viewer:
    """Who reads the answer: the person who asks, where nobody else takes part."""
    who = row.principal
    agent = state.session.partition("/")[0]
    participants = state.participants_with(row)
    private = who.kind == "person" and only_person(participants) == who.id
    audience = () if is_read_by_others(participants) else list_reader_names(who)
    return Viewer(who.id if private else "", agent, private, audience, held=private)


def _may_see(fact: Fact, viewer: Viewer, who: Principal) -> bool:
    """Beyond what the viewer sees: what is held for all is for owners to look at, and what is over
    for nobody else."""
    if fact.scope == "user" or "owner" in who.roles:
        return True
    return not fact.held and fact.valid_to is None


def _render_line(fact: Fact) -> str:
    text = (
        _render_text(fact)
        if len(fact.text) <= LINE_CHARS
        else f"{_render_text(fact)[:LINE_CHARS]}…"
    )
    marks = ["always told"] * fact.pinned + [
        f"waits for your yes: /memory keep {fact.id}"
    ] * fact.held
    marks += ["soon forgotten"] * (fact.retention == "candidate")
    return f"#{fact.id} {text}" + (f" ({', '.join(marks)})" if marks else "")


def _render_text(fact: Fact) -> str:
    """Its text; what came from outside leads nowhere by itself."""
    return defang_text(fact.text, ()) if fact.label.integrity == "untrusted" else fact.text


def _render_promise(word: str, fact: Fact) -> str:
    """What is about to be done, in the words by which it is known again (_PROMISED)."""
    open_ = fact.valid_to is None
    if word == "forget":
        if not open_:
            return f"It is over already: {fact.closed_why}. /memory undo {fact.id} opens it again."
        return (
            f"#{fact.id} is forgotten: {_render_text(fact)}\n/memory undo {fact.id} brings it back."
        )
    if word == "keep":
        if not open_:
            return f"It is over: {fact.closed_why}. /memory undo {fact.id} opens it again."
        return f"#{fact.id} is kept, and told from now on: {_render_text(fact)}"
    if open_:
        return (
            f"#{fact.id} is taken back, and what it had replaced holds again: {_render_text(fact)}"
        )
    instead = (
        f"\n#{fact.superseded_by}, which had come in its place, is taken back."
        if fact.superseded_by
        else ""
    )
    return f"#{fact.id} holds again: {_render_text(fact)}{instead}"


def _promised_id(recorded: Recorded) -> int:
    """The memory about which this event promises something; 0 for none."""
    event = recorded.event
    if not isinstance(event, CommandRun) or event.name != NAME or event.refused:
        return 0
    found = _PROMISED.match(event.reply)
    return int(found[1]) if found else 0
