"""Reads the home of operator-ai (0.4 to 0.7): operator.yaml, state/operator.db, agents/, jobs/, skills/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec.structs import replace

from ...types.errors import JobInvalid
from ...types.identity import Address
from ..jobs.file import parse_job
from ..transcript import Line
from .found import AgentFound, Folder, Found, JobFound, Memory, Person, Talk, Value
from .rows import Rows
from .settings import Keys, keys_of, variables
from .tree import Tree, Unread, parsed

FILES = ("operator.yaml",)
DATABASES = ("state/operator.db", "operator.db")
BUNDLED = frozenset({"skill-creator", "job-creator"})
"""Skills that it brings along: what they tell is about it."""
_ID = re.compile(r"[A-Za-z0-9.]{1,60}")
"""Ids of chats and threads of Slack."""
_MEMORIES = re.compile(r'<context_snapshot source="memories">.*?</context_snapshot>\s*', re.DOTALL)
_THREAD = re.compile(r'<context_snapshot source="thread_history">.*?</context_snapshot>\s*', re.DOTALL)
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


def read(tree: Tree, now: float) -> Found:
    """All that this home holds. Raises Unread where nothing of it can be read."""
    keys = keys_of(tree, "operator.yaml")
    database = next((name for name in DATABASES if tree.has(name)), "")
    config, secrets = keys.config, keys.secrets | variables(tree, keys.env_file)
    inside = _Inside(tree)
    version = "0.4 or earlier" if "settings" in keys.raw else "0.5 or later"
    if database:
        try:
            version = inside.read(database, now)
        except Unread as error:
            tree.leave(database, str(error))
    else:
        tree.leave("state/operator.db", "it is not there, so there are no conversations, users or memories")
    return Found(
        "operator-ai",
        version,
        str(tree.root),
        config,
        secrets,
        _agents(tree, keys),
        tuple(inside.people),
        tuple(inside.talks),
        tuple(_jobs(tree)),
        tuple(inside.memories),
        tuple(inside.values),
        tuple(skills_in(tree)),
        left=tree.all_left(),
        trusted=bool(database) and tree.private(database),
    )


class _Inside:
    """What the database holds."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.people: list[Person] = []
        self.talks: list[Talk] = []
        self.memories: list[Memory] = []
        self.values: list[Value] = []

    def read(self, database: str, now: float) -> str:
        """Fill in everything, and give the version that wrote it."""
        rows = Rows(self._tree, database)
        try:
            for part in (self._people, self._talks, self._memories, self._values):
                try:
                    part(rows, now)
                except Unread as error:
                    self._tree.leave(database, str(error))
            newer = "created_at" in rows.columns("messages")
            for table, what in (
                ("job_state", "counters of jobs"),
                ("platform_message_index", "replies to old messages"),
            ):
                if rows.columns(table):
                    self._tree.leave(f"table {table}", f"{what} begin anew here")
            return "0.7" if newer else "0.4"
        finally:
            rows.close()

    def _people(self, rows: Rows, now: float) -> None:
        names = [str(name) for (name,) in rows.read("users", ("username",))]
        ids = list(rows.read("user_identities", ("platform_id", "username")))
        roles = list(rows.read("user_roles", ("username", "role")))
        for name in names:
            own = tuple(str(role) for who, role in roles if who == name and role != "admin")
            places = tuple(
                (place[0], place[2]) for one, who in ids if who == name for place in [str(one).partition(":")]
            )
            self.people.append(Person(name, own, places, any(row == (name, "admin") for row in roles)))

    def _talks(self, rows: Rows, now: float) -> None:
        by_talk: dict[str, list[Line]] = {}
        heads = list(rows.read("conversations", _COLUMNS["conversations"]))
        private = {str(head[0]): _object(head[4]) for head in heads}
        whose = {f"{channel}:{one}": person.name for person in self.people for channel, one in person.ids}
        broken = 0
        for key, raw, created_at, _ in rows.read("messages", _COLUMNS["messages"], "id"):
            found = _object(raw)
            if "role" not in found:
                broken += 1
                continue
            speaker = str(private.get(str(key), {}).get("user_id") or "")
            line = _line(found, created_at, whose.get(speaker, speaker))
            if line is not None:
                by_talk.setdefault(str(key), []).append(line)
        if broken:
            self._tree.leave(f"{broken} messages", "they cannot be read; the rest of their conversations is taken")
        for key, channel, transport, thread, _, updated in heads:
            if lines := by_talk.get(str(key)):
                meta = private[str(key)]
                agent = str(meta.get("agent") or transport or "")
                talk = _talk(str(key), agent, tuple(lines), (str(channel), str(thread)), meta)
                at = float(updated) if isinstance(updated, int | float) and 0 < updated < 1e11 else None
                self.talks.append(replace(talk, at=at))

    def _memories(self, rows: Rows, now: float) -> None:
        expired = 0
        for text, scope, owner, retention, pinned, created, expires in rows.read("memories", _COLUMNS["memories"]):
            kind: Literal["user", "agent", "global"] | None = _SCOPES.get(str(scope))
            until = moment(expires)
            if kind is None or not str(text).strip():
                self._tree.leave(f"a memory of the scope {scope!r}", "there is no such scope")
            elif until is not None and until <= now and not pinned:
                expired += 1
            else:
                candidate = retention == "candidate" and not pinned
                self.memories.append(Memory(str(text), kind, str(owner), bool(pinned), candidate, moment(created)))
        if expired:
            self._tree.leave(f"{expired} memories", "they had expired")

    def _values(self, rows: Rows, now: float) -> None:
        for agent, key, namespace, value, expires in rows.read("agent_kv", _COLUMNS["agent_kv"]):
            until = moment(expires)
            if until is None or until > now:
                self.values.append(Value(str(agent), str(namespace or ""), str(key), str(value), until))


