"""Looks after proposed skills: tries them on recorded turns, watches those that were taken in, and
takes out again what does worse than before."""

from __future__ import annotations

import logging
import re
import tempfile
from collections import deque
from collections.abc import Sequence
from math import comb
from pathlib import Path

import anyio
import msgspec

from ...assembly.host import Host
from ...evals.cases import Expect, derive_expectations, find_failures
from ...evals.recordings import Course, Recording, make_call_key, split_recordings
from ...evals.replay import Replayed
from ...evals.runner import Replaying, ReplayOptions
from ...gateway.inject import InboundInjector
from ...skills.settings import SkillsReview
from ...skills.write import write_skill
from ...tools.documents.invisible import written_out
from ...types import events as e
from ...types.commit import Change
from ...types.errors import DeskhandError, StoreCorrupt
from ...types.identity import Inbound, Principal, Result
from ...types.labels import LOCAL, join_labels
from ...types.messages import Text, ToolResult, Usage
from .store import Card, Proposals, Row, Score, Side, ended_badly

log = logging.getLogger(__name__)

POLL_S = 60.0
DEBOUNCE_S = 1.0
"""Turns that end within so long are looked at together: there may be hundreds."""
CATCH_UP = 200
MIN_BAD_TURNS = 2
MAX_CHANCE = 0.05
"""So many bad turns at least, and so seldom by chance."""
ASKED_CHARS = 80


