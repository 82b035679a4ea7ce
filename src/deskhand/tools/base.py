"""What a tool is: a specification that policy can judge, and a function that does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from ..models.side_completion import Aside
from ..net.client import Net
from ..policy.rules import is_read_only
from ..sandbox.base import Mount, Sandbox
from ..store.base import StatementReader
from ..types.clock import Clock, Ids
from ..types.commit import Change, Outgoing
from ..types.effects import Effect, Replay
from ..types.errors import ToolError
from ..types.identity import EVERYBODY, Address, Principal
from ..types.labels import LOCAL, UNTRUSTED, Label, join_labels
from ..types.messages import Message, ResultPart, ResultStatus, Text
from ..types.options import SessionOptions
from ..types.process import Process
from ..types.teams import TeamMembership
from ..types.trace_ids import SpanParent
from .command_network import CommandNetwork, NetworkUser
from .file_snapshots import FileSnapshots
from .paths import Allowed, Workspace

ToolMode = Literal["", "deep_work", "plan", "teams"]


class Spec(msgspec.Struct, frozen=True):
    """What the model and the gate know of a tool. `parameters` is its JSON schema; `reads` labels
    the text that it returns without a label of its own.

    With a `mode` it is offered where the conversation is in that, though it is deferred; those of
    teams nowhere else. `hint`
    says in a few words what a deferred tool is for, where its name does not; deferred tools of one
    `group` are told of together, by its name. Tools whose effect is `none` or `fetch` and that may
    run again run side by side.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Effect = "none"
    replay: Replay = "again"
    reads: Label = UNTRUSTED
    timeout_s: float = 120.0
    mode: ToolMode = ""
    hint: str = ""
    group: str = ""

    @property
    def is_parallel(self) -> bool:
        return self.effect in ("none", "fetch") and self.replay == "again"


class CommandRequest(msgspec.Struct, frozen=True):
    """A command that is to run beside the conversation; with `columns` and `rows` in a terminal of
    that size."""

    command: str
    cwd: str = ""
    timeout_s: float = 0.0
    name: str = ""
    columns: int = 100
    rows: int = 30


class Heard(msgspec.Struct, frozen=True):
    """A piece of what a process printed: `at` is where it begins, of `size` bytes in all. `over` is
    how it ended, '' while it runs. `label` is that of all that it has read."""

    data: bytes
    at: int
    size: int
    over: str = ""
    label: Label = UNTRUSTED


class Processes(Protocol):
    """What runs beside the turns of conversations. A session sees its own alone; all raise
    ToolError."""

    async def queue_background(
        self, wanted: CommandRequest, context: Context
    ) -> tuple[str, Change]:
        """Its id, and the row to be committed with the result of the call: with that it is started,
        once."""
        ...

    async def start(self, wanted: CommandRequest, context: Context) -> str:
        """Start it in a terminal, now. Returns its id."""
        ...

    async def list_processes(self, session: str) -> list[Process]:
        """All that the session has started lately, the latest first."""
        ...

    async def read_new_output(self, id_: str, session: str, wait_s: float) -> Heard:
        """What was printed since this was last asked; waits for something to come."""
        ...

    async def read_output(self, id_: str, session: str, at: int | None, size: int) -> Heard:
        """A piece of all that it has printed; the last one where `at` is None."""
        ...

    async def send_input(self, id_: str, session: str, typed: bytes, label: Label) -> int:
        """Type into its terminal what has this label: so has whatever it says and makes from then
        on. Returns how many bytes it has taken."""
        ...

    async def stop(self, id_: str, session: str, by: str) -> str:
        """Kill it with all that it started. Returns how it ended."""
        ...

    async def drop_ended(self, session: str) -> int:
        """Drop the output of those that have ended. Returns how many."""
        ...


