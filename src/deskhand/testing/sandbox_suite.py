"""What every sandbox must hold: each check runs real commands in it and raises AssertionError where
it leaks."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import msgspec

from ..sandbox.base import Exit, Mount, Sandbox, SandboxCommand
from ..types.errors import SandboxError


class Ground(msgspec.Struct, frozen=True):
    """Where the checks work. `outside` holds `key`, which no command may read; `canaries` stand in
    our environment."""

    workspace: Path
    outside: Path
    canaries: tuple[str, ...]

    @property
    def secrets(self) -> tuple[str, ...]:
        """All that must not turn up in any output."""
        return (*self.canaries, (self.outside / "key").read_text())


class Ran(msgspec.Struct, frozen=True):
    """How a script ended and what it said, both streams together."""

    exit: Exit
    text: str


Check = Callable[[Sandbox, Ground], Awaitable[None]]


def command(ground: Ground, script: str) -> SandboxCommand:
    """`script` for bash in the workspace; $OUT is the folder outside."""
    where = str(ground.workspace)
    return SandboxCommand(
        ("/bin/bash", "-c", script),
        where,
        (Mount(where, write=True),),
        env=(("OUT", str(ground.outside)),),
    )


async def run(sandbox: Sandbox, wanted: SandboxCommand) -> Ran:
    """Run it and keep the first megabyte of what it says."""
    said = bytearray()

    def hear(piece: bytes, _: bool) -> None:
        said.extend(piece[: max(0, (1 << 20) - len(said))])

    ended = await sandbox.run(wanted, hear)
    return Ran(ended, said.decode(errors="replace"))


async def _shell(sandbox: Sandbox, ground: Ground, script: str) -> Ran:
    ran = await run(sandbox, command(ground, script))
    for secret in ground.secrets:
        assert secret not in ran.text, f"{script!r} said {secret!r}"
    return ran


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def _alive(mark: str) -> list[int]:
    """The processes of this machine whose command line has `mark`."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and mark.encode() in (each / "cmdline").read_bytes():
                found.append(int(each.name))
        except OSError:
            continue
    return found


async def runs_a_program(sandbox: Sandbox, ground: Ground) -> None:
    wanted = msgspec.structs.replace(
        command(ground, "cat; echo err >&2; echo $A; pwd; echo $HOME; exit 7"), stdin=b"in\n"
    )
    heard: list[tuple[bytes, bool]] = []
    ended = await sandbox.run(
        msgspec.structs.replace(wanted, env=(("A", "b c"),)),
        lambda piece, err: heard.append((piece, err)),
    )
    assert (ended.code, ended.signal, ended.timeout, ended.limit) == (7, 0, False, ""), ended
    assert b"".join(piece for piece, err in heard if err) == b"err\n"
    expected = f"in\nb c\n{ground.workspace}\n{ground.workspace}\n"
    assert b"".join(piece for piece, err in heard if not err).decode() == expected


async def says_how_it_ended(sandbox: Sandbox, ground: Ground) -> None:
    assert (await _shell(sandbox, ground, "kill -TERM $$")).exit.signal == 15
    missing = await run(
        sandbox, msgspec.structs.replace(command(ground, ""), argv=("no-such-program",))
    )
    assert missing.exit.code == 127 and "not found" in missing.text
    assert "8000000" in (await _shell(sandbox, ground, "head -c 8000000 /dev/zero | wc -c")).text
    piped = await _shell(sandbox, ground, "yes | head -1; echo ${PIPESTATUS[0]}")
    assert piped.text.split() == ["y", "141"], "SIGPIPE must have its default action"


async def keeps_files_of_the_workspace(sandbox: Sandbox, ground: Ground) -> None:
    await _shell(
        sandbox,
        ground,
        "mkdir -p a/b && echo kept > a/b/c && mv a/b/c a/d && ln -s d a/e && rm -r a/b",
    )
    assert (ground.workspace / "a" / "e").read_text() == "kept\n"
    assert (ground.workspace / "a" / "d").stat().st_uid == os.getuid()
    assert (
        await _shell(sandbox, ground, "echo x > $TMPDIR/y && cat $TMPDIR/y && cat <(echo z)")
    ).text == "x\nz\n"