class Reviewing:
    """One for each App. `proposals` are what it looks after."""

    def __init__(self, ground: Host, waker: InboundInjector, replaying: Replaying) -> None:
        self._ground = ground
        self._waker = waker
        self._replaying = replaying
        self.proposals = Proposals(ground)
        self._ended = deque[tuple[str, int]](maxlen=1000)
        self._undone = deque[tuple[str, int]](maxlen=1000)
        self._decided = deque[tuple[Row, bool, Principal]](maxlen=100)
        self._news, self._told = anyio.Event(), anyio.Event()

    @property
    def _config(self) -> SkillsReview:
        return self._ground.settings().config.skills_review

    def on_event(self, recorded: e.Recorded) -> None:
        """An event passes. Never waits."""
        match recorded.event:
            case e.TurnEnded():
                self._ended.append((recorded.session, recorded.n))
                self._news.set()
            case e.Undone(to_n=to_n):
                self._undone.append((recorded.session, to_n))
                self._news.set()
            case _:
                pass

    async def run(self) -> None:
        """For ever, in the process that drives."""
        latest = await self._ground.store.latest_events(
            Principal("owner", ("owner",)), ("turn_ended",), CATCH_UP
        )
        self._ended.extendleft((each.session, each.n) for each in reversed(latest))
        while True:
            self._news, self._told = anyio.Event(), anyio.Event()
            try:
                await self.run_due()
            except (
                DeskhandError,
                OSError,
            ) as error:  # one log, or one agent that is gone; the others go on
                log.warning("a proposal cannot be looked at: %s", error)
            with anyio.move_on_after(POLL_S):
                await self._news.wait()
            with anyio.move_on_after(DEBOUNCE_S):
                await self._told.wait()

    async def run_due(self) -> None:
        """Do all that is due now."""
        if await self._ground.store.query("proposal_erased", ()):
            await self._ground.store.change([Change("proposal_forget", ())])
        while self._decided:
            await self._decide(*self._decided.popleft())
        await self.proposals.reconcile()
        await self._watch()
        if not self._config.replay:
            return
        for row in reversed(await self.proposals.list_proposals()):
            if row.card is None and not row.doubt:
                card = await self.try_out(row)
                await self.notify(row, _render_proposed(row, card))

    # Deciding in a chat

    def answer(self, who: Principal, args: str, *, alone: bool) -> str:
        """What `/skills` says to a person who is `alone` with the agent. What is decided is done at
        once afterwards."""
        if not alone:
            return (
                "Ask me that where we are alone: skills are thought of in conversations that "
                "not everybody here had."
            )
        word, _, number = args.strip().partition(" ")
        if not word:
            return render_proposals(self.proposals.list_proposals_sync())
        rows = (
            self.proposals.list_proposals_sync(int(number))
            if number.isdecimal() and len(number) < 10
            else []
        )
        if word not in ("show", "accept", "reject") or not rows:
            return (
                "Write /skills to see what is proposed, and /skills show, accept or reject with "
                "its number."
            )
        row = rows[0]
        if word == "show":
            return self._ground.redact(render_proposal(row))
        if row.state != "proposed":
            return f"{row.name} is not open: it is {row.state}."
        if word == "accept" and row.doubt:
            elsewhere = f"Decide on the machine itself: deskhand skills show {row.id}"
            return f"{row.name} is not taken here. {row.doubt} {elsewhere}"
        self._decided.append((row, word == "accept", who))
        self._news.set()
        self._told.set()
        return (
            f"{row.name} becomes a skill of {row.agent} now."
            if word == "accept"
            else f"{row.name} is turned down."
        )

    async def _decide(self, row: Row, taken: bool, who: Principal) -> None:
        try:
            await (
                self.proposals.accept(row.id, who) if taken else self.proposals.reject(row.id, who)
            )
        except (DeskhandError, OSError) as error:
            log.warning("proposal %s is as it was: %s", row.id, error)
            why = f"[nothing was decided about the skill {row.name}: {error}]"
            await self.notify(
                row,
                f"{why}\nTell the person so, in one sentence.",
                f"failed at {self._ground.clock.now()}",
            )

    # Trying out

    async def try_out(self, row: Row) -> Card:
        """Replay recorded turns with the skill, within the budget, and remember how it did."""
        config = self._config
        scores = list[Score]()
        spent = Usage()
        why = ""
        with tempfile.TemporaryDirectory(prefix="deskhand-tried-") as folder:
            try:
                found = await self._find_turns(row, config.turns)
                why = (
                    ""
                    if found
                    else "there is no recorded turn that ended well, on which it could be tried"
                )
                write_skill(Path(folder), row.name, row.description, row.body)
                for each in found:
                    left = config.tokens - spent.input_tokens - spent.output_tokens
                    if left <= 0:
                        why = f"its {config.tokens:,} tokens are used up"
                        break
                    wanted = ReplayOptions(
                        self._choose_model(each), skills=Path(folder), tokens=left
                    )
                    replayed = await self._replaying.run(each, wanted)
                    spent += replayed.spent
                    scores.append(self._make_score(replayed, row.name))
            except DeskhandError as error:
                why = str(error)
        card = Card(self._ground.clock.now(), tuple(scores), spent, why)
        await self.proposals.save_card(row, card)
        return card

    async def _find_turns(self, row: Row, most: int) -> list[Recording]:
        """The turn that it comes from, and those before it, in its own conversation alone."""
        log_ = await self._ground.store.events(row.session)
        ended = [each for each in split_recordings(row.session, log_) if _ended_well(each)]
        own = [each for each in ended if each.tape[0].n <= max(row.n, 1)]
        return (own or ended)[::-1][:most]

    def _choose_model(self, recorded: Recording) -> str:
        """What answered then, where the agent still has it, else what it asks first now."""
        models = self._replaying.models(recorded.session)
        then = [
            each.event.model for each in recorded.tape if isinstance(each.event, e.ModelReplied)
        ]
        return then[-1] if then and then[-1] in models else models[0]

    def _make_score(self, found: Replayed, name: str) -> Score:
        was = found.was
        now = found.now
        redact = self._ground.redact
        wanted = Expect(
            words=derive_expectations(was, str).words
        )  # which calls it takes is its own affair
        unknown = sum(
            not made.known and not _is_read_of(made.tool, made.arguments, name)
            for made in now.calls
        )
        asked = redact(" ".join(found.recording.asked.split()))[:ASKED_CHARS]
        read = any(_is_read_of(made.tool, made.arguments, name) for made in now.calls)
        sides = (
            _make_side(was, solved=was.reason == "done"),
            _make_side(now, solved=not find_failures(wanted, now)),
        )
        return Score(found.recording.session, found.recording.number, asked, *sides, read, unknown)

    # Watching

    async def _watch(self) -> None:
        """Note how turns ended in which a taken skill was read, and take out what does worse."""
        store = self._ground.store
        taken = await self.proposals.list_active()
        while self._ended:
            session, n = self._ended.popleft()
            mine = {row.name: row for row in taken if row.agent == session.partition("/")[0]}
            if mine:
                await self._record_uses(session, n, mine)
        while self._undone:
            await store.change([Change("skill_use_undone", self._undone.popleft())])
        for row in taken if self._config.revert else ():
            uses = await store.query("skill_uses", (row.id,))
            bad = sum(use[3] for use in uses)
            if is_worse((row.turns_before, row.bad_before), len(uses), bad):
                how = "; ".join(sorted({use[4] for use in uses if use[3]}))
                why = f"{bad} of the {len(uses)} turns that used it ended badly ({how})"
                after = await self.proposals.auto_revert(row, why)
                log.warning("the skill %s of %s is %s: %s", row.name, row.agent, after.state, why)
                await self.notify(after, _render_taken_out(after))

    async def _record_uses(self, session: str, n: int, mine: dict[str, Row]) -> None:
        turns = split_recordings(session, await self._read_turn_events(session, n))
        found = next((each for each in turns if each.tape[-1].n == n), None)
        event = found.tape[-1].event if found is not None else None
        if found is None or not isinstance(event, e.TurnEnded):
            return
        for name in find_read_skills(found.tape) & mine.keys():
            if found.tape[-1].at >= (mine[name].decided_at or 0.0):
                why = "" if not ended_badly(event) else f"it ended with {event.reason}"
                use = (mine[name].id, session, n, found.tape[-1].at, int(bool(why)), why)
                await self._ground.store.change([Change("skill_use_add", use)])

    async def _read_turn_events(self, session: str, n: int) -> Sequence[e.Recorded]:
        """The turn that ended with this event, with what came before it as far as it has to be
        read."""
        for back in (100, 1_000, n):
            found = await self._ground.store.events(session, max(0, n - back), back)
            ends = [i for i, each in enumerate(found) if isinstance(each.event, e.TurnEnded)]
            if len(ends) > 1 or back >= n:
                start = ends[-2] + 1 if len(ends) > 1 else 0
                return found[start:]
        return ()

    # Telling

    async def notify(self, row: Row, text: str, what: str = "") -> None:
        """Hand this to the conversation that the skill comes from: its agent tells the person, if
        it is one who may decide about it."""
        try:
            log_ = await self._ground.store.events(row.session)
        except StoreCorrupt as error:
            log.warning("nobody is told of the skill %s: %s", row.name, error)
            return
        turns = [
            each for each in split_recordings(row.session, log_) if each.tape[0].n <= max(row.n, 1)
        ]
        if not turns or not isinstance(opened := turns[-1].tape[0].event, e.MessageReceived):
            return
        who = await self._ground.with_current_roles(opened.principal)
        if "owner" not in who.roles:
            return
        principal = Principal(f"agent:{row.agent}", who.roles, "agent", who.on_behalf_of or who.id)
        id_ = f"skill:{row.id}:{what or row.state}"
        result = Result(id_, (Text(self._ground.redact(text), join_labels((LOCAL, row.label))),))
        at = self._ground.clock.now()
        inbound = Inbound(id_, opened.address, principal.id, at, result, row.session, when="queue")
        try:
            await self._waker.hand_in(inbound, principal)
        except DeskhandError as error:
            log.warning("nobody is told of the skill %s: %s", row.name, error)


