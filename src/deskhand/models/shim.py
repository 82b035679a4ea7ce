"""Lets a model without tool calls do things: one word to sort the request, and then one short
program for it.

What it may do next is decided in `shim_steps`, from what has happened in the turn, and never left
to it. A program is rehearsed on a copy of the folder before it counts; both are calls of tools like
any other, and stand in the log.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal, Protocol

import msgspec

from ..types.labels import OWNER
from ..types.messages import Message, Role, Text, ToolCall, Usage
from ..types.programs import RUN_PROGRAM
from .base import ContextMessage, Item, Model, Reply, Request, TextDelta, ThinkingDelta
from .decode import make_calls
from .shim_library import find_similar_examples
from .shim_programs import (
    ENDLESS_ERROR,
    extract_program,
    is_enumerating,
    is_repeating,
    prune_program,
)
from .shim_prompts import (
    ASSISTANT,
    ASSISTANT_SHOTS,
    PROGRAM_SHOTS,
    PROGRAMMER,
    READER,
    REQUEST_KINDS,
    REWRITER,
    SORTER,
    SORTER_SHOTS,
    TALKER,
    WRITER,
    RequestKind,
    Shots,
)
from .shim_reading import (
    add_source,
    find_invented_figure,
    find_nearest_passage,
    render_nearest_passage,
    sort_by_relevance,
    strip_listed_orders,
    strip_orders,
)
from .shim_request import classify_obvious, split_questions
from .shim_steps import (
    AnswerStep,
    Do,
    SayStep,
    ShimStep,
    Sort,
    Write,
    first_step,
    has_file_texts,
    is_stuck,
    make_rehearsal,
    make_survey,
    next_step,
)
from .shim_tasks import (
    DEEP_WORK_HEADING,
    PLAN_MODE_HEADING,
    SPLITTER,
    SPLITTER_SHOTS,
    STEPS_SCHEMA,
    TASKS,
    Hear,
    OnTask,
    Split,
    TaskCalls,
    is_compound,
    make_end_move,
    make_task_moves,
    next_work,
    parse_steps,
)
from .shim_texts import (
    close_fence,
    find_new_text_path,
    find_rewrite_target,
    make_rewrite_program,
    make_text_program,
)
from .shim_turn import (
    Chat,
    Move,
    ShimTurn,
    clip_text,
    estimate_text_tokens,
    person_text,
    read_turn,
    render_earlier,
)
from .shim_words import replace_false_claim

Dialect = Literal["grammar", "fenced"]
"""How a server is bound to a form: by llama.cpp's grammars, schemas and slots, or only by
asking."""

MAIN_SLOT = 0
SORTING_SLOT = 1
ASSISTING_SLOT = 2
"""The slots, by what is read there again and again."""
WINDOW = 4096
"""Tokens of a slot."""
OUTPUT_TOKENS = 700
PROGRAM_TOKENS = 400
ANSWER_TOKENS = 200
WORD_TOKENS = 8
RETRY_TEMPERATURE = 0.5
"""The temperature of every program but the first, and the one that mends it."""
MAX_PARTS = 4
"""Into more than this a step of a longer request is not split."""
REQUEST_CHARS = 2 * WINDOW
"""A longer request does not fit into a slot beside what stands there already."""
TOO_LONG = (
    "That is more than I can read at once. Put it into a file, and tell me what to do with that."
)
NO_WAY = (
    "I found no way to do this. Say it in other words, in smaller steps, or choose a bigger model."
)
NO_PROGRAMS = (
    "I work on files by small programs, and this agent may not run any. `deskhand tools` shows "
    "what it may do."
)


class ShimPrompt(msgspec.Struct, frozen=True):
    """A stable beginning, and the slot that keeps it."""

    system: str
    shots: Shots
    slot: int


def with_similar_examples(prompt: ShimPrompt, request: str, listing: str) -> ShimPrompt:
    """The prompt with the examples that are most like the request behind its own, which stay in the
    slot."""
    examples = find_similar_examples(request, listing)
    return msgspec.structs.replace(prompt, shots=(*prompt.shots, *examples))


SORT_PROMPT = ShimPrompt(SORTER, SORTER_SHOTS, SORTING_SLOT)
FILES_PROMPT = ShimPrompt(PROGRAMMER, PROGRAM_SHOTS, MAIN_SLOT)
ASSIST_PROMPT = ShimPrompt(ASSISTANT, ASSISTANT_SHOTS, ASSISTING_SLOT)
PROMPTS = (FILES_PROMPT, SORT_PROMPT, ASSIST_PROMPT)
"""By their slots."""


class TextModel(Protocol):
    """What a shim stands on: a Model whose iterator can be closed."""

    def reply(self, request: Request) -> AsyncGenerator[Item, None]: ...


class Shim:
    """A Model around a model that only writes text. Everything is derived from the request's
    messages: after a restart the next step is the same."""

    selective = True

    def __init__(self, inner: TextModel, dialect: Dialect = "grammar") -> None:
        self._inner = inner
        self._dialect = dialect

    async def reply(self, request: Request) -> AsyncGenerator[Item, None]:
        """See Model.reply. The usage is that of the last call; single words and what splits a
        request are not in it."""
        if is_aside(request):
            items = self._inner.reply(self._make_aside_request(request))
        elif _is_deep_work(request):
            items = self._run_work(request)
        else:
            items = self._run_step(request, read_turn(request.messages))
        async with aclosing(items):
            async for item in items:
                yield item

    async def _run_step(self, request: Request, turn: ShimTurn) -> AsyncGenerator[Item, None]:
        """The next step of a turn."""
        step = await self._decide_step(request, turn)
        match step:
            case SayStep(text=text):
                yield TextDelta(text)
                yield _make_text_reply(text)
            case Do(moves=moves):
                yield _make_call_reply(request, *moves)
            case AnswerStep(texts=texts):
                async with aclosing(self._answer(request, turn, texts)) as items:
                    async for item in items:
                        yield item
            case Write(kind="rewrite" | "new text"):
                async with aclosing(self._write_text(request, turn, step)) as items:
                    async for item in items:
                        yield item
            case Write():
                async with aclosing(self._write_program(request, turn, step)) as items:
                    async for item in items:
                        yield item
            case Sort():
                raise AssertionError("it was sorted")

    async def _decide_step(self, request: Request, turn: ShimTurn) -> ShimStep:
        """What comes next; a request that is new is sorted."""
        step = next_step(turn)
        if isinstance(step, Sort):
            if len(turn.request) > REQUEST_CHARS:
                return SayStep(TOO_LONG)
            step = first_step(await self._sort_request(turn.request), turn)

        tools = {tool.name for tool in request.tools}
        may_run = not tools or RUN_PROGRAM in tools
        if not may_run and not turn.did and isinstance(step, Do | Write):
            return SayStep(NO_PROGRAMS)
        return step

    async def _run_work(self, request: Request) -> AsyncGenerator[Item, None]:
        """The next step of long work."""
        work = next_work(request.messages, PLAN_MODE_HEADING in request.system[-1])
        if isinstance(work, Hear):
            turn = read_turn(request.messages)
            if len(turn.request) > REQUEST_CHARS:
                yield _make_text_reply(TOO_LONG)
                return
            if await self._sort_request(turn.request) in ("talk", "self"):
                async with aclosing(self._run_step(request, turn)) as items:
                    async for item in items:
                        yield item
                return
            work = work.then
        match work:
            case SayStep(text=text):
                yield TextDelta(text)
                yield _make_text_reply(text)
            case Split(request=asked, drop=drop):
                moves = make_task_moves(await self._split_request(asked), asked, drop)
                yield _make_call_reply(request, *moves)
            case TaskCalls(moves=moves):
                yield _make_call_reply(request, *moves)
            case OnTask(id=id_, turn=turn):
                yield await self._run_task_step(request, id_, turn)

    async def _run_task_step(self, request: Request, id_: int, turn: ShimTurn) -> Reply:
        """The next step of one task. What would be said to the person at its end is what came of
        it."""
        step = next_step(turn)
        if isinstance(step, SayStep):
            return _make_call_reply(request, make_end_move(id_, step.text, blocked=step.failed))

        reply = _make_text_reply("")
        async with aclosing(self._run_step(request, turn)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    reply = item
        if reply.message.calls:
            return reply

        said = reply.message.text
        failed = said.startswith(("I could not", "I cannot")) or said == NO_WAY
        end = make_end_move(id_, said, blocked=failed)
        return _make_call_reply(request, end, usage=reply.usage)

    # What the model is asked

    async def _sort_request(self, text: str) -> RequestKind:
        """The word for a request. The model is only asked where none is obvious."""
        return classify_obvious(text) or await self._classify_request(text)

    async def _classify_request(self, text: str) -> RequestKind:
        """The model's word for a request; `change` where it gives none."""
        words = " | ".join(f'"{word}"' for word in REQUEST_KINDS)
        extra = {"grammar": f"root ::= {words}"}
        asking = self._make_prompt_request(SORT_PROMPT, text, tokens=WORD_TOKENS, extra=extra)
        said = (await self._complete(asking)).lower()
        found = [word for word in REQUEST_KINDS if word in said]
        return min(found, key=said.index) if found else "change"

    async def _answer(
        self, request: Request, turn: ShimTurn, texts: str
    ) -> AsyncGenerator[Item, None]:
        """Words to the person, from the texts of files or from what it knows; each part of a
        question on its own."""
        texts = strip_orders(texts)
        parts = split_questions(turn.request) if texts else [turn.request]
        said = list[str]()
        usage = Usage()
        for part in parts:
            asking = self._make_answer_request(turn, texts, part)
            async with aclosing(self._inner.reply(asking)) as items:
                async for item in items:
                    if isinstance(item, Reply):
                        usage += item.usage
                        answer = replace_false_claim(item.message.text, asked=part)
                        said.append(add_source(answer, texts, part))

        whole = "\n".join(dict.fromkeys(said)).rstrip("\n")
        if not whole:
            whole = replace_false_claim("", asked=turn.request)
        can_compute = bool(texts) and has_file_texts(turn)
        if can_compute and find_invented_figure(whole, texts, turn.request, turn.today):
            yield _make_call_reply(request, make_survey(turn, "compute"), usage=usage)
            return
        yield TextDelta(whole)
        yield _make_text_reply(whole, usage)

    def _make_answer_request(self, turn: ShimTurn, texts: str, part: str) -> Request:
        """One part of a question, with the texts that fit beside it, or with what memory found."""
        earlier = render_earlier(turn)
        taken = sum(map(estimate_text_tokens, (READER, earlier, part)))
        room = WINDOW - 2 * ANSWER_TOKENS - taken
        shown = clip_text(sort_by_relevance(texts, part), room)
        facts = f"You know: {'; '.join(turn.known)}\n" if turn.known and not texts else ""
        near = render_nearest_passage(find_nearest_passage(texts, part))
        asked = f"{shown}\n{facts}{earlier}{near}{part}".strip()
        return self._make_request(
            READER if texts else TALKER,
            [("user", asked)],
            extra={"id_slot": ASSISTING_SLOT},
            output_tokens=ANSWER_TOKENS,
        )

    async def _write_program(
        self, request: Request, turn: ShimTurn, step: Write
    ) -> AsyncGenerator[Item, None]:
        """A program, which is shown as it is thought of, and rehearsed."""
        asking = self._make_program_request(turn, step)
        written = ""
        usage = Usage()
        async with aclosing(self._inner.reply(asking)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    usage = item.usage
                if not isinstance(item, TextDelta):
                    continue
                written += item.text
                yield ThinkingDelta(item.text)
                ends_line = "\n" in item.text
                if ends_line and is_enumerating(written):
                    lines, _, _ = written.rpartition("\n")
                    written = f"{lines}\n{ENDLESS_ERROR}"
                    break
                if ends_line and is_repeating(written):
                    break

        program = prune_program(extract_program(written), turn.request)
        if not program:
            yield TextDelta(NO_WAY)
            yield _make_text_reply(NO_WAY, usage)
            return
        yield _make_call_reply(request, make_rehearsal(program), usage=usage)

    def _make_program_request(self, turn: ShimTurn, step: Write) -> Request:
        listing = ""
        if step.listing:
            listing = f"{clip_text(strip_listed_orders(step.listing), WINDOW // 4)}\n"
        earlier = render_earlier(turn)
        note = clip_text(step.note, 120)
        if step.kind == "files":
            prompt = with_similar_examples(FILES_PROMPT, turn.request, step.listing)
            day = f"Today is {turn.today}.\n" if turn.today else ""
            text = f"{day}{listing}{earlier}Request: {turn.request}{note}"
        else:
            prompt = ASSIST_PROMPT
            text = f"{listing}{earlier}{turn.request}{note}"

        asking = self._make_prompt_request(
            prompt, text, tokens=PROGRAM_TOKENS, extra={}, stop=("\n```",)
        )
        if step.number == 0:
            return asking
        temperature = _retry_temperature(turn, step)
        return msgspec.structs.replace(asking, temperature=temperature, seed=step.number)

    async def _write_text(
        self, request: Request, turn: ShimTurn, step: Write
    ) -> AsyncGenerator[Item, None]:
        """A text that is new, or an old one written anew, as the program that does it."""
        asking = self._make_text_request(turn, step)
        written = ""
        usage = Usage()
        async with aclosing(self._inner.reply(asking)) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    written += item.text
                    yield ThinkingDelta(item.text)
                elif isinstance(item, Reply):
                    usage = item.usage
                    if step.kind == "new text" and item.finish == "stop":
                        written = close_fence(written)

        if step.kind == "rewrite":
            program = make_rewrite_program(step.listing, written)
            move = make_rehearsal(program) if program else make_survey(turn)
            yield _make_call_reply(request, move, usage=usage)
            return
        path = find_new_text_path(turn.request, step.listing)
        program = make_text_program(path, written, turn.request)
        if not program:
            yield TextDelta(NO_WAY)
            yield _make_text_reply(NO_WAY, usage)
            return
        yield _make_call_reply(request, make_rehearsal(program), usage=usage)

    def _make_text_request(self, turn: ShimTurn, step: Write) -> Request:
        if step.kind == "rewrite":
            system = REWRITER
            path = find_rewrite_target(step.listing)
            asked = f"{step.listing}\n\n{turn.request}\nAnswer with all of {path}."
        else:
            system = WRITER
            asked = f"{render_earlier(turn)}{turn.request}"

        asking = self._make_request(
            system,
            [("user", asked)],
            extra={"id_slot": ASSISTING_SLOT},
            output_tokens=WINDOW // 4,
        )
        if step.number == 0:
            return asking
        return msgspec.structs.replace(asking, temperature=RETRY_TEMPERATURE, seed=step.number)

    def _make_aside_request(self, request: Request) -> Request:
        """A question that belongs to no conversation, as it is; too long a text is cut in its
        middle."""
        system = "\n\n".join(request.system)
        most = min(request.max_output_tokens or OUTPUT_TOKENS, OUTPUT_TOKENS)
        room = WINDOW - most - estimate_text_tokens(system)
        text = clip_text(request.messages[0].message.text, room)
        extra = _answer_form("answer", request.form) if request.form else {}
        extra["id_slot"] = SORTING_SLOT
        return self._make_request(system, [("user", text)], extra=extra, output_tokens=most)

    async def fill(self, slot: int) -> None:
        """Have the server read this slot's stable prompt before the first request comes. Raises
        ModelError."""
        asking = self._make_prompt_request(PROMPTS[slot], "hello", tokens=1, extra={})
        await self._complete(asking)

    async def _split_request(self, asked: str) -> list[str]:
        """The steps of a request."""
        steps = list[str]()
        for step in await self._split_once(asked):
            parts = list[str]()
            if step != asked and is_compound(step):
                parts = await self._split_once(step)
            steps += parts if 1 < len(parts) <= MAX_PARTS else [step]
        return steps

    async def _split_once(self, text: str) -> list[str]:
        # Not in a slot of its own: it is asked at the beginning of a long work, the others at every
        # step.
        prompt = ShimPrompt(SPLITTER, SPLITTER_SHOTS, SORTING_SLOT)
        asking = self._make_prompt_request(
            prompt,
            clip_text(text, WINDOW // 4),
            tokens=OUTPUT_TOKENS,
            extra=_answer_form("steps", STEPS_SCHEMA),
        )
        return parse_steps(await self._complete(asking))

    async def _complete(self, asking: Request) -> str:
        """What the model answers."""
        written = ""
        async with aclosing(self._inner.reply(asking)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    written = item.message.text
        return written

    def _make_prompt_request(
        self,
        prompt: ShimPrompt,
        text: str,
        *,
        tokens: int,
        extra: dict[str, Any],
        stop: tuple[str, ...] = (),
    ) -> Request:
        """A request that begins with a stable prompt."""
        talk: Chat = []
        for said, answer in prompt.shots:
            talk += [("user", said), ("assistant", answer)]
        talk.append(("user", text))
        asking = self._make_request(
            prompt.system, talk, extra=extra | {"id_slot": prompt.slot}, output_tokens=tokens
        )
        return msgspec.structs.replace(asking, stop=stop)

    def _make_request(
        self, system: str, talk: Chat, *, extra: dict[str, Any], output_tokens: int
    ) -> Request:
        """A request that says no more than this. `extra` is only for llama.cpp."""
        shown = list[ContextMessage]()
        for key, (role, text) in enumerate(talk, 1):
            speaker: Role = "user" if role == "user" else "assistant"
            shown.append(ContextMessage(key, Message(speaker, (Text(text, OWNER),))))
        return Request(
            model="",
            system=(system,),
            messages=tuple(shown),
            max_output_tokens=output_tokens,
            temperature=0.0,
            extra=msgspec.Raw(msgspec.json.encode(extra)) if self._dialect == "grammar" else None,
        )


def _is_deep_work(request: Request) -> bool:
    tools = {tool.name for tool in request.tools}
    return TASKS in tools and DEEP_WORK_HEADING in request.system[-1]


def _retry_temperature(turn: ShimTurn, step: Write) -> float:
    """A program that is told what was wrong is not to vary; one that comes again and again is."""
    if step.note and step.number == 1:
        return 0.0
    return 2 * RETRY_TEMPERATURE if is_stuck(turn) else RETRY_TEMPERATURE


def _answer_form(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The field that binds an answer to a JSON schema."""
    form = {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}
    return {"response_format": form}


def is_aside(request: Request) -> bool:
    """It is asked by the runtime, and is no part of a conversation."""
    if request.tools or len(request.messages) != 1:
        return False
    return not person_text(request.messages[0].message)


def _make_call_reply(request: Request, *moves: Move, usage: Usage | None = None) -> Reply:
    encoded = [("", move.tool, msgspec.Raw(msgspec.json.encode(move.arguments))) for move in moves]
    calls: list[ToolCall] = make_calls(encoded, request)
    return Reply(Message("assistant", tuple(calls)), "calls", usage or Usage())


def _make_text_reply(text: str, usage: Usage | None = None) -> Reply:
    return Reply(Message("assistant", (Text(text),) if text else ()), "stop", usage or Usage())


_: type[Model] = Shim