async def reads_no_secret(sandbox: Sandbox, ground: Ground) -> None:
    """The password file, keys of the home folder, our state, another workspace; plain, by .., by
    links."""
    targets = [
        "/etc/shadow",
        "$OUT/key",
        str(Path.home() / ".ssh/id_rsa"),
        "../outside/key",
        "$OUT/../outside/key",
    ]
    scripts = [f"cat {each}" for each in targets]
    scripts += [f"ln -sfn {each} link{at}; cat link{at}" for at, each in enumerate(targets)]
    scripts += [
        "cat /proc/1/root$OUT/key",
        "cat /proc/$PPID/root$OUT/key",
        "cat /proc/self/root$OUT/key",
        "ls $OUT",
    ]
    for script in scripts:
        ran = await _shell(sandbox, ground, script)
        assert ran.exit.code != 0 and "root:" not in ran.text, f"{script!r}: {ran}"


async def shows_no_environment(sandbox: Sandbox, ground: Ground) -> None:
    script = (
        "env; cat /proc/*/environ /proc/$PPID/cmdline /proc/1/environ /proc/keys; grep -ra "
        "canary . /tmp $TMPDIR"
    )
    ran = await _shell(
        sandbox,
        ground,
        f"{script}; cat /proc/{os.getpid()}/environ; cat /proc/{os.getppid()}/environ",
    )
    assert "HOME=" in ran.text
    bare = await run(sandbox, msgspec.structs.replace(command(ground, ""), argv=("/usr/bin/env",)))
    names = {line.partition("=")[0] for line in bare.text.splitlines()}
    assert names == {"PATH", "HOME", "LANG", "TMPDIR", "PWD", "TERM", "USER", "OUT"}, names


