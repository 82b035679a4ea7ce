"""openagent-core's own answers, as they were recorded, and ours to the same requests."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.models.base import Item, Reply, Request, TextDelta, ThinkingDelta
from deskhand.testing.scripted import say
from deskhand.types.errors import ModelKeyRefused
from deskhand.types.messages import ToolCall, Usage

from .recorded.compare import (
    ABSENT,
    Difference,
    compare_cases,
    documented_rows,
    table_rows,
    unexplained,
    unused,
)
from .recorded.openagent import CASES, LITERALS, MORE, OpenAgentPlayer, Step
from .recorded.play import SENT
from .served import Served, serving, until

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "recorded" / "openagent.json").read_text()
)

CONFIG: dict[str, Any] = {
    "defaults": {
        "models": ["scripted/x"],
        "also_allow": ["task_*", "todo_*"],
        "output_tokens": 16_384,
        "temperature": 1.0,
    },
    "policy": [
        {"tool": "shell", "verdict": "allow"},
        {"tool": "background_run", "verdict": "allow"},
    ],
}
"""As openagent-core is set up: its tools are there, and nothing is asked unless a conversation
wants that."""

EFFORT = "An effort that does not exist is refused with 422; there it is read as high."
SEEN = "A file is fetched for a conversation that one may see; there the id is not looked at."
HIDDEN = (
    "A file whose name begins with a dot is refused: programs read some of them as configuration."
)
CANCELLED = (
    "A turn that is cancelled ends with `done`, and the conversation goes on; there the "
    "WebSocket is closed."
)
PLANNED = (
    "The result of `exit_plan_mode` follows the answer to the plan: an approval is kept over a "
    "restart."
)
NO_OBJECT = "A text that is no JSON object is a message, whatever it is."

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "*", "body.error", "object", ABSENT, "Our own shape of an error stands beside `detail`."
    ),
    Difference(
        "health",
        "body.*",
        "*",
        ABSENT,
        "Who has a token learns the version and how each component is.",
    ),
    Difference(
        "nothing there",
        "body[]",
        "object",
        ABSENT,
        "A workspace holds the agent's own files from the beginning.",
    ),
    Difference(
        "sign-in",
        "body.*",
        "*",
        ABSENT,
        "A token or a link is needed here; sign-in by Google (`enabled`) is not offered.",
    ),
    Difference("who one is", "body.*", "*", ABSENT, "A credential has a user, roles and scopes."),
    Difference("tools", "body[].*", "*", ABSENT, "The page shows what a tool takes and does."),
    Difference(
        "begin with two faults",
        "body.detail[string_type]",
        ABSENT,
        "object",
        "Only the first fault is named.",
    ),
    Difference("a skill", "*.source", "string", ABSENT, "The page shows where a skill comes from."),
    Difference(
        "*",
        "events[*].id",
        "string",
        ABSENT,
        "So that a result finds its call when several run at once.",
    ),
    Difference(
        "*",
        "events[tool_result].status",
        "=*",
        ABSENT,
        "It says whether the call failed, or was denied.",
    ),
    Difference("*", "events[done].reason", "string", ABSENT, "It says why the turn ended."),
    Difference(
        "*",
        "events[tool_approval_request].question",
        "string",
        ABSENT,
        "A person reads what is asked in words.",
    ),
    Difference(
        "*",
        "events[tool_approval_request].reason",
        "string",
        ABSENT,
        "A person reads why it is asked.",
    ),
    Difference(
        "approved from now on",
        "events",
        "approval_changed",
        ABSENT,
        "Other clients of the conversation learn that nothing is asked any more.",
    ),
    Difference(
        "content that is a number",
        "events",
        ABSENT,
        "text_delta",
        "It is refused before the model is asked, not after.",
    ),
    Difference(
        "*task*",
        "events[tool_result].result",
        "string",
        "object*",
        "What a tool answers is our own text; the tasks are in `task_update`.",
    ),
    Difference(
        "a teammate", "events", ABSENT, "teammate_status", "The turn does not wait for teammates."
    ),
    Difference("begin with an effort that is none", "status", "422", "200", EFFORT),
    Difference(
        "begin with an effort that is none", "body.conversation_id", ABSENT, "string", EFFORT
    ),
    Difference("begin with an effort that is none", "body.detail", "array", ABSENT, EFFORT),
    Difference("a file of an unknown conversation", "status", "404", "200", SEEN),
    Difference("a file of an unknown conversation", "body", "object", "text", SEEN),
    Difference("an upload with a hidden name", "status", "400", "200", HIDDEN),
    Difference("an upload with a hidden name", "body.uploaded", ABSENT, "array", HIDDEN),
    Difference("an upload with a hidden name", "body.detail", "string", ABSENT, HIDDEN),
    Difference("cancelled*", "events", ABSENT, "closed", CANCELLED),
    Difference("cancelled*", "events", "done", ABSENT, CANCELLED),
    Difference("cancelled while it asks", "events", "tool_result", ABSENT, CANCELLED),
    Difference("cancelled while it asks", "events", "text_delta", ABSENT, CANCELLED),
    Difference("a plan is approved", "events", ABSENT, "tool_result", PLANNED),
    Difference("a plan is approved", "events", "tool_result", ABSENT, PLANNED),
    Difference("a plan is rejected", "events", ABSENT, "tool_result", PLANNED),
    Difference("a plan is rejected", "events", "tool_result", ABSENT, PLANNED),
    Difference("the agent plans", "events", ABSENT, "tool_result", PLANNED),
    Difference("a frame that is a list", "events", ABSENT, "error", NO_OBJECT),
    Difference("a frame that is a list", "events", "text_delta", ABSENT, NO_OBJECT),
    Difference("a frame that is a list", "events", "done", ABSENT, NO_OBJECT),
)
"""What differs, and why. `docs/api.md` shows the same table."""


class RepliesInTurn:
    """A model that says each of these replies once. Teammates get none: they work all the time."""

    def __init__(self) -> None:
        self.replies: list[Step] = []
        self._calls = 0

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        if "a teammate in a team" in str(request.system):
            await anyio.sleep_forever()
        wanted: Step = (
            self.replies.pop(0)
            if self.replies
            else {"text": "There is nothing more to say.", "calls": []}
        )
        if wanted.get("fails"):
            raise ModelKeyRefused("the key is refused")
        if wanted.get("thinking"):
            yield ThinkingDelta(wanted["thinking"])
        text = wanted["text"]
        piece = 6
        for start in range(0, len(text), piece):
            yield TextDelta(text[start : start + piece])
            if wanted.get("slow"):
                await anyio.sleep(0.05)
        calls = []
        for call in wanted["calls"]:
            self._calls += 1
            calls.append(
                ToolCall(
                    f"c{self._calls}",
                    call["name"],
                    msgspec.Raw(msgspec.json.encode(call["arguments"])),
                )
            )
        yield Reply(say(text, *calls), "calls" if calls else "stop", Usage(10, 5))


@pytest.fixture
def model() -> RepliesInTurn:
    return RepliesInTurn()


def player_of(served: Served, model: RepliesInTurn) -> OpenAgentPlayer:
    def script(replies: list[Step]) -> None:
        model.replies = list(replies)

    workspace = served.app.settings.home.workspace("default")
    return OpenAgentPlayer(served.http, served.url, served.owner.headers, script, workspace)


@pytest.mark.timeout(
    120
)  # it plays a hundred small conversations, one of which waits for three seconds
async def test_we_answer_as_was_recorded(tmp_path: Path, model: RepliesInTurn) -> None:
    ours: dict[str, list[Step]] = {}
    async with serving(tmp_path, model, None, **CONFIG) as served:
        facts = served.app.vitals.facts
        await until(lambda: any(each.name == "driver" and each.state == "ok" for each in facts()))
        player = player_of(served, model)
        for case, steps in RECORDED["cases"].items():
            ours[case] = await player.play(steps)
    found = compare_cases(RECORDED["cases"], ours, LITERALS)
    assert unexplained(found, DIFFERENCES) == []
    assert unused(found, DIFFERENCES) == []


def test_the_recording_is_of_these_cases() -> None:
    """Whoever changes a case records it again: `scripts/record_openagent.py`."""
    sent = json.loads(json.dumps(CASES))
    recorded = {
        case: [{key: step[key] for key in (*SENT, *MORE) if key in step} for step in steps]
        for case, steps in RECORDED["cases"].items()
    }
    assert recorded == sent


def test_the_recording_holds_no_words() -> None:
    """Of what was answered, only types, keys, and the literals of the protocol."""
    for steps in RECORDED["cases"].values():
        for step in steps:
            for word in words_of(step.get("body")) + words_of(step.get("events")):
                assert set(word.split("|")) <= TYPES or re.fullmatch(r"=[a-z_]+", word), word


TYPES = {"string", "integer", "number", "boolean", "null", "text", "empty"}


def words_of(shape: Any) -> list[str]:
    """All values of a shape."""
    match shape:
        case dict():
            return [word for each in shape.values() for word in words_of(each)]
        case list():
            return [word for each in shape for word in words_of(each)]
        case None:
            return []
        case _:
            return [str(shape)]


def test_the_table_is_documented() -> None:
    api = Path(__file__).parents[2] / "docs" / "api.md"
    assert documented_rows(api.read_text(), "openagent-core") == table_rows(
        "openagent-core", DIFFERENCES
    )
