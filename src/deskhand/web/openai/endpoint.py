"""The paths of the OpenAI-compatible API, and the order in which a chat completion is made."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from ..errors import HttpProblem, bad
from ..routing import Call, Endpoint
from ..stream import EventStream, standing_of
from .answer import Answer, usage_view
from .history import conversation
from .parameters import request_of, thinks
from .pictures import Pictures
from .schema import ChatBody, Choice, Completion, ModelCard, ModelCards
from .stream import Head, Streaming, chunks
from .turns import HEADER, Opened, begin, resume, to_the_end

PREFIX = "deskhand/"
BODY_BYTES = 32_000_000
"""A history with its pictures comes whole with every request."""


async def models(call: Call) -> ModelCards:
    started_at = (await call.web.house.status(call.web.house.agents[0])).started_at
    return ModelCards([_card(agent, started_at) for agent in _agents(call)])


async def model(call: Call) -> ModelCard:
    agent = _agent(call, call.path("model"))
    return _card(agent, (await call.web.house.status(agent)).started_at)


def _agents(call: Call) -> list[str]:
    return [
        name for name in call.web.house.agents if call.web.people.may_talk(call.principal, name)
    ]


def _card(agent: str, started_at: float) -> ModelCard:
    return ModelCard(f"{PREFIX}{agent}", int(started_at))


def _agent(call: Call, model: str) -> str:
    """Raises HttpProblem where there is none of that name for this person."""
    name = model.removeprefix(PREFIX)
    agents = _agents(call)
    if name not in agents:
        there = ", ".join(f"{PREFIX}{each}" for each in agents)
        said = f"There is no model {model[:100]!r} here; there are: {there or 'none'}."
        raise HttpProblem(404, "model_not_found", said, param="model")
    return name


async def complete(call: Call) -> Response:
    body: ChatBody = call.body
    agent = _agent(call, body.model)
    unsupported = call.web.house.unsupported(
        agent, thinks=thinks(body), temperature=body.temperature
    )
    wanted = await request_of(body, unsupported, call.web.checkers)
    net = (await call.web.house.reach(agent)).net
    talk = await conversation(body.messages, Pictures(call.web.blobs, net))

    turn = await resume(call, agent, talk, wanted)
    if turn is None and talk.stray:
        raise bad(
            "The last of `messages` is the result of no call that is known here.", param=talk.stray
        )
    turn = turn or await begin(call, agent, talk, wanted)
    number = call.web.ids.new("c").rpartition("_")[2]
    head = Head(f"chatcmpl-{number}", int(call.web.clock.now()), body.model)
    is_json = wanted.answer_schema is not None
    if not body.stream:
        return await _whole(call, turn, head, is_json=is_json)

    whole = is_json or call.web.house.changes_answers(agent)
    usage = body.stream_options is not None and body.stream_options.include_usage
    pieces = chunks(call, turn, head, Streaming(whole=whole, is_json=is_json, usage=usage))
    response = EventStream(call.web, pieces, standing_of(call.request))
    response.headers[HEADER] = turn.name
    return response


async def _whole(call: Call, turn: Opened, head: Head, *, is_json: bool) -> Response:
    answer = Answer(turn.inbox_id, call.web.redact, is_json=is_json)
    end = await to_the_end(call, turn, answer)
    text = answer.text()
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if end.calls:
        message |= {"content": text or None, "tool_calls": end.calls}
    choice = Choice(0, message, end.finish)
    done = Completion(head.id, head.created, head.model, [choice], usage_view(answer.usage))
    return Response(msgspec.json.encode(done), 200, {HEADER: turn.name}, "application/json")


_T = "openai"
ENDPOINTS = (
    Endpoint(
        "GET", "/v1/models", "read", models, "The agents, as models", returns=ModelCards, tag=_T
    ),
    Endpoint(
        "GET", "/v1/models/{model:path}", "read", model, "One of them", returns=ModelCard, tag=_T
    ),
    Endpoint(
        "POST",
        "/v1/chat/completions",
        "chat",
        complete,
        "Talk to an agent as OpenAI's clients do",
        body=ChatBody,
        returns=Completion,
        limit=BODY_BYTES,
        tag=_T,
    ),
)
