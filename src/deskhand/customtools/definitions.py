"""What a file of tools gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..tools.paths import Place

TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 3600.0


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a function. `default` is None when the function has none, or one that cannot
    be shown to a model."""

    name: str
    kind: str
    required: bool
    default: Any = None


class FileTool(msgspec.Struct, frozen=True):
    """A function that is a tool. `file` is its path in the workspace, `digest` the SHA-256 of that
    file, and `place` where it was read. `schema` is what the file says of its parameters, where it
    was run to find out; `parameters` what can be read without that. `hosts` are those that it says
    it connects to, and `secrets` the names of those that it wants added to its requests."""

    name: str
    description: str
    file: str
    parameters: tuple[Parameter, ...] = ()
    digest: bytes = b""
    place: Place = Place("")
    schema: dict[str, Any] | None = None
    reads_only: bool = False
    timeout_s: float = TIMEOUT_S
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


class ToolFile(msgspec.Struct, frozen=True):
    """A file as it was read: `path` in the workspace, and where that was. `beside` are the Python
    files of its folder that it may import, by name, as they were read; None: what lies there when
    it does."""

    path: str
    source: bytes
    digest: bytes
    place: Place
    beside: Mapping[str, bytes] | None = None


class FoundTools(msgspec.Struct, frozen=True):
    """The tools that were found. `problems` say what is no tool, and why. `undescribed` are files
    that have to be run to find out."""

    tools: tuple[FileTool, ...] = ()
    problems: tuple[str, ...] = ()
    undescribed: tuple[ToolFile, ...] = ()
