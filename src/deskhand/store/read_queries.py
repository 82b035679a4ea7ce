"""What surfaces ask of all conversations that somebody may see: what waits, what was said, done and
used."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw
import msgspec
from msgspec.structs import replace

from ..types.errors import StoreUnavailable
from ..types.events import (
    AnyEvent,
    ApprovalAsked,
    AskedAside,
    CallClosed,
    HistoryMessage,
    MessageReceived,
    ModelReplied,
    QuestionAnswered,
    QuestionAsked,
    ToolFinished,
    decode_event,
)
from ..types.identity import Principal
from ..types.messages import clean_text
from ..types.turn import list_choices
from .base import (
    FIRST_PAGE,
    Hit,
    OpenAsk,
    PageCursor,
    SessionRow,
    StoredActivity,
    TokenTotals,
    Used,
)
from .queries import tool_of_call
from .schema import translate_errors
from .writer import Writer

Args = tuple[str | int | float | bytes | None, ...]
Row = tuple[Any, ...]
BATCH = 500
DAY_S = 86_400
QUERY_CHARS = 1_000
QUERY_WORDS = 12
BEFORE_CHARS = 60
EXCERPT_CHARS = 240
SCANNED_CHARS = 100_000
DETAIL_CHARS = 2_000
_WORD = re.compile(r"[^\W_]+")
"""As the index cuts a text into words, near enough."""


class Looking:
    """A part of the store. Whoever is no owner sees what is in sessions that they take part in."""

    path: Any
    _sql: Mapping[str, str]
    _writer: Writer

    def _fetch_all(self, statement: str, args: Args = ()) -> list[Row]:
        raise NotImplementedError

    async def open_asks(self, principal: Principal) -> list[OpenAsk]:
        with translate_errors(self.path):
            return [
                _make_ask(session, title, at, decode_event(body))
                for session, title, at, body in self._fetch_all(
                    self._sql["ask_open"], _scope(principal)
                )
            ]

    async def session_of_ask(self, ask_id: str) -> str:
        rows = self._fetch_all(self._sql["ask_session"], (ask_id,))
        return str(rows[0][0]) if rows else ""

    async def search_titles(
        self, principal: Principal, words: str, limit: int = 50, behind: PageCursor = FIRST_PAGE
    ) -> list[SessionRow]:
        wanted = words.lower().split()[:QUERY_WORDS]
        found = list[SessionRow]()
        pattern = _like_pattern(max(wanted, key=len, default=""))
        while len(found) < limit:
            args = (*_scope(principal), *behind, pattern, BATCH)
            rows = [SessionRow(*row) for row in self._fetch_all(self._sql["session_titled"], args)]
            found += [row for row in rows if all(word in row.title.lower() for word in wanted)]
            if len(rows) < BATCH:
                break
            behind = rows[-1].last_at, rows[-1].session
        return found[:limit]

    async def search(
        self,
        principal: Principal,
        query: str,
        limit: int = 20,
        session: str = "",
        before: int | None = None,
    ) -> list[Hit]:
        words = split_query(query)
        if not words:
            return []
        await self._update_index()
        wanted = " ".join(f'"{word}"*' for word in words)
        args = (*_scope(principal), wanted, session, limit)
        best = self._sql["said_find"]
        latest = self._sql["said_latest"]
        rows = (
            self._fetch_all(best, args)
            if before is None
            else self._fetch_all(latest, (*args, before))
        )
        with translate_errors(self.path):
            return [_make_hit(row, decode_event(row[4]), words) for row in rows]

    async def usage(self, principal: Principal, since: float = 0.0) -> list[Used]:
        await self._update_index()
        return [
            Used(*row)
            for row in self._fetch_all(
                self._sql["usage_of"], (*_scope(principal), int(since // DAY_S))
            )
        ]

    async def usage_in(self, sessions: Sequence[str]) -> dict[str, TokenTotals]:
        await self._update_index()
        listed = msgspec.json.encode(list(sessions)).decode()
        return {
            session: TokenTotals(*totals)
            for session, *totals in self._fetch_all(self._sql["usage_in"], (listed,))
        }

    async def activity(self, principal: Principal, limit: int = 50) -> list[StoredActivity]:
        rows = self._fetch_all(self._sql["event_activity"], (*_scope(principal), limit))
        found = list[StoredActivity]()
        names = dict[tuple[str, str], str]()
        with translate_errors(self.path):
            for seq, session, n, at, body in reversed(rows):
                found += _make_activities((seq, session, n, at), decode_event(body), names)
            return [self._with_tool_name(act) for act in found[::-1][:limit]]

    def _with_tool_name(self, act: StoredActivity) -> StoredActivity:
        """With its tool's name, where the call lies further back."""
        if act.name:
            return act
        for _, body in self._fetch_all(self._sql["event_calls_before"], (act.session, act.n)):
            if name := tool_of_call(body, act.call_id):
                return replace(act, name=name)
        return act

    async def _update_index(self) -> None:
        """Look up what has been said since somebody asked last. A disk that cannot be written is no
        reason to find nothing."""
        try:
            while self._fetch_all(self._sql["looked_up_behind"])[0][0] and await self._writer.run(
                self._index_events
            ):
                pass
        except StoreUnavailable:
            pass

    def _index_events(self, db: apsw.Connection) -> bool:
        """Go on by some events; whether there may be more."""
        rows: list[Row] = db.execute(self._sql["looked_up_next"], (BATCH,)).fetchall()
        for seq, session, at, body in rows:
            event = decode_event(body)
            if text := _role_and_text(event)[1]:
                db.execute(self._sql["said_add"], (seq, clean_text(text)))
            if isinstance(event, ModelReplied | AskedAside):
                used = event.usage
                tokens = (
                    used.input_tokens,
                    used.output_tokens,
                    used.cached_tokens,
                    used.cache_write_tokens,
                )
                db.execute(
                    self._sql["usage_add"], (session, event.model, int(at // DAY_S), *tokens)
                )
        more = len(rows) == BATCH
        db.execute(self._sql["looked_up_to"], (rows[-1][0] if more else None,))
        return more


def forget_session(db: apsw.Connection, sql: Mapping[str, str], session: str) -> None:
    """Erase a session from all of these, and its words from the pages of the index."""
    for name in ("said_forget", "usage_forget", "ask_forget"):
        db.execute(sql[name], (session,))
    db.execute("INSERT INTO said(said) VALUES('optimize')")


def clear(db: apsw.Connection) -> None:
    """Empty them, to be made anew."""
    db.execute("INSERT INTO said(said) VALUES('delete-all')")
    db.execute("DELETE FROM usage")
    db.execute("DELETE FROM ask")
    db.execute("UPDATE looked_up SET seq = 0")


def split_query(query: str) -> list[str]:
    """What is searched for: the words of a query, whatever else stands in it."""
    return _WORD.findall(clean_text(query[:QUERY_CHARS]))[:QUERY_WORDS]


def make_excerpt(text: str, words: Iterable[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The piece of a text around the first of these words, on one line, and where in it they
    stand."""
    wanted = tuple(_fold_word(word) for word in words)
    found = (
        match.start()
        for match in _WORD.finditer(text[:SCANNED_CHARS])
        if _matches(match.group(), wanted)
    )
    start = max(0, next(found, 0) - BEFORE_CHARS)
    piece = " ".join(text[start : start + EXCERPT_CHARS].split())
    marks = tuple(
        match.span() for match in _WORD.finditer(piece) if _matches(match.group(), wanted)
    )
    before = "…" if start else ""
    after = "…" if start + EXCERPT_CHARS < len(text) else ""
    return before + piece + after, tuple((a + len(before), b + len(before)) for a, b in marks)


def _matches(word: str, wanted: tuple[str, ...]) -> bool:
    return _fold_word(word).startswith(wanted)


def _fold_word(word: str) -> str:
    if word.isascii():
        return word.lower()
    return "".join(
        c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c)
    )


def _like_pattern(word: str) -> str:
    """What LIKE finds at least where this word is: the database knows no capitals but those of
    ASCII."""
    return f"%{''.join(c if c.isascii() and c.isalnum() else '_' for c in word)}%"


def _scope(principal: Principal) -> Args:
    return int("owner" in principal.roles), principal.id


def _role_and_text(event: AnyEvent) -> tuple[str, str]:
    """Who said it, a person or the model, and what."""
    match event:
        case MessageReceived(message=message) | QuestionAnswered(message=message):
            return "user", message.text
        case HistoryMessage(message=message):
            return message.role, message.text
        case ModelReplied(message=message):
            return "assistant", message.text
        case _:
            return "", ""


def _make_hit(row: Row, event: AnyEvent, words: Sequence[str]) -> Hit:
    session, n, at, title, _, seq = row
    role, text = _role_and_text(event)
    return Hit(session, n, at, role, *make_excerpt(text, words), title, seq)


def _make_ask(session: str, title: str, at: float, event: AnyEvent) -> OpenAsk:
    if isinstance(event, ApprovalAsked):
        first = event.question.split("\n", 1)[0] if event.others else event.question
        tool, _, arguments = first.partition(" ")
        return OpenAsk(
            event.ask_id,
            session,
            title,
            at,
            event.until,
            event.question,
            list_choices(event),
            tool,
            arguments,
            event.reason,
            event.source,
            event.elsewhere,
            event.call_id,
            tuple(call.call_id for call in event.calls) if event.others else (),
        )
    if isinstance(event, QuestionAsked):
        return OpenAsk(event.ask_id, session, title, at, event.until, event.question, event.choices)
    raise AssertionError("only an ask is open")


def _make_activities(
    place: tuple[int, str, int, float], event: AnyEvent, names: dict[tuple[str, str], str]
) -> list[StoredActivity]:
    """The calls or the result in an event, as they came. `names` are those of calls seen so far."""
    session = place[1]
    match event:
        case ModelReplied(message=message):
            names |= {(session, call.id): call.name for call in message.calls}
            told = (
                (call, bytes(call.arguments).decode(errors="replace")) for call in message.calls
            )
            return [
                StoredActivity(*place, "tool_call", call.id, call.name, text[:DETAIL_CHARS])
                for call, text in told
            ]
        case ToolFinished(result=result):
            name = names.get((session, result.call_id), "")
            text = result.text[:DETAIL_CHARS]
            return [
                StoredActivity(*place, "tool_result", result.call_id, name, text, result.status)
            ]
        case CallClosed(call_id=call_id, status=status, reason=reason):
            name = names.get((session, call_id), "")
            return [
                StoredActivity(*place, "tool_result", call_id, name, reason[:DETAIL_CHARS], status)
            ]
        case _:
            return []
