"""Lets a model without tool calls use tools: one word to sort the request, one to pick the tool, then its arguments.

A small model that may choose anything chooses badly; bound to one word at a time it is right nine times in ten. What
it may do next is decided here, from what has happened in the turn, and never left to it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from typing import Any, Literal, Protocol

import msgspec

from ..types.labels import OWNER
from ..types.messages import Message, Text, ToolCall, Usage
from .base import Item, Model, Reply, Request, Shown, TextDelta
from .decode import make_calls
from .shim_prompts import GATE, GATE_SHOTS, ROUTER, ROUTER_SHOTS, WORD_TOOLS, Shots, system_prompt
from .shim_tasks import (
    DEEP_WORK,
    PLAN_MODE,
    SPLITTER,
    SPLITTER_SHOTS,
    STEPS_SCHEMA,
    TASKS,
    Calls,
    Hear,
    OnTask,
    Split,
    ended,
    is_compound,
    next_work,
    steps_in,
    written_down,
)
from .shim_tools import ASK, FORMS, REPLY, Move, read_move, real_arguments, schema
from .shim_turn import (
    BUDGET,
    Chat,
    Choose,
    Do,
    Plan,
    Say,
    Sort,
    Turn,
    chat,
    clip,
    cost,
    fit_edit,
    listing_of,
    plan,
    read_turn,
    repeated,
    repeats,
    said_by_person,
)
from .speech import Speech

Dialect = Literal["grammar", "fenced"]
"""How a server is bound to a form: by llama.cpp's grammars, schemas and slots, or only by asking for fenced JSON."""

MAIN, GATE_SLOT, ROUTER_SLOT = 0, 1, 2
GATE_WORDS = ("talk", "task", "unclear")
OUTPUT_TOKENS = 700
WORD_TOKENS = 8
WINDOW = 4096
"""Tokens of a slot."""
TRIES = 3
PARTS = 4
"""Into more than this a step of a longer request is not split."""
TOO_LONG = (
    "This became too long for the small model that I run on. Ask for something shorter, or choose a bigger model."
)
NO_WAY = "I found no way to do this. Say it in other words, in smaller steps, or choose a bigger model."


class Classifier(msgspec.Struct, frozen=True):
    """A question that is answered with one word, and the slot that keeps its prompt."""

    system: str
    shots: Shots
    slot: int


SORTER = Classifier(GATE, GATE_SHOTS, GATE_SLOT)
PICKER = Classifier(ROUTER, ROUTER_SHOTS, ROUTER_SLOT)


class TextModel(Protocol):
    """What a shim stands on: a Model whose iterator can be closed."""

    def reply(self, request: Request) -> AsyncGenerator[Item, None]: ...


