"""Continuing a shared conversation: a conversation of one's own that begins with what was shared.

What was shared is the word of others. It stands in the new conversation as untrusted, whoever said
it there, and is a copy: it stays when the link ends.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ..store.queries import last_event_number
from ..types.identity import Said
from ..types.labels import Label
from ..types.messages import Message, Role, Text
from .conversation_text import Utterance
from .conversations import ReceiptView, Say, submit_body
from .errors import HttpProblem, bad_request, not_found
from .routing import Call, Endpoint
from .shares import read_shared
from .visible_sessions import session_from_path

SHARED_LABEL = Label("untrusted", source="a shared conversation")
MAX_SHARED_CHARS = 200_000
"""So much is taken over, from the end."""


class Continuation(msgspec.Struct, frozen=True):
    """`link` is what stands behind /share/ in the address of the shared conversation, `text` the
    first message of one's own. `id` is the client's own id for it."""

    link: Annotated[str, msgspec.Meta(max_length=200)]
    text: Annotated[str, msgspec.Meta(max_length=100_000)]
    id: Annotated[str, msgspec.Meta(max_length=200)] = ""


async def continue_shared(call: Call) -> ReceiptView:
    asked: Continuation = call.body
    session = session_from_path(call)
    if not asked.text.strip():
        raise bad_request("The message is empty: send `text`.")
    store = call.web.store
    if await last_event_number(store, session) and await store.may_see(call.principal, session):
        raise HttpProblem(409, "exists", "There is a conversation of this name already.")
    shared = await call.web.shares.find(asked.link)
    if shared is None:
        raise not_found("such link")
    earlier = make_earlier(await read_shared(call, shared))
    message = Message("user", (Text(asked.text),))
    said = Say(text=asked.text, id=asked.id)
    return await submit_body(call, session, Said(message, earlier), said)


def make_earlier(utterances: list[Utterance]) -> tuple[Message, ...]:
    """What was shared, as messages that were said before; files are named and not taken over."""
    found = list[Message]()
    left = MAX_SHARED_CHARS
    for utterance in reversed(utterances):
        names = [f"[file: {file.name}]" for file in utterance.files]
        text = "\n".join(filter(None, (utterance.text, *names)))
        left -= len(text)
        if left < 0:
            break
        role: Role = "user" if utterance.name else "assistant"
        found.append(Message(role, (Text(text, SHARED_LABEL),)))
    return tuple(reversed(found))


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/sessions/{name}/continue",
        "chat",
        continue_shared,
        "Begin a conversation with what a link shows, and a first message",
        body=Continuation,
        returns=ReceiptView,
        status=202,
        tag="conversations",
    ),
)
