"""Commands through the real sandbox: what they print, how they end, what they change, and what they
cannot."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from deskhand.sandbox.choose import Proven, open_sandbox
from deskhand.testing.effort import LoopWatch
from deskhand.tools.base import Done
from deskhand.tools.conversation_tools import read_output
from deskhand.tools.shell import MAX_KEPT_BYTES, make_shell_tool, shell
from deskhand.types.errors import SandboxUnavailable, ToolError
from deskhand.workspace.scope import SandboxProvider

from .conftest import Hands, text_of

SAID = [
    ("echo out", "out\n"),
    ("true", "[no output]"),
    ("false", "\n[exit code: 1]"),
    ("echo out; exit 3", "out\n\n[exit code: 3]"),
    ("echo err >&2", "[stderr]\nerr\n"),
    ("printf '\\n\\nout'", "\n\nout"),
    ("echo a; sleep 0.3; echo b >&2; sleep 0.3; echo c", "a\n[stderr]\nb\n[stdout]\nc\n"),
    ("printf a; sleep 0.3; printf b >&2", "a\n[stderr]\nb"),
    ("printf 'caf\\xe9 \\xff\\x00.'", "caf\ufffd \ufffd\ufffd."),
    ("cat; echo after", "after\n"),
    ("read -t 5 x; echo $?", "1\n"),
    ("pwd; echo $HOME", "{folder}\n{folder}\n"),
    ("kill -TERM $$", "\n[killed by signal 15]"),
    (
        "no-such-program",
        "[stderr]\n/bin/bash: line 1: no-such-program: command not found\n\n[exit code: 127]",
    ),
    ("{oops", "[stderr]\n/bin/bash: line 1: {oops: command not found\n\n[exit code: 127]"),
    ("test -t 0 || test -t 1 || echo no terminal", "no terminal\n"),
]


@pytest.mark.parametrize(("command", "expected"), SAID)
async def test_what_is_said(hands: Hands, command: str, expected: str) -> None:
    done = await hands.done(shell, command=command)
    assert text_of(done) == expected.replace("{folder}", str(hands.folder))
    assert done.status == ("error" if "[exit" in expected or "[killed" in expected else "ok")


async def test_where_it_runs(hands: Hands) -> None:
    (hands.folder / "sub").mkdir()
    assert await hands(shell, command="pwd", cwd="sub") == f"{hands.folder}/sub\n"
    assert await hands(shell, command="pwd", cwd=f"{hands.folder}/sub") == f"{hands.folder}/sub\n"
    for cwd in ("nothing", "/root"):
        with pytest.raises(ToolError):
            await hands(shell, command="pwd; ls", cwd=cwd)
    with pytest.raises(ToolError, match="the command is empty"):
        await hands(shell, command="  ")


async def test_it_knows_no_secrets(hands: Hands, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("TOPSECRET")
    inherited = await hands(
        shell,
        command=f"env; cat /proc/self/environ /proc/1/environ {tmp_path}/key /etc/shadow; true",
    )
    names = {
        line.partition("=")[0]
        for line in inherited.split("[stderr]")[0].splitlines()
        if "=" in line
    }
    assert names <= {"PATH", "HOME", "LANG", "TMPDIR", "PWD", "TERM", "USER", "SHLVL", "_"}, names
    assert "TOPSECRET" not in inherited and "root:" not in inherited
    leaked = [value for value in os.environ.values() if len(value) > 12 and value in inherited]
    assert [value for value in leaked if value not in ("/usr/local/sbin", str(hands.folder))] == []
    said = await hands(
        shell, command="exec 3<>/dev/tcp/127.0.0.1/22; ip addr; curl -m 1 http://1.1.1.1"
    )
    assert "exit code" in said


ESCAPES = [
    "sleep 300 & disown",
    "setsid sleep 300 &",
    "nohup setsid sleep 300 >/dev/null 2>&1 &",
    "(setsid bash -c 'sleep 300 & exec sleep 301' &) &",
    (
        "python3 -c 'import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and "
        "os._exit(0); time.sleep(300)'"
    ),
]


def _alive(mark: str) -> list[str]:
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and mark.encode() in (each / "environ").read_bytes():
                found.append((each / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


async def until_dead(mark: str) -> None:
    with anyio.fail_after(10):
        while _alive(mark):
            await anyio.sleep(0.05)


async def test_nothing_outlives_its_time(hands: Hands) -> None:
    mark = f"MARK={os.getpid()}-{id(hands)}"
    command = f"export {mark}\n" + "\n".join(
        each if each[-1] in "&n" else f"{each} &" for each in ESCAPES
    )
    done = await hands.done(
        shell, command=f"{command}\necho started; trap '' TERM INT HUP; sleep 60", timeout_s=4
    )
    assert (
        text_of(done) == "started\n\n[timed out after 4 s; everything it started was killed]"
        and done.status == "error"
    )
    await until_dead(mark)
    assert (
        await hands(shell, command=f"{command}\necho over") == "over\n"
    )  # nor the end of its command
    await until_dead(mark)


async def test_stopping_kills_it(hands: Hands) -> None:
    mark = f"MARK=stop-{os.getpid()}-{id(hands)}"
    with anyio.move_on_after(2) as scope:
        await hands(shell, command=f"export {mark}; setsid sleep 300 & sleep 300")
    assert scope.cancelled_caught
    await until_dead(mark)


async def test_a_flood_is_cut_and_kept_in_pieces(hands: Hands) -> None:
    """1.5 GB: the head and tail are shown, the first part can be read, and neither memory nor loop
    suffer."""
    code = "import os; p = b'0123456789abcde\\\\n' * 65536\nfor _ in range(1500): os.write(1, p)"
    watch = LoopWatch()
    async with anyio.create_task_group() as tasks:
        watch.start(tasks)
        said = await hands(shell, command=f'echo head; python3 -c "{code}"; echo tail')
        tasks.cancel_scope.cancel()
    assert said.startswith("head\n0123") and "abcde\ntail\n" in said and len(said) < 25_000
    assert (
        "of 1,572,864,010 bytes are not shown" in said
        and "[only its first 32 MB were kept]" in said
    )
    assert watch.grown_bytes <= 64 << 20 and watch.worst_percent_s < 0.1
    handle = said.split("handle='")[1].split("'")[0]
    last = await hands(read_output, handle=handle, offset=MAX_KEPT_BYTES - 100)
    assert last.endswith(f"[bytes {MAX_KEPT_BYTES - 100}-{MAX_KEPT_BYTES} of {MAX_KEPT_BYTES}]")


async def test_what_it_prints_is_shown_at_once(hands: Hands) -> None:
    async def go_on() -> None:
        while not hands.emitted:
            await anyio.sleep(0.01)
        (hands.folder / "go").touch()

    waiting = "until [ -e go ]; do sleep 0.02; done"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go_on)
        await hands(shell, command=f"echo first; {waiting}; echo second")
    assert [*hands.emitted] == ["first\n", "second\n"]


async def test_allowed_folders(hands: Hands, tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "f").write_text("there\n")
    reading = f"cat {beside}/f"
    writing = f"echo x > {beside}/g"
    assert "No such file" in await hands(shell, command=reading)
    await hands.allow(beside)
    assert await hands(shell, command=reading) == "there\n"
    assert "exit code" in await hands(shell, command=writing) and not (beside / "g").exists()
    await hands.allow(beside, write=True)
    assert (
        await hands(shell, command=writing) == "[no output]" and (beside / "g").read_text() == "x\n"
    )
    await hands.revoke(beside)
    assert "No such file" in await hands(shell, command=reading)
    await hands.allow(beside)
    (beside / "f").unlink()
    (beside / "g").unlink()
    beside.rmdir()
    assert await hands(shell, command="echo works") == "works\n"  # without the folder that is gone
    beside.symlink_to("/etc")
    assert await hands(
        shell, command=f"ls {beside} || echo works"
    ) != "" and "passwd" not in await hands(shell, command=f"ls {beside}; true")


async def test_changes_can_be_undone(hands: Hands) -> None:
    for name in ("same.txt", "changed.txt", "deleted.txt", "sub/deep.txt"):
        hands.write(name, name.encode())
    command = (
        "echo x >> changed.txt; rm deleted.txt; echo n > new.txt; echo d > sub/deep.txt; touch "
        "$'odd\\n' $'\\xff'"
    )
    await hands(shell, command=command)
    (effect,) = await hands.store.query("effect_list", (1, "", "", 1 << 60, 100))
    assert effect[1:7] == (
        f"{hands.session}#1.c",
        "default",
        hands.session,
        "ann",
        "shell",
        str(hands.folder),
    )
    reach = (await hands.context()).reach
    found = {}
    for place, _, _, blob in await hands.store.query("effect_items", (effect[0], 100, 0)):
        found[place] = None if blob is None else await reach.host.get_blob(blob)
    assert found == {
        b"changed.txt": b"changed.txt",
        b"deleted.txt": b"deleted.txt",
        b"new.txt": None,
        b"odd\n": None,
        b"sub/deep.txt": b"sub/deep.txt",
        b"\xff": None,
    }
    assert (await hands.done(shell, command="cat changed.txt")).changes == ()


async def test_what_is_too_large_to_be_kept_is_told(hands: Hands) -> None:
    (hands.folder / "twin").hardlink_to(hands.write("one", b"1"))
    (hands.folder / "large").write_bytes(b"")
    os.truncate(hands.folder / "large", 101 << 20)
    assert (
        await hands(shell, command="echo x >> large; rm one")
        == "[no output]\n[not undoable: 1 file over 100 MB]"
    )
    (effect,) = await hands.store.query("effect_list", (1, "", "", 1 << 60, 100))
    items = await hands.store.query("effect_items", (effect[0], 100, 0))
    assert [(place, blob is not None) for place, _, _, blob in items] == [
        (b"large", False),
        (b"one", True),
    ]


@pytest.mark.parametrize("before", [b"mine\n", None])
async def test_what_steers_is_put_back(hands: Hands, before: bytes | None) -> None:
    if before is not None:
        for name in ("RULES.md", ".git/hooks/post-commit"):
            hands.write(name, before)
    command = (
        "mkdir -p .git/hooks; echo evil > RULES.md; echo evil > .git/hooks/post-commit; echo ok "
        "> .git/hooks/x.sample"
    )
    said = await hands(shell, command=command)
    assert said.count("is protected, so it was restored; ask the person to change it]") == 2
    for name in ("RULES.md", ".git/hooks/post-commit"):
        path = hands.folder / name
        assert (path.read_bytes() if path.exists() else None) == before
    assert (hands.folder / ".git/hooks/x.sample").exists()


async def test_a_link_in_the_place_of_rules_is_put_back(hands: Hands) -> None:
    hands.write("RULES.md", b"mine\n")
    hands.write("evil.md", b"evil\n")
    assert "restored" in await hands(shell, command="ln -sf evil.md RULES.md")
    assert (hands.folder / "RULES.md").read_bytes() == b"mine\n" and not (
        hands.folder / "RULES.md"
    ).is_symlink()
    assert "restored" in await hands(shell, command="rm RULES.md")
    assert (hands.folder / "RULES.md").read_bytes() == b"mine\n"


async def test_without_a_sandbox_nothing_is_run(tmp_path: Path) -> None:
    opened = 0

    async def refuses() -> Proven:
        nonlocal opened
        opened += 1
        return await open_sandbox(bwrap=None, abi=lambda: 0)

    hands = Hands(tmp_path / "home", SandboxProvider(refuses))
    for _ in range(2):
        with pytest.raises(
            ToolError,
            match=r"^No sandbox works on this machine, so commands are not run\..*bubblewrap",
        ):
            await hands(shell, command="touch x")
    assert opened == 1 and list(hands.folder.iterdir()) == []
    with pytest.raises(SandboxUnavailable):
        await (await hands.context()).reach.host.open_sandbox()
    hands.reaches.close()
    await hands.store.close()


def test_a_wide_shell_is_asked_about() -> None:
    assert (
        make_shell_tool(wide=False).spec.effect == "local_write"
        and make_shell_tool(wide=True).spec.effect == "host"
    )


async def test_many_at_once_do_not_meet(hands: Hands) -> None:
    texts: dict[int, str] = {}

    async def one(number: int) -> None:
        outcome = await hands.outcome(
            shell, {"command": f"echo {number}; sleep 0.2; echo {number}"}
        )
        assert isinstance(outcome, Done)
        texts[number] = text_of(outcome)

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(one, number)
    assert texts == {number: f"{number}\n{number}\n" for number in range(4)}
