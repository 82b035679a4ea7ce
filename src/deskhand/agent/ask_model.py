"""The step that calls the model: one request, its pieces shown as they come, one event at the
end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
from msgspec.structs import replace

from ..models.answer_schema import find_answer_problem
from ..models.base import Model, Reply, Request, TextDelta, is_selective
from ..models.chain import SILENT_WAIT_S
from ..models.client_request import apply_client_request, truncate_reply
from ..models.message_variants import next_mask_point
from ..models.stops import StopTexts
from ..models.usable import sanitize_reply
from ..models.window import TIGHT_WINDOW, estimate_max_tokens, fit_request
from ..tools.deferred import select_schemas
from ..types.budget import make_charge, settle_failed_call
from ..types.client import ClientRequest
from ..types.door import Progress
from ..types.errors import AnswerUnfit, BudgetSpent, MalformedReply, ModelError, StoreError
from ..types.events import Hinted, Masked, ModelFailed, ModelReplied, Turn
from ..types.identity import SYSTEM
from ..types.interrupt import Interrupt
from ..types.labels import LOCAL
from ..types.messages import Message, Text, Usage, clean_text
from ..types.secret_search import SecretStream
from ..types.steps import AskModel
from .journal import Journal
from .profile import Agent
from .state import State, build_context
from .step import answer_text
from .tracing import trace_request

REFRESH_STEPS = 10
"""So often a model is told in a long work, within one turn, how far it is."""


def build_request(
    agent: Agent, state: State, bare: Request, scale: float, opened: Callable[[str], Model]
) -> Request:
    """What the model `provider/name` of `bare` is asked, with those tools that are offered. Raises
    ContextOverflow."""
    tools = select_schemas(bare.tools, agent.tools, state.options)
    told = (
        bare.model.partition("/")[2],
        agent.prompt(state),
        build_context(state),
        tools,
        agent.limits.output_tokens,
    )
    request = Request(*told, agent.thinking, agent.temperature, bare.encoded, bare.blob)
    if state.turn is not None and state.turn.request is not None:
        request = apply_client_request(
            request, state.turn.request, tools="final" not in state.turn.hinted
        )
    limits = (
        agent.limits_for(bare.model)
        if agent.limits_for is not None and bare.model not in agent.models[:1]
        else agent.limits
    )
    whole = limits.window < TIGHT_WINDOW and is_selective(opened(bare.model))
    return request if whole else fit_request(request, limits, state.context_tokens, scale)


class Asking:
    """Calls models for one session. `partial` is what the model has said so far in a call that is
    still going on, which was begun with `recalled` memories."""

    def __init__(self, journal: Journal, interrupt: Interrupt) -> None:
        self._journal = journal
        self._interrupt = interrupt
        self._partial: list[str] = []
        self._attempt = 0
        self._key = ""
        self._begun = False
        self._searched: dict[float, int] = {}
        self._refreshed: tuple[float, int] = (0.0, 0)
        self._recalled = 0
        self._secrets: SecretStream | None = None

    def snapshot(self) -> Progress | None:
        """All the text of the reply that is being written, for who comes late."""
        if not self._partial:
            return None
        return Progress(
            "snapshot", self._journal.state.n + 1, self._attempt, 0, "".join(self._partial)
        )

    def _take_partial_text(self) -> str:
        held = self._secrets.close() if self._secrets is not None else ""
        return "".join(self._partial) + held

    async def run(self, step: AskModel, pause_s: float = 0.0) -> None:
        """Do the step after this pause: afterwards the log holds a reply or a failure. Only a stop
        leaves it without either."""
        journal = self._journal
        ports = self._journal.ports
        agent = journal.agent
        journal.record(*step.hints)
        state = journal.state
        window = agent.limits.window
        if up_to := next_mask_point(
            state.messages, state.masked_up_to, state.context_tokens, window
        ):
            journal.record(Masked(up_to))
        if not journal.can_defer_flush:
            await journal.flush()
        await self._recall()
        model = step.model or self._choose_model()
        self._partial = []
        self._key = ""
        self._begun = False
        reply = None
        failed = None
        with self._interrupt:
            try:
                if pause_s > 0:
                    await anyio.sleep(pause_s)
                tools = journal.schemas if step.tools else ()
                hooks = agent.hooks
                turn = journal.state.turn
                bare = Request(model, (), (), tools, encoded=journal.encoded, blob=ports.blob)
                request = build_request(
                    agent, journal.state, bare, ports.meter.scale(model), ports.open_model
                )
                if hooks is None or turn is None:
                    reply = await self._call_model(model, request)
                else:
                    reply = await hooks.around_llm(
                        journal.session, turn, request, partial(self._call_model, model)
                    )
            except ModelError as error:
                failed = error
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 -- a model from outside may raise anything; the person is told
                failed = ModelError(f"{model} failed: {type(error).__name__}: {error}")
        if failed is not None:
            journal.add_changes(
                settle_failed_call(journal.ports.budgets, self._key, begun=self._begun)
            )
            await self._record_failure(model, failed)
        elif reply is None and self._partial:
            reply = Reply(Message("assistant", (Text(self._take_partial_text()),)), "interrupted")
        if reply is not None:
            journal.record(
                ModelReplied(
                    sanitize_reply(reply.message, step.tools), model, reply.finish, reply.usage
                )
            )
        if failed is None:
            journal.add_changes(
                journal.ports.budgets.settle(self._key, reply.usage if reply else Usage())
            )
        self._partial = []
        self._attempt = 0 if reply is not None else self._attempt + 1

    async def enforce_schema(self, turn: Turn, wanted: ClientRequest) -> None:
        """Where a program wants an answer of a certain form: have the model repair one that has it
        not, once."""
        journal = self._journal
        if (
            wanted.answer_schema is None
            or turn.finish != "stop"
            or not turn.pieces
            or journal.state.calls
        ):
            return
        places = journal.ports.schema_limiter
        problem = clean_text(
            await find_answer_problem(answer_text(turn), wanted.answer_schema, places)
        )
        if problem and "schema" in turn.hinted:
            said = f"the answer does not fit the schema: {problem}"
            journal.record(ModelFailed(journal.state.model, AnswerUnfit.__name__, said))
        elif problem:
            said = (
                f"Your answer does not fit: {problem}. Answer again, with the whole JSON value "
                "and nothing else."
            )
            journal.record(Hinted("schema", said))

    async def _recall(self) -> None:
        """Look up what was said since the last time, and in a long work how far it is, each few
        steps; it is written with the reply."""
        state = self._journal.state
        turn = self._journal.state.turn
        recall = self._journal.agent.recall
        self._recalled = 0
        if turn is None or recall is None:
            return
        if len(turn.said) in (turn.recalled, self._searched.get(turn.opened_at)):
            step = (turn.opened_at, turn.steps + 1)
            if (
                state.options.mode != "deep_work"
                or step[1] % REFRESH_STEPS
                or step == self._refreshed
            ):
                return
            self._refreshed = step
        self._searched = {turn.opened_at: len(turn.said)}
        if (found := await recall(state)) is not None:
            self._journal.record(found)
            self._recalled = len(found.facts)

    def _choose_model(self) -> str:
        """The first model of the chain that is not to be left alone now."""
        journal = self._journal
        chosen = journal.ports.next_try(journal.agent.models, (), journal.ports.clock.now())
        return chosen[0] if chosen else ""

    async def _call_model(self, model: str, request: Request) -> Reply:
        journal = self._journal
        n = self._journal.state.n + 1
        offset = said = 0
        ports = journal.ports
        turn = journal.state.turn
        reply = None
        self._key = f"{journal.session}#{n}.{self._attempt}"
        charge = make_charge(
            turn.principal if turn else SYSTEM, journal.session, journal.agent.name, model
        )
        most = estimate_max_tokens(request, journal.state.context_tokens, ports.meter.scale(model))
        if spent := await ports.budgets.reserve(charge, most, self._key):
            raise BudgetSpent(spent)
        stops = StopTexts(request.stop) if request.stop else None
        first: dict[str, Any] = {
            "model": model,
            "recalled": self._recalled,
        }  # with the first piece: it costs no more
        if journal.state.options.tracing:
            for progress in trace_request(model, request, n=n, attempt=self._attempt):
                journal.publish_progress(progress)
        self._secrets = secrets = ports.secrets.stream()
        thoughts: SecretStream | None = None
        async with aclosing(ports.open_model(model).reply(request)) as items:  # type: ignore[type-var]
            async for item in items:
                self._begun = True
                if isinstance(item, TextDelta):
                    text = item.text if stops is None else stops.feed(item.text)
                    said += len(text)
                    text = text if secrets is None else secrets.feed(text)
                    if text:
                        self._partial.append(text)
                        journal.publish_progress(
                            Progress("text", n, self._attempt, offset, text, **first)
                        )
                        offset += len(text)
                        first = {}
                elif isinstance(item, Reply):
                    reply = item
                else:
                    thoughts = thoughts or ports.secrets.stream()
                    if text := item.text if thoughts is None else thoughts.feed(item.text):
                        journal.publish_progress(
                            Progress("thinking", n, self._attempt, 0, text, **first)
                        )
                        first = {}
        if reply is None:
            raise MalformedReply(f"{model} ended without a reply")
        if stops is not None and stops.stopped:
            reply = truncate_reply(reply, said)
        journal.ports.meter.learn(model, request, reply.usage.input_tokens)
        return reply

    async def _record_failure(self, model: str, error: ModelError) -> None:
        """Journal the failure and what is to be tried next."""
        journal = self._journal
        now = self._journal.ports.clock.now()
        failed = ModelFailed(
            model, type(error).__name__, clean_text(str(error)), retry_after_s=error.retry_after_s
        )
        before = journal.state.turn.failures if journal.state.turn else []
        again = journal.ports.next_try(journal.agent.models, (*before, failed), now)
        if self._partial:
            journal.publish_progress(Progress("reset", journal.state.n + 1, self._attempt))
        if again is not None:
            failed = replace(failed, next_model=again[0], retry_at=again[1])
        journal.record(failed, at=now)
        self._enqueue_wait_notice(failed, now)
        await journal.flush()

    def _enqueue_wait_notice(self, failed: ModelFailed, now: float) -> None:
        """Tell who waits for an answer on a channel until when that takes; elsewhere people see it
        in the log."""
        journal = self._journal
        turn = self._journal.state.turn
        until = failed.retry_at
        if (
            turn is None
            or until is None
            or until - now <= SILENT_WAIT_S
            or turn.principal.kind == "clock"
        ):
            return
        moment = datetime.fromtimestamp(until, journal.state.zone or UTC)
        said = (
            f"{failed.next_model} asks to wait. I will try again at {moment:%H:%M %Z}; /stop "
            "cancels that."
        )
        journal.enqueue_message(turn.address, (Text(said, LOCAL),))
