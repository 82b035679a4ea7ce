"""Skills that are proposed: none is active without a person's yes, and what does worse is taken out
again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from deskhand.agent.state import State
from deskhand.channels.rich_text import render_markdown
from deskhand.learning.proposals.queries import Proposal, StoredProposal
from deskhand.learning.proposals.review import (
    Reviewing,
    find_read_skills,
    is_worse,
    render_proposal,
    render_verdict,
)
from deskhand.learning.proposals.store import add_proposal, propose_skill
from deskhand.models.base import Request
from deskhand.runtime.app import OWNER
from deskhand.skills.settings import SkillsReview
from deskhand.skills.write import render_skill_file
from deskhand.testing.bad_skills import BAD, GOOD, BadSkill
from deskhand.testing.conversations import Conversations
from deskhand.testing.obedient import CONTINUE
from deskhand.testing.person import PersonTalk, no
from deskhand.testing.scripted import say
from deskhand.tools.documents.invisible_characters import escape_invisible
from deskhand.types import events as e
from deskhand.types.commands import COMMANDS
from deskhand.types.commit import Change, Commit
from deskhand.types.errors import ModelRequestRefused, Refused, ToolError
from deskhand.types.identity import EVERYBODY, Address, Command, Inbound, Principal, Waiting
from deskhand.types.labels import LOCAL, UNTRUSTED, Label
from deskhand.types.messages import Message, ResultStatus, Text, ToolCall, ToolResult

BODY = "Read notes.md, then say what the weather was.\n"
MEMBER = Principal("bob", ("member",))


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(f"c_{name}", name, msgspec.Raw(msgspec.json.encode(arguments)))


def reading(request: Request) -> Message:
    """Reads the skill where it is told of one, else looks into the folder first; then reads the
    notes and answers."""
    made = [each.name for shown in request.messages for each in shown.message.calls]
    first = "read_skill" if "weather-notes:" in "".join(request.system) else "list_files"
    if first not in made:
        return say(
            "",
            call("read_skill", skill="weather-notes")
            if first == "read_skill"
            else call("list_files"),
        )
    if "read_file" not in made:
        return say("", call("read_file", path="notes.md"))
    return say("It was rain, at 21.5 degrees.")


TEXTS = st.text(st.sampled_from("ab `~*_[]()<>!#|\\\n:/.&\u202e\u200b"), max_size=60)


@given(TEXTS, TEXTS)
@example("[the manual](https://evil.example/do)\n\n[//]: # (hidden)", "`` ` ``")
@example("```\n````\n~~~", "<!-- x -->")
def test_a_skill_is_shown_to_its_last_character(body: str, description: str) -> None:
    """What a channel makes of it for a chat has all of it, whatever it is in Markdown, and whose
    word it is."""
    row = StoredProposal(
        id=3,
        agent="default",
        name="tidy",
        description=" ".join(description.split()),
        body=f"{body}\n.",
        session="default/telegram:1:77",
        n=9,
        label=Label("tool_local", by=("bob",)),
        writer="tool",
        at=0.0,
        state="proposed",
        findings=(),
        card=None,
        decided_by="",
        decided_at=None,
        why="",
        turns_before=0,
        bad_before=0,
    )
    rich = render_markdown(render_proposal(row))
    said = rich.text
    assert escape_invisible(f"{body}\n.").rstrip() in said and "bob" in said
    assert " ".join(escape_invisible(row.description).split()) in said
    assert not [span for span in rich.spans if span.kind not in ("code", "pre")]


class House:
    """A running Deskhand in which something was said about the weather."""

    def __init__(self, one: Conversations, talk: PersonTalk) -> None:
        self.one = one
        self.talk = talk
        self.reviewing: Reviewing = one.app.features.reviewing
        self.proposals = self.reviewing.proposals

    async def propose(
        self, name: str = "weather-notes", label: Label = LOCAL, body: str = BODY, n: int = 1
    ) -> StoredProposal:
        proposal = Proposal(
            name=name,
            description="How to note the weather.",
            body=body,
            agent="default",
            session=self.talk.session,
            n=n,
            label=label,
        )
        await self.one.app.store.change(add_proposal(proposal, 1.0))
        return (await self.proposals.list_proposals(every=True))[0]

    def active(self) -> set[str]:
        """The skills that the agent is told of."""
        return {path.parent.name for path in self.one.work.rglob("SKILL.md")} - {"deskhand-help"}

    async def use(self, name: str, *, well: bool) -> None:
        """A turn that reads the skill, and ends well or badly."""

        def script(request: Request) -> Message:
            if not any(shown.message.calls for shown in request.messages):
                return say("", call("read_skill", skill="weather-notes"))
            if not well:
                raise ModelRequestRefused("no")
            return say("Fine.")

        await self.one.hold(name, "Again.", script, no)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    one = Conversations(tmp_path / "h", config={"skills_review": {"replay": False}})
    async with one.running():
        one.work.mkdir(parents=True, exist_ok=True)
        (one.work / "notes.md").write_text("rain\n")
        talk = await one.hold("a", "What was the weather?", reading, no)
        assert talk.said == "It was rain, at 21.5 degrees."
        one.model.script = reading
        one.model.requests.clear()
        yield House(one, talk)


@pytest.mark.parametrize("skills", [BAD[:35], BAD[35:]], ids=("some", "others"))
async def test_no_bad_skill_becomes_active(house: House, skills: tuple[BadSkill, ...]) -> None:
    before = written(house)
    assert len(skills) > 20
    for n, skill in enumerate(skills):
        proposal = Proposal(
            name=skill.name,
            description=skill.description,
            body=skill.body,
            agent="default",
            session=house.talk.session,
            n=n,
            label=LOCAL,
        )
        await house.one.app.store.change(add_proposal(proposal, 1.0))
        row = (await house.proposals.list_proposals(every=True))[0]
        assert (
            row.n == n and row.state == "refused" and not await house.proposals.list_proposals()
        ), skill.why
        with pytest.raises(Refused, match="is refused already"):
            await house.proposals.accept(row.id, OWNER)
        # Whatever let it wait all the same: it is read again before it is written.
        await house.one.app.store.change(
            [Change("proposal_decide", (row.id, "proposed", "", 1.0, "", "refused"))]
        )
        with pytest.raises(Refused, match="cannot be accepted"):
            await house.proposals.accept(row.id, OWNER, untrusted=True)
        await house.one.app.store.change(
            [Change("proposal_decide", (row.id, "refused", "", 1.0, "", "proposed"))]
        )
        assert written(house) == before, skill.why


def written(house: House) -> set[Path]:
    """The files of instructions that there are anywhere."""
    return {path for path in house.one.work.parent.parent.rglob("*") if path.suffix == ".md"}


@pytest.mark.parametrize("skill", GOOD[:3], ids=lambda skill: skill.name)
async def test_a_yes_makes_it_a_skill_and_undo_takes_it_back(house: House, skill) -> None:  # type: ignore[no-untyped-def]
    proposal = Proposal(
        name=skill.name,
        description=skill.description,
        body=skill.body,
        agent="default",
        session=house.talk.session,
        n=1,
        label=LOCAL,
    )
    await house.one.app.store.change(add_proposal(proposal, 1.0))
    (row,) = await house.proposals.list_proposals()
    assert house.active() == set(), "a proposal is no skill"
    with pytest.raises(Refused, match="only an owner"):
        await house.proposals.accept(row.id, MEMBER)
    row = await house.proposals.accept(row.id, OWNER)
    assert row.state == "accepted" and row.decided_by == "owner" and house.active() == {skill.name}
    assert skill.body.strip() in (house.one.work / row.file).read_text()
    effects = house.one.app.tool_wiring.effects
    (effect,) = [each for each in await effects.timeline(OWNER) if each.tool == "accept_skill"]
    assert effect.what == row.file and effect.person == "owner"
    await effects.undo(OWNER, effect)
    assert house.active() == set()


async def test_what_was_read_outside_is_told_and_does_nothing_by_itself(house: House) -> None:
    label = Label("untrusted", source="https://a.example")
    row = await house.propose(label=label)
    config = msgspec.structs.replace(house.one.app.settings.config, skills_review=SkillsReview())
    house.one.app.current.settings = msgspec.structs.replace(house.one.app.settings, config=config)
    await house.reviewing.run_due()
    assert (await house.proposals.get(row.id)).card is None and not house.one.model.requests
    with pytest.raises(Refused, match=r"had read https://a\.example.*--untrusted"):
        await house.proposals.accept(row.id, OWNER)
    assert house.active() == set()
    await house.proposals.accept(row.id, OWNER, untrusted=True)
    assert house.active() == {"weather-notes"}


async def test_it_is_made_once_and_not_again_after_a_no(house: House) -> None:
    row = await house.propose()
    assert (await house.propose()).id == row.id and len(
        await house.proposals.list_proposals(every=True)
    ) == 1
    assert (await house.propose(n=2)).id == row.id, "one of this name waits already"
    await house.proposals.reject(row.id, OWNER, "too special")
    await house.propose(n=3)
    (only,) = await house.proposals.list_proposals(every=True)
    assert (only.state, only.why) == (
        "rejected",
        "too special",
    ) and not await house.proposals.list_proposals()
    with pytest.raises(Refused):
        await house.proposals.accept(row.id, OWNER)


async def test_a_name_that_came_meanwhile_is_not_overwritten(house: House) -> None:
    row = await house.propose()
    own = house.one.work / row.file
    own.parent.mkdir(parents=True)
    own.write_text("---\nname: weather-notes\ndescription: mine\n---\nmine\n")
    with pytest.raises(Refused, match="a skill has this name already"):
        await house.proposals.accept(row.id, OWNER)
    assert (
        own.read_text().endswith("mine\n")
        and (await house.proposals.get(row.id)).state == "proposed"
    )


async def test_it_is_tried_on_recorded_turns(house: House) -> None:
    row = await house.propose()
    card = await house.reviewing.try_out(row)
    (score,) = card.scores
    assert score.read and score.with_it.solved and score.without.solved and score.unknown == 0
    assert (score.without.calls, score.with_it.calls) == (2, 2)
    assert card.spent.input_tokens == 30 and (await house.proposals.get(row.id)).card == card
    assert render_verdict(card) == (
        "Tried on 1 recorded turn: 1 solved as well with it, 1 read it; 60 tokens with it, "
        "60 without."
    )
    assert house.active() == set()
    house.one.model.script = lambda request: say("I do not know.")
    (score,) = (await house.reviewing.try_out(row)).scores
    assert not score.with_it.solved and not score.read and score.with_it.tokens == 20


async def test_trying_out_keeps_to_its_budget_and_to_its_own_conversation(tmp_path: Path) -> None:
    config = {"skills_review": {"replay": True, "turns": 3, "tokens": 30}}
    one = Conversations(tmp_path / "h", config=config)
    async with one.running():
        talk = await one.hold("a", "Say it.", lambda request: say(CONTINUE), no, turns=3)
        await one.hold("b", "A secret of somebody else.", lambda request: say("Fine."), no)
        one.model.script = lambda request: say("Fine.")
        one.model.requests.clear()
        house = House(one, talk)
        last = (await one.app.store.events(talk.session))[-1].n
        row = await house.propose(n=last)
        card = await house.reviewing.try_out(row)
        assert (
            len(card.scores) == 2
            and card.spent.input_tokens == 20
            and card.why == "its 30 tokens are used up"
        )
        assert not any(
            "secret" in shown.message.text for r in one.model.requests for shown in r.messages
        )


def test_what_is_worse() -> None:
    assert not is_worse((200, 0), 1, 1), "a single one is none"
    assert not is_worse((50, 0), 10, 0) and not is_worse((50, 0), 10, 1), "one may always be"
    assert is_worse((50, 0), 5, 2) and is_worse((50, 1), 3, 2)
    assert not is_worse((50, 25), 10, 6) and is_worse((50, 25), 10, 9)
    assert not is_worse((0, 0), 2, 2) and is_worse((0, 0), 3, 3), "of a new agent nothing is known"


async def test_what_does_worse_is_taken_out_and_told(house: House) -> None:
    row = await house.propose()
    row = await house.proposals.accept(row.id, OWNER)
    assert (row.turns_before, row.bad_before) == (1, 0)
    house.one.model.script = house.one._say
    for number in range(3):
        await house.use(f"well{number}", well=True)
    await house.reviewing.run_due()
    assert house.active() == {"weather-notes"} and len(await uses(house, row)) == 3
    for number in range(6):
        await house.use(f"bad{number}", well=False)
    await house.reviewing.run_due()
    assert house.active() == set()
    after = await house.proposals.get(row.id)
    assert (
        after.state == "reverted"
        and "turns that used it ended badly (it ended with failed)" in after.why
    )
    assert any(
        each.tool == "undo" for each in await house.one.app.tool_wiring.effects.timeline(OWNER)
    )
    assert (await house.propose(n=9)).id == row.id, "it is not proposed again"


async def uses(house: House, row: StoredProposal) -> list[tuple[object, ...]]:
    return await house.one.app.store.query("skill_uses", (row.id,))


async def test_what_was_changed_by_hand_stays(house: House) -> None:
    row = await house.proposals.accept((await house.propose()).id, OWNER)
    (house.one.work / row.file).write_text(
        "---\nname: weather-notes\ndescription: mine\n---\nmine\n"
    )
    after = await house.proposals.auto_revert(row, "it did worse")
    assert after.state == "kept" and house.active() == {"weather-notes"}


async def test_what_the_journal_has_forgotten_is_taken_out_all_the_same(house: House) -> None:
    row = await house.proposals.accept((await house.propose()).id, OWNER)
    store = house.one.app.store
    await store.change([Change("effect_expire", (2e12, 0)), Change("effect_item_expire", ())])
    assert (
        await house.proposals.auto_revert(row, "it did worse")
    ).state == "reverted" and house.active() == set()
    assert (await house.one.app.tool_wiring.effects.list_undoable(OWNER, 1))[0].what == row.file, (
        "and that can be undone"
    )


async def test_a_person_takes_it_out(house: House) -> None:
    row = await house.proposals.accept((await house.propose()).id, OWNER)
    with pytest.raises(Refused, match="only an owner"):
        await house.proposals.revert(row.id, MEMBER)
    (house.one.work / row.file).write_text("mine\n")
    with pytest.raises(Refused, match="was edited since"):
        await house.proposals.revert(row.id, OWNER)
    assert (await house.proposals.get(row.id)).state == "accepted"
    (house.one.work / row.file).write_bytes(render_skill_file(row.name, row.description, row.body))
    after = await house.proposals.revert(row.id, OWNER)
    assert (after.state, after.why) == (
        "reverted",
        "a person took it out",
    ) and house.active() == set()
    with pytest.raises(Refused, match="is reverted: only an accepted skill"):
        await house.proposals.revert(row.id, OWNER)


async def test_what_is_undone_or_put_back_by_hand_says_so(house: House) -> None:
    row = await house.proposals.accept((await house.propose()).id, OWNER)
    effects = house.one.app.tool_wiring.effects
    (effect,) = [each for each in await effects.timeline(OWNER) if each.tool == "accept_skill"]
    undone = await effects.undo(OWNER, effect)
    await house.reviewing.run_due()
    assert (await house.proposals.get(row.id)).state == "reverted"
    await effects.undo(OWNER, await effects.get(OWNER, undone.undo or 0))
    await house.reviewing.run_due()
    after = await house.proposals.get(row.id)
    assert (after.state, after.why) == ("kept", "it was put back") and house.active() == {
        "weather-notes"
    }


async def test_a_yes_that_was_cut_off_is_asked_again(house: House) -> None:
    row = await house.propose()
    store = house.one.app.store
    now = house.one.app.features.host.clock.now()
    decided = [
        Change("proposal_decide", (row.id, "accepted", "owner", now - ago, "", "proposed"))
        for ago in (0, 61)
    ]
    await store.change(decided[:1])
    await house.reviewing.run_due()
    assert (await house.proposals.get(row.id)).state == "accepted", "it may be under way"
    await store.change(
        [Change("proposal_decide", (row.id, "proposed", "", now, "", "accepted")), decided[1]]
    )
    await house.reviewing.run_due()
    assert (await house.proposals.get(row.id)).state == "proposed" and house.active() == set()


async def test_an_agent_that_is_gone_holds_up_no_other(house: House) -> None:
    row = await house.propose()
    gone = Proposal(
        name="other-notes",
        description="x",
        body=BODY,
        agent="gone",
        session="gone/terminal:x",
        n=1,
        label=LOCAL,
    )
    await house.one.app.store.change(add_proposal(gone, 1.0))
    other = (await house.proposals.list_proposals())[0]
    assert (await house.proposals.auto_revert(other, "it did worse")).state == "kept"
    assert "the agent 'gone' is gone" in (await house.proposals.get(other.id)).why
    for one in (other, row):
        await house.reviewing.try_out(one)
    assert not (await house.reviewing.try_out(row)).why


async def test_who_may_not_decide_is_not_told(house: House) -> None:
    row = await house.propose()
    store = house.one.app.store
    place = Address("chat", chat="bob")
    asked = e.MessageReceived(1, MEMBER, place, Message("user", (Text("Hello.", LOCAL),)))
    session = "default/chat:bob"
    await store.commit(Commit(session, 1, 1.0, (asked, e.TurnEnded("done", (1,))), close=True))
    house.one.model.script = lambda request: say("I say so.")
    await house.reviewing.notify(replace(row, session=session), "[a skill is proposed: to bob]")
    await house.reviewing.notify(row, "[a skill is proposed: to the owner]")
    with anyio.fail_after(20):
        while not (said := [m.message.text for r in house.one.model.requests for m in r.messages]):
            await anyio.sleep(0.01)
    assert any("to the owner" in text for text in said) and len(await store.events(session)) == 2


async def test_nothing_that_lies_there_becomes_a_part_of_a_skill(house: House) -> None:
    row = await house.propose()
    folder = (house.one.work / row.file).parent
    folder.mkdir(parents=True)
    (folder / "run.sh").write_text("echo\n")
    with pytest.raises(ToolError, match="would become a part of the skill"):
        await house.proposals.accept(row.id, OWNER)
    assert (await house.proposals.get(row.id)).state == "proposed" and house.active() == set()


async def test_what_is_erased_takes_its_proposals_along(house: House) -> None:
    await house.propose()
    await house.one.app.store.erase(OWNER, house.talk.session, 1.0)
    await house.reviewing.run_due()
    assert not await house.proposals.list_proposals(every=True)


async def test_an_agent_proposes_by_a_tool(tmp_path: Path) -> None:
    one = Conversations(tmp_path / "h", config={"skills_review": {"replay": False}})
    one.tools["propose_skill"] = propose_skill
    good, evil = GOOD[0], next(each for each in BAD if each.why == "does not ask")

    def script(request: Request) -> Message:
        if not any(shown.message.calls for shown in request.messages):
            one_, two = (
                {"name": each.name, "description": each.description, "body": each.body}
                for each in (good, evil)
            )
            return say(
                "",
                ToolCall("a", "propose_skill", raw(one_)),
                ToolCall("b", "propose_skill", raw(two)),
            )
        return say("Proposed.")

    async with one.running():
        talk = await one.hold("a", "Keep that.", script, no)
        assert talk.results["a"].status == "ok" and talk.results["b"].status == "error"
        assert "around the person's yes" in talk.results["b"].text
        (row,) = await one.app.features.reviewing.proposals.list_proposals(every=True)
        assert (row.name, row.writer, row.n) == (good.name, "tool", 2)


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def test_only_what_was_really_read_counts() -> None:
    replied = e.ModelReplied(
        Message(
            "assistant",
            (
                call("read_skill", skill="a"),
                ToolCall("x", "skill", raw({"name": "b"})),
                ToolCall("y", "skill", raw({"name": "d"})),
            ),
        ),
        "m",
    )
    events: tuple[e.AnyEvent, ...] = (
        replied,
        finished("x"),
        finished("y", "error"),
        finished("other"),
    )
    tape = [e.Recorded(0, "s", n, 0.0, event) for n, event in enumerate(events, 1)]
    assert find_read_skills(tape) == {"b"}


def finished(call_id: str, status: ResultStatus = "ok") -> e.ToolFinished:
    return e.ToolFinished(ToolResult(call_id, (), status))


async def test_an_owner_decides_in_a_chat(house: House) -> None:
    one = await house.propose()
    two = await house.propose("rain-notes", n=2)
    held = await house.propose("outside", UNTRUSTED, n=3)
    answer = partial(house.reviewing.answer, alone=True)
    assert f"{one.id}  weather-notes: `How to note the weather.`" in answer(OWNER, "")
    assert "(untrusted)" in answer(OWNER, "") and BODY.strip() in answer(OWNER, f"show {one.id}")
    for nonsense in ("accept", "accept 99", "eat 1", "accept x", "accept 99999999999999999999"):
        assert answer(OWNER, nonsense).startswith("Write /skills")
    assert "deskhand skills show" in answer(OWNER, f"accept {held.id}")
    assert answer(OWNER, f"accept {one.id}") == "weather-notes becomes a skill of default now."
    assert answer(OWNER, f"reject {two.id}") == "rain-notes is turned down."
    await house.reviewing.run_due()
    assert house.active() == {"weather-notes"}
    states = {row.name: row.state for row in await house.proposals.list_proposals(every=True)}
    assert states == {"weather-notes": "accepted", "rain-notes": "rejected", "outside": "proposed"}
    assert answer(OWNER, f"accept {one.id}") == "weather-notes is accepted already."
    assert COMMANDS["skills"].role == "owner"
    for asked in ("", f"show {held.id}", f"accept {held.id}"):
        assert (
            BODY not in (said := house.reviewing.answer(OWNER, asked, alone=False))
            and "alone" in said
        ), "in a group"


async def test_in_a_group_nothing_is_said_of_conversations(house: House) -> None:
    await house.propose()
    asked = house.one.app.features.command_handlers()["skills"]

    def said(person: str, *, group: bool = False) -> Any:
        place = Address("chat", chat="x", group=group)
        row = Waiting(1, OWNER, Inbound("1", place, OWNER.id, 0.0, Command("skills")))
        return asked(State("default/x", person=person), row, "")

    assert "weather-notes" in said("owner") and "weather-notes" in said("")
    assert not any(
        "weather-notes" in each for each in (said(EVERYBODY), said("", group=True), said("ann"))
    )
