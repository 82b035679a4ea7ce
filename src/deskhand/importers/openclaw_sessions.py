"""Reads the conversations of OpenClaw: files of JSON lines, or a database for each agent.

Either way an entry has an id and the id of the one before it. Where two have the same before them,
a branch was given up: what counts is the way back from the last entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .chat_addresses import Bots, ChatFound, ForeignChat
from .jsonl import JsonlRecord
from .model import ImportedConversation
from .notes import FOR_THE_MODEL, describe_role
from .operator_ai import note_unused_tables
from .reading import parse_time
from .safe_files import Tree, Unread, parse_json
from .settings import as_map, snake_fields
from .sqlite_reader import SqliteRows

_BLOCK = re.compile(
    r"[A-Z][A-Za-z ]+ \((?:untrusted metadata|untrusted, for context)\):\s*+```json\n"
    r"[^`]*+```\s*+"
)
"""What its program puts before the words of a person, since 2026.2."""
_ENVELOPE = re.compile(r"\[[A-Z][^\]\n]{1,250} \d{4}-\d\d-\d\d \d\d:\d\d[^\]\n]{0,20}\] ")
"""The same before that, and where somebody typed: [Telegram Ann id:1 2026-01-05 16:26 CET]."""
_MESSAGE_ID = re.compile(r"\n\[message_id: [^\]\n]{1,60}\]\s*\Z")
MAX_BLOCKS = 10
_CHAT = re.compile(
    r"([a-z][a-z-]*):(?:([\w.-]+):)?(dm|direct|group|channel|room):(.+?)"
    r"(?::(?:topic|thread):(.+))?"
)
"""The name of a session that is one chat, without its agent: src/routing/session-key.ts. It is in
small letters, also where the platform's ids are not."""
_PEER_IS_PERSON = frozenset({"discord", "slack", "matrix"})
"""Platforms on which a direct chat has an id of its own, which no name of a session has."""
_TABLES = {
    "auth_profile_store": ("keys; those that can be used are imported", ""),
    "session_nodes": ("Deskhand keeps no such field", ""),
    "session_windows": ("Deskhand keeps no such field", ""),
    "transcript_events": ("Deskhand keeps no such field", ""),
}


class _Talk(msgspec.Struct):
    """A conversation before it is converted."""

    id: str
    key: str = ""
    about: dict[str, Any] = {}
    entries: list[dict[str, Any]] = []


