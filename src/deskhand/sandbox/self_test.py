"""Proves a sandbox by trying to break out of it, live, once: the shell waits for the verdict and
`doctor` shows it."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from deskhand.sandbox.base import Mount, Sandbox, SandboxCommand
from deskhand.types.errors import SandboxError

_FILE_BYTES = 1 << 20
_ATTEMPTS = 23


class Probe(msgspec.Struct, frozen=True, gc=False):
    """One attempt to break out. `ok`: it failed, as it must. `detail`: how, or what it reached."""

    name: str
    ok: bool
    detail: str


class ProbeVerdict(msgspec.Struct, frozen=True):
    """What the probes say of one sandbox. `problem` is empty when it holds; else the shell stays
    closed."""

    sandbox: str
    probes: tuple[Probe, ...]
    problem: str = ""


async def probe_sandbox(sandbox: Sandbox, python: str) -> ProbeVerdict:
    """Try to break out of `sandbox`, with `python` as seen from inside it."""
    folder = Path(await to_thread.run_sync(tempfile.mkdtemp, "", "deskhand-probe-"))
    try:
        with ExitStack() as stack:
            facts, listeners = _set_up_targets(stack, folder)
            bystander = await anyio.open_process(
                [sys.executable, "-I", "-S", "-c", "input()"],
                env={"CANARY": facts["canary"]},
                stdout=None,
                stderr=None,
            )
            try:
                facts["bystander"] = str(bystander.pid)
                return await _run_probes(sandbox, python, facts, listeners)
            finally:
                with anyio.CancelScope(shield=True):
                    bystander.kill()
                    await bystander.aclose()
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


def _set_up_targets(
    stack: ExitStack, folder: Path
) -> tuple[dict[str, str], Sequence[socket.socket]]:
    """Lay out what must not be reached."""
    canary = f"canary-{secrets.token_hex(8)}"
    workspace = folder / "workspace"
    outside = folder / "outside"
    workspace.mkdir()
    outside.mkdir()
    (outside / "secret").write_text(canary)
    tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    udp.bind(("127.0.0.1", 0))
    unix, abstract = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
    unix.bind(str(outside / "socket"))
    abstract.bind("\0" + canary)
    for each in (unix, abstract):
        each.listen()
    facts = {
        "canary": canary,
        "secret": str(outside / "secret"),
        "workspace": str(workspace.resolve()),
        "unix": str(outside / "socket"),
        "abstract": canary,
        "tcp": str(tcp.getsockname()[1]),
        "udp": str(udp.getsockname()[1]),
        "pid_namespace": str(Path("/proc/self/ns/pid").readlink()),
        "file_bytes": str(_FILE_BYTES),
    }
    return facts, (tcp, udp, unix, abstract)


async def _run_probes(
    sandbox: Sandbox, python: str, facts: dict[str, str], listeners: Sequence[socket.socket]
) -> ProbeVerdict:
    said, complained = bytearray(), bytearray()
    program = await anyio.Path(__file__).with_name("escape_probes.py").read_text()
    command = SandboxCommand(
        argv=(python, "-I", "-S", "-B", "-c", program, json.dumps(facts)),
        cwd=facts["workspace"],
        mounts=(Mount(facts["workspace"], write=True),),
        env=(("LD_LIBRARY_PATH", str(Path(python).parents[1] / "lib")),)
        if python.startswith("/run/")
        else (),
        timeout_s=15,
        file_bytes=_FILE_BYTES,
    )
    try:
        ended = await sandbox.run(
            command, lambda piece, is_error: (complained if is_error else said).extend(piece)
        )
        found = msgspec.json.Decoder(Probe).decode_lines(bytes(said))
    except (SandboxError, msgspec.DecodeError) as error:
        return ProbeVerdict(sandbox.name, (), str(error))
    probes = [*found, _check_untouched(facts, listeners)]
    problem = "; ".join(f"{each.name}: {each.detail}" for each in probes if not each.ok)
    if ended.code != 0 or len(found) != _ATTEMPTS:
        problem = (
            "the probes did not finish: "
            f"{complained.decode(errors='replace')[-300:].strip() or ended}"
        )
    return ProbeVerdict(sandbox.name, tuple(probes), problem)


def _check_untouched(facts: dict[str, str], listeners: Sequence[socket.socket]) -> Probe:
    """What the host itself saw, whatever the program inside may say."""
    reached = []
    for each in listeners:
        each.setblocking(False)
        try:
            each.recv(1) if each.type == socket.SOCK_DGRAM else each.accept()[0].close()
            reached.append(str(each.getsockname()))
        except BlockingIOError:
            continue
    if Path(facts["secret"]).read_text() != facts["canary"]:
        reached.append(facts["secret"])
    return Probe(
        "as the host saw it", not reached, ", ".join(map(str, reached)) or "nothing arrived"
    )
