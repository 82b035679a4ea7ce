"""Watches over proposed skills: tries them on recorded turns, and removes accepted ones that do
worse."""

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
from ...evals.runner import Replayer, ReplayOptions
from ...gateway.inject import InboundInjector
from ...skills.settings import SkillsReview
from ...skills.write import write_skill
from ...tools.documents.invisible_characters import escape_invisible
from ...types import events as e
from ...types.errors import DeskhandError, StoreCorrupt
from ...types.identity import Inbound, Principal, Result
from ...types.labels import LOCAL, join_labels
from ...types.marked_texts import mark_text
from ...types.messages import Text, ToolResult, Usage
from . import queries
from .queries import Card, Score, Side, SkillUse, State, StoredProposal
from .store import Proposals, ended_badly

log = logging.getLogger(__name__)

POLL_S = 60.0
DEBOUNCE_S = 1.0
"""Turns that end within this time are looked at together. There can be hundreds."""
CATCH_UP = 200
MIN_BAD_TURNS = 2
MAX_CHANCE = 0.05
"""A skill does worse when at least so many turns ended badly, and that is so unlikely by chance."""
ASKED_CHARS = 80
STATE_TEXTS: dict[State, str] = {
    "proposed": mark_text("proposed"),
    "refused": mark_text("refused"),
    "accepted": mark_text("accepted"),
    "rejected": mark_text("rejected"),
    "reverted": mark_text("reverted"),
    "kept": mark_text("kept"),
}


class _Decision(msgspec.Struct, frozen=True):
    """What a person has decided about a proposal in a chat."""

    proposal: StoredProposal
    accept: bool
    by: Principal


