"""Endpoints of the messages that wait in a conversation: nobody has read them yet."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..types.identity import Deletion, Inbound, Said, Waiting, When
from ..types.marked_texts import mark_text
from ..types.messages import Audio, File, Image, Message, Part
from .conversations import Attached, ReceiptView, to_receipt_view
from .errors import HttpProblem
from .routing import Call, Endpoint
from .visible_sessions import require_session


class WaitingView(msgspec.Struct, frozen=True):
    """A message of the caller that waits. `inbox_id` is that of its receipt; `at` is when it was
    written, seconds since the epoch."""

    inbox_id: int
    text: str
    files: tuple[Attached, ...]
    when: When
    at: float


async def list_waiting(call: Call) -> list[WaitingView]:
    session = await require_session(call)
    rows = await call.web.store.list_waiting(session)
    return [_make_view(row, message) for row, message in _find_theirs(call, rows)]


async def withdraw(call: Call) -> ReceiptView:
    """Nobody reads the message any more: its deletion is stored, and is taken in before it. Raises
    HttpProblem 409 where it does not wait. An agent that begins to read it at this very moment is
    told that it was taken back."""
    session = await require_session(call)
    wanted = call.path("inbox_id")
    rows = await call.web.store.list_waiting(session)
    theirs = (row for row, _ in _find_theirs(call, rows))
    row = next((one for one in theirs if str(one.inbox_id) == wanted), None)
    if row is None:
        raise HttpProblem(
            409, "not_waiting", mark_text("This message does not wait any more: it was read.")
        )
    inbound = row.inbound
    deletion = Inbound(
        external_id=f"{inbound.external_id}:withdrawn",
        address=inbound.address,
        sender=inbound.sender,
        at=call.web.clock.now(),
        body=Deletion(inbound.external_id),
        session=session,
    )
    return to_receipt_view(call, await call.web.door.submit(deletion))


def _find_theirs(call: Call, rows: Sequence[Waiting]) -> list[tuple[Waiting, Message]]:
    """The rows of the caller's messages that nobody has taken back, each with the message."""
    gone = {row.inbound.body.of for row in rows if isinstance(row.inbound.body, Deletion)}
    return [
        (row, row.inbound.body.message)
        for row in rows
        if row.principal.id == call.principal.id
        and isinstance(row.inbound.body, Said)
        and row.inbound.external_id not in gone
    ]


def _make_view(row: Waiting, message: Message) -> WaitingView:
    files = map(_make_attached, message.parts)
    return WaitingView(
        inbox_id=row.inbox_id,
        text=message.own_text,
        files=tuple(file for file in files if file is not None),
        when=row.inbound.when,
        at=row.inbound.at,
    )


def _make_attached(part: Part) -> Attached | None:
    match part:
        case Image(blob=blob, mime=mime, name=name):
            return Attached(blob, name, mime)
        case Audio(blob=blob, mime=mime):
            return Attached(blob, "recording", mime, spoken=True)
        case File(blob=blob, name=name, mime=mime, size_bytes=size):
            return Attached(blob, name, mime, size)
        case _:
            return None


_S = "/api/sessions/{name}/waiting"
ENDPOINTS = (
    Endpoint(
        "GET",
        _S,
        "read",
        list_waiting,
        "List your messages that wait in a conversation",
        returns=list[WaitingView],
        tag="conversations",
    ),
    Endpoint(
        "DELETE",
        f"{_S}/{{inbox_id}}",
        "chat",
        withdraw,
        "Take back a message that waits",
        returns=ReceiptView,
        status=202,
        tag="conversations",
    ),
)
