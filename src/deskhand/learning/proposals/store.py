"""Proposed skills: scanned, tried on recorded turns, and active only when a person accepts them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

import anyio.to_thread
from msgspec.structs import replace

from ...assembly.host import Host
from ...assembly.tools import skills_of
from ...skills.scan import ScanFinding, has_bad_finding, scan_skill
from ...skills.skill import FILE_NAME
from ...skills.write import render_skill_file
from ...tools.approved import digest_of_files
from ...tools.base import Context, Done, ToolScope, call_label, make_result
from ...tools.define import tool
from ...tools.journal import find_entry_number
from ...tools.notes import By
from ...tools.queries import approve, drop_approval, drop_label
from ...tools.watched_folder import find_watched_folder as where_is
from ...types.commit import Change
from ...types.effects import Effect
from ...types.errors import ConfigError, DeskhandError, Refused, ToolError
from ...types.events import AnyEvent, TurnEnded
from ...types.identity import Principal
from ...types.marked_texts import mark_text
from ...types.messages import clean_text
from ...workspace.undo_journal import UndoJournal
from . import queries
from .queries import Card, Proposal, ProposalDecision, State, StoredProposal

MAX_STORED_CHARS = 40_000
CUT_OFF_S = 60.0
"""An accepted skill whose file is missing for so long was cut off by a crash."""
LOCAL_WRITE: Effect = "local_write"


def add_proposal(proposal: Proposal, at: float) -> tuple[Change, ...]:
    """The changes that store a proposal: once for each (session, n, name), and none for a name that
    waits or was rejected. One in which the scan finds something bad is stored as refused, for a
    person to see. The scan takes a while: call it in a thread."""
    findings = scan_skill(proposal.name, proposal.description, proposal.body)
    state: State = "refused" if has_bad_finding(findings) else "proposed"
    clean = replace(
        proposal,
        name=clean_text(proposal.name)[:200],
        description=" ".join(clean_text(proposal.description).split())[:MAX_STORED_CHARS],
        body=clean_text(proposal.body)[:MAX_STORED_CHARS],
    )
    key = f"{clean.session}#{clean.n}:{clean.name}"
    return (queries.add_row(clean, key, findings, state, at),)


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
        name=name,
        description=description,
        body=body,
        agent=context.agent,
        session=context.session,
        n=int(made[1]) if made else 0,
        label=context.label,
        writer="tool",
    )
    words = (
        f"ok, {name} is proposed, if it was not turned down before; `deskhand skills proposals` "
        "shows it"
    )
    said = make_result(words, call_label(context))
    changes = await anyio.to_thread.run_sync(add_proposal, proposal, context.clock.now())
    return replace(said, changes=changes)


class Proposals:
    """The proposed skills of this home, and what an owner can do about them."""

    def __init__(self, ground: Host) -> None:
        self._ground = ground

    async def list_proposals(self, *, every: bool = False) -> list[StoredProposal]:
        """Those that wait for a person, or with `every` all; the latest first."""
        return await queries.list_proposals(self._ground.store, every=every)

    async def get(self, id_: int) -> StoredProposal:
        """Raises Refused when there is none with this id."""
        found = queries.find_proposal(self._ground.store, id_)
        if found is None:
            raise Refused(f"no proposal {id_}; list all with: deskhand skills proposals --all")
        return found

    async def check(self, proposal: StoredProposal) -> tuple[ScanFinding, ...]:
        """Scan the proposal again, with the skills that its agent has now. Raises ConfigError when
        the agent is gone."""
        skills = skills_of(self._ground.settings(), proposal.agent)

        def scan() -> tuple[ScanFinding, ...]:
            taken_names = frozenset(skills.find())
            return scan_skill(proposal.name, proposal.description, proposal.body, taken_names)

        return await anyio.to_thread.run_sync(scan)

    # Decisions of a person

    async def accept(self, id_: int, who: Principal, *, untrusted: bool = False) -> StoredProposal:
        """Make a proposal a skill of its agent, as a change that can be undone.

        Only an owner may, and only when it waits and nothing bad is in it. One that comes from what
        was read outside, or from somebody below an owner, also needs `untrusted`. Raises Refused,
        ConfigError, ToolError.
        """
        proposal = await self.get(id_)
        await self._check_acceptable(proposal, who, untrusted)

        text = _render_file(proposal)
        now = self._ground.clock.now()
        folder = await self._folder(proposal)
        approval = queries.approve_folder(folder, compute_skill_digest(text), who.id, now, id_)
        if not await self._decide(proposal, "accepted", who.id, more=[approval]):
            raise Refused(
                mark_text("somebody else has just decided about proposal {id}").format(id=id_)
            )
        try:
            changes = await self._write(proposal, text, who, now)
        except (ToolError, ConfigError, OSError):
            accepted = replace(proposal, state="accepted")
            await self._decide(accepted, "proposed", "", more=[drop_approval(folder)])
            raise
        turns, bad = await self._count_turns_before(proposal.agent)
        await self._ground.store.change([*changes, queries.set_turns_before(id_, turns, bad)])
        return await self.get(id_)

    async def _check_acceptable(
        self, proposal: StoredProposal, who: Principal, untrusted: bool
    ) -> None:
        """Raises Refused when the proposal cannot be accepted, ConfigError when its agent is
        gone."""
        id_ = proposal.id
        if "owner" not in who.roles:
            raise Refused(mark_text("only an owner can accept a skill"))
        if proposal.state != "proposed":
            raise Refused(f"proposal {id_} ({proposal.name}) is {proposal.state} already")
        bad = [each.words for each in await self.check(proposal) if each.severity == "bad"]
        if bad:
            raise Refused(
                mark_text("{name} cannot be accepted: {problem_text}").format(
                    name=proposal.name, problem_text="; ".join(bad)
                )
            )
        if proposal.doubt and not untrusted:
            raise Refused(
                f"{proposal.name} needs a confirmation. {proposal.doubt} Read all of it "
                f"(deskhand skills show {id_}), then run: deskhand skills accept {id_} --untrusted"
            )

    async def reject(self, id_: int, who: Principal, why: str = "") -> StoredProposal:
        """Reject a proposal: nothing of its name is proposed again. Raises Refused."""
        proposal = await self.get(id_)
        if "owner" not in who.roles:
            raise Refused(mark_text("only an owner can reject a proposal"))
        is_open = proposal.state in ("proposed", "refused")
        if not is_open or not await self._decide(proposal, "rejected", who.id, why):
            raise Refused(f"proposal {id_} ({proposal.name}) is {proposal.state} already")
        return await self.get(id_)

    async def revert(self, id_: int, who: Principal) -> StoredProposal:
        """Remove an accepted skill. Raises Refused when it was not accepted, or was edited
        since."""
        proposal = await self.get(id_)
        if "owner" not in who.roles:
            raise Refused(mark_text("only an owner can remove a skill"))
        if proposal.state not in ("accepted", "kept"):
            raise Refused(
                f"proposal {id_} ({proposal.name}) is {proposal.state}: only an accepted skill can "
                "be removed"
            )
        if not await self._undo_write(proposal):
            raise Refused(
                mark_text(
                    "{name} was edited since {id} was accepted, so it stays: edit or remove it "
                    "there"
                ).format(name=proposal.file, id=proposal.name)
            )
        gone = await self._drop_approval(proposal)
        await self._decide(proposal, "reverted", who.id, "a person took it out", more=gone)
        return await self.get(id_)

    # What Deskhand does by itself

    async def auto_revert(self, proposal: StoredProposal, why: str) -> StoredProposal:
        """Remove an accepted skill. If its file was edited since, or removing it fails, it stays
        active and is not watched any more."""
        state: State = "kept"
        try:
            if await self._undo_write(proposal):
                state = "reverted"
        except (DeskhandError, OSError) as error:
            why = f"{why}; it could not be taken out: {error}"
        gone = await self._drop_approval(proposal) if state == "reverted" else ()
        await self._decide(proposal, state, "deskhand", why, more=gone)
        return await self.get(proposal.id)

    async def reconcile(self) -> None:
        """Follow what happened to accepted skills: undone or put back by hand, or cut off before
        the file was written."""
        store = self._ground.store
        now = self._ground.clock.now()
        if moved := await queries.proposals_moved_by_hand(store):
            changes = [*queries.follow_undone()]
            for id_ in moved:
                changes += await self._approval_changes(await self.get(id_), now)
            await store.change(changes)

        for proposal in await queries.list_accepted(store):
            if proposal.turns_before or (proposal.decided_at or now) > now - CUT_OFF_S:
                continue
            if await find_entry_number(store, proposal.key) is not None:
                continue
            if not await self._is_written(proposal):
                gone = await self._drop_approval(proposal)
                await self._decide(proposal, "proposed", "", more=gone)

    async def save_card(self, proposal: StoredProposal, card: Card) -> None:
        """Store how a proposal did in replays."""
        await self._ground.store.change([queries.set_card(proposal.id, card)])

    # The file of the skill

    async def _write(
        self, proposal: StoredProposal, text: bytes, who: Principal, now: float
    ) -> tuple[Change, ...]:
        """Write the file. Returns the changes for the undo journal. Raises ToolError when its
        folder exists already."""
        reach = await self._open_scope(proposal)
        by = By(
            proposal.key,
            proposal.agent,
            proposal.session,
            who.on_behalf_of or who.id,
            "accept_skill",
            proposal.file,
            now,
        )

        def write() -> None:
            folder = proposal.file.rpartition("/")[0]
            try:
                reach.files.stat(folder)
            except ToolError:
                reach.files.write(proposal.file, text)
                return
            raise ToolError(
                f"there is a {folder} already, and what lies in it would become a part of the skill"
            )

        where, place = where_is(reach, proposal.file)
        _, looked, one = await anyio.to_thread.run_sync(where.change_file, by, place, write)
        where.release(one)
        return (*looked.rows, drop_label(f"{where.real}/{place}"))

    async def _undo_write(self, proposal: StoredProposal) -> bool:
        """Remove the file. False when it was edited since it was accepted. Raises DeskhandError,
        OSError."""
        ground = self._ground
        effects = UndoJournal(
            ground.store,
            lambda agent: ground.agent_of(f"{agent}/").workspace.open_scope(),
            ground.clock,
            ground.ids,
        )
        system = Principal("deskhand", ("owner",), "system")
        number = await find_entry_number(ground.store, proposal.key)
        if number is None:  # the journal does not keep entries for ever
            return await self._remove_file(proposal)
        effect = await effects.get(system, number)
        if effect.undone_at is not None:
            return True
        return (await effects.undo(system, effect)).undo is not None

    async def _remove_file(self, proposal: StoredProposal) -> bool:
        reach = await self._open_scope(proposal)
        text = _render_file(proposal)
        by = By(
            self._ground.ids.new("undo"),
            proposal.agent,
            proposal.session,
            "deskhand",
            "undo",
            proposal.file,
            self._ground.clock.now(),
        )

        def remove() -> bool:
            try:
                there = reach.files.read(proposal.file, len(text) + 1)
            except ToolError:
                return True
            if there == text:
                reach.files.remove(proposal.file)
            return there == text

        where, place = where_is(reach, proposal.file)
        removed, looked, one = await anyio.to_thread.run_sync(where.change_file, by, place, remove)
        where.release(one)
        await self._ground.store.change(looked.rows)
        return removed

    async def _is_written(self, proposal: StoredProposal) -> bool:
        try:
            reach = await self._open_scope(proposal)
            await anyio.to_thread.run_sync(reach.files.stat, proposal.file)
        except (ToolError, ConfigError):
            return False
        return True

    async def _open_scope(self, proposal: StoredProposal) -> ToolScope:
        """The files of its agent. Raises ConfigError when the agent is gone."""
        if proposal.agent not in self._ground.settings().agents:
            raise ConfigError(f"the agent {proposal.agent!r} is gone")
        return await self._ground.agent_of(f"{proposal.agent}/").workspace.open_scope()

    # The approval of its folder

    async def _folder(self, proposal: StoredProposal) -> str:
        """The real path of the skill's folder. Raises ConfigError."""
        where, place = where_is(await self._open_scope(proposal), proposal.file)
        return f"{where.real}/{place.rpartition('/')[0]}"

    async def _drop_approval(self, proposal: StoredProposal) -> tuple[Change, ...]:
        """The change that takes the approval of the skill's folder back."""
        try:
            return (drop_approval(await self._folder(proposal)),)
        except (ConfigError, ToolError):
            return ()

    async def _approval_changes(self, proposal: StoredProposal, now: float) -> tuple[Change, ...]:
        """The changes after the writing of the skill was undone by hand, or put back."""
        try:
            folder = await self._folder(proposal)
        except (ConfigError, ToolError):
            return ()
        if proposal.state == "accepted":
            return (drop_approval(folder),)
        digest = compute_skill_digest(_render_file(proposal))
        return (approve(folder, digest, proposal.decided_by or "owner", now),)

    # Notes

    async def _count_turns_before(self, agent: str) -> tuple[int, int]:
        """The number of this agent's last turns, at most 50, and how many of them ended badly."""
        owner = Principal("owner", ("owner",))
        latest = await self._ground.store.latest_events(owner, ("turn_ended",), 500)
        ends = [each.event for each in latest if each.session.partition("/")[0] == agent][-50:]
        return len(ends), sum(ended_badly(event) for event in ends)

    async def _decide(
        self,
        proposal: StoredProposal,
        state: State,
        by: str,
        why: str = "",
        *,
        more: Sequence[Change] = (),
    ) -> bool:
        """Store a decision together with `more`. False when somebody else has decided first; `more`
        is written all the same."""
        decision = ProposalDecision(state, by, self._ground.clock.now(), clean_text(why)[:1000])
        change = queries.decide(proposal.id, proposal.state, decision)
        counts = await self._ground.store.change([change, *more])
        return counts[0] == 1


def compute_skill_digest(text: bytes) -> bytes:
    """The digest of a skill's folder that holds only its SKILL.md."""
    return digest_of_files({FILE_NAME: sha256(text).digest()})


def ended_badly(event: AnyEvent) -> bool:
    """Whether a turn that ended with this event gave no answer of its own."""
    return not (isinstance(event, TurnEnded) and event.reason == "done")


def _render_file(proposal: StoredProposal) -> bytes:
    return render_skill_file(proposal.name, proposal.description, proposal.body)