class Sessions:
    """The conversations of each agent. `bots` are the agents' bots, `accounts` their names in
    OpenClaw by agent and platform."""

    def __init__(self, tree: Tree, bots: Bots, accounts: Mapping[tuple[str, str], str]) -> None:
        self._tree = tree
        self._bots = bots
        self._accounts = accounts

    def read(self, agent: str) -> Iterator[ImportedConversation]:
        """Those of this agent: of its database, and of files that are not in it."""
        found = {talk.id: talk for talk in self._from_files(agent)}
        for talk in self._from_database(agent):
            if talk.entries or talk.id not in found:
                found[talk.id] = talk
        for talk in found.values():
            made = self._convert(agent, talk)
            if made is not None:
                yield made

    # ------------------------------------------------------------------ where they lie

    def _from_files(self, agent: str) -> Iterator[_Talk]:
        folder = f"agents/{agent}/sessions"
        index: dict[str, tuple[str, dict[str, Any]]] = {}
        if self._tree.has_file(f"{folder}/sessions.json"):
            try:
                listed = self._tree.read_json(f"{folder}/sessions.json")
            except Unread as error:
                self._tree.note_unread(f"{folder}/sessions.json", error)
                listed = {}
            for key, each in as_map(listed).items():
                about = snake_fields(each)
                index[str(about.get("session_id"))] = key, about
        for entry in self._tree.entries(folder):
            inner = f"{folder}/{entry.name}"
            if not entry.name.endswith(".jsonl") or not self._tree.has_file(inner):
                continue
            id_ = entry.name.removesuffix(".jsonl")
            key, about = index.get(id_) or index.get(id_.partition("-topic-")[0]) or ("", {})
            try:
                yield _Talk(id_, key, about, list(self._tree.read_json_lines(inner)))
            except Unread as error:
                self._tree.note_unread(inner, error)

    def _from_database(self, agent: str) -> Iterator[_Talk]:
        inner = f"agents/{agent}/agent/openclaw-agent.sqlite"
        if not self._tree.has_file(inner):
            return
        talks: dict[str, _Talk] = {}
        try:
            rows = SqliteRows(self._tree, inner)
            try:
                for talk in self._list_talks(rows):
                    talks[talk.id] = talk
                packed = 0
                for session, _, body, *_ in rows.read(
                    "transcript_events",
                    ("session_id", "seq", "event_json", "event_zstd", "created_at"),
                    "seq",
                ):
                    entry = _parse_object(body)
                    packed += entry is None
                    if entry is not None:
                        talks.setdefault(str(session), _Talk(str(session))).entries.append(entry)
                if packed:
                    self._tree.notes.leave_out(
                        f"{packed:,} packed entries of conversations in {inner}",
                        "they are compressed with zstd, which Deskhand does not read",
                        "unpack them there, and import again",
                    )
                note_unused_tables(self._tree, rows, _TABLES)
            finally:
                rows.close()
        except Unread as error:
            self._tree.note_unread(inner, error)
            return
        yield from talks.values()

    def _list_talks(self, rows: SqliteRows) -> Iterator[_Talk]:
        """Which there are, of every version: the first tables are of the newest."""
        about: dict[str, dict[str, Any]] = {}
        current: dict[str, str] = {}
        for key, id_, body in rows.read(
            "session_nodes", ("session_key", "current_session_id", "entry_json")
        ):
            about[str(key)] = snake_fields(_parse_object(body))
            current[str(key)] = str(id_)
        for key, id_, body in rows.read(
            "session_entries", ("session_key", "session_id", "entry_json")
        ):
            about.setdefault(str(key), snake_fields(_parse_object(body)))
            current.setdefault(str(key), str(id_))
        for table in ("session_windows", "sessions"):
            for id_, key in rows.read(table, ("session_id", "session_key")):
                if current.get(str(key)) not in (None, str(id_)):
                    yield _Talk(str(id_), "", {})
        for key, id_ in current.items():
            yield _Talk(id_, key, about[key])

    # ------------------------------------------------------------------ what they say

    def _convert(self, agent: str, talk: _Talk) -> ImportedConversation | None:
        rest = re.sub(r"\Aagent:[^:]*:", "", talk.key)
        if rest.startswith("subagent:"):
            self._tree.notes.count_left_out("conversations of sub-agents", "Deskhand has none yet")
            return None
        entries = _active_entries(talk.entries)
        if given_up := len(talk.entries) - len(entries):
            self._tree.notes.count_left_out(
                "entries of conversations", "they were given up", given_up
            )
        chat = _CHAT.fullmatch(rest)
        lines = [line for entry in entries for line in self._convert_entry(entry, chat)]
        if not lines:
            self._tree.notes.count_left_out("conversations", "there is no message in them")
            return None
        found = self._find_chat(agent, chat, talk.about) if chat else ChatFound()
        if chat and found.place is None:
            self._tree.notes.note_past(talk.key, found.why)
        job = re.match(r"cron:([^:]+)", rest)
        asked = [entry for entry in entries if _role(entry) == "user"]
        # A key may move on to another session, so that it names none for good.
        return ImportedConversation(
            talk.id,
            agent,
            tuple(lines),
            found.place,
            found.group or talk.about.get("chat_type") in ("group", "channel"),
            job[1] if job else "",
            own=bool(asked) and all(map(_was_typed_here, asked)),
        )

    def _find_chat(self, agent: str, chat: re.Match[str], about: Mapping[str, Any]) -> ChatFound:
        """Where a chat goes on: only with the bot that it was held with."""
        platform, account, kind, id_, thread = chat.groups()
        alone = kind in ("dm", "direct")
        if (account or "default") != self._accounts.get((agent, platform), "default"):
            return ChatFound(group=not alone, why=f"its bot {account} is not imported")
        if platform == "slack":
            id_ = id_.upper()
        elif platform == "matrix":
            id_ = _find_exact_id(id_, about)
        held_in = ForeignChat(platform, id_, thread or "")
        found = self._bots.find_chat(agent, held_in, alone=alone)
        if alone and platform in _PEER_IS_PERSON and self._bots.find(agent, platform):
            why = "a direct chat is named by its person there, and by an id of its own here"
            return ChatFound(group=False, why=why)
        if platform == "matrix" and not id_:
            return ChatFound(
                group=found.group, why="the home does not say the exact id of its room"
            )
        return ChatFound(found.place, found.group or not alone, found.why)

    def _convert_entry(
        self, entry: Mapping[str, Any], chat: re.Match[str] | None
    ) -> Iterator[JsonlRecord]:
        message = entry.get("message")
        if entry.get("type") != "message" or not isinstance(message, Mapping):
            if entry.get("type") in ("custom_message", "compaction", "branch_summary"):
                kind = str(entry["type"]).replace("_", " ")
                self._tree.notes.count_left_out(f"entries of the kind {kind}", FOR_THE_MODEL)
            return
        role = message.get("role")
        text = self._text_of(message.get("content"))
        at = _time_of(entry, message)
        if role == "user":
            before, said = split_metadata(text)
            yield JsonlRecord("user", said, at, by=_speaker(message, chat), before=before)
        elif role == "assistant":
            calls = list(_calls_of(message.get("content")))
            model = str(message.get("model") or "")
            if model == "delivery-mirror" or not (text or calls):
                return
            yield JsonlRecord("assistant", text, at, tool_calls=calls or None)
            usage = snake_fields(message.get("usage"))
            yield JsonlRecord(
                "meta",
                {
                    "model": f"{message.get('provider')}/{model}" if model else "",
                    "usage": {
                        "input_tokens": usage.get("input"),
                        "output_tokens": usage.get("output"),
                        "cached_tokens": usage.get("cache_read"),
                    },
                },
                at,
            )
        elif role == "toolResult":
            name = str(message.get("toolName") or "unknown")
            call = str(message.get("toolCallId") or "")
            yield JsonlRecord("tool", text, at, tool_call_id=call, tool_name=name)
        else:
            self._tree.notes.count_left_out(describe_role(role), FOR_THE_MODEL)

    def _text_of(self, content: Any) -> str:
        if not isinstance(content, list):
            return content if isinstance(content, str) else ""
        parts = [part for part in content if isinstance(part, Mapping)]
        if any(part.get("type") in ("image", "audio", "file") for part in parts):
            self._tree.notes.count_left_out(
                "files of messages", "conversations are imported without them"
            )
        return "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))


