"""Reads the home of operator-ai (0.4 to 0.7): operator.yaml, state/operator.db, agents/, jobs/,
skills/."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

from msgspec.structs import replace

from ..jobs.job_file import parse_job
from ..types.errors import JobInvalid
from ..types.identity import Address
from .jsonl import JsonlRecord
from .model import (
    AgentFound,
    ImportedConversation,
    ImportedHome,
    ImportedMemory,
    ImportedPerson,
    JobFound,
    Value,
    format_count,
)
from .notes import FOR_THE_MODEL, ImportNotes, describe_role
from .reading import BUNDLED, WORKSPACE_FILES, parse_time, plain_text, read_skills
from .safe_files import KEEP, WHY_UNKNOWN, Tree, Unread, parse_json
from .settings import ImportedKeys, read_config_keys, read_env_keys
from .sqlite_reader import SqliteRows

MANY_COLUMNS = 10
"""More of one table are not named one by one."""
DATABASES = ("state/operator.db", "operator.db")
HANDLED = ("env_file", "agents.*.transport.*")
READING_TOOLS = ("list_channels", "read_channel", "read_thread")
"""What its agents on Slack have beside the tools of all."""
_TOKENS = (
    ("token_env", "bot_token_env", "SLACK_BOT_TOKEN"),
    ("app_token_env", "app_token_env", "SLACK_APP_TOKEN"),
)
"""Tokens of Slack: (our setting, its setting, the usual variable)."""
REASONS = {
    "SYSTEM.md": (
        "Deskhand has its own",
        "put what you want to keep into SYSTEM.md of Deskhand's home",
    ),
    "logs": ("logs of operator-ai", ""),
    "shared": (
        "what its agents share stays where it is",
        "copy what you want to keep to shared/ of Deskhand's home",
    ),
    "agents/*/workspace/shared": ("a link to the folder that its agents share", ""),
    "agents/*/workspace*": ("files of a workspace stay where they are", KEEP),
    **{f"skills/{name}": ("it comes with operator-ai and is about it", "") for name in BUNDLED},
}
_TABLES = {
    "job_state": ("counters of jobs start from zero", ""),
    "platform_message_index": ("replies to old messages start a new conversation", ""),
    "schema_meta": ("it says which version wrote the database", ""),
    "agent_kv": ("a key-value here has no dates", ""),
    "memory_state": ("how far memories were gathered; Deskhand starts from the beginning", ""),
}
"""Tables that are not read: (why, what to do)."""
_LINE = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
_META = frozenset({"agent", "user_id", "is_private"})
_ID = re.compile(r"[A-Za-z0-9.]{1,60}")
"""Ids of chats and threads of Slack."""
_INNER = r"(?:[^<]|<(?!/?context_snapshot))*+</context_snapshot>\s*"
_MEMORIES = re.compile(rf'<context_snapshot source="memories">{_INNER}')
_THREAD = re.compile(rf'<context_snapshot source="thread_history">{_INNER}')
_COLUMNS = {
    "conversations": (
        "conversation_id",
        "channel_id",
        "transport_name",
        "root_thread_id",
        "metadata_json",
        "updated_at",
    ),
    "messages": ("conversation_id", "message_json", "created_at", "id"),
    "memories": ("content", "scope", "scope_id", "retention", "pinned", "created_at", "expires_at"),
    "agent_kv": ("agent", "key", "ns", "value", "expires_at"),
}


def read(tree: Tree, now: float) -> ImportedHome:
    """All that this home holds; what cannot be read is in `broken`."""
    keys = read_config_keys(tree, "operator.yaml", HANDLED)
    tree.has_folder("state")
    database = next((name for name in DATABASES if tree.has_file(name)), "")
    inside = _Inside(tree)
    version = "0.4 or earlier" if "settings" in keys.raw else "0.5 or later"
    if database:
        try:
            version = inside.read(database, now)
        except Unread as error:
            tree.note_unread(database, error)
    else:
        tree.notes.leave_out("conversations, users and memories", "there is no state/operator.db")
    agents = _agents(tree, keys)
    _convert_transports(tree.notes, keys)
    jobs = tuple(_jobs(tree))
    skills = tuple(read_skills(tree))
    secrets = keys.secrets | read_env_keys(tree, keys.env_file)
    tree.leave_out_rest(REASONS)
    return ImportedHome(
        "operator-ai",
        version,
        str(tree.root),
        keys.config,
        secrets,
        agents,
        tuple(inside.people),
        tuple(inside.conversations),
        jobs,
        tuple(inside.memories),
        tuple(inside.values),
        skills,
        left_out=tree.notes.all_left_out(),
        changed=tree.notes.all_changed(),
        broken=tree.notes.all_broken(),
        trusted=bool(database) and tree.is_private(database),
    )


WHY_ORPHANED = "their conversation is not in the database"
WHY_EMPTY = "there is no message in it"


def note_skipped_messages(tree: Tree, broken: int, orphans: int) -> None:
    """Note messages that cannot be read, and such as belong to no conversation."""
    if broken:
        tree.notes.leave_out(
            format_count(broken, "message"),
            "they cannot be read; the rest of their conversations is imported",
        )
    if orphans:
        tree.notes.leave_out(format_count(orphans, "message"), WHY_ORPHANED)


def note_unused_tables(
    tree: Tree, rows: SqliteRows, reasons: Mapping[str, tuple[str, str]]
) -> None:
    """Note the tables and columns that hold something and were not read; `reasons` are (why, what
    to do) by table."""
    unused = list(rows.find_unused())
    many = Counter(table for table, column, _ in unused if column)
    for table, column, number in unused:
        why, todo = reasons.get(table, ("", ""))
        if column and many[table] > MANY_COLUMNS:
            tree.notes.count_left_out(f"columns of the table {table}", why or WHY_UNKNOWN)
            continue
        what = f"the column {column} of the table {table}" if column else f"the table {table}"
        tree.notes.leave_out(f"{what} ({format_count(number, 'row')})", why or WHY_UNKNOWN, todo)


class _Inside:
    """What the database holds."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.people: list[ImportedPerson] = []
        self.conversations: list[ImportedConversation] = []
        self.memories: list[ImportedMemory] = []
        self.values: list[Value] = []

    def read(self, database: str, now: float) -> str:
        """Fill in everything, and give the version that wrote it."""
        rows = SqliteRows(self._tree, database)
        try:
            for part in (self._people, self._conversations, self._memories, self._values):
                try:
                    part(rows, now)
                except Unread as error:
                    self._tree.note_unread(database, error)
            note_unused_tables(self._tree, rows, _TABLES)
            return "0.7" if "created_at" in rows.columns("messages") else "0.4"
        finally:
            rows.close()

    def _people(self, rows: SqliteRows, now: float) -> None:
        names = [str(name) for name, _ in rows.read("users", ("username", "created_at"))]
        ids = list(rows.read("user_identities", ("platform_id", "username")))
        roles = list(rows.read("user_roles", ("username", "role")))
        for one, name in ids:
            if name not in names:
                self._tree.notes.leave_out(
                    f"the identity {one}", f"it belongs to {name}, and there is no such user"
                )
        for name, role in roles:
            if name not in names:
                self._tree.notes.leave_out(f"the role {role} of {name}", "there is no such user")
        for name in names:
            own = tuple(str(role) for who, role in roles if who == name and role != "admin")
            places = tuple(
                (place[0], place[2])
                for one, who in ids
                if who == name
                for place in [str(one).partition(":")]
            )
            self.people.append(
                ImportedPerson(name, own, places, any(row == (name, "admin") for row in roles))
            )

    def _conversations(self, rows: SqliteRows, now: float) -> None:
        by_talk: dict[str, list[JsonlRecord]] = {}
        heads = list(rows.read("conversations", _COLUMNS["conversations"]))
        private = {str(head[0]): _parse_object(head[4]) for head in heads}
        whose = {
            f"{channel}:{one}": person.name for person in self.people for channel, one in person.ids
        }
        broken = orphans = 0
        for key, raw, created_at, _ in rows.read("messages", _COLUMNS["messages"], "id"):
            found = _parse_object(raw)
            if str(key) not in private:
                orphans += 1
                continue
            if "role" not in found:
                broken += 1
                continue
            self._tree.notes.count_unused_fields("messages", found, _LINE)
            self._note_changes(found.get("content"))
            speaker = str(private.get(str(key), {}).get("user_id") or "")
            line = _make_record(found, created_at, whose.get(speaker, speaker))
            if line is None:
                self._tree.notes.count_left_out(describe_role(found["role"]), FOR_THE_MODEL)
            else:
                by_talk.setdefault(str(key), []).append(line)
        note_skipped_messages(self._tree, broken, orphans)
        for key, channel, transport, thread, _, updated in heads:
            meta = private[str(key)]
            self._tree.notes.count_unused_fields("conversations (metadata)", meta, _META)
            lines = by_talk.get(str(key), [])
            if not lines:
                self._tree.notes.leave_out(f"the conversation {key}", WHY_EMPTY)
                continue
            agent = str(meta.get("agent") or transport or "")
            talk = _make_conversation(
                str(key), agent, tuple(lines), (str(channel), str(thread)), meta
            )
            at = float(updated) if isinstance(updated, int | float) and 0 < updated < 1e11 else None
            self.conversations.append(replace(talk, at=at))

    def _note_changes(self, content: Any) -> None:
        """What a message does not come in with as it was."""
        if isinstance(content, list) and any(
            isinstance(part, dict) and "text" not in part for part in content
        ):
            self._tree.notes.change(
                "pictures and files in messages",
                "they were not stored there; only their kind is mentioned",
            )
        if _MEMORIES.search(plain_text(content)):
            self._tree.notes.change(
                "messages of people", "text that its memory had added to them is removed"
            )

    def _memories(self, rows: SqliteRows, now: float) -> None:
        expired = empty = 0
        columns = _COLUMNS["memories"]
        for text, scope, owner, retention, pinned, created, expires in rows.read(
            "memories", columns
        ):
            kind: Literal["user", "agent", "global"] | None = _SCOPES.get(str(scope))
            until = parse_time(expires)
            if not str(text or "").strip():
                empty += 1
            elif kind is None:
                self._tree.notes.leave_out(
                    f"a memory of the scope {scope!r}: {text}", "there is no such scope"
                )
            elif until is not None and until <= now and not pinned:
                expired += 1
            else:
                candidate = retention == "candidate" and not pinned
                self.memories.append(
                    ImportedMemory(
                        str(text), kind, str(owner), bool(pinned), candidate, parse_time(created)
                    )
                )
        if expired:
            self._tree.notes.leave_out(format_count(expired, "memory"), "they had expired")
        if empty:
            self._tree.notes.leave_out(
                format_count(empty, "memory"),
                f"there is no text in {'it' if empty == 1 else 'them'}",
            )

    def _values(self, rows: SqliteRows, now: float) -> None:
        for agent, key, namespace, value, expires in rows.read("agent_kv", _COLUMNS["agent_kv"]):
            until = parse_time(expires)
            if until is not None and until <= now:
                self._tree.notes.leave_out(f"the key-value {key} of {agent}", "it had expired")
            else:
                self.values.append(
                    Value(str(agent), str(namespace or ""), str(key), str(value), until)
                )


