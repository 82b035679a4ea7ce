"""What a program that asks over the API wants of one turn: its own tools, and how the model is to
answer."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .marked_texts import mark_text

Thinking = Literal["off", "low", "medium", "high", "max"]
ANY_OBJECT: dict[str, Any] = {"type": "object"}
"""The JSON schema of an answer that may be any JSON object."""
CLIENT_HISTORY_SOURCE = mark_text("the client's history")
"""The source of what a program says was said before."""


def tool_source(name: str) -> str:
    """The source of what a program's own tool gave."""
    return f"client tool {name}"


class ClientTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool that the program runs itself. `parameters` is a JSON schema of type object."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: dict(ANY_OBJECT))


class ClientRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """It holds until the turn ends, or the program returns results with other wishes.

    `must_call`: the model has to call the tool of this name, `*` any of the program's; '' it
    decides. Without `parallel_calls` one call is handed over at a time. The answer ends before the
    first of the texts in `stop`. `answer_schema` is the JSON schema of the answer; `strict_schema`:
    a provider that can is to enforce it word by word. `end_user` is whom the program asks for, as
    the program knows them: it decides nothing.
    """

    tools: tuple[ClientTool, ...] = ()
    must_call: str = ""
    parallel_calls: bool = True
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    answer_schema: dict[str, Any] | None = None
    strict_schema: bool = False
    thinking: Thinking | None = None
    end_user: str = ""

    def tool(self, name: str) -> ClientTool | None:
        """The program's tool of this name."""
        return next((tool for tool in self.tools if tool.name == name), None)
