"""What waits for a person: approvals and questions that are open, and how to answer them."""

from __future__ import annotations

import shlex

import msgspec

from ..agent.state import State, fold
from ..runtime.app import App
from ..runtime.config import Settings
from ..runtime.lock import holder_of
from ..store.base import Store
from ..types.events import ApprovalAsked, QuestionAsked
from ..types.identity import Address, Answer, Inbound, Receipt


class OpenAsk(msgspec.Struct, frozen=True):
    """Something that a conversation waits for. `at` and `until` are seconds since the epoch; if it is no
    `approval` it is a question."""

    id: str
    session: str
    question: str
    reason: str
    choices: tuple[str, ...]
    at: float
    until: float
    approval: bool


async def open_asks(store: Store) -> list[OpenAsk]:
    """All that are open, the oldest first."""
    found = []
    for row in await store.open_sessions():
        history = await store.history(row.session)
        state = State(row.session)
        state.n = history[0].n - 1 if history else 0
        waiting = {call.ask.ask_id for call in fold(state, history).calls.values() if call.ask is not None}
        for recorded in history:
            event = recorded.event
            if isinstance(event, ApprovalAsked | QuestionAsked) and event.ask_id in waiting:
                approval = isinstance(event, ApprovalAsked)
                reason = event.reason if isinstance(event, ApprovalAsked) else ""
                choices = event.choices if isinstance(event, QuestionAsked) else ("once", "always", "no", "never")
                asked = (event.ask_id, row.session, event.question, reason, choices, recorded.at, event.until, approval)
                found.append(OpenAsk(*asked))
    return sorted(found, key=lambda ask: ask.at)


async def answer(app: App, ask: OpenAsk | tuple[str, str], choice: str) -> Receipt:
    """Hand in the answer to an ask, or to (session, its id). Once this returns it is durable."""
    session, ask_id = (ask.session, ask.id) if isinstance(ask, OpenAsk) else ask
    body = Answer(ask_id, choice)
    inbound = Inbound(app.parts.ids.new("answer"), Address("terminal"), "owner", app.parts.clock.now(), body, session)
    return await app.door.submit(inbound)


def somebody_drives(settings: Settings) -> bool:
    """Whether a Deskhand is running that will take in what is handed in now."""
    return holder_of(settings.home.lock) is not None


def name_of(session: str, settings: Settings) -> str:
    """What a person calls a conversation: its name here, or its whole key where it is another agent's or elsewhere."""
    return session.removeprefix(f"{settings.choose()}/terminal:")


def back_to(session: str, settings: Settings) -> str:
    """The command that goes on with a conversation."""
    agent, _, place = session.partition("/")
    if not place.startswith("terminal:"):
        return f"deskhand --session {shlex.quote(session)}"
    named = "" if agent == settings.choose() else f" --agent {shlex.quote(agent)}"
    return f"deskhand{named} --session {shlex.quote(place.removeprefix('terminal:'))}"
