"""Runs one script. Each call of a tool goes over a socket, as a line of JSON, and waits for the
line with its result; what the script prints is its answer."""

from __future__ import annotations

import io
import json
import keyword
import os
import random
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .macro_player import play_macro

MAX_SAID_CHARS = 50_000
MAX_CALLS_AT_ONCE = 100
SHOWN_CHARS = 8_000
"""So much of what was printed is told with each call, for where it is the last one."""


class ToolError(Exception):
    """A tool has failed, or was refused."""


class HostSocket:
    """The other end of the socket. `said` is what the script prints."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._lines = self._socket.makefile("rb")
        self.said = io.StringIO()

    def read(self) -> Any:
        """The next line. Ends the process when there is none."""
        line = self._lines.readline()
        if not line:
            sys.exit(1)
        return json.loads(line)

    def send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message, allow_nan=False).encode() + b"\n")

    def call(self, wanted: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, str]]:
        """Have these calls made, side by side where they may be."""
        if not wanted:
            return []
        calls = [{"name": name, "arguments": arguments} for name, arguments in wanted]
        if not all(isinstance(name, str) and isinstance(given, dict) for name, given in wanted):
            raise TypeError("a call has the name of a tool, and a dict of its arguments")
        if len(calls) > MAX_CALLS_AT_ONCE:
            raise ValueError(f"at most {MAX_CALLS_AT_ONCE} calls can be made at once")
        self.send({"calls": calls, "said": self.said.getvalue()[-SHOWN_CHARS:]})
        results: list[dict[str, str]] = self.read()["results"]
        return results


def make_tools(host: HostSocket, parameters: dict[str, list[str]]) -> dict[str, object]:
    """The functions that a script has: one for each tool, `call` and `call_all` for tools by name,
    and `play_macro`."""

    def call(name: str, /, **arguments: Any) -> str:
        """Call this tool. Returns what it says; raises ToolError where it fails."""
        (result,) = host.call([(name, arguments)])
        return _text_of(result)

    def call_all(wanted: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
        """Call several tools at once, each as (name, arguments). Raises ToolError for the first
        that fails."""
        return [_text_of(result) for result in host.call(wanted)]

    tools: dict[str, object] = {
        name: _make_function(call, name, parameters[name])
        for name in parameters
        if name.isidentifier() and not keyword.iskeyword(name)
    }
    more = {"call": call, "call_all": call_all, "ToolError": ToolError, "json": json}
    return {**tools, **more, "play_macro": partial(play_macro, call, ToolError)}


def _make_function(
    call: Callable[..., str], name: str, parameters: Sequence[str]
) -> Callable[..., str]:
    def tool(*values: Any, **arguments: Any) -> str:
        if len(values) > len(parameters):
            raise TypeError(f"{name} takes {', '.join(parameters) or 'nothing'}")
        given = dict(zip(parameters, values, strict=False))
        if twice := given.keys() & arguments.keys():
            raise TypeError(f"{name} was given {', '.join(sorted(twice))} twice")
        return call(name, **given, **arguments)

    tool.__name__ = name
    return tool


def _text_of(result: dict[str, str]) -> str:
    if result["status"] != "ok":
        raise ToolError(result["text"])
    return result["text"]


def main() -> None:
    """Connect to the socket that stdin names, and run what it is told."""
    host = HostSocket(sys.stdin.readline().strip())
    told = host.read()
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 -- for as long as the script runs
    sys.stdout = host.said
    random.seed(0)  # it is to ask for the same when it is run again
    failed = run_script(told["script"], make_tools(host, told["tools"]))
    host.send({"said": host.said.getvalue()[:MAX_SAID_CHARS], "failed": failed[:MAX_SAID_CHARS]})


def run_script(script: str, tools: dict[str, object]) -> str:
    """Why it failed, with the line; '' where it did not."""
    scope = {"__name__": "__main__", **tools}
    try:
        exec(compile(script, "script", "exec"), scope)
    except SystemExit as error:
        return "" if error.code in (None, 0) else f"it ended with {error.code}"
    except BaseException as error:  # noqa: BLE001 -- whatever it raises is told
        lines = [
            at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == "script"
        ]
        if isinstance(error, SyntaxError) and error.filename == "script":
            lines.append(error.lineno)
        where = f"line {lines[-1]}: " if lines else ""
        return f"{where}{type(error).__name__}: {error}"
    return ""
