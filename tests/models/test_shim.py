"""The shim over a scripted server: what is asked, what comes out, and what every Model keeps."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from deskhand.models.aside import Aside, ask_aside
from deskhand.models.base import Encoded, Item, Model, Reply, Request, Shown, TextDelta, ToolSchema
from deskhand.models.openai import OpenAIModel
from deskhand.models.shim import NO_WAY, TOO_LONG, Shim
from deskhand.models.shim_prompts import as_json
from deskhand.models.shim_tasks import DEEP_WORK
from deskhand.models.shim_tools import FORMS
from deskhand.models.transport import Limits, Transport
from deskhand.testing import model_suite
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour
from deskhand.testing.model_suite import Check, Scenario
from deskhand.types.labels import LOCAL, OWNER
from deskhand.types.messages import Message, Text, ToolCall, ToolResult

from .tools import open_wire

TOOLS = tuple(ToolSchema(name, "", {"type": "object", "properties": {}}) for name in FORMS if name != "reply")
USER = Message("user", (Text("make a folder called photos", OWNER),))


@asynccontextmanager
async def shim(fake: FakeLLM, dialect: str = "grammar") -> AsyncIterator[Shim]:
    async with Transport(Limits()) as transport:
        inner = open_wire("openai", transport, fake.url)
        assert isinstance(inner, OpenAIModel)
        yield Shim(inner, "fenced" if dialect == "fenced" else "grammar")


def say(*texts: str) -> list[Behaviour]:
    return [Behaviour(text=text, times=1) for text in texts]


async def ask(
    fake: FakeLLM, *messages: Message, dialect: str = "grammar", tools: tuple[ToolSchema, ...] = ()
) -> tuple[str, Reply]:
    shown = tuple(Shown(4 * n, message) for n, message in enumerate(messages or (USER,), 1))
    head = DEEP_WORK if tools else "s"
    async with shim(fake, dialect) as model:
        items = [
            item async for item in model.reply(Request("m", (f"{head}\nFiles here: a.txt",), shown, tools or TOOLS))
        ]
    last = items[-1]
    assert isinstance(last, Reply)
    text = "".join(item.text for item in items if isinstance(item, TextDelta))
    assert text == last.message.text
    return text, last


def step(tool: str, arguments: dict[str, object], result: ToolResult) -> tuple[Message, Message]:
    call = ToolCall(result.call_id, tool, msgspec.Raw(msgspec.json.encode(arguments)))
    return Message("assistant", (call,)), Message("tool", (result,))


MADE = step("shell", {"command": "mkdir photos"}, ToolResult("c1", (Text("[no output]"),)))


async def test_gate_router_and_one_schema(fake: FakeLLM) -> None:
    fake.script(*say("task", "shell", as_json("shell", {"command": "mkdir photos"})))
    _, reply = await ask(fake)
    (call,) = reply.message.calls
    assert (reply.finish, call.name, bytes(call.arguments)) == ("calls", "shell", b'{"command":"mkdir photos"}')
    gate, router, main = (asked.json for asked in fake.requests)
    assert gate["grammar"] == 'root ::= "talk" | "task" | "unclear"' and gate["id_slot"] == 1
    assert '"shell"' in router["grammar"] and "talk" not in router["grammar"] and router["id_slot"] == 2
    assert router["messages"][-1]["content"] == "make a folder called photos"
    assert main["messages"][-1]["content"].endswith("(files here: a.txt)")
    allowed = main["response_format"]["json_schema"]["schema"]["oneOf"]
    assert [form["properties"]["tool"]["const"] for form in allowed] == ["shell"]
    assert main["id_slot"] == 0 and main["temperature"] == 0


async def test_talk_is_only_words(fake: FakeLLM) -> None:
    fake.script(*say("talk", as_json("reply", {"text": "Hello — you 👋"})))
    text, reply = await ask(fake)
    assert text == "Hello — you 👋" and reply.finish == "stop" and not reply.message.calls


async def test_unclear_is_asked(fake: FakeLLM) -> None:
    fake.script(*say("unclear", as_json("ask_user", {"question": "Which file?"})))
    _, reply = await ask(fake)
    assert [(call.name, bytes(call.arguments)) for call in reply.message.calls] == [
        ("ask_user", b'{"question":"Which file?"}')
    ]


async def test_later_steps_need_no_words(fake: FakeLLM) -> None:
    fake.script(*say(as_json("reply", {"text": "I made the folder."})))
    assert (await ask(fake, USER, *MADE))[0] == "I made the folder."
    assert len(fake.requests) == 1


async def test_a_step_is_not_made_twice(fake: FakeLLM) -> None:
    fake.script(*say(as_json("shell", {"command": "mkdir photos"}), as_json("reply", {"text": "It is there."})))
    text, reply = await ask(fake, USER, *MADE)
    assert text == "It is there." and not reply.message.calls
    second = fake.requests[1].json
    assert second["messages"][-1]["content"].endswith("This is done. Now reply to the user.")
    assert len(second["response_format"]["json_schema"]["schema"]["oneOf"]) == 1


async def test_a_failed_step_is_not_made_again_as_it_was(fake: FakeLLM) -> None:
    failed = step("shell", {"command": "mkdir photos"}, ToolResult("c1", (Text("no space"),), "error"))
    again = as_json("shell", {"command": "mkdir photos"})
    fake.script(*say(again, as_json("list_files", {"path": "."})))
    _, reply = await ask(fake, USER, *failed)
    assert [call.name for call in reply.message.calls] == ["list_files"]
    names = [
        {
            form["properties"]["tool"]["const"]
            for form in asked.json["response_format"]["json_schema"]["schema"]["oneOf"]
        }
        for asked in fake.requests
    ]
    assert "reply" not in names[0] and not {"reply", "shell"} & names[1]
    fake.script(Behaviour(text=again))
    assert (await ask(fake, USER, *failed))[0] == NO_WAY


async def test_no_is_told_as_no(fake: FakeLLM) -> None:
    denied = step("shell", {"command": "rm a"}, ToolResult("c1", (Text("not permitted: ann said no"),), "denied"))
    assert (await ask(fake, USER, *denied))[0] == "I did not do that: not permitted: ann said no"
    assert fake.requests == []


async def test_what_is_too_long_is_said_so(fake: FakeLLM) -> None:
    cut = Behaviour(text='{"tool": "write_file", "arguments": {"path": "a", "content": "la la', finish="length")
    fake.script(cut)
    assert (await ask(fake, USER, *MADE))[0] == TOO_LONG
    fake.script(*say("talk"), Behaviour(text='{"tool": "reply", "arguments": {"text": "Once upon', finish="length"))
    assert (await ask(fake))[0] == "Once upon…"


async def test_a_question_of_the_runtime_is_asked_as_it_is_and_bound_to_its_form(fake: FakeLLM) -> None:
    form = {"type": "object", "properties": {"verdict": {"type": "string"}}}
    fake.script(*say('{"verdict": "reached"}'))
    async with shim(fake) as model:
        aired = await ask_aside(Aside("You judge.", "long " * 9000, form), ["embedded/m"], lambda name: model)
    assert aired.text == '{"verdict": "reached"}'
    (asked,) = fake.requests
    system, user = (message["content"] for message in asked.json["messages"])
    assert system.startswith("You judge.") and "characters left out" in user and len(user) < 12_000
    assert asked.json["response_format"]["json_schema"]["schema"] == form


LONG = (*TOOLS, ToolSchema("manage_tasks", "", {"type": "object", "properties": {}}))
NONE_YET = step("manage_tasks", {"action": "list"}, ToolResult("l1", (Text("no tasks yet"),)))
BEGUN = (
    *step("manage_tasks", {"action": "list"}, ToolResult("l1", (Text("[ ] #1 Count a.txt"),))),
    *step(
        "manage_tasks",
        {"action": "update", "task_id": 1, "status": "in_progress"},
        ToolResult("l2", (Text("ok, [>] #1 Count a.txt"),)),
    ),
)
GO_ON = Message("user", (Text("Go on: 1 task is open.", LOCAL),))


def made(reply: Reply) -> list[tuple[str, object]]:
    return [(call.name, msgspec.json.decode(call.arguments)) for call in reply.message.calls]


async def test_long_work_is_split_and_what_is_compound_once_more(fake: FakeLLM) -> None:
    fake.script(*say("task"))
    _, reply = await ask(fake, USER, tools=LONG)
    assert made(reply) == [("manage_tasks", {"action": "list"})]
    steps = '{"steps": ["Count a.txt and write b.txt", "Delete c.txt"]}'
    fake.script(*say(steps, '{"steps": ["Count a.txt", "Write b.txt"]}'))
    _, reply = await ask(fake, USER, *NONE_YET, tools=LONG)
    titles = [given["title"] for _, given in made(reply) if isinstance(given, dict)]
    assert titles == ["Count a.txt", "Write b.txt", "Delete c.txt"]
    assert fake.requests[-1].json["messages"][-1]["content"] == "Count a.txt and write b.txt"


async def test_small_talk_in_long_work_is_only_words(fake: FakeLLM) -> None:
    fake.script(*say("talk", as_json("reply", {"text": "You are welcome."})))
    assert (await ask(fake, USER, tools=LONG))[0] == "You are welcome."


async def test_a_task_to_remember_something_is_done_with_that(fake: FakeLLM) -> None:
    saved = step("save_memory", {"content": "Ann likes tea"}, ToolResult("c1", (Text("ok, remembered"),)))
    _, reply = await ask(fake, GO_ON, *BEGUN, *saved, tools=LONG)
    done = {"action": "complete", "task_id": 1, "result": "I will remember: Ann likes tea"}
    assert made(reply) == [("manage_tasks", done)] and fake.requests == []


async def test_the_end_of_a_task_is_written_down_and_not_said(fake: FakeLLM) -> None:
    fake.script(*say("shell", as_json("shell", {"command": "wc -l a.txt"})))
    text, reply = await ask(fake, GO_ON, *BEGUN, tools=LONG)
    assert made(reply) == [("shell", {"command": "wc -l a.txt"})] and not text
    counted = step("shell", {"command": "wc -l a.txt"}, ToolResult("c1", (Text("12 a.txt"),)))
    fake.script(*say(as_json("reply", {"text": "a.txt has 12 lines."})))
    text, reply = await ask(fake, GO_ON, *BEGUN, *counted, tools=LONG)
    done = {"action": "complete", "task_id": 1, "result": "a.txt has 12 lines."}
    assert made(reply) == [("manage_tasks", done)] and not text


async def test_a_task_that_cannot_be_done_is_blocked(fake: FakeLLM) -> None:
    denied = step("shell", {"command": "rm a"}, ToolResult("c1", (Text("not permitted: ann said no"),), "denied"))
    _, reply = await ask(fake, GO_ON, *BEGUN, *denied, tools=LONG)
    said = "I did not do that: not permitted: ann said no"
    assert made(reply) == [("manage_tasks", {"action": "update", "task_id": 1, "status": "blocked", "result": said})]
    counted = step("shell", {"command": "wc a"}, ToolResult("c1", (Text("12 a"),)))
    fake.script(Behaviour(text=as_json("shell", {"command": "wc a"})))
    _, reply = await ask(fake, GO_ON, *BEGUN, *counted, tools=LONG)
    ((_, given),) = made(reply)
    assert isinstance(given, dict) and (given["status"], given["result"]) == ("blocked", NO_WAY)


async def test_a_server_without_grammars(fake: FakeLLM) -> None:
    fenced = f"Sure!\n```json\n{as_json('shell', {'command': 'mkdir photos'})}\n```"
    fake.script(*say("I think: task.", "Shell", fenced))
    _, reply = await ask(fake, dialect="fenced")
    assert [call.name for call in reply.message.calls] == ["shell"]
    assert all(not {"grammar", "response_format", "id_slot"} & set(asked.json) for asked in fake.requests)
    assert "```json" in fake.requests[2].json["messages"][0]["content"]
    fake.script(*say("task", "shell", as_json("read_file", {"path": "a"}), fenced))
    _, reply = await ask(fake, dialect="fenced")
    assert [call.name for call in reply.message.calls] == ["shell"]
    fake.script(*say("talk", "Just words."))
    assert (await ask(fake, dialect="fenced"))[0] == "Just words."


async def test_the_listing_stays_that_of_the_turns_begin(fake: FakeLLM) -> None:
    """The server has read it; another one would make it read the turn again."""
    memory = Encoded()
    shown = tuple(Shown(4 * n, message) for n, message in enumerate((USER, *MADE), 1))
    async with shim(fake) as model:
        for names in ("a.txt", "a.txt, photos/"):
            fake.script(*say("task", "shell", as_json("reply", {"text": "ok"})))
            request = Request("m", (f"s\nFiles here: {names}",), shown, TOOLS, encoded=memory)
            assert [item async for item in model.reply(request)]
            assert fake.requests[-1].json["messages"][1]["content"].endswith("(files here: a.txt)")


KEEPS = [
    check
    for check in model_suite.CHECKS
    # It makes one call at a time, does not think, and never ends by its length: that is what it is for.
    if check.__name__
    not in ("thinking_is_kept_apart", "calls_are_whole_and_named", "ids_stay_unique_in_a_session", "length_is_told")
]


class WithoutTools:
    """The shim, asked for words alone: then each reply is one call, and calls may come in any order."""

    def __init__(self, model: Shim) -> None:
        self._model = model

    def reply(self, request: Request) -> AsyncGenerator[Item, None]:
        return self._model.reply(msgspec.structs.replace(request, tools=()))


@pytest.mark.parametrize("check", KEEPS, ids=lambda check: check.__name__)
async def test_conformance(check: Check) -> None:
    @asynccontextmanager
    async def opened(scenario: Scenario) -> AsyncIterator[Model]:
        async with FakeLLM() as fake, shim(fake) as model:
            written = json.dumps({"tool": "reply", "arguments": {"text": scenario.text}})
            fake.script(
                Behaviour(text=written, fault="hang_mid" if scenario.hangs else "reset" if scenario.fails else "")
            )
            yield WithoutTools(model)

    await check(opened)