class Reviewing:
    """Tries, watches and reverts the proposed skills of one App."""

    def __init__(self, ground: Host, waker: InboundInjector, replayer: Replayer) -> None:
        self._ground = ground
        self._waker = waker
        self._replayer = replayer
        self.proposals = Proposals(ground)
        self._ended = deque[tuple[str, int]](maxlen=1000)
        self._undone = deque[tuple[str, int]](maxlen=1000)
        self._decided = deque[_Decision](maxlen=100)
        self._news = anyio.Event()
        self._decision_made = anyio.Event()

    @property
    def _config(self) -> SkillsReview:
        return self._ground.settings().config.skills_review

    listens_to = (
        e.TurnEnded,
        e.Undone,
    )

    def on_event(self, recorded: e.Recorded) -> None:
        """Take note of turns that ended or were rewound. Never waits."""
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
        """Review what is new, as it comes. For the process that drives sessions. Never returns."""
        latest = await self._ground.store.latest_events(
            Principal("owner", ("owner",)), ("turn_ended",), CATCH_UP
        )
        self._ended.extendleft((each.session, each.n) for each in reversed(latest))
        while True:
            self._news = anyio.Event()
            self._decision_made = anyio.Event()
            try:
                await self.run_due()
            except (DeskhandError, OSError) as error:  # of one session or agent: the others go on
                log.warning("Cannot review a proposed skill: %s", error)
            with anyio.move_on_after(POLL_S):
                await self._news.wait()
            with anyio.move_on_after(DEBOUNCE_S):
                await self._decision_made.wait()

    async def run_decisions(self) -> None:
        """Do what people decide about skills in the conversations of this process, and nothing
        else: for a worker beside the process that reviews. Never returns."""
        while True:
            self._decision_made = anyio.Event()
            while self._decided:
                await self._decide(self._decided.popleft())
            await self._decision_made.wait()

    async def run_due(self) -> None:
        """Do everything that is due now."""
        store = self._ground.store
        if await queries.has_erased(store):
            await store.change([queries.forget_erased()])
        while self._decided:
            await self._decide(self._decided.popleft())
        await self.proposals.reconcile()
        await self._watch()
        if not self._config.replay:
            return
        for proposal in reversed(await self.proposals.list_proposals()):
            if proposal.card is None and not proposal.doubt:
                card = await self.try_out(proposal)
                await self.notify(proposal, _render_proposed(proposal, card))

    # Deciding in a chat

    def answer(self, who: Principal, args: str, *, alone: bool) -> str:
        """The reply to `/skills` for a person who is `alone` with the agent, or not. A decision is
        carried out right after the reply."""
        if not alone:
            return mark_text(
                "Ask me that where we are alone: skills come from conversations that not everybody "
                "here took part in."
            )
        word, _, number = args.strip().partition(" ")
        store = self._ground.store
        if not word:
            return render_proposals(queries.list_waiting(store))
        proposal = None
        if number.isdecimal() and len(number) < 10:
            proposal = queries.find_proposal(store, int(number))
        if word not in ("show", "accept", "reject") or proposal is None:
            return mark_text(
                "Write /skills to see what is proposed, and /skills show, accept or reject with "
                "its number."
            )

        name = proposal.name
        if word == "show":
            return self._ground.redact(render_proposal(proposal))
        if proposal.state != "proposed":
            return mark_text("{skill_name} is {state_text} already.").format(
                skill_name=name, state_text=STATE_TEXTS[proposal.state]
            )
        if word == "accept" and proposal.doubt:
            return mark_text(
                "{skill_name} cannot be accepted here. {doubt_text} Decide on the machine itself: "
                "deskhand skills show {id_name}"
            ).format(skill_name=name, doubt_text=proposal.doubt, id_name=proposal.id)
        self._decided.append(_Decision(proposal, word == "accept", who))
        self._news.set()
        self._decision_made.set()
        if word == "accept":
            accepted = mark_text("{skill_name} becomes a skill of {agent_name} now.")
            return accepted.format(skill_name=name, agent_name=proposal.agent)
        return mark_text("{skill_name} is turned down.").format(skill_name=name)

    async def _decide(self, decision: _Decision) -> None:
        proposal = decision.proposal
        try:
            if decision.accept:
                await self.proposals.accept(proposal.id, decision.by)
            else:
                await self.proposals.reject(proposal.id, decision.by)
        except (DeskhandError, OSError) as error:
            log.warning("Nothing was decided about proposal %s: %s", proposal.id, error)
            why = f"[nothing was decided about the skill {proposal.name}: {error}]"
            await self.notify(
                proposal,
                f"{why}\nTell the person so, in one sentence.",
                f"failed at {self._ground.clock.now()}",
            )

    # Trying out

    async def try_out(self, proposal: StoredProposal) -> Card:
        """Replay recorded turns with the skill, within the budget, and store how it did."""
        config = self._config
        scores: list[Score] = []
        spent = Usage()
        why = ""
        with tempfile.TemporaryDirectory(prefix="deskhand-tried-") as folder:
            try:
                found = await self._find_turns(proposal, config.turns)
                if not found:
                    why = mark_text(
                        "there is no recorded turn that ended well, on which it could be tried"
                    )
                write_skill(Path(folder), proposal.name, proposal.description, proposal.body)
                for recording in found:
                    left = config.tokens - spent.input_tokens - spent.output_tokens
                    if left <= 0:
                        why = mark_text("its {tokens_number} tokens are used up").format(
                            tokens_number=f"{config.tokens:,}"
                        )
                        break
                    options = ReplayOptions(
                        self._choose_model(recording), skills=Path(folder), tokens=left
                    )
                    replayed = await self._replayer.run(recording, options)
                    spent += replayed.spent
                    scores.append(self._make_score(replayed, proposal.name))
            except DeskhandError as error:
                why = str(error)
        card = Card(self._ground.clock.now(), tuple(scores), spent, why)
        await self.proposals.save_card(proposal, card)
        return card

    async def _find_turns(self, proposal: StoredProposal, most: int) -> list[Recording]:
        """Turns of its own conversation that ended well, the latest first: the turn that it comes
        from and those before, or if there are none any."""
        events = await self._ground.store.events(proposal.session)
        ended = [each for each in split_recordings(proposal.session, events) if _ended_well(each)]
        own = [each for each in ended if each.tape[0].n <= max(proposal.n, 1)]
        return (own or ended)[::-1][:most]

    def _choose_model(self, recorded: Recording) -> str:
        """The model that answered then if the agent still has it, else the agent's first model."""
        models = self._replayer.models(recorded.session)
        then = [
            each.event.model for each in recorded.tape if isinstance(each.event, e.ModelReplied)
        ]
        return then[-1] if then and then[-1] in models else models[0]

    def _make_score(self, found: Replayed, name: str) -> Score:
        was = found.was
        now = found.now
        # The replay may make other calls, but its answer must say the same.
        wanted = Expect(words=derive_expectations(was, str).words)

        read = False
        unknown = 0
        for made in now.calls:
            if _is_read_of(made.tool, made.arguments, name):
                read = True
            elif not made.known:
                unknown += 1
        asked = " ".join(found.recording.asked.split())
        return Score(
            session=found.recording.session,
            turn=found.recording.number,
            asked=self._ground.redact(asked)[:ASKED_CHARS],
            without=_make_side(was, solved=was.reason == "done"),
            with_it=_make_side(now, solved=not find_failures(wanted, now)),
            read=read,
            unknown=unknown,
        )

    # Watching

    async def _watch(self) -> None:
        """Note how turns ended that read an accepted skill, and remove skills that do worse."""
        store = self._ground.store
        accepted = await queries.list_accepted(store)
        while self._ended:
            session, n = self._ended.popleft()
            agent = session.partition("/")[0]
            mine = {each.name: each for each in accepted if each.agent == agent}
            if mine:
                await self._record_uses(session, n, mine)
        while self._undone:
            session, n = self._undone.popleft()
            await store.change([queries.mark_uses_undone(session, n)])
        if self._config.revert:
            for proposal in accepted:
                await self._revert_if_worse(proposal)

    async def _revert_if_worse(self, proposal: StoredProposal) -> None:
        uses = await queries.skill_uses(self._ground.store, proposal.id)
        bad = [use for use in uses if use.bad]
        if not is_worse((proposal.turns_before, proposal.bad_before), len(uses), len(bad)):
            return
        how = "; ".join(sorted({use.why for use in bad}))
        why = f"{len(bad)} of the {len(uses)} turns that used it ended badly ({how})"
        after = await self.proposals.auto_revert(proposal, why)
        log.warning("Skill %s of %s is now %s: %s", proposal.name, proposal.agent, after.state, why)
        await self.notify(after, _render_taken_out(after))

    async def _record_uses(self, session: str, n: int, mine: dict[str, StoredProposal]) -> None:
        """Note which of these skills the turn read that ended with event `n`."""
        turns = split_recordings(session, await self._read_turn_events(session, n))
        turn = next((each for each in turns if each.tape[-1].n == n), None)
        if turn is None:
            return
        end = turn.tape[-1]
        if not isinstance(end.event, e.TurnEnded):
            return
        why = f"it ended with {end.event.reason}" if ended_badly(end.event) else ""
        use = SkillUse(session, n, end.at, bool(why), why)
        for name in find_read_skills(turn.tape) & mine.keys():
            if end.at >= (mine[name].decided_at or 0.0):
                await self._ground.store.change([queries.add_skill_use(mine[name].id, use)])

    async def _read_turn_events(self, session: str, n: int) -> Sequence[e.Recorded]:
        """The events of the turn that ended with event `n`. Reads no more of the log than
        needed."""
        for back in (100, 1_000, n):
            found = await self._ground.store.events(session, max(0, n - back), back)
            ends = [i for i, each in enumerate(found) if isinstance(each.event, e.TurnEnded)]
            if len(ends) > 1 or back >= n:
                start = ends[-2] + 1 if len(ends) > 1 else 0
                return found[start:]
        return ()

    # Telling the person

    async def notify(self, proposal: StoredProposal, text: str, what: str = "") -> None:
        """Hand a text to the conversation that the skill comes from, for its agent to tell the
        person. Does nothing when that person is no owner any more."""
        try:
            events = await self._ground.store.events(proposal.session)
        except StoreCorrupt as error:
            log.warning("Nobody is told about the skill %s: %s", proposal.name, error)
            return
        recordings = split_recordings(proposal.session, events)
        turns = [each for each in recordings if each.tape[0].n <= max(proposal.n, 1)]
        if not turns or not isinstance(opened := turns[-1].tape[0].event, e.MessageReceived):
            return
        who = await self._ground.with_current_roles(opened.principal)
        if "owner" not in who.roles:
            return
        person = who.on_behalf_of or who.id
        agent = Principal(f"agent:{proposal.agent}", who.roles, "agent", person)
        id_ = f"skill:{proposal.id}:{what or proposal.state}"
        part = Text(self._ground.redact(text), join_labels((LOCAL, proposal.label)))
        inbound = Inbound(
            id_,
            opened.address,
            agent.id,
            self._ground.clock.now(),
            Result(id_, (part,)),
            proposal.session,
            when="queue",
        )
        try:
            await self._waker.hand_in(inbound, agent)
        except DeskhandError as error:
            log.warning("Nobody is told about the skill %s: %s", proposal.name, error)


