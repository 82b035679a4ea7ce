"""Whether a task may be given to a sub-agent, and what is stored of it."""

from __future__ import annotations

from hashlib import sha256

import msgspec
from msgspec.structs import replace

from ..config.config import Settings
from ..policy.roles import may_talk
from ..tools.base import Context
from ..types.errors import ToolError
from ..types.identity import EVERYBODY, Principal
from ..types.labels import LOCAL, join_labels
from ..types.messages import clean_text
from ..types.options import SessionOptions
from ..types.subagents import SubagentTask, TaskRequest
from ..types.trace_ids import SpanParent
from .kinds import KINDS, STAND_INS, TEAMMATE

MAX_TASK_CHARS = 50_000
TITLE_CHARS = 60
MAX_DEPENDENCIES = 20


class Member(msgspec.Struct, frozen=True):
    """A member of a team: its name, and what its system prompt says of it. With `plans` it only
    looks until the lead has said yes to its plan."""

    name: str
    identity: str
    plans: bool = False


class NewTask(msgspec.Struct, frozen=True):
    """A task as a model gives it. `agent` is a kind, an agent by name, or '' for the same agent
    once more. `waits`: the call rests until there is a result. `member` is what it is in a team.
    `plays` is a kind of STAND_INS: the task is a script, which works in the place of a model."""

    task: str
    agent: str = ""
    label: str = ""
    waits: bool = True
    depends_on: tuple[str, ...] = ()
    member: Member | None = None
    plays: str = ""


def new_id(context: Context) -> str:
    """The id of the sub-agent that this call begins: the same for the same call, also after a
    crash."""
    return sha256(context.key.encode()).hexdigest()[:12]


def make_request(
    wish: NewTask, context: Context, settings: Settings, parent: SubagentTask | None
) -> tuple[str, TaskRequest]:
    """The name of the agent that works on it, and what is stored. `parent` is the task on which the
    conversation of this call works, where that is a sub-agent's. Raises ToolError."""
    if len(wish.depends_on) > MAX_DEPENDENCIES:
        raise ToolError(f"a task may depend on at most {MAX_DEPENDENCIES} others")

    agents = parent.request.agents if parent is not None else (context.agent,)
    agent, kind = _choose_agent(wish.agent, context, settings)
    if agent != context.agent and agent in agents:
        chain = " -> ".join((*agents, agent))
        raise ToolError(f"this would go round in circles: {chain}. Do it yourself")
    if parent is not None and not wish.waits:
        raise ToolError(
            "a sub-agent waits for those that it begins, as nobody hears of them once it has ended"
        )
    path = parent.request.path if parent is not None else ()
    member = wish.member
    kind = _kind_of(wish) or kind
    depth = settings.config.subagents.depth
    if len(path) >= depth:
        raise ToolError(f"sub-agents are at most {depth} deep: do it yourself")

    request = TaskRequest(
        principal=context.principal,
        task=clean_task(wish.task),
        label=join_labels((LOCAL, context.label)),
        audience=context.audience,
        call_id=context.call_id,
        kind=kind,
        teammate=member.name if member is not None else "",
        identity=member.identity if member is not None else "",
        waits=wish.waits,
        shared=context.person == EVERYBODY,
        address=context.address,
        root=parent.request.root if parent is not None else context.session,
        job=parent.request.job if parent is not None else _job_of(context.principal),
        people=parent.request.people if parent is not None else context.address,
        path=(
            *path,
            make_title(wish.label or wish.task, _name_of(wish) or kind or agent),
        ),
        agents=(*agents, agent),
        plans=member is not None and member.plans,
        depends_on=wish.depends_on,
        span=_find_span(context, parent),
    )
    options = make_options(context.options, request, models=agent == context.agent)
    return agent, replace(request, options=options)


def _find_span(context: Context, parent: SubagentTask | None) -> SpanParent | None:
    """That of the call, in the trace that the task `parent` is in, where there is one."""
    if context.span is None or parent is None or parent.request.span is None:
        return context.span
    return replace(context.span, trace_id=parent.request.span.trace_id)


