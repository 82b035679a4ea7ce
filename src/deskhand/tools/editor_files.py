"""Files as an editor has them: what a person has not saved is read, and what is written appears
there.

An editor that has a conversation open serves a Unix socket that is named after the conversation, in
whatever process that runs (see `editor.file_server`). What is said here blocks.
"""

from __future__ import annotations

import socket
from hashlib import sha256
from pathlib import Path
from threading import Event
from time import monotonic

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..types.errors import ToolError
from ..types.labels import join_labels
from ..types.unix_sockets import short_socket_path
from .base import Context, ToolScope
from .edits import BOM
from .label_marks import load_marks, needs_mark
from .paths import OpenedFile
from .written import list_read_only

EDITOR_S = 10.0
"""So long an editor may take for a file."""
GRACE_S = 5.0
MAX_TEXT_BYTES = 10 << 20
MAX_LINE_BYTES = 8 * MAX_TEXT_BYTES
RECEIVE_BYTES = 1 << 16
SETTLE_S = 0.05
SETTLE_LOOKS = 40
STABLE_LOOKS = 4


class EditorRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line that asks for a file by its real path, or with `content` to write it."""

    path: str
    content: str | None = None


class EditorAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer: `content` of what was read. `declined`: the editor does not do that for this
    file. With an `error` nobody knows what has come of it."""

    content: str = ""
    declined: bool = False
    error: str = ""


class EditorError(ToolError):
    """The editor did not do what it was asked for."""


class EditorFiles:
    """The files of the editor that serves this socket, which may take `limit_s` for one."""

    def __init__(self, path: Path, limit_s: float = EDITOR_S + GRACE_S) -> None:
        self._path = path
        self._limit_s = limit_s

    def read(self, real: str) -> str | None:
        """The text of a file, with what is not saved; None where this editor does not give it.
        Raises EditorError."""
        answer = self._ask(EditorRequest(real))
        return None if answer is None or answer.declined else answer.content

    def write(self, real: str, text: str) -> bool:
        """Have the editor write a file. Returns whether it does that for this file. Raises
        EditorError: it may or may not have been written."""
        answer = self._ask(EditorRequest(real, text))
        return answer is not None and not answer.declined

    def _ask(self, request: EditorRequest) -> EditorAnswer | None:
        """None where the editor is not there any more."""
        until = monotonic() + self._limit_s
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(self._limit_s)
            try:
                with short_socket_path(self._path) as short:
                    connection.connect(short)
            except OSError:
                return None
            try:
                connection.sendall(msgspec.json.encode(request) + b"\n")
                line = _receive_line(connection, until)
                answer = msgspec.json.decode(line, type=EditorAnswer)
            except TimeoutError as error:
                raise EditorError(
                    f"the editor did not answer within {self._limit_s:g} s"
                ) from error
            except (OSError, msgspec.MsgspecError, RecursionError) as error:
                raise EditorError("the editor has gone") from error
        if answer.error:
            raise EditorError(answer.error)
        return answer


def _receive_line(connection: socket.socket, until: float) -> bytes:
    """Raises OSError, TimeoutError among them."""
    received = bytearray()
    while not received.endswith(b"\n"):
        left_s = until - monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        piece = connection.recv(RECEIVE_BYTES)
        if not piece or len(received) > MAX_LINE_BYTES:
            raise ConnectionResetError
        received += piece
    return bytes(received)


def editor_socket(folder: Path, session: str) -> Path:
    """Where the editor is reached that has this conversation open."""
    return folder / sha256(session.encode()).hexdigest()[:32]


def find_editor(reach: ToolScope, session: str) -> EditorFiles | None:
    """The editor that has this conversation open; None where there is none."""
    if reach.editors is None:
        return None
    path = editor_socket(reach.editors, session)
    return EditorFiles(path) if path.exists() else None


def add_unsaved(
    opened: OpenedFile, editor: EditorFiles | None, reach: ToolScope, key: str = ""
) -> OpenedFile:
    """A file that was read, with what a person has changed in the editor and not saved; the call is
    `key`. Raises ToolError."""
    if editor is None or not _is_text(opened):
        return opened
    real = opened.place.real
    begun = _count_programs(reach)
    try:
        text = editor.read(real)
    except EditorError as error:
        raise EditorError(f"{real!r} was not read: {error}. Try again") from error
    held = opened.data if text is None else _as_saved(text, opened.data)
    if held == opened.data:
        return opened
    # The editor opens it by its name. A command could have put a link there for a moment, and what
    # was read would be a file from outside.
    if _is_command_running(reach, key) or _count_programs(reach) != begun:
        raise ToolError(
            f"{real!r} has unsaved changes in the editor, and a command is running. Wait until it "
            "has ended, or ask the person to save the file"
        )
    return replace(opened, data=held, size_bytes=len(held))


def _count_programs(reach: ToolScope) -> int:
    """How many have begun until now: one may be over before an editor answers."""
    return reach.shadow.programs_begun if reach.shadow is not None else 0


def _is_text(opened: OpenedFile) -> bool:
    if opened.size_bytes > MAX_TEXT_BYTES or b"\0" in opened.data:
        return False
    try:
        opened.data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _plain(data: bytes) -> bytes:
    """Without what editors leave out of their text: the byte order mark, and how lines end."""
    return data.removeprefix(BOM.encode()).replace(b"\r\n", b"\n")