def is_worse(before: tuple[int, int], uses: int, bad: int) -> bool:
    """Whether `bad` of `uses` turns are too many to be chance.

    `before` is how many turns there were before, and how many of them ended badly. For an agent
    without turns one in four is expected to be bad.
    """
    turns, failed = before
    share = (failed + 1) / (turns + 4)
    chance = sum(comb(uses, k) * share**k * (1 - share) ** (uses - k) for k in range(bad, uses + 1))
    return bad >= MIN_BAD_TURNS and chance < MAX_CHANCE


def find_read_skills(tape: Sequence[e.Recorded]) -> set[str]:
    """The names of the skills that were read successfully in a turn."""
    calls: dict[str, str] = {}
    found: set[str] = set()
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
                if name := _parse_skill_name(calls[call_id]):
                    found.add(name)
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
    if not isinstance(last, e.TurnEnded) or ended_badly(last) or recorded.rewound:
        return False
    return any(isinstance(each.event, e.ModelReplied) for each in recorded.tape)


def _make_side(course: Course, *, solved: bool) -> Side:
    return Side(solved, len(course.calls), course.tokens, course.steps)


def render_verdict(card: Card) -> str:
    """One sentence about how a proposal did in replays."""
    if not card.scores:
        return mark_text("It was not tried: {why_text}.").format(why_text=card.why)
    solved = sum(score.with_it.solved for score in card.scores)
    read = sum(score.read for score in card.scores)
    before = sum(score.without.tokens for score in card.scores)
    now = sum(score.with_it.tokens for score in card.scores)
    form = (
        mark_text(
            "Tried on {turns_number} recorded turns: {solved_number} solved as well with it, "
            "{read_number} read it; {with_number} tokens with it, {without_number} without."
        )
        if len(card.scores) > 1
        else mark_text(
            "Tried on 1 recorded turn: {solved_number} solved as well with it, "
            "{read_number} read it; {with_number} tokens with it, {without_number} without."
        )
    )
    said = form.format(
        turns_number=len(card.scores),
        solved_number=solved,
        read_number=read,
        with_number=f"{now:,}",
        without_number=f"{before:,}",
    )
    if not card.why:
        return said
    return mark_text("{said_text} It went no further: {why_text}.").format(
        said_text=said, why_text=card.why
    )


