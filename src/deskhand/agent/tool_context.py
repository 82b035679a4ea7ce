"""What a tool reaches while it runs for a session."""

from __future__ import annotations

from ..models.side_completion import Aside, Billing, ask_aside, cheapest_first
from ..tools.base import Context
from ..types.budget import make_charge
from ..types.door import Progress
from ..types.errors import ModelError, ToolError
from ..types.events import AskedAside
from ..types.messages import clean_text
from ..types.turn import OpenCall
from .session import Session


async def make_tool_context(session: Session, call: OpenCall) -> Context:
    """What this call reaches. Raises ToolError when the workspace cannot be opened."""
    runtime = session.runtime
    state = session.state
    turn = session.turn
    run = _RunningCall(session, call)
    return Context(
        session=session.name,
        principal=turn.principal,
        address=turn.address,
        agent=session.agent.name,
        reach=await session.agent.workspace.open_scope(),
        clock=runtime.clock,
        ids=runtime.ids,
        emit=run.emit,
        key=f"{session.name}#{call.n}.{call.call.id}",
        label=session.journal.turn_label,
        ask=run.ask,
        audience=state.audience,
        approved=call.yes_at is not None,
        person=state.person,
        options=state.options,
    )


class _RunningCall:
    """What a call shows and asks while it runs."""

    def __init__(self, session: Session, call: OpenCall) -> None:
        self._session = session
        self._call_id = call.call.id
        self._n = session.state.n
        self._secrets = session.runtime.secrets.stream()

    def emit(self, text: str) -> None:
        """Show output, without secrets. It may be dropped."""
        if self._secrets is not None:
            text = self._secrets.feed(text)
        progress = Progress("tool_output", self._n, text=text, call_id=self._call_id)
        self._session.runtime.publisher.publish(self._session.name, progress)

    async def ask(self, aside: Aside) -> str:
        """Ask the cheapest model of the agent once, outside the conversation. Raises ToolError."""
        session = self._session
        runtime = session.runtime
        agent = session.agent
        charge = make_charge(session.turn.principal, session.name, agent.name, "")
        billing = Billing(
            runtime.budgets,
            charge,
            ids=runtime.ids,
            kind="aside",
            record=session.journal.add_changes,
        )
        began = runtime.clock.monotonic()
        models = cheapest_first(agent.cheap_model, agent.models)
        try:
            aired = await ask_aside(aside, models, runtime.models.open, billing)
        except ModelError as error:
            raise ToolError(f"no model answered: {error}") from error
        took_s = round(runtime.clock.monotonic() - began, 3)
        session.journal.record(AskedAside(self._call_id, aired.model, aired.usage, took_s))
        return clean_text(aired.text)
