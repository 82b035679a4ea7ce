"""The tools with which agents give tasks to sub-agents, and look after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from ..config.config import Settings
from ..store.base import Store
from ..store.queries import stop_subagent, subagents_of
from ..tools.base import Context, Delegated, Done, Outcome, Spec, Tool, call_label, make_result
from ..tools.define import decode_arguments, make_schema
from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import join_labels
from ..types.messages import Text
from ..types.subagents import SubagentTask
from .delegation import NewTask
from .kinds import BROWSER, COMPUTER, KINDS, SPAWN_AGENT, STAND_INS, SUBAGENTS
from .messages import render_result, render_task_line
from .tasks import Subagents

MAX_LISTED = 30


class ShownArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model is told that `spawn_agent` takes."""

    task: str
    agent: Annotated[
        str, msgspec.Meta(description="explore, research, plan, code, general, or a name")
    ] = ""


class SpawnArguments(ShownArguments, frozen=True, forbid_unknown_fields=True):
    """All that it takes."""

    context: str = ""
    label: str = ""
    wait: bool = True


class SpawnAgent:
    """`spawn_agent`: gives a task to a sub-agent."""

    spec = Spec(
        SPAWN_AGENT,
        "Have a sub-agent do a task. Say all that it needs.",
        make_schema(ShownArguments),
        replay="commit",
    )

    def __init__(self, subagents: Subagents) -> None:
        self._subagents = subagents

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, SpawnArguments, SPAWN_AGENT)
        task = f"{given.task}\n\n{given.context}" if given.context.strip() else given.task
        wish = NewTask(task, given.agent, given.label, given.wait)
        return await _spawn(self._subagents, wish, context)


async def _spawn(subagents: Subagents, wish: NewTask, context: Context) -> Outcome:
    name, row = await subagents.plan_task(wish, context)
    if wish.waits:
        return Delegated(name, (row,))
    return _begun(name, row, context)


def _begun(name: str, row: Change, context: Context) -> Done:
    said = f"[sub-agent {name} works in the background; what comes of it will be told here]"
    return Done((Text(said, call_label(context)),), changes=(row,))


class BrowserTaskArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    task: str
    keep_open: bool = True


class ComputerTaskArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    task: str


class BrowserTask:
    """`browser_task`: the sub-agent that uses the browser, as operator-use calls it."""

    spec = Spec(
        "browser_task",
        "Have a sub-agent do something on web pages.",
        make_schema(BrowserTaskArguments),
        replay="commit",
    )

    def __init__(self, subagents: Subagents) -> None:
        self._subagents = subagents

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, BrowserTaskArguments, self.spec.name)
        task = given.task if given.keep_open else f"{given.task}\n\nClose the browser at the end."
        return await _spawn(self._subagents, NewTask(task, BROWSER), context)


class ComputerTask:
    """`computer_task`: the sub-agent that uses the desktop."""

    spec = Spec(
        "computer_task",
        "Have a sub-agent do something with the windows of this machine.",
        make_schema(ComputerTaskArguments),
        replay="commit",
    )

    def __init__(self, subagents: Subagents) -> None:
        self._subagents = subagents

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, ComputerTaskArguments, self.spec.name)
        return await _spawn(self._subagents, NewTask(given.task, COMPUTER), context)


Action = Literal["list", "agents", "create", "run", "status", "send", "cancel"]


class ManageArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: Action
    id: str = ""
    task: str = ""
    agent: str = ""
    label: str = ""
    depends_on: tuple[str, ...] = ()


class ManageSubagents:
    """`subagents`: what they do, further tasks for them, and their end."""

    spec = Spec(
        SUBAGENTS,
        "Look after sub-agents. list: those of this conversation; agents: who can be given a task; "
        "create: give one, whose answer comes later (`depends_on`: ids of others that come first); "
        "run: give one and wait; status: how the one with this id stands; send: a further task "
        "for it; cancel: stop it.",
        make_schema(ManageArguments),
        replay="commit",
    )

    def __init__(
        self, subagents: Subagents, store: Store, settings: Callable[[], Settings]
    ) -> None:
        self._subagents = subagents
        self._store = store
        self._settings = settings

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, ManageArguments, SUBAGENTS)
        match given.action:
            case "list":
                return self._list(context)
            case "agents":
                return make_result(self._list_agents(), call_label(context))
            case "create" | "run":
                wish = NewTask(
                    given.task, given.agent, given.label, given.action == "run", given.depends_on
                )
                return await _spawn(self._subagents, wish, context)
            case _:
                if not given.id:
                    raise ToolError(f"{given.action} needs the id of a sub-agent: see `list`")
                return await self._manage(given, context)

    async def _manage(self, given: ManageArguments, context: Context) -> Outcome:
        tasks = await self._subagents.find_tasks(given.id, context.session)
        last = tasks[-1]
        if given.action == "status":
            return _told("\n".join(map(_render_status, tasks)), tasks, context)
        if given.action == "send":
            if last.request.kind in STAND_INS:
                raise ToolError("a script takes no further tasks: run another one")
            if last.request.teammate:
                raise ToolError(f"{last.request.teammate} is a teammate: use message_teammate")
            name, row = await self._subagents.plan_follow_up(given.id, given.task, context)
            return _begun(name, row, context)
        if not last.is_live:
            return make_result(render_task_line(last), call_label(context))
        row = stop_subagent(given.id, "cancelled by whoever gave the task")
        said = f"[sub-agent {given.id} is being stopped]"
        return Done((Text(said, call_label(context)),), changes=(row,))

    def _list(self, context: Context) -> Done:
        tasks = subagents_of(self._store, context.session, MAX_LISTED)
        if not tasks:
            return make_result("There are none in this conversation.", call_label(context))
        return _told("\n".join(map(render_task_line, tasks)), tasks, context)

    def _list_agents(self) -> str:
        own = [f"{name}: {kind.about}" for name, kind in KINDS.items()]
        return "\n".join((*own, *(f"{name}: another agent" for name in self._settings().agents)))


def _render_status(task: SubagentTask) -> str:
    return render_task_line(task) if task.is_live else render_result(task)


def _told(text: str, tasks: list[SubagentTask], context: Context) -> Done:
    """A result that quotes what was said in these tasks."""
    labels = (task.label if not task.is_live else task.request.label for task in tasks)
    return make_result(text, join_labels((call_label(context), *labels)))


def make_subagent_tools(
    subagents: Subagents, store: Store, settings: Callable[[], Settings]
) -> tuple[Tool, ...]:
    """The tools of sub-agents; none where the settings allow none."""
    if not settings().config.subagents.depth:
        return ()
    return (
        SpawnAgent(subagents),
        ManageSubagents(subagents, store, settings),
        BrowserTask(subagents),
        ComputerTask(subagents),
    )
