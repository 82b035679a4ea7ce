"""`remote_agent`: tasks for the agents elsewhere that the settings name. A model names them; their
addresses and tokens it never sees, and no conversation reaches the tasks of another one."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Literal

import anyio

from ..config.config import Settings
from ..config.remote_agents import RemoteAgentConfig
from ..net.client import Net
from ..tools.base import Context, Done, Tool, call_label, label_errors, make_result
from ..tools.define import tool
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.output import make_bounded_result
from ..types.errors import ToolError, first_of_group
from ..types.labels import LOCAL, Label, join_labels
from .client import RemoteAgent, Sign
from .own_key import MARK_CHARS, mark
from .wire import RemoteRun

Action = Literal["agents", "run", "spawn", "send", "stream", "sessions", "status", "cancel"]
MAX_WAIT_S = 3_600.0
GRACE_S = 60.0
CANCEL_S = 5.0
LoadSign = Callable[[], Sign | None]


def open_agent(settings: Settings, name: str, net: Net, sign: Sign | None) -> RemoteAgent:
    """The agent of the settings. Raises ToolError."""
    config = settings.config.remote_agents.get(name)
    if config is None or not config.enabled:
        known = ", ".join(_enabled(settings)) or "none"
        raise ToolError(f"there is no agent {name!r} elsewhere; there are: {known}")
    token = settings.environment.get(config.token_env, "") if config.token_env else ""
    if config.token_env and not token:
        raise ToolError(
            f"{config.token_env} is not set: a person puts the token of {name} into .env"
        )
    return RemoteAgent(name, config, net, token, sign)


def _enabled(settings: Settings) -> dict[str, RemoteAgentConfig]:
    agents = settings.config.remote_agents
    return {name: each for name, each in agents.items() if each.enabled}


def make_remote_agent_tools(
    settings: Callable[[], Settings], load_sign: LoadSign, load_seed: Callable[[], str]
) -> tuple[Tool, ...]:
    """`remote_agent`; none where no agent is set up."""
    if not _enabled(settings()):
        return ()

    @tool(effect="network", timeout_s=MAX_WAIT_S + GRACE_S, hint="agents of other programs")
    async def remote_agent(  # noqa: PLR0913 -- becomes a schema
        action: Action,
        context: Context,
        name: str = "",
        input: str = "",
        session_id: str = "",
        label: str = "",
        run_id: str = "",
        timeout: float = 0,  # noqa: ASYNC109 -- what models are told
    ) -> Done:
        """Give tasks to agents of other programs, which people have set up.

        action: run waits for the answer; spawn does not; send answers what a run asks
        name: the agent, as agents lists them
        input: the task, or the answer
        session_id: a name of yours for a conversation with it, to go on with it later
        label: a name of yours for the work
        run_id: for status, cancel and send
        timeout: seconds to wait for the answer
        """
        now = settings()
        if action in ("agents", "sessions"):
            lines = _list(now)
            if action == "sessions":
                lines.append(
                    "This conversation has one with each. A session_id of yours is a further one."
                )
            return make_result("\n".join(lines), call_label(context))
        bound = _Bound(load_seed(), context.session, name)
        agent = open_agent(now, name, context.reach.net, load_sign())
        whose = join_labels((_label_of(agent), call_label(context)))
        wait_s = min(timeout, MAX_WAIT_S) if timeout > 0 else agent.config.timeout_s
        with label_errors(whose):
            if action in ("status", "cancel"):
                run = await _look(agent, action, bound.open(run_id))
            else:
                answered = bound.open(run_id) if action == "send" else ""
                session = bound.session(session_id)
                run = await _begin(agent, input, session, answered, context.key)
            if action in ("run", "send", "stream"):
                run = await _wait(agent, run, wait_s, context.emit)
            text = "\n".join(_describe(agent, run, label, bound))
            return await make_bounded_result(text, context, whose)

    return (remote_agent,)


class _Bound:
    """Binds what a model names to its conversation: all of them share one token over there."""

    def __init__(self, seed: str, session: str, agent: str) -> None:
        self._key = (seed, session, agent)

    def session(self, name: str) -> str:
        """What their conversation is called over there: nobody can guess that of another one."""
        return f"d-{mark(*self._key, 'session', name)}"

    def close(self, run_id: str) -> str:
        """The id of a task as this conversation is told it."""
        return f"{mark(*self._key, 'run', run_id)}.{run_id}"

    def open(self, given: str) -> str:
        """The id over there. Raises ToolError for one that this conversation was not told."""
        if not given:
            raise ToolError("run_id is missing: run and spawn have named it")
        marked, _, run_id = given.partition(".")
        held = mark(*self._key, "run", run_id)
        if len(marked) != MARK_CHARS or not hmac.compare_digest(marked.encode(), held.encode()):
            raise ToolError("there is no task with this run_id in this conversation")
        return run_id


async def _begin(agent: RemoteAgent, text: str, session: str, run_id: str, key: str) -> RemoteRun:
    """Send the task. Its id is that of the call, so that one which is sent again is known again.
    Where the call is stopped meanwhile, so is the task."""
    if not text.strip():
        raise ToolError("input is missing: the task in words")
    message_id = sha256(key.encode()).hexdigest()[:32]
    begun: RemoteRun | None = None
    problem: ToolError | None = None
    scope = anyio.CancelScope(shield=True)
    over = anyio.Event()

    async def send() -> None:
        nonlocal begun, problem
        with scope:
            try:
                begun = await agent.begin(
                    text, message_id=message_id, session=session, run_id=run_id
                )
            except ToolError as error:
                problem = error
        over.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            try:
                await over.wait()
            finally:
                scope.deadline = anyio.current_time() + CANCEL_S
    except anyio.get_cancelled_exc_class():
        if begun is not None:
            await _cancel(agent, begun)
        raise
    except BaseExceptionGroup as group:
        raise first_of_group(group) from group
    if problem is not None:
        raise problem
    if begun is None:
        raise ToolError(f"{agent.name} did not take the task")
    return begun


async def _look(agent: RemoteAgent, action: Action, run_id: str) -> RemoteRun:
    if action == "cancel":
        await agent.cancel(run_id)
    return await agent.look(run_id)


async def _wait(
    agent: RemoteAgent, run: RemoteRun, seconds: float, show: Callable[[str], None]
) -> RemoteRun:
    """Until it rests. Where this call is stopped, so is the task."""
    try:
        return await agent.wait(run, seconds, show)
    except anyio.get_cancelled_exc_class():
        await _cancel(agent, run)
        raise


async def _cancel(agent: RemoteAgent, run: RemoteRun) -> None:
    """Stop it although this call is stopped. Where nobody can reach it, it goes on there."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(CANCEL_S), suppress(ToolError):
        await agent.cancel(run.id)


def _describe(agent: RemoteAgent, run: RemoteRun, label: str, bound: _Bound) -> list[str]:
    """What became of it, and how to go on: our own lines first."""
    called = f"{agent.name} ({' '.join(label.split())[:100]})" if label else agent.name
    match run.state:
        case "completed":
            head = f"{called} has answered"
        case "waiting":
            head = f"{called} asks; answer with action send and this run_id"
        case "working":
            head = f"{called} works on it; ask with action status and this run_id"
            head += f" ({run.problem})" if run.problem else ""
        case "failed":
            head = f"{called} could not do it: {run.problem or 'it did not say why'}"
        case "canceled":
            head = f"{called}: the task was cancelled"
    lines = [escape_invisible(head)]
    if run.id:
        lines.append(f"run_id: {bound.close(run.id)}")
    return [*lines, "", escape_invisible(run.text)] if run.text else lines


def _label_of(agent: RemoteAgent) -> Label:
    """Whose word its answers are."""
    return LOCAL if agent.config.trusted else Label("untrusted", None, f"agent:{agent.name}")


def _list(settings: Settings) -> list[str]:
    return [
        f"{name}: {config.description}" if config.description else name
        for name, config in _enabled(settings).items()
    ]
