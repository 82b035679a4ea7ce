"""Projections: tables that repeat what the log says in a form to be listed. They can be dropped and made anew."""

from __future__ import annotations

import re
from collections.abc import Mapping

import apsw

from ..types.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Branched,
    CallClosed,
    CommandRun,
    MessageReceived,
    OptionsSet,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    ToolFinished,
    TurnEnded,
)
from ..types.goals import GOALS, OFF, goal_of
from ..types.identity import Principal
from ..types.options import TITLE_CHARS
from . import looking

_BLOB = re.compile(rb'"(sha256:[0-9a-f]{64})"')


def event(db: apsw.Connection, sql: Mapping[str, str], recorded: Recorded, body: bytes) -> None:
    """Project one event, in the transaction that appends it. `body` is the event as stored."""
    session, at = recorded.session, recorded.at
    match recorded.event:
        case MessageReceived(principal=principal, address=address, message=message):
            title = " ".join(message.text[: TITLE_CHARS * 2].split())[:TITLE_CHARS]
            agent = session.partition("/")[0]
            db.execute(sql["session_seen"], (session, agent, address.channel, address.chat, title, at, at))
            db.execute(sql["session_join"], (session, principal.id))
        case Branched(principal=principal, title=title):
            _begun(db, sql, recorded, principal, title)
        case OptionsSet() | CommandRun():
            _held(db, sql, recorded)
        case ApprovalAsked(ask_id=ask_id, call_id=call_id) | QuestionAsked(ask_id=ask_id, call_id=call_id):
            db.execute(sql["ask_add"], (ask_id, session, recorded.n, call_id))
        case ApprovalAnswered(ask_id=ask_id) | QuestionAnswered(ask_id=ask_id):
            db.execute(sql["ask_answered"], (ask_id,))
        case CallClosed(call_id=call_id):
            db.execute(sql["ask_closed"], (session, call_id))
        case ToolFinished(result=result) if result.status in ("expired", "unasked"):
            db.execute(sql["ask_closed"], (session, result.call_id))
        case TurnEnded():
            db.execute(sql["session_turn"], (at, session))
        case _:
            pass
    if b'"sha256:' in body:
        for digest in _BLOB.findall(body):
            db.execute(sql["blob_used"], (digest.decode(), session, recorded.n))


def _held(db: apsw.Connection, sql: Mapping[str, str], recorded: Recorded) -> None:
    """How the session is held from here on, and whether it may have to go on by itself."""
    session = recorded.session
    match recorded.event:
        case OptionsSet(principal=principal, options=options):
            _begun(db, sql, recorded, principal, "")
            if options.title is not None:
                db.execute(sql["session_title"], (options.title, session))
            if options.mode is not None:
                db.execute(sql["long_work_deep"], (session, int(options.mode == "deep_work")))
        case CommandRun(principal=Principal(kind="system", on_behalf_of=person), reply=reply) if person:
            _begun(db, sql, recorded, Principal(person), " ".join(reply[: TITLE_CHARS * 2].split())[:TITLE_CHARS])
        case CommandRun(name=name, args=args, refused=False) if name in GOALS and (goal := goal_of(name, args)):
            db.execute(sql["long_work_goal"], (session, int(goal != OFF)))
        case _:
            pass


def _begun(db: apsw.Connection, sql: Mapping[str, str], recorded: Recorded, principal: Principal, title: str) -> None:
    """A session that may begin without a message: its key says where it belongs."""
    agent, _, place = recorded.session.partition("/")
    channel, _, chat = place.partition(":")
    row = (recorded.session, agent, channel, chat, title, recorded.at, recorded.at)
    db.execute(sql["session_seen"], row)
    db.execute(sql["session_join"], (recorded.session, principal.id))


def clear(db: apsw.Connection) -> None:
    """Empty every projection."""
    for table in ("session", "session_member", "blob_use", "long_work"):
        db.execute(f"DELETE FROM {table}")
    looking.clear(db)
