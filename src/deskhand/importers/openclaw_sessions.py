"""Reads the conversations of OpenClaw: files of JSON lines, or a database for each agent.

Either way an entry has an id and the id of the one before it. Where two have the same before them,
a branch was given up: what counts is the way back from the last entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .jsonl import JsonlRecord
from .model import ImportedConversation
from .notes import FOR_THE_MODEL, describe_role
from .operator_use_channels import Bot, parse_chat_address
from .reading import parse_time
from .safe_files import Tree, Unread, parse_json
from .settings import snake_fields
from .sqlite_reader import SqliteRows

_OWN = frozenset({"", "main", "webchat", "cli", "tui", "web"})
_BLOCK = re.compile(
    r"\A(?:[A-Z][a-z ]+ \((?:untrusted metadata|untrusted, for context)\):\s*```json\n"
    r"(?P<json>[^`]*)```\s*)"
)
"""What stands before the words of a person, since 2026.2."""
_ENVELOPE = re.compile(
    r"\A\[[A-Z]\w+ (?P<who>[^\]\n]{0,200}?)(?: id:(?P<id>-?\w{1,30}))?(?: \+\w+)?"
    r" \d{4}-\d\d-\d\d \d\d:\d\d[^\]\n]{0,20}\] "
)
"""The same before that: [Telegram Alice (@alice) id:123 2026-01-05 16:26 CET]."""
_TYPED_AT = re.compile(r"\A\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d [^\]\n]{1,20}\] ")
"""What stands before what was typed in its terminal."""
_MESSAGE_ID = re.compile(r"\n\[message_id: [^\]\n]{1,60}\]\s*\Z")


class _Talk(msgspec.Struct):
    """A conversation before it is converted."""

    id: str
    key: str = ""
    about: dict[str, Any] = {}
    entries: list[dict[str, Any]] = []


class Sessions:
    """The conversations of each agent. `bots` are the agents' bots."""

    def __init__(self, tree: Tree, bots: Mapping[str, Bot]) -> None:
        self._tree = tree
        self._bots = bots

    def read(self, agent: str) -> Iterator[ImportedConversation]:
        """Those of this agent: of its database, and of files that are not in it."""
        found = {talk.id: talk for talk in self._from_files(agent)}
        found |= {talk.id: talk for talk in self._from_database(agent)}
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
            for key, each in listed.items() if isinstance(listed, Mapping) else ():
                about = snake_fields(each)
                index[str(about.get("session_id"))] = str(key), about
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
        _, _, rest = talk.key.removeprefix("agent:").partition(":")
        if rest.startswith("subagent:"):
            self._tree.notes.count_left_out("conversations of sub-agents", "Deskhand has none yet")
            return None
        where, peer = _find_place(rest, talk.about)
        channel = where.partition(":")[0]
        place, group = parse_chat_address(where, self._bots.get(agent)) if where else (None, False)
        lines = [
            line
            for entry in _active_entries(talk.entries)
            for line in self._convert_entry(entry, channel, "" if group else peer)
        ]
        name = talk.key or talk.id
        if not lines:
            self._tree.notes.count_left_out("conversations", "there is no message in them")
            return None
        if where and place is None:
            why = (
                "no bot with a token is in this home"
                if channel == "telegram"
                else f"Deskhand has no channel for {channel} yet"
            )
            self._tree.notes.change(name, f"it becomes a past conversation: {why}")
        job = re.match(r"cron:([^:]+)", rest or talk.key)
        return ImportedConversation(
            name,
            agent,
            tuple(lines),
            place,
            group or talk.about.get("chat_type") in ("group", "channel"),
            job[1] if job else "",
            own=channel in _OWN
            and bool(talk.key)
            and not rest.startswith(("hook:", "node-"))
            and not any(line.by for line in lines),
        )

    def _convert_entry(
        self, entry: Mapping[str, Any], channel: str, peer: str
    ) -> Iterator[JsonlRecord]:
        message = entry.get("message")
        if entry.get("type") != "message" or not isinstance(message, Mapping):
            return
        role = message.get("role")
        text = self._text_of(message.get("content"))
        at = _time_of(entry, message)
        if role == "user":
            before, said, sender = split_sender(text)
            about = snake_fields(message.get("__openclaw"))
            where = snake_fields(about.get("transport")).get("channel") or channel
            who = peer or str(about.get("sender_id") or "") or sender
            by = f"{where}:{who}" if where and who else ""
            yield JsonlRecord("user", said, at, by=by, before=before)
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


def _find_place(rest: str, about: Mapping[str, Any]) -> tuple[str, str]:
    """(`channel:chat` where it is held, who writes there alone): by the name of the session, or for
    one without a chat of its own by where its last answer went. '' for nothing."""
    found = re.fullmatch(
        r"([a-z]+):(?:[\w.-]+:)?(dm|direct|group|channel|room):([^:]+)(?::(?:topic|thread):([^:]+))?",
        rest,
    )
    if found:
        channel, kind, chat, topic = found.groups()
        place = f"{channel}:{chat}" + (f":{topic}" if topic else "")
        return place, chat if kind in ("dm", "direct") else ""
    if about.get("delivery"):  # several may write there: nobody knows to whom it was said
        return "", ""
    context = snake_fields(about.get("delivery_context"))
    channel = str(context.get("channel") or about.get("last_channel") or "")
    to = str(context.get("to") or about.get("last_to") or "").removeprefix(f"{channel}:")
    if not channel or not to or channel in _OWN:
        return "", ""
    return f"{channel}:{to.replace(':topic:', ':')}", ""


def split_sender(text: str) -> tuple[str, str, str]:
    """(what the program put around the words of a person, their words, the id of who wrote them on
    their platform or '')."""
    before: list[str] = []
    sender = ""
    while match := _BLOCK.match(text):
        said = snake_fields(_parse_object(match["json"]))
        sender = sender or str(said.get("sender_id") or said.get("id") or "")
        before.append(match[0].strip())
        text = text[match.end() :]
    if match := _TYPED_AT.match(text):
        before.append(match[0].strip())
        text = text[match.end() :]
    elif match := _ENVELOPE.match(text):
        id_ = str(match["id"] or "")
        sender = sender or ("" if id_.startswith("-") else id_)
        before.append(match[0].strip())
        text = text[match.end() :]
    if match := _MESSAGE_ID.search(text):
        text = text[: match.start()]
    return "\n".join(before), text.strip(), sender if sender.isdecimal() else ""


def _calls_of(content: Any) -> Iterator[dict[str, Any]]:
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type") == "toolCall":
            yield {name: part.get(name) for name in ("id", "name", "arguments")}


def _time_of(entry: Mapping[str, Any], message: Mapping[str, Any]) -> float | None:
    """When it was said: in milliseconds in the message, as a text beside it."""
    at = message.get("timestamp")
    if isinstance(at, int | float):
        return at / 1000
    return parse_time(entry.get("timestamp"))


def _parse_object(raw: Any) -> dict[str, Any] | None:
    try:
        found = parse_json(raw) if isinstance(raw, str | bytes) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