def render_proposals(proposals: Sequence[StoredProposal]) -> str:
    """The proposals that wait for a person, for a chat."""
    if not proposals:
        return mark_text("No skills are proposed.")
    lines = [mark_text("These skills are proposed, and none of them is active:")]
    lines += [_render_line(each) for each in proposals[:20]]
    lines.append(mark_text("/skills show NUMBER says more."))
    return "\n".join(lines)


def _render_line(proposal: StoredProposal) -> str:
    """A proposal in the list, with a remark when it is not an owner's word alone."""
    line = f"{proposal.id}  {proposal.name}: {format_inline_code(proposal.description)}"
    if proposal.untrusted:
        return mark_text("{skill} (untrusted)").format(skill=line)
    if proposal.label.by:
        by = mark_text("{skill} (by {names})")
        return by.format(skill=line, names=", ".join(proposal.label.by))
    return line


def format_inline_code(text: str) -> str:
    """The text as inline code in Markdown. Every character is visible, and nothing in it is
    markup."""
    said = " ".join(escape_invisible(text).split())
    ticks = "`" * (max(map(len, re.findall("`+", said)), default=0) + 1)
    pad = " " if "`" in (said[:1], said[-1:]) else ""
    return f"{ticks}{pad}{said}{pad}{ticks}" if said else ""


def format_code_block(text: str) -> str:
    """The text as a code block in Markdown. Every character is visible, and nothing in it is
    markup."""
    said = escape_invisible(text)
    fence = "`" * max(3, max(map(len, re.findall("`+", said)), default=0) + 1)
    return f"{fence}\n{said}\n{fence}"


def render_proposal(proposal: StoredProposal) -> str:
    """All that a person needs to decide about a proposal, for a chat. Its whole text is shown as it
    would be written."""
    session = format_inline_code(proposal.session)
    lines = [
        f"{proposal.name}: {format_inline_code(proposal.description)}",
        mark_text("for {agent_name}, from {session}; it is {state_text}").format(
            agent_name=proposal.agent, session=session, state_text=STATE_TEXTS[proposal.state]
        ),
    ]
    if proposal.doubt:
        lines.append(proposal.doubt)
    lines += [f"{each.severity}: {each.words}" for each in proposal.findings]
    if proposal.card is None:
        lines.append(mark_text("It was not tried on recorded turns yet."))
    else:
        lines.append(render_verdict(proposal.card))
    return "\n".join([*lines, "", format_code_block(proposal.body)])


def _render_proposed(proposal: StoredProposal, card: Card) -> str:
    return (
        f"[a skill is proposed: {proposal.name}]\n{render_verdict(card)}\nIt is not active. Tell "
        "the person in one sentence:"
        f" they see it with `deskhand skills show {proposal.id}`, and decide with `deskhand "
        f"skills accept {proposal.id}` or"
        f" `deskhand skills reject {proposal.id}`. Do nothing else about it."
    )


def _render_taken_out(proposal: StoredProposal) -> str:
    what = (
        f"Its file was changed by hand since, so it stays: look at {proposal.file}."
        if proposal.state != "reverted"
        else "It was taken out again; `deskhand undo --redo` puts it back."
    )
    return (
        f"[the skill {proposal.name} does worse than before: {proposal.why}]\n{what}\nTell the "
        "person so, in one sentence."
    )
