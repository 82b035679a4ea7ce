"""Hooks: scripts of a job that run in the sandbox, before the agent is asked and after it has
answered."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..assembly.host import Host
from ..config.sections import HOOK_TIMEOUT_S
from ..sandbox.base import Exit, Mount, SandboxCommand
from ..tools.base import Context
from ..tools.command_network import CommandNetwork, NetworkUser
from ..tools.output import join_ends, utf8_boundary
from ..tools.shell import describe_exit
from ..tools.watch import FileWatch
from ..tools.written import command_mounts
from ..types.commit import Change
from ..types.errors import JobInvalid, SandboxError, ToolError
from ..types.identity import Address, Principal
from ..types.jobs import is_contained_path
from ..types.labels import LOCAL, UNTRUSTED, Label, join_labels
from ..types.marked_texts import mark_text
from ..types.messages import Text, clean_text
from .ledger import RunEntry, hook_state_label, set_hook_state_label
from .target import JOBS_CHANNEL, agent_of, label_of_run

HEAD_BYTES = 16_000
TAIL_BYTES = 4_000
STDERR_CHARS = 300
AGENT_S = 30.0
AGENT_POLL_S = 0.1
"""How long a hook waits until its agent is driven here, and how often it looks."""
STATE_FOLDER = "state"
"""The folder next to JOB.md in which hooks may keep files for the next run."""


class Hook(msgspec.Struct, frozen=True):
    """A script in the folder of a job, with its environment and input."""

    folder: Path
    script: str
    env: tuple[tuple[str, str], ...] = ()
    stdin: bytes = b""
    timeout_s: float = HOOK_TIMEOUT_S


class HookResult(msgspec.Struct, frozen=True):
    """How a hook ended.

    `stdout` is shortened in the middle. `outcome` is how it ended, in words for people. `rows` are
    what it changed in the workspace, to be committed with what follows. `label` is that of all that
    it has read, and so of what it keeps.
    """

    ok: bool
    stdout: str
    outcome: Text
    rows: tuple[Change, ...] = ()
    label: Label = UNTRUSTED


class _Printed:
    """The beginning and the end of a stream, in bounded memory."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = max(HEAD_BYTES - len(self.head), 0)
        self.head += data[:room]
        self.tail += data[room:][-TAIL_BYTES:]
        del self.tail[:-TAIL_BYTES]

    def text(self) -> str:
        if self.size <= HEAD_BYTES + len(self.tail):
            return clean_text(bytes(self.head + self.tail).decode(errors="replace"))
        head = bytes(self.head[: utf8_boundary(bytes(self.head), HEAD_BYTES)])
        return join_ends(head, bytes(self.tail), self.size, "").replace(
            "; read_output(handle='', offset=", " (from ", 1
        )


async def run_job_hook(
    host: Host, entry: RunEntry, principal: Principal, *, folder: Path, script: str, stdin: bytes
) -> HookResult:
    """Run a hook for this run. `folder` is that of the job. Raises as `run_hook` does."""
    job = entry.job
    agent = host.agent_of(agent_of(host, job))
    await _wait_for_agent(host, agent.name)
    hook = Hook(
        folder,
        script,
        env=_environment(host, entry, agent.name),
        stdin=stdin,
        timeout_s=host.settings().config.jobs.hook_timeout_s,
    )
    kept = await hook_state_label(host.store, job.name)
    context = Context(
        session=entry.run.session,
        principal=principal,
        address=Address(JOBS_CHANNEL, chat=job.name),
        agent=agent.name,
        reach=await agent.workspace.open_scope(),
        clock=host.clock,
        ids=host.ids,
        key=f"{entry.key}:{script}:{entry.run.attempts}",
        label=join_labels((await label_of_run(host, entry), kept)),
    )
    result = await run_hook(hook, context)

    known = join_labels((kept, result.label))
    if known == kept:
        return result
    keep = set_hook_state_label(entry.run, known, host.clock.now())
    return replace(result, rows=(*result.rows, keep))


async def _wait_for_agent(host: Host, agent: str) -> None:
    """Hooks run where their agent is driven. Waits while nobody drives it, as when Deskhand starts.
    Raises JobInvalid where another process does."""
    with anyio.move_on_after(AGENT_S):
        while not host.dispatch.may_drive(f"{agent}/"):
            workers = await host.store.workers()
            if any(agent in row.agents and not row.is_self for row in workers):
                break
            await anyio.sleep(AGENT_POLL_S)
        else:
            return
    raise JobInvalid(
        mark_text(
            "a worker drives the agent {agent}, and hooks run only where the server "
            "does: set agents.{agent2}.on_server to true"
        ).format(agent=repr(agent), agent2=agent)
    )


