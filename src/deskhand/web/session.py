"""One conversation: what it is, how it is held, what it came to, and going back in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from ..agent.fold import fold
from ..agent.rewind import RewindView
from ..agent.state import State
from ..store.queries import options_of
from ..types import events as e
from ..types.errors import Refused, StaleSession
from ..types.identity import Command
from ..types.messages import (
    Audio,
    File,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from ..types.options import FOLDER_CHARS, SessionOptions
from .conversations import (
    Attached,
    ReceiptView,
    Say,
    SessionView,
    build_message,
    make_session_views,
    submit_body,
    to_receipt_view,
)
from .errors import HttpProblem, bad_request, to_sentence
from .folders import make_folder_name
from .names import format_session_name
from .routing import Call, Endpoint
from .views import ErasedView, SpanView
from .visible_sessions import require_row, require_session, session_from_path

Place = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class OptionsView(msgspec.Struct, frozen=True):
    """How it is held. None: as the agent is."""

    model: str | None
    thinking: str | None
    preset: str | None
    system_prompt: str | None
    approval: bool
    plan_mode: bool
    teams: bool
    tracing: bool
    mode: str


class DetailView(msgspec.Struct, frozen=True):
    """A conversation with its options and what it has used. `running`: something is going on in
    it."""

    session: SessionView
    options: OptionsView
    usage: Usage
    model: str
    events: int
    running: bool


class Options(msgspec.Struct, frozen=True):
    """What is to change; what is left out stays."""

    title: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    model: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    thinking: Literal["", "off", "low", "medium", "high", "max"] | None = None
    preset: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    system_prompt: Annotated[str, msgspec.Meta(max_length=100_000)] | None = None
    approval: bool | None = None
    plan_mode: bool | None = None
    teams: bool | None = None
    tracing: bool | None = None
    mode: Literal["", "normal", "deep_work"] | None = None
    pinned: bool | None = None
    folder: Annotated[str, msgspec.Meta(max_length=FOLDER_CHARS)] | None = None
    archived: bool | None = None


class Back(msgspec.Struct, frozen=True):
    """Go back to how it was after event `to_n`; with `text` or `files`, say that next (edit and
    resend)."""

    to_n: Place
    text: str = ""
    files: Annotated[tuple[Attached, ...], msgspec.Meta(max_length=20)] = ()


class EventPlace(msgspec.Struct, frozen=True):
    at_n: Place


class AtN(msgspec.Struct, frozen=True):
    """`n` is the number of an event; without it, the last."""

    n: Place | None = None


class BranchView(msgspec.Struct, frozen=True):
    name: str
    key: str


class ShownView(msgspec.Struct, frozen=True):
    """A message as the model sees it after that event; `n` is the event that it came with."""

    n: int
    role: str
    text: str


class DecisionView(msgspec.Struct, frozen=True):
    """What was decided about a call, and why."""

    n: int
    call_id: str
    tool: str
    verdict: Literal["allowed", "asked", "denied"]
    reason: str


class StateView(msgspec.Struct, frozen=True):
    """How the conversation was after event `n`: what the model saw of it, the prompt before that
    (shown to owners), the tokens used and what was decided up to there. `rest`: no turn was open,
    so that one can go back to it. The turns before and after it ended with these events."""

    n: int
    rest: bool
    turn_before: int | None
    turn_after: int | None
    context: list[ShownView]
    prompt: list[str]
    usage: Usage
    decisions: list[DecisionView]


async def load_state(call: Call, session: str) -> State:
    return fold(State(session), await call.web.store.events(session))


async def get_detail(call: Call) -> DetailView:
    session = await require_session(call)
    state = await load_state(call, session)
    row = await require_row(call, session)
    options = _make_options_view(state.options)
    return DetailView(
        (await make_session_views([row], call))[0],
        options,
        state.usage,
        state.model,
        state.n,
        state.turn is not None,
    )


async def get_options(call: Call) -> OptionsView:
    """Without reading the conversation, however long it is."""
    return _make_options_view(await options_of(call.web.store, await require_session(call)))


def _make_options_view(given: SessionOptions) -> OptionsView:
    return OptionsView(
        given.model or None,
        given.thinking or None,
        given.preset or None,
        given.system_prompt or None,
        bool(given.approval),
        bool(given.plan_mode),
        bool(given.teams),
        bool(given.tracing),
        given.mode or "normal",
    )


async def configure(call: Call) -> ReceiptView:
    """A conversation that has not begun may be set up too: its first message then finds it so."""
    session = session_from_path(call)
    options = msgspec.convert(msgspec.structs.asdict(call.body), SessionOptions)
    if options.folder:
        options = replace(options, folder=make_folder_name(options.folder))
    return to_receipt_view(call, await call.web.door.configure(session, call.principal, options))


async def erase(call: Call) -> ErasedView:
    return await call.web.admin.erase(call.principal, await require_session(call))


async def rewind(call: Call) -> ReceiptView:
    session = await require_session(call)
    back = call.body
    message = (
        await build_message(call, Say(back.text, back.files))
        if back.text.strip() or back.files
        else None
    )
    past = await load_past(call, session)
    rest = _find_rest(past, back.to_n)
    if rest != back.to_n:
        said = (
            f"Event {back.to_n} is in the middle of a turn. The turn before it ended with event "
            f"{rest}."
        )
        raise HttpProblem(409, "not_at_rest", said)
    return to_receipt_view(
        call, await call.web.door.rewind(session, call.principal, back.to_n, message)
    )


async def load_past(call: Call, session: str) -> RewindView:
    return RewindView(session, await call.web.store.events(session))


def _find_rest(past: RewindView, n: int) -> int:
    try:
        return past.find_rest(n)
    except Refused as error:
        raise bad_request(to_sentence(str(error))) from error


async def retry(call: Call) -> ReceiptView:
    return await submit_body(call, await require_session(call), Command("retry"), Say())


async def branch(call: Call) -> BranchView:
    session = await require_session(call)
    at_n = call.body.at_n
    _find_rest(await load_past(call, session), at_n)
    try:
        receipt = await call.web.door.branch(session, call.principal, at_n)
    except StaleSession:  # it was branched there before
        other = f"{session}.{call.web.ids.new('b')}"
        receipt = await call.web.door.branch(session, call.principal, at_n, other)
    if receipt.status == "refused":
        raise HttpProblem(403, "refused", to_sentence(receipt.reason))
    return BranchView(
        format_session_name(receipt.session, call.principal, call.web.admin.agents[0]),
        receipt.session,
    )


async def get_state(call: Call) -> StateView:
    session = await require_session(call)
    log = await call.web.store.events(session)
    n = len(log) if call.query.n is None else call.query.n
    if n > len(log):
        raise bad_request(f"There is no event {n}: this conversation has {len(log)}.")
    then = fold(State(session), log[:n])
    redact = call.web.redact
    context = [
        ShownView(each.n, each.message.role, redact(render_message(each.message)))
        for each in then.messages
    ]
    owner = "owner" in call.principal.roles  # what an agent is told is between it and its owner
    prompt = [redact(block) for block in call.web.admin.build_prompt(then)] if owner else []
    ends = [each.n for each in log if isinstance(each.event, e.TurnEnded)]
    before = next((end for end in reversed(ends) if end < n), None)
    after = next((end for end in ends if end > n), None)
    decided = list(iter_decisions(log[:n], redact))
    return StateView(n, then.turn is None, before, after, context, prompt, then.usage, decided)


def render_message(message: Message) -> str:
    """A message as one text, with what is no text named in brackets."""
    return "\n".join(filter(None, map(_render_part, message.parts)))


def _render_part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Thinking(text=text):
            return f"[thinking] {text}" if text else ""
        case ToolCall(name=name, arguments=arguments):
            return f"[{name}] {bytes(arguments).decode(errors='replace')}"
        case ToolResult():
            return part.text
        case File(name=name, shown=shown):
            return shown or f"[file {name}]"
        case Image(name=name):
            return f"[image {name}]".replace(" ]", "]")
        case Audio(transcript=transcript):
            return transcript or "[audio]"


def iter_decisions(
    log: Sequence[e.Recorded], redact: Callable[[str], str]
) -> Iterator[DecisionView]:
    """What became of each call that the policy judged."""
    names: dict[str, str] = {}
    asked: set[str] = set()
    for each in log:
        match each.event:
            case e.ModelReplied(message=message):
                names |= {call.id: call.name for call in message.calls}
            case e.ApprovalAsked(calls=calls, reason=reason):
                asked |= {call.call_id for call in calls}
                for call in calls:
                    name = names.get(call.call_id, "")
                    yield DecisionView(each.n, call.call_id, name, "asked", redact(reason))
            case e.ToolFinished(result=result) if result.status == "denied":
                yield DecisionView(
                    each.n,
                    result.call_id,
                    names.get(result.call_id, ""),
                    "denied",
                    redact(result.text),
                )
            case e.CallClosed(call_id=call_id, status="denied", reason=reason):
                yield DecisionView(
                    each.n, call_id, names.get(call_id, ""), "denied", redact(reason)
                )
            case e.ToolFinished(result=result, allowed=allowed) if allowed or (
                result.call_id in asked and result.status in ("ok", "error")
            ):
                yield DecisionView(
                    each.n,
                    result.call_id,
                    names.get(result.call_id, ""),
                    "allowed",
                    redact(allowed or "a person said yes"),
                )
            case _:
                pass


async def get_trace(call: Call) -> list[SpanView]:
    return await call.web.admin.trace(await require_session(call))


_S = "/api/sessions/{name}"
_T = "conversations"
ENDPOINTS = (
    Endpoint(
        "GET",
        _S,
        "read",
        get_detail,
        "Get a conversation and its options",
        returns=DetailView,
        tag=_T,
    ),
    Endpoint(
        "GET",
        f"{_S}/options",
        "read",
        get_options,
        "Get the options of a conversation alone",
        returns=OptionsView,
        tag=_T,
    ),
    Endpoint(
        "PATCH",
        _S,
        "chat",
        configure,
        "Set the options of a conversation",
        body=Options,
        returns=ReceiptView,
        status=202,
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        _S,
        "chat",
        erase,
        "Erase a conversation, and what was remembered from it alone",
        returns=ErasedView,
        tag=_T,
    ),
    Endpoint(
        "POST",
        f"{_S}/rewind",
        "chat",
        rewind,
        "Go back in a conversation, and go on from there with another message if you want",
        body=Back,
        returns=ReceiptView,
        status=202,
        tag=_T,
    ),
    Endpoint(
        "POST",
        f"{_S}/retry",
        "chat",
        retry,
        "Answer the last message again",
        returns=ReceiptView,
        status=202,
        tag=_T,
    ),
    Endpoint(
        "POST",
        f"{_S}/branch",
        "chat",
        branch,
        "Start another conversation from a copy of this one",
        body=EventPlace,
        returns=BranchView,
        status=201,
        tag=_T,
    ),
    Endpoint(
        "GET",
        f"{_S}/state",
        "read",
        get_state,
        "Get the state of a conversation after an event",
        query=AtN,
        returns=StateView,
        tag=_T,
    ),
    Endpoint(
        "GET",
        f"{_S}/trace",
        "read",
        get_trace,
        "Get the turns of a conversation, with their model and tool calls",
        returns=list[SpanView],
        tag=_T,
    ),
)