_SCOPES: dict[str, Literal["user", "agent", "global"]] = {"user": "user", "agent": "agent", "global": "global"}


def _talk(key: str, agent: str, lines: tuple[Line, ...], at: tuple[str, str], meta: dict[str, Any]) -> Talk:
    platform, _, rest = key.partition(":")
    if platform == "job":
        return Talk(key, agent, lines, job=rest.partition(":")[0])
    chat, thread = at
    group = not meta.get("is_private", False)
    # An account of Slack has no name that both systems share: the chat and its thread are what stays.
    named = platform == "slack" and _ID.fullmatch(chat) and _ID.fullmatch(thread)
    place = Address(platform, chat=chat, thread=thread, group=group) if named else None
    return Talk(key, agent, lines, place, group)


def _line(found: dict[str, Any], created_at: Any, by: str) -> Line | None:
    """A message as a line; None for what is said to the model alone."""
    role = found.get("role")
    when = str(created_at) if created_at else None
    if role == "user":
        text = plain(found.get("content"))
        before = "\n".join(_THREAD.findall(text)).strip()
        return Line("user", _THREAD.sub("", _MEMORIES.sub("", text)), when, by=by, before=before)
    if role == "assistant":
        return Line("assistant", plain(found.get("content")), when, tool_calls=found.get("tool_calls"))
    if role == "tool":
        return Line("tool", plain(found.get("content")), when, tool_call_id=str(found.get("tool_call_id") or ""))
    return None


def plain(content: Any) -> str:
    """The text of a message; what is no text in it is named, since it was not kept."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part for part in content if isinstance(part, dict)]
    return "\n".join(
        str(part["text"]) if isinstance(part.get("text"), str) else f"[{part.get('type')}]" for part in parts
    )


def _object(raw: Any) -> dict[str, Any]:
    with suppress(ValueError, RecursionError, TypeError):
        found = parsed(raw)
        if isinstance(found, dict):
            return found
    return {}


def moment(text: Any) -> float | None:
    """A time as these systems write it, without a zone in UTC; None for anything else."""
    with suppress(ValueError, OverflowError, TypeError):
        at = datetime.fromisoformat(str(text))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return None


def _agents(tree: Tree, keys: Keys) -> tuple[AgentFound, ...]:
    names = [str(name) for name in keys.agents] or ["operator"]
    named = [entry.name for entry in tree.entries("agents") if entry.kind == "folder"]
    found = []
    for name in dict.fromkeys([*names, *named]):
        own = tree.texts(f"agents/{name}", ("AGENT.md",)) if "/" not in name else {}
        work = tree.texts(f"agents/{name}/workspace", WORKSPACE_FILES) if "/" not in name else {}
        found.append(AgentFound(name, own, work))
        if len(tree.entries(f"agents/{name}/workspace")) > len(work):
            tree.leave(f"files in agents/{name}/workspace", "they stay where they are: copy what you want to keep")
    if tree.has("SYSTEM.md"):
        tree.leave("SYSTEM.md", "Deskhand has its own; put what you want to keep into it")
    return tuple(found)


WORKSPACE_FILES = ("RULES.md", "SOUL.md", "USER.md", "CODE.md", "AGENTS.md", "HEARTBEAT.md")


def _jobs(tree: Tree) -> Iterator[JobFound]:
    for entry in tree.entries("jobs"):
        inner = f"jobs/{entry.name}"
        if entry.kind != "folder" or not tree.has(f"{inner}/JOB.md"):
            continue
        folder = tree.folder(inner)
        if folder is None:
            continue
        try:
            parsed = parse_job(folder.files["JOB.md"].decode("utf-8-sig", "replace"), entry.name)
        except (JobInvalid, KeyError) as error:
            tree.leave(inner, str(error))
            continue
        yield JobFound(parsed.job, {name: data for name, data in folder.files.items() if name != "JOB.md"})


def skills_in(tree: Tree, inner: str = "skills") -> Iterator[Folder]:
    """The skills in a folder: folders with a SKILL.md. Those that the system itself brings along are passed over."""
    for entry in tree.entries(inner):
        if entry.kind == "folder" and entry.name not in BUNDLED and tree.has(f"{inner}/{entry.name}/SKILL.md"):
            folder = tree.folder(f"{inner}/{entry.name}")
            if folder is not None:
                yield folder
