"""What tools do with an editor's files, whatever the editor does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio.to_thread
import msgspec
import pytest

from deskhand.store.blobs import Blobs
from deskhand.tools.editor_files import (
    EditorAnswer,
    EditorError,
    EditorFiles,
    EditorRequest,
    editor_socket,
)
from deskhand.tools.files import edit_file, make_rewrite, plan_rewrite, read_file, write_file
from deskhand.tools.label_marks import encode_path, load_marks
from deskhand.tools.queries import set_label
from deskhand.tools.watched_folder import find_watched_folder, make_by
from deskhand.types.errors import ToolError
from deskhand.types.labels import Label
from deskhand.types.messages import Text
from deskhand.types.unix_sockets import short_socket_path
from deskhand.workspace.scope import Outward, SandboxProvider, ToolScopes

from .conftest import Hands

Answering = Callable[[EditorRequest], EditorAnswer | bytes | None]


@contextmanager
def editor(path: Path, answer: Answering) -> Iterator[None]:
    """An editor at this socket, which answers so; None is no answer at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    silent: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        with short_socket_path(path) as short:
            listening.bind(short)
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection.makefile("rb") as lines:
                    said = answer(msgspec.json.decode(lines.readline(), type=EditorRequest))
                if said is None:
                    silent.append(connection)
                    continue
                whole = said if isinstance(said, bytes) else msgspec.json.encode(said) + b"\n"
                connection.sendall(whole)
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for each in silent:
                each.close()
    path.unlink()


@pytest.fixture
def socket_path(tmp_path: Path, hands: Hands, room: SandboxProvider) -> Path:
    """Where an editor is looked for."""
    folder = tmp_path / "editors"
    blobs = Blobs(tmp_path / "home" / "blobs")
    hands.reaches.close()
    hands.reaches = ToolScopes(hands.store, blobs, room, outward=Outward(editors=folder))
    return editor_socket(folder, hands.session)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "did not answer within 0.2 s"),
        (b"", "has gone"),
        (b"half a li", "has gone"),
        (b"no JSON\n", "has gone"),
        (b'{"content": 7}\n', "has gone"),
        (EditorAnswer(error="it is full"), "it is full"),
    ],
)
def test_every_answer_comes_to_an_end(
    tmp_path: Path, answer: EditorAnswer | bytes | None, said: str
) -> None:
    path = tmp_path / "socket"
    with editor(path, lambda request: answer), pytest.raises(EditorError, match=said):
        EditorFiles(path, limit_s=0.2).write("/x", "text")
    assert EditorFiles(path).read("/x") is None, "where none is, the disk is read"


async def test_a_socket_that_nobody_serves_is_passed_over(hands: Hands, socket_path: Path) -> None:
    socket_path.parent.mkdir()
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left,
        short_socket_path(socket_path) as short,
    ):
        left.bind(short)
    hands.write("f.txt", b"one\n")
    assert await hands(read_file, path="f.txt") == "1 | one"
    await hands(write_file, path="f.txt", content="two\n")
    assert (hands.folder / "f.txt").read_text() == "two\n"


async def test_what_may_yet_be_written_has_its_label(hands: Hands, socket_path: Path) -> None:
    """An editor that says that it failed, or nothing, may write the file a moment later."""
    outside = Label("untrusted", None, "https://evil.example/")
    file = hands.write("f.txt", b"one\n")
    failing = EditorAnswer(error="it failed")

    def answer(request: EditorRequest) -> EditorAnswer:
        return EditorAnswer("one\n") if request.content is None else failing

    with editor(socket_path, answer):
        hands.label = outside
        with pytest.raises(ToolError, match="was not written: it failed"):
            await hands(write_file, path="f.txt", content="two\n")
        marks = await load_marks(await hands.context())
        assert marks.marked_label(marks.resolve_place(str(file))).integrity == "untrusted"
        hands.label = Label("owner")
        with pytest.raises(ToolError, match="was not written"):
            await hands(write_file, path="f.txt", content="three\n")
        marks = await load_marks(await hands.context())
        assert marks.marked_label(marks.resolve_place(str(file))).integrity == "untrusted"
    assert file.read_text() == "one\n"


async def test_what_a_person_types_meanwhile_is_not_lost(hands: Hands, socket_path: Path) -> None:
    file = hands.write("f.txt", b"one\n")
    texts = ["one\n", "one\ntyped\n"]

    def answer(request: EditorRequest) -> EditorAnswer:
        assert request.content is None, "nothing is written"
        return EditorAnswer(texts.pop(0))

    with (
        editor(socket_path, answer),
        pytest.raises(ToolError, match="was changed in the editor just now; read it again first"),
    ):
        await hands(edit_file, path="f.txt", edits=[{"old": "one", "new": "two"}])
    assert file.read_text() == "one\n"