class Shim:
    """A Model around a model that only writes text. Of the tools in a request it offers those that it has a form for.

    Everything is derived from the request's messages: after a restart the next step is the same.
    """

    selective = True

    def __init__(self, inner: TextModel, dialect: Dialect = "grammar") -> None:
        self._inner, self._dialect = inner, dialect

    async def reply(self, request: Request) -> AsyncGenerator[Item, None]:
        """See Model.reply. The usage is that of the main call; single words and what splits a request are not in it."""
        if is_aside(request):
            items = self._inner.reply(self._aside(request))
        elif TASKS in {tool.name for tool in request.tools} and DEEP_WORK in request.system[-1]:
            items = self._work(request)
        else:
            items = self._step(request, read_turn(request.messages))
        async with aclosing(items):
            async for item in items:
                yield item

    async def _step(self, request: Request, turn: Turn, first: Plan | None = None) -> AsyncGenerator[Item, None]:
        """The next step of a turn; `first` where that is known."""
        offered = {tool.name for tool in request.tools}
        next_step = first or plan(turn, offered)
        if isinstance(next_step, Sort):
            next_step = await self._sort(turn, next_step.names)
        match next_step:
            case Say(text=text):
                yield TextDelta(text)
                yield _spoken(text)
            case Do(move=move):
                yield _calling(request, move)
            case Choose(names=names):
                talk = chat(turn, _listing(request, turn))
                async with aclosing(self._choose(request, turn, talk, names)) as items:
                    async for item in items:
                        yield item

    async def _work(self, request: Request) -> AsyncGenerator[Item, None]:
        """The next step of long work."""
        work = next_work(request.messages, PLAN_MODE in request.system[-1])
        if isinstance(work, Hear):
            turn = read_turn(request.messages)
            heard = await self._hear(turn)
            if heard is None:
                work = work.then
            else:
                async with aclosing(self._step(request, turn, heard)) as items:
                    async for item in items:
                        yield item
                return
        match work:
            case Say(text=text):
                yield TextDelta(text)
                yield _spoken(text)
            case Split(request=asked, drop=drop):
                yield _calling(request, *written_down(await self._steps(asked), asked, drop))
            case Calls(moves=moves):
                yield _calling(request, *moves)
            case OnTask(id=id_, turn=turn):
                yield await self._on_task(request, id_, turn)

    async def _on_task(self, request: Request, id_: int, turn: Turn) -> Reply:
        """The next step of one task. What the model would say to the person at its end is what came of it."""
        offered = {tool.name for tool in request.tools}
        next_step = plan(turn, offered)
        if isinstance(next_step, Say):
            return _calling(request, ended(id_, next_step.text, blocked=next_step.failed))
        if isinstance(next_step, Sort):
            next_step = await self._pick(turn, next_step.names)
        reply = _spoken("")
        async with aclosing(self._step(request, turn, next_step)) as items:
            async for item in items:
                reply = item if isinstance(item, Reply) else reply
        if reply.message.calls:
            return reply
        said = reply.message.text
        return _calling(request, ended(id_, said, blocked=said.endswith((NO_WAY, TOO_LONG))), usage=reply.usage)

    def _aside(self, request: Request) -> Request:
        """A question that belongs to no conversation, as it is; too long a text is cut in its middle."""
        system = "\n\n".join(request.system)
        most = min(request.max_output_tokens or OUTPUT_TOKENS, OUTPUT_TOKENS)
        text = clip(request.messages[0].message.text, WINDOW - most - cost(system))
        form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": request.form}}
        extra = ({"response_format": form} if request.form else {}) | {"id_slot": GATE_SLOT}
        return self._request(system, [("user", text)], extra, most)

    async def fill(self, slot: int) -> None:
        """Have the server read this slot's stable prompt before the first request comes. Raises ModelError."""
        if slot == MAIN:
            async with aclosing(self._inner.reply(self._main([("user", "hello")], tuple(FORMS), FORMS, 1))) as items:
                async for _ in items:
                    pass
        elif slot == GATE_SLOT:
            await self._word(SORTER, "hello", GATE_WORDS)
        else:
            await self._word(PICKER, "hello", tuple(WORD_TOOLS))

    async def _sort(self, turn: Turn, names: Sequence[str]) -> Choose:
        """The first step of a turn: which tool, by one or two words."""
        if (heard := await self._hear(turn)) is not None:
            return heard
        picked = await self._pick(turn, names)
        # A question whose answer is known already needs no tool; anything else is not done before a tool did it.
        known = turn.known and turn.request.rstrip().endswith("?")
        return Choose((*picked.names, REPLY)) if known and REPLY not in picked.names else picked

    async def _hear(self, turn: Turn) -> Choose | None:
        """What to do with something that is no work; None for work."""
        word = await self._word(SORTER, turn.request, GATE_WORDS)
        return {"talk": Choose((REPLY,)), "unclear": Choose((ASK,))}.get(word)

    async def _pick(self, turn: Turn, names: Sequence[str]) -> Choose:
        """The tool for the first step of some work."""
        words = tuple(word for word, tool in WORD_TOOLS.items() if tool in names)
        # Not with the names of the files: having read those, it wants to search, whatever it was asked.
        tool = WORD_TOOLS.get(await self._word(PICKER, turn.request, words)) if words else None
        tools = (tool,) if tool in names else tuple(name for name in names if name not in (REPLY, ASK))
        return Choose(tuple(name for name in tools if name) or (REPLY,))

    async def _steps(self, asked: str) -> list[str]:
        """The steps of a request."""
        steps = list[str]()
        for step in await self._split(asked):
            parts = await self._split(step) if step != asked and is_compound(step) else []
            steps += parts if 1 < len(parts) <= PARTS else [step]
        return steps

    async def _split(self, text: str) -> list[str]:
        talk: Chat = [pair for said, steps in SPLITTER_SHOTS for pair in (("user", said), ("assistant", steps))]
        form = {"type": "json_schema", "json_schema": {"name": "steps", "schema": STEPS_SCHEMA}}
        # Not in a slot of its own: it is asked at the beginning of a long work, the others at every step.
        extra = {"response_format": form, "id_slot": GATE_SLOT}
        asking = self._request(SPLITTER, [*talk, ("user", clip(text, BUDGET // 2))], extra, OUTPUT_TOKENS)
        written = ""
        async with aclosing(self._inner.reply(asking)) as items:
            async for item in items:
                written = item.message.text if isinstance(item, Reply) else written
        return steps_in(written)

    async def _word(self, asked: Classifier, text: str, words: Sequence[str]) -> str:
        """The word that the model answers with; '' where it is none of these."""
        talk: Chat = [pair for said, word in asked.shots for pair in (("user", said), ("assistant", word))]
        extra = {"grammar": "root ::= " + " | ".join(f'"{word}"' for word in words), "id_slot": asked.slot}
        request = self._request(asked.system, [*talk, ("user", text)], extra, WORD_TOKENS)
        said = ""
        async with aclosing(self._inner.reply(request)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    said = item.message.text.lower()
        found = [word for word in words if word in said]
        return min(found, key=said.index) if found else ""

    async def _choose(
        self, request: Request, turn: Turn, talk: Chat, names: tuple[str, ...]
    ) -> AsyncGenerator[Item, None]:
        """A move with one of these tools, told as words or as a call; it has a few tries to make one that may be."""
        offered = {tool.name for tool in request.tools}
        said = ""
        for _ in range(TRIES):
            attempt = Attempt()
            asking = self._main(talk, names, offered, request.max_output_tokens or OUTPUT_TOKENS)
            async with aclosing(self._inner.reply(asking)) as items:
                async for item in items:
                    if (new := attempt.take(item)) and REPLY in names:
                        said += new
                        yield TextDelta(new)
            match judge(attempt, turn, names, offered):
                case str(text):
                    # What was shown stays: a text cut off in the middle of a move only gets its end.
                    rest = text[len(said) :] if text.startswith(said) else ""
                    if rest:
                        yield TextDelta(rest)
                    yield _spoken(said + rest, attempt.usage)
                    return
                case Move() as move:
                    yield _calling(request, move, usage=attempt.usage)
                    return
                case Again(chat=more, names=names):
                    talk = [*talk, *more]
        yield TextDelta(NO_WAY)
        yield _spoken(said + NO_WAY)

    def _main(self, talk: Chat, names: Sequence[str], offered: Collection[str], output_tokens: int) -> Request:
        """The request with the main prompt: a move with one of `names`."""
        form = {"type": "json_schema", "json_schema": {"name": "move", "schema": schema(names)}}
        prompt = system_prompt(offered, fenced=self._dialect == "fenced")
        return self._request(prompt, talk, {"response_format": form, "id_slot": MAIN}, output_tokens)

    def _request(self, system: str, talk: Chat, extra: dict[str, Any], output_tokens: int) -> Request:
        shown = tuple(
            Shown(key, Message("user" if role == "user" else "assistant", (Text(text, OWNER),)))
            for key, (role, text) in enumerate(talk, 1)
        )
        raw = msgspec.Raw(msgspec.json.encode(extra)) if self._dialect == "grammar" else None
        return Request("", (system,), shown, (), output_tokens, "off", 0.0, extra=raw)


def is_aside(request: Request) -> bool:
    """It is asked by the runtime, and is no part of a conversation."""
    if request.tools or len(request.messages) != 1:
        return False
    return not said_by_person(request.messages[0].message)


class Attempt:
    """What the model writes for one move, as it comes."""

    def __init__(self) -> None:
        self.written, self.cut, self.usage = "", False, Usage()
        self._speech = Speech()

    @property
    def said(self) -> str:
        return self._speech.said

    def take(self, item: Item) -> str:
        """What is new of its words to the person."""
        if isinstance(item, Reply):
            self.cut, self.usage = item.finish == "length", item.usage
        elif isinstance(item, TextDelta):
            self.written += item.text
            return self._speech.feed(item.text)
        return ""


class Again(msgspec.Struct, frozen=True):
    """The move will not do: ask once more, with this said, for one of these."""

    chat: Chat
    names: tuple[str, ...]


def judge(attempt: Attempt, turn: Turn, names: tuple[str, ...], offered: Collection[str]) -> str | Move | Again:
    """What becomes of an attempt: words to the person, a call, or another try."""
    move = read_move(attempt.written)
    if move is None and attempt.cut:
        return f"{attempt.said}…" if attempt.said and REPLY in names else TOO_LONG
    if move is None and REPLY in names:
        return attempt.said or attempt.written.strip()
    if move is not None and move.tool in names:
        if move.tool == REPLY:
            return str(move.arguments["text"])
        if move.tool == ASK and ASK not in offered:
            return str(move.arguments["question"])
        move = fit_edit(move, turn)
        before = repeats(move, turn)
        if before is None:
            return move
        if not (before.failed or before.empty):
            return Again(repeated(move, before), (REPLY,))
    tool = move.tool if move else ""
    others = tuple(name for name in names if name not in (tool, REPLY)) or names
    said = f"Do not do that. Use one of: {', '.join(others)}."
    return Again([("assistant", attempt.written[:300]), ("user", said)], others)


def _listing(request: Request, turn: Turn) -> str:
    """The names in the workspace as they were when the turn began: were they read anew at each step, the server would
    have to read the whole turn again. The session's memory keeps them; without it they are merely newer."""
    kept = request.encoded.each.get(("shim:files", turn.key))
    if kept is None:
        kept = request.encoded.each[("shim:files", turn.key)] = listing_of(request.system).encode()
    return kept.decode()


def _calling(request: Request, *moves: Move, usage: Usage | None = None) -> Reply:
    calls: list[ToolCall] = make_calls([("", move.tool, real_arguments(move)) for move in moves], request)
    return Reply(Message("assistant", tuple(calls)), "calls", usage or Usage())


def _spoken(text: str, usage: Usage | None = None) -> Reply:
    return Reply(Message("assistant", (Text(text),) if text else ()), "stop", usage or Usage())


_: type[Model] = Shim
