"""A machine on which nothing can contain a command: it is refused in words, and the doctor says
so."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec
import pytest

from deskhand.sandbox.kernel import syscall_numbers
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall

# The kernel answers that it has no Landlock and gives no namespaces, and so does everything that is
# started from here.
_WITHOUT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
landlock, unshare, clone, clone3 = map(int, sys.argv[1].split(","))
def line(code, value, yes=0, no=0):
    return code.to_bytes(2, "little") + bytes((yes, no)) + value.to_bytes(4, "little")
LOAD, EQUAL, ANY, RETURN = 0x20, 0x15, 0x45, 0x06
def refuse(number, error):
    return line(EQUAL, number, 0, 1) + line(RETURN, 0x50000 | error)
program = line(LOAD, 0) + refuse(landlock, 38) + refuse(unshare, 1) + refuse(clone3, 38)
program += line(EQUAL, clone, 0, 3) + line(LOAD, 16) + line(ANY, 0x7E020000, 0, 1) + line(RETURN, 0x50001)
program += line(RETURN, 0x7FFF0000)
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_char_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(len(program) // 8, program)), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[2], sys.argv[2:])
"""  # noqa: E501


def deskhand(home: Path, *args: str, bare: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command line there."""
    table = syscall_numbers(platform.machine())
    blocked = ",".join(
        str(number) for number in (444, table["unshare"], table["clone"], table["clone3"])
    )
    argv = [sys.executable, "-m", "deskhand", *args]
    if bare:
        argv = [sys.executable, "-c", _WITHOUT, blocked, *argv]
    env = {"PATH": os.environ["PATH"], "DESKHAND_HOME": str(home)}
    return subprocess.run(
        argv, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


@pytest.mark.timeout(60)
async def test_no_command_is_run_bare(tmp_path: Path) -> None:
    """The same command runs where there is a sandbox."""
    command = FakeCall("shell", msgspec.json.encode({"command": "touch was-run"}).decode())
    for bare in (True, False):
        home = tmp_path / str(bare)
        home.mkdir()
        async with FakeLLM() as fake:
            fake.script(Behaviour(calls=(command,), times=1), Behaviour(text="I tried."))
            config = {
                "defaults": {"models": ["fake/m"]},
                "providers": {"fake": {"base_url": fake.url}},
            }
            (home / "deskhand.yaml").write_bytes(msgspec.json.encode(config))
            done = await anyio.to_thread.run_sync(
                partial(deskhand, home, "ask", "do it", bare=bare)
            )
            assert done.stdout.endswith("I tried.\n"), done.stderr
            told = fake.requests[-1].json["messages"][-1]["content"]
        ran = (home / "agents/default/workspace/was-run").exists()
        assert (ran, "No sandbox works" in told and "commands are not run" in told) == (
            not bare,
            bare,
        ), told


def test_the_doctor_says_so(tmp_path: Path) -> None:
    deskhand(tmp_path, "init", bare=False)
    deskhand(tmp_path, "model", "use", "scripted/echo", bare=False)
    assert deskhand(tmp_path, "doctor", bare=False).returncode == 0
    done = deskhand(tmp_path, "doctor")
    line = next(line for line in done.stdout.splitlines() if " sandbox " in line)
    assert done.returncode == 1 and "No sandbox works" in line, done.stdout
