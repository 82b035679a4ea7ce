"""Typed queries on proposed skills, and on the turns that used those that were accepted."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ...skills.scan import ScanFinding
from ...skills.skill import FILE_NAME
from ...store.base import Store
from ...types.commit import Change
from ...types.labels import Label
from ...types.marked_texts import mark_text
from ...types.messages import Usage

State = Literal["proposed", "refused", "accepted", "rejected", "reverted", "kept"]
"""`refused`: the scan found something bad in it. `kept`: it stays active and is not watched any
more, because it could not be taken out or a person put it back."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that an agent proposes. It comes from event `n` of `session`; `label` says whose word
    it is."""

    name: str
    description: str
    body: str
    agent: str
    session: str
    n: int
    label: Label
    writer: str = "reflection"


class Side(msgspec.Struct, frozen=True):
    """How a turn went with the skill, or without it. `solved`: it ended well, and its answer says
    what the recorded answer said."""

    solved: bool
    calls: int
    tokens: int
    steps: int


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """How one recorded turn went. `read` tells whether the skill was read in it, `unknown` counts
    the calls that have no recorded result."""

    session: str
    turn: int
    asked: str
    without: Side
    with_it: Side
    read: bool
    unknown: int


class Card(msgspec.Struct, frozen=True):
    """How a proposal did in replays. `why` says what stopped them early, or is ''."""

    at: float
    scores: tuple[Score, ...] = ()
    spent: Usage = Usage()
    why: str = ""


class StoredProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal and what became of it. `turns_before` and `bad_before` say how the last turns of
    its agent ended before it was accepted. Times are seconds since the epoch."""

    id: int
    agent: str
    name: str
    description: str
    body: str
    session: str
    n: int
    label: Label
    writer: str
    at: float
    state: State
    findings: tuple[ScanFinding, ...]
    card: Card | None
    decided_by: str
    decided_at: float | None
    why: str
    turns_before: int
    bad_before: int

    @property
    def untrusted(self) -> bool:
        return self.label.integrity == "untrusted"

    @property
    def doubt(self) -> str:
        """Why an owner must confirm that they have read all of it, in a sentence: whose word it may
        be besides an owner's. '' when it is nobody else's."""
        names = ", ".join(self.label.by)
        if not self.untrusted:
            by = mark_text("It was written on the word of {names}.")
            return by.format(names=names) if names else ""
        source = self.label.source or mark_text("something from outside")
        if names:
            both = mark_text("{source} and was written on the word of {names}")
            source = both.format(source=source, names=names)
        return mark_text("It was thought of in a conversation that had read {source_text}.").format(
            source_text=source
        )

    @property
    def file(self) -> str:
        """The path of the skill in the workspace."""
        return f"skills/{self.name}/{FILE_NAME}"

    @property
    def key(self) -> str:
        """The key of the entry in the undo journal that writes the skill."""
        return f"skill:{self.id}"


class SkillUse(msgspec.Struct, frozen=True):
    """A turn that read an accepted skill: it ended with event `n` at `at`. `bad`: it ended badly,
    and `why` says how."""

    session: str
    n: int
    at: float
    bad: bool
    why: str


class ProposalDecision(msgspec.Struct, frozen=True):
    """A decision about a proposal: by whom, when (seconds since the epoch), and why."""

    state: State
    by: str
    at: float
    why: str = ""


_encode = msgspec.json.encode
_decode_label = msgspec.json.Decoder(Label).decode
_decode_findings = msgspec.json.Decoder(tuple[ScanFinding, ...]).decode
_decode_card = msgspec.json.Decoder(Card).decode


# Proposals


async def list_proposals(store: Store, *, every: bool) -> list[StoredProposal]:
    """The last 200 proposals that wait for a person, or with `every` of any state. The latest
    first."""
    return [_parse(row) for row in await store.query("proposal_list", (int(every),))]


