"""The shim over a scripted server: what is asked, what comes out, and what every Model keeps."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.config.clock import RandomIds
from deskhand.models.base import (
    ContextMessage,
    Item,
    Model,
    Reply,
    Request,
    TextDelta,
    ThinkingDelta,
    ToolSchema,
)
from deskhand.models.openai import OpenAIModel
from deskhand.models.shim import ASSIST_PROMPT, FILES_PROMPT, NO_PROGRAMS, NO_WAY, SORT_PROMPT, Shim
from deskhand.models.shim_prompts import ABOUT_REPLY
from deskhand.models.shim_tasks import DEEP_WORK_HEADING
from deskhand.models.side_completion import Aside, Billing, ask_aside
from deskhand.models.transport import Transport, TransportLimits
from deskhand.testing import model_suite
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, Fault
from deskhand.testing.model_suite import Check, ModelScenario
from deskhand.types.budget import Charge, no_budget
from deskhand.types.commit import Change
from deskhand.types.labels import LOCAL, OWNER
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.types.programs import FileChange, Rehearsed

from .tools import open_wire

NAMES = (
    "survey_files",
    "rehearse_program",
    "run_program",
    "web_fetch",
    "undo_change",
    "cron",
    "save_memory",
)


def schemas(*names: str) -> tuple[ToolSchema, ...]:
    return tuple(ToolSchema(name, "", {"type": "object", "properties": {}}) for name in names)


TOOLS = schemas(*NAMES)
USER = Message("user", (Text("write 'hello' into n.txt", OWNER),))
PROGRAM = "write('n.txt', 'hello')"
FENCED = f"```python\n{PROGRAM}\n```"
CHANGE = FileChange("n.txt", "new", "d" * 64, "+++ n.txt\n+hello")
CAME = Rehearsed("I wrote it.", changes=(CHANGE,))


@asynccontextmanager
async def shim(fake: FakeLLM, dialect: str = "grammar") -> AsyncIterator[Shim]:
    async with Transport(TransportLimits()) as transport:
        inner = open_wire("openai", transport, fake.url)
        assert isinstance(inner, OpenAIModel)
        yield Shim(inner, "fenced" if dialect == "fenced" else "grammar")


def say(*texts: str) -> list[Behaviour]:
    return [Behaviour(text=text, times=1) for text in texts]


async def items_of(
    fake: FakeLLM,
    *messages: Message,
    dialect: str = "grammar",
    tools: tuple[ToolSchema, ...] = TOOLS,
) -> list[Item]:
    shown = tuple(
        ContextMessage(4 * n, message) for n, message in enumerate(messages or (USER,), 1)
    )
    head = DEEP_WORK_HEADING if "manage_tasks" in {tool.name for tool in tools} else "s"
    async with shim(fake, dialect) as model:
        return [item async for item in model.reply(Request("m", (head,), shown, tools))]


async def ask(
    fake: FakeLLM,
    *messages: Message,
    dialect: str = "grammar",
    tools: tuple[ToolSchema, ...] = TOOLS,
) -> tuple[str, list[tuple[str, Any]]]:
    """(what is said, the calls)."""
    items = await items_of(fake, *messages, dialect=dialect, tools=tools)
    last = items[-1]
    assert isinstance(last, Reply)
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == last.message.text
    assert last.finish == ("calls" if last.message.calls else "stop")
    return last.message.text, [
        (call.name, msgspec.json.decode(call.arguments)) for call in last.message.calls
    ]


def step(
    tool: str, arguments: dict[str, Any], result: str, status: Any = "ok"
) -> tuple[Message, Message]:
    call = ToolCall(
        f"c{hash((tool, repr(arguments)))}", tool, msgspec.Raw(msgspec.json.encode(arguments))
    )
    return Message("assistant", (call,)), Message(
        "tool", (ToolResult(call.id, (Text(result),), status),)
    )


def rehearsed(program: str, came: Rehearsed, *answers: str) -> tuple[Message, Message]:
    given = {"program": program} | ({"answers": list(answers)} if answers else {})
    return step("rehearse_program", given, msgspec.json.encode(came).decode())


SURVEYED = step(
    "survey_files", {"about": "write 'hello' into n.txt", "purpose": "change"}, "Files here: none"
)


def last_asked(fake: FakeLLM) -> Any:
    return fake.requests[-1].json


async def test_a_request_is_sorted_surveyed_written_rehearsed_and_done(fake: FakeLLM) -> None:
    """Each step is derived from the messages alone: a new process goes on in the same place."""
    fake.script(*say("change"))
    survey = {"about": "write 'hello' into n.txt", "purpose": "change"}
    assert await ask(fake) == ("", [("survey_files", survey)])
    asked = last_asked(fake)
    assert asked["grammar"].startswith('root ::= "talk"') and asked["id_slot"] == SORT_PROMPT.slot
    assert asked["messages"][0]["content"] == SORT_PROMPT.system and asked["temperature"] == 0

    fake.script(*say(FENCED))
    assert await ask(fake, USER, *SURVEYED) == ("", [("rehearse_program", {"program": PROGRAM})])
    asked = last_asked(fake)
    assert (
        asked["id_slot"] == FILES_PROMPT.slot
        and asked["messages"][0]["content"] == FILES_PROMPT.system
    )
    assert "Files here: none" in asked["messages"][-1]["content"]
    assert asked["messages"][-1]["content"].endswith("Request: write 'hello' into n.txt")

    said = len(fake.requests)
    done = [("run_program", {"program": PROGRAM, "changes": [msgspec.to_builtins(CHANGE)]})]
    turn = (USER, *SURVEYED, *rehearsed(PROGRAM, CAME))
    assert await ask(fake, *turn) == ("", done)
    text, calls = await ask(fake, *turn, *step(*done[0], result="I wrote it."))
    assert "n.txt" in text and calls == [] and len(fake.requests) == said, (
        "the model is asked for none of this"
    )


async def test_a_program_is_shown_while_it_is_thought_of(fake: FakeLLM) -> None:
    fake.script(*say(FENCED))
    items = await items_of(fake, USER, *SURVEYED)
    assert "".join(item.text for item in items if isinstance(item, ThinkingDelta)) == FENCED
    assert isinstance(items[-1], Reply) and items[-1].usage.input_tokens > 0


async def test_a_second_program_is_asked_for_with_what_was_wrong(fake: FakeLLM) -> None:
    fake.script(*say(FENCED))
    failed = rehearsed("x()", Rehearsed(failed="NameError: name 'x' is not defined"))
    assert (await ask(fake, USER, *SURVEYED, *failed))[1] == [
        ("rehearse_program", {"program": PROGRAM})
    ]
    assert "name 'x' is not defined" in last_asked(fake)["messages"][-1]["content"]


async def test_without_a_program_it_says_so(fake: FakeLLM) -> None:
    fake.script(*say(""))
    assert await ask(fake, USER, *SURVEYED) == (NO_WAY, [])


async def test_talk_is_only_words(fake: FakeLLM) -> None:
    fake.script(*say("talk", "Hello — you 👋"))
    assert await ask(fake) == ("Hello — you 👋", [])
    assert "tools" not in last_asked(fake) and last_asked(fake)["id_slot"] == ASSIST_PROMPT.slot


async def test_talk_that_claims_a_deed_is_not_passed_on(fake: FakeLLM) -> None:
    fake.script(Behaviour(text="talk: I have ordered a pizza."))
    text, calls = await ask(fake, Message("user", (Text("a pizza would be nice", OWNER),)))
    assert "nothing was done" in text and calls == []


async def test_what_needs_no_model_asks_none(fake: FakeLLM) -> None:
    def user(text: str) -> Message:
        return Message("user", (Text(text, OWNER),))

    assert await ask(fake, user("What can you do?")) == (ABOUT_REPLY, [])
    assert await ask(fake, user("undo that")) == ("", [("undo_change", {})])
    fetch = [("web_fetch", {"url": "https://x.example/a"})]
    assert await ask(fake, user("what does https://x.example/a say?")) == ("", fetch)
    assert fake.requests == []


async def test_a_text_is_read_and_answered_without_tools(fake: FakeLLM) -> None:
    asked = Message("user", (Text("what is the rent, see letter.txt?", OWNER),))
    read = step(
        "survey_files",
        {"about": "x", "purpose": "read"},
        "--- letter.txt\nThe rent is 900.\n--- end",
    )
    fake.script(*say("The rent is 900."))
    assert await ask(fake, asked, *read) == ("The rent is 900.", [])
    content = last_asked(fake)["messages"][-1]["content"]
    assert "The rent is 900." in content and content.endswith("what is the rent, see letter.txt?")


async def test_no_is_told_as_no(fake: FakeLLM) -> None:
    turn = (USER, *SURVEYED, *rehearsed(PROGRAM, CAME))
    denied = step("run_program", {"program": PROGRAM}, "not permitted: ann said no", "denied")
    text, calls = await ask(fake, *turn, *denied)
    assert "not permitted: ann said no" in text and calls == [] and fake.requests == []


async def test_without_programs_it_says_what_is_missing(fake: FakeLLM) -> None:
    fake.script(*say("change"))
    assert await ask(fake, tools=schemas("survey_files", "web_fetch")) == (NO_PROGRAMS, [])


async def test_an_unknown_word_is_a_change(fake: FakeLLM) -> None:
    fake.script(*say("perhaps"))
    ((tool, given),) = (await ask(fake, dialect="fenced"))[1]
    assert (tool, given["purpose"]) == ("survey_files", "change")


async def test_a_server_without_grammars(fake: FakeLLM) -> None:
    fake.script(*say("I think: compute."))
    ((_, given),) = (await ask(fake, dialect="fenced"))[1]
    assert given["purpose"] == "compute"
    for written in (
        f"Sure!\n{FENCED}\nThat is all.",
        PROGRAM,
        f"```\n{PROGRAM}",
        f"```py\n{PROGRAM}\n```",
    ):
        fake.script(*say(written))
        assert (await ask(fake, USER, *SURVEYED, dialect="fenced"))[1] == [
            ("rehearse_program", {"program": PROGRAM})
        ]
    assert all(
        not {"grammar", "response_format", "id_slot"} & set(asked.json) for asked in fake.requests
    )


async def test_a_question_of_the_runtime_is_asked_as_it_is_and_bound_to_its_form(
    fake: FakeLLM,
) -> None:
    form = {"type": "object", "properties": {"verdict": {"type": "string"}}}
    fake.script(*say('{"verdict": "reached"}'))
    rows = list[Change]()
    async with shim(fake) as model:
        billing = Billing(
            no_budget, Charge("", "", "default"), ids=RandomIds(), kind="aside", record=rows.extend
        )
        aired = await ask_aside(
            Aside("You judge.", "long " * 9000, form), ["embedded/m"], lambda name: model, billing
        )
    assert aired.text == '{"verdict": "reached"}'
    (asked,) = fake.requests
    system, user = (message["content"] for message in asked.json["messages"])
    assert system.startswith("You judge.") and "characters left out" in user and len(user) < 12_000
    assert asked.json["response_format"]["json_schema"]["schema"] == form


# Long work

LONG = (*TOOLS, *schemas("manage_tasks"))
NONE_YET = step("manage_tasks", {"action": "list"}, "no tasks yet")
BEGUN = (
    *step("manage_tasks", {"action": "list"}, "[ ] #1 Write hello into n.txt"),
    *step(
        "manage_tasks",
        {"action": "update", "task_id": 1, "status": "in_progress"},
        "ok, [>] #1 Write hello into n.txt",
    ),
)
GO_ON = Message("user", (Text("Go on: 1 task is open.", LOCAL),))


async def test_long_work_is_split_and_what_is_compound_once_more(fake: FakeLLM) -> None:
    fake.script(*say("change"))
    assert await ask(fake, tools=LONG) == ("", [("manage_tasks", {"action": "list"})])
    steps = '{"steps": ["Count a.txt and write b.txt", "Delete c.txt"]}'
    fake.script(*say(steps, '{"steps": ["Count a.txt", "Write b.txt"]}'))
    _, calls = await ask(fake, USER, *NONE_YET, tools=LONG)
    assert [given["title"] for _, given in calls] == ["Count a.txt", "Write b.txt", "Delete c.txt"]
    assert last_asked(fake)["messages"][-1]["content"] == "Count a.txt and write b.txt"


async def test_small_talk_in_long_work_is_only_words(fake: FakeLLM) -> None:
    fake.script(*say("talk", "talk", "You are welcome."))
    assert await ask(fake, tools=LONG) == ("You are welcome.", [])


async def test_the_end_of_a_task_is_written_down_and_not_said(fake: FakeLLM) -> None:
    fake.script(*say("change"))
    text, calls = await ask(fake, GO_ON, *BEGUN, tools=LONG)
    assert [name for name, _ in calls] == ["survey_files"] and not text
    ran = step("run_program", {"program": PROGRAM}, "I wrote it.")
    _, calls = await ask(
        fake, GO_ON, *BEGUN, *SURVEYED, *rehearsed(PROGRAM, CAME), *ran, tools=LONG
    )
    ((name, given),) = calls
    assert (name, given["action"], given["task_id"]) == (
        "manage_tasks",
        "complete",
        1,
    ) and "n.txt" in given["result"]


async def test_a_task_that_cannot_be_done_is_blocked(fake: FakeLLM) -> None:
    denied = step("run_program", {"program": PROGRAM}, "not permitted: ann said no", "denied")
    ((_, given),) = (await ask(fake, GO_ON, *BEGUN, *SURVEYED, *denied, tools=LONG))[1]
    assert given["status"] == "blocked" and "ann said no" in given["result"]
    fake.script(Behaviour(text=""))
    ((_, given),) = (await ask(fake, GO_ON, *BEGUN, *SURVEYED, tools=LONG))[1]
    assert (given["status"], given["result"]) == ("blocked", NO_WAY)


KEEPS = [
    check
    for check in model_suite.CHECKS
    # It writes programs and not calls, and does not think. Its words are looked at before they are
    # said, so they come in one piece, never empty, and never end by their length.
    if check.__name__
    not in (
        *(
            "thinking_is_kept_apart",
            "calls_are_whole_and_named",
            "ids_stay_unique_in_a_session",
            "length_is_told",
        ),
        *("text_is_the_deltas_joined", "closing_early_ends_the_call"),
    )
]
READ = step(
    "survey_files", {"about": "x", "purpose": "read"}, "--- a.txt\nI am well.\n--- end of a.txt"
)


class Reading:
    """The shim, when it has a text before it and only has to answer."""

    def __init__(self, model: Shim) -> None:
        self._model = model

    def reply(self, request: Request) -> AsyncGenerator[Item, None]:
        read = tuple(ContextMessage(100 + n, message) for n, message in enumerate(READ))
        return self._model.reply(
            msgspec.structs.replace(request, messages=(*request.messages, *read))
        )


@pytest.mark.parametrize("check", KEEPS, ids=lambda check: check.__name__)
async def test_conformance(check: Check) -> None:
    @asynccontextmanager
    async def opened(scenario: ModelScenario) -> AsyncIterator[Model]:
        async with FakeLLM() as fake, shim(fake) as model:
            fault: Fault = "hang_mid" if scenario.hangs else "reset" if scenario.fails else ""
            fake.script(Behaviour(text=scenario.text, fault=fault))
            yield Reading(model)

    await check(opened)


async def test_a_program_that_is_given_up_ends_its_call(fake: FakeLLM) -> None:
    """It comes in pieces, so that it can be closed in the middle of one."""
    fake.script(Behaviour(text=f"{FENCED}\n" * 9, fault="hang_mid"))
    shown = tuple(ContextMessage(4 * n, message) for n, message in enumerate((USER, *SURVEYED), 1))
    async with shim(fake) as model:
        stream = model.reply(Request("m", ("s",), shown, TOOLS))
        assert isinstance(await anext(stream), ThinkingDelta)
        with anyio.fail_after(10):
            await stream.aclose()
