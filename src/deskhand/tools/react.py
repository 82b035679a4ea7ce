"""`react`: an emoji on a message of the person."""

from __future__ import annotations

from typing import Literal, get_args

from ..types.commit import Outgoing
from ..types.errors import ToolError
from ..types.identity import OWN_SURFACES
from ..types.reactions import EMOJIS
from .base import Context, Done, call_label, make_result
from .define import tool

Emoji = Literal[
    "👍", "👎", "❤", "🔥", "🎉", "👏", "😁", "🤣", "😢", "😱",
    "🤔", "🤯", "🥰", "🤩", "🙏", "👌", "👀", "💯", "⚡", "🏆",
]  # fmt: skip
assert set(get_args(Emoji)) == set(EMOJIS)


@tool(effect="send_owner", replay="commit")
async def react(emoji: Emoji, context: Context, message_id: str = "") -> Done:
    """Set an emoji on the newest message of this conversation, in place of an answer or beside it.

    message_id: another message, as the platform calls it
    """
    of = message_id or context.newest
    if context.address.channel in OWN_SURFACES or not of:
        raise ToolError("there is no message here on which an emoji can be set: answer in words")
    sent = Outgoing(f"{context.key}:react", context.address, (), of, reaction=emoji)
    done = make_result("on its way", call_label(context))
    return Done(done.parts, outbox=(sent,))