def is_worse(before: tuple[int, int], uses: int, bad: int) -> bool:
    """Whether so many bad turns of so many would hardly come by chance, if turns went as they went
    before: `before` is how many there were, and how many of them were bad. Nothing is known of a
    new agent: one in four may be bad."""
    turns, failed = before
    share = (failed + 1) / (turns + 4)
    chance = sum(comb(uses, k) * share**k * (1 - share) ** (uses - k) for k in range(bad, uses + 1))
    return bad >= MIN_BAD_TURNS and chance < MAX_CHANCE


def find_read_skills(tape: Sequence[e.Recorded]) -> set[str]:
    """The skills that were really read in a turn."""
    calls = dict[str, str]()
    found = set[str]()
    for recorded in tape:
        match recorded.event:
            case e.ModelReplied(message=message):
                keys = {call.id: make_call_key(call) for call in message.calls}
                calls |= {
                    id_: arguments
                    for id_, (name, arguments) in keys.items()
                    if name == "read_skill"
                }
            case e.ToolFinished(result=ToolResult(call_id=call_id, status="ok")) if (
                call_id in calls
            ):
                found |= {name for name in (_parse_skill_name(calls[call_id]),) if name}
            case _:
                pass
    return found


def _parse_skill_name(arguments: str) -> str:
    try:
        return msgspec.json.decode(arguments, type=dict[str, str]).get("skill", "")
    except (msgspec.DecodeError, RecursionError):
        return ""


