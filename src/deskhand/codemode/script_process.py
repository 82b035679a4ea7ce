"""A script that runs in the sandbox, and the socket over which it asks for calls."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream
from msgspec.structs import replace

from ..gateway.unix_stream import UnixStream, serve_unix
from ..sandbox.base import Exit, Mount, Sandbox, SandboxCommand
from ..tools.convert import make_python_command
from ..types.errors import SandboxError, first_of_group

MODULE = "deskhand.codemode.inside.main"
THINK_S = 60.0
"""So long a script may compute between two calls."""
LIFE_S = 24 * 3600.0
"""So long it may wait for what it calls."""
MEMORY_BYTES = 512 << 20
FILE_BYTES = 16 << 20
MAX_PROCESSES = 16
MAX_LINE_BYTES = 4 << 20
MAX_COMPLAINT_BYTES = 2_000
MAX_CALLS_AT_ONCE = 100
MAX_SAID_CHARS = 50_000
MAX_REASON_CHARS = 2_000


class WantedCall(msgspec.Struct, frozen=True):
    """A call that a script asks for."""

    name: str
    arguments: dict[str, Any]


class CallResult(msgspec.Struct, frozen=True):
    """What a call has come to: `ok`, or why not."""

    status: str
    text: str


class ScriptMessage(msgspec.Struct, frozen=True):
    """What a script says: calls that it waits for, or, with none, its end, and why it failed.
    `said` is what it has printed, or the last of it."""

    calls: Annotated[tuple[WantedCall, ...], msgspec.Meta(max_length=MAX_CALLS_AT_ONCE)] = ()
    said: str = ""
    failed: str = ""


_decode = msgspec.json.Decoder(ScriptMessage).decode
_encode = msgspec.json.encode


class RunningScript:
    """One script. `asked` is what it said last, None while it computes; `answered` counts the calls
    whose results it has."""

    def __init__(self, script: str, tools: dict[str, list[str]]) -> None:
        self._told = {"script": script, "tools": tools}
        self._scope = anyio.CancelScope()
        self._changed = anyio.Event()
        self._answered = anyio.Event()
        self._stream: UnixStream | None = None
        self.asked: ScriptMessage | None = None
        self.answered = 0

    async def run(self, open_sandbox: Callable[[], Awaitable[Sandbox]]) -> None:
        """Run it to its end, or until it is stopped. Whatever goes wrong is what it says."""
        ended = ScriptMessage(failed="it was stopped")
        try:
            with self._scope:
                ended = await self._run(open_sandbox)
        except* (SandboxError, OSError) as errors:
            ended = ScriptMessage(failed=f"it cannot run in the sandbox: {first_of_group(errors)}")
        finally:
            if self.asked is None or self.asked.calls:
                self._say(ended)

    async def _run(self, open_sandbox: Callable[[], Awaitable[Sandbox]]) -> ScriptMessage:
        sandbox = await open_sandbox()
        complained = bytearray()

        def on_output(piece: bytes, is_error: bool) -> None:
            complained.extend(piece[: MAX_COMPLAINT_BYTES - len(complained)])

        with tempfile.TemporaryDirectory(prefix="deskhand-script-") as folder:
            path = str(Path(folder) / "calls")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve_unix, path, self._talk)
                await anyio.lowlevel.checkpoint()  # it listens from here on
                ended = await sandbox.run(_make_command(folder, path), on_output)
                tasks.cancel_scope.cancel()
        return ScriptMessage(failed=_describe_end(ended, bytes(complained)))

    async def _talk(self, stream: UnixStream) -> None:
        """Hear what it says until it ends. It speaks once, and is heard again when it has its
        results: a second connection is closed."""
        if self._stream is not None:
            await stream.aclose()
            return
        self._stream = stream
        lines = BufferedByteReceiveStream(stream)
        async with stream:
            await stream.send(_encode(self._told) + b"\n")
            while self.asked is None or self.asked.calls:
                try:
                    asked = _decode(await lines.receive_until(b"\n", MAX_LINE_BYTES))
                except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
                except (anyio.DelimiterNotFound, ValueError, RecursionError):
                    asked = ScriptMessage(failed="it asked for something that cannot be understood")
                answered = self._answered
                self._say(asked)
                await answered.wait()

    def _say(self, asked: ScriptMessage) -> None:
        said = _cut(asked.said, MAX_SAID_CHARS)
        self.asked = replace(asked, said=said, failed=_cut(asked.failed, MAX_REASON_CHARS))
        self._changed.set()
        self._changed = anyio.Event()

    async def wait(self) -> ScriptMessage:
        """What it says next."""
        with anyio.move_on_after(THINK_S):
            while self.asked is None:
                await self._changed.wait()
        if self.asked is None:
            self.stop()
            return ScriptMessage(failed=f"it computed for {THINK_S:g} seconds without an end")
        return self.asked

    async def answer(self, results: list[CallResult]) -> None:
        """Give it the results of the calls that it waits for, in their order. One that does not
        take them is stopped."""
        self.asked = None
        self.answered += len(results)
        self._answered.set()
        self._answered = anyio.Event()
        if self._stream is None:
            return
        with anyio.move_on_after(THINK_S) as sending:
            try:
                await self._stream.send(_encode({"results": results}) + b"\n")
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # it has ended: `run` says how
        if sending.cancelled_caught:
            self.stop()

    def stop(self) -> None:
        """Kill it."""
        self._scope.cancel()


def _make_command(folder: str, path: str) -> SandboxCommand:
    """The interpreter that runs it. It sees the socket, and can write nothing there. Sets come in
    the same order each time, so that it asks for the same when it is run again: not with -I."""
    command = make_python_command(MODULE, f"{path}\n".encode())
    python, _, *rest = command.argv
    return replace(
        command,
        argv=(python, "-P", "-s", *rest),
        env=(("PYTHONHASHSEED", "0"),),
        cwd=folder,
        mounts=(*command.mounts, Mount(folder)),
        timeout_s=LIFE_S,
        memory_bytes=MEMORY_BYTES,
        file_bytes=FILE_BYTES,
        processes=MAX_PROCESSES,
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[cut: it was longer]"


def _describe_end(ended: Exit, complained: bytes) -> str:
    if ended.limit:
        return f"it used too much of the {ended.limit}"
    if ended.timeout:
        return "it took too long"
    last = complained.decode(errors="replace").strip().splitlines()[-1:]
    return " ".join(["it ended without an answer", *(f"({line})" for line in last)])
