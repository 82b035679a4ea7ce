"""The agents as models of an OpenAI-compatible API: whatever talks to that talks to them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Literal

import anyio
import msgspec
from starlette.responses import Response

from ..types import events as e
from ..types.door import Progress
from ..types.errors import DeskhandError
from ..types.identity import Inbound, Said
from ..types.messages import File, Message, Part, Text, Usage
from ..types.options import SessionOptions
from .errors import HttpProblem, bad, sentence
from .names import address_of, key_of, name_of
from .routing import Call, Endpoint
from .seen import seen
from .stream import EventStream, standing_of

PREFIX = "deskhand/"
HEADER = "x-deskhand-session"
BLANK = "\n\n"


class Given(msgspec.Struct, frozen=True):
    """One message of the client's own history."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class ChatBody(msgspec.Struct, frozen=True):
    """What of OpenAI's request is looked at. `model` is `deskhand/AGENT`. `user`, or the header `X-Deskhand-Session`,
    names a conversation that goes on; only the last message is then said in it. Without either each request is a
    conversation of its own, which begins with the history given."""

    model: str
    messages: list[Given]
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: str | None = None
    n: int | None = None
    tools: list[Any] | None = None


class Choice(msgspec.Struct, frozen=True):
    index: int
    message: dict[str, Any]
    finish_reason: str


class Completion(msgspec.Struct, frozen=True):
    """OpenAI's `chat.completion`."""

    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: dict[str, int]
    object: str = "chat.completion"


class ModelCard(msgspec.Struct, frozen=True):
    id: str
    created: int
    object: str = "model"
    owned_by: str = "deskhand"


class ModelCards(msgspec.Struct, frozen=True):
    data: list[ModelCard]
    object: str = "list"


class Turn(msgspec.Struct, frozen=True):
    """A turn that was begun for a request."""

    session: str
    name: str
    after: int
    inbox_id: int


class End(msgspec.Struct, frozen=True):
    """How a turn ended."""

    finish: str
    usage: Usage


class Telling(msgspec.Struct):
    """What of the turn was said, made from its events: pieces as they come, each once. What was taken back cannot be
    taken back here, so that after a failed try nothing is said until the whole text is known."""

    sent: str = ""
    void: bool = False
    before: bool = False
    usage: Usage = Usage()

    def add(self, item: e.Recorded | Progress) -> str:
        if isinstance(item, Progress):
            return self._piece(item)
        match item.event:
            case e.ModelReplied(message=message, usage=usage):
                self.usage += usage
                text = message.text
                fresh = text[len(self.sent) :] if text.startswith(self.sent) else f"{BLANK}{text}"
                fresh = self._after(fresh)
                self.before = self.before or bool(text)
                self.sent, self.void = "", False
                return fresh
            case e.ApprovalAsked(question=question) | e.QuestionAsked(question=question):
                return self._after(question)
            case e.TurnEnded(said=said) | e.CommandRun(reply=said) if said:
                return self._after(said)
            case _:
                return ""

    def _piece(self, item: Progress) -> str:
        if item.kind == "reset":
            self.void = True
        if item.kind not in ("text", "snapshot") or self.void:
            return ""
        fresh = item.text[max(0, len(self.sent) - item.offset) :]
        told = self._after(fresh)
        self.sent += fresh
        return told

    def _after(self, text: str) -> str:
        return f"{BLANK}{text}" if text and self.before and not self.sent else text


async def models(call: Call) -> ModelCards:
    return ModelCards([_card(call, agent) for agent in _agents(call)])


async def model(call: Call) -> ModelCard:
    return _card(call, _agent(call, call.path("model")))


def _agents(call: Call) -> list[str]:
    return [name for name in call.web.house.agents if call.web.people.may_talk(call.principal, name)]


def _card(call: Call, agent: str) -> ModelCard:
    return ModelCard(f"{PREFIX}{agent}", 0)