async def reaches_no_network(sandbox: Sandbox, ground: Ground) -> None:
    """TCP to a listener of this machine, UDP, the metadata address, and the sockets of daemons."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.bind(("127.0.0.1", 0))
        unix.bind(str(ground.outside / "socket"))
        abstract.bind("\0deskhand-suite" + ground.outside.parent.name)
        for listening in (unix, abstract):
            listening.listen()
        ports = {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
        for address in (
            f"tcp/127.0.0.1/{ports['tcp']}",
            "tcp/169.254.169.254/80",
            "tcp/192.0.2.1/80",
        ):
            ran = await _shell(sandbox, ground, f"exec 3<>/dev/{address} && echo CONNECTED")
            assert "CONNECTED" not in ran.text, ran
        await _shell(
            sandbox,
            ground,
            f"echo x > /dev/udp/127.0.0.1/{ports['udp']}; echo x > /dev/udp/127.0.0.53/53",
        )
        await _shell(
            sandbox,
            ground,
            f"curl -s --noproxy '*' -m 1 http://127.0.0.1:{ports['tcp']}/; getent hosts a.test",
        )
        connect = (
            "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1].replace('@', "
            "chr(0)))"
        )
        for name in ("$OUT/socket", "@" + str(abstract.getsockname()[1:], "ascii")):
            await _shell(sandbox, ground, f'/usr/bin/python3 -c "{connect}" {name}')
        for each in (tcp, udp, unix, abstract):
            each.setblocking(False)
            try:
                each.recv(1) if each is udp else each.accept()[0].close()
            except BlockingIOError:
                continue
            raise AssertionError(f"{each.getsockname()!r} was reached")


async def leaves_nothing_running(sandbox: Sandbox, ground: Ground) -> None:
    """At the end, at the timeout, and when cancelled: new sessions, nohup and double forks
    included."""
    hide = (
        "setsid sleep {0}1 & nohup sleep {0}2 >/dev/null 2>&1 & (setsid sh -c 'sleep {0}3 & "
        "sleep {0}4' &) ; "
    )
    mark = str(900_000_000 + os.getpid() * 100)
    script = hide.format(mark)
    assert (await _shell(sandbox, ground, script + "sleep 0.1")).exit.code == 0
    assert not _alive(mark)
    held = msgspec.structs.replace(
        command(ground, script + f"trap '' TERM HUP; sleep {mark}5"), timeout_s=0.3
    )
    ended = (await run(sandbox, held)).exit
    assert ended.timeout and ended.code is None and ended.seconds < 10 and not _alive(mark)
    with anyio.move_on_after(0.3):
        await run(sandbox, msgspec.structs.replace(held, timeout_s=60))
    assert not _alive(mark)


async def contains_a_fork_bomb(sandbox: Sandbox, ground: Ground) -> None:
    """It is ended when its time is over at the latest, and other commands still start meanwhile."""
    mark = f"bomb {os.getpid()} {ground.workspace}"
    bomb = msgspec.structs.replace(
        command(ground, f": {mark}; b() {{ b | b & }}; b; sleep 90"), timeout_s=15, processes=100
    )
    others: list[Ran] = []

    async def other() -> None:
        others.extend([await _shell(sandbox, ground, "echo fine") for _ in range(5)])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        ended = (await run(sandbox, bomb)).exit
    assert ended.seconds < 60 and (
        ended.limit == "processes" or ended.timeout or ended.code is not None
    ), ended
    assert [each.text for each in others] == ["fine\n"] * 5
    assert not _alive(mark), "some of it lives on"


async def holds_the_memory_limit(sandbox: Sandbox, ground: Ground) -> None:
    one = "import os; x = bytearray(400 << 20); os.write(1, b'GOT')"
    many = (
        "import os, time; [os.fork() for _ in range(3)]; x = bytearray(60 << 20); os.write(1, "
        "b'GOT'); time.sleep(9)"
    )
    shared = (
        "import mmap, os; m = mmap.mmap(-1, 600 << 20); m[:] = bytes(1) * (600 << 20); "
        "os.write(1, b'GOT')"
    )
    slow = (
        "import mmap, os; m = mmap.mmap(-1, 600 << 20)\nfor at in range(0, 600 << 20, 4096): "
        "m[at] = 1"
    )
    for code in (one, many, shared, slow):
        wanted = msgspec.structs.replace(
            command(ground, ""), argv=("/usr/bin/python3", "-c", code), memory_bytes=200 << 20
        )
        ran = await run(sandbox, msgspec.structs.replace(wanted, timeout_s=10))
        assert "MemoryError" in ran.text or ran.exit.limit == "memory", ran


async def holds_the_file_limit(sandbox: Sandbox, ground: Ground) -> None:
    wanted = msgspec.structs.replace(
        command(ground, "head -c 5G /dev/zero > large; truncate -s 5G sparse"), file_bytes=1 << 20
    )
    ran = await run(sandbox, wanted)
    sizes = [each.stat().st_size for each in ground.workspace.iterdir()]
    assert ran.exit.code != 0 and max(sizes) <= 1 << 20, ran


async def cannot_touch_what_watches_it(sandbox: Sandbox, ground: Ground) -> None:
    script = (
        "kill -9 $PPID; kill -STOP $PPID; kill -9 -$PPID; kill -9 -1; kill -9 1; echo still "
        "here; sleep 0.1; exit 3"
    )
    ran = await _shell(sandbox, ground, script)
    assert ran.exit.code == 3 and "still here" in ran.text, ran
    ran = await _shell(
        sandbox, ground, f"kill -0 {os.getpid()} 2>/dev/null && readlink /proc/self/ns/pid"
    )
    assert ran.exit.code != 0 or ran.text.strip() != _pid_namespace()


async def makes_no_namespace_and_no_privilege(sandbox: Sandbox, ground: Ground) -> None:
    for script in (
        "unshare -Ur true",
        "unshare -m true",
        "mount -t tmpfs x /mnt",
        "chroot / true",
        "keyctl show",
    ):
        assert (await _shell(sandbox, ground, script)).exit.code != 0, script
    clone = (
        "import ctypes; l = ctypes.CDLL(None, use_errno=True); p = l.syscall({}, {}, 0, 0, 0, 0); "
        "print('MADE' if p >= 0 else ctypes.get_errno())"
    )
    number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    code = clone.format(number, 0x10000000 | 17)
    ran = await run(
        sandbox, msgspec.structs.replace(command(ground, ""), argv=("/usr/bin/python3", "-c", code))
    )
    assert ran.text.split() == ["1"], ran
    unfiltered = (
        "import socket\nfor f in (2, 10, 16, 17, 38, 40):\n"
        " try: socket.socket(f, 3 if f > 10 else 1)\n except OSError: pass\n else: print(f)"
    )
    ran = await run(
        sandbox,
        msgspec.structs.replace(command(ground, ""), argv=("/usr/bin/python3", "-c", unfiltered)),
    )
    assert not ran.text.strip(), ran


async def changes_nothing_outside(sandbox: Sandbox, ground: Ground) -> None:
    """Only canaries of ours are aimed at; the system's files and settings are opened to write,
    never written."""
    key = ground.outside / "key"
    before = key.stat(), key.read_text()
    for script in (
        "echo x > $OUT/new",
        "chmod 777 $OUT/key",
        "touch $OUT/key",
        "mv $OUT/key .",
        "ln $OUT/key .",
    ):
        assert (await _shell(sandbox, ground, script)).exit.code != 0, script
    await _shell(
        sandbox,
        ground,
        "rm -rf $OUT; exec 3< $OUT/key; chmod 4755 /proc/self/fd/3 $OUT/key; chown 1 $OUT/key",
    )
    for path in ("/proc/sys/kernel/core_pattern", "/etc/passwd", "/usr/bin/env", "/bin/sh"):
        assert (await _shell(sandbox, ground, f": >> {path}")).exit.code != 0, (
            f"{path} can be written"
        )
    same_mode = (
        "chmod --reference=/usr/bin/env /usr/bin/env"  # it changes nothing even where it may
    )
    assert (await _shell(sandbox, ground, same_mode)).exit.code != 0, (
        "modes of the system's files can be set"
    )
    assert (key.stat(), key.read_text()) == before


_SET_ID = """
import os, stat
def tried(*call):
    try: call[0](*call[1:])
    except OSError: pass