def _kind_of(wish: NewTask) -> str:
    if wish.plays:
        return wish.plays
    return TEAMMATE if wish.member is not None else ""


def _name_of(wish: NewTask) -> str:
    return wish.member.name if wish.member is not None else ""


def make_options(given: SessionOptions, request: TaskRequest, *, models: bool) -> SessionOptions:
    """How the sub-agent works whose conversation is held so above it. `models`: by the same models,
    too."""
    options = _inherit_options(given, models=models and request.kind not in STAND_INS)
    if not request.teammate:
        return options
    plans = request.plans or bool(options.plan_mode)
    return replace(options, teams=True, plan_mode=plans, system_prompt=request.identity)


def make_follow_up(
    text: str,
    context: Context,
    settings: Settings,
    last: TaskRequest,
    parent: SubagentTask | None = None,
) -> TaskRequest:
    """What is stored of a further task for whoever worked on `last`; `parent` as in `make_request`.
    Raises ToolError."""
    agent = last.agents[-1]
    if agent != context.agent:
        check_other_agent(agent, context.agent, context.principal, settings)
    return replace(
        last,
        principal=context.principal,
        task=clean_task(text),
        label=join_labels((LOCAL, context.label)),
        audience=context.audience,
        call_id=context.call_id,
        waits=False,
        shared=last.shared or context.person == EVERYBODY,
        address=context.address,
        options=make_options(context.options, last, models=agent == context.agent),
        depends_on=(),
        span=_find_span(context, parent),
    )


def clean_task(text: str) -> str:
    """Raises ToolError where there is nothing to do, or too much to say."""
    text = clean_text(text).strip()
    if not text:
        raise ToolError("the task is empty: say what is to be done")
    if len(text) > MAX_TASK_CHARS:
        raise ToolError(
            f"the task has {len(text):,} characters, and at most {MAX_TASK_CHARS:,} fit: name a "
            "file instead"
        )
    return text


def _choose_agent(name: str, context: Context, settings: Settings) -> tuple[str, str]:
    """The agent and the kind that this names. Raises ToolError."""
    if not name or name == context.agent:
        return context.agent, ""
    if name in settings.agents:
        check_other_agent(name, context.agent, context.principal, settings)
        return name, ""
    if name in KINDS:
        return context.agent, name
    others = ", ".join((*KINDS, *settings.agents))
    raise ToolError(f"there is no agent {name!r}; there are: {others}")


def check_other_agent(name: str, own: str, principal: Principal, settings: Settings) -> None:
    """Raises ToolError where the agent `own` may not give this one a task for this principal."""
    custom = {role: each.agents for role, each in settings.config.roles.items()}
    person = Principal(principal.on_behalf_of or principal.id, principal.roles)
    if not may_talk(person, name, custom):
        raise ToolError(f"{person.id} may not talk to the agent {name!r}, so you may not either")
    if settings.agent(name).sandbox is False and settings.agent(own).sandbox is not False:
        raise ToolError(
            f"the agent {name!r} works outside the sandbox and {own!r} does not: a person may ask "
            "it, you may not"
        )


def _job_of(principal: Principal) -> str:
    return principal.id.removeprefix("job:") if principal.kind == "clock" else ""


def make_title(task: str, who: str) -> str:
    """What a list calls this task: who works on it, and its first words."""
    words = " ".join(clean_text(task).split())
    if len(words) > TITLE_CHARS:
        words = f"{words[:TITLE_CHARS].rstrip()}\N{HORIZONTAL ELLIPSIS}"
    return f"{who}: {words}"


def _inherit_options(options: SessionOptions, *, models: bool) -> SessionOptions:
    """What holds in the conversation, and so for those that work for it; `models`: also which model
    answers, and how."""
    return SessionOptions(
        model=(options.model or "") if models else None,
        thinking=(options.thinking or "") if models else None,
        approval=bool(options.approval),
        plan_mode=bool(options.plan_mode),
        trust=options.trust or (),
        tracing=bool(options.tracing),
    )
