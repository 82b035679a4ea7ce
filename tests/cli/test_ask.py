"""`ask` as programs use it: pipes, exit codes, approvals from another terminal, and input that is
too much."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.testing.llm import FakeLLM
from deskhand.types.events import Recorded, TurnEnded

from .terminal import DESK

DESKHAND = [sys.executable, "-m", "deskhand"]
Done = subprocess.CompletedProcess[bytes]


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "DESKHAND_HOME": str(home)}


def run(
    home: Path, *args: str, stdin: bytes | None = None, command: Sequence[str] = DESKHAND
) -> Done:
    argv = [*command, *args]
    env = environment(home)
    if stdin is None:
        return subprocess.run(
            argv, capture_output=True, env=env, timeout=50, stdin=subprocess.DEVNULL, check=False
        )
    return subprocess.run(argv, capture_output=True, env=env, timeout=50, input=stdin, check=False)


def echo(home: Path, *args: str, stdin: bytes | None = None) -> Done:
    return run(home, "ask", "-m", "scripted/echo", *args, stdin=stdin)


def test_words_and_a_pipe(tmp_path: Path) -> None:
    done = echo(tmp_path, "two", "words", stdin=b"and \xff a pipe\n")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == "You said: two words\nand \N{REPLACEMENT CHARACTER} a pipe\n"


def test_events_as_json_lines(tmp_path: Path) -> None:
    done = echo(tmp_path, "--json", "hello")
    events = [msgspec.json.decode(line, type=Recorded) for line in done.stdout.splitlines()]
    assert [recorded.n for recorded in events] == list(range(1, len(events) + 1))
    assert isinstance(events[-1].event, TurnEnded)


def test_a_conversation_goes_on_and_is_exported(tmp_path: Path) -> None:
    echo(tmp_path, "-s", "talk", "one")
    echo(tmp_path, "-s", "talk", "two")
    assert b"talk\t" in run(tmp_path, "sessions", "list").stdout
    shown = run(tmp_path, "sessions", "show", "talk").stdout.decode()
    words = re.sub(r"\x1b\[[0-9;]*m", "", shown).split()
    assert " ".join(words) == "> one You said: one > two You said: two"
    exported = run(tmp_path, "sessions", "export", "talk").stdout.splitlines()
    assert [msgspec.json.decode(line, type=Recorded).n for line in exported] == list(
        range(1, len(exported) + 1)
    )
    verified = run(tmp_path, "audit", "verify")
    assert verified.returncode == 0
    assert b"1 conversation anchored" in verified.stdout


@pytest.mark.parametrize(
    ("args", "stdin", "code", "said"),
    [
        ((), None, 2, "say what to ask, such as: deskhand ask"),
        (("-m", "scripted/echo"), b" " * 10, 2, "say what to ask"),
        (
            ("-m", "scripted/echo"),
            b"x" * 10_000_000,
            2,
            "standard input is larger than 4 MB; save it to a file",
        ),
        (
            ("-m", "scripted/echo"),
            b"x" * 1_500_000,
            2,
            "at most 1,000,000 fit. Send it as a file, or in parts",
        ),
        (("hi",), None, 1, "no model is chosen. Choose one: `deskhand model use provider/name`."),
        (
            ("-m", "openai/gpt-5", "hi"),
            None,
            2,
            "There is no key for 'openai': set OPENAI_API_KEY in ",
        ),
        (("-m", "lmstudio/x", "hi"), None, 1, "Sorry, I could not answer: "),
    ],
    ids=["nothing", "blank", "10 MB", "1.5 MB", "no model", "no key", "unreachable"],
)
def test_what_cannot_be_asked(
    tmp_path: Path, args: tuple[str, ...], stdin: bytes | None, code: int, said: str
) -> None:
    (tmp_path / "deskhand.yaml").write_text(
        "providers: {lmstudio: {base_url: 'http://127.0.0.1:9/v1'}}"
    )
    done = run(tmp_path, "ask", *args, stdin=stdin)
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (code, b"")


def test_after_a_failure_the_conversation_goes_on(tmp_path: Path) -> None:
    assert run(tmp_path, "ask", "-s", "talk", "hi").returncode == 1
    assert echo(tmp_path, "-s", "talk", "still there?").stdout == b"You said: still there?\n"


def test_a_configuration_that_is_broken(tmp_path: Path) -> None:
    (tmp_path / "deskhand.yaml").write_text("defaults: [")
    done = run(tmp_path, "ask", "hi")
    assert done.returncode == 2
    assert b"is not valid YAML" in done.stderr
    assert b"deskhand.yaml" in done.stderr


async def test_a_wrong_key(tmp_path: Path) -> None:
    async with FakeLLM() as llm:
        key = "sk-very-secret-key"
        text = (
            f"defaults: {{models: [fake/m]}}\nproviders: {{fake: {{base_url: '{llm.url}', "
            f"key_env: FAKE_KEY}}}}\n"
        )
        (tmp_path / "deskhand.yaml").write_text(text)
        (tmp_path / ".env").write_text(f"FAKE_KEY={key}\n")
        (tmp_path / ".env").chmod(0o600)
        process = await in_time(tmp_path, "ask", "FAULT:401")
        assert process.returncode == 1
        assert b"refused the key" in process.stderr
        assert key.encode() not in process.stdout + process.stderr
        log = tmp_path / "logs" / "deskhand.log"
        assert key not in log.read_text()
        assert (await in_time(tmp_path, "ask", "hello")).returncode == 0
        assert llm.requests[-1].headers["authorization"] == f"Bearer {key}"


async def in_time(home: Path, *args: str) -> Done:
    """Run it while the server of this process answers."""
    done = await anyio.run_process(
        [*DESKHAND, *args], env=environment(home), check=False, stdin=subprocess.DEVNULL
    )
    return subprocess.CompletedProcess(args, done.returncode, done.stdout, done.stderr)


def test_an_approval_without_a_terminal(tmp_path: Path) -> None:
    """It prints the command and exits with 3; the answer is durable; whoever drives next goes on
    with it."""
    desk = (sys.executable, str(DESK), str(tmp_path))
    asked = run(tmp_path, "ask", "run make", command=desk)
    assert asked.returncode == 3
    command = re.search(r"deskhand approvals allow (ask_\w+)", asked.stderr.decode())
    assert command is not None
    assert 'It wants to run: shell {"command":"make"}' in asked.stderr.decode()
    listed = run(tmp_path, "approvals", "list").stdout.decode()
    assert command[0] in listed
    assert "default/terminal:test wants to run" in listed
    allowed = run(tmp_path, "approvals", "allow", command[1][:9])
    assert allowed.stdout.decode() == (
        'Allowed: shell {"command":"make"}\nDeskhand is not running. Continue with: '
        "deskhand --session test\n"
    )
    goes_on = run(tmp_path, "ask", "and then", command=desk)
    assert goes_on.returncode == 0
    assert "ran make" in run(tmp_path, "sessions", "export", "test").stdout.decode()
    assert run(tmp_path, "approvals", "list").stdout == b"No approval requests.\n"
    assert run(tmp_path, "approvals", "allow", command[1]).returncode == 1


def test_several_calls_from_another_terminal(tmp_path: Path) -> None:
    """They are allowed together, or asked about one by one; nothing is allowed for good by it."""
    desk = (sys.executable, str(DESK), str(tmp_path))
    asked = run(tmp_path, "ask", "tell ada bob", command=desk).stderr.decode()
    assert 'It wants to run 2 calls:\n  tell {"who":"ada"}\n  tell {"who":"bob"}\nbecause' in asked
    listed = run(tmp_path, "approvals", "list").stdout.decode()
    assert 'wants to run 2 calls\n    tell {"who":"ada"}\n    tell {"who":"bob"}\n' in listed
    command = re.search(r"deskhand approvals split (ask_\w+)", listed)
    assert command is not None
    always = run(tmp_path, "approvals", "allow", command[1], "--always")
    assert (
        always.returncode == 1
        and b"contains several calls; split it first with: deskhand approvals split"
        in always.stderr
    )
    split = run(tmp_path, "approvals", "split", command[1]).stdout.decode()
    assert split.startswith(
        'Split into one request per call: tell {"who":"ada"}\ntell {"who":"bob"}\n'
    )


def test_several_calls_one_by_one_while_it_waits(tmp_path: Path) -> None:
    argv = [sys.executable, str(DESK), str(tmp_path), "ask", "tell ada bob", "--wait"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment(tmp_path)
    ) as waits:
        assert waits.stderr is not None

        def asked() -> str:
            told = b""
            while b"approvals allow ask_" not in told:
                told = waits.stderr.readline() if waits.stderr is not None else b""
            return told.split()[-1].decode()

        assert run(tmp_path, "approvals", "split", asked()).returncode == 0
        first = asked()
        refused = run(tmp_path, "approvals", "split", first)
        assert refused.returncode == 1 and b"contains only one call" in refused.stderr
        assert run(tmp_path, "approvals", "allow", first).stdout == b'Allowed: tell {"who":"ada"}\n'
        assert run(tmp_path, "approvals", "deny", asked()).stdout == b'Denied: tell {"who":"bob"}\n'
        out, _ = waits.communicate(timeout=30)
        assert waits.returncode == 0 and b"(denied)" in out


def test_an_approval_from_another_terminal_while_it_waits(tmp_path: Path) -> None:
    argv = [sys.executable, str(DESK), str(tmp_path), "ask", "run make", "--wait"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment(tmp_path)
    ) as waits:
        assert waits.stderr is not None
        assert waits.stdout is not None
        told = b""
        while b"approvals allow ask_" not in told:
            told += waits.stderr.readline()
        denied = run(tmp_path, "approvals", "deny", told.split()[-1].decode())
        assert denied.stdout == b'Denied: shell {"command":"make"}\n'
        out, _ = waits.communicate(timeout=30)
        assert waits.returncode == 0
        assert b"(denied)" in out
