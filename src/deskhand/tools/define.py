"""`@tool`: a tool from a function's signature and docstring."""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints, overload

import msgspec

from ..types.effects import Effect, Replay
from ..types.errors import ToolError
from ..types.labels import UNTRUSTED, Label
from .aliases import decode_if_json, normalize_arguments
from .base import OUTCOMES, Context, Outcome, Spec, ToolMode
from .output import make_bounded_result

Function = Callable[..., Awaitable[Any]]
_DEFINED = "#/$defs/"
_PARAMETER = re.compile(r"^\s*(\w+): (.+)$")


class FunctionTool:
    """A tool whose arguments are checked against the function's signature before it is called."""

    def __init__(
        self,
        spec: Spec,
        arguments: type[msgspec.Struct],
        function: Function,
        context: Sequence[str] = (),
    ) -> None:
        """`context` names the parameters that get it."""
        self._spec = spec
        self._arguments = arguments
        self._function = function
        self._context = context

    @property
    def spec(self) -> Spec:
        return self._spec

    def with_effect(self, effect: Effect) -> FunctionTool:
        """The same tool where it does more than usual."""
        return self._with_spec(msgspec.structs.replace(self._spec, effect=effect))

    def with_mode(self, mode: ToolMode) -> FunctionTool:
        """The same tool; deferred, it is offered where a conversation is in this mode."""
        return self._with_spec(msgspec.structs.replace(self._spec, mode=mode))

    def _with_spec(self, spec: Spec) -> FunctionTool:
        return FunctionTool(spec, self._arguments, self._function, self._context)

    def decode_values(self, arguments: msgspec.Raw) -> dict[str, Any]:
        """What the function is given for these arguments, but for the Context. Raises ToolError."""
        values = decode_arguments(arguments, self._arguments, self._spec.name)
        return {name: getattr(values, name) for name in values.__struct_fields__}

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = self.decode_values(arguments)
        given.update(dict.fromkeys(self._context, context))
        outcome = await self._function(**given)
        if isinstance(outcome, OUTCOMES):
            return outcome
        return await make_bounded_result(_render_value(outcome), context, self._spec.reads)


def _render_value(outcome: Any) -> str:
    """What a function returned, as the model reads it: other values than text as JSON, None as
    nothing."""
    if outcome is None:
        return ""
    return outcome if isinstance(outcome, str) else msgspec.json.encode(outcome).decode()


S = TypeVar("S", bound=msgspec.Struct)


def decode_arguments(arguments: msgspec.Raw, into: type[S], tool: str = "") -> S:
    """The model's arguments as a struct; numbers written as text and names from elsewhere
    (`aliases`) are accepted.

    Raises ToolError saying what is wrong and what would be right.
    """
    try:
        given = decode_json(bytes(arguments))
        if isinstance(given, dict):
            given = _drop_nulls(normalize_arguments(tool, given), into)
        return msgspec.convert(given, into, strict=False)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        fields = ", ".join(
            f"{f.name}{'' if f.required else '?'}" for f in msgspec.structs.fields(into)
        )
        raise ToolError(
            f"invalid arguments: {what}. Expected an object with: {fields or 'nothing'}"
        ) from error


def list_given(arguments: msgspec.Struct) -> dict[str, Any]:
    """What of these arguments is not as it is where nobody says it."""
    fields = msgspec.structs.fields(arguments)
    values = ((each.name, getattr(arguments, each.name), each.default) for each in fields)
    return {name: value for name, value, default in values if value != default}


def decode_object(arguments: msgspec.Raw) -> dict[str, Any]:
    """The arguments of a tool that checks them itself. Raises ToolError."""
    try:
        given = decode_json(bytes(arguments))
    except (ValueError, RecursionError) as error:
        raise ToolError(f"invalid arguments: {error}") from error
    if not isinstance(given, dict):
        raise ToolError("invalid arguments: an object is expected")
    return given


