"""Going back, sending again, and branching off: what the conversation is afterwards, and who
may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deskhand.agent.context import show_messages
from deskhand.agent.fold import fold
from deskhand.agent.rewind import RewindView
from deskhand.agent.state import State
from deskhand.models.base import Model, Request
from deskhand.policy.rules import Decision
from deskhand.testing.bench import (
    ANN,
    BOB,
    SESSION,
    Bench,
    OneModel,
    said,
)
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import FileTool
from deskhand.tools.base import Tool
from deskhand.types import events as e
from deskhand.types.identity import (
    Answer,
    Command,
    Configure,
    Principal,
    Rewind,
    Waiting,
)
from deskhand.types.messages import Image, Message, Text, ToolCall
from deskhand.types.options import SessionOptions

MakeBench = Callable[[Model, Sequence[Tool]], Bench]
OLGA = Principal("olga", ("approver",))


def heard(request: Request) -> Message:
    """Says all that people said, as the model sees it now."""
    return say(
        "heard "
        + " / ".join(
            shown.message.text for shown in request.messages if shown.message.role == "user"
        )
    )


async def last(bench: Bench) -> str:
    """The last answer."""
    replies = [
        event.message.text for event in await bench.events() if isinstance(event, e.ModelReplied)
    ]
    return replies[-1]


async def told(bench: Bench) -> str:
    """What the last command was answered."""
    return next(
        event.reply for event in reversed(await bench.events()) if isinstance(event, e.CommandRun)
    )


async def ends(bench: Bench) -> list[int]:
    """The events that ended a turn."""
    return [r.n for r in await bench.store.events(SESSION) if isinstance(r.event, e.TurnEnded)]


def known(state: State) -> dict[str, Any]:
    """What a state says of the conversation: all but what is never undone, and its number."""
    kept = {name: getattr(state, name) for name in State.__struct_fields__}
    for name in ("n", "usage", "options", "model", "compacted_at"):
        del kept[name]
    return kept


async def cold(bench: Bench, n: int | None = None) -> State:
    """The state after event n, from the log."""
    return fold(State(SESSION), (await bench.store.events(SESSION))[:n])


async def three(make: MakeBench) -> Bench:
    bench = make(ScriptedModel(heard), [])
    for text in ("one", "two", "three"):
        await bench.say(text)
    return bench


async def test_undo_takes_back_turns(bench: MakeBench) -> None:
    talk = await three(bench)
    first, second, _ = await ends(talk)
    await talk.say(Command("undo"))
    assert "“three”" in await told(talk)
    assert talk.session.state is not None and known(talk.session.state) == known(
        await cold(talk, second)
    )
    await talk.say("four")
    assert await last(talk) == "heard one / two / four"
    await talk.say(Command("undo", "2"))
    assert "“two”" in await told(talk)
    assert known(await cold(talk)) == known(await cold(talk, first))
    await talk.say("five")
    assert await last(talk) == "heard one / five"


async def test_tokens_stay_spent_and_options_set(bench: MakeBench) -> None:
    talk = await three(bench)
    spent = (await cold(talk)).usage
    await talk.say(Configure(SessionOptions(thinking="high", approval=True)))
    await talk.say(Command("undo", "3"))
    state = await cold(talk)
    assert state.usage == spent and state.options == SessionOptions(thinking="high", approval=True)
    assert not state.messages


async def test_a_restart_sees_the_same(bench: MakeBench) -> None:
    talk = await three(bench)
    await talk.say(Command("undo"))
    warm = talk.session.state
    talk.start()
    assert await talk.say("four") is None
    assert await last(talk) == "heard one / two / four"
    history = await talk.store.history(SESSION)
    assert isinstance(history[0].event, e.Compacted) and warm is not None


async def test_an_undo_can_be_undone(bench: MakeBench) -> None:
    talk = await three(bench)
    third = (await ends(talk))[2]
    await talk.say(Command("undo", "2"))
    await talk.say(Rewind(third))  # into the stretch that was undone
    assert known(await cold(talk)) == known(await cold(talk, third))
    await talk.say("four")
    assert await last(talk) == "heard one / two / three / four"
    await talk.say(Command("undo", "3"))  # of the four that are in view now
    await talk.say("five")
    assert await last(talk) == "heard one / five"


async def test_twice_in_a_row_and_in_one_go(bench: MakeBench) -> None:
    talk = await three(bench)
    await talk.tell(Command("undo"))
    await talk.tell(Command("undo"))
    await talk.drive()
    await talk.say("four")
    assert await last(talk) == "heard one / four"


async def test_edit_and_resend(bench: MakeBench) -> None:
    talk = await three(bench)
    at = next(
        r.n
        for r in await talk.store.events(SESSION)
        if isinstance(r.event, e.MessageReceived) and r.event.message.text == "two"
    )
    await talk.say(Rewind(at - 1, said("zwei").message))
    assert await last(talk) == "heard one / zwei"
    ended = (await talk.events())[-1]
    received = [event for event in await talk.events() if isinstance(event, e.MessageReceived)]
    assert isinstance(ended, e.TurnEnded) and ended.answers == (received[-1].inbox_id,)


async def test_retry_sends_the_last_turn_again(bench: MakeBench) -> None:
    answers = iter(("first try", "second try", "third"))
    talk = bench(ScriptedModel(lambda request: say(next(answers))), [])
    await talk.say("tell me")
    await talk.say(Command("retry"))
    state = await cold(talk)
    assert [shown.message.text for shown in state.messages] == ["tell me", "second try"]
    await talk.say(Command("retry"))
    assert [shown.message.text for shown in (await cold(talk)).messages] == ["tell me", "third"]


async def test_retry_of_a_turn_that_was_steered_says_all_of_it(
    bench: MakeBench, tmp_path: Path
) -> None:
    def script(request: Request) -> Message:
        words = "".join(shown.message.text for shown in request.messages)
        return (
            heard(request)
            if "and this" in words
            else say("", ToolCall("w", "write", msgspec.Raw(b"{}")))
        )

    talk = bench(ScriptedModel(script), [FileTool("write", tmp_path / "out")])
    talk.configure(decide=lambda case: Decision("ask", "because"))
    await talk.say("do this")
    await talk.say("and this")
    await talk.say(Command("retry"))
    received = [event for event in await talk.events() if isinstance(event, e.MessageReceived)]
    assert (
        received[-1].message.text.split() == " ".join(r.message.text for r in received[:-1]).split()
    )


async def test_nothing_to_undo(bench: MakeBench) -> None:
    talk = bench(ScriptedModel(heard), [])
    for body in (Command("undo"), Command("retry"), Rewind(0)):
        await talk.say(body)
        assert (await told(talk)).startswith("Not done: ")
    await talk.say("one")
    await talk.say(Command("undo", "2"))
    assert await told(talk) == "Not done: there is 1 to undo: write /undo 1 for the last."
    for args in ("0", "-1", "x", "9" * 50):
        await talk.say(Command("undo", args))
        assert (await told(talk)).startswith("Not done: there is 1")
    await talk.say(Rewind((await ends(talk))[-1]))
    assert "nothing has been said since" in await told(talk)
    assert not any(isinstance(event, e.Undone) for event in await talk.events())


@pytest.mark.parametrize(
    ("to_n", "why"), [(-1, "no event -1"), (10_000, "no event 10000"), (2, "middle of a turn")]
)
async def test_where_one_cannot_go_back_to(bench: MakeBench, to_n: int, why: str) -> None:
    talk = await three(bench)
    await talk.say(Rewind(to_n, said("x").message))
    assert why in await told(talk)
    assert len((await cold(talk)).messages) == 6


async def test_back_before_a_compaction_and_to_the_beginning(bench: MakeBench) -> None:
    talk = bench(ScriptedModel(lambda request: say("fine " * 50)), [])
    talk.configure(limits=msgspec.structs.replace(talk.agent.limits, window=20))
    for text in ("one", "two", "three"):
        await talk.say(text * 100)
    assert any(isinstance(event, e.Compacted) for event in await talk.events())
    first = (await ends(talk))[0]
    await talk.say(Rewind(first))
    assert (
        known(await cold(talk)) == known(await cold(talk, first))
        and len((await cold(talk)).messages) == 2
    )
    await talk.say(Rewind(0))
    assert not (await cold(talk)).messages


async def test_between_undone_and_what_is_kept_nobody_can_stop(bench: MakeBench) -> None:
    talk = await three(bench)
    await talk.say(Command("undo"))
    undone = next(r.n for r in await talk.store.events(SESSION) if isinstance(r.event, e.Undone))
    await talk.say(Rewind(undone))
    assert "middle of a turn" in await told(talk)


async def test_while_an_approval_is_open(bench: MakeBench, tmp_path: Path) -> None:
    def script(request: Request) -> Message:
        return (
            say("", ToolCall("w", "write", msgspec.Raw(b"{}")))
            if "go" in str(request.messages[-1])
            else say("ok")
        )

    talk = bench(ScriptedModel(script), [FileTool("write", tmp_path / "out")])
    talk.configure(decide=lambda case: Decision("ask", "because"))
    await talk.say("hello")
    await talk.say("go")
    await talk.say(Command("undo"))
    events = await talk.events()
    closed = next(event for event in events if isinstance(event, e.CallClosed))
    ended = [event for event in events if isinstance(event, e.TurnEnded)][-1]
    assert (closed.status, ended.reason, ended.said) == ("interrupted", "stopped", "")
    assert [shown.message.text for shown in (await cold(talk)).messages] == ["hello", "ok"]
    await talk.answer("once")
    assert (
        await told(talk) == "That question is no longer open." and not (tmp_path / "out").exists()
    )


async def test_in_a_closed_conversation(bench: MakeBench) -> None:
    talk = await three(bench)
    second = (await ends(talk))[1]
    await talk.say(Command("start"))
    await talk.say(Command("undo"))
    assert await told(talk) == "Not done: there is no turn to undo."
    await talk.say(Rewind(second))  # who names the place means it: it is open again
    state = await cold(talk)
    assert not state.archived and len(state.messages) == 4
    await talk.say("four")
    assert await last(talk) == "heard one / two / four"


async def test_what_was_erased_is_gone(bench: MakeBench) -> None:
    talk = await three(bench)
    first = (await ends(talk))[0]
    await talk.store.erase(ANN, SESSION, 1.0)
    talk.start()
    await talk.say(Rewind(first, said("again").message))
    assert "has been erased" in await told(talk)
    await talk.say(Command("undo"))
    assert "no turn to undo" in await told(talk)
    await talk.say("four")
    assert await last(talk) == "heard four"
    await talk.say(Command("undo"))
    assert not (await cold(talk)).messages
    await talk.store.erase(ANN, SESSION, 2.0)
    assert not [r for r in await talk.store.events(SESSION) if isinstance(r.event, e.Compacted)]


async def test_only_an_owner_undoes_what_others_asked(bench: MakeBench) -> None:
    talk = bench(ScriptedModel(heard), [])
    await talk.say("of ann", ANN)
    await talk.say("of bob", BOB)
    await talk.say(Command("undo"), BOB)
    assert "“of bob”" in await told(talk)
    await talk.say(Command("undo"), BOB)
    assert "only an owner may undo it" in await told(talk)
    await talk.say("of bob, too", BOB)
    await talk.say(Rewind(0, said("mine", BOB).message), BOB)
    assert "only an owner" in await told(talk) and len((await cold(talk)).messages) == 4
    await talk.say(Command("undo", "2"), ANN)
    assert not (await cold(talk)).messages
    back = (await ends(talk))[0]
    await talk.say(Rewind(back), BOB)  # nor brings back what others asked
    assert "only an owner" in await told(talk)


async def test_retry_gives_nobodys_words_more_rights(bench: MakeBench) -> None:
    talk = bench(ScriptedModel(heard), [])
    await talk.say("of bob", BOB)
    await talk.say(Command("retry"), ANN)
    received = [event for event in await talk.events() if isinstance(event, e.MessageReceived)]
    assert [event.principal for event in received] == [BOB, BOB]
    assert received[1].message.parts == received[0].message.parts


async def test_the_model_is_sent_what_is_kept(bench: MakeBench) -> None:
    """Other pictures and other messages than those under the same numbers before: nothing is taken
    from memory."""
    talk = bench(ScriptedModel(heard), [])
    picture = Image("sha256:" + "ab" * 32, "image/png")
    await talk.say(
        msgspec.structs.replace(said("one"), message=Message("user", (Text("one"), picture)))
    )
    await talk.say(
        msgspec.structs.replace(said("two"), message=Message("user", (Text("two"), picture)))
    )
    encoded = talk.session.journal.encoded
    encoded.messages["wire", 1, "full"] = b"old"
    await talk.say(Command("undo"))
    assert not encoded.messages
    state = await cold(talk)
    assert [type(part) for part in show_messages(state)[0].message.parts] == [Text, Image], (
        "it is the newest again"
    )


# ---------------------------------------------------------- branch


async def test_branch_from_the_chat(bench: MakeBench) -> None:
    talk = await three(bench)
    await talk.say(Command("branch"))
    name = f"{SESSION}.b{(await ends(talk))[-1]}"
    assert name in await told(talk)
    events = await talk.store.events(name)
    assert [type(r.event) for r in events] == [e.Branched, e.Compacted]
    state = fold(State(name), events)
    assert [s.message for s in state.messages] == [s.message for s in (await cold(talk)).messages]
    assert state.usage.input_tokens == 0
    await talk.say(
        Command("branch")
    )  # a command does not change what is branched: the same is there already
    assert len(await talk.store.events(name)) == 2
    assert not (await talk.store.audit())[1]  # type: ignore[attr-defined]


async def test_past_knows_the_rests(bench: MakeBench) -> None:
    talk = await three(bench)
    past = RewindView(SESSION, await talk.store.events(SESSION))
    first, second, _ = await ends(talk)
    assert (
        past.find_rest(first),
        past.find_rest(second - 1),
        past.find_rest(1),
        past.find_rest(0),
    ) == (
        first,
        first,
        0,
        0,
    )
    assert past.title == "one"
    assert [turn.said[0].message.text for turn in past.turns_at(second)] == ["two", "one"]


# ---------------------------------------------------------- options


async def test_options_reach_the_model(bench: MakeBench) -> None:
    asked: list[str] = []
    model = ScriptedModel(heard)
    talk = bench(model, [])

    class Named(OneModel):
        def open(self, name: str) -> Model:
            asked.append(name)
            return model

    runtime = msgspec.structs.replace(talk.session.runtime, models=Named(model))
    talk.session.runtime = runtime
    await talk.say("one")
    await talk.say(Configure(SessionOptions(model="other/big", thinking="high")))
    await talk.say("two")
    assert asked == ["test/model", "other/big"]
    assert [request.thinking for request in model.requests] == ["off", "high"]
    talk.start()
    talk.session.runtime = runtime
    await talk.say(Command("model", "default"))
    await talk.say("three")
    assert asked[-1] == "test/model" and model.requests[-1].thinking == "high"


async def test_asking_before_every_tool_is_ended_by_who_may_allow(bench: MakeBench) -> None:
    talk = bench(ScriptedModel(heard), [])
    await talk.say(Command("approval", "on"), BOB)
    for body in (Command("approval", "off"), Configure(SessionOptions(approval=False))):
        await talk.say(body, BOB)
        assert await told(talk) == (
            "Only an owner or an approver may turn off asking before every tool."
        )
        assert (await cold(talk)).options.approval is True
    await talk.say(Command("approval", "off"), OLGA)
    assert (await cold(talk)).options.approval is False
    await talk.say(Configure(SessionOptions(approval=False)), BOB)  # it is so already
    assert (await cold(talk)).options.approval is False


async def test_options_are_refused_in_words(bench: MakeBench) -> None:
    talk = bench(ScriptedModel(heard), [])

    class Refusing:
        def run(self, state: State, row: Waiting) -> list[e.AnyEvent] | None:
            return [e.CommandRun(row.inbox_id, row.principal, "model", "", "no such model")]

    talk.agent = msgspec.structs.replace(talk.agent, commands=Refusing())
    talk.start()
    await talk.say(Command("model", "x/y"))
    assert await told(talk) == "no such model" and (await cold(talk)).options == SessionOptions()


async def test_an_answer_meant_for_another_stretch_is_not_taken(bench: MakeBench) -> None:
    talk = await three(bench)
    await talk.say(Command("undo"))
    await talk.say(Answer("ask_1", "once"))
    assert await told(talk) == "That question is no longer open."


async def test_who_has_taken_part_reads_it_after_an_undo_too(bench: MakeBench) -> None:
    """What is one person's own is told where they are alone: not where another can read what is
    said from now on."""
    talk = bench(ScriptedModel(heard), [])
    await talk.say("one")
    alone = await cold(talk)
    await talk.say("two", who=BOB)
    both = await cold(talk)
    assert (alone.person, both.person) == (ANN.id, "*")
    await talk.say(Command("undo"))
    back = await cold(talk)
    assert len(back.messages) == len(alone.messages)
    assert (back.person, back.shared) == ("*", True)
