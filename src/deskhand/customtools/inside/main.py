"""Loads one file of tools, and runs each call in a copy of itself that ends with the call.

So a call does not start Python, and nothing that one call has learned, broken or left running is
there for the next. It speaks in lines of JSON over its standard streams; what the
tools print goes through pipes of their own.
"""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import json
import os
import selectors
import signal
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

from . import api
from .arguments import convert_arguments, make_schema, split_docstring

MODULE = "custom_tool"
OTHER_IMPORTS = ("operator_use.tools.service", "operator_use.agent.tools.service")
"""Where files that were written for operator-use import `Tool` and `ToolResult` from."""
MAX_TEXT_CHARS = 2 << 20
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PIECE_BYTES = 1 << 15
_FOLDED_FRAMES = ("<frozen", os.path.dirname(__file__))  # noqa: PTH120 -- pathlib takes 20 ms


def main() -> None:
    """Load the file that the first line tells of, and run the calls of the others."""
    lines = os.fdopen(os.dup(0), "rb")
    said = os.fdopen(os.dup(1), "wb", 0)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # what a file prints when it is loaded is no line of ours
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def say(message: dict[str, Any]) -> None:
        said.write(json.dumps(message).encode() + b"\n")

    loaded = load(json.loads(lines.readline()))
    say({"tools": [_describe(each) for each in loaded.tools], "problem": loaded.problem})
    # What a call starts cannot write into our pipes.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    ended, woken = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    own = (lines.fileno(), said.fileno(), woken, ended)
    copy = Copy(loaded, own)
    for line in lines:
        for message in copy.run(line):
            say(message)
        copy = Copy(loaded, own)


class Loaded:
    """A file that was run. `tools` are those that it registered, by name the last of each."""

    def __init__(self, module: types.ModuleType, tools: list[api.Registered], problem: str) -> None:
        self.module = module
        self.tools = tools
        self.problem = problem

    def find(self, name: str) -> api.Registered:
        """A tool by its name: a registered one, or else the function of that name."""
        for each in self.tools:
            if each.name == name:
                return each
        return api.Registered(name, "", getattr(self.module, name), 0)


class BesideImporter(Loader):
    """Imports the files beside the loaded one from the sources that we were told, whatever lies
    there."""

    def __init__(self, folder: str, sources: dict[str, str]) -> None:
        self._folder = folder
        self._sources = {name.removesuffix(".py"): source for name, source in sources.items()}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._sources:
            return None
        spec = ModuleSpec(name, self, origin=f"{self._folder}/{name}.py")
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual kind of module."""

    def exec_module(self, module: types.ModuleType) -> None:
        source = self._sources[module.__name__].encode("latin-1")
        exec(compile(source, str(module.__file__), "exec"), module.__dict__)


def load(told: dict[str, Any]) -> Loaded:
    """Run the file's source. Whatever it raises is the problem, with its line."""
    path = told["path"]
    with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
        file.read()  # it counts as read, and so does whatever it is marked with
    folder = os.path.dirname(path)  # noqa: PTH120
    if "beside" in told:
        sys.meta_path.append(BesideImporter(folder, told["beside"]))  # last: it hides no library
    else:
        sys.path.append(folder)
    sys.argv[:] = [path]
    for name in OTHER_IMPORTS:
        _provide_import(name)
    module = types.ModuleType(MODULE)
    module.__file__ = path
    sys.modules[MODULE] = module
    module.__dict__["registry"] = api.registry  # openagent-core's example imports none
    problem = ""
    try:
        exec(compile(told["source"].encode("latin-1"), path, "exec"), module.__dict__)
    except BaseException as error:  # noqa: BLE001 -- whatever it raises is told
        problem = describe_error(error, path)
    if not problem and len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208
        problem = "it starts threads when it is loaded, which would go on between calls"
    return Loaded(module, list(api.registered), problem)


def _provide_import(name: str) -> None:
    """Have a module of this name, and its packages, that give what our own does."""
    parts = name.split(".")
    for n in range(1, len(parts) + 1):
        package = ".".join(parts[:n])
        made = sys.modules.setdefault(package, types.ModuleType(package))
        made.__path__ = []
    sys.modules[name].__dict__.update(Tool=api.Tool, ToolResult=api.ToolResult)


def _describe(tool: api.Registered) -> dict[str, Any]:
    """What the host is told of a tool; `problem` says why it is none."""
    description, _ = split_docstring(tool)
    described = {
        "name": tool.name,
        "description": description,
        "line": tool.line,
        "reads_only": tool.reads_only,
        "timeout_s": tool.timeout_s,
        "hosts": tool.hosts,
        "secrets": tool.secrets,
    }
    try:
        described["parameters"] = make_schema(tool)
    except Exception as error:  # noqa: BLE001 -- types may raise anything
        described["problem"] = f"its parameters cannot be described: {error}"
    return described


def describe_error(error: BaseException, path: str) -> str:
    """The error in a line, with the line of the file."""
    lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == path]
    if isinstance(error, SyntaxError) and error.filename == path:
        lines.append(error.lineno)
    where = f" (line {lines[-1]} of {path})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"


# ------------------------------------------------------------------ calls


