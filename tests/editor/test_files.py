"""Files are read and written by the editor that has them open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import acp
import anyio
import anyio.to_thread
import pytest
from acp.schema import (
    ClientCapabilities,
    FileSystemCapabilities,
    ReadTextFileResponse,
    WriteTextFileResponse,
)

from deskhand.config.home import Home
from deskhand.editor.file_server import EditorFileServer, OpenFolder
from deskhand.tools.editor_files import EditorError, EditorFiles, editor_socket

from .desk import Desk, Editor, say

Mode = Literal["good", "error", "nonsense", "half", "unsaved", "formats", "hangs", "dies"]


class FileEditor(Editor):
    """An editor with buffers, which does as its `mode` says when it is to write, and as `reading`
    says when it is to read."""

    def __init__(self) -> None:
        super().__init__()
        self.buffers: dict[str, str] = {}
        self.mode: Mode = "good"
        self.reading: Mode = "good"
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.agent: Any = None
        self.waits = anyio.Event()
        self.cancel: Any = None

    async def read_text_file(self, path: str, **_: Any) -> Any:
        self.reads.append(path)
        match self.reading:
            case "error":
                raise acp.RequestError.resource_not_found(path)
            case "nonsense":
                return {"content": ["no", "text"]}
            case _:
                # As editors have it: without what marks the encoding, and with plain ends of lines.
                saved = Path(path).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
                return ReadTextFileResponse(content=self.buffers.get(path, saved))

    async def write_text_file(
        self, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse | None:
        self.writes.append(path)
        file = Path(path)
        match self.mode:
            case "good":
                file.write_bytes(content.encode())
            case "formats":
                file.write_text(content.replace("'", '"'))
            case "unsaved":
                self.buffers[path] = content
                return None
            case "error":
                raise acp.RequestError.internal_error({"details": "read-only"})
            case "half" | "dies" | "hangs":
                file.write_text(content[: len(content) // 2])
                if self.mode == "dies":
                    await self.agent.close()
                if self.mode == "hangs":
                    self.waits.set()
                    await anyio.sleep(60)
                if self.mode == "half":
                    raise acp.RequestError.internal_error({"details": "the disk is full"})
        self.buffers.pop(path, None)
        return WriteTextFileResponse()


BOTH = FileSystemCapabilities(read_text_file=True, write_text_file=True)


@asynccontextmanager
async def opened(
    desk: Desk, project: Path, files: FileSystemCapabilities = BOTH
) -> AsyncIterator[tuple[FileEditor, Any]]:
    """An editor that has the project open, and its conversation, which may change files there."""
    editor = FileEditor()
    editor.choices = ["write"]
    async with desk.starting(editor, ClientCapabilities(fs=files)) as agent:
        editor.agent = agent
        session = (await agent.new_session(cwd=str(project), mcp_servers=[])).session_id

        async def prompt(text: str) -> Any:
            return await agent.prompt(session_id=session, prompt=say(text))

        editor.cancel = lambda: agent.cancel(session_id=session)
        yield editor, prompt


def last_result(desk: Desk) -> str:
    """What the model was told of its last call."""
    results = [each for each in desk.model.requests[-1].json["messages"] if each["role"] == "tool"]
    return str(results[-1]["content"])


def edit(desk: Desk, word: str, file: Path, old: str, new: str) -> None:
    desk.will_call(word, "edit_file", path=str(file), edits=[{"old": old, "new": new}])


async def test_what_is_not_saved_is_seen_and_kept(desk: Desk, project: Path) -> None:
    file = project / "main.py"
    file.write_bytes(b"\xef\xbb\xbfprint('one')\r\n")
    async with opened(desk, project) as (editor, prompt):
        editor.buffers[str(file)] = "print('one')\nprint('typed')\n"
        desk.will_call("look", "read_file", path=str(file))
        await prompt("look")
        assert "2 | print('typed')" in last_result(desk)
        assert file.read_bytes() == b"\xef\xbb\xbfprint('one')\r\n", "reading saves nothing"

        edit(desk, "mend", file, "typed", "mended")
        await prompt("mend")
        assert last_result(desk).startswith("ok, ")
        mended = b"\xef\xbb\xbfprint('one')\r\nprint('mended')\r\n"
        assert file.read_bytes() == mended and not editor.buffers
        assert editor.writes == [str(file), str(file)], "what was typed is saved first"

        desk.will_call("make", "write_file", path=f"{project}/new/part.py", content="x = 1\n")
        await prompt("make")
        assert (project / "new/part.py").read_text() == "x = 1\n"
        assert editor.writes[-1] == f"{project}/new/part.py"

        own = desk.home / "desk/agents/default/workspace/notes.txt"
        desk.will_call("note", "write_file", path="notes.txt", content="not of the project\n")
        await prompt("note")
        assert own.read_text() == "not of the project\n" and str(own) not in editor.writes
        await prompt("/undo 1")
        await prompt("/undo 1")
        assert not (project / "new/part.py").exists()
        await prompt("/undo 1")
        assert file.read_bytes() == b"\xef\xbb\xbfprint('one')\r\nprint('typed')\r\n"


async def test_an_editor_that_only_writes(desk: Desk, project: Path) -> None:
    file = project / "main.py"
    writes = FileSystemCapabilities(write_text_file=True)
    async with opened(desk, project, writes) as (editor, prompt):
        editor.reading = "error"
        edit(desk, "mend", file, "one", "two")
        await prompt("mend")
        assert file.read_text() == "print('two')\n"
        assert editor.writes == [str(file)] and not editor.reads


async def test_an_editor_that_only_reads(desk: Desk, project: Path) -> None:
    file = project / "main.py"
    reads = FileSystemCapabilities(read_text_file=True)
    async with opened(desk, project, reads) as (editor, prompt):
        editor.mode = "error"
        edit(desk, "mend", file, "one", "two")
        await prompt("mend")
        assert file.read_text() == "print('two')\n"
        assert editor.reads and not editor.writes


async def test_an_editor_that_does_it_badly(desk: Desk, project: Path) -> None:
    file = project / "main.py"
    whole = "print('one')\n" * 50
    file.write_text(whole)
    async with opened(desk, project) as (editor, prompt):
        editor.reading = "nonsense"
        desk.will_call("look", "read_file", path=str(file))
        await prompt("look")
        assert "an answer that cannot be read" in last_result(desk)
        editor.reading = "error"
        desk.will_call("again", "read_file", path=str(file))
        await prompt("again")
        assert "was not read: the editor says: Resource not found" in last_result(desk)
        editor.reading = "good"

        editor.mode = "error"
        desk.will_call("first", "write_file", path=str(file), content="x = 1\n" * 9)
        await prompt("first")
        assert "was not written: the editor says" in last_result(desk)
        assert file.read_text() == whole
        editor.mode = "half"
        desk.will_call("second", "write_file", path=str(file), content="x = 1\n" * 9)
        desk.will_call("third", "write_file", path=f"{project}/new.py", content="x = 1\n" * 9)
        await prompt("second")
        assert "was not written" in last_result(desk) and file.read_text() == whole
        await prompt("third")
        assert "was not written" in last_result(desk) and not (project / "new.py").exists()

        editor.mode = "hangs"
        desk.will_call("fourth", "write_file", path=str(file), content="x = 1\n" * 9)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt, "fourth")
            await editor.waits.wait()
            await editor.cancel()
        assert file.read_text() == whole

        editor.mode = "unsaved"
        desk.will_call("fifth", "write_file", path=str(file), content="x = 1\n" * 9)
        await prompt("fifth")
        assert last_result(desk).startswith("ok, ") and file.read_text() == "x = 1\n" * 9
        editor.buffers.clear()
        editor.mode = "formats"
        desk.will_call("sixth", "write_file", path=str(file), content="x = 'a'\n")
        await prompt("sixth")
        assert "the editor has formatted it" in last_result(desk)
        assert file.read_text() == 'x = "a"\n'
        editor.mode = "good"
        edit(desk, "seventh", file, '"a"', "'b'")
        await prompt("seventh")
        assert "has changed since you read it" in last_result(desk)


async def test_an_editor_that_dies_while_it_writes(desk: Desk, project: Path) -> None:
    file = project / "main.py"
    whole = "print('one')\n" * 50
    file.write_text(whole)
    with pytest.raises(ConnectionError):
        async with opened(desk, project) as (editor, prompt):
            editor.mode = "dies"
            desk.will_call("write", "write_file", path=str(file), content="x = 1\n" * 9)
            await prompt("write")
    assert file.read_text() == whole


async def test_while_a_command_runs_no_name_is_followed(desk: Desk, project: Path) -> None:
    """It could put a link there for a moment, and the editor would write outside."""
    file = project / "main.py"
    async with opened(desk, project) as (editor, prompt):
        desk.will_call("serve", "background_run", command="sleep 60")
        await prompt("serve")
        edit(desk, "mend", file, "one", "two")
        await prompt("mend")
        assert file.read_text() == "print('two')\n" and not editor.writes
        editor.buffers[str(file)] = "print('typed')\n"
        edit(desk, "again", file, "two", "three")
        await prompt("again")
        assert "has unsaved changes in the editor, and a command is running" in last_result(desk)
        assert file.read_text() == "print('two')\n"


async def test_another_process_drives(desk: Desk, project: Path) -> None:
    """Its tools reach the editor all the same."""
    async with desk.editor(), opened(desk, project) as (editor, prompt):
        file = project / "main.py"
        editor.buffers[str(file)] = "print('typed')\n"
        edit(desk, "mend", file, "typed", "mended")
        await prompt("mend")
        assert file.read_text() == "print('mended')\n"
        assert editor.writes == [str(file), str(file)]


async def test_an_editor_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    home = Home(tmp_path / "desk")
    server = EditorFileServer(home, answer_s=0.2)
    silent = FileEditor()
    silent.mode = "hangs"
    server.set_client(silent)
    server.set_capabilities(ClientCapabilities(fs=BOTH))
    folder = tmp_path / "project"
    folder.mkdir()
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.run)
        await server.open(OpenFolder("s", "default/terminal:s", str(folder)))
        files = EditorFiles(editor_socket(home.editors, "default/terminal:s"))
        with pytest.raises(EditorError, match=r"did not answer within 0\.2 s"):
            await anyio.to_thread.run_sync(files.write, str(folder / "a"), "text")
        assert await anyio.to_thread.run_sync(files.read, str(tmp_path / "outside")) is None
        server.close("s")
        await anyio.wait_all_tasks_blocked()
        assert await anyio.to_thread.run_sync(files.read, str(folder / "a")) is None
        tasks.cancel_scope.cancel()
    assert not list(home.editors.iterdir())
