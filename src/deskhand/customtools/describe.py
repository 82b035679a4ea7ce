"""Runs a file of tools in the sandbox, without network, to learn what its tools are."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..net.egress import parse_egress_host
from ..sandbox.base import Mount, Sandbox, SandboxCommand
from ..sandbox.line_process import LineProcess
from ..tools.convert import make_python_command
from ..tools.define import tidy_schema
from ..tools.documents.invisible_characters import escape_invisible
from ..types.errors import AddressRefused, SandboxError
from ..types.folders import make_private_folder
from ..types.messages import clean_text
from .definitions import MAX_TIMEOUT_S, TIMEOUT_S, FileTool, FoundTools, ToolFile

MODULE = "deskhand.customtools.inside.main"
PACKAGES = ("msgspec", "pydantic")
"""What a file may import, with all that is installed beside it."""
LOAD_S = 20.0
"""So long a file has to be loaded."""
MEMORY_BYTES = 1 << 30
FILE_BYTES = 256 << 20
MAX_PROCESSES = 128
MAX_TOOLS = 60
MAX_SCHEMA_BYTES = 32 << 10
MAX_LINE_BYTES = 2 << 20
MAX_TEXT_CHARS = 2_000
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Described(msgspec.Struct, frozen=True):
    """What a file says of one tool. `problem` says why it is none."""

    name: str
    description: str = ""
    line: int = 0
    reads_only: bool = False
    timeout_s: float = TIMEOUT_S
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    parameters: dict[str, Any] = {}
    problem: str = ""


class LoadReport(msgspec.Struct, frozen=True):
    """What the process says when it has loaded the file."""

    tools: tuple[Described, ...] = ()
    problem: str = ""


_decode = msgspec.json.Decoder(LoadReport).decode


def make_command(folder: Path, mounts: tuple[Mount, ...], time_s: float) -> SandboxCommand:
    """The process that loads a file, in this folder."""
    command = make_python_command(MODULE, b"", PACKAGES)
    return replace(
        command,
        cwd=str(folder),
        mounts=(*command.mounts, *mounts),
        timeout_s=time_s,
        memory_bytes=MEMORY_BYTES,
        file_bytes=FILE_BYTES,
        processes=MAX_PROCESSES,
    )


def make_load_line(file: ToolFile, folder: Path) -> bytes:
    """What the process is told first. It runs this source, whatever the file holds by then."""
    told: dict[str, Any] = {
        "path": str(folder / file.path),
        "source": file.source.decode("latin-1"),
    }
    if file.beside is not None:
        told["beside"] = {name: source.decode("latin-1") for name, source in file.beside.items()}
    return msgspec.json.encode(told)


async def describe_file(
    file: ToolFile, beside: Mapping[str, bytes], open_sandbox: Callable[[], Awaitable[Sandbox]]
) -> FoundTools:
    """The tools of this file. Of the workspace it sees the Python files `beside` it alone, by their
    names, so that nothing else can speak to models by what it says of its tools. Whatever goes
    wrong is a problem that names it."""
    try:
        sandbox = await open_sandbox()
        with tempfile.TemporaryDirectory(prefix="deskhand-tools-") as made:
            folder = await anyio.to_thread.run_sync(_stage, Path(made), file, beside)
            line = await _load(file, folder, sandbox)
    except SandboxError as error:
        return FoundTools((), (f"{file.path} cannot be loaded in the sandbox: {error}",))
    if isinstance(line, str):
        return FoundTools((), (f"{file.path} was not loaded within {LOAD_S:.0f} s: {line}",))
    return read_loaded(line, file)


def _stage(made: Path, file: ToolFile, beside: Mapping[str, bytes]) -> Path:
    """Put the files beside this one into a workspace of their own."""
    folder = made.resolve()
    place = (folder / file.path).parent
    make_private_folder(place)
    for name, source in beside.items():
        (place / name).write_bytes(source)
    return folder


async def _load(file: ToolFile, folder: Path, sandbox: Sandbox) -> bytes | str:
    """What its process says when it has loaded the file, or why it says nothing."""
    process = LineProcess(sandbox, make_command(folder, (Mount(str(folder)),), LOAD_S))
    async with process.open(), aclosing(process.lines()) as lines:
        await process.send(make_load_line(file, folder))
        async for line in lines:
            return line
    return process.describe_end().replace("\n", ": ")


def find_load_problem(line: bytes) -> str:
    """Why a file cannot be used, by what its process says when it has loaded it; '' for nothing."""
    try:
        loaded = _decode(line) if len(line) <= MAX_LINE_BYTES else None
    except (ValueError, RecursionError):
        loaded = None
    return "it says what cannot be read" if loaded is None else _clean(loaded.problem)


def read_loaded(line: bytes, file: ToolFile) -> FoundTools:
    """The tools of what a process says of the file that it has loaded. What it says is its own
    word, so all of it is checked."""
    try:
        loaded = _decode(line) if len(line) <= MAX_LINE_BYTES else None
    except (ValueError, RecursionError):
        loaded = None
    if loaded is None:
        return FoundTools((), (f"{file.path} says of its tools what cannot be read",))
    if loaded.problem:
        return FoundTools((), (f"{file.path} was not loaded: {_clean(loaded.problem)}",))
    problems = []
    tools: dict[str, FileTool] = {}
    for each in loaded.tools[:MAX_TOOLS]:
        try:
            why = _find_problem(each)
            made = _make_tool(each, file)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            why = "its parameters cannot be described: their schema is not a usable one"
        if why:
            name = _clean(each.name)[:64]
            problems.append(f"{file.path}, line {each.line}: {name} is not a tool: {why}")
        else:
            tools[each.name] = made
    if len(loaded.tools) > MAX_TOOLS:
        problems.append(f"{file.path} has more than {MAX_TOOLS} tools: the others are left out")
    if not loaded.tools:
        problems.append(f"{file.path} gives no tools: none of its functions has @tool")
    return FoundTools(tuple(tools.values()), tuple(problems))


def _find_problem(tool: Described) -> str:
    if tool.problem:
        return _clean(tool.problem)
    if not NAME.fullmatch(tool.name):
        return "its name must be of at most 64 letters, digits, _ and -"
    if not tool.description.strip():
        return "it has no description: write a docstring"
    if tool.parameters.get("type", "object") != "object":
        return "its parameters are not those of an object"
    if len(msgspec.json.encode(tool.parameters)) > MAX_SCHEMA_BYTES:
        return f"its parameters take more than {MAX_SCHEMA_BYTES >> 10} kB to describe"
    for host in tool.hosts:
        try:
            parse_egress_host(host)
        except AddressRefused as error:
            return _clean(str(error))
    return ""


def _make_tool(tool: Described, file: ToolFile) -> FileTool:
    return FileTool(
        name=tool.name,
        description=_clean(tool.description),
        file=file.path,
        digest=file.digest,
        place=file.place,
        schema=tidy_schema(tool.parameters),
        reads_only=tool.reads_only,
        timeout_s=min(max(tool.timeout_s, 1.0), MAX_TIMEOUT_S),
        hosts=tool.hosts,
        secrets=tool.secrets,
    )


def _clean(text: str) -> str:
    return escape_invisible(clean_text(text[:MAX_TEXT_CHARS])).strip()
