"""Commands that run beside the conversation: in the background, and in terminals that stay open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal

import msgspec

from ..types.effects import Effect
from ..types.errors import ToolError
from ..types.identity import Address
from ..types.labels import LOCAL, Label, join_labels
from ..types.messages import Text, clean_text
from ..types.process import Process
from .base import CommandRequest, Context, Done, Heard, Outcome, Spec, Tool, call_label, make_result
from .define import FunctionTool, decode_arguments, make_schema, tool

TIMEOUT_S = 300.0
MAX_TIMEOUT_S = 24 * 3600.0
WAIT_S = 5.0
MAX_WAIT_S = 60.0
DEFAULT_LINES = 30
MAX_LINES = 1000
LOG_BYTES = 24_000
STARTED_CHARS = 80
_ESCAPES = re.compile(
    r"""
    \x1b
    (?:
        \[ [0-?]* [ -/]* [@-~]                     # control sequence: colours, moves
      | \] [^\x07\x1b]* (?: \x07 | \x1b\\ )       # operating system command: titles, links
      | [@-Z\\-_]                                # another escape of two characters
      | [()] [0-9A-B]                            # character set
    )
    """,
    re.VERBOSE,
)
_KEYS = {
    "enter": "\r",
    "tab": "\t",
    "esc": "\x1b",
    "escape": "\x1b",
    "backspace": "\x7f",
    "space": " ",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "delete": "\x1b[3~",
}
_CONTROL = re.compile(r"(?:ctrl|control|c)[+-]([a-z\[\]\\^_])")


class ProcessesConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """What may run beside conversations: how many at once, and for how long. `idle_s`: a session
    that says nothing, and to which nobody says anything, ends after so long."""

    per_session: Annotated[int, msgspec.Meta(ge=0, le=100)] = 4
    per_agent: Annotated[int, msgspec.Meta(ge=0, le=100)] = 8
    timeout_s: Annotated[float, msgspec.Meta(ge=1, le=86400)] = 300.0
    longest_s: Annotated[float, msgspec.Meta(ge=1, le=7 * 86400)] = 86400.0
    idle_s: Annotated[float, msgspec.Meta(ge=1, le=7 * 86400)] = 1800.0


def make_background_tool(
    usual_s: float = TIMEOUT_S, longest_s: float = MAX_TIMEOUT_S
) -> FunctionTool:
    """`background_run`, whose commands have `usual_s` where the model does not say."""

    @tool(effect="local_write", replay="commit")
    async def background_run(
        command: str, context: Context, timeout_s: float = usual_s, cwd: str = ""
    ) -> Done:
        """Run a bash command in the background, in the same sandbox as `shell`, and go on. Its
        result comes by itself as a message when it is over, also when this turn has ended and after
        a restart: do not wait for it.

        command: what to run; nobody can type into it
        timeout_s: seconds until it is killed, with everything that it started
        cwd: the folder to run it in, if not the workspace
        """
        if not command.strip():
            raise ToolError("the command is empty")
        wanted = CommandRequest(command, cwd, min(max(timeout_s, 1.0), longest_s))
        id_, row = await context.reach.host.processes().queue_background(wanted, context)
        line = " ".join(command.split())[:STARTED_CHARS]
        words = Text(f"Background task {id_} started: {line}", call_label(context))
        return Done((words,), changes=(row,))

    return background_run


@tool
async def check_background(context: Context, id: str = "") -> Done:
    """Look how background commands are doing. What has ended is told by itself.

    id: the one to look at; without it, all of this conversation
    """
    processes = context.reach.host.processes()
    listed = await processes.list_processes(context.session)
    found = [each for each in listed if each.kind == "background"]
    now = context.clock.now()
    if not id.strip():
        lines = "\n".join(render_process_line(each, now) for each in found)
        return make_result(
            lines or "No background commands in this conversation.", _processes_label(found)
        )

    known = next((each for each in found if each.id == id.strip()), None)
    if known is None:
        raise ToolError(f"there is no background command {id!r} in this conversation")
    line = render_process_line(known, now)
    if not known.is_live:
        if known.said:
            return make_result(known.said, join_labels((known.label, known.began)))
        return make_result(line, _processes_label((known,)))
    if known.state == "wanted":
        return make_result(line, known.began)

    heard = await processes.read_output(known.id, context.session, None, LOG_BYTES // 3)
    text = clean_text(heard.data.decode(errors="replace")) or "[no output yet]"
    return make_result(f"{line}\n{text}", join_labels((heard.label, known.began)))


def _processes_label(processes: Sequence[Process]) -> Label:
    """The label of lines about these: of their commands, and of how they ended, which may name what
    they read."""
    labels = [LOCAL]
    for each in processes:
        labels += (each.began, each.label)
    return join_labels(labels)


def render_process_line(process: Process, now: float) -> str:
    """One line about it."""
    state = "running" if process.is_live else process.state
    took_s = (process.ended_at or now) - (process.started_at or process.at)
    took = timedelta(seconds=int(max(0.0, took_s)))
    name = f" ({process.name})" if process.name else ""
    command = " ".join(process.command.split())[:120]
    how = f": {process.detail}" if process.detail else ""
    return f"{process.id}{name} {state} {took} `{command}`{how}"


ProcessAction = Literal["list", "start", "poll", "write", "log", "kill", "clear"]


class ProcessArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[ProcessAction, msgspec.Meta(description="what to do")]
    command: Annotated[
        str, msgspec.Meta(description="start: what to run, such as `bash` or `python3 -q`")
    ] = ""
    id: Annotated[str, msgspec.Meta(description="the session, as `start` named it")] = ""
    input: Annotated[
        str, msgspec.Meta(description="write: what to type, as it is; end it with a line end")
    ] = ""
    keys: Annotated[
        list[str], msgspec.Meta(description="write: keys after it: enter, tab, up, ctrl+c …")
    ] = []
    wait_s: Annotated[
        float, msgspec.Meta(description="start, poll, write: how long to wait for output")
    ] = WAIT_S
    lines: Annotated[int, msgspec.Meta(description="log: how many of the last lines")] = (
        DEFAULT_LINES
    )
    offset: Annotated[
        int | None, msgspec.Meta(description="log: page on from this byte instead")
    ] = None
    name: Annotated[str, msgspec.Meta(description="start: a name for it")] = ""
    filter: Annotated[
        str, msgspec.Meta(description="list: only those in whose line this stands")
    ] = ""
    cwd: Annotated[str, msgspec.Meta(description="start: the folder, if not the workspace")] = ""
    columns: Annotated[int, msgspec.Meta(description="start: the width of the window")] = 100
    rows: Annotated[int, msgspec.Meta(description="start: its height")] = 30


_DESCRIPTION = (
    "Sessions at a terminal that stay open between calls: start a shell, a debugger or a server, "
    "poll what it prints, write into it, page through its log, kill it. They run in the same "
    "sandbox as `shell` and end with the conversation. Input goes as keys do: end a line with a "
    "line end."
)


class ProcessTool:
    """One tool for all that can be done with sessions at a terminal."""

    def __init__(self, *, wide: bool = False) -> None:
        self._effect: Effect = "host" if wide else "local_write"
        self.spec = Spec(
            "process",
            _DESCRIPTION,
            make_schema(ProcessArguments),
            self._effect,
            "never",
            hint="terminals",
        )

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        """To look is nothing, and to end one's own is nothing either."""
        try:
            wanted = decode_arguments(arguments, ProcessArguments, self.spec.name)
        except ToolError:
            return self._effect  # it will do nothing
        return self._effect if wanted.action in ("start", "write") else "none"

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        wanted = decode_arguments(arguments, ProcessArguments, self.spec.name)
        processes = context.reach.host.processes()
        session = context.session
        wait_s = min(max(wanted.wait_s, 0.0), MAX_WAIT_S)
        match wanted.action:
            case "list":
                now = context.clock.now()
                found = await processes.list_processes(session)
                lines = [render_process_line(each, now) for each in found]
                said = "\n".join(each for each in lines if wanted.filter in each)
                return make_result(said or "No sessions are running.", _processes_label(found))
            case "start":
                return await _start_session(wanted, context, wait_s)
            case "poll":
                heard = await processes.read_new_output(wanted.id, session, wait_s)
                return make_result(
                    render_output(heard), await _output_label(heard, wanted.id, context)
                )
            case "write":
                typed = encode_keys(wanted.input, wanted.keys)
                taken = await processes.send_input(wanted.id, session, typed, context.label)
                note = ""
                if taken != len(typed):
                    note = f"[only {taken} of {len(typed)} bytes were accepted]\n"
                heard = await processes.read_new_output(wanted.id, session, wait_s)
                return make_result(
                    note + render_output(heard), await _output_label(heard, wanted.id, context)
                )
            case "log":
                return await _read_log(wanted, context)
            case "kill":
                how = await processes.stop(wanted.id, session, "the agent")
                return make_result(
                    f"{wanted.id} has ended: {how}", await _process_label(wanted.id, context)
                )
            case "clear":
                return make_result(
                    f"Deleted the output of {await processes.drop_ended(session)} ended sessions.",
                    call_label(context),
                )


