"""MCP servers and their tools, as an owner sees them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

_Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Name = Annotated[str, Meta(min_length=1, max_length=256)]


class McpToolView(msgspec.Struct, frozen=True, kw_only=True):
    """A tool. One that is not `accepted` rests: `change` is the difference to what was accepted,
    line by line, with what nobody sees written out, and `digest` what is sent back with a
    yes."""

    name: str
    description: str
    state: Literal["accepted", "changed", "new"]
    change: str = ""
    digest: str = ""


class McpServerView(msgspec.Struct, frozen=True, kw_only=True):
    """A server: a program in the sandbox, or one on the web. `where` is its command or address,
    `hosts` and `folders` are all that a program may use. `problem` is why it could not be used
    last."""

    name: str
    kind: Literal["program", "web"]
    where: str
    enabled: bool
    trusted: bool
    hosts: list[str]
    folders: list[str]
    problem: str
    tools: list[McpToolView]


class SeenTool(msgspec.Struct, frozen=True):
    name: _Name
    digest: _Digest


class AcceptTools(msgspec.Struct, frozen=True):
    """The tools that hold from now on, each as it was seen."""

    tools: Annotated[list[SeenTool], Meta(min_length=1, max_length=500)]
