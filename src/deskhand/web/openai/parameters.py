"""Which fields of a request are honoured, which are only noted, and which are refused by name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from anyio import CapacityLimiter

from ...models.answer_schema import INSTALL, find_schema_problem, is_installed
from ...types.client import ANY_OBJECT, ClientRequest, ClientTool, Thinking
from ..errors import HttpProblem
from .schema import ChatBody, NamedTool, ResponseFormat

UNSUPPORTED_FIELDS: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "store": (False,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
    "verbosity": (),
    "functions": ([],),
    "function_call": ("none",),
}
"""Fields that change an answer and are not honoured here, each with the values that change
nothing."""
THINKING: dict[str, Thinking] = {
    "none": "off",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
}
STOP_CHARS = 500
FORM_BYTES = 256_000
"""So many bytes of JSON have `tools` and `response_format` together: they stand in the log and in
each request."""


def parameter_problem(message: str, param: str, code: str = "unsupported_parameter") -> HttpProblem:
    """A field that cannot be honoured."""
    return HttpProblem(400, code, message, param=param)


def wants_thinking(body: ChatBody) -> bool | None:
    """Whether the client wants the model to think first; None where it says nothing of that."""
    effort = body.reasoning_effort
    return None if effort is None else THINKING[effort] != "off"


async def parse_request(
    body: ChatBody, unsupported: Collection[str], checkers: CapacityLimiter
) -> ClientRequest:
    """What the client wants of the turn. `unsupported` are the fields that the agent's model does
    not have. Raises HttpProblem that names the field."""
    _check_refused(body, unsupported)
    _check_size(body)
    tools = _parse_tools(body)
    schema, strict = await _parse_answer_schema(body, checkers)
    limits = (body.max_completion_tokens, body.max_tokens)
    effort = body.reasoning_effort
    return ClientRequest(
        tools=tools,
        must_call=_parse_tool_choice(body, tools),
        parallel_calls=body.parallel_tool_calls is not False,
        max_output_tokens=next((limit for limit in limits if limit is not None), None),
        temperature=body.temperature,
        top_p=body.top_p,
        seed=body.seed,
        stop=_parse_stop(body),
        answer_schema=schema,
        strict_schema=strict,
        thinking=THINKING[effort] if effort else None,
        end_user=body.user or body.safety_identifier or "",
    )


def _check_refused(body: ChatBody, unsupported: Collection[str]) -> None:
    for name, harmless in UNSUPPORTED_FIELDS.items():
        given = getattr(body, name)
        if given is not None and given not in harmless:
            raise parameter_problem(f"`{name}` is not supported here: leave it out.", name)
    for name in sorted(unsupported):
        given = getattr(body, name)
        if given is not None and given not in ([], ResponseFormat("text")):
            raise parameter_problem(
                f"The agent's model does not support `{name}` as given: leave it out.", name
            )


def _check_size(body: ChatBody) -> None:
    size = 0
    for name in ("tools", "response_format"):
        size += len(msgspec.json.encode(getattr(body, name)))
        if size > FORM_BYTES:
            said = f"`tools` and `response_format` have at most {FORM_BYTES:,} bytes together."
            raise parameter_problem(said, name, "bad_request")


def _parse_tools(body: ChatBody) -> tuple[ClientTool, ...]:
    """The client's tools, as far as the model may call them."""
    functions = [tool.function for tool in body.tools or ()]
    names = [function.name for function in functions]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise parameter_problem(
                f"There are two tools of the name {name!r}.",
                f"tools[{i}].function.name",
                "bad_request",
            )
    for i, function in enumerate(functions):
        if (function.parameters or ANY_OBJECT).get("type", "object") != "object":
            said = "The `parameters` of a tool are a JSON schema of type object."
            raise parameter_problem(said, f"tools[{i}].function.parameters", "bad_request")
    if body.tool_choice == "none":
        return ()
    return tuple(
        ClientTool(
            function.name,
            function.description or "",
            {"type": "object"} | (function.parameters or {}),
        )
        for function in functions
    )


def _parse_tool_choice(body: ChatBody, tools: tuple[ClientTool, ...]) -> str:
    choice = body.tool_choice
    if choice in (None, "none", "auto"):
        return ""
    if not tools:
        raise parameter_problem("`tool_choice` needs `tools`.", "tool_choice", "bad_request")
    if not isinstance(choice, NamedTool):
        return "*"
    if choice.function.name not in {tool.name for tool in tools}:
        said = f"`tool_choice` names {choice.function.name[:64]!r}, which is not one of `tools`."
        raise parameter_problem(said, "tool_choice", "bad_request")
    return choice.function.name


def _parse_stop(body: ChatBody) -> tuple[str, ...]:
    given = [body.stop] if isinstance(body.stop, str) else body.stop or []
    if any(not text or len(text) > STOP_CHARS for text in given):
        raise parameter_problem(
            f"Each text of `stop` has 1 to {STOP_CHARS} characters.", "stop", "bad_request"
        )
    return tuple(given)


async def _parse_answer_schema(
    body: ChatBody, checkers: CapacityLimiter
) -> tuple[dict[str, Any] | None, bool]:
    """The schema of the answer, and whether a provider is to enforce it word by word."""
    wanted = body.response_format
    if wanted is None or wanted.type == "text":
        return None, False
    if wanted.type == "json_object":
        return dict(ANY_OBJECT), False
    if wanted.json_schema is None or wanted.json_schema.schema is None:
        raise parameter_problem(
            "`json_schema` with a `schema` is missing.", "response_format", "bad_request"
        )
    if not is_installed():
        raise parameter_problem(
            f"checking JSON schemas needs an extra: {INSTALL}", "response_format"
        )
    schema = wanted.json_schema.schema
    if problem := await find_schema_problem(schema, checkers):
        raise parameter_problem(
            f"This JSON schema cannot be used: {problem}.", "response_format", "bad_request"
        )
    return schema, bool(wanted.json_schema.strict)