class Copy:
    """A copy of this process that waits for its one call, so that none has to wait for a fork."""

    def __init__(self, loaded: Loaded, own: Sequence[int]) -> None:
        """`own` are descriptors that it does not get; the last can be read when a process has
        ended."""
        self._ended = own[-1]
        orders, self._orders = os.pipe()
        pipes = [os.pipe() for _ in range(3)]
        self._pid = os.fork()
        if self._pid == 0:
            for number in (*own, self._orders):
                os.close(number)
            _wait_for_call(loaded, orders, [write for _, write in pipes])
        for number in (orders, *(write for _, write in pipes)):
            os.close(number)
        self._reads = [read for read, _ in pipes]
        for read in self._reads:
            os.set_blocking(read, False)

    def run(self, call: bytes) -> Iterator[dict[str, Any]]:
        """Have it done, and yield what it prints and, at last, its result. Then it is gone with all
        that it has started."""
        os.set_blocking(self._orders, True)
        with suppress(BrokenPipeError), os.fdopen(self._orders, "wb") as orders:
            orders.write(call)
        result = bytearray()
        status = None
        with selectors.DefaultSelector() as selector:
            for number, read in enumerate(self._reads):
                selector.register(read, selectors.EVENT_READ, number)
            selector.register(self._ended, selectors.EVENT_READ, -1)
            while status is None and not result.endswith(b"\n"):
                status = _reap(self._pid)
                yield from _read_pipes(selector, result, wait=status is None)
            yield from _read_pipes(selector, result, wait=False)
        for read in self._reads:
            os.close(read)
        if status is None:
            _, status = os.waitpid(self._pid, 0)
        _end_descendants()
        yield {"result": _read_result(bytes(result), status)}


def _wait_for_call(loaded: Loaded, orders: int, writes: list[int]) -> None:
    """What the copy does. Never returns."""
    out, error, answer = writes
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
        os.setsid()
        os.dup2(out, 1)
        os.dup2(error, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="replace")
        sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="replace")
        with os.fdopen(orders, "rb") as file:
            call = file.read()
        if call:
            said = perform(loaded, json.loads(call))
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):
                    stream.flush()
            view = memoryview(json.dumps(said).encode() + b"\n")
            while view:
                view = view[os.write(answer, view) :]
    finally:
        os._exit(0)


def perform(loaded: Loaded, call: dict[str, Any]) -> dict[str, str]:
    """Do what the call says. Returns its `status` and `text`; whatever it raises is the text."""
    try:
        found = loaded.find(call["name"])
        given = call["arguments"]
        if found in loaded.tools:
            given = convert_arguments(found, given)
        text, status = _render(_call_function(found, given, call["extensions"]))
    except api.ToolError as error:
        text, status = str(error), "error"
    except SystemExit as error:
        text, status = f"it ended with {error.code}", "error"
    except BaseException as error:  # noqa: BLE001 -- whatever it raises is told
        text, status = describe_error(error, str(loaded.module.__file__)), "error"
    shown = text[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode()
    return {"status": status, "text": shown}


def _call_function(tool: api.Registered, given: dict[str, Any], extensions: dict[str, Any]) -> Any:
    """What the function returns. Pieces that it yields are shown as they come."""
    parameters = inspect.signature(tool.function).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    beside = {name: value for name, value in extensions.items() if takes_all or name in parameters}
    made = tool.function(given, **beside) if tool.schema else tool.function(**given, **beside)
    if inspect.isasyncgen(made):
        return asyncio.run(_show_all(made))
    if inspect.isgenerator(made):
        for piece in made:
            _show(piece)
        return None
    return asyncio.run(made) if inspect.iscoroutine(made) else made


async def _show_all(pieces: Any) -> None:
    async for piece in pieces:
        _show(piece)


def _show(piece: Any) -> None:
    sys.stdout.write(str(piece))
    sys.stdout.flush()


def _render(value: Any) -> tuple[str, str]:
    """Text and status."""
    if value is None:
        return "", "ok"
    if isinstance(value, str):
        return value, "ok"
    if isinstance(value, api.ToolResult):
        return (value.output, "ok") if value.success else (value.error or "it failed", "error")
    if "msgspec" in sys.modules or "pydantic" in sys.modules:
        value = _to_plain(value)
    return json.dumps(value, ensure_ascii=False, default=str), "ok"


def _to_plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    import msgspec  # noqa: PLC0415 -- only where a file uses it

    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError):
        return value


def _read_pipes(
    selector: selectors.DefaultSelector, result: bytearray, *, wait: bool
) -> Iterator[dict[str, Any]]:
    """What can be read now; with `wait` something is. Without, all that is there."""
    while True:
        found = selector.select(None if wait else 0)
        for key, _ in found:
            data = b""
            with suppress(BlockingIOError):
                data = os.read(key.fd, _PIECE_BYTES)
            if not data:
                selector.unregister(key.fd)
            elif key.data == 2:
                result += data
            elif key.data >= 0:
                yield {"output": data.decode("latin-1"), "error": key.data == 1}
        if wait or not found:
            return


def _reap(pid: int) -> int | None:
    """The status of that process, if it has ended; others that have ended are collected too."""
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if ended == pid:
            return status
        if ended == 0:
            return None


def _end_descendants() -> None:
    """Kill what the call has left running: it belongs to us once its parent is gone."""
    me = os.getpid()
    while children := _list_children(me):
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


def _list_children(me: int) -> list[int]:
    try:
        with open(f"/proc/{me}/task/{me}/children", encoding="ascii") as file:  # noqa: PTH123
            return [int(each) for each in file.read().split()]
    except OSError:
        return []


def _read_result(said: bytes, status: int) -> dict[str, str]:
    if said:
        with suppress(ValueError, RecursionError):
            found: dict[str, str] = json.loads(said)
            return found
    if os.WIFSIGNALED(status):
        return {"status": "error", "text": f"it was killed by signal {os.WTERMSIG(status)}"}
    return {"status": "error", "text": "it ended without a result"}
