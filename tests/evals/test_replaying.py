"""Replays with the agents and models of a running Deskhand: another prompt, another skill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from deskhand.evals.cases import (
    Expect,
    ExpectedCall,
    derive_expectations,
    find_failures,
    make_case,
    run_case,
)
from deskhand.evals.recordings import Course, Made
from deskhand.evals.replay import is_same_request
from deskhand.evals.runner import ReplayOptions, open_isolated_skill
from deskhand.models.base import Request
from deskhand.testing.conversations import Conversations
from deskhand.testing.person import no
from deskhand.testing.scripted import say
from deskhand.types.errors import ConfigError, Refused
from deskhand.types.messages import Message, ToolCall, Usage

SKILL = (
    "---\nname: weather-notes\ndescription: How to note the weather.\n---\nRead notes.md first.\n"
)


def reading(request: Request) -> Message:
    """Reads the skill where it is told of it, and then the notes."""
    made = [call.name for shown in request.messages for call in shown.message.calls]
    told = "weather-notes" in "".join(request.system)
    if told and "read_skill" not in made:
        return say("", ToolCall("s", "read_skill", msgspec.Raw(b'{"skill":"weather-notes"}')))
    if "read_file" not in made:
        return say("", ToolCall("f", "read_file", msgspec.Raw(b'{"path":"notes.md"}')))
    result = next(shown.message for shown in request.messages if shown.message.role == "tool")
    return say(f"Noted: {result.parts[0].text.strip()}, 21.5 degrees")  # type: ignore[union-attr]


@pytest.fixture
async def talked(tmp_path: Path) -> AsyncIterator[tuple[Conversations, str]]:
    one = Conversations(tmp_path / "h")
    async with one.running():
        one.work.mkdir(parents=True, exist_ok=True)
        (one.work / "notes.md").write_text("rain\n")
        talk = await one.hold("a", "Note the weather.", reading, no)
        assert "rain" in talk.said
        found = await one.app.features.replaying.run(
            await one.app.features.replaying.load_recording(talk.session)
        )
        assert found.same and not found.differs and len(found.requests) == 2
        assert all(map(is_same_request, found.requests, one.model.requests)), (
            "it is rebuilt from the log as it was sent"
        )
        one.model.script = reading
        one.model.requests.clear()
        yield one, talk.session


async def test_a_skill_is_tried(talked: tuple[Conversations, str], tmp_path: Path) -> None:
    one, session = talked
    folder = tmp_path / "weather-notes"
    folder.mkdir()
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "more.md").write_text("more of it")
    replaying = one.app.features.replaying
    recorded = await replaying.load_recording(session)
    with open_isolated_skill(folder) as skills:
        found = await replaying.run(recorded, ReplayOptions(skills=skills))
    assert [made.tool for made in found.was.calls] == ["read_file"]
    assert [made.tool for made in found.now.calls] == [
        "read_skill",
        "read_file",
    ] and not found.differs
    assert "Read notes.md first." in found.now.answer and "more.md" in found.now.answer
    asked = one.model.requests
    assert "- weather-notes: How to note the weather." in asked[0].system[0]
    assert asked[0].tools and asked[0].messages == found.requests[0].messages
    with pytest.raises(ConfigError, match="is not a skill"), open_isolated_skill(tmp_path):
        pass


async def test_a_prompt_is_tried_and_nobody_else_gets_it(talked: tuple[Conversations, str]) -> None:
    one, session = talked
    replaying = one.app.features.replaying
    recorded = await replaying.load_recording(session)
    found = await replaying.run(recorded, ReplayOptions(system="Be a parrot."))
    assert one.model.requests[0].system[0].startswith("Be a parrot.") and found.asked == 2
    again = await replaying.run(recorded)
    assert again.same and len(one.model.requests) == 2, (
        "it stood in place of SYSTEM.md for that replay alone"
    )
    assert not again.requests[0].system[0].startswith("Be a parrot.")


async def test_a_case_asks_only_where_something_has_changed(
    talked: tuple[Conversations, str],
) -> None:
    one, session = talked
    replaying = one.app.features.replaying
    found = await replaying.run(await replaying.load_recording(session))
    case = make_case(found, "scripted/x", one.app.redact, ("noted",))
    assert case.expect == Expect("done", ("read_file",), ("noted", "21.5"))
    verdict = await run_case("a", case, replaying, ReplayOptions())
    assert verdict.wrong == () and not one.model.requests
    (one.work / "RULES.md").write_text("Never say a number.")
    one.model.script = lambda request: say("I say none.")
    verdict = await run_case("a", case, replaying, ReplayOptions())
    assert len(one.model.requests) == 1 and verdict.spent == Usage(10, 10)
    assert verdict.wrong == (
        "read_file was not called",
        "the answer lacks 'noted'",
        "the answer lacks '21.5'",
    )


def test_what_is_expected() -> None:
    calls = (Made("read_file", '{"path":"a","start_line":2}', "ok"), Made("shell", "[]", "error"))
    course = Course(
        answer="It is **Ready**:\n 40 GB",
        reason="done",
        models=("m",),
        calls=calls,
        steps=3,
        usage=Usage(100, 10),
    )
    assert find_failures(Expect("done", ("read_file",), ("ready", "40  gb")), course) == ()
    assert (
        find_failures(
            Expect(calls=(ExpectedCall("read_file", {"path": "a"}),), steps=3, tokens=110), course
        )
        == ()
    )
    wrong = Expect(
        "failed",
        ("shell", ExpectedCall("read_file", {"path": "b"}), ExpectedCall("shell", {"a": 1})),
        ("no",),
        ("gb",),
        2,
        109,
    )
    assert find_failures(wrong, course) == (
        "it ended with done, not failed",
        'read_file was not called with {"path":"b"}',
        'shell was not called with {"a":1}',
        "the answer lacks 'no'",
        "the answer has 'gb'",
        "it took 3 steps, more than 2",
        "it used 110 tokens, more than 109",
    )
    assert derive_expectations(course, str).calls == ("read_file",)


async def test_an_open_turn_is_no_case(talked: tuple[Conversations, str]) -> None:
    one, session = talked
    replaying = one.app.features.replaying
    found = await replaying.run(await replaying.load_recording(session))
    open_ = msgspec.structs.replace(found, was=msgspec.structs.replace(found.was, reason="open"))
    with pytest.raises(Refused, match="only a finished turn"):
        make_case(open_, "scripted/x", str)
