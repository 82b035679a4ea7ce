"""Which answer /document sends, and under which name."""

from __future__ import annotations

import pytest

from deskhand.agent.answer_document import find_answer, is_out_of_date, name_document
from deskhand.agent.rewind import RewindView
from deskhand.testing.bench import SESSION
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import Refused
from deskhand.types.events import CommandRun
from deskhand.types.identity import Command
from deskhand.types.turn import OUT_OF_DATE

from .conftest import MakeBench


@pytest.mark.parametrize(
    ("markdown", "name"),
    [
        ("no heading", "answer.md"),
        ("# Trip to *Lisbon*\n\ntext", "Trip to Lisbon.md"),
        ("words\n\n### [Links](https://a.test) & `code` ##\n", "Links & code.md"),
        ("```sh\n# a comment\n```\n## After it", "After it.md"),
        ("```sh\n# never closed", "answer.md"),
        ("# ../../etc/passwd", "etc passwd.md"),
        ("# …", "answer.md"),
        ("# " + "long " * 40, "long " * 11 + "long.md"),
        ("#hashtag", "answer.md"),
        ("# a" + " " * 500_000 + "x", "a.md"),
        ("# " + "[" * 500_000, "answer.md"),
    ],
)
def test_it_is_named_after_its_first_heading(markdown: str, name: str) -> None:
    assert name_document(markdown) == name


async def test_the_last_answer_that_is_still_in_view(bench: MakeBench) -> None:
    answers = ["one", "two"]
    desk = bench(ScriptedModel(lambda _: say(answers.pop(0))), ())

    async def view() -> RewindView:
        return RewindView(SESSION, await desk.store.events(SESSION))

    with pytest.raises(Refused, match="no answer in this conversation yet"):
        find_answer(await view(), Command("document"))
    await desk.say("first")
    await desk.say("second")
    past = await view()
    first, second = past.answers
    assert find_answer(past, Command("document")) == "two"
    assert find_answer(past, Command("document", turn=first)) == "one"
    assert not is_out_of_date(past, Command("document", turn=first))
    assert is_out_of_date(past, Command("undo", turn=first))
    assert not is_out_of_date(past, Command("undo", turn=second))

    await desk.say(Command("undo", turn=first))
    ran = (await desk.events())[-1]
    assert isinstance(ran, CommandRun) and ran.refused and ran.reply == OUT_OF_DATE

    await desk.say(Command("undo", turn=second))
    past = await view()
    assert find_answer(past, Command("document")) == "one"
    assert is_out_of_date(past, Command("document", turn=second))
    await desk.say(Command("start"))
    with pytest.raises(Refused):
        find_answer(await view(), Command("document"))


async def test_where_no_file_can_be_sent_it_says_so(bench: MakeBench) -> None:
    desk = bench(ScriptedModel(lambda _: say("here")), ())
    await desk.say("hello")
    await desk.say(Command("document"))
    ran = (await desk.events())[-1]
    assert isinstance(ran, CommandRun) and ran.refused and ran.file is None
    assert "copy the answer" in ran.reply


async def test_a_late_stop_closes_no_conversation(bench: MakeBench) -> None:
    """Typed at rest, /stop does; a button that is left from a turn before may not."""
    desk = bench(ScriptedModel(lambda _: say("here")), ())
    await desk.say("hello")
    await desk.say(Command("stop", turn=1))
    assert not desk.session.state.archived
    desk.start()
    await desk.session.load()
    assert not desk.session.state.archived, "the log says the same"
