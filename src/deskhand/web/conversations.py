"""Endpoints of conversations: list them, read and follow one, write, answer, stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from ..store.base import (
    FIRST_PAGE,
    ListPlace,
    PageCursor,
    SearchFilter,
    SessionRow,
    TokenTotals,
)
from ..store.queries import count_messages, find_session_row, may_attach_blob
from ..types.errors import Refused
from ..types.events import Recorded
from ..types.identity import Answer, Body, Inbound, Receipt, Said, When
from ..types.marked_texts import mark_text
from ..types.messages import Audio, File, Image, Message, Part, Text
from ..types.options import FOLDER_CHARS
from .errors import HttpProblem, bad_request, not_found
from .lookup import LATEST_S, AgentName, Seconds
from .names import CHANNEL, address_of, format_session_name, parse_session_name
from .routing import Call, Endpoint
from .stream import From, follow_events
from .visible_sessions import require_session, session_from_path

PREVIEW_CHARS = 80
NO_LIMIT = 2**31 - 1


class SessionView(msgspec.Struct, frozen=True):
    """One conversation in a list. `name` is its name in addresses, `key` its name in events, and
    `pinned`, `folder` and `archived` say where people have put it.

    The fields from `session_id` on are for agent_computer's clients; `messages` counts the messages
    of people and models.
    """

    name: str
    key: str
    agent: str
    channel: str
    title: str
    opened_at: float
    last_at: float
    turns: int
    pinned: bool = False
    folder: str = ""
    archived: bool = False
    session_id: str = ""
    messages: int = 0
    preview: str = ""
    last_activity: float = 0.0
    created_at: float = 0.0
    token_usage: dict[str, int] = {}


class SessionsView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The latest first. For the next page, send `more` as `before`; it is left out on the last
    page."""

    sessions: list[SessionView]
    more: str | None = None


class SessionPage(msgspec.Struct, frozen=True):
    """`limit`: at most this many; without it, all. `before` is the `more` of the previous page.
    `title`: only those with these words in their title. `name`: only this one. `pinned`, `folder`
    (empty: in none) and `archived`: only those in this place; with a `title` only `archived: false`
    counts. `since`, `until` (seconds since the epoch) and `agent` are for titles: only those that
    went on between these times, and with this agent. `brief`: without the counts of messages and
    tokens, which is faster."""

    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    before: Annotated[str, msgspec.Meta(max_length=1100)] = ""
    title: Annotated[str, msgspec.Meta(max_length=200)] = ""
    name: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    brief: bool = False
    pinned: bool | None = None
    folder: Annotated[str, msgspec.Meta(max_length=FOLDER_CHARS)] | None = None
    archived: bool | None = None
    since: Seconds = 0.0
    until: Seconds = LATEST_S
    agent: AgentName = ""


class LogPart(msgspec.Struct, frozen=True):
    """The events after number `after`; with a `limit` at most that many, and fewer when they are
    large."""

    after: Annotated[int, msgspec.Meta(le=2**53)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None


class Attached(msgspec.Struct, frozen=True):
    """A file that was uploaded before. `blob` is the one that the upload returned. With `spoken` a
    sound file is what the sender says: it is listened to."""

    blob: Annotated[str, msgspec.Meta(max_length=100)]
    name: Annotated[str, msgspec.Meta(max_length=255)]
    mime: Annotated[str, msgspec.Meta(max_length=200)]
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    spoken: bool = False


class Say(msgspec.Struct, frozen=True):
    """A message. `id` is the client's own id for it: a message that is sent twice with one id is
    accepted once. `when` says what it does while a turn runs: steer it, wait in the queue, or
    interrupt it."""

    text: str = ""
    files: Annotated[tuple[Attached, ...], msgspec.Meta(max_length=20)] = ()
    when: When = "steer"
    id: Annotated[str, msgspec.Meta(max_length=200)] = ""


class Choose(msgspec.Struct, frozen=True):
    choice: str


class ReceiptView(msgspec.Struct, frozen=True):
    """`after` is the number of the last event before this message. Follow the events from there."""

    status: Literal["accepted", "duplicate"]
    name: str
    after: int
    inbox_id: int


async def make_session_views(
    rows: Sequence[SessionRow], call: Call, *, brief: bool = False
) -> list[SessionView]:
    """Views of these sessions, with their counts of messages and tokens unless `brief`."""
    store = call.web.store
    agent = call.web.admin.agents[0]
    keys = [row.session for row in rows]
    counts: dict[str, int] = {}
    used: dict[str, TokenTotals] = {}
    if not brief:
        counts = await count_messages(store, keys)
        used = await store.usage_in(keys)

    found = []
    for row in rows:
        name = format_session_name(row.session, call.principal, agent)
        found.append(
            SessionView(
                name=name,
                key=row.session,
                agent=row.agent,
                channel=row.channel,
                title=row.title,
                opened_at=row.opened_at,
                last_at=row.last_at,
                turns=row.turns,
                pinned=row.pinned,
                folder=row.folder,
                archived=row.archived,
                session_id=name,
                messages=counts.get(row.session, 0),
                preview=row.title[:PREVIEW_CHARS],
                last_activity=row.last_at,
                created_at=row.opened_at,
                token_usage=token_usage(used.get(row.session, TokenTotals())),
            )
        )
    return found


def token_usage(used: TokenTotals) -> dict[str, int]:
    """What a conversation has used, in the fields that agent_computer's clients read."""
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
        "api_calls": used.calls,
    }