def _as_saved(text: str, saved: bytes) -> bytes:
    """The bytes of an editor's text, as it would save them."""
    try:
        held = text.encode()
    except UnicodeEncodeError as error:
        raise EditorError("the editor gave text that cannot be read") from error
    if _plain(held) == _plain(saved):
        return saved
    held = held.removeprefix(BOM.encode())
    if b"\r\n" in saved and b"\r\n" not in held:
        held = held.replace(b"\n", b"\r\n")
    return BOM.encode() + held if saved.startswith(BOM.encode()) else held


def _is_command_running(reach: ToolScope, key: str) -> bool:
    """Whether a program may be changing files just now, beside the call `key`."""
    running = reach.shadow.running if reach.shadow is not None else ()
    return any(one.over_at is None and one.by.key != key and one.by.runs_program for one in running)


class EditorWrite:
    """A file that is written by the editor, for the call `key`. Its methods block."""

    def __init__(
        self, editor: EditorFiles, reach: ToolScope, path: str, data: bytes, *, key: str
    ) -> None:
        self._editor = editor
        self._reach = reach
        self._files = reach.files
        self._path = path
        self._data = data
        self._key = key
        self.real = ""

    def prepare(self, expected: bytes | None) -> bool:
        """Save what a person has not saved, so that it can be brought back. Returns whether the
        file is then written by the editor. Raises ToolError where it is not as `expected` any
        more."""
        opened = self._open()
        if opened is None:
            return not self._is_command_running()
        if not _is_text(opened):
            return False
        self.real = self._files.prepare_write(self._path)
        held = add_unsaved(opened, self._editor, self._reach, self._key).data
        if expected is not None and held != expected:
            raise ToolError(
                f"{self._path!r} was changed in the editor just now; read it again first"
            )
        if self._is_command_running():
            return False
        if held != opened.data:
            self._put(held)
        return True

    def write(self) -> str:
        """Write it, whole or not at all. Returns its real path. Raises EditorError."""
        if self._is_command_running():  # one that has begun since it was prepared
            return self._files.write(self._path, self._data)
        # Only now are folders made for it, so that they are undone with it.
        self.real = self._files.prepare_write(self._path)
        self._put(self._data)
        return self.real

    def is_as_given(self) -> bool:
        """Whether it was written as it was given: an editor may have formatted it."""
        opened = self._open()
        return opened is not None and _plain(opened.data) == _plain(self._data)

    def _is_command_running(self) -> bool:
        """Whether the editor is not to write now: it would by a name that may lead elsewhere."""
        return _is_command_running(self._reach, self._key)

    def _open(self) -> OpenedFile | None:
        try:
            return self._files.read_opened(self._path, MAX_TEXT_BYTES + 1)
        except ToolError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def _put(self, data: bytes) -> None:
        before = self._open()
        saved = before.data if before is not None else None
        try:
            is_taken = self._editor.write(self.real, data.decode())
        except EditorError as error:
            self._put_back(saved, data)
            raise EditorError(f"{self._path!r} was not written: {error}") from error
        # Some editors have it in a buffer only, and some write a piece after the other.
        now = self._wait_for(data) if is_taken else saved
        if now == saved or _is_part(now, data):
            self._files.write(self._path, data)

    def _put_back(self, saved: bytes | None, data: bytes) -> None:
        """Have nothing half-written be left of a write that has failed."""
        now = self._wait_for(data)
        if now == saved or not _is_part(now, data):
            return
        if saved is None:
            self._files.remove(self._path)
        else:
            self._files.write(self._path, saved)

    def _wait_for(self, data: bytes) -> bytes | None:
        """What is in the file, when it is this, or does not change any more."""
        seen: bytes | None = None
        same = 0
        for _ in range(SETTLE_LOOKS):
            opened = self._open()
            now = opened.data if opened is not None else None
            if now is not None and _plain(now) == _plain(data):
                return now
            same = same + 1 if now == seen else 0
            seen = now
            if same >= STABLE_LOOKS:
                break
            Event().wait(SETTLE_S)
        return seen


def _is_part(now: bytes | None, data: bytes) -> bool:
    """Whether this is the beginning of what was to be written. An editor may take away spaces and
    empty lines at the end."""
    if now is None:
        return False
    whole = _plain(data)
    part = _plain(now)
    return whole.startswith(part) and bool(whole[len(part) :].strip())


async def open_editor_write(
    path: str, data: bytes, before: OpenedFile | None, context: Context
) -> EditorWrite | None:
    """How this file is written by the editor that has the conversation open; None where it is
    written on the disk. `before` is what its new content was made of. Raises ToolError."""
    editor = find_editor(context.reach, context.session)
    if editor is None:
        return None
    expected = before.data if before is not None else None

    def prepare() -> EditorWrite | None:
        real = context.reach.files.target_path(path)
        if any(real.startswith(f"{each.path}/") for each in list_read_only(context)):
            return None  # which is refused
        writing = EditorWrite(editor, context.reach, path, data, key=context.key)
        return writing if writing.prepare(expected) else None

    return await anyio.to_thread.run_sync(prepare)


async def mark_uncertain(writing: EditorWrite, context: Context) -> None:
    """Label a file that an editor may yet write, after it has not said so in time."""
    marks = await load_marks(context)
    place = await anyio.to_thread.run_sync(marks.resolve_place, writing.real)
    label = join_labels((context.label, marks.marked_label(place)))
    if context.reach.shadow is not None and needs_mark(label):
        noted = (context.session, context.clock.now())
        with anyio.CancelScope(shield=True):
            await context.reach.shadow.commit(marks.set_mark(writing.real, label, noted))
