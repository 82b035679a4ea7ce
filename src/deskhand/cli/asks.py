"""How to answer what waits for a person, and where a conversation goes on."""

from __future__ import annotations

import shlex

from ..config.config import Settings
from ..runtime.app import App
from ..supervision.lock import read_holder
from ..types.identity import Address, Answer, Inbound, Receipt
from ..types.marked_texts import mark_text


async def submit_answer(app: App, ask: tuple[str, str], choice: str) -> Receipt:
    """Hand in the answer to (session, id of the ask). Once this returns it is durable."""
    session, ask_id = ask
    body = Answer(ask_id, choice)
    inbound = Inbound(
        app.parts.ids.new("answer"),
        Address("terminal"),
        "owner",
        app.parts.clock.now(),
        body,
        session,
    )
    return await app.door.submit(inbound)


def has_driver(settings: Settings) -> bool:
    """Whether a Deskhand is running that will take in what is handed in now."""
    return read_holder(settings.home.lock) is not None


def session_name(session: str, settings: Settings) -> str:
    """What a person calls a conversation: its name here, or its whole key where it is another
    agent's or elsewhere."""
    return session.removeprefix(f"{settings.resolve_agent()}/terminal:")


BECAUSE = mark_text("because {reason_text}")
CONTINUE_WITH = mark_text("Continue with: {command}")


def resume_command(session: str, settings: Settings) -> str:
    """The command that goes on with a conversation."""
    agent, _, place = session.partition("/")
    if not place.startswith("terminal:"):
        return f"deskhand --session {shlex.quote(session)}"
    named = "" if agent == settings.resolve_agent() else f" --agent {shlex.quote(agent)}"
    return f"deskhand{named} --session {shlex.quote(place.removeprefix('terminal:'))}"
