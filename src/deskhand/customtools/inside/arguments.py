"""The parameters of a tool as a JSON schema, and its arguments as Python values. What pydantic or
msgspec can read of a type is read; neither is imported before it is needed."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Annotated, Any, get_args, get_type_hints

from .api import Registered, ToolError

_PARAMETER = re.compile(r"^\s*(\w+): (.+)$")
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def make_schema(tool: Registered) -> dict[str, Any]:
    """Raises what the types raise that cannot be read."""
    if tool.schema is not None:
        return tool.schema
    if tool.model is not None:
        schema: dict[str, Any] = tool.model.model_json_schema()
        return schema
    parameters = list_parameters(tool)
    if not parameters:
        return OBJECT
    if _needs_pydantic(parameters.values()):
        return _make_pydantic_model(tool, parameters).model_json_schema()  # type: ignore[no-any-return]
    return _make_msgspec_schema(tool, parameters)


def convert_arguments(tool: Registered, given: dict[str, Any]) -> dict[str, Any]:
    """What the function is called with. Raises ToolError with a line for each parameter that is
    wrong."""
    if tool.schema is not None:
        missing = [name for name in tool.schema.get("required", ()) if name not in given]
        _raise_for([_missing(name) for name in missing])
        return given
    if tool.model is not None:
        return _convert_by_pydantic(tool.model, given)
    parameters = list_parameters(tool)
    if _needs_pydantic(parameters.values()):
        return _convert_by_pydantic(_make_pydantic_model(tool, parameters), given)
    return _convert_by_msgspec(parameters, given)


def list_parameters(tool: Registered) -> dict[str, tuple[Any, Any]]:
    """(type, default) of what a model gives, by name; a default is `inspect.Parameter.empty` where
    there is none. Names with a leading underscore are given by us."""
    try:
        hints = get_type_hints(tool.function, include_extras=True)
    except NameError as error:
        raise ToolError(f"a type is not known: {error}") from error
    found = {}
    for parameter in inspect.signature(tool.function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD or parameter.name.startswith("_"):
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise ToolError("its parameters must all be named: no * or /")
        found[parameter.name] = hints.get(parameter.name, str), parameter.default
    return found


def split_docstring(tool: Registered) -> tuple[str, dict[str, str]]:
    """The description, and what it says of each parameter."""
    description: list[str] = []
    meanings: dict[str, str] = {}
    names = inspect.signature(tool.function).parameters
    for line in tool.description.splitlines():
        match = _PARAMETER.match(line)
        if match and match[1] in names:
            meanings[match[1]] = match[2].strip()
        else:
            description.append(line)
    return "\n".join(description).strip(), meanings


def _needs_pydantic(parameters: Any) -> bool:
    """Whether one of these types is of pydantic: then it has been imported by the file."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None:
        return False

    def is_of_pydantic(kind: Any) -> bool:
        if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
            return True
        if type(kind).__module__.startswith("pydantic"):
            return True
        return any(is_of_pydantic(each) for each in get_args(kind))

    return any(
        is_of_pydantic(kind) or type(default).__module__.startswith("pydantic")
        for kind, default in parameters
    )


def _make_pydantic_model(tool: Registered, parameters: dict[str, tuple[Any, Any]]) -> Any:
    from pydantic import Field, create_model  # noqa: PLC0415 -- only where a file uses it

    _, meanings = split_docstring(tool)
    fields: dict[str, Any] = {}
    for name, (kind, default) in parameters.items():
        shown = Annotated[kind, Field(description=meanings[name])] if name in meanings else kind
        fields[name] = (shown, ... if default is inspect.Parameter.empty else default)
    return create_model(tool.name, **fields)


def _convert_by_pydantic(model: Any, given: dict[str, Any]) -> dict[str, Any]:
    from pydantic import ValidationError  # noqa: PLC0415 -- as above

    try:
        read = model.model_validate(given)
    except ValidationError as error:
        lines = []
        for each in error.errors():
            name = ".".join(map(str, each["loc"]))
            lines.append(
                _missing(name) if each["type"] == "missing" else f"'{name}': {each['msg']}"
            )
        raise ToolError("invalid arguments:\n" + "\n".join(lines)) from None
    return {name: getattr(read, name) for name in type(read).model_fields}


def _make_msgspec_schema(
    tool: Registered, parameters: dict[str, tuple[Any, Any]]
) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415 -- a tool without parameters needs none

    _, meanings = split_docstring(tool)
    fields: list[Any] = []
    for name, (kind, default) in parameters.items():
        shown: Any = kind
        if name in meanings:
            shown = Annotated[kind, msgspec.Meta(description=meanings[name])]
        has_default = default is not inspect.Parameter.empty
        fields.append((name, shown, default) if has_default else (name, shown))
    made = msgspec.defstruct(tool.name, fields, kw_only=True)
    return msgspec.json.schema(made)


def _convert_by_msgspec(
    parameters: dict[str, tuple[Any, Any]], given: dict[str, Any]
) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415 -- as above

    wrong = [f"'{name}' is not a parameter" for name in given if name not in parameters]
    read = {}
    for name, (kind, default) in parameters.items():
        if name not in given or (given[name] is None and default is not inspect.Parameter.empty):
            if default is inspect.Parameter.empty:
                wrong.append(_missing(name))
            continue
        try:
            read[name] = msgspec.convert(given[name], kind, strict=False)
        except msgspec.ValidationError as error:
            wrong.append(f"'{name}': {error}")
    _raise_for(wrong)
    return read


def _missing(name: str) -> str:
    return f"'{name}' is required but was not provided"


def _raise_for(wrong: list[str]) -> None:
    if wrong:
        raise ToolError("invalid arguments:\n" + "\n".join(wrong))
