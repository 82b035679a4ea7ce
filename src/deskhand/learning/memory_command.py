"""The `/memory` command: people see what is remembered about them and why, and take it back."""

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
from ..memory import queries
from ..memory.access import may_change, may_list
from ..memory.facts import (
    Fact,
    Viewer,
    close_fact,
    make_unrestricted_viewer,
    promote_fact,
    undo_last_change,
)
from ..memory.queries import Processed
from ..memory.recall import Memory
from ..memory.rendering import describe_closing, explain_fact
from ..policy.links import defang_text
from ..types.commit import Change
from ..types.errors import StoreUnavailable
from ..types.events import CommandRun, Recorded
from ..types.identity import Principal, Waiting, is_read_by_others, list_reader_names, only_person
from ..types.marked_texts import mark_text

log = logging.getLogger(__name__)

NAME = "memory"
MARK = "asked"
MAX_LISTED = 30
LINE_CHARS = 200
CATCH_UP = 200
PAUSE_S = 5.0
USAGE = mark_text("Write /memory why, undo, keep or forget with its number.")
NOT_HERE = mark_text(
    "Others read here too, so what is your own is not shown: write /memory where you are alone "
    "with me."
)
MARKED_LINES = {
    ("pinned",): mark_text("#{id_name} {memory} (always told)"),
    ("held",): mark_text("#{id_name} {memory} (waits for your yes: /memory keep {keep_name})"),
    ("candidate",): mark_text("#{id_name} {memory} (soon forgotten)"),
    ("pinned", "held"): mark_text(
        "#{id_name} {memory} (always told, waits for your yes: /memory keep {keep_name})"
    ),
    ("pinned", "candidate"): mark_text("#{id_name} {memory} (always told, soon forgotten)"),
    ("held", "candidate"): mark_text(
        "#{id_name} {memory} (waits for your yes: /memory keep {keep_name}, soon forgotten)"
    ),
    ("pinned", "held", "candidate"): mark_text(
        "#{id_name} {memory} (always told, waits for your yes: /memory keep {keep_name}, soon "
        "forgotten)"
    ),
}
"""A memory in the list, by what there is to say of it."""
EXPLANATION_LINES = {
    "whose": mark_text("whose: {value_text}"),
    "written by": mark_text("written by: {value}"),
    "from": mark_text("from: {value_text}"),
    "said there": mark_text("said there: {value}"),
    "trust": mark_text("trust: {value_text}"),
    "readers": mark_text("readers: {value}"),
    "closed": mark_text("closed: {value_text}"),
    "held": mark_text("held: {value_text}"),
    "candidate": mark_text("candidate: {value_text}"),
    "recalled": mark_text("recalled: {value_text}"),
    "confidence": mark_text("confidence: {value_number}"),
}
"""What `/memory why` says, by the name in `explain_fact`."""
_PROMISED = re.compile(r"#(\d+) (is forgotten|is taken back|holds again|is kept)\b")


