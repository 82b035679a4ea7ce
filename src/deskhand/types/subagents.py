"""Sub-agents: conversations that work on a task for another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from .events import AnyEvent, ApprovalAsked, ModelReplied
from .identity import Address, Principal
from .labels import LOCAL, Label
from .messages import ToolCall
from .options import SessionOptions
from .trace_ids import SpanParent

CHANNEL = "subagent"
"""Where sub-agents talk. Nothing is sent there: what they say is handed back, and people read the
log."""
SESSION_MARK = f"/{CHANNEL}:"
"""Stands in the names of their sessions alone."""
SCRIPT_MODEL = "script/"
"""The name of what stands in the place of a model for a script begins so; its conversation
follows."""
STEP_CHARS = 100
MAX_STEPS = 5
TaskState = Literal["wanted", "running", "done", "error", "stopped"]
"""`wanted`: the call is in the log, and the task is about to be given."""


class TaskRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a task was asked for. `principal` is who acts, `label` that of all that was read before,
    `audience` who reads the parent's conversation, `call_id` the call. `kind` is one of
    `subagents.kinds`, '' for none. `root` is the conversation of people that it all began in, `job`
    the job that it all is for ('' for none), and `people` where people are; `address` is where the
    parent answers. `shared`: several people read there. `waits`: its call rests until then. `path`
    are the titles from there to this one, `agents` the names of the agents. `depends_on` are ids of
    sub-agents whose work is needed first. `teammate` is the name of a member of a team, and
    `identity` what its system prompt says of it; with `plans` it only looks. `span` is that of the
    call, in the trace that it all began in."""

    principal: Principal
    task: str
    label: Label
    audience: tuple[str, ...] = ()
    call_id: str = ""
    kind: str = ""
    root: str
    people: Address
    address: Address
    job: str = ""
    shared: bool = False
    teammate: str = ""
    identity: str = ""
    plans: bool = False
    waits: bool = True
    path: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    options: SessionOptions = SessionOptions()
    depends_on: tuple[str, ...] = ()
    span: SpanParent | None = None

    @property
    def depth(self) -> int:
        """1 for the sub-agent of a conversation of people."""
        return len(self.path)


class SubagentTask(msgspec.Struct, frozen=True):
    """A task of a sub-agent. Times are seconds since the epoch; the tokens are those that its
    model has read and written, `said` is what came of it, under this `label`."""

    id: str
    round: int
    parent: str
    session: str
    title: str
    state: TaskState
    told: bool
    stop: str
    at: float
    ended_at: float | None
    input_tokens: int
    output_tokens: int
    request: TaskRequest
    said: str = ""
    label: Label = LOCAL

    @property
    def name(self) -> str:
        """Under which its result is handed back: another one for each task."""
        return task_name(self.id, self.round)

    @property
    def place(self) -> Address:
        """Where the sub-agent talks. What is one person's alone is not shown where several read."""
        return Address(CHANNEL, chat=self.id, group=self.request.shared)

    @property
    def key(self) -> str:
        """The id of the message that gives it."""
        return f"{CHANNEL}:{self.name}"

    @property
    def is_live(self) -> bool:
        return self.state in ("wanted", "running")


def task_name(id_: str, round_: int) -> str:
    """The name of a task of this sub-agent, the first being 1."""
    return id_ if round_ == 1 else f"{id_}.{round_}"


def id_of(name: str) -> str:
    """The sub-agent whose task has this name."""
    return name.partition(".")[0]


def subagent_session(agent: str, id_: str) -> str:
    """The session in which `agent` works as this sub-agent."""
    return f"{agent}/{CHANNEL}:{id_}"


def is_subagent_session(session: str) -> bool:
    """Whether this is the conversation of a sub-agent."""
    return SESSION_MARK in session and session.partition("/")[2].startswith(f"{CHANNEL}:")


def id_of_session(session: str) -> str:
    """The sub-agent whose conversation this is; '' for any other."""
    return session.partition(SESSION_MARK)[2] if is_subagent_session(session) else ""


_decode_request = msgspec.json.Decoder(TaskRequest).decode
_decode_label = msgspec.json.Decoder(Label).decode


def parse_task_row(row: Sequence[Any]) -> SubagentTask:
    """A row as the statements on the table `subagent` give it."""
    *plain, request, said, label = row
    plain += (_decode_request(request), said)
    found = SubagentTask(*plain)
    return replace(found, told=bool(found.told), label=_decode_label(label) if label else LOCAL)


def describe_steps(event: AnyEvent) -> list[str]:
    """What a sub-agent does from this event on, a line for each; nothing for most events."""
    match event:
        case ModelReplied(message=message):
            calls = message.calls
            lines = [_describe_call(call) for call in calls[:MAX_STEPS]]
            rest = len(calls) - MAX_STEPS
            return [*lines, f"and {rest} more"] if rest > 0 else lines
        case ApprovalAsked(question=question):
            return [f"waits for a yes: {question}"]
        case _:
            return []


def _describe_call(call: ToolCall) -> str:
    arguments = " ".join(bytes(call.arguments).decode(errors="replace").split())
    if len(arguments) > STEP_CHARS:
        arguments = f"{arguments[:STEP_CHARS]}\N{HORIZONTAL ELLIPSIS}"
    return f"{call.name} {arguments}"