async def list_sessions(call: Call) -> SessionsView:
    store = call.web.store
    who = call.principal
    query = call.query
    limit = min(query.limit or NO_LIMIT, NO_LIMIT)
    behind = parse_cursor(query.before) if query.before else FIRST_PAGE
    if query.name:
        key = parse_session_name(query.name, who, call.web.admin.agents[0])
        row = await find_session_row(store, key)
        rows = [row] if row and await store.may_see(who, key) else []
    elif query.title.strip():
        wanted = SearchFilter(
            since=query.since,
            until=query.until,
            agent=query.agent,
            archived=query.archived is not False,
        )
        rows = await store.search_titles(who, query.title, limit + 1, behind, wanted)
    else:
        place = ListPlace(query.pinned, query.folder, query.archived)
        rows = await store.sessions(who, limit + 1, behind, place)
    shown = rows[:limit]
    more = f"{shown[-1].last_at!r} {shown[-1].session}" if len(rows) > limit else None
    return SessionsView(await make_session_views(shown, call, brief=query.brief), more)


def parse_cursor(more: str) -> PageCursor:
    """Where the next page starts. Raises HttpProblem if `more` is not from a previous page."""
    at, _, key = more.partition(" ")
    try:
        return float(at), key
    except ValueError as error:
        raise bad_request("`before` is the `more` of the page before.") from error


async def get_log(call: Call) -> list[Recorded]:
    session = await require_session(call)
    return await call.web.store.events(session, max(0, call.query.after), call.query.limit)


async def list_amendments(call: Call) -> list[Recorded]:
    session = await require_session(call)
    after = max(0, call.query.after)
    limit = call.query.limit or NO_LIMIT
    return await call.web.store.amendments(session, after, limit)


async def send_message(call: Call) -> ReceiptView:
    session = session_from_path(call)
    message = await build_message(call, call.body)
    return await submit_body(call, session, Said(message), call.body)


async def build_message(call: Call, said: Say) -> Message:
    """The message to submit. Raises HttpProblem if it is empty, or if a file was not uploaded by
    this person and is in no conversation that they may see."""
    who = call.principal
    for file in said.files:
        if not await may_attach_blob(call.web.store, file.blob, who):
            await call.web.people.add_audit_note(who, "file refused", file.blob)
            raise HttpProblem(
                404,
                "not_found",
                mark_text("There is no file {name} here. Upload it again.").format(
                    name=repr(file.name)
                ),
            )
    parts: list[Part] = [Text(said.text)] if said.text.strip() else []
    parts += [_attached_part(file) for file in said.files]
    if not parts:
        raise bad_request("The message is empty: send `text`, or `files`.")
    return Message("user", tuple(parts))


def _attached_part(file: Attached) -> Part:
    if file.mime.startswith("image/"):
        return Image(file.blob, file.mime, file.name)
    if file.spoken and file.mime.startswith("audio/"):
        return Audio(file.blob, file.mime)
    return File(file.blob, file.name, file.mime, file.size_bytes)


async def submit_body(call: Call, session: str, body: Body, said: Say) -> ReceiptView:
    """Submit `body` to the session in the name of the caller. Raises HttpProblem if it is
    refused."""
    web = call.web
    principal = call.principal
    _, _, place = session.partition("/")
    chat = place.rpartition(":")[2]
    inbound = Inbound(
        external_id=f"{principal.id}:{said.id}" if said.id else web.ids.new("web"),
        address=address_of(principal, chat),
        sender=call.grant.sender if call.grant else "",
        at=web.clock.now(),
        body=body,
        session=session,
        when=said.when,
    )
    return to_receipt_view(call, await web.door.submit(inbound))


def to_receipt_view(call: Call, receipt: Receipt) -> ReceiptView:
    if receipt.status == "refused":
        raise HttpProblem(403, "refused", f"{receipt.reason}.")
    name = format_session_name(receipt.session, call.principal, call.web.admin.agents[0])
    return ReceiptView(receipt.status, name, receipt.after, receipt.inbox_id)


async def answer(call: Call) -> ReceiptView:
    session = await require_session(call)
    chosen = call.body
    return await submit_body(call, session, Answer(call.path("ask"), chosen.choice), Say())


async def stop(call: Call) -> ReceiptView:
    session = await require_session(call)
    try:
        return to_receipt_view(call, await call.web.door.stop(session, call.principal))
    except Refused as error:
        raise not_found(mark_text("such conversation")) from error


_S = "/api/sessions/{name}"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/sessions",
        "read",
        list_sessions,
        "List your conversations, the latest first",
        query=SessionPage,
        returns=SessionsView,
        tag="conversations",
    ),
    Endpoint(
        "GET",
        f"{_S}/log",
        "read",
        get_log,
        "Get the events of a conversation after event `after`",
        query=LogPart,
        returns=list[Recorded],
        tag="conversations",
    ),
    Endpoint(
        "GET",
        f"{_S}/amendments",
        "read",
        list_amendments,
        "Get the undos, edits and reactions of a conversation",
        query=LogPart,
        returns=list[Recorded],
        tag="conversations",
    ),
    Endpoint(
        "GET",
        f"{_S}/events",
        "read",
        follow_events,
        "Follow a conversation as server-sent events",
        query=From,
        media="text/event-stream",
        tag="conversations",
    ),
    Endpoint(
        "POST",
        f"{_S}/messages",
        "chat",
        send_message,
        "Send a message",
        body=Say,
        returns=ReceiptView,
        status=202,
        tag="conversations",
    ),
    Endpoint(
        "POST",
        f"{_S}/asks/{{ask}}",
        "chat",
        answer,
        "Answer an approval or a question",
        body=Choose,
        returns=ReceiptView,
        status=202,
        tag="conversations",
    ),
    Endpoint(
        "POST",
        f"{_S}/stop",
        "chat",
        stop,
        "Stop the running turn",
        returns=ReceiptView,
        status=202,
        tag="conversations",
    ),
)
__all__ = ["CHANNEL", "ENDPOINTS"]