def decode_json(arguments: bytes) -> Any:
    """The arguments as Python has them. Raises ValueError, RecursionError.

    Of a name that stands twice a person who approves may read the first, and the last would count:
    it is refused.
    """

    def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            raise ValueError(f"the name {twice!r} occurs twice")
        return found

    def parse_number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(f"{text[:20]} is not a usable number")
        return value

    text = arguments.decode(errors="replace")
    given = json.loads(
        text, object_pairs_hook=make_object, parse_float=parse_number, parse_constant=parse_number
    )
    if isinstance(given, str):
        given = decode_if_json(given)  # some models quote the whole object
    if "\\ud" in text.lower():
        given = _replace_surrogates(given)
    return {} if given is None else given


def _replace_surrogates(value: Any) -> Any:
    """The value with halves of surrogate pairs replaced: no file and no database can hold them."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {
                _replace_surrogates(key): _replace_surrogates(each) for key, each in value.items()
            }
        case list():
            return [_replace_surrogates(each) for each in value]
        case _:
            return value


def _drop_nulls(given: dict[str, Any], into: type[msgspec.Struct]) -> dict[str, Any]:
    """Without those that say nothing: null for what may be left out. A list written as text becomes
    a list, and what is not a finite number is refused."""
    fields = {field.name: field for field in msgspec.structs.fields(into)}
    kept: dict[str, Any] = {}
    for name, value in given.items():
        field = fields.get(name)
        if field is not None and value is None and not field.required:
            continue
        if field is not None and isinstance(value, str):
            kind = _strip_annotation(field.type)
            if get_origin(kind) in (list, tuple, dict):
                value = decode_if_json(value)
            elif kind is float and value.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
                raise ValueError(f"{value!r} is not a usable number - at `$.{name}`")
        kept[name] = value
    return kept


def _strip_annotation(kind: Any) -> Any:
    """A type without its description."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


