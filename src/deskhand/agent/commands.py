"""The chat commands: one table of name, role, help and handler, from which every surface lists them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..types.events import CommandRun
from ..types.identity import Command, Waiting
from .state import TURN, State

Handler = Callable[[State, str], str]
FRESH = "A fresh conversation: I no longer see what was said before."


class ChatCommand(msgspec.Struct, frozen=True):
    """`handler` is pure: it says what the person reads. What a command changes, the fold changes on `CommandRun`.
    `role` is needed to use it; '' for everyone who may talk here."""

    name: str
    help: str
    handler: Handler
    role: str = ""


def _help(state: State, args: str) -> str:
    return "\n".join(f"/{command.name}  {command.help}" for command in COMMANDS.values())


def _stop(state: State, args: str) -> str:
    if state.turn is not None:
        return ""  # the end of the turn says it
    if args == TURN:
        return "There was nothing left to stop."
    return "Nothing was running, so this conversation is closed. Write /start, or just a message, for a fresh one."


def _status(state: State, args: str) -> str:
    waits = next((call.ask.question for call in state.calls.values() if call.ask is not None), "")
    doing = f"Working: step {state.turn.steps + 1}." if state.turn else "Nothing is going on."
    doing = f"Waiting for you: {waits}" if waits else doing
    used = state.usage
    spent = f"Used so far: {used.input_tokens} tokens read, {used.output_tokens} written."
    return f"{doing}\nModel: {state.model or 'none called yet'}. {len(state.messages)} messages in view.\n{spent}"


COMMANDS: dict[str, ChatCommand] = {
    command.name: command
    for command in (
        ChatCommand("help", "this list", _help),
        ChatCommand("stop", "stop what is running; if nothing is, close the conversation", _stop),
        ChatCommand("start", "begin a fresh conversation; what was said stays in the log", lambda state, args: FRESH),
        ChatCommand("status", "what is going on, and what it has used", _status),
        ChatCommand("restart", "restart the service", lambda state, args: "I restart, and write here then.", "owner"),
    )
}


def run(state: State, row: Waiting, command: Command) -> CommandRun:
    """Carry out a command as far as words go. An unknown name or a missing role is answered, never ignored."""
    if row.principal.kind == "system":  # a note of our own: it says what it says
        return CommandRun(row.inbox_id, row.principal, command.name, "", command.args)
    known = COMMANDS.get(command.name)
    if known is None:
        reply = f"I do not know {command.prefix}{command.name}. {command.prefix}help lists what I know."
    elif known.role and known.role not in row.principal.roles:
        reply = f"{command.prefix}{command.name} is for {known.role}s."
    else:
        reply = known.handler(state, command.args)
    return CommandRun(row.inbox_id, row.principal, command.name, command.args, reply)
