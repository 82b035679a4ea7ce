"""Tools that talk: think aloud, ask the person, send a message, read on in a long output."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ..types.commit import Outgoing
from ..types.effects import Effect
from ..types.errors import BlobMissing, ToolError
from ..types.identity import Address
from ..types.labels import LOCAL, join_labels
from ..types.messages import Text, clean_text
from .base import Context, Done, Outcome, PersonQuestion, Spec, call_label, make_result
from .define import decode_arguments, make_schema, tool
from .label_marks import load_blob_label
from .output import PIECE_BYTES, utf8_boundary


@tool
async def think(thought: str, context: Context) -> Done:
    """Think in words, before something difficult. It changes nothing.

    thought: what you think
    """
    return make_result("noted", call_label(context))


@tool
async def ask_user(question: str, context: Context, choices: list[str] = []) -> PersonQuestion:  # noqa: B006 -- becomes a schema
    """Ask the person what you cannot find out yourself."""
    return PersonQuestion(question, tuple(choices))


@tool
async def read_output(handle: str, context: Context, offset: int = 0) -> Done:
    """Read on in an output, by the handle in its note."""
    try:
        data = await context.reach.host.get_blob(handle.strip("'\" "))
    except BlobMissing as error:
        raise ToolError(f"{error}; run the command or read the file again") from error
    if not 0 <= offset < max(len(data), 1):
        raise ToolError(f"offset {offset} is out of range: there are {len(data)} bytes")
    end = utf8_boundary(data, offset + PIECE_BYTES)
    more = f"; go on with offset={end}" if end < len(data) else ""
    note = f"\n[bytes {offset}-{end} of {len(data)}{more}]"
    label = join_labels((await load_blob_label(handle.strip("'\" "), context), LOCAL))
    return Done((Text(clean_text(data[offset:end].decode(errors="replace")) + note, label),))


class OutgoingMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `send_message`. Without `channel` and `chat` it goes to this
    conversation."""

    text: str
    channel: str = ""
    chat: str = ""
    thread_id: str = ""


class GivenMessage(OutgoingMessage, frozen=True, forbid_unknown_fields=True):
    """With what models give that know the tool from elsewhere: `ask` waits for an answer. How long
    is not theirs to say."""

    ask: bool = False
    timeout: float | None = None


class SendMessage:
    """Says something before the turn ends, here or elsewhere. It is in the outbox when the call is
    done.

    `reads_log` are the channels whose people read the log itself: nothing is sent there.
    """

    def __init__(self, reads_log: frozenset[str]) -> None:
        self._reads_log = reads_log
        self.effects: tuple[Effect, ...] = ("send_owner", "send_other")
        description = "Send a message before your answer: here, or to another chat."
        self.spec = Spec(
            "send_message", description, make_schema(OutgoingMessage), "send_owner", "commit"
        )

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            message = decode_arguments(arguments, GivenMessage, self.spec.name)
            return "send_owner" if resolve_address(message, address) == address else "send_other"
        except ToolError:
            return "send_owner"  # it will not be sent

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        message = decode_arguments(arguments, GivenMessage, self.spec.name)
        if not message.text.strip():
            raise ToolError("the text is empty")
        address = resolve_address(message, context.address)
        if message.ask:
            if address != context.address:
                raise ToolError("people can be asked only in their own conversation: ask here")
            return PersonQuestion(message.text, ())
        if address.channel in self._reads_log:
            if address != context.address:
                raise ToolError(
                    f"people on {address.channel!r} can read only their own conversations; say "
                    "it in the answer"
                )
            return make_result("shown in the conversation", call_label(context))
        outgoing = Outgoing(f"{context.key}:send", address, (Text(message.text),))
        return Done(
            make_result(f"on its way, as {outgoing.key}", call_label(context)).parts,
            outbox=(outgoing,),
        )


class Addressed(Protocol):
    """Arguments that say where something is to go."""

    @property
    def channel(self) -> str: ...
    @property
    def chat(self) -> str: ...
    @property
    def thread_id(self) -> str: ...


def resolve_address(message: Addressed, here: Address) -> Address:
    """Where it goes; without channel and chat, here. Raises ToolError where the chat is missing."""
    channel = message.channel or here.channel
    if channel == here.channel and message.chat in ("", here.chat):
        return msgspec.structs.replace(here, thread=message.thread_id or here.thread)
    if not message.chat:
        raise ToolError(f"name the chat of {channel!r}")
    return Address(
        channel, here.account if channel == here.channel else "", message.chat, message.thread_id
    )


TOOLS = (think, ask_user, read_output)