flags = os.O_CREAT | os.O_WRONLY
tried(os.open, "a", flags, 0o4755); tried(os.open, "b", flags, 0o2755); tried(os.mknod, "c", stat.S_IFREG | 0o4755)
tried(os.chmod, "plain", 0o6755); tried(lambda: os.chmod("plain", 0o4755, dir_fd=os.open(".", os.O_RDONLY)))
tried(lambda: os.fchmod(os.open("plain", os.O_RDWR), 0o2755)); tried(os.mkdir, "d", 0o2777)
tried(os.chmod, "d", 0o2777)
tried(os.setxattr, "plain", "user.words", b"obey"); tried(lambda: os.setxattr(os.open("plain", 0), "user.words", b"x"))
tried(os.setxattr, "plain", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
os.close(os.open("made", flags, 0o755))
"""


async def leaves_no_rights_behind(sandbox: Sandbox, ground: Ground) -> None:
    """No set-ID bits and no attributes, by any call; what a mode is else for is set as ever."""
    script = (
        "umask 022; echo > plain; chmod u+s plain; install -m 4755 plain e; python3 -c "
        f"'{_SET_ID}'; chmod +x plain"
    )
    ran = await _shell(sandbox, ground, script)
    left = [path for path in ground.workspace.rglob("*") if not path.is_symlink()]
    assert {"plain", "made"} <= {path.name for path in left}, ran
    lent = [f"{path.name} {path.stat().st_mode:o}" for path in left if path.stat().st_mode & 0o6000]
    assert not lent, lent
    assert [path for path in left if os.listxattr(path)] == []
    assert (ground.workspace / "made").stat().st_mode & 0o777 == 0o755


async def refuses_a_mount_that_was_swapped_for_a_link(sandbox: Sandbox, ground: Ground) -> None:
    inner = ground.workspace / "inner"
    inner.symlink_to(ground.outside)
    wanted = command(ground, "cat inner/key")
    for path in (str(inner), "relative", "/", "/proc", "/etc", str(ground.workspace / "missing")):
        try:
            ran = await run(
                sandbox, msgspec.structs.replace(wanted, mounts=(*wanted.mounts, Mount(path)))
            )
        except SandboxError:
            continue
        raise AssertionError(f"{path!r} was mounted: {ran}")


async def keeps_a_read_only_mount(sandbox: Sandbox, ground: Ground) -> None:
    manual = ground.workspace.parent / "manual"
    manual.mkdir()
    (manual / "page").write_text("text")
    wanted = command(
        ground,
        f"cat {manual}/page; echo x > {manual}/page; rm -f {manual}/page; echo x > {manual}/y",
    )
    ran = await run(
        sandbox, msgspec.structs.replace(wanted, mounts=(*wanted.mounts, Mount(str(manual))))
    )
    assert "text" in ran.text and [each.read_text() for each in manual.iterdir()] == ["text"]


CHECKS: tuple[Check, ...] = (
    runs_a_program,
    says_how_it_ended,
    keeps_files_of_the_workspace,
    reads_no_secret,
    shows_no_environment,
    reaches_no_network,
    leaves_nothing_running,
    contains_a_fork_bomb,
    holds_the_memory_limit,
    holds_the_file_limit,
    cannot_touch_what_watches_it,
    makes_no_namespace_and_no_privilege,
    changes_nothing_outside,
    leaves_no_rights_behind,
    refuses_a_mount_that_was_swapped_for_a_link,
    keeps_a_read_only_mount,
)