class MemoryCommand:
    """Answers `/memory` and does what the answer promises.

    A promise is in the log, as the reply to a command, before it is kept: after a crash the next
    process keeps it, and each is kept once.
    """

    def __init__(self, ground: Host, memory: Memory) -> None:
        self._ground = ground
        self._memory = memory
        self._promised = deque[Recorded]()
        self._news = anyio.Event()

    # Answering

    def answer(self, state: State, row: Waiting, args: str) -> str:
        """The reply to `/memory` with these arguments. Changes nothing."""
        if not self._ground.settings().config.memory.enabled:
            return mark_text("Memory is switched off: memory.enabled in the configuration.")
        viewer = _make_viewer(state, row)
        who = row.principal
        word, _, rest = args.strip().partition(" ")
        number = rest.strip().removeprefix("#")
        if not word:
            return self._render_list(viewer, who)
        if word == "undo" and not number:
            number = str(self._last_changed(viewer))
        is_number = number.isdecimal() and len(number) < 16
        if word not in ("why", "undo", "keep", "forget") or not is_number:
            return mark_text(
                "Write /memory why, undo, keep or forget with its number. /memory alone lists "
                "what there is."
            )

        fact = self._memory.get_sync(int(number), viewer)
        if fact is None or not may_list(fact, who):
            return _describe_missing(number, viewer)
        if word == "why":
            return self._explain(fact, state, who)
        if not may_change(fact, who):
            return mark_text(
                "Only an owner can change #{id_name}: it is told to others too."
            ).format(id_name=number)
        successor = self._find_replacement(fact)
        if word == "undo" and successor is not None and not may_change(successor, who):
            return mark_text(
                "Only an owner can take back #{new_name}, which came in place of #{id_name}: "
                "it is told to others too."
            ).format(new_name=successor.id, id_name=number)
        return _render_promise(word, fact, successor)

    def _render_list(self, viewer: Viewer, who: Principal) -> str:
        found = self._memory.list_facts_sync(viewer, limit=1_000)
        seen = [fact for fact in found if may_list(fact, who)]
        own = [fact for fact in seen if fact.scope == "user"]
        shared = [fact for fact in seen if fact.scope != "user"]

        lines = [] if viewer.private else [NOT_HERE]
        lines += _render_section(mark_text("What I remember about you and tell nobody else:"), own)
        lines += _render_section(mark_text("What I remember and tell everybody here:"), shared)
        if seen:
            lines.append(USAGE)
        else:
            lines.append(mark_text("I remember nothing here yet. Tell me to remember something."))
        return "\n".join(lines)

    def _explain(self, fact: Fact, state: State, who: Principal) -> str:
        zone = ZoneInfo(self._ground.settings().config.timezone)
        theirs = fact.scope == "user" or fact.session == state.session
        said = queries.source_text(self._ground.store, fact) if theirs else ""

        def format_time(at: float) -> str:
            return f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M}"

        lines = [f"#{fact.id} {_render_text(fact)}"]
        for name, value in explain_fact(fact, said, format_time, "/memory keep"):
            if theirs or name != "from":
                form = EXPLANATION_LINES[name]
                lines.append(form.format(value=value, value_text=value, value_number=value))
        return "\n".join(lines)

    def _find_replacement(self, fact: Fact) -> Fact | None:
        """The fact that was written to replace this one, and that undoing would close."""
        successor = queries.find_successor(self._ground.store, fact)
        if successor is None or fact.id not in successor.replaces:
            return None
        return successor

    def _last_changed(self, viewer: Viewer) -> int:
        """The id of this person's fact that changed last; 0 for none."""
        if not viewer.private:
            return 0
        return queries.latest_fact_of(self._ground.store, "user", viewer.person)

    # Keeping promises

    listens_to = (CommandRun,)

    def on_event(self, recorded: Recorded) -> None:
        """Take note of a promise. Never waits."""
        if _promised_id(recorded):
            self._promised.append(recorded)
            self._news.set()

    async def run(self) -> None:
        """Keep promises as they are made, and those that an earlier process made. Never returns."""
        latest = await self._ground.store.latest_events(
            Principal("owner", ("owner",)), ("command_run",), CATCH_UP
        )
        self._promised.extendleft(each for each in reversed(latest) if _promised_id(each))
        while True:
            self._news = anyio.Event()
            try:
                await self.apply_promises()
            except StoreUnavailable as error:
                log.warning("Changes to memories are done later: %s", error)
                await anyio.sleep(PAUSE_S)
                continue
            await self._news.wait()

    async def apply_promises(self) -> None:
        """Keep all promises that have not been kept. Raises StoreUnavailable."""
        store = self._ground.store
        while self._promised:
            promise = self._promised[0]
            if await queries.processed_up_to(store, MARK, promise.session) < promise.n:
                done = Processed(
                    kind=MARK,
                    subject=promise.session,
                    n=promise.n,
                    seen=promise.n,
                    at=self._ground.clock.now(),
                )
                await store.change([*self._changes(promise), queries.mark_processed(done)])
            self._promised.popleft()

    def _changes(self, promise: Recorded) -> Sequence[Change]:
        fact = self._memory.get_sync(_promised_id(promise), make_unrestricted_viewer())
        if fact is None or not isinstance(promise.event, CommandRun):
            return ()
        now = self._ground.clock.now()
        wanted = (promise.event.args.split() or [""])[0]
        if wanted == "keep":
            return promote_fact(fact, now)
        if wanted == "forget":
            return (close_fact(fact.id, now, "forgotten"),)
        said = _PROMISED.match(promise.event.reply)
        was_open = said is not None and said[2] == "is taken back"
        if said is None or (fact.valid_to is None) != was_open:  # changed since the promise
            return ()
        successor = queries.find_successor(self._ground.store, fact)
        return undo_last_change(fact, now, successor=successor)


