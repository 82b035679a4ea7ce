"""The paths of the OpenAI-compatible API, and the order in which a chat completion is made."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from ..errors import HttpProblem, bad_request
from ..routing import Call, Endpoint
from ..stream import EventStream, make_standing
from .history import parse_history
from .parameters import parse_request, wants_thinking
from .pictures import Pictures
from .schema import ChatBody, Choice, Completion, ModelCard, ModelCards
from .stream import Head, Streaming, stream_chunks
from .turn_answer import TurnAnswer, to_usage_view
from .turns import SESSION_HEADER, Opened, begin_turn, follow_to_end, resume_turn

PREFIX = "deskhand/"
BODY_BYTES = 32_000_000
"""A history with its pictures comes whole with every request."""


async def list_models(call: Call) -> ModelCards:
    started_at = (await call.web.admin.status(call.web.admin.agents[0])).started_at
    return ModelCards([_model_card(agent, started_at) for agent in _visible_agents(call)])


async def get_model(call: Call) -> ModelCard:
    agent = _require_agent(call, call.path("model"))
    return _model_card(agent, (await call.web.admin.status(agent)).started_at)


def _visible_agents(call: Call) -> list[str]:
    return [
        name for name in call.web.admin.agents if call.web.people.may_talk(call.principal, name)
    ]


def _model_card(agent: str, started_at: float) -> ModelCard:
    return ModelCard(f"{PREFIX}{agent}", int(started_at))


def _require_agent(call: Call, model: str) -> str:
    """Raises HttpProblem where there is none of that name for this person."""
    name = model.removeprefix(PREFIX)
    agents = _visible_agents(call)
    if name not in agents:
        there = ", ".join(f"{PREFIX}{each}" for each in agents)
        said = f"There is no model {model[:100]!r} here; there are: {there or 'none'}."
        raise HttpProblem(404, "model_not_found", said, param="model")
    return name


async def create_completion(call: Call) -> Response:
    body: ChatBody = call.body
    agent = _require_agent(call, body.model)
    unsupported = call.web.admin.unsupported_fields(
        agent, thinks=wants_thinking(body), temperature=body.temperature
    )
    wanted = await parse_request(body, unsupported, call.web.checkers)
    net = (await call.web.admin.tool_scope(agent)).net
    talk = await parse_history(body.messages, Pictures(call.web.blobs, net))

    turn = await resume_turn(call, agent, talk, wanted)
    if turn is None and talk.stray:
        raise bad_request(
            "The last of `messages` is the result of no call that is known here.", param=talk.stray
        )
    turn = turn or await begin_turn(call, agent, talk, wanted)
    number = call.web.ids.new("c").rpartition("_")[2]
    head = Head(f"chatcmpl-{number}", int(call.web.clock.now()), body.model)
    is_json = wanted.answer_schema is not None
    if not body.stream:
        return await _respond_whole(call, turn, head, is_json=is_json)

    whole = is_json or call.web.admin.may_change_answers(agent)
    usage = body.stream_options is not None and body.stream_options.include_usage
    pieces = stream_chunks(call, turn, head, Streaming(whole=whole, is_json=is_json, usage=usage))
    response = EventStream(call.web, pieces, make_standing(call.request))
    response.headers[SESSION_HEADER] = turn.name
    return response


async def _respond_whole(call: Call, turn: Opened, head: Head, *, is_json: bool) -> Response:
    answer = TurnAnswer(turn.inbox_id, call.web.redact, is_json=is_json)
    end = await follow_to_end(call, turn, answer)
    text = answer.text()
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if end.calls:
        message |= {"content": text or None, "tool_calls": end.calls}
    choice = Choice(0, message, end.finish)
    done = Completion(head.id, head.created, head.model, [choice], to_usage_view(answer.usage))
    return Response(msgspec.json.encode(done), 200, {SESSION_HEADER: turn.name}, "application/json")


_T = "openai"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/models",
        "read",
        list_models,
        "List the agents as models",
        returns=ModelCards,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/v1/models/{model:path}",
        "read",
        get_model,
        "Get an agent as a model",
        returns=ModelCard,
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/v1/chat/completions",
        "chat",
        create_completion,
        "Talk to an agent through OpenAI's chat completions",
        body=ChatBody,
        returns=Completion,
        limit=BODY_BYTES,
        tag=_T,
    ),
)