def list_waiting(store: Store) -> list[StoredProposal]:
    """The last 200 proposals that wait for a person, the latest first. Does not wait."""
    return [_parse(row) for row in store.query_sync("proposal_list", (0,))]


def find_proposal(store: Store, id_: int) -> StoredProposal | None:
    """The proposal with this id. Does not wait."""
    for row in store.query_sync("proposal_get", (id_,)):
        return _parse(row)
    return None


async def list_accepted(store: Store) -> list[StoredProposal]:
    """The accepted proposals, whose skills are active and watched, by id."""
    return [_parse(row) for row in await store.query("proposal_taken", ())]


async def proposals_moved_by_hand(store: Store) -> list[int]:
    """The ids of proposals whose skill a person took out or put back with undo and redo."""
    return [id_ for (id_,) in await store.query("proposal_moved", ())]


async def has_erased(store: Store) -> bool:
    """Whether a proposal comes from a session that was erased. Accepted ones do not count."""
    return bool(await store.query("proposal_erased", ()))


def add_row(
    proposal: Proposal, key: str, findings: tuple[ScanFinding, ...], state: State, at: float
) -> Change:
    """Store a proposal, once for its key. Does nothing when one of that name waits, was accepted or
    was rejected for this agent, or when 50 proposals are in that state."""
    row = (
        key,
        proposal.agent,
        proposal.name,
        proposal.description,
        proposal.body,
        proposal.session,
        proposal.n,
        _encode(proposal.label),
        proposal.writer,
        at,
        state,
        _encode(findings),
    )
    return Change("proposal_add", row)


def decide(id_: int, was: State, decision: ProposalDecision) -> Change:
    """Decide about a proposal. Changes no row when its state is not `was` any more."""
    return Change(
        "proposal_decide", (id_, decision.state, decision.by, decision.at, decision.why, was)
    )


def follow_undone() -> tuple[Change, ...]:
    """Mark the proposals whose skill was undone by hand as reverted, and those whose skill was put
    back as kept."""
    return Change("proposal_undone", ()), Change("proposal_redone", ())


def set_turns_before(id_: int, turns: int, bad: int) -> Change:
    """Remember how the agent's turns ended before the skill was accepted."""
    return Change("proposal_before", (id_, turns, bad))


def set_card(id_: int, card: Card) -> Change:
    """Store how a proposal did in replays. Does nothing when it has been decided."""
    return Change("proposal_card", (id_, _encode(card)))


def forget_erased() -> Change:
    """Delete the proposals that come from erased sessions, except accepted ones."""
    return Change("proposal_forget", ())


def approve_folder(path: str, digest: bytes, by: str, at: float, id_: int) -> Change:
    """Approve the real path of a skill's folder. Does nothing unless `by` has accepted the
    proposal."""
    return Change("approved_file_accepted", (path, digest, by, at, id_))


# Turns that used an accepted skill


async def skill_uses(store: Store, id_: int) -> list[SkillUse]:
    """The last 30 turns that read the skill, the latest first."""
    return [
        SkillUse(session, n, at, bool(bad), why)
        for session, n, at, bad, why in await store.query("skill_uses", (id_,))
    ]


def add_skill_use(id_: int, use: SkillUse) -> Change:
    """Note that a turn read the skill, once for each turn."""
    return Change("skill_use_add", (id_, use.session, use.n, use.at, int(use.bad), use.why))


def mark_uses_undone(session: str, n: int) -> Change:
    """A person rewound this session to event `n`: the turns after it ended badly."""
    return Change("skill_use_undone", (session, n))


def _parse(row: tuple[Any, ...]) -> StoredProposal:
    """A proposal from the columns that proposals.sql reads."""
    values = dict(zip(StoredProposal.__struct_fields__, row, strict=True))
    values["label"] = _decode_label(values["label"])
    values["findings"] = _decode_findings(values["findings"])
    values["card"] = _decode_card(values["card"]) if values["card"] else None
    return StoredProposal(**values)
