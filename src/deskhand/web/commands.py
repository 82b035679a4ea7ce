"""The chat commands, for surfaces that complete them."""

from __future__ import annotations

import msgspec

from ..types.commands import COMMANDS
from .routing import Call, Endpoint


class CommandView(msgspec.Struct, frozen=True):
    """`/name`, and what it does."""

    name: str
    help: str


async def list_commands(call: Call) -> list[CommandView]:
    roles = call.principal.roles
    return [
        CommandView(command.name, command.help)
        for command in COMMANDS.values()
        if not command.in_chats and (not command.role or command.role in roles)
    ]


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/commands",
        "read",
        list_commands,
        "List the chat commands that you may use",
        returns=list[CommandView],
        tag="conversations",
    ),
)
