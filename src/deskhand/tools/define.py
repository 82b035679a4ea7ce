"""`@tool`: a tool from a function's signature and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar, get_type_hints, overload

import msgspec

from ..types.effects import Effect, Replay
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label
from .base import Ask, Context, Done, Outcome, Spec, done

Function = Callable[..., Awaitable[Outcome | str]]
_PARAMETER = re.compile(r"^\s*(\w+): (.+)$")


class FunctionTool:
    """A tool whose arguments are checked against the function's signature before it is called."""

    def __init__(self, spec: Spec, arguments: type[msgspec.Struct], function: Function) -> None:
        self._spec, self._arguments, self._function = spec, arguments, function
        self._wants_context = "context" in inspect.signature(function).parameters

    @property
    def spec(self) -> Spec:
        return self._spec

    def with_effect(self, effect: Effect) -> FunctionTool:
        """The same tool where it does more than usual."""
        return FunctionTool(msgspec.structs.replace(self._spec, effect=effect), self._arguments, self._function)

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        values = decode_arguments(arguments, self._arguments)
        given = {name: getattr(values, name) for name in values.__struct_fields__}
        if self._wants_context:
            given["context"] = context
        outcome = await self._function(**given)
        return outcome if isinstance(outcome, Done | Ask) else done(outcome, self._spec.reads)


S = TypeVar("S", bound=msgspec.Struct)


def decode_arguments(arguments: msgspec.Raw, into: type[S]) -> S:
    """The model's arguments as a struct; numbers written as text are accepted. Raises ToolError saying what is wrong
    and what would be right."""
    try:
        return msgspec.convert(msgspec.json.decode(arguments), into, strict=False)
    except msgspec.ValidationError as error:
        fields = ", ".join(f"{f.name}{'' if f.required else '?'}" for f in msgspec.structs.fields(into))
        raise ToolError(f"invalid arguments: {error}. Expected an object with: {fields or 'nothing'}") from error


@overload
def tool(function: Function, /) -> FunctionTool: ...
@overload
def tool(
    *, effect: Effect = ..., replay: Replay = ..., reads: Label = ..., timeout_s: float = ..., name: str = ...
) -> Callable[[Function], FunctionTool]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    effect: Effect = "none",
    replay: Replay = "again",
    reads: Label = LOCAL,
    timeout_s: float = 120.0,
    name: str = "",
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool of an async function. Its name, types and defaults become the schema; the docstring's first
    paragraph the description, and lines `parameter: what it means` in it those of the parameters. A parameter named
    `context` gets the Context and is not shown to the model. The function returns text or an Outcome."""

    def make(function: Function) -> FunctionTool:
        description, meanings = _read_docstring(inspect.getdoc(function) or "")
        hints = get_type_hints(function)
        fields: list[Any] = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name == "context":
                continue
            kind: Any = hints[parameter.name]
            if parameter.name in meanings:
                kind = Annotated[kind, msgspec.Meta(description=meanings[parameter.name])]
            required = parameter.default is inspect.Parameter.empty
            fields.append((parameter.name, kind) if required else (parameter.name, kind, parameter.default))
        arguments = msgspec.defstruct(function.__name__, fields, frozen=True, kw_only=True, forbid_unknown_fields=True)
        spec = Spec(name or function.__name__, description, schema(arguments), effect, replay, reads, timeout_s)
        return FunctionTool(spec, arguments, function)

    return make if function is None else make(function)


def schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a struct, with the top `$ref` put in place: providers want an object at the top."""
    whole = msgspec.json.schema(arguments)
    definitions: dict[str, Any] = whole.pop("$defs", {})
    name = whole["$ref"].rpartition("/")[2]
    top: dict[str, Any] = definitions.pop(name)
    top.pop("title", None)
    return top | ({"$defs": definitions} if definitions else {})


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    description: list[str] = []
    meanings: dict[str, str] = {}
    for line in text.splitlines():
        if match := _PARAMETER.match(line):
            meanings[match[1]] = match[2].strip()
        else:
            description.append(line)
    return "\n".join(description).strip(), meanings
