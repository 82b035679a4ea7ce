"""The strongest sandbox that proves itself is opened; where none does, nothing is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deskhand.sandbox.base import Mount, SandboxCommand
from deskhand.sandbox.bubblewrap import Bubblewrap
from deskhand.sandbox.choose import Proven, open_sandbox
from deskhand.sandbox.landlocked import Landlocked
from deskhand.sandbox.launcher import Python
from deskhand.sandbox.self_test import probe_sandbox
from deskhand.types.errors import SandboxUnavailable


def _program(folder: Path, name: str, script: str) -> str:
    made = folder / name
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    return str(made)


def _assert_all_held(proven: Proven) -> None:
    probes = proven.verdicts[-1].probes
    assert len(probes) >= 12 and [each for each in probes if not each.ok] == []
    assert all(each.detail for each in probes) and proven.verdicts[-1].problem == ""


async def test_the_strongest_comes_first() -> None:
    proven = await open_sandbox()
    assert (
        isinstance(proven.sandbox, Bubblewrap)
        and proven.sandbox.name == "bubblewrap + Landlock + seccomp"
    )
    _assert_all_held(proven)


async def test_landlock_alone_where_bubblewrap_is_missing() -> None:
    proven = await open_sandbox(bwrap=None)
    assert isinstance(proven.sandbox, Landlocked)
    _assert_all_held(proven)


async def test_landlock_alone_where_namespaces_are_switched_off(tmp_path: Path) -> None:
    complaint = "bwrap: No permissions to create new namespace"
    proven = await open_sandbox(
        bwrap=_program(tmp_path, "bwrap", f"echo '{complaint}' >&2; exit 1")
    )
    assert isinstance(proven.sandbox, Landlocked)
    assert complaint in proven.verdicts[0].problem
    _assert_all_held(proven)


@pytest.mark.parametrize("bwrap", [None, "/nonexistent/bwrap", "/bin/false"])
async def test_nothing_is_run_where_nothing_holds(bwrap: str | None) -> None:
    with pytest.raises(
        SandboxUnavailable, match=r"^No sandbox works .* commands are not run\. .*Landlock"
    ):
        await open_sandbox(bwrap=bwrap, abi=lambda: 0)


async def test_an_old_landlock_does_not_do() -> None:
    with pytest.raises(SandboxUnavailable, match="Landlock is version 5, 6 is needed"):
        await open_sandbox(bwrap=None, abi=lambda: 5)


async def test_an_interpreter_of_another_version_gets_the_text(tmp_path: Path) -> None:
    """It could not read what ours compiled."""
    bwrap = _program(tmp_path, "bwrap", 'exec /usr/bin/bwrap "$@"')
    verdict = await probe_sandbox(
        Bubblewrap(bwrap, Python("/usr/bin/python3", "/usr", "/usr"), True), "/usr/bin/python3"
    )
    assert verdict.problem == "" and len(verdict.probes) == 24


async def test_the_files_of_etc_are_copies_of_their_own(tmp_path: Path) -> None:
    """Fresh for each command, and not to be changed even there."""
    sandbox = (await open_sandbox()).sandbox
    said = bytearray()
    folder = str(tmp_path.resolve())
    script = (
        "cat /etc/passwd; ls /etc/ssl/certs | head -1; echo x >> /etc/passwd; rm -f /etc/group; "
        "echo $? $(id -un)"
    )
    wanted = SandboxCommand(("/bin/bash", "-c", script), folder, (Mount(folder, write=True),))
    assert (
        await sandbox.run(wanted, lambda piece, error: None if error else said.extend(piece))
    ).code == 0
    passwd = Path("/etc/passwd").read_text()
    assert said.decode().startswith(passwd) and said.decode().split()[-2] == "1"


async def test_starting_is_quick(tmp_path: Path) -> None:
    """The figure is printed; the bound is loose, for a busy machine."""
    sandbox = (await open_sandbox()).sandbox
    folder = str(tmp_path.resolve())
    took_s = sorted(
        [
            (
                await sandbox.run(
                    SandboxCommand(("/bin/true",), folder, (Mount(folder, write=True),)),
                    lambda *_: None,
                )
            ).seconds
            for _ in range(20)
        ]
    )
    print(f"true: p50 {took_s[10] * 1000:.1f} ms, uid {os.getuid()}")
    assert took_s[10] < 0.25