def _agent(call: Call, model: str) -> str:
    """Raises HttpProblem where there is none of that name for this person."""
    name = model.removeprefix(PREFIX)
    agents = _agents(call)
    if name not in agents:
        there = ", ".join(f"{PREFIX}{each}" for each in agents)
        raise HttpProblem(
            404, "model_not_found", f"There is no model {model[:100]!r} here; there are: {there or 'none'}."
        )
    return name


async def complete(call: Call) -> Response | Completion:
    body: ChatBody = call.body
    agent = _agent(call, body.model)
    _check(body)
    turn = await _begin(call, agent, body)
    number = f"chatcmpl-{call.web.ids.new('c').rpartition('_')[2]}"
    created = int(call.web.clock.now())
    if body.stream:
        usage = body.stream_options is not None and body.stream_options.include_usage
        response = EventStream(
            call.web, _chunks(call, turn, (number, created, body.model, usage)), standing_of(call.request)
        )
        response.headers[HEADER] = turn.name
        return response
    text, end = await _whole(call, turn)
    read, written = end.usage.input_tokens, end.usage.output_tokens
    used = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    choice = Choice(0, {"role": "assistant", "content": text}, end.finish)
    done = Completion(number, created, body.model, [choice], used)
    return Response(msgspec.json.encode(done), 200, {HEADER: turn.name}, "application/json")


def _check(body: ChatBody) -> None:
    if body.n not in (None, 1):
        raise bad("One answer is given to a request: leave `n` out, or set it to 1.")
    if body.tools:
        raise bad("Tools of the client are not called here: the agent has its own. Leave `tools` out.")
    if not body.messages or body.messages[-1].role != "user" or not text_of(body.messages[-1]).strip():
        raise bad("The last of `messages` is what the user says, and it has text.")


def text_of(given: Given) -> str:
    """Raises HttpProblem for what is no text."""
    if not isinstance(given.content, list):
        return given.content or ""
    if any(part.get("type") not in ("text", "refusal") for part in given.content):
        raise bad("Only text is taken here. Send files with POST /api/blobs and POST /api/sessions/{name}/messages.")
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in given.content)


async def _begin(call: Call, agent: str, body: ChatBody) -> Turn:
    web, who = call.web, call.principal
    named = call.request.headers.get(HEADER, "").strip() or (body.user or "").strip()
    session = key_of(named or web.ids.new("api"), who, agent)
    known = (await web.store.rows("session_has_members", (session,)))[0][0]
    parts: list[Part] = [Text(text_of(body.messages[-1]))]
    if not known:
        parts = [*await _history(call, body.messages[:-1]), *parts]
        system = BLANK.join(text_of(each) for each in body.messages if each.role in ("system", "developer"))
        if system.strip():
            await web.door.configure(session, who, SessionOptions(system_prompt=system))
    address = address_of(who, session.partition("/")[2].rpartition(":")[2])
    sender = call.grant.sender if call.grant else ""
    said = Said(Message("user", tuple(parts)))
    inbound = Inbound(web.ids.new("v1"), address, sender, web.clock.now(), said, session, when="queue")
    receipt = await web.door.submit(inbound)
    if receipt.status == "refused":
        raise HttpProblem(403, "refused", sentence(receipt.reason))
    await seen(call, session)
    return Turn(session, name_of(session, who, web.house.agents[0]), receipt.after, receipt.inbox_id)


async def _history(call: Call, given: Sequence[Given]) -> list[Part]:
    """What the client says was said before, as a file that was handed in: nobody here can know whose words it has."""
    lines = [f"{each.role}: {text_of(each)}" for each in given if each.role not in ("system", "developer")]
    if not lines:
        return []
    data = BLANK.join(lines).encode("utf-8", "replace")
    return [File(await call.web.blobs.put(data), "earlier-in-this-conversation.txt", "text/plain", len(data))]


