"""`send_file`: a file of the workspace, sent as a file."""

from __future__ import annotations

import mimetypes
from pathlib import PurePosixPath

import anyio.to_thread
import msgspec

from ..types.commit import Outgoing, SayPart
from ..types.effects import Effect
from ..types.errors import ToolError
from ..types.identity import Address
from ..types.labels import LOCAL
from ..types.messages import File, Image, Text, clean_text
from .base import Context, Done, Outcome, Spec, call_label
from .conversation_tools import resolve_address
from .define import decode_arguments, make_schema
from .label_marks import load_marks
from .paths import OpenedFile, Place

MAX_BYTES = 50 << 20
PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp"})
"""What platforms show as a picture; every other file goes as it is."""
MAX_NAME_CHARS = 120


class SentFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `send_file`. Without `channel` and `chat` it goes to this conversation."""

    path: str
    channel: str = ""
    chat: str = ""
    thread_id: str = ""
    text: str = ""


class SendFile:
    """Sends a file as it is now, up to 50 MB. It is in the outbox, with a copy of its bytes, when
    the call is done.

    `reads_log` are the channels whose people read the log itself: there the file stands in the
    conversation.
    """

    def __init__(self, reads_log: frozenset[str]) -> None:
        self._reads_log = reads_log
        description = (
            "Send a file of up to 50 MB now, with a text beside it: here, or to another chat of "
            "a channel."
        )
        self.spec = Spec("send_file", description, make_schema(SentFile), "send_owner", "commit")

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            sent = decode_arguments(arguments, SentFile, self.spec.name)
            return "send_owner" if resolve_address(sent, address) == address else "send_other"
        except ToolError:
            return "send_owner"  # it will not be sent

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        sent = decode_arguments(arguments, SentFile, self.spec.name)
        address = resolve_address(sent, context.address)
        here = address == context.address
        if address.channel in self._reads_log and not here:
            why = (
                f"people on {address.channel!r} can read only their own conversations; send it "
                "to this one, or to a chat"
            )
            raise ToolError(why)
        opened = await _read_whole(sent.path, context)
        await _check_sendable(
            opened.place, here, context
        )  # when it was read: somebody may be writing it
        data = opened.data
        blob = await context.reach.host.put_blob(data)
        name = _display_name(sent.path)
        mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
        file = File(blob, name, mime, len(data), LOCAL, f"[file sent: {name}, {len(data):,} bytes]")
        if address.channel in self._reads_log:
            return Done((Text("shown in the conversation\n", call_label(context)), file))
        part: SayPart = Image(blob, mime, name) if mime in PICTURE_TYPES else file
        words = (Text(clean_text(sent.text)),) if sent.text.strip() else ()
        outgoing = Outgoing(f"{context.key}:send", address, (*words, part))
        return Done(
            (Text(f"on its way, as {outgoing.key}\n", call_label(context)), file),
            outbox=(outgoing,),
        )


async def _check_sendable(place: Place, here: bool, context: Context) -> None:
    """Raises ToolError for what is one person's alone and would reach others: no approval of a call
    shows what stands in a file."""
    marks = await load_marks(context)
    if marks.is_hidden_from(place, context) or (
        not here and marks.file_label(place).readers is not None
    ):
        raise ToolError(
            f"{place.asked!r} is only for its owner: put what others may know into another file "
            "and send that"
        )


async def _read_whole(path: str, context: Context) -> OpenedFile:
    """The file with all its bytes. Raises ToolError."""
    entry = await anyio.to_thread.run_sync(context.reach.files.stat, path)
    if entry.kind != "file":
        raise ToolError(
            f"{path!r} is not a file ({entry.kind}); pack what it contains into one file and "
            "send that"
        )
    opened = await anyio.to_thread.run_sync(context.reach.files.read_opened, path, MAX_BYTES + 1)
    if len(opened.data) > MAX_BYTES:
        raise ToolError(
            f"{path!r} is larger than {MAX_BYTES >> 20} MB; send a part of it, or make it smaller"
        )
    if not opened.data:
        raise ToolError(f"{path!r} is empty: there is nothing to send")
    return opened


def _display_name(path: str) -> str:
    """Its name as people are shown it; the end of a long one stays, since it says what kind of file
    it is."""
    name = "".join(char for char in PurePosixPath(path).name if char.isprintable())
    return clean_text(name[-MAX_NAME_CHARS:]) or "file"