def _make_viewer(state: State, row: Waiting) -> Viewer:
    """The viewer for the answer: the person who asks if they are alone with the agent, else
    everybody in the conversation."""
    who = row.principal
    agent = state.session.partition("/")[0]
    participants = state.participants_with(row)
    private = who.kind == "person" and only_person(participants) == who.id
    audience = () if is_read_by_others(participants) else list_reader_names(who)
    return Viewer(who.id if private else "", agent, private, audience, held=private)


def _render_section(title: str, facts: Sequence[Fact]) -> list[str]:
    if not facts:
        return []
    lines = [title, *(_render_line(fact) for fact in facts[:MAX_LISTED])]
    if len(facts) > MAX_LISTED:
        more = mark_text("… and {more_number} more: ask me about something.")
        lines.append(more.format(more_number=len(facts) - MAX_LISTED))
    return lines


def _describe_missing(number: str, viewer: Viewer) -> str:
    """That there is no memory of this number for this viewer; 0 is the last change."""
    if viewer.private and int(number):
        return mark_text("There is no memory #{id_name} here. /memory lists what there is.").format(
            id_name=number
        )
    if viewer.private:
        return mark_text("There is nothing to take back. /memory lists what there is.")
    if int(number):
        return mark_text(
            "There is no memory #{id_name} here. Others read here too, so what is your own is not "
            "shown: write /memory where you are alone with me."
        ).format(id_name=number)
    nothing = mark_text("There is nothing to take back.")
    return f"{nothing} {NOT_HERE}"


def _render_line(fact: Fact) -> str:
    text = _render_text(fact)
    if len(fact.text) > LINE_CHARS:
        text = f"{text[:LINE_CHARS]}…"
    marks = {
        "pinned": fact.pinned,
        "held": fact.held,
        "candidate": fact.retention == "candidate",
    }
    holding = tuple(name for name, holds in marks.items() if holds)
    if not holding:
        return f"#{fact.id} {text}"
    return MARKED_LINES[holding].format(id_name=fact.id, memory=text, keep_name=fact.id)


def _render_text(fact: Fact) -> str:
    """The text of a fact. Links in text from outside are made unclickable."""
    return defang_text(fact.text, ()) if fact.label.integrity == "untrusted" else fact.text


def _render_promise(word: str, fact: Fact, successor: Fact | None) -> str:
    """What is about to be done, in words that `_PROMISED` recognises. `successor` was written to
    replace the fact."""
    text = _render_text(fact)
    is_open = fact.valid_to is None
    if word == "forget":
        if is_open:
            lines = [
                mark_text("#{id_name} is forgotten: {memory}"),
                mark_text("/memory undo {id_name} brings it back."),
            ]
        else:
            lines = [
                mark_text("It is over already: {why_text}. /memory undo {id_name} opens it again.")
            ]
    elif word == "keep":
        if is_open:
            lines = [mark_text("#{id_name} is kept, and told from now on: {memory}")]
        else:
            lines = [mark_text("It is over: {why_text}. /memory undo {id_name} opens it again.")]
    elif is_open:
        lines = [
            mark_text("#{id_name} is taken back, and what it had replaced holds again: {memory}")
        ]
    else:
        lines = [mark_text("#{id_name} holds again: {memory}")]
        if successor is not None:
            lines.append(mark_text("#{new_name}, which had come in its place, is taken back."))
    return "\n".join(lines).format(
        id_name=fact.id,
        memory=text,
        why_text=describe_closing(fact),
        new_name=successor.id if successor is not None else 0,
    )


def _promised_id(recorded: Recorded) -> int:
    """The id of the memory about which this event promises something; 0 for none."""
    event = recorded.event
    if not isinstance(event, CommandRun) or event.name != NAME or event.refused:
        return 0
    found = _PROMISED.match(event.reply)
    return int(found[1]) if found else 0
