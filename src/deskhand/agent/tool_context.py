"""What a tool reaches while it runs for a session."""

from __future__ import annotations

from ..models.side_completion import Aside, Billing, ask_aside, cheapest_first
from ..tools.base import Context
from ..types.budget import make_charge
from ..types.door import Progress
from ..types.errors import ModelError, ToolError
from ..types.events import AskedAside
from ..types.messages import clean_text
from ..types.secret_search import SecretStream
from ..types.trace_ids import SpanParent, make_span_id, make_trace_id
from ..types.turn import OpenCall
from .session import Session


async def make_tool_context(session: Session, call: OpenCall) -> Context:
    """What this call reaches. Raises ToolError when the workspace cannot be opened."""
    runtime = session.runtime
    agent = session.agent
    state = session.state
    turn = session.turn
    return CallContext(
        session=session.name,
        principal=turn.principal,
        address=turn.address,
        agent=agent.name,
        reach=await agent.workspace.open_scope(),
        clock=runtime.clock,
        ids=runtime.ids,
        key=f"{session.name}#{call.n}.{call.call.id}",
        label=session.journal.turn_label,
        audience=state.audience,
        approver=call.yes_by,
        person=state.person,
        options=state.options,
        running=session,
        call_id=call.call.id,
        membership=agent.membership,
        answer=call.answer if call.resumes else None,
        newest=turn.heard[-1] if turn.heard else "",
        n=state.n,
        secrets=runtime.secrets.stream(),
    )


class CallContext(Context, frozen=True, kw_only=True):
    """The context of a call that a session is running. Output is shown as that of event `n`."""

    running: Session
    n: int
    secrets: SecretStream | None

    @property
    def span(self) -> SpanParent:
        state = self.running.state
        trace_id = make_trace_id(self.session, self.running.turn.answers[0])
        n = state.calls[self.call_id].n
        return SpanParent(trace_id, make_span_id(self.session, n, self.call_id))

    def emit(self, text: str) -> None:
        if self.secrets is not None:
            text = self.secrets.feed(text)
        progress = Progress("tool_output", self.n, text=text, call_id=self.call_id)
        self.running.runtime.publisher.publish(self.session, progress)

    async def ask(self, aside: Aside) -> str:
        session = self.running
        runtime = session.runtime
        agent = session.agent
        billing = Billing(
            runtime.budgets,
            make_charge(self.principal, self.session, agent.name, ""),
            ids=runtime.ids,
            kind="aside",
            record=session.journal.add_changes,
        )
        began = runtime.clock.monotonic()
        models = cheapest_first(agent.cheap_model, agent.stands_in_for or agent.models)
        try:
            aired = await ask_aside(aside, models, runtime.models.open, billing)
        except ModelError as error:
            raise ToolError(f"no model answered: {error}") from error
        took_s = round(runtime.clock.monotonic() - began, 3)
        session.journal.record(AskedAside(self.call_id, aired.model, aired.usage, took_s))
        return clean_text(aired.text)