async def _process_label(id_: str, context: Context) -> Label:
    """The label of a process: of its command, and of how it ended."""
    listed = await context.reach.host.processes().list_processes(context.session)
    found = [each for each in listed if each.id == id_]
    return join_labels((call_label(context), _processes_label(found)))


async def _output_label(heard: Heard, id_: str, context: Context) -> Label:
    """The label of what it has printed: what it was told to do it may say again."""
    return join_labels((heard.label, await _process_label(id_, context)))


async def _start_session(wanted: ProcessArguments, context: Context, wait_s: float) -> Done:
    if not wanted.command.strip():
        raise ToolError("the command is empty")
    size = (min(max(wanted.columns, 10), 500), min(max(wanted.rows, 2), 200))
    processes = context.reach.host.processes()
    id_ = await processes.start(
        CommandRequest(wanted.command, wanted.cwd, MAX_TIMEOUT_S, wanted.name, *size), context
    )
    heard = await processes.read_new_output(id_, context.session, wait_s)
    return make_result(
        f"Session {id_} started.\n{render_output(heard)}", await _output_label(heard, id_, context)
    )


async def _read_log(wanted: ProcessArguments, context: Context) -> Done:
    """The last lines of all that it has printed, or a page of it."""
    processes = context.reach.host.processes()
    heard = await processes.read_output(wanted.id, context.session, wanted.offset, LOG_BYTES)
    text = strip_terminal_codes(heard.data.decode(errors="replace"))
    if wanted.offset is None:
        text = "\n".join(text.splitlines()[-min(max(wanted.lines, 1), MAX_LINES) :])
        where = f"[the last lines of {heard.size:,} bytes; page with offset=0]"
    else:
        end = heard.at + len(heard.data)
        go_on = f"; go on with offset={end}" if end < heard.size else ""
        where = f"[bytes {heard.at:,} to {end:,} of {heard.size:,}{go_on}]"
    over = f"\n[ended: {heard.over}]" if heard.over else ""
    return make_result(f"{text}\n{where}{over}", await _output_label(heard, wanted.id, context))


