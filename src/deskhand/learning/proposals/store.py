"""Skills that agents propose: read, tried on recorded turns, and active only after a person said
yes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ...assembly.host import Host
from ...assembly.tools import skills_of
from ...skills.scan import ScanFinding, has_bad_finding, scan_skill
from ...skills.skill import FILE_NAME
from ...skills.write import render_skill_file
from ...tools.approved import digest_of_files
from ...tools.base import Context, Done, ToolScope, done, own
from ...tools.define import tool
from ...tools.notes import By
from ...tools.watched_folder import ground as where_is
from ...types.commit import Change
from ...types.effects import Effect
from ...types.errors import ConfigError, DeskhandError, Refused, ToolError
from ...types.events import AnyEvent, TurnEnded
from ...types.identity import Principal
from ...types.labels import Label
from ...types.messages import Usage, clean_text
from ...workspace.undo_journal import UndoJournal

State = Literal["proposed", "refused", "accepted", "rejected", "reverted", "kept"]
"""`refused`: by what stands in it. `kept`: it is not watched any more, since it could not be taken
out, or a person put it back."""
MAX_STORED_CHARS = 40_000
CUT_OFF_S = 60.0
"""What was taken in so long ago and is not written was cut off."""
LOCAL_WRITE: Effect = "local_write"


class Proposal(msgspec.Struct, frozen=True):
    """A skill as somebody would have it. It comes from event `n` of `session`, and is the word of
    its label."""

    name: str
    description: str
    body: str
    agent: str
    session: str
    n: int
    label: Label
    writer: str = "reflection"


class Side(msgspec.Struct, frozen=True):
    """How a turn went, without the skill or with it. `solved`: it ended well, with what its answer
    had then."""

    solved: bool
    calls: int
    tokens: int
    steps: int


class Score(msgspec.Struct, frozen=True):
    """One recorded turn. `read`: the skill was read in it; `unknown` counts calls that have no
    recorded result."""

    session: str
    turn: int
    asked: str
    without: Side
    with_it: Side
    read: bool
    unknown: int


class Card(msgspec.Struct, frozen=True):
    """How a proposal did in replays. `why` says what kept it from more."""

    at: float
    scores: tuple[Score, ...] = ()
    spent: Usage = Usage()
    why: str = ""


class Row(msgspec.Struct, frozen=True):
    """A proposal and what has become of it. `turns_before` and `bad_before` are how the turns of
    its agent ended before it was taken."""

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
        """Why an owner has to say that they have read it to its end, in a sentence: whose word it
        may be beside an owner's. '' where it is nobody else's."""
        found = []
        if self.untrusted:
            source = self.label.source or "something from outside"
            found.append(f"was thought of in a conversation that had read {source}")
        if self.label.by:
            found.append(f"was written on the word of {', '.join(self.label.by)}")
        return f"It {' and '.join(found)}." if found else ""

    @property
    def file(self) -> str:
        """Where it is written in the workspace."""
        return f"skills/{self.name}/{FILE_NAME}"

    @property
    def key(self) -> str:
        """The name of its effect."""
        return f"skill:{self.id}"


_decode_label = msgspec.json.Decoder(Label).decode
_decode_findings = msgspec.json.Decoder(tuple[ScanFinding, ...]).decode
_decode_card = msgspec.json.Decoder(Card).decode


def add_proposal(proposal: Proposal, at: float) -> tuple[Change, ...]:
    """The rows of a proposal: once for each (session, n, name), and none for a name that waits or
    was turned down. What plainly is bad is refused by that, and stands there for a person to see.
    Reading it takes a while: call it aside."""
    name = clean_text(proposal.name)[:200]
    description = " ".join(clean_text(proposal.description).split())[:MAX_STORED_CHARS]
    body = clean_text(proposal.body)[:MAX_STORED_CHARS]
    findings = scan_skill(proposal.name, proposal.description, proposal.body)
    key = f"{proposal.session}#{proposal.n}:{name}"
    whose = (proposal.session, proposal.n, msgspec.json.encode(proposal.label), proposal.writer)
    state = "refused" if has_bad_finding(findings) else "proposed"
    row = (
        key,
        proposal.agent,
        name,
        description,
        body,
        *whose,
        at,
        state,
        msgspec.json.encode(findings),
    )
    return (Change("proposal_add", row),)


@tool(effect=LOCAL_WRITE, replay="commit")
async def propose_skill(name: str, description: str, body: str, context: Context) -> Done:
    """Propose a skill for the next times: how something is done that took several steps and will be
    wanted again. It is tried on what was said, and a person decides. Say that you have proposed it.

    name: lower case letters, digits and hyphens
    description: when it is to be used, in a sentence
    body: the instructions, in Markdown: the steps, and what to look out for
    """
    findings = await anyio.to_thread.run_sync(scan_skill, name, description, body)
    if has_bad_finding(findings):
        why = "; ".join(each.words for each in findings if each.severity == "bad")
        raise ToolError(f"this is no skill that can be proposed: {why}")
    made = re.match(r".*#(\d+)\.", context.key, re.DOTALL)
    proposal = Proposal(
        name,
        description,
        body,
        context.agent,
        context.session,
        int(made[1]) if made else 0,
        context.label,
        "tool",
    )
    words = (
        f"ok, {name} is proposed, if it was not turned down before; `deskhand skills proposals` "
        "shows it"
    )
    said = done(words, own(context))
    rows = await anyio.to_thread.run_sync(add_proposal, proposal, context.clock.now())
    return replace(said, changes=rows)


class Proposals:
    """The proposals of a home."""

    def __init__(self, ground: Host) -> None:
        self._ground = ground

    async def list_proposals(self, *, every: bool = False) -> list[Row]:
        """Those that wait for a person, or all; the latest first."""
        return [
            parse_proposal_row(row)
            for row in await self._ground.store.query("proposal_list", (int(every),))
        ]

    async def get(self, id_: int) -> Row:
        """Raises Refused where there is none."""
        rows = await self._ground.store.query("proposal_get", (id_,))
        if not rows:
            raise Refused(
                f"there is no proposal {id_}; `deskhand skills proposals --all` lists them"
            )
        return parse_proposal_row(rows[0])

    def list_proposals_sync(self, id_: int = 0) -> list[Row]:
        """Those that wait, or this one, for who cannot wait."""
        look = self._ground.store.query_sync
        found = look("proposal_get", (id_,)) if id_ else look("proposal_list", (0,))
        return [parse_proposal_row(row) for row in found]

    async def list_active(self) -> list[Row]:
        """Those that are active."""
        return [
            parse_proposal_row(row) for row in await self._ground.store.query("proposal_taken", ())
        ]

    async def check(self, row: Row) -> tuple[ScanFinding, ...]:
        """What stands in it, by what is known now. Raises ConfigError where its agent is gone."""
        found = skills_of(self._ground.settings(), row.agent)

        def rescan() -> tuple[ScanFinding, ...]:
            return scan_skill(row.name, row.description, row.body, frozenset(found.find()))

        return await anyio.to_thread.run_sync(rescan)

    async def accept(self, id_: int, who: Principal, *, untrusted: bool = False) -> Row:
        """Make it a skill of its agent, as a change that can be undone. Only an owner may, and only
        one that waits and has nothing bad in it; with `untrusted` also one that comes from what was
        read outside, or from somebody below an owner. Raises Refused, ConfigError, ToolError."""
        row = await self.get(id_)
        ground = self._ground
        if "owner" not in who.roles:
            raise Refused("only an owner may take a skill in")
        if row.state != "proposed":
            raise Refused(f"proposal {id_} ({row.name}) is not open: it is {row.state}")
        wrong = [each for each in await self.check(row) if each.severity == "bad"]
        if wrong:
            raise Refused(f"{row.name} is not taken: {'; '.join(each.words for each in wrong)}")
        if row.doubt and not untrusted:
            raise Refused(
                f"{row.name} is not taken without a further word. {row.doubt} Read it to its end"
                f" (deskhand skills show {id_}), then: deskhand skills accept {id_} --untrusted"
            )
        text = render_skill_file(row.name, row.description, row.body)
        now = ground.clock.now()
        folder = await self._folder(row)
        bound = (
            Change(
                "approved_file_accepted", (folder, compute_skill_digest(text), who.id, now, row.id)
            ),
        )
        if not await self._decide(row, "accepted", who.id, rows=bound):
            raise Refused(f"somebody else has just decided about proposal {id_}")
        try:
            rows = await self._write(row, text, who, now)
        except (ToolError, ConfigError, OSError):
            unbound = (Change("approved_file_drop", (folder,)),)
            await self._decide(replace(row, state="accepted"), "proposed", "", rows=unbound)
            raise
        before = Change("proposal_before", (row.id, *await self._count_turns_before(row.agent)))
        await ground.store.change((*rows, before))
        return await self.get(id_)

    async def _write(self, row: Row, text: bytes, who: Principal, now: float) -> tuple[Change, ...]:
        reach = await self._open_scope(row)
        by = By(
            row.key,
            row.agent,
            row.session,
            who.on_behalf_of or who.id,
            "accept_skill",
            row.file,
            now,
        )

        def write() -> None:
            folder = row.file.rpartition("/")[0]
            try:
                reach.files.stat(folder)
            except ToolError:
                reach.files.write(row.file, text)
                return
            raise ToolError(
                f"there is a {folder} already, and what lies in it would become a part of the skill"
            )

        where, place = where_is(reach, row.file)
        _, looked, one = await anyio.to_thread.run_sync(where.change, by, place, write)
        where.leave(one)
        real = f"{where.real}/{place}"
        return (*looked.rows, Change("file_label_drop", (real,)))

    async def _folder(self, row: Row) -> str:
        """The real path of the folder of its skill. Raises ConfigError."""
        where, place = where_is(await self._open_scope(row), row.file)
        return f"{where.real}/{place.rpartition('/')[0]}"

    async def _drop_approval(self, row: Row) -> tuple[Change, ...]:
        """The row by which nothing is approved of its folder any more."""
        try:
            return (Change("approved_file_drop", (await self._folder(row),)),)
        except (ConfigError, ToolError):
            return ()

    async def _open_scope(self, row: Row) -> ToolScope:
        """The files of its agent. Raises ConfigError where that is gone."""
        if row.agent not in self._ground.settings().agents:
            raise ConfigError(f"the agent {row.agent} is gone")
        return await self._ground.agent_of(f"{row.agent}/").open_scope()

    async def _count_turns_before(self, agent: str) -> tuple[int, int]:
        """How the last turns of this agent ended: how many, and how many of them badly."""
        owner = Principal("owner", ("owner",))
        latest = await self._ground.store.latest_events(owner, ("turn_ended",), 500)
        ends = [each.event for each in latest if each.session.partition("/")[0] == agent][-50:]
        return len(ends), sum(ended_badly(event) for event in ends)

    async def reject(self, id_: int, who: Principal, why: str = "") -> Row:
        """Turn it down: nothing of its name is proposed again. Raises Refused."""
        row = await self.get(id_)
        if "owner" not in who.roles:
            raise Refused("only an owner may turn a proposal down")
        if row.state not in ("proposed", "refused") or not await self._decide(
            row, "rejected", who.id, why
        ):
            raise Refused(f"proposal {id_} ({row.name}) is not open: it is {row.state}")
        return await self.get(id_)

    async def revert(self, id_: int, who: Principal) -> Row:
        """Take out what was taken in. Raises Refused where it is not in, or was changed by hand
        since."""
        row = await self.get(id_)
        if "owner" not in who.roles:
            raise Refused("only an owner may take a skill out")
        if row.state not in ("accepted", "kept"):
            raise Refused(f"proposal {id_} ({row.name}) was not taken in: it is {row.state}")
        if not await self._undo_write(row):
            raise Refused(
                f"{row.file} was changed since {row.name} was taken in, so it stays: change "
                "or remove it there"
            )
        await self._decide(
            row, "reverted", who.id, "a person took it out", await self._drop_approval(row)
        )
        return await self.get(id_)

    async def auto_revert(self, row: Row, why: str) -> Row:
        """Undo that it was taken in. Where it was changed since, it stays as it is, and is not
        watched any more."""
        try:
            state = "reverted" if await self._undo_write(row) else "kept"
        except (DeskhandError, OSError) as error:
            state = "kept"
            why = f"{why}; it could not be taken out: {error}"
        gone = await self._drop_approval(row) if state == "reverted" else ()
        await self._decide(row, state, "deskhand", why, gone)
        return await self.get(row.id)

    async def _undo_write(self, row: Row) -> bool:
        """Take its file out. False where it is not what was taken in. Raises DeskhandError,
        OSError."""
        ground = self._ground
        effects = UndoJournal(
            ground.store,
            lambda agent: ground.agent_of(f"{agent}/").open_scope(),
            ground.clock,
            ground.ids,
        )
        system = Principal("deskhand", ("owner",), "system")
        rows = await ground.store.query("effect_known", (row.key,))
        if not rows:  # the journal keeps nothing for ever
            return await self._remove_file(row)
        effect = await effects.get(system, rows[0][0])
        return effect.undone_at is not None or (await effects.undo(system, effect)).undo is not None

    async def _remove_file(self, row: Row) -> bool:
        reach = await self._open_scope(row)
        text = render_skill_file(row.name, row.description, row.body)
        key = self._ground.ids.new("undo")
        by = By(key, row.agent, row.session, "deskhand", "undo", row.file, self._ground.clock.now())

        def remove() -> bool:
            try:
                there = reach.files.read(row.file, len(text) + 1)
            except ToolError:
                return True
            if there == text:
                reach.files.remove(row.file)
            return there == text

        where, place = where_is(reach, row.file)
        out, looked, one = await anyio.to_thread.run_sync(where.change, by, place, remove)
        where.leave(one)
        await self._ground.store.change(looked.rows)
        return out

    async def reconcile(self) -> None:
        """See what became of those that were taken in: undone or put back by hand, or cut off
        before they were written."""
        store = self._ground.store
        now = self._ground.clock.now()
        if moved := await store.query("proposal_moved", ()):
            bound = [
                each
                for (id_,) in moved
                for each in await self._approval_changes(await self.get(id_), now)
            ]
            await store.change(
                [Change("proposal_undone", ()), Change("proposal_redone", ()), *bound]
            )
        for row in await self.list_active():
            if row.turns_before or (row.decided_at or now) > now - CUT_OFF_S:
                continue
            if not await store.query("effect_known", (row.key,)) and not await self._is_written(
                row
            ):
                await self._decide(row, "proposed", "", rows=await self._drop_approval(row))

    async def _approval_changes(self, row: Row, now: float) -> tuple[Change, ...]:
        """What is approved after its change was undone, or put back."""
        try:
            folder, text = (
                await self._folder(row),
                render_skill_file(row.name, row.description, row.body),
            )
        except (ConfigError, ToolError):
            return ()
        if row.state == "accepted":
            return (Change("approved_file_drop", (folder,)),)
        return (
            Change(
                "approved_file_set",
                (folder, compute_skill_digest(text), row.decided_by or "owner", now),
            ),
        )

    async def _is_written(self, row: Row) -> bool:
        try:
            reach = await self._open_scope(row)
            await anyio.to_thread.run_sync(reach.files.stat, row.file)
        except (ToolError, ConfigError):
            return False
        return True

    async def save_card(self, row: Row, card: Card) -> None:
        """Remember how it did in replays."""
        await self._ground.store.change(
            [Change("proposal_card", (row.id, msgspec.json.encode(card)))]
        )

    async def _decide(
        self, row: Row, state: str, by: str, why: str = "", rows: Sequence[Change] = ()
    ) -> bool:
        """Note it, with `rows` in the same transaction."""
        decided = (row.id, state, by, self._ground.clock.now(), clean_text(why)[:1000], row.state)
        return (await self._ground.store.change([Change("proposal_decide", decided), *rows]))[
            0
        ] == 1


def compute_skill_digest(text: bytes) -> bytes:
    """Of the folder of a skill that is only its SKILL.md."""
    return digest_of_files({FILE_NAME: sha256(text).digest()})


def ended_badly(event: AnyEvent) -> bool:
    """Whether a turn that ended so did not come to an answer of its own."""
    return not (isinstance(event, TurnEnded) and event.reason == "done")


def parse_proposal_row(row: tuple[Any, ...]) -> Row:
    """A row of the database as it is read here."""
    values = list(row)
    values[7], values[11], values[12] = (
        _decode_label(row[7]),
        _decode_findings(row[11]),
        _decode_card(row[12]) if row[12] else None,
    )
    return Row(*values)
