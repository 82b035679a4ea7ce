"""Hooks: what they see, what they may change, and that nothing they do ends a turn."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from deskhand.models.base import Encoded, Model, Request
from deskhand.policy.rules import Decision
from deskhand.testing.bench import Bench
from deskhand.testing.crash import Crash, Fuse
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import FileTool
from deskhand.tools.base import Tool
from deskhand.tools.hooks import HOOKS, Handler, HookContext, HookName, PluginHooks
from deskhand.types.events import ModelFailed, TurnEnded
from deskhand.types.labels import LOCAL, UNTRUSTED
from deskhand.types.messages import Message, Text, ToolCall

MakeBench = Callable[[Model, Sequence[Tool]], Bench]


def hooked(b: Bench, handlers: dict[HookName, Sequence[Handler]], handler_s: float = 10.0) -> Bench:
    b.agent = replace(b.agent, hooks=PluginHooks("agent", handlers, handler_s))
    b.start()
    return b


def note_then_fine(request: Request) -> Message:
    """Calls the tool `note`, then says what it was told."""
    results = [shown.message for shown in request.messages if shown.message.role == "tool"]
    return (
        say("all is noted")
        if results
        else say("", ToolCall("c", "note", msgspec.Raw(b'{"text":"x"}')))
    )


def changing(**changes: Any) -> Handler:
    """A handler that sets these fields."""

    async def handler(context: HookContext) -> None:
        for name, value in changes.items():
            setattr(context, name, value)

    return handler


async def test_each_hook_runs_in_its_place(bench: MakeBench, tmp_path: Path) -> None:
    seen: list[tuple[str, HookContext]] = []

    def watch(name: HookName) -> Handler:
        async def handler(context: HookContext) -> None:
            seen.append((name, context))

        return handler

    b = hooked(
        bench(ScriptedModel(note_then_fine), [FileTool("note", tmp_path / "notes")]),
        {n: [watch(n)] for n in HOOKS},
    )
    await b.say("note x")
    llm = ["before_llm_call", "after_llm_call"]
    start = ["before_agent_start", "after_agent_start"]
    tool_call = ["before_tool_call", "after_tool_call"]
    assert [name for name, _ in seen] == [
        *start,
        *llm,
        *tool_call,
        *llm,
        "before_agent_end",
        "after_agent_end",
    ]
    by_name = dict(seen)
    for context in by_name.values():
        assert (context.session, context.agent, context.principal.id) == (
            "agent/chat:1",
            "agent",
            "ann",
        )
        assert context.said == ("note x",) and context.address.chat == "1"
    assert (
        by_name["before_llm_call"].model == "model"
        and len(by_name["before_llm_call"].messages) == 3
    )
    reply = by_name["after_llm_call"].reply
    assert reply is not None and reply.text == "all is noted"
    tool_context = by_name["after_tool_call"]
    assert tool_context.call is not None and tool_context.call.name == "note"
    assert (tool_context.result, tool_context.status) == ("noted", "ok")
    assert (by_name["after_agent_end"].response, by_name["after_agent_end"].reason) == (
        "all is noted",
        "done",
    )
    await b.say("again")
    assert [name for name, _ in seen].count("before_agent_start") == 2


async def test_messages_are_changed_for_one_call_and_never_in_the_log(bench: MakeBench) -> None:
    asked: list[list[str]] = []

    def script(request: Request) -> Message:
        asked.append([shown.message.text for shown in request.messages])
        return say("yes")

    async def add(context: HookContext) -> None:
        context.messages.append(Message("user", (Text("It is Sunday.", LOCAL),)))

    b = hooked(bench(ScriptedModel(script), []), {"before_llm_call": [add]})
    await b.say("hello")
    await b.say("and?")
    assert asked == [["hello", "It is Sunday."], ["hello", "yes", "and?", "It is Sunday."]]
    assert "Sunday" not in str(await b.events())


async def test_other_messages_are_never_sent_as_bytes_that_were_kept(bench: MakeBench) -> None:
    """A wire keeps the encoded bytes of a message by its key."""
    kept: list[Encoded] = []

    def script(request: Request) -> Message:
        kept.append(request.encoded)
        request.encoded.messages.update(
            {
                ("wire", shown.n, shown.variant): shown.message.text.encode()
                for shown in request.messages
            }
        )
        return say("yes")

    async def hide(context: HookContext) -> None:
        if context.said == ("secret",):
            context.messages = [Message("user", (Text("[hidden]", LOCAL),))]

    b = hooked(bench(ScriptedModel(script), []), {"before_llm_call": [hide]})
    await b.say("secret")
    await b.say("open")
    assert b"[hidden]" in kept[0].messages.values() and b"[hidden]" not in kept[1].messages.values()


@pytest.mark.parametrize(
    ("changes", "status", "text", "label"),
    [
        ({"result": "from my cache", "status": "ok"}, "ok", "from my cache", UNTRUSTED),
        ({"result": "not on Sundays"}, "denied", "not on Sundays", UNTRUSTED),
        ({"result": "a page", "status": "ok", "label": LOCAL}, "ok", "a page", LOCAL),
        ({}, "denied", "note was not run: a hook skipped it", LOCAL),
    ],
)
async def test_a_skipped_tool_does_not_run(
    bench: MakeBench, tmp_path: Path, changes: dict[str, Any], status: str, text: str, label: Any
) -> None:
    handlers: dict[HookName, Sequence[Handler]] = {
        "before_tool_call": [changing(skip=True, **changes)]
    }
    b = hooked(
        bench(ScriptedModel(note_then_fine), [FileTool("note", tmp_path / "notes")]), handlers
    )
    await b.say("note x")
    (result,) = await b.results()
    assert (result.status, result.text) == (status, text) and not (tmp_path / "notes").exists()
    (part,) = result.parts
    assert part.label == label
    assert await b.sent() == ["all is noted"]


async def test_a_hook_cannot_let_through_what_policy_denies(
    bench: MakeBench, tmp_path: Path
) -> None:
    asked: list[str] = []

    async def watch(context: HookContext) -> None:
        asked.append(context.agent)

    b = bench(ScriptedModel(note_then_fine), [FileTool("note", tmp_path / "notes")])
    b.configure(lambda case: Decision("deny", "never"))
    await hooked(b, {"before_tool_call": [watch]}).say("note x")
    assert asked == [] and (await b.results())[0].status == "denied"


async def test_what_is_said_at_the_end_is_logged_and_sent_as_it_was_changed(
    bench: MakeBench,
) -> None:
    b = hooked(
        bench(ScriptedModel(lambda request: say("my key is 1234")), []),
        {"before_agent_end": [changing(response="my key is [hidden] \ud800")]},
    )
    await b.say("hello")
    assert await b.sent() == ["my key is [hidden] ?"]
    end = (await b.events())[-1]
    assert (
        isinstance(end, TurnEnded) and end.said == "my key is [hidden] ?" and end.reason == "done"
    )


async def test_an_answer_that_nobody_changed_is_logged_once(bench: MakeBench) -> None:
    b = hooked(
        bench(ScriptedModel(lambda request: say("yes")), []),
        {"before_agent_end": [changing(response="  ")]},
    )
    await b.say("hello")
    end = (await b.events())[-1]
    assert await b.sent() == ["yes"] and isinstance(end, TurnEnded) and end.said == ""


def broken(act: str) -> Handler:
    async def handler(context: HookContext) -> None:
        context.skip = True
        context.response = "wrong"
        context.messages = []
        if act == "raises":
            raise RuntimeError("oh")
        if act == "hangs":
            await anyio.sleep(60)
        if act == "group":
            raise ExceptionGroup("two", [OSError(5, "gone")])
        context.response = context.result = None  # type: ignore[assignment]  # a plugin is not type-checked

    return handler


@pytest.mark.parametrize("act", ["raises", "hangs", "group", "wrong type"])
async def test_a_broken_handler_is_logged_and_changes_nothing(
    bench: MakeBench, tmp_path: Path, act: str, caplog: pytest.LogCaptureFixture
) -> None:
    after: list[str] = []

    async def next_one(context: HookContext) -> None:
        after.append(context.response)

    b = hooked(
        bench(ScriptedModel(note_then_fine), [FileTool("note", tmp_path / "notes")]),
        {name: [broken(act), next_one] for name in HOOKS},
        handler_s=0.01,
    )
    with caplog.at_level(logging.ERROR, "deskhand"):
        await b.say("note x")
    assert await b.sent() == ["all is noted"] and (tmp_path / "notes").read_text().count("\n") == 1
    assert {name for name in HOOKS if f"the hook {name}" in caplog.text} == set(HOOKS)
    assert len(after) == 10 and "wrong" not in after


UNPAIRED: list[Callable[[list[Message]], list[Message]]] = [
    lambda messages: [m for m in messages if m.role != "tool"],
    lambda messages: [m for m in messages if m.role != "assistant"],
    lambda messages: [*messages[:2], Message("user", (Text("between"),)), *messages[2:]],
    lambda messages: ["no message"],  # type: ignore[list-item]
]


@pytest.mark.parametrize("change", UNPAIRED)
async def test_messages_that_no_model_takes_are_not_sent(
    bench: MakeBench, tmp_path: Path, change: Callable[[list[Message]], list[Message]]
) -> None:
    sizes: list[int] = []

    def script(request: Request) -> Message:
        sizes.append(len(request.messages))
        return note_then_fine(request)

    async def handler(context: HookContext) -> None:
        if len(context.messages) > 1:
            context.messages = change(context.messages)

    b = hooked(
        bench(ScriptedModel(script), [FileTool("note", tmp_path / "notes")]),
        {"before_llm_call": [handler]},
    )
    await b.say("note x")
    assert sizes == [1, 3] and await b.sent() == ["all is noted"]
    assert not any(isinstance(event, ModelFailed) for event in await b.events())


async def test_after_a_crash_in_a_hook_nothing_is_done_twice(
    bench: MakeBench, tmp_path: Path
) -> None:
    """Hooks of every kind tick a fuse; the process dies at each tick in turn, and the turn still
    ends once."""
    for at in range(1, 11):
        fuse = Fuse(at)

        async def tick(context: HookContext, fuse: Fuse = fuse) -> None:
            fuse.tick("hook")

        notes = tmp_path / f"notes{at}"
        b = hooked(
            bench(ScriptedModel(note_then_fine), [FileTool("note", notes)]),
            {name: [tick] for name in HOOKS},
        )
        try:
            await b.say("note x")
        except Crash:
            b.start()
            await b.drive()
        ends = [event for event in await b.events() if isinstance(event, TurnEnded)]
        assert len(ends) == 1 and await b.sent() == ["all is noted"]
        assert not notes.exists() or notes.read_text().count("\n") == 1


_: Callable[[HookContext], Awaitable[None]] = changing()