def render_output(heard: Heard) -> str:
    """What is new, and whether it still runs."""
    text = strip_terminal_codes(heard.data.decode(errors="replace"))
    left = heard.size - heard.at - len(heard.data)
    more = f"\n[{left:,} bytes more; poll again]" if left else ""
    if heard.over:
        return f"{text}{more}\n[ended: {heard.over}]"
    return (text or "[no new output]") + more


def strip_terminal_codes(text: str) -> str:
    """What a terminal would show of it, roughly: without colours and moves of the cursor, and of a
    line that was written over the last version."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    lines = (each.rstrip("\r").rpartition("\r")[2] for each in text.split("\n"))
    return clean_text("\n".join(lines).replace("\b", "").replace("\x07", ""))


def encode_keys(text: str, keys: list[str]) -> bytes:
    """What a keyboard would send. Raises ToolError for a key that there is not."""
    typed = text.replace("\r\n", "\n").replace("\n", "\r")
    for key in keys:
        name = key.strip().lower()
        control = _CONTROL.fullmatch(name)
        if control is not None:
            typed += chr(ord(control[1].upper()) & 0x1F)
        elif name in _KEYS:
            typed += _KEYS[name]
        else:
            raise ToolError(
                f"there is no key {key!r}; there are: ctrl+a to ctrl+z, {', '.join(_KEYS)}"
            )
    if not typed:
        raise ToolError("say what to type: `input`, `keys`, or both")
    return typed.encode(errors="replace")


def make_process_tools(*, wide: bool, usual_s: float, longest_s: float) -> tuple[Tool, ...]:
    """All of them; with a `wide` reach they touch all of the owner's files, so they are asked
    about."""
    background = make_background_tool(usual_s, longest_s)
    return (
        background.with_effect("host") if wide else background,
        check_background,
        ProcessTool(wide=wide),
    )