def _active_entries(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries that count, in their order: all, unless there are branches."""
    messages = [each for each in entries if each.get("id")]
    by_id = {str(each["id"]): each for each in messages}
    parents = [each.get("parentId") for each in messages if each.get("parentId")]
    if len(set(map(str, parents))) == len(parents):
        return entries
    way: list[dict[str, Any]] = []
    seen = set[str]()
    at: dict[str, Any] | None = messages[-1]
    while at is not None and str(at["id"]) not in seen:
        seen.add(str(at["id"]))
        way.append(at)
        before = at.get("parentId")
        if before and str(before) not in by_id:
            return entries  # the chain is broken, so nobody knows which branch counts
        at = by_id.get(str(before)) if before else None
    return way[::-1]


def _speaker(message: Mapping[str, Any], chat: re.Match[str] | None) -> str:
    """Who spoke, by what its program noted beside the text or in the name of the session. What
    stands in the text may be anybody's words."""
    about = snake_fields(message.get("__openclaw"))
    sender = str(about.get("sender_id") or "")
    where = snake_fields(about.get("transport")).get("channel")
    if not where and chat is not None:
        where = chat[1]
    if sender and where:
        return f"{where}:{sender}"
    if chat is None or chat[3] not in ("dm", "direct"):
        return ""
    platform = chat[1]
    person = chat[4].upper() if platform == "slack" else chat[4]
    return f"{platform}:{person}"


def _find_exact_id(room: str, about: Mapping[str, Any]) -> str:
    """The id of a room as the platform writes it, by where its last message went; '' where that
    says nothing."""
    delivered = snake_fields(about.get("delivery_context")).get("to")
    for each in (delivered, about.get("last_to"), about.get("group_id")):
        exact = re.sub(r"\A(?:matrix:)?(?:room:|channel:)?", "", str(each or ""))
        if exact.lower() == room:
            return exact
    return ""


def _was_typed_here(entry: Mapping[str, Any]) -> bool:
    """Whether its program noted that the owner wrote this, and not through a channel."""
    about = snake_fields(as_map(entry.get("message")).get("__openclaw"))
    return about.get("sender_is_owner") is True and not about.get("sender_id")


def _role(entry: Mapping[str, Any]) -> str:
    return str(as_map(entry.get("message")).get("role") or "")


def split_metadata(text: str) -> tuple[str, str]:
    """(what its program put before the words of a person, their words)."""
    at = 0
    for _ in range(MAX_BLOCKS):
        match = _BLOCK.match(text, at) or (_ENVELOPE.match(text, at) if at == 0 else None)
        if match is None:
            break
        at = match.end()
    said = text[at:]
    if match := _MESSAGE_ID.search(said):
        said = said[: match.start()]
    return text[:at].strip(), said.strip()


def _calls_of(content: Any) -> Iterator[dict[str, Any]]:
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type") == "toolCall":
            yield {name: part.get(name) for name in ("id", "name", "arguments")}


def _time_of(entry: Mapping[str, Any], message: Mapping[str, Any]) -> float | None:
    """When it was said: in milliseconds in the message, as a text beside it."""
    at = message.get("timestamp")
    if isinstance(at, int | float) and abs(at) < 1e15:
        return at / 1000
    return parse_time(entry.get("timestamp"))


def _parse_object(raw: Any) -> dict[str, Any] | None:
    try:
        found = parse_json(raw) if isinstance(raw, str | bytes) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
