"""Gives the tools of a conversation the files of the editor that has it open, by
`fs/read_text_file` and `fs/write_text_file`
(https://agentclientprotocol.com/protocol/file-system).

The tools may run in another process, so this is a Unix socket that only the same user can reach.
"""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import acp
import anyio
import msgspec
from acp.schema import ClientCapabilities
from anyio.abc import TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from ..config.home import Home
from ..gateway.terminal_socket import is_peer_user
from ..gateway.unix_stream import UnixStream, accept_connections, listen_unix
from ..tools.editor_files import (
    EDITOR_S,
    MAX_LINE_BYTES,
    EditorAnswer,
    EditorRequest,
    editor_socket,
)
from ..types.unix_sockets import short_socket_path

log = logging.getLogger(__name__)

MAX_ERROR_CHARS = 200
REQUEST_S = 5.0


class OpenFolder(msgspec.Struct, frozen=True):
    """A conversation that is open in the editor, by the editor's name for it and by ours, and the
    real path of the folder that is open there."""

    session_id: str
    key: str
    folder: str


class EditorFileServer:
    """Serves the files of one editor, which may take `answer_s` for one, to the conversations that
    are open in it."""

    def __init__(self, home: Home, answer_s: float = EDITOR_S) -> None:
        self._home = home
        self._answer_s = answer_s
        self._client: Any = None
        self._reads = False
        self._writes = False
        self._tasks: TaskGroup | None = None
        self._serving: dict[str, anyio.CancelScope] = {}
        self._asking: dict[str, set[anyio.CancelScope]] = {}

    def set_client(self, client: Any) -> None:
        """What speaks to the editor."""
        self._client = client

    def set_capabilities(self, capabilities: ClientCapabilities | None) -> None:
        """What the editor says that it can do; what it does not say, it is not asked for."""
        files = capabilities.fs if capabilities is not None else None
        self._reads = bool(files and files.read_text_file)
        self._writes = bool(files and files.write_text_file)

    async def run(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._tasks = None

    async def open(self, opened: OpenFolder) -> None:
        """Serve this conversation from now on. Where that cannot be, its tools use the disk."""
        self.close(opened.session_id)
        if self._tasks is None or not (self._reads or self._writes):
            return
        try:
            await self._tasks.start(self._serve, opened)
        except OSError as error:
            log.warning("The files of the editor cannot be used: %s", error)

    def close(self, session_id: str) -> None:
        """Serve it no more."""
        if scope := self._serving.pop(session_id, None):
            scope.cancel()

    def stop(self, session_id: str) -> None:
        """Let go of what its tools wait for."""
        for scope in self._asking.get(session_id, ()):
            scope.cancel()

    async def _serve(self, opened: OpenFolder, *, task_status: Any) -> None:
        async def answer(stream: UnixStream) -> None:
            async with stream:
                if is_peer_user(os.getuid(), stream):
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                        await self._answer(opened, stream)

        with anyio.CancelScope() as scope, ExitStack() as held:
            self._home.make_folder(self._home.editors)
            path = editor_socket(self._home.editors, opened.key)
            raw = held.enter_context(listen_unix(held.enter_context(short_socket_path(path))))
            self._serving[opened.session_id] = scope
            task_status.started()
            await accept_connections(raw, answer)

    async def _answer(self, opened: OpenFolder, stream: UnixStream) -> None:
        lines = BufferedByteReceiveStream(stream)
        try:
            with anyio.fail_after(REQUEST_S):
                line = await lines.receive_until(b"\n", MAX_LINE_BYTES)
            request = msgspec.json.decode(line, type=EditorRequest)
        except (
            TimeoutError,
            anyio.EndOfStream,
            anyio.IncompleteRead,
            anyio.DelimiterNotFound,
            msgspec.MsgspecError,
            RecursionError,
        ):
            return
        answer = EditorAnswer(declined=True)
        is_able = self._reads if request.content is None else self._writes
        if is_able and Path(request.path).is_relative_to(opened.folder):
            answer = await self._ask(opened.session_id, request)
        await stream.send(msgspec.json.encode(answer) + b"\n")

    async def _ask(self, session_id: str, request: EditorRequest) -> EditorAnswer:
        """Have the editor do it. Whatever goes wrong is answered."""
        answer = EditorAnswer(error="it was stopped")
        asking = self._asking.setdefault(session_id, set())
        with anyio.CancelScope() as scope:
            asking.add(scope)
            try:
                with anyio.fail_after(self._answer_s):
                    answer = await self._request(session_id, request)
            except TimeoutError:
                said = f"the editor did not answer within {self._answer_s:g} s"
                answer = EditorAnswer(error=said)
            except ConnectionError:
                answer = EditorAnswer(error="the editor has gone")
            except acp.RequestError as error:
                said = " ".join(str(error).split())[:MAX_ERROR_CHARS]
                answer = EditorAnswer(error=f"the editor says: {said}")
            except (ValueError, TypeError):  # pydantic's ValidationError is one
                answer = EditorAnswer(error="the editor gave an answer that cannot be read")
            finally:
                asking.discard(scope)
        return answer

    async def _request(self, session_id: str, request: EditorRequest) -> EditorAnswer:
        if request.content is not None:
            await self._client.write_text_file(
                session_id=session_id, path=request.path, content=request.content
            )
            return EditorAnswer()
        found = await self._client.read_text_file(session_id=session_id, path=request.path)
        found.content.encode()  # raises for characters that no file can have
        return EditorAnswer(found.content)
