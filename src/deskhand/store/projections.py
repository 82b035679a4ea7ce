"""Projections: tables that repeat what the log says in a form to be listed. They can be dropped and
made anew."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..types.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Branched,
    CallClosed,
    CallsHandedOver,
    CommandRun,
    MessageReceived,
    ModelReplied,
    OptionsSet,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    ResultsReturned,
    ToolFinished,
    Transcribed,
    TurnEnded,
)
from ..types.goals import GOAL_COMMANDS, GOAL_OFF, parse_goal
from ..types.identity import Principal
from ..types.options import TITLE_CHARS
from ..types.turn import STOP_TURN_ONLY
from . import read_queries as looking
from .connection import StatementRunner

_BLOB = re.compile(rb'"(sha256:[0-9a-f]{64})"')


def apply_event(
    db: StatementRunner, sql: Mapping[str, str], recorded: Recorded, body: bytes
) -> None:
    """Project one event, in the transaction that appends it. `body` is the event as stored."""
    session = recorded.session
    at = recorded.at
    match recorded.event:
        case MessageReceived(
            principal=principal, address=address, message=message, succeeds=succeeds
        ):
            title = _make_title(message.own_text or message.text)
            agent = session.partition("/")[0]
            row = (
                session,
                agent,
                address.channel,
                address.chat,
                title,
                at,
                at,
                int(not address.group),
            )
            db.execute(sql["session_seen"], row)
            if succeeds:
                db.execute(sql["session_leave"], (session, succeeds))
            db.execute(sql["session_join"], (session, principal.id))
            if principal.on_behalf_of:  # what a job writes in somebody's chat is theirs to read
                db.execute(sql["session_join"], (session, principal.on_behalf_of))
        case Branched(of=origin, at_n=from_n, principal=principal, title=title):
            _begin_session(db, sql, recorded, principal, title)
            db.execute(sql["branch_begin"], (session, origin, from_n))
        case OptionsSet() | CommandRun():
            _apply_options(db, sql, recorded)
        case TurnEnded():
            db.execute(sql["session_turn"], (at, session))
        case Transcribed(text=text) if text:
            db.execute(sql["session_title_heard"], (_make_title(text), session))
        case ModelReplied():  # nearly every other event
            pass
        case _:
            _apply_waits(db, sql, recorded)
    if b'"sha256:' in body:
        for digest in _BLOB.findall(body):
            db.execute(sql["blob_used"], (digest.decode(), session, recorded.n))


def _make_title(text: str) -> str:
    return " ".join(text[: TITLE_CHARS * 2].split())[:TITLE_CHARS]


def _apply_waits(db: StatementRunner, sql: Mapping[str, str], recorded: Recorded) -> None:
    """What waits for a person to answer, or for a program to return a result, and what does no
    more."""
    session = recorded.session
    n = recorded.n
    match recorded.event:
        case (
            ApprovalAsked(ask_id=ask_id, call_id=call_id)
            | QuestionAsked(ask_id=ask_id, call_id=call_id)
        ):
            db.execute(sql["ask_add"], (ask_id, session, n, call_id))
        case ApprovalAnswered(ask_id=ask_id) | QuestionAnswered(ask_id=ask_id):
            db.execute(sql["ask_answered"], (ask_id,))
        case CallsHandedOver(ids=ids, to="client"):
            for call_id, name in ids.items():
                db.execute(sql["ask_add"], (name, session, n, call_id))
        case ResultsReturned(ids=names):
            for name in names:
                db.execute(sql["ask_answered"], (name,))
        case CallClosed(call_id=call_id, status="interrupted", task=task) if task:
            db.execute(sql["subagent_unwanted"], ("the call was interrupted", task))
            db.execute(sql["ask_closed"], (session, call_id))
        case CallClosed(call_id=call_id):
            db.execute(sql["ask_closed"], (session, call_id))
        case ToolFinished(result=result) if result.status in ("expired", "unasked"):
            db.execute(sql["ask_closed"], (session, result.call_id))
        case _:
            pass


def _apply_options(db: StatementRunner, sql: Mapping[str, str], recorded: Recorded) -> None:
    """How the session is held from here on, and whether it may have to go on by itself."""
    session = recorded.session
    match recorded.event:
        case OptionsSet(principal=principal, options=options):
            person = principal.on_behalf_of
            _begin_session(db, sql, recorded, Principal(person) if person else principal, "")
            place = (options.pinned, options.folder, options.archived)
            if place != (None, None, None):
                db.execute(sql["session_place"], (session, *place))
            if options.title is not None:
                db.execute(sql["session_title"], (options.title, session))
            if options.mode is not None:
                db.execute(sql["long_work_deep"], (session, int(options.mode == "deep_work")))
        case CommandRun(principal=Principal(kind="system", on_behalf_of=person), reply=reply) if (
            person
        ):
            _begin_session(
                db,
                sql,
                recorded,
                Principal(person),
                " ".join(reply[: TITLE_CHARS * 2].split())[:TITLE_CHARS],
            )
        case CommandRun(name="stop", refused=False, principal=principal, args=args):
            who = principal.on_behalf_of or principal.id
            db.execute(sql["subagent_stop_all"], (f"stopped by {who}", session, recorded.at))
            db.execute(sql["teammate_stop_work"], (f"stopped by {who}", session, recorded.at))
            db.execute(sql["teammate_stop"], (session, recorded.at))
            db.execute(sql["mail_stop"], (session, recorded.at))
            _begin_by_command(db, sql, recorded)
            if args != STOP_TURN_ONLY:
                db.execute(sql["session_over"], (session, recorded.n))
        case CommandRun(name="start", refused=False):
            _begin_by_command(db, sql, recorded)
            db.execute(sql["session_over"], (session, recorded.n))
        case CommandRun(name=name, args=args, refused=False) if name in GOAL_COMMANDS and (
            goal := parse_goal(name, args)
        ):
            _begin_by_command(db, sql, recorded)
            db.execute(sql["long_work_goal"], (session, int(goal != GOAL_OFF)))
        case _:
            _begin_by_command(db, sql, recorded)


def _begin_by_command(db: StatementRunner, sql: Mapping[str, str], recorded: Recorded) -> None:
    """Whose command is the first thing in a session may read what came of it."""
    match recorded.event:
        case CommandRun(principal=Principal(kind="person") as principal):
            if not db.execute(sql["session_get"], (recorded.session,)).fetchone():
                _begin_session(db, sql, recorded, principal, "")
        case _:
            pass


def _begin_session(
    db: StatementRunner,
    sql: Mapping[str, str],
    recorded: Recorded,
    principal: Principal,
    title: str,
) -> None:
    """A session that may begin without a message: its key says where it belongs."""
    agent, _, place = recorded.session.partition("/")
    channel, _, chat = place.partition(":")
    row = (recorded.session, agent, channel, chat, title, recorded.at, recorded.at)
    db.execute(sql["session_begin"], row)
    db.execute(sql["session_join"], (recorded.session, principal.id))


def clear(db: StatementRunner, sql: Mapping[str, str]) -> None:
    """Empty every projection."""
    for table in ("session", "session_member", "branch", "blob_use", "long_work"):
        db.execute(f"DELETE FROM {table}")
    looking.clear(db, sql)
