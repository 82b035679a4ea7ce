"""Endpoints that give a conversation away: as a file, or as a link under which anybody may read it
until a day."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html import escape
from typing import Annotated, Literal
from urllib.parse import quote

import anyio.to_thread
import msgspec
from starlette.responses import HTMLResponse, Response

from ..languages.catalogue import ENGLISH, Language, choose_language
from ..store.queries import find_session_row, last_event_number
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.people import OWNER_NAME
from ..types.shares import MAX_SHARE_DAYS, Share
from .conversation_text import (
    STYLE,
    PageLook,
    Utterance,
    list_utterances,
    render_markdown,
    render_notice,
    render_page,
    show_file_name,
)
from .errors import not_found
from .names import format_session_name
from .routing import Call, Endpoint
from .shared_files import (
    find_file,
    list_shared,
    make_file_html,
    redact_utterance,
    send_shared_file,
)
from .visible_sessions import require_row, require_session

_STYLE_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
PAGE_HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "vary": "accept-language",
    "x-robots-tag": "noindex, nofollow",
}
"""Those of a page that has a style and nothing else."""
PICTURE_PAGE_HEADERS = {
    **PAGE_HEADERS,
    "content-security-policy": f"{PAGE_HEADERS['content-security-policy']}; img-src 'self'",
}
"""Those of a page that shows the pictures under its own address, too."""
UNTITLED = mark_text("Conversation")
SHARED_NOTE = mark_text(
    "A conversation with an AI agent, shared to be read. Files and tool calls are left out."
)
SHARED_WITH_FILES_NOTE = mark_text(
    "A conversation with an AI agent, shared to be read with its pictures and files. Tool calls "
    "are left out."
)
CONTINUE_LINK = mark_text("Continue this conversation")
CONTINUE_NOTE = mark_text("If you have access to this Deskhand: {link}.")
ENDED_TITLE = mark_text("This link does not work any more")
ENDED_TEXT = mark_text(
    "Its time is over, or it was revoked. Ask the person who gave it to you for a new one."
)
FILE_KINDS = {
    "markdown": ("md", "text/markdown"),
    "html": ("html", "text/html"),
    "json": ("json", "application/json"),
}
"""The ending and the media type of each form of a saved conversation."""


class ExportForm(msgspec.Struct, frozen=True):
    """`markdown` and `html` have what was said and holds; `json` is the log, each event with its
    number and time."""

    format: Literal["markdown", "html", "json"] = "markdown"


class NewShare(msgspec.Struct, frozen=True):
    """For how many days the link holds. `files`: it also shows the pictures and files that were
    sent in the conversation. Secrets are taken out of texts, but not out of pictures and other
    files."""

    days: Annotated[int, msgspec.Meta(ge=1, le=MAX_SHARE_DAYS)] = 7
    files: bool = False


class ShareView(msgspec.Struct, frozen=True):
    """A link. `path` is its address on this server, shown only when it is made. `files`: it shows
    pictures and files, too. Times are seconds since the epoch."""

    id: str
    name: str
    title: str
    at: float
    until: float
    path: str = ""
    files: bool = False


class RevokedView(msgspec.Struct, frozen=True):
    status: Literal["revoked"] = "revoked"


async def export(call: Call) -> Response:
    session = await require_session(call)
    title = (await require_row(call, session)).title or UNTITLED
    form = call.query.format
    ending, media = FILE_KINDS[form]
    name = quote(f"{title[:80].strip()}.{ending}", safe="")
    headers = {"content-disposition": f"attachment; filename*=utf-8''{name}"}
    if form == "html":
        headers |= PAGE_HEADERS
    return Response(
        await _write_file(call, form, session, title), media_type=media, headers=headers
    )


async def _write_file(call: Call, form: str, session: str, title: str) -> str | bytes:
    log = await call.web.store.events(session)
    if form == "json":
        return msgspec.json.encode(log)
    agent, zone = _agent_label(session), call.web.admin.zone
    names = await _people_names(call)
    if form == "html":
        language = await _language_of(call)
        utterances = list_utterances(log, names, language=language)
        return render_page(title, utterances, PageLook(agent, zone, language))
    return render_markdown(title, list_utterances(log, names), agent, zone)


async def share(call: Call) -> ShareView:
    session = await require_session(call)
    row = await require_row(call, session)
    last_n = await last_event_number(call.web.store, session)
    asked: NewShare = call.body
    made, secret = await call.web.shares.add(
        call.principal.id, session, last_n, asked.days, files=asked.files
    )
    what = "conversation shared with its files" if asked.files else "conversation shared"
    await call.web.people.add_audit_note(call.principal, what, session)
    return _make_view(call, made, row.title, f"/share/{secret}")


async def list_shares(call: Call) -> list[ShareView]:
    found = []
    for made in await call.web.shares.of(call.principal.id):
        row = await find_session_row(call.web.store, made.session)
        title = row.title if row is not None else ""
        found.append(_make_view(call, made, title))
    return found


def _make_view(call: Call, made: Share, title: str, path: str = "") -> ShareView:
    name = format_session_name(made.session, call.principal, call.web.admin.agents[0])
    return ShareView(made.id, name, title, made.at, made.until, path, made.files)


async def revoke(call: Call) -> RevokedView:
    if not await call.web.shares.revoke(call.path("id"), call.principal.id):
        raise not_found(mark_text("such link"))
    await call.web.people.add_audit_note(call.principal, "share revoked", call.path("id"))
    return RevokedView()


async def show(call: Call) -> Response:
    """A shared conversation, for whoever has the link. People follow it, so a page is the answer in
    any case."""
    secret = call.path("secret")
    shared = await call.web.shares.find(secret)
    row = await find_session_row(call.web.store, shared.session) if shared else None
    if shared is None or row is None:
        return await _render_ended(call)
    language = await _language_of(call)
    page = render_page(
        call.web.redact(row.title) or language.say(UNTITLED),
        await read_shared(call, shared, language),
        PageLook(_agent_label(shared.session), call.web.admin.zone, language),
        _make_note(shared, secret, language),
        make_file_html(secret) if shared.files else show_file_name,
    )
    return HTMLResponse(page, headers=PICTURE_PAGE_HEADERS if shared.files else PAGE_HEADERS)


def _make_note(shared: Share, secret: str, language: Language) -> str:
    """As HTML. Whether somebody is signed in is not known here: the cookie does not come along with
    a link that others gave."""
    note = language.say(SHARED_WITH_FILES_NOTE if shared.files else SHARED_NOTE)
    words = escape(language.say(CONTINUE_LINK))
    link = f'<a href="/#/continue/{escape(secret)}">{words}</a>'
    before, _, after = language.say(CONTINUE_NOTE).partition("{link}")
    return f"{escape(note)} {escape(before)}{link}{escape(after)}"


async def read_shared(call: Call, shared: Share, language: Language = ENGLISH) -> list[Utterance]:
    """What this link shows now, without secrets."""
    log = await call.web.store.events(shared.session)
    found = list_shared(log, await _people_names(call), shared, language)
    return [redact_utterance(each, call.web.redact) for each in found]


async def show_file(call: Call) -> Response:
    """A file of a shared conversation, as long as its link holds. Raises HttpProblem."""
    shared = await call.web.shares.find(call.path("secret"))
    if shared is None or not shared.files:
        raise not_found(mark_text("such file"))
    file = find_file(await read_shared(call, shared), call.path("file"))
    response = await send_shared_file(call.web, file) if file is not None else None
    if response is None:
        raise not_found(mark_text("such file"))
    return response


async def _render_ended(call: Call) -> Response:
    notice = render_notice(ENDED_TITLE, ENDED_TEXT, await _language_of(call))
    return HTMLResponse(notice, 404, PAGE_HEADERS)


async def _language_of(call: Call) -> Language:
    """That of the browser which asks. It is read from a file the first time."""
    accepted = call.request.headers.get("accept-language", "")
    return await anyio.to_thread.run_sync(choose_language, accepted)


async def _people_names(call: Call) -> Callable[[Principal], str]:
    owner = await call.web.admin.owner_name()

    def name_of(who: Principal) -> str:
        return owner if who.id == OWNER_NAME and owner else who.id

    return name_of


def _agent_label(session: str) -> str:
    agent = session.partition("/")[0]
    return "Deskhand" if agent == "default" else agent


_S = "/api/sessions/{name}"
_T = "conversations"
ENDPOINTS = (
    Endpoint(
        "GET",
        f"{_S}/export",
        "read",
        export,
        "Download a conversation as Markdown, a web page or JSON",
        query=ExportForm,
        media="text/markdown",
        tag=_T,
    ),
    Endpoint(
        "POST",
        f"{_S}/shares",
        "chat",
        share,
        "Make a link under which anybody may read what was said in a conversation until now",
        body=NewShare,
        returns=ShareView,
        status=201,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/shares",
        "read",
        list_shares,
        "List your links that hold",
        returns=list[ShareView],
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/shares/{id}",
        "chat",
        revoke,
        "End a link",
        returns=RevokedView,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/share/{secret}",
        "public",
        show,
        "Read a shared conversation",
        media="text/html",
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/share/{secret}/files/{file}",
        "public",
        show_file,
        "Get a file of a shared conversation, where its link shows files",
        media="application/octet-stream",
        tag=_T,
    ),
)
