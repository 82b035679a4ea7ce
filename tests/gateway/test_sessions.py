"""Sessions at a terminal that stay open between calls: the tool `process`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import anyio

from deskhand.runtime.app import App
from deskhand.testing.temporary_home import TemporaryHome, processes_with, rows, wait_for
from deskhand.tools.process import encode_keys, strip_terminal_codes
from deskhand.types.process import Process


async def test_a_shell_that_stays(tmp_path: Path) -> None:
    """Started, written to, polled, read back, killed: with our names, and those that others use."""
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        said = await desk.call(
            app, "process", action="start", command="bash --norc", name="sh", columns=120, rows=40
        )
        id_ = said.split()[1]
        assert said.startswith(f"Session {id_} started.\n") and "bash" in said
        said = await desk.call(
            app, "process", action="write", id=id_, input="X=42; stty size; echo $TERM\n"
        )
        while "xterm-256color\n" not in said:
            said += await desk.call(app, "process", action="poll", id=id_)
        assert "40 120\nxterm-256color\n" in said and "\x1b" not in said
        said = await desk.call(
            app, "process", action="input", session_id=id_, input="echo $((X + 1))\n"
        )
        while "\n43\n" not in said:
            said += await desk.call(app, "process", action="poll", id=id_)
        assert "\n43\n" in said and "40 120" not in said, "what was told is not told again"
        said = await desk.call(
            app, "process", action="write", id=id_, input="sh -c 'echo on $((1+1)); sleep 60'\n"
        )
        while "on 2\n" not in said:
            said = await desk.call(app, "process", action="poll", id=id_)
        assert "^C" in await desk.call(app, "process", action="write", id=id_, keys=["ctrl+c"])
        assert (
            await desk.call(app, "process", action="poll", pid=id_, wait_s=0) == "[no new output]"
        )
        said = await desk.call(
            app, "process", action="write", id=id_, input="seq 10000\n", wait_s=2
        )
        while "\n10000\n" not in said:
            said = await desk.call(app, "process", action="poll", id=id_)
        last = await desk.call(app, "process", action="log", id=id_, lines=3)
        assert "9999\n10000\n" in last and "9990\n" not in last
        first = await desk.call(app, "process", action="log", id=id_, offset=0)
        assert "40 120" in first and "go on with offset=24000]" in first
        assert f"{id_} (sh) running" in await desk.call(app, "process", action="list")
        assert (
            await desk.call(app, "process", action="list", filter="no such")
            == "No sessions are running."
        )
        theirs = await desk.call(
            app, "process", chat="2", action="write", id=id_, input="echo stolen\n"
        )
        assert theirs == (
            f"there is no process '{id_}' here; nothing of this conversation runs. "
            "What ran before a restart was ended by it"
        )
        said = await desk.call(app, "process", action="kill", id=id_)
        assert said == f"{id_} has ended: stopped by the agent"
        assert "start it again" in await desk.call(
            app, "process", action="write", id=id_, input="x\n"
        )
        assert "10000" in await desk.call(app, "process", action="log", id=id_)
        assert (
            await desk.call(app, "process", action="clear")
            == "Deleted the output of 1 ended sessions."
        )
        assert "there is no process" in await desk.call(app, "process", action="log", id=id_)


async def test_its_end_is_told_when_it_is_polled(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        said = await desk.call(
            app, "process", action="spawn", cmd="read line; echo got $line; exit 4"
        )
        id_ = said.split()[1]
        assert "got it\n" in await desk.call(
            app, "process", action="write", id=id_, input="it\n", wait_s=20
        )
        said = await desk.call(app, "process", action="poll", id=id_, wait_s=20)
        assert said.endswith("[ended: exit code: 4]")
        assert [(each.state, each.code) for each in await rows(app)] == [("completed", 4)]


async def test_a_session_that_nobody_uses_ends(tmp_path: Path) -> None:
    mark = f"75{os.getpid()}"
    desk = TemporaryHome(tmp_path, processes={"idle_s": 1})
    async with desk.running() as app:
        await desk.call(app, "process", action="start", command=f"sleep {mark}", wait_s=0)
        ended = await wait_for(partial(_over, app))
        assert "in which nothing was said or asked" in ended.detail and not processes_with(mark)


async def _over(app: App) -> Process | None:
    return next((each for each in await rows(app) if not each.is_live), None)


async def test_nothing_outlives_a_service_that_ends(tmp_path: Path) -> None:
    mark = f"74{os.getpid()}"
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        await desk.call(app, "process", action="start", command=f"sleep {mark}1", wait_s=0)
        await desk.call(app, "background_run", command=f"sleep {mark}2")
        await wait_for(partial(_run, mark, 2))
    assert not processes_with(mark)


async def _run(mark: str, number: int) -> bool:
    await anyio.sleep(0)
    return len(set(processes_with(mark))) >= number


async def test_what_it_changes_in_protected_files_is_put_back(tmp_path: Path) -> None:
    """While it runs, too: what steers the agent is read at its next step."""
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        rules = desk.settings.home.workspace("default") / "RULES.md"
        rules.write_text("Be kind.")
        said = await desk.call(app, "process", action="start", command="bash --norc")
        id_ = said.split()[1]
        evil = "echo evil > RULES.md; echo $((1 + 1))done\n"
        told = await desk.call(app, "process", action="write", id=id_, input=evil)
        await wait_for(partial(_reads, rules, "Be kind."))
        told += await desk.call(app, "process", action="poll", id=id_, wait_s=0)
        assert "2done" in told and "RULES.md is protected" in told


async def _reads(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


def test_what_a_terminal_shows() -> None:
    assert (
        strip_terminal_codes(
            "\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\x07> ls\r\n 10%\r 50%\r100%\r\ndone\x07"
        )
        == "red\n> ls\n100%\ndone"
    )


def test_what_a_keyboard_sends() -> None:
    assert encode_keys("ls\n", []) == b"ls\r"
    assert encode_keys("", ["ctrl+c", "C-d", "Up", "enter"]) == b"\x03\x04\x1b[A\r"
