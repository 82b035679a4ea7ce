"""Hooks: code from outside that sees, and at three points changes, what an agent does."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, Protocol, get_args

import anyio
import msgspec
from msgspec.structs import replace

from ..models.base import ContextMessage, Encoded, Reply, Request
from ..types.events import ModelFailed
from ..types.identity import Address, Principal
from ..types.labels import LOCAL, Label
from ..types.messages import Message, ResultStatus, Text, ToolCall, ToolResult, clean_text
from .base import Done, Outcome, Spec

log = logging.getLogger(__name__)

HookName = Literal[
    "before_agent_start",
    "after_agent_start",
    "before_agent_end",
    "after_agent_end",
    "before_llm_call",
    "after_llm_call",
    "before_tool_call",
    "after_tool_call",
]
HOOKS: tuple[HookName, ...] = get_args(HookName)
HANDLER_S = 10.0
"""One handler may take so long; then it is left, and the turn goes on without it."""


class HookContext(msgspec.Struct):
    """What a handler is given. It counts what stands in it when the handler returns:

    - `before_llm_call`: `messages`, for this one call. The log is never changed. Every call in them
      must still be followed by its result.
    - `before_tool_call`: with `skip` the tool is not run, and `result` is told to the model under
      `status` and `label` (at first that of what the tool reads).
    - `before_agent_end`: `response`, unless it is empty. It is what is logged as said, and what is
      sent.

    Everything else is there to be read: `said` by people in this turn, the `model`, its `reply`,
    the `call`, and how a tool's call ended, in `result` and `status`. `reason` says why the turn
    ends.
    """

    session: str
    agent: str
    principal: Principal
    address: Address
    said: tuple[str, ...] = ()
    model: str = ""
    messages: list[Message] = []
    reply: Message | None = None
    call: ToolCall | None = None
    skip: bool = False
    result: str = ""
    status: ResultStatus = "denied"
    label: Label = LOCAL
    response: str = ""
    reason: str = ""


Handler = Callable[[HookContext], Awaitable[None]]


class OpenHooks(Protocol):
    """The turn in which a hook is fired."""

    principal: Principal
    address: Address
    said: list[str]
    steps: int
    failures: list[ModelFailed]


class PluginHooks:
    """The handlers of one agent; those of one hook run one after the other, each for at most
    HANDLER_S.

    What a handler raises is logged and what it changed is dropped; it never ends a turn. Each runs
    before anything that depends on it is written, so after a crash the same hook may run again for
    the same step.
    """

    def __init__(
        self,
        agent: str,
        handlers: Mapping[HookName, Sequence[Handler]],
        handler_s: float = HANDLER_S,
    ) -> None:
        self._agent = agent
        self._handlers = handlers
        self._handler_s = handler_s

    def has(self, name: HookName) -> bool:
        """Whether anybody listens to this hook."""
        return bool(self._handlers.get(name))

    async def around_llm(
        self,
        session: str,
        turn: OpenHooks,
        request: Request,
        call: Callable[[Request], Awaitable[Reply]],
    ) -> Reply:
        """Make the call, with the messages that the handlers leave. The first of a turn is its
        start."""
        if turn.steps == 0 and not turn.failures:
            await self._fire("before_agent_start", self._make_context(session, turn))
            await self._fire("after_agent_start", self._make_context(session, turn))
        context = replace(self._make_context(session, turn), model=request.model)
        before = replace(context, messages=[shown.message for shown in request.messages])
        after = await self._fire("before_llm_call", before)
        if (
            after.messages != before.messages
        ):  # other messages have other bytes: none that were kept may be used
            shown = tuple(ContextMessage(i, message) for i, message in enumerate(after.messages))
            request = replace(request, messages=shown, encoded=Encoded())
        reply = await call(request)
        await self._fire(
            "after_llm_call", replace(context, messages=after.messages, reply=reply.message)
        )
        return reply

    async def around_tool(
        self,
        session: str,
        turn: OpenHooks,
        spec: Spec,
        call: ToolCall,
        run: Callable[[], Awaitable[Outcome]],
    ) -> Outcome:
        """Run the tool, unless a handler skips it. Policy has allowed exactly this call, so that it
        cannot be changed any more."""
        context = replace(self._make_context(session, turn), call=call)
        asked = await self._fire("before_tool_call", replace(context, label=spec.reads))
        if asked.skip:
            label = asked.label if asked.result else LOCAL
            said = asked.result or f"{spec.name} was not run: a hook skipped it"
            return Done((Text(clean_text(said), label),), asked.status)
        outcome = await run()
        if isinstance(outcome, Done):
            result = ToolResult(call.id, outcome.parts).text
            status = outcome.status
            await self._fire("after_tool_call", replace(context, result=result, status=status))
        return outcome

    async def before_end(self, session: str, turn: OpenHooks, response: str, reason: str) -> str:
        """What is said at the end of the turn."""
        context = replace(self._make_context(session, turn), response=response, reason=reason)
        said = clean_text((await self._fire("before_agent_end", context)).response)
        return said if said.strip() else response

    async def after_end(self, session: str, turn: OpenHooks, response: str, reason: str) -> None:
        """The end of the turn is on disk."""
        context = replace(self._make_context(session, turn), response=response, reason=reason)
        await self._fire("after_agent_end", context)

    def _make_context(self, session: str, turn: OpenHooks) -> HookContext:
        return HookContext(session, self._agent, turn.principal, turn.address, tuple(turn.said))

    async def _fire(self, name: HookName, context: HookContext) -> HookContext:
        """The context as the handlers leave it."""
        for handler in self._handlers.get(name, ()):
            given = replace(context, messages=list(context.messages))
            try:
                with anyio.fail_after(self._handler_s):
                    await handler(given)
                _check_context(given)
            except Exception:
                log.exception(
                    "the hook %s of %r failed; the turn continues without it", name, handler
                )
            else:
                context = given
        return context


def _check_context(context: HookContext) -> None:
    """Raises TypeError, ValueError for what nobody could go on with: a plugin is not
    type-checked."""
    if not (isinstance(context.response, str) and isinstance(context.result, str)):
        raise TypeError("`response` and `result` must be text")
    if context.skip and (
        context.status not in ("ok", "denied") or not isinstance(context.label, Label)
    ):
        raise TypeError(
            "for a skipped call, `status` must be ok or denied, and `label` must be a Label"
        )
    if not all(isinstance(message, Message) for message in context.messages):
        raise TypeError("`messages` must be Message structs")
    open_calls: set[str] = set()
    for message in context.messages:
        results = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
        if not results <= open_calls or (open_calls and not results):
            raise ValueError(
                "in `messages`, every call must be followed by its result, and every result must "
                "follow its call"
            )
        open_calls = (open_calls - results) | {call.id for call in message.calls}
    if open_calls:
        raise ValueError("in `messages` every call is followed by its result")