class ScopeHost(Protocol):
    """What tools reach of the running Deskhand. Implemented by `workspace.scope.ToolScopes`."""

    async def put_blob(self, data: bytes) -> str:
        """Store bytes, without the values of secrets. Returns their name."""
        ...

    async def get_blob(self, name: str) -> bytes:
        """The bytes of this name. Raises StoreError."""
        ...

    async def open_sandbox(self) -> Sandbox:
        """The sandbox in which commands run. Raises SandboxUnavailable."""
        ...

    def open_network(self, user: NetworkUser) -> AbstractAsyncContextManager[CommandNetwork]:
        """The network of a command, for as long as it runs."""
        ...

    def processes(self) -> Processes:
        """What runs beside conversations. Raises ToolError where nobody could hold it."""
        ...


def _no_net() -> Net:
    return Net(closed="web access is not available here.")


class ToolScope(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's tools may touch of the machine.

    `folder` is the workspace, `files` opens what lies in it and in the folders allowed beside it,
    which are also `mounts` of the sandbox. `reader` runs named queries. `seen` remembers, by
    (session, path), which version of a file the model has read. `net` fetches from the public web.
    `shadow` knows how the workspace was, so that what changes can be undone. `owned` are those of
    the folders beside the workspace that are a person's and may be written, `untold` the sessions
    that have written there and not said so yet. `editors` has the sockets of the editors that have
    conversations open.
    """

    folder: Path
    files: Workspace
    mounts: tuple[Mount, ...]
    host: ScopeHost
    reader: StatementReader
    seen: dict[tuple[str, str], str]
    net: Net = msgspec.field(default_factory=_no_net)
    shadow: FileSnapshots | None = None
    owned: tuple[Allowed, ...] = ()
    untold: set[str] = msgspec.field(default_factory=set)
    editors: Path | None = None


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """All that a tool reaches.

    `key` names this call for ever: the same after a crash, different for every other call. `label`
    is that of all that the model has read so far, and so of whatever it wrote into the arguments:
    what lasts is stored with it. `audience` are those who read the conversation, as the readers of
    labels name them: what is for others never reaches it. `approver` is who saw exactly this call
    and allowed it, None where nobody did. `person` is the one who is alone with the agent,
    EVERYBODY where it is a group or several have taken part. `options` say how the conversation is
    held. `call_id` is the call. `membership` is the place in a team, where a teammate makes the
    call. `answer` is what a person said to its `PersonQuestion`. `newest` is the platform's id of
    the newest message.
    """

    session: str
    principal: Principal
    address: Address
    agent: str
    reach: ToolScope
    clock: Clock
    ids: Ids
    key: str
    label: Label = UNTRUSTED
    audience: tuple[str, ...] = ()
    approver: Principal | None = None
    person: str = EVERYBODY
    options: SessionOptions = SessionOptions()
    call_id: str = ""
    membership: TeamMembership | None = None
    answer: Message | None = None
    newest: str = ""

    @property
    def approved(self) -> bool:
        return self.approver is not None

    @property
    def board(self) -> str:
        """The conversation whose task list is meant: a teammate has that of its lead."""
        return self.membership.team if self.membership is not None else self.session

    @property
    def span(self) -> SpanParent | None:
        """Under which span of a trace this call stands; None outside of a conversation."""
        return None

    def emit(self, text: str) -> None:
        """Show output while the tool runs. It may be dropped, and never blocks. Outside of a
        conversation nobody sees it."""

    async def ask(self, aside: Aside) -> str:
        """Ask the agent's cheapest model once, beside the conversation. Raises ToolError."""
        raise ToolError("no model is available here")

    def without_conversation(self) -> Context:
        """For what goes on when the call is over: nobody sees its output, and no model is asked."""
        return Context(**{name: getattr(self, name) for name in Context.__struct_fields__})


class Done(msgspec.Struct, frozen=True):
    """The call is over. `changes` and `outbox` are committed with the result; only tools that
    replay by `commit` may have any. With `end_turn` the turn is over too, once the other calls of
    the reply have their results: the text is said as it is, and the model is not asked again.
    `options` are set for the conversation, with the result."""

    parts: tuple[ResultPart, ...]
    status: ResultStatus = "ok"
    changes: tuple[Change, ...] = ()
    outbox: tuple[Outgoing, ...] = ()
    end_turn: bool = False
    options: SessionOptions | None = None


class PersonQuestion(msgspec.Struct, frozen=True):
    """The call rests until a person answers, for at most `wait_s`. The answer is its result; a call
    that `resumes` is run again with that in `Context.answer`."""

    question: str
    choices: tuple[str, ...] = ()
    wait_s: float = 24 * 3600.0
    resumes: bool = False


class Delegated(msgspec.Struct, frozen=True):
    """The call rests until a sub-agent hands back its result for this `id`; after `wait_s` the turn
    goes on without it. `changes` are committed with that."""

    id: str
    changes: tuple[Change, ...] = ()
    wait_s: float = 3600.0


Outcome = Done | PersonQuestion | Delegated
OUTCOMES = (Done, PersonQuestion, Delegated)


class Tool(Protocol):
    """Something the agent can do."""

    @property
    def spec(self) -> Spec: ...

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        """Do it. Raises ToolError with a sentence for the model; anything else that it raises is
        reported to the model too, by its type and text. It is cancelled when its time is up or a
        person stops it."""
        ...


class JudgedCall(Protocol):
    """A tool whose effect depends on its arguments; `effects`, where it has any, are all that it
    may have."""

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect: ...


class CallPreview(msgspec.Struct, frozen=True):
    """What a call would do as things stand: its effect, and what of the world it is about, in words
    for the person who is asked; '' where its arguments say that."""

    effect: Effect
    shown: str = ""


class PreviewedCall(Protocol):
    """A tool whose calls mean something only together with what stands in the world now. A yes is
    for what was shown: where that has become something else, it is asked again."""

    def preview(
        self, arguments: msgspec.Raw, session: str, options: SessionOptions, label: Label
    ) -> CallPreview | None:
        """Of this call in the conversation `session`, which is held so and has read what has this
        label; None where nothing is to be said. Looks at memory, or a few small files."""
        ...


PreviewFunction = Callable[[msgspec.Raw, str, SessionOptions, Label], CallPreview | None]
"""`PreviewedCall.preview` of a tool that has one."""


def get_effect_function(tool: Tool | JudgedCall) -> Callable[[msgspec.Raw, Address], Effect] | None:
    """How the tool's effect follows from its arguments; None where its spec says all."""
    return getattr(tool, "effect_of", None)


def is_offered(spec: Spec, options: SessionOptions) -> bool:
    """Whether a conversation that is held so may have this tool: in plan mode only what looks, and
    what is for teams only where there is one."""
    if spec.mode == "teams" and not options.teams:
        return False
    return is_read_only(spec.effect) or not options.plan_mode


def is_in_mode(spec: Spec, options: SessionOptions) -> bool:
    """Whether a conversation that is held so is in the mode that this tool is for."""
    if spec.mode == "plan":
        return bool(options.plan_mode)
    if spec.mode == "teams":
        return bool(options.teams)
    if spec.mode == "deep_work" and options.teams:
        return True  # a team shares its task list
    return spec.mode != "" and spec.mode == options.mode


Tools = Mapping[str, Tool]


def make_result(text: str, label: Label) -> Done:
    """A result that is text; nothing said is `[no output]`. `label` is whose word it is: `own` for
    what repeats at most the call, else that of all that it quotes."""
    return Done((Text(text or "[no output]", label),))


def call_label(context: Context) -> Label:
    """The label of a result that repeats at most what the call has said: whoever made the call had
    read all that the conversation has."""
    return join_labels((LOCAL, context.label))


@contextmanager
def label_errors(*labels: Label) -> Iterator[None]:
    """Errors that are raised here quote what has these labels."""
    try:
        yield
    except ToolError as error:
        error.label = join_labels((error.label, *labels))
        raise
