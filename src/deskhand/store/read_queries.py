"""The read queries behind lists and searches over all sessions that a principal may see."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress

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
    Transcribed,
    decode_event,
)
from ..types.identity import Principal
from ..types.messages import ResultStatus, clean_text
from ..types.turn import list_choices
from .base import (
    EVERYTHING,
    FIRST_PAGE,
    Args,
    Hit,
    ModelTotals,
    OpenAsk,
    PageCursor,
    Row,
    SearchFilter,
    SessionRow,
    StoredActivity,
    TokenTotals,
    Used,
)
from .connection import StatementRunner
from .queries import tool_of_call
from .writer import Writer

BATCH = 500
DAY_S = 86_400
QUERY_CHARS = 1_000
QUERY_WORDS = 12
BEFORE_CHARS = 60
EXCERPT_CHARS = 240
SCANNED_CHARS = 100_000
DETAIL_CHARS = 2_000
_WORD = re.compile(r"[^\W_]+")
"""A word, nearly as the index splits a text into words."""
_BY_AGENT = b'"role":"assistant"'
_NOWHERE = b"\xff"
"""In no event: it is not UTF-8."""


class ReadQueries(ABC):
    """The part of `SqlStore` that answers lists and searches. See `Store` for each method.

    What was said and used is indexed when somebody asks, not when it happens: a turn that nobody
    searches costs nothing.
    """

    name: str
    """Which database it is, for messages."""
    _sql: Mapping[str, str]
    _writer: Writer

    @abstractmethod
    def _fetch_all(self, statement: str, args: Args = ()) -> list[Row]:
        """All rows of a statement."""

    @abstractmethod
    def _iter_rows(self, statement: str, args: Args) -> Iterator[Row]:
        """Its rows one by one; whoever has enough lets go of them."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Translates what the database, and what it holds, may raise into StoreError."""

    async def open_asks(self, principal: Principal) -> list[OpenAsk]:
        rows = self._fetch_all(self._sql["ask_open"], _scope(principal))
        with self._errors():
            return [
                _make_ask(session, title, at, decode_event(body))
                for session, title, at, body in rows
            ]

    async def session_of_ask(self, ask_id: str) -> str:
        rows = self._fetch_all(self._sql["ask_session"], (ask_id,))
        return str(rows[0][0]) if rows else ""

    async def search_titles(
        self,
        principal: Principal,
        words: str,
        limit: int = 50,
        behind: PageCursor = FIRST_PAGE,
        wanted: SearchFilter = EVERYTHING,
    ) -> list[SessionRow]:
        parts = words.lower().split()[:QUERY_WORDS]
        found = list[SessionRow]()
        pattern = _like_pattern(max(parts, key=len, default=""))
        while len(found) < limit:
            args = (*_scope(principal), *behind, pattern, BATCH)
            rows = [
                SessionRow.from_row(row)
                for row in self._fetch_all(self._sql["session_titled"], args)
            ]
            found += [
                row
                for row in rows
                if _is_wanted(row, wanted) and all(part in row.title.lower() for part in parts)
            ]
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
        wanted: SearchFilter = EVERYTHING,
    ) -> list[Hit]:
        words = split_query(query)
        if not words:
            return []
        await self._update_index()
        pattern = " ".join(f'"{word}"*' for word in words)
        when = (wanted.since, wanted.until)
        filters = (*_bytes_of(wanted.by, principal), *when, wanted.agent, int(wanted.archived))
        args = (*_scope(principal), pattern, session, limit)
        if before is None:
            rows = self._fetch_all(self._sql["said_find"], (*args, *filters))
        else:
            rows = self._fetch_all(self._sql["said_latest"], (*args, *filters, before))
        with self._errors():
            return [_make_hit(row, decode_event(row[4]), words) for row in rows]

    async def usage(self, principal: Principal, since: float = 0.0) -> list[Used]:
        await self._update_index()
        args = (*_scope(principal), int(since // DAY_S))
        return [Used(*row) for row in self._fetch_all(self._sql["usage_of"], args)]

    async def usage_by_model(self) -> list[ModelTotals]:
        await self._update_index()
        return [
            ModelTotals(model, *map(int, used))
            for model, *used in self._fetch_all(self._sql["usage_totals"])
        ]

    async def usage_in(self, sessions: Sequence[str]) -> dict[str, TokenTotals]:
        await self._update_index()
        listed = msgspec.json.encode(list(sessions)).decode()
        rows = self._fetch_all(self._sql["usage_in"], (listed,))
        return {session: TokenTotals(*totals) for session, *totals in rows}

    async def activity(self, principal: Principal, limit: int = 50) -> list[StoredActivity]:
        rows = self._fetch_all(self._sql["event_activity"], (*_scope(principal), limit))
        found = list[StoredActivity]()
        names = dict[tuple[str, str], str]()
        with self._errors():
            for seq, session, n, at, body in reversed(rows):
                found += _make_activities((seq, session, n, at), decode_event(body), names)
            return [self._with_tool_name(act) for act in found[::-1][:limit]]

    def _with_tool_name(self, act: StoredActivity) -> StoredActivity:
        """The activity with the name of its tool, also when the call is on an earlier page."""
        if act.name:
            return act
        for _, body in self._fetch_all(self._sql["event_calls_before"], (act.session, act.n)):
            if name := tool_of_call(body, act.call_id):
                return replace(act, name=name)
        return act

    async def _update_index(self) -> None:
        """Index what was said and used since the last time. If nothing can be written, the search
        works with what is indexed."""
        with suppress(StoreUnavailable):
            while self._is_index_behind():
                if not await self._writer.run(self._index_events):
                    break

    def _is_index_behind(self) -> bool:
        ((behind,),) = self._fetch_all(self._sql["looked_up_behind"])
        return bool(behind)

    def _index_events(self, db: StatementRunner) -> bool:
        """Index the next events. Returns whether there may be more."""
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


def forget_session(db: StatementRunner, sql: Mapping[str, str], session: str) -> None:
    """Erase a session from these tables, and its words from the pages of the index."""
    for name in ("said_forget", "usage_forget", "ask_forget"):
        db.execute(sql[name], (session,))
    db.execute(sql["said_tidy"])


def clear(db: StatementRunner, sql: Mapping[str, str]) -> None:
    """Empty these tables. They are filled again from the log."""
    db.execute(sql["said_clear"])
    db.execute("DELETE FROM usage")
    db.execute("DELETE FROM ask")
    db.execute("UPDATE looked_up SET seq = 0")


def split_query(query: str) -> list[str]:
    """The words of a query, without the other characters in it."""
    return _WORD.findall(clean_text(query[:QUERY_CHARS]))[:QUERY_WORDS]


def make_excerpt(text: str, words: Iterable[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The piece of a text around the first of these words, on one line, and the places of the words
    in it: (start, end) in characters."""
    wanted = tuple(_fold_word(word) for word in words)

    first = 0
    for match in _WORD.finditer(text[:SCANNED_CHARS]):
        if _matches(match.group(), wanted):
            first = match.start()
            break

    start = max(0, first - BEFORE_CHARS)
    before = "…" if start else ""
    after = "…" if start + EXCERPT_CHARS < len(text) else ""
    piece = before + " ".join(text[start : start + EXCERPT_CHARS].split()) + after
    marks = [match.span() for match in _WORD.finditer(piece) if _matches(match.group(), wanted)]
    return piece, tuple(marks)


def _matches(word: str, wanted: tuple[str, ...]) -> bool:
    return _fold_word(word).startswith(wanted)


def _fold_word(word: str) -> str:
    """The word in lower case and without accents."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def _like_pattern(word: str) -> str:
    """A pattern for LIKE that matches at least the texts with this word. Other than ASCII letters
    become wildcards, since SQLite does not fold their case."""
    return f"%{''.join(c if c.isascii() and c.isalnum() else '_' for c in word)}%"


def _is_wanted(row: SessionRow, wanted: SearchFilter) -> bool:
    """Whether the session went on between these times, and is where it is looked for."""
    return (
        row.last_at >= wanted.since
        and row.opened_at < wanted.until
        and wanted.agent in ("", row.agent)
        and (wanted.archived or not row.archived)
    )


def _bytes_of(by: str, principal: Principal) -> tuple[bytes, bytes]:
    """What an event has in it that was said `by` them, and what it has not. In the text of a
    message a quote is escaped, so nobody can write this there."""
    if by == "agent":
        return _BY_AGENT, _NOWHERE
    if by == "me":
        return b'"principal":{"id":' + msgspec.json.encode(principal.id), _BY_AGENT
    return b"", _NOWHERE


def _scope(principal: Principal) -> Args:
    """Whether this principal sees every session, and their id."""
    return int("owner" in principal.roles), principal.id


def _role_and_text(event: AnyEvent) -> tuple[str, str]:
    """The role and the text of a message event; ('', '') for other events."""
    match event:
        case MessageReceived(message=message) | QuestionAnswered(message=message):
            return "user", message.text
        case HistoryMessage(message=message):
            return message.role, message.text
        case Transcribed(text=text):
            return "user", text
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
            ask_id=event.ask_id,
            session=session,
            title=title,
            at=at,
            until=event.until,
            question=event.question,
            choices=list_choices(event),
            tool=tool,
            arguments=arguments,
            reason=event.reason,
            source=event.source,
            elsewhere=event.elsewhere,
            call_id=event.call_id,
            calls=tuple(call.call_id for call in event.calls) if event.others else (),
        )
    if isinstance(event, QuestionAsked):
        return OpenAsk(
            ask_id=event.ask_id,
            session=session,
            title=title,
            at=at,
            until=event.until,
            question=event.question,
            choices=event.choices,
        )
    raise AssertionError(f"{event!r} is no ask")


def _make_activities(
    place: tuple[int, str, int, float], event: AnyEvent, names: dict[tuple[str, str], str]
) -> list[StoredActivity]:
    """The calls or the result in an event. `names` maps (session, call id) to the tools of calls so
    far; the calls of this event are added. `place` is the seq, session, n and time of the event."""
    seq, session, n, at = place

    def result(call_id: str, text: str, status: ResultStatus) -> StoredActivity:
        return StoredActivity(
            seq=seq,
            session=session,
            n=n,
            at=at,
            kind="tool_result",
            call_id=call_id,
            name=names.get((session, call_id), ""),
            detail=text[:DETAIL_CHARS],
            status=status,
        )

    match event:
        case ModelReplied(message=message):
            found = []
            for call in message.calls:
                names[session, call.id] = call.name
                arguments = bytes(call.arguments).decode(errors="replace")
                found.append(
                    StoredActivity(
                        seq=seq,
                        session=session,
                        n=n,
                        at=at,
                        kind="tool_call",
                        call_id=call.id,
                        name=call.name,
                        detail=arguments[:DETAIL_CHARS],
                    )
                )
            return found
        case ToolFinished(result=told):
            return [result(told.call_id, told.text, told.status)]
        case CallClosed(call_id=call_id, status=status, reason=reason):
            return [result(call_id, reason, status)]
        case _:
            return []