def _environment(host: Host, entry: RunEntry, agent: str) -> tuple[tuple[str, str], ...]:
    """The variables that a hook finds. Those with OPERATOR are for hooks of operator-ai."""
    home = host.settings().home
    env = {
        "JOB_NAME": entry.job.name,
        "JOB_SLOT": entry.run.slot,
        "OPERATOR_AGENT": agent,
        "OPERATOR_HOME": str(home.root),
        "OPERATOR_DB": str(home.database),
        "DESKHAND_AGENT": agent,
        "DESKHAND_HOME": str(home.root),
    }
    return tuple(env.items())


async def run_hook(hook: Hook, context: Context) -> HookResult:
    """Run a hook to its end, for at most `timeout_s`. It can read the job's folder and write to the
    workspace and to `state/`; it has no secrets.

    Raises JobInvalid when there is no such script, ToolError when no sandbox can run it.
    """
    argv = await anyio.to_thread.run_sync(_prepare_argv, hook)
    folder = str(hook.folder.resolve())
    mounts = (
        *command_mounts(context),
        Mount(folder),
        Mount(f"{folder}/{STATE_FOLDER}", write=True),
    )
    command = SandboxCommand(argv, folder, mounts, hook.env, hook.stdin, hook.timeout_s)
    printed = {False: _Printed(), True: _Printed()}
    try:
        async with await FileWatch.start(context, shlex.join(argv)) as watch:
            ended, network = await _run_sandboxed(command, context, printed, watch)
            watch.set_network_label(network.output_label(LOCAL))
            looked = await watch.finish()
    except SandboxError as error:
        raise ToolError(str(error)) from error
    words = describe_exit(ended, hook.timeout_s, said=True).strip().strip("[]")
    last = printed[True].text().strip()[-STDERR_CHARS:]
    label = join_labels((LOCAL, context.label, looked.label))
    whose = LOCAL
    if last or network.refused:
        whose = join_labels((label, label_of_hook(hook.folder.name)))
    outcome = Text(": ".join(filter(None, (words, last))) + network.render_note(), whose)
    return HookResult(ended.code == 0, printed[False].text(), outcome, looked.rows, label)


async def _run_sandboxed(
    command: SandboxCommand, context: Context, printed: dict[bool, _Printed], watch: FileWatch
) -> tuple[Exit, CommandNetwork]:
    sandbox = await context.reach.host.open_sandbox()

    def output(data: bytes, stderr: bool) -> None:
        printed[stderr].add(data)

    if not sandbox.has_egress:
        return await sandbox.run(command, output), CommandNetwork()
    network_user = NetworkUser(
        context.session, context.agent, context.principal, context.label, read=watch.read_label
    )
    async with context.reach.host.open_network(network_user) as network:
        return await sandbox.run(replace(command, egress=network.path), output), network


def _prepare_argv(hook: Hook) -> tuple[str, ...]:
    """The command: the script itself or, when it is not executable, the interpreter in its first
    line. Raises JobInvalid."""
    folder = hook.folder.resolve()
    path = folder / hook.script
    if not is_contained_path(hook.script) or not path.resolve().is_relative_to(folder):
        raise JobInvalid(
            mark_text("the hook {script} is not in the folder of the job; move it there").format(
                script=repr(hook.script)
            )
        )
    if not path.is_file():
        raise JobInvalid(
            mark_text(
                "there is no hook {script} in the folder of the job; put it there, or take "
                "it out of JOB.md"
            ).format(script=repr(hook.script))
        )
    (folder / STATE_FOLDER).mkdir(mode=0o700, exist_ok=True)
    if os.access(path, os.X_OK):
        return (str(path),)
    with path.open("rb") as file:
        first = file.readline(200)
    interpreter: list[str] = []
    if first.startswith(b"#!"):
        with suppress(ValueError):  # a quote that is not closed
            interpreter = shlex.split(first.removeprefix(b"#!").decode(errors="replace"))
    if not interpreter:
        raise JobInvalid(
            mark_text(
                "the hook {script} cannot be run: it needs a first line such as #!/bin/sh"
            ).format(script=repr(hook.script))
        )
    return (*interpreter, str(path))


def label_of_hook(job: str) -> Label:
    """The label of what a hook prints: it may repeat anything from outside."""
    return Label("untrusted", None, f"prerun of job {job}")


def wrap_prerun_output(printed: str) -> str:
    """The output of a prerun as the model sees it."""
    inner = printed.replace("</prerun_output", "<\\/prerun_output").strip()
    return f"<prerun_output>\n{inner or '[it printed nothing]'}\n</prerun_output>"
