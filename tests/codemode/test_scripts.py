"""Scripts that call tools: each call goes the way of a model's, and a crash repeats nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from deskhand.runtime.app import App
from deskhand.sandbox.choose import Proven, open_sandbox
from deskhand.store.queries import subagents_of
from deskhand.testing.crash import Crash, Fuse, fused
from deskhand.testing.temporary_home import (
    TemporaryHome,
    at_rest,
    processes_with,
    results,
    wait_for,
)
from deskhand.types.events import ApprovalAsked, ModelReplied, TurnEnded
from deskhand.types.subagents import SubagentTask

PARENT = "default/terminal:1"


def task_of(app: App) -> SubagentTask:
    return subagents_of(app.store, PARENT, 10)[0]


async def calls_of(app: App) -> list[str]:
    made = [each.event for each in await app.store.events(task_of(app).session)]
    replies = [each for each in made if isinstance(each, ModelReplied)]
    return [call.name for each in replies for call in each.message.calls]


async def test_a_script_calls_tools_and_prints(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        script = (
            "for n in range(3):\n"
            "    write_file(f'{n}.txt', 'x' * (n + 1))\n"
            "print(sum(len(read_file(f'{n}.txt')) > 0 for n in range(3)))\n"
        )
        assert await desk.call(app, "run_script", script=script) == "3"
        assert len(desk.model.requests) == 2, "the model was asked twice, for six calls"
        folder = app.settings.home.workspace("default")
        assert (folder / "2.txt").read_text() == "xxx"
        assert await calls_of(app) == ["write_file"] * 3 + ["read_file"] * 3


async def test_by_the_names_of_other_systems(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        assert await desk.call(app, "run_program", program="print(1)") == "1"
        assert await desk.call(app, "execute_code", code="print(2)") == "2"


async def test_tools_by_name_and_several_at_once(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        script = (
            "call('kv_set', key='a', value='1')\n"
            "found = call_all([('kv_get', {'key': 'a'}), ('list_files', {})])\n"
            "print(len(found), '1' in found[0])\n"
        )
        assert await desk.call(app, "run_script", script=script) == "2 True"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("read_file('none.txt')", "[the script failed: line 1: ToolError: "),
        ("print('so far')\n1 / 0", "so far\n[the script failed: line 2: ZeroDivisionError: "),
        ("call('no_such_tool')", "ToolError: there is no tool 'no_such_tool'"),
        ("write_file('a', 'x', path='b')", "TypeError: write_file was given path twice"),
        ("try:\n  read_file('none')\nexcept ToolError as e:\n  print('caught')", "caught"),
        ("call('run_script', script='print(1)')", "there is no tool 'run_script'"),
        ("x = 1", "[the script printed nothing; it made 0 calls]"),
        ("def (", "[the script failed: line 1: SyntaxError: "),
        ("import os; print(os.path.exists('/root/.ssh'), os.listdir('.'))", "False ['calls']"),
        ("open('x', 'w')", "[the script failed: line 1: OSError: "),
        ("call('kv_set', key='a', value=float('nan'))", "ValueError: "),
        ("call(3)", "TypeError: a call has the name of a tool"),
        ("call_all([('kv_get', {'key': 'a'})] * 101)", "at most 100 calls can be made at once"),
        ("raise Exception('x' * 3_000_000)", "xxx\n[cut: it was longer]"),
        (
            "for n in range(9): call('kv_get', key='a')",
            "it has made the call of kv_get with the same result 4 times",
        ),
        (
            "for n in range(9): call('kv_get', key='ab'[n % 2])",
            "kv_get and kv_get have taken turns with the same results; before that it made 7 calls",
        ),
        (
            "import socket; socket.create_connection(('1.1.1.1', 53), 2)",
            "[the script failed: line 1: ",
        ),
    ],
)
async def test_what_comes_back(tmp_path: Path, script: str, told: str) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        assert told in await desk.call(app, "run_script", script=script)


async def test_what_it_did_is_undone_with_the_turn(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        script = (
            "write_file('a.txt', 'x')\n"
            "call('kv_set', key='k', value='v')\n"
            "call('manage_tasks', action='create', title='t')\n"
        )
        await desk.call(app, "run_script", script=script)
        folder = app.settings.home.workspace("default")
        assert (folder / "a.txt").exists()
        await desk.say(app, "/undo")
        await wait_for(partial(_is_gone, folder / "a.txt"))
        assert "deleted" in str(await app.store.query("task_of", (PARENT,)))
        assert await desk.call(app, "kv_get", key="k") != "v"


async def _is_gone(path: Path) -> bool:
    return not path.exists()


async def test_what_needs_a_yes_is_asked_where_people_are(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path, policy=[{"tool": "write_file", "verdict": "ask"}])
    async with desk.running() as app:
        script = "print(write_file('a.txt', 'x'))"
        await desk.say(app, f'[["run_script", {{"script": "{script}"}}]]')
        await wait_for(partial(_asks, app))
        await desk.say(app, "yes")
        await wait_for(partial(at_rest, app, PARENT))
        (said,) = await results(app, PARENT)
        assert "failed" not in said
        assert (app.settings.home.workspace("default") / "a.txt").exists()


async def _asks(app: App) -> bool:
    tasks = subagents_of(app.store, PARENT, 10)
    log = await app.store.events(tasks[0].session) if tasks else []
    return any(isinstance(each.event, ApprovalAsked) for each in log)


async def test_a_stop_kills_it(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        script = "write_file('a.txt', 'x')\\nwhile True: pass"
        await desk.say(app, f'[["run_script", {{"script": "{script}"}}]]')
        await wait_for(partial(_is_there, app.settings.home.workspace("default") / "a.txt"))
        await wait_for(partial(_has_process, True))
        await desk.say(app, "/stop")
        await wait_for(partial(_has_process, False))
        await wait_for(partial(_is_stopped, app))


async def _is_there(path: Path) -> bool:
    return path.exists()


async def _is_stopped(app: App) -> bool:
    return task_of(app).state == "stopped"


async def _has_process(wanted: bool) -> bool:
    return bool(processes_with("codemode.inside.main")) == wanted


async def test_only_the_tool_runs_scripts(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        told = await desk.call(app, "spawn_agent", task="print(1)", agent="program")
        assert "there is no agent 'program'" in told
        await desk.call(app, "run_script", script="print(1)")
        again = await desk.call(app, "subagents", action="send", id=task_of(app).id, task="x")
        assert "a script takes no further tasks" in again


async def test_no_tokens_are_counted(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path, budgets={"all": {"tokens_per_day": 20_000}})
    async with desk.running() as app:
        script = "for n in range(60): call('kv_set', key=str(n), value='1')\nprint('kept')"
        assert await desk.call(app, "run_script", script=script) == "kept"


async def test_too_many_calls_end_with_what_was_done(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        script = (
            "print('so far')\n"
            "for n in range(4): call_all([('kv_get', {'key': f'{n}.{k}'}) for k in range(90)])\n"
        )
        told = await desk.call(app, "run_script", script=script)
        assert told.startswith("so far\n[the script failed: it may make at most 300 calls; ")


async def test_a_model_that_is_chosen_there_takes_no_place(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        await desk.say(app, "/model scripted/y")
        assert await desk.call(app, "run_script", script="print(call('kv_list') != '')") == "True"


async def test_a_set_comes_in_the_same_order_again(tmp_path: Path) -> None:
    """So does chance: a script that runs again asks for the same."""
    script = (
        "import random\n"
        "print([n for n in {'a', 'b', 'c', 'd', 'e', 'f'}], random.random(), hash('x'))"
    )
    said = set()
    for n in range(2):
        desk = TemporaryHome(tmp_path / str(n))
        async with desk.running() as app:
            said.add(await desk.call(app, "run_script", script=script))
    assert len(said) == 1


# Crashes

SCRIPT = (
    "print([shell(f'echo {n} >> done.txt') for n in range(3)], call('kv_set', key='a', value='1'))"
)


async def _life(desk: TemporaryHome, fuse: Fuse) -> bool:
    crashed = False
    try:
        async with desk.running(store=fused(fuse)) as app:
            await desk.say(app, f'[["run_script", {{"script": "{SCRIPT}"}}]]', id_="once")
            await wait_for(partial(_is_told, app))
    except* Crash:
        crashed = True
    return crashed


async def _is_told(app: App) -> bool:
    log = await app.store.events(PARENT)
    return any(isinstance(each.event, TurnEnded) for each in log)


async def through(home: Path, at: int, proven: Proven) -> bool:
    """Crash at this boundary, and come back. Returns whether it crashed."""
    desk = TemporaryHome(home, proven)
    crashed = await _life(desk, Fuse(at))
    if crashed:
        assert not await _life(desk, Fuse(0))
    async with desk.running() as app:
        (said,) = await results(app, PARENT)
        done = app.settings.home.workspace("default") / "done.txt"
        lines = done.read_text().split() if done.exists() else []
        assert len(lines) == len(set(lines)), f"{lines}: done twice"
        if "failed" in said:
            assert "it may or may not have happened" in said or "interrupted" in said, said
        else:
            assert lines == ["0", "1", "2"], said
    return crashed


@pytest.mark.timeout(180)
async def test_every_boundary(tmp_path: Path) -> None:
    proven = await open_sandbox()
    crashes = missed = at = 0
    while missed < 3:
        at += 1
        crashed = await through(tmp_path / str(at), at, proven)
        crashes += crashed
        missed = 0 if crashed else missed + 1
    assert crashes >= 30
