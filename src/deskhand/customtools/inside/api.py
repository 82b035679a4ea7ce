"""What a file of tools imports: `tool`, and what programs from elsewhere call it by.

It is imported in the sandbox too, so it needs the standard library alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Function = Callable[..., Any]


class ToolError(Exception):
    """Raise it for what the model can mend: its text is the result."""


@dataclass
class ToolResult:
    """A result as operator-use's tools give it."""

    success: bool
    output: str = ""
    error: str | None = None
    metadata: dict[str, Any] | None = None

    @classmethod
    def success_result(cls, output: Any = "", metadata: dict[str, Any] | None = None) -> ToolResult:
        return cls(True, str(output), None, metadata)

    @classmethod
    def error_result(cls, error: Any, metadata: dict[str, Any] | None = None) -> ToolResult:
        return cls(False, "", str(error), metadata)


@dataclass
class Registered:
    """A function that a file gives as a tool.

    `model` is a class of pydantic that its arguments are, or None where its signature says what
    they are; `schema` is their JSON schema, where it is given as such: then the function gets them
    as one dict.
    """

    name: str
    description: str
    function: Function
    line: int
    model: Any = None
    schema: dict[str, Any] | None = None
    reads_only: bool = False
    timeout_s: float = 120.0
    hosts: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)


registered: list[Registered] = []
"""The tools of the file that was loaded, in their order."""


def tool(  # noqa: PLR0913 -- one for each thing that can be said of a tool
    function: Function | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    reads_only: bool = False,
    timeout_s: float = 120.0,
    hosts: Sequence[str] = (),
    secrets: Sequence[str] = (),
) -> Any:
    """Make a tool of a function, plain or async.

    Its parameters become those of the tool, by their types: what pydantic or msgspec can read. The
    first paragraph of its docstring is the description, and lines `parameter: what it means` are
    those of the parameters. With `reads_only` it runs without asking and sees the workspace as it
    is, without writing there. `hosts` are those that it connects to, and `secrets` the names of
    those that are added to its requests.
    """

    def make(function: Function) -> Function:
        registered.append(
            Registered(
                name or function.__name__,
                description or inspect.getdoc(function) or "",
                function,
                function.__code__.co_firstlineno,
                reads_only=reads_only,
                timeout_s=timeout_s,
                hosts=list(hosts),
                secrets=list(secrets),
            )
        )
        return function

    return make if function is None else make(function)


class Tool:
    """`@Tool(name, description, model)`, as operator-use has it."""

    def __init__(self, name: str = "", description: str = "", model: Any = None) -> None:
        self.name = name
        self.description = description
        self.model = model

    def __call__(self, function: Function) -> Function:
        registered.append(
            Registered(
                self.name or function.__name__,
                self.description or inspect.getdoc(function) or "",
                function,
                function.__code__.co_firstlineno,
                model=self.model,
            )
        )
        return function


class Registry:
    """`registry.register(name, definition, handler)`, as openagent-core has it."""

    def register(self, name: str, definition: dict[str, Any], handler: Function) -> None:
        """Make a tool of an async function that takes a dict. The definition is one for Anthropic's
        API: a `description` and an `input_schema`."""
        registered.append(
            Registered(
                name,
                str(definition.get("description", "")),
                handler,
                handler.__code__.co_firstlineno,
                schema=definition.get("input_schema", {"type": "object", "properties": {}}),
            )
        )


registry = Registry()