_SCOPES: dict[str, Literal["user", "agent", "global"]] = {
    "user": "user",
    "agent": "agent",
    "global": "global",
}


def _make_conversation(
    key: str, agent: str, lines: tuple[JsonlRecord, ...], at: tuple[str, str], meta: dict[str, Any]
) -> ImportedConversation:
    platform, _, rest = key.partition(":")
    if platform == "job":
        return ImportedConversation(key, agent, lines, job=rest.partition(":")[0])
    chat, thread = at
    group = not meta.get("is_private", False)
    # An account of Slack has no name that both systems share: the chat and its thread are what
    # stays.
    named = platform == "slack" and _ID.fullmatch(chat) and _ID.fullmatch(thread)
    place = Address(platform, chat=chat, thread=thread, group=group) if named else None
    return ImportedConversation(key, agent, lines, place, group)


def _make_record(found: dict[str, Any], created_at: Any, by: str) -> JsonlRecord | None:
    """A message as a line; None for what is said to the model alone."""
    role = found.get("role")
    when = str(created_at) if created_at else None
    if role == "user":
        text = plain_text(found.get("content"))
        before = "\n".join(_THREAD.findall(text)).strip()
        return JsonlRecord(
            "user", _THREAD.sub("", _MEMORIES.sub("", text)), when, by=by, before=before
        )
    if role == "assistant":
        return JsonlRecord(
            "assistant", plain_text(found.get("content")), when, tool_calls=found.get("tool_calls")
        )
    if role == "tool":
        return JsonlRecord(
            "tool",
            plain_text(found.get("content")),
            when,
            tool_call_id=str(found.get("tool_call_id") or ""),
        )
    return None