async def _told(call: Call, turn: Turn) -> AsyncGenerator[str | End]:
    """The pieces of what is said in the turn, and its end. Raises HttpProblem where it failed. Whoever leaves before
    the end stops the turn."""
    telling, over = Telling(), False
    try:
        async with aclosing(call.web.door.follow(turn.session, call.principal, turn.after)) as items:
            mine = False
            async for item in items:
                if isinstance(item, e.Recorded):
                    mine = mine or getattr(item.event, "inbox_id", 0) == turn.inbox_id
                if not mine:
                    continue
                end = _end(item, turn, telling)
                if isinstance(end, HttpProblem):
                    over = True
                    raise end
                if piece := call.web.redact(telling.add(item)):
                    yield piece
                if end is not None:
                    over = True
                    yield End(end, telling.usage)
                    return
    finally:
        if not over:
            with anyio.CancelScope(shield=True):
                await call.web.door.stop(turn.session, call.principal)


def _end(item: e.Recorded | Progress, turn: Turn, telling: Telling) -> str | HttpProblem | None:
    if isinstance(item, Progress):
        return None
    match item.event:
        case e.TurnEnded(reason="failed" | "dead", said=said):
            return HttpProblem(502, "model_failed", sentence(said or "the model could not be asked"))
        case e.TurnEnded(reason=reason):
            return "length" if reason in ("steps", "tokens") else "stop"
        case e.ApprovalAsked() | e.QuestionAsked():
            return "stop"  # the next message of this conversation answers it
        case e.CommandRun(inbox_id=inbox_id) if inbox_id == turn.inbox_id:
            return "stop"
        case _:
            return None


async def _whole(call: Call, turn: Turn) -> tuple[str, End]:
    """Everything, unless the client goes: then the turn is stopped."""
    pieces: list[str] = []
    end: End | HttpProblem | None = None
    async with anyio.create_task_group() as tasks:

        async def hung_up() -> None:
            while (await call.request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(hung_up)
        try:
            async with aclosing(_told(call, turn)) as told:
                async for piece in told:
                    if isinstance(piece, End):
                        end = piece
                    else:
                        pieces.append(piece)
        except HttpProblem as problem:
            end = problem
        tasks.cancel_scope.cancel()
    if end is None:
        raise bad("The client has gone, so the turn was stopped.")
    if isinstance(end, HttpProblem):
        raise end
    return "".join(pieces), end


async def _chunks(call: Call, turn: Turn, about: tuple[str, int, str, bool]) -> AsyncGenerator[bytes]:
    number, created, model, with_usage = about
    base = {"id": number, "object": "chat.completion.chunk", "created": created, "model": model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return b"data: %b\n\n" % msgspec.json.encode({**base, "choices": choices})

    yield chunk({"role": "assistant", "content": ""})
    try:
        async with aclosing(_told(call, turn)) as told:
            async for piece in told:
                if isinstance(piece, str):
                    yield chunk({"content": piece})
                    continue
                yield chunk({}, piece.finish)
                if with_usage:
                    read, written = piece.usage.input_tokens, piece.usage.output_tokens
                    used = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
                    yield b"data: %b\n\n" % msgspec.json.encode({**base, "choices": [], "usage": used})
        yield b"data: [DONE]\n\n"
    except (HttpProblem, DeskhandError) as error:
        code = error.code if isinstance(error, HttpProblem) else "failed"
        said = {"code": code, "message": sentence(str(error)), "type": "server_error", "param": None}
        yield b"data: %b\n\n" % msgspec.json.encode({"error": said})


_T = "openai"
ENDPOINTS = (
    Endpoint("GET", "/v1/models", "read", models, "The agents, as models", returns=ModelCards, tag=_T),
    Endpoint("GET", "/v1/models/{model:path}", "read", model, "One of them", returns=ModelCard, tag=_T),
    Endpoint(
        "POST",
        "/v1/chat/completions",
        "chat",
        complete,
        "Talk to an agent as OpenAI's clients do",
        body=ChatBody,
        returns=Completion,
        tag=_T,
    ),
)