async def test_a_command_that_starts_meanwhile_ends_the_editors_part(
    hands: Hands, socket_path: Path
) -> None:
    """It could put a link there before the editor writes for the second time."""
    file = hands.write("f.txt", b"one\n")
    context = await hands.context()
    where, _ = find_watched_folder(context.reach)
    doer = msgspec.structs.replace(make_by(context, "shell", "sleep 9"), key="another")
    written: list[str] = []

    def answer(request: EditorRequest) -> EditorAnswer:
        if request.content is None:
            return EditorAnswer("one\ntyped\n")
        written.append(request.content)
        file.write_text(request.content)
        where.register(doer)
        return EditorAnswer()

    with editor(socket_path, answer):
        await hands(edit_file, path="f.txt", edits=[{"old": "typed", "new": "mended"}])
    assert written == ["one\ntyped\n"], "what was typed is saved, before the command began"
    assert file.read_text() == "one\nmended\n"


async def test_a_command_that_is_over_when_the_editor_answers(
    hands: Hands, socket_path: Path
) -> None:
    """It could have put a link there for a moment, and left nothing that tells."""
    hands.write("f.txt", b"one\n")
    context = await hands.context()
    where, _ = find_watched_folder(context.reach)
    doer = msgspec.structs.replace(make_by(context, "shell", "ln"), key="another")

    def answer(request: EditorRequest) -> EditorAnswer:
        where.release(where.register(doer), now=1.0)
        return EditorAnswer("of another file\n")

    with (
        editor(socket_path, answer),
        pytest.raises(ToolError, match=r"has unsaved changes in the editor, and a command"),
    ):
        await hands(read_file, path="f.txt")


async def test_folders_that_are_made_for_a_file_go_with_it(hands: Hands, socket_path: Path) -> None:
    """They are undone where the editor writes the file as where it does not."""

    async def make_file(folder: str) -> list[object]:
        done = await hands.done(write_file, path=f"{folder}/deep/f.txt", content="one\n")
        return [each.args[1] for each in done.changes if each.statement == "effect_item_add"]

    assert await make_file("one") == [b"one", b"one/deep", b"one/deep/f.txt"]
    with editor(socket_path, lambda request: EditorAnswer()):
        assert await make_file("two") == [b"two", b"two/deep", b"two/deep/f.txt"]


async def test_the_rules_of_the_workspace_come_first(hands: Hands, socket_path: Path) -> None:
    asked: list[str] = []

    def answer(request: EditorRequest) -> EditorAnswer:
        asked.append(request.path)
        return EditorAnswer("secret\n")

    (hands.folder / "link").symlink_to("/etc/hostname")
    with editor(socket_path, answer):
        for path in ("/etc/hostname", "link", "../x"):
            with pytest.raises(ToolError, match="outside the workspace"):
                await hands(read_file, path=path)
            with pytest.raises(ToolError, match="outside the workspace"):
                await hands(write_file, path=path, content="x")
        with pytest.raises(ToolError, match="protected"):
            await hands(write_file, path=".git/hooks/pre-commit", content="x")
        hands.write("data.bin", b"\0\1")
        with pytest.raises(ToolError, match="is not a text file"):
            await hands(read_file, path="data.bin")
    assert not asked


async def test_unsaved_text_has_the_label_of_its_file(hands: Hands, socket_path: Path) -> None:
    outside = Label("untrusted", None, "https://evil.example/")
    file = hands.write("f.txt", b"one\n")
    await hands.store.change((set_label(encode_path(str(file)), outside, "s", 1.0),))
    with editor(socket_path, lambda request: EditorAnswer("one\ntwo\n")):
        done = await hands.done(read_file, path="f.txt")
    (part,) = done.parts
    assert part == Text("1 | one\n2 | two", outside)


async def test_what_is_asked_about_is_shown_as_the_editor_has_it(
    hands: Hands, socket_path: Path
) -> None:
    hands.write("f.txt", b"one\n")
    reach = (await hands.context()).reach
    edits = b'{"path": "f.txt", "edits": [{"old": "two", "new": "three"}]}'
    call = ("edit_file", msgspec.Raw(edits), reach, hands.session)
    with editor(socket_path, lambda request: EditorAnswer("one\ntwo\n")):
        plan = await anyio.to_thread.run_sync(plan_rewrite, *call)
    assert plan is not None
    rewrite = make_rewrite(plan)
    assert (rewrite.before, rewrite.after) == (b"one\ntwo\n", b"one\nthree\n")