def _parse_object(raw: Any) -> dict[str, Any]:
    with suppress(ValueError, RecursionError, TypeError):
        found = parse_json(raw)
        if isinstance(found, dict):
            return found
    return {}


def _agents(tree: Tree, keys: ImportedKeys) -> tuple[AgentFound, ...]:
    names = [str(name) for name in keys.agents] or ["operator"]
    named = [entry.name for entry in tree.entries("agents") if entry.kind == "folder"]
    found = []
    for name in dict.fromkeys([*names, *named]):
        own = tree.read_texts(f"agents/{name}", ("AGENT.md",)) if "/" not in name else {}
        work = (
            tree.read_texts(f"agents/{name}/workspace", WORKSPACE_FILES) if "/" not in name else {}
        )
        found.append(AgentFound(name, own, work))
    return tuple(found)


def _convert_transports(notes: ImportNotes, keys: ImportedKeys) -> None:
    """Slack of its agents as channels of ours, each bound to its agent."""
    channels: dict[str, Any] = {}
    bindings: list[dict[str, Any]] = []
    for agent, settings in keys.agents.items():
        transport = settings.get("transport") if isinstance(settings, Mapping) else None
        if not isinstance(transport, Mapping):
            continue
        kind = str(transport.get("type") or "slack")
        if kind != "slack":
            notes.leave_out(f"the transport {kind!r} of {agent}", "there is no such channel here")
            continue
        name = "slack" if not channels else f"slack-{agent}"
        named = {ours: str(transport.get(theirs) or usual) for ours, theirs, usual in _TOKENS}
        usual = {ours: usual for ours, _, usual in _TOKENS}
        own = {ours: value for ours, value in named.items() if value != usual[ours]}
        channels[name] = own if name == "slack" else {"type": "slack", **own}
        bindings.append({"agent": str(agent), "channel": name})
        ours = keys.config.setdefault("agents", {}).setdefault(str(agent), {})
        allowed = (*ours.get("also_allow", ()), *READING_TOOLS)
        ours["also_allow"] = list(dict.fromkeys(allowed))
    if channels:
        keys.config["channels"] = {**keys.config.get("channels", {}), **channels}
        keys.config["bindings"] = [*keys.config.get("bindings", ()), *bindings]


def _jobs(tree: Tree) -> Iterator[JobFound]:
    for entry in tree.entries("jobs"):
        inner = f"jobs/{entry.name}"
        if entry.kind != "folder" or not tree.has_file(f"{inner}/JOB.md"):
            continue
        folder = tree.read_folder(inner)
        if folder is None:
            continue
        try:
            parsed = parse_job(folder.files["JOB.md"].decode("utf-8-sig", "replace"), entry.name)
        except (JobInvalid, KeyError) as error:
            tree.notes.leave_out(inner, str(error), "repair its JOB.md and import again")
            continue
        for note in parsed.notes:
            tree.notes.change(f"{inner}/JOB.md", note)
        yield JobFound(
            parsed.job, {name: data for name, data in folder.files.items() if name != "JOB.md"}
        )