def _is_read_of(tool: str, arguments: str, name: str) -> bool:
    return tool == "read_skill" and _parse_skill_name(arguments) == name


def _ended_well(recorded: Recording) -> bool:
    last = recorded.tape[-1].event
    asked = any(isinstance(each.event, e.ModelReplied) for each in recorded.tape)
    return (
        isinstance(last, e.TurnEnded) and not ended_badly(last) and asked and not recorded.rewound
    )


def _make_side(course: Course, *, solved: bool) -> Side:
    return Side(solved, len(course.calls), course.tokens, course.steps)


def render_verdict(card: Card) -> str:
    """In a sentence, how it did."""
    if not card.scores:
        return f"It was not tried: {card.why}."
    solved = sum(each.with_it.solved for each in card.scores)
    read = sum(each.read for each in card.scores)
    then, now = (sum(side.tokens for side in sides) for sides in _split_sides(card))
    turns = f"{len(card.scores)} recorded turn{'s' if len(card.scores) > 1 else ''}"
    tokens = f"{now:,} tokens with it, {then:,} without"
    said = f"Tried on {turns}: {solved} solved as well with it, {read} read it; {tokens}"
    return f"{said}. It went no further: {card.why}." if card.why else f"{said}."


def render_proposals(rows: Sequence[Row]) -> str:
    """What waits for a person, for a chat."""
    if not rows:
        return "No skills are proposed."
    lines = [
        f"{row.id}  {row.name}: {format_inline_code(row.description)}{_render_origin(row)}"
        for row in rows[:20]
    ]
    return "\n".join(
        [
            "These skills are proposed, and none of them is active:",
            *lines,
            "/skills show NUMBER says more.",
        ]
    )


def _render_origin(row: Row) -> str:
    """What a line about it says of whose word it is."""
    return (
        " (untrusted)"
        if row.untrusted
        else f" (by {', '.join(row.label.by)})"
        if row.label.by
        else ""
    )


def format_inline_code(text: str) -> str:
    """The text as code within a line of Markdown, every character of it seen: nothing in it is
    markup."""
    said = " ".join(written_out(text).split())
    ticks = "`" * (max(map(len, re.findall("`+", said)), default=0) + 1)
    pad = " " if "`" in (said[:1], said[-1:]) else ""
    return f"{ticks}{pad}{said}{pad}{ticks}" if said else ""


def format_code_block(text: str) -> str:
    """The text as a block of code in Markdown, every character of it seen: nothing in it is
    markup."""
    said = written_out(text)
    fence = "`" * max(3, max(map(len, re.findall("`+", said)), default=0) + 1)
    return f"{fence}\n{said}\n{fence}"


def render_proposal(row: Row) -> str:
    """All of it that a person needs to decide, for a chat: its whole text, as it would be
    written."""
    lines = [
        f"{row.name}: {format_inline_code(row.description)}",
        f"for {row.agent}, from {format_inline_code(row.session)}; it is {row.state}",
    ]
    lines += [row.doubt] if row.doubt else []
    lines += [f"{each.severity}: {each.words}" for each in row.findings]
    lines += (
        [render_verdict(row.card)]
        if row.card is not None
        else ["It was not tried on recorded turns yet."]
    )
    return "\n".join([*lines, "", format_code_block(row.body)])


def _split_sides(card: Card) -> tuple[list[Side], list[Side]]:
    return [each.without for each in card.scores], [each.with_it for each in card.scores]


def _render_proposed(row: Row, card: Card) -> str:
    return (
        f"[a skill is proposed: {row.name}]\n{render_verdict(card)}\nIt is not active. Tell the "
        "person in one sentence:"
        f" they see it with `deskhand skills show {row.id}`, and decide with `deskhand "
        f"skills accept {row.id}` or"
        f" `deskhand skills reject {row.id}`. Do nothing else about it."
    )


def _render_taken_out(row: Row) -> str:
    what = (
        "It was taken out again; `deskhand undo --redo` puts it back."
        if row.state == "reverted"
        else f"Its file was changed by hand since, so it stays: look at {row.file}."
    )
    return (
        f"[the skill {row.name} does worse than before: {row.why}]\n{what}\nTell the person so, "
        "in one sentence."
    )
