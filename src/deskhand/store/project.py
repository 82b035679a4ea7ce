"""Projections: tables that repeat what the log says in a form to be listed. They can be dropped and made anew."""

from __future__ import annotations

import re
from collections.abc import Mapping

import apsw

from ..types.events import MessageReceived, Recorded, TurnEnded

_BLOB = re.compile(rb'"(sha256:[0-9a-f]{64})"')
TITLE_CHARS = 80


def event(db: apsw.Connection, sql: Mapping[str, str], recorded: Recorded, body: bytes) -> None:
    """Project one event, in the transaction that appends it. `body` is the event as stored."""
    session, at = recorded.session, recorded.at
    match recorded.event:
        case MessageReceived(principal=principal, address=address, message=message):
            title = " ".join(message.text[: TITLE_CHARS * 2].split())[:TITLE_CHARS]
            agent = session.partition("/")[0]
            db.execute(sql["session_seen"], (session, agent, address.channel, address.chat, title, at, at))
            db.execute(sql["session_join"], (session, principal.id))
        case TurnEnded():
            db.execute(sql["session_turn"], (at, session))
        case _:
            pass
    if b'"sha256:' in body:
        for digest in _BLOB.findall(body):
            db.execute(sql["blob_used"], (digest.decode(), session, recorded.n))


def clear(db: apsw.Connection) -> None:
    """Empty every projection."""
    for table in ("session", "session_member", "blob_use"):
        db.execute(f"DELETE FROM {table}")