@overload
def tool(function: Function, /) -> FunctionTool: ...
@overload
def tool(
    *,
    effect: Effect = ...,
    replay: Replay = ...,
    reads: Label = ...,
    timeout_s: float = ...,
    name: str = ...,
    hint: str = ...,
) -> Callable[[Function], FunctionTool]: ...
def tool(  # noqa: PLR0913 -- one for each field of a Spec
    function: Function | None = None,
    /,
    *,
    effect: Effect = "none",
    replay: Replay = "again",
    reads: Label = UNTRUSTED,
    timeout_s: float = 120.0,
    name: str = "",
    hint: str = "",
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool of an async function. Its name, types and defaults become the schema; the
    docstring's first paragraph the description, and lines `parameter: what it means` in it those of
    the parameters. A parameter that is annotated Context, or named `context`, gets it and is not
    shown to the model. The function returns text, another value, which the model reads as JSON, or
    an Outcome. Text and values have the label `reads`: untrusted, unless it is named. `hint`: see
    Spec."""

    def make(function: Function) -> FunctionTool:
        parameters = inspect.signature(function).parameters
        hints = get_type_hints(function)
        description, meanings = _read_docstring(inspect.getdoc(function) or "", parameters)
        context = [each for each in parameters if _is_context(each, hints)]
        fields: list[Any] = []
        for parameter in parameters.values():
            if parameter.name in context:
                continue
            kind: Any = hints[parameter.name]
            if parameter.name in meanings:
                kind = Annotated[kind, msgspec.Meta(description=meanings[parameter.name])]
            required = parameter.default is inspect.Parameter.empty
            fields.append(
                (parameter.name, kind) if required else (parameter.name, kind, parameter.default)
            )
        spec = Spec(
            name=name or function.__name__,
            description=description,
            parameters={},
            effect=effect,
            replay=replay,
            reads=reads,
            timeout_s=timeout_s,
            hint=hint,
        )
        return make_function_tool(spec, fields, function, context)

    return make if function is None else make(function)


def make_function_tool(
    spec: Spec, fields: Sequence[Any], function: Function, context: Sequence[str] = ()
) -> FunctionTool:
    """A tool with these parameters: (name, type) or (name, type, default) each. Its schema is made
    of them. Those in `context` get the Context, and are not shown to the model."""
    defaults = repr([field[2:] for field in fields])
    try:
        arguments = _make_struct_cached(spec.name, tuple(fields), defaults)
    except TypeError:
        # A type or a default that cannot be looked up, or one that is wrong: then this says so.
        arguments = _make_struct(spec.name, fields)
    spec = msgspec.structs.replace(spec, parameters=make_schema(arguments))
    return FunctionTool(spec, arguments, function, context)


def _make_struct(name: str, fields: Sequence[Any]) -> type[msgspec.Struct]:
    return msgspec.defstruct(name, fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


@functools.lru_cache(maxsize=256)
def _make_struct_cached(name: str, fields: tuple[Any, ...], defaults: str) -> type[msgspec.Struct]:
    """The same for the same fields, as the tools are made for each agent anew. `defaults` tells 1
    from True."""
    return _make_struct(name, fields)


def _is_context(name: str, hints: Mapping[str, Any]) -> bool:
    return name == "context" or hints.get(name) is Context


def make_schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a struct, with the top `$ref` put in place: providers want an object at
    the top. It is as short as it can be, since every request has it, and the caller's own."""
    found: dict[str, Any] = msgspec.json.decode(_encode_schema(arguments))
    return found


@functools.lru_cache(maxsize=256)
def _encode_schema(arguments: type[msgspec.Struct]) -> bytes:
    return msgspec.json.encode(tidy_schema(msgspec.json.schema(arguments)))


def tidy_schema(whole: dict[str, Any]) -> dict[str, Any]:
    """A schema as a model is shown it: an object at its top, definitions that are used once where
    they are used, and nothing that a model has no use for."""
    definitions: dict[str, Any] = dict(whole.get("$defs", {}))
    top = {name: each for name, each in whole.items() if name != "$defs"}
    if "$ref" in top:
        top = definitions.pop(top["$ref"].removeprefix(_DEFINED))
    top.pop("description", None)  # of the struct, for who reads our source
    uses = Counter(_list_references([top, definitions]))
    once = {name: each for name, each in definitions.items() if uses[_DEFINED + name] == 1}
    several = {name: each for name, each in definitions.items() if name not in once}
    return _shorten_schema(_inline_definitions(top | ({"$defs": several} if several else {}), once))


def _list_references(node: Any) -> list[str]:
    """All that refers to a definition in it."""
    match node:
        case str() if node.startswith(_DEFINED):
            return [node]
        case dict():
            return [name for each in node.values() for name in _list_references(each)]
        case list():
            return [name for each in node for name in _list_references(each)]
        case _:
            return []


def _inline_definitions(node: Any, once: Mapping[str, dict[str, Any]]) -> Any:
    """The schema with definitions that are used `once` where they are used; what is said there of
    the value counts."""
    match node:
        case {"$ref": str(name), **beside} if (name := name.removeprefix(_DEFINED)) in once:
            return _inline_definitions(once[name] | beside, once)
        case dict():
            return {key: _inline_definitions(each, once) for key, each in node.items()}
        case list():
            return [_inline_definitions(each, once) for each in node]
        case _:
            return node


def _shorten_schema(node: dict[str, Any]) -> dict[str, Any]:
    """Without what a model has no use for: that it may leave out what it may leave out, and names
    that nobody calls. Arguments are checked when they come; nothing that is missing here is allowed
    by that."""
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key == "title" or (key in ("default", "additionalProperties", "required") and not value):
            continue
        if key in ("properties", "$defs"):
            value = {name: _shorten_schema(each) for name, each in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            value = _shorten_schema(value)
        elif key == "description":
            value = " ".join(value.split())
        elif key == "default" and isinstance(value, float) and value.is_integer():
            value = int(value)
        elif key == "anyOf":
            value = [_shorten_schema(each) for each in value]
            others = [each for each in value if each != {"type": "null"}]
            if len(others) == 1:
                kept = others[0] | kept
                continue
        kept[key] = value
    return kept


def _read_docstring(text: str, parameters: Collection[str]) -> tuple[str, dict[str, str]]:
    """The description, and what it says of each parameter; an indented line goes on with the one
    before."""
    description: list[str] = []
    meanings: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        match = _PARAMETER.match(line)
        if match and match[1] in parameters:
            last = match[1]
            meanings[last] = match[2].strip()
        elif last and line.startswith(" "):
            meanings[last] += f" {line.strip()}"
        else:
            last = ""
            description.append(line)
    return "\n".join(description).strip(), meanings
