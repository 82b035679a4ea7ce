"""The harness of the everyday tasks, against a real `deskhand serve` with a fake model behind
HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.testing.everyday import unseen
from deskhand.testing.everyday.measure import TaskResult, summary
from deskhand.testing.everyday.processes import IDLE_S, ProcessWatch
from deskhand.testing.everyday.run import chosen, measure, run
from deskhand.testing.everyday.served import UNKNOWING, Setup, link_cache
from deskhand.testing.everyday.task import After, EverydayTask
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall

FILES: dict[str, str | bytes] = {"a.txt": "one\n", "b.txt": "two\n"}


def task(
    check: Callable[[After], bool], *says: str, agrees: bool = False, kind: str = "write"
) -> EverydayTask:
    return EverydayTask("x-1", kind, FILES, says, check, agrees=agrees)


def setup_of(
    fake: FakeLLM, cache: Path, turn_s: float = 60.0, policy: tuple[dict[str, str], ...] = ()
) -> Setup:
    config = {"providers": {"fake": {"base_url": fake.url}}, "policy": list(policy)}
    defaults: dict[str, object] = {
        "profile": "full",
        "deferred_tools": ["none"],
    }  # all that there are are offered at once
    return Setup(model="fake/x", cache=cache, config=config, defaults=defaults, turn_s=turn_s)


def calls(name: str, **arguments: object) -> tuple[FakeCall, ...]:
    return (FakeCall(name, json.dumps(arguments)),)


async def test_turns_are_followed_and_what_stays_is_seen(tmp_path: Path) -> None:
    seen: list[After] = []

    def check(after: After) -> bool:
        seen.append(after)
        return after.text("c.txt") == "three\n" and after.one_time(
            after.began_at + 1200, 60, "cake"
        )

    at = calls(
        "cron",
        mode="add",
        schedule_mode="at",
        schedule_expr="in 20m",
        message="the cake",
        deliver=True,
    )
    async with FakeLLM() as fake:
        fake.script(
            Behaviour(
                match="write c", times=1, calls=calls("write_file", path="c.txt", content="three\n")
            ),
            Behaviour(
                match="write c",
                text="It is written.",
                input_tokens=100,
                cached_tokens=40,
                output_tokens=7,
            ),
            Behaviour(match="remind me", times=1, calls=at),
            Behaviour(match="remind me", text="I will."),
            Behaviour(match="ask me", times=1, calls=calls("ask_user", question="Which one?")),
            Behaviour(match="ask me", text="Then I leave it."),
            Behaviour(
                match="keep in mind",
                times=1,
                calls=calls("save_memory", content="The code is 5518."),
            ),
            Behaviour(match="keep in mind", text="Kept."),
        )
        says = (
            "write c",
            "remind me in 20 minutes of the cake",
            "ask me",
            "keep in mind that the code is 5518",
        )
        result = await measure(task(check, *says, kind="memory"), setup_of(fake, tmp_path))
        answered = [asked for asked in fake.requests if UNKNOWING.encode() in bytes(asked.body)]

    (after,) = seen
    assert after.replies == ("It is written.", "I will.", "Then I leave it.", "Kept.")
    assert after.asked == ("Which one?",)
    assert answered
    assert after.remembers("5518")
    assert after.added == {"c.txt"} and after.same()
    assert after.stage_text(0, "c.txt") == "three\n"
    assert after.jobs[0].times(after.began_at, 3) == [after.jobs[0].next_at]
    assert result.solved and result.ended == ("done",) * 4
    assert (result.questions, result.approvals, result.lost, result.false_done) == (1, 0, 0, False)
    assert result.model_calls == 8
    assert result.tokens_in == 800 and result.tokens_new == 760 and result.tokens_out == 7 * 12 + 7
    assert result.first_s is not None and 0 < result.first_s < result.seconds


@pytest.mark.parametrize("agrees", [True, False])
async def test_the_person_agrees_only_to_what_they_want(tmp_path: Path, agrees: bool) -> None:
    async with FakeLLM() as fake:
        fake.script(
            Behaviour(
                match="write a", times=1, calls=calls("write_file", path="a.txt", content="new\n")
            ),
            Behaviour(match="write a", text="Done."),
        )
        setup = setup_of(fake, tmp_path, policy=({"verdict": "ask", "tool": "write_file"},))
        told = task(lambda after: after.text("a.txt") == "never", "write a", agrees=agrees)
        result = await measure(told, setup)

    assert result.approvals == 1
    assert result.lost == int(agrees)
    assert not result.solved and result.false_done
    assert result.detail is not None
    assert result.detail.changed == ({"a.txt": "new\n"} if agrees else {})


async def test_a_turn_that_hangs_is_cut_off(tmp_path: Path) -> None:
    async with FakeLLM() as fake:
        fake.script(Behaviour(match="wait", named="hang"))
        result = await measure(
            task(lambda after: True, "wait", "go on"), setup_of(fake, tmp_path, turn_s=2.0)
        )
    assert not result.solved
    assert result.ended == ("too long",)
    assert 2.0 <= result.seconds < 30


async def test_what_does_not_start_is_told(tmp_path: Path) -> None:
    setup = Setup(model="scripted/echo", cache=tmp_path, python="false")
    result = await measure(task(lambda after: True, "hello"), setup)
    assert not result.solved and "deskhand tokens create" in result.problem


async def test_of_the_unseen_half_no_word_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    setup = Setup(model="scripted/echo", cache=tmp_path)
    tasks = chosen("unseen", [unseen.TASKS[0].id])
    results = await run("unseen", tasks, setup, out, detailed=False)
    shown = capsys.readouterr().out + out.read_text() + summary(results)
    assert tasks[0].id in shown
    for words in (*tasks[0].says, *tasks[0].files, "You said"):
        assert words not in shown


def test_the_weights_are_shared_and_what_an_engine_keeps_is_not(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    place = tmp_path / "place"
    (usual / "models" / "slots").mkdir(parents=True)
    (usual / "models" / "x.gguf").write_bytes(b"weights")
    (usual / "voices").mkdir()
    link_cache(usual, place)
    assert (place / "models" / "x.gguf").read_bytes() == b"weights"
    assert (place / "voices").is_dir()
    assert not (place / "models" / "slots").exists()
    link_cache(tmp_path / "none", tmp_path / "empty")
    assert list((tmp_path / "empty" / "models").iterdir()) == []


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no task 'nothing-1'"):
        chosen("tuned", ["nothing-1"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_server(tmp_path: Path, number: signal.Signals) -> None:
    argv = [sys.executable, "-m", "deskhand.testing.everyday.run", "--model", "scripted/echo"]
    argv += ["--out", str(tmp_path / "out.json")]
    env = os.environ | {"TMPDIR": str(tmp_path)}  # who is killed leaves its folders behind
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (servers := _serving_below(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert servers
        process.send_signal(number)
        shown, _ = process.communicate(timeout=60)
    killed = number == signal.SIGKILL
    assert process.returncode == (-number if killed else 0)
    assert ("solved " in shown) != killed
    while killed and any(map(_lives, servers)) and time.monotonic() < deadline + 60:
        time.sleep(0.05)
    assert not any(map(_lives, servers))


def test_the_table_counts() -> None:
    done = TaskResult(
        id="find-1",
        kind="find",
        solved=True,
        seconds=2.0,
        first_s=0.5,
        tokens_new=10,
        tokens_in=30,
        tokens_out=5,
        model_calls=1,
        questions=0,
        approvals=1,
        false_done=False,
        lost=0,
        ended=("done",),
    )
    failed = msgspec.structs.replace(
        done, id="find-2", solved=False, seconds=4.0, false_done=True, lost=2
    )
    table = summary([done, failed])
    rows = dict(line.rsplit(maxsplit=1) for line in table.splitlines() if line)
    assert rows["find"] == "1/2"
    assert rows["seconds a task, median"] == "3.0"
    assert rows["tokens in and out, sum"] == "70"
    assert rows["approvals asked"] == "2"
    assert rows["false done"] == "1"
    assert rows["files lost"] == "2"
    assert "claimed; lost 2" in failed.line() and "claimed" not in done.line()


def _lives(pid: int) -> bool:
    """Whether this process is there, and is more than what is left of one."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _serving_below(pid: int) -> list[int]:
    """The processes below this one that serve."""
    found: list[int] = []
    for task_of in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task_of.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += _serving_below(child)
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [child] if b"serve" in words and b"setpriv" not in words else []
    return found


async def test_idle_is_who_neither_works_nor_would_like_to(tmp_path: Path) -> None:
    busy = (
        "import os, threading, time\nos.nice(19)\nend = time.monotonic() + 4\nwhile "
        "time.monotonic() < end: pass\n"
    )
    script = tmp_path / "busy.py"
    script.write_text(f"{busy}time.sleep(60)\n")
    began = time.monotonic()
    async with await anyio.open_process([sys.executable, script]) as process:
        with anyio.fail_after(60):
            await ProcessWatch(process.pid).until_idle()
        took_s = time.monotonic() - began
        process.kill()
    assert 4 + IDLE_S - 0.6 <= took_s < 30
