"""Reads the home of nanobot (0.1.3 to 0.3): config.json, pairing.json, sessions/ and workspace/.

Conversations lie in sessions/, in workspace/sessions/ or in a folder of sessions/ for each
workspace, as its version has it. All are read.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from ..types.jobs import Job
from ..types.options import TITLE_CHARS, SessionOptions
from .channels import convert_channels
from .chat_addresses import KINDS, Bots, ChatFound, ForeignChat, explain_no_channel, parse_chat
from .jsonl import JsonlRecord
from .model import AgentFound, ImportedConversation, ImportedHome, ImportedMemory, JobFound
from .notes import FOR_THE_MODEL, describe_role
from .reading import load_zone_or_utc, parse_facts, read_jobs, read_notes, read_skills
from .safe_files import KEEP, MCP_SERVERS, Tree, Unread
from .settings import (
    ImportedKeys,
    add_address,
    as_list,
    as_map,
    join_provider,
    note_unused_keys,
    provider_variable,
    read_env_keys,
    section_at,
    select_keys,
    snake_fields,
    take_key,
    thinking_level,
)
from .speech import ForeignEngine, SpeechImport

AGENT = "nanobot"
REASONS = {
    "history": ("what was typed in its terminal; conversations are imported", ""),
    "history/*": ("what was typed in its terminal; conversations are imported", ""),
    "media": ("files of messages; conversations name them", KEEP),
    "logs": ("logs of nanobot", ""),
    "auth*": ("signing in does not move", "sign in again"),
    "webui": ("what its page keeps", ""),
    "bridge": ("a part of its program", ""),
    "sessions/*/.workspace": ("it says to which workspace the conversations belong", ""),
    "workspace/memory/.*": ("how far memories were gathered; Deskhand starts anew", ""),
    "workspace/.nanobot": ("the id of its workspace", ""),
    "workspace/prompts*": ("prompts for nanobot's own program", ""),
    "workspace/plugins*": (
        "a plugin for nanobot cannot run here",
        "rewrite it: docs/extending.md",
    ),
    "workspace/cron*": ("state of its jobs", ""),
    "workspace/*": ("files of a workspace stay where they are", KEEP),
}
TOLD = ("SOUL.md", "USER.md", "AGENTS.md", "HEARTBEAT.md")
_SETTINGS = {
    "max_tool_iterations": "steps",
    "max_tokens": "output_tokens",
    "temperature": "temperature",
}
_USED_KEYS = (
    "agents.defaults.workspace",
    "agents.defaults.model",
    "agents.defaults.provider",
    "agents.defaults.model_preset",
    "agents.defaults.fallback_models",
    "agents.defaults.max_tool_iterations",
    "agents.defaults.max_tokens",
    "agents.defaults.temperature",
    "agents.defaults.reasoning_effort",
    "agents.defaults.timezone",
    "agents.defaults.timezone_mode",
    "providers.*.api_key",
    "providers.*.api_base",
    "model_presets.*.model",
    "model_presets.*.provider",
    "channels.*.*",
    "channels.transcription_provider",
    "channels.transcription_language",
    "transcription.enabled",
    "transcription.provider",
    "transcription.model",
    "transcription.language",
    "providers.*.api_type",
    "tools.web.search.api_key",
    "tools.web.search.provider",
)
_KEY_REASONS = {
    "channels.*": ("Deskhand shows progress in its own way", "see docs/channels.md"),
    "transcription.max_*": ("Deskhand hears recordings of up to three hours", "see docs/voice.md"),
    "tools.mcp_servers*": MCP_SERVERS,
    "gateway.heartbeat*": ("the heartbeat is a job here", "see docs/heartbeat.md"),
    "gateway*": ("Deskhand listens on this machine only", "see docs/serve.md"),
    "model_presets.*": ("of a preset only its model is imported", "deskhand model"),
}
_LINE = frozenset(
    {
        "role",
        "content",
        "timestamp",
        "tool_calls",
        "tool_call_id",
        "name",
        "media",
        "reasoning_content",
        "thinking_blocks",
        "latency_ms",
    }
)
_JOB = frozenset(
    {"id", "name", "enabled", "schedule", "payload", "state", "delete_after_run", "deleteAfterRun"}
)
_JOB_FIELDS = {
    "": _JOB | {"createdAtMs", "updatedAtMs", "created_at_ms", "updated_at_ms"},
}
_INTERNAL = re.compile(r"(heartbeat|dream(:.*)?|system:.*)")
"""Conversations of the program with itself."""
_OWN_PLATFORMS = frozenset({"cli", "websocket", "api", "cron", "unified"})
"""Its own surfaces; what is unified is of everybody."""
_ONE_PERSON = frozenset({"telegram", "email"})
"""Platforms on which the id of a chat with one person is that person's."""
_ABOUT_THE_FILE = "This file stores important information"
_CONTEXT = "[Runtime Context"
_CONTEXT_END = "[/Runtime Context]"
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def read(tree: Tree, now: float) -> ImportedHome:
    """All that this home holds; what cannot be read is in `broken`."""
    raw = _drop_unused_channels(_read_config(tree))
    keys = _convert_settings(tree, raw)
    _add_paired(tree, keys)
    keys.raw["channels"] = _convert_dialect(tree, keys.raw.get("channels"))
    channels, bots = convert_channels(tree.notes, keys, [AGENT])
    if channels:
        keys.config["channels"] = channels
    work = _workspace(tree, raw)
    talks = tuple(_conversations(tree, work, bots, load_zone_or_utc(keys.config.get("timezone"))))
    jobs = tuple(_jobs(tree, work, bots))
    memories = tuple(
        ImportedMemory(text, "agent", AGENT)
        for text in parse_facts(tree.read_texts(f"{work}/memory", ("MEMORY.md",)) if work else {})
        if not text.startswith(_ABOUT_THE_FILE)
    )
    if memories:
        tree.notes.change(f"{work}/memory/MEMORY.md", "each of its lines becomes a memory")
    skills = tuple(read_skills(tree, f"{work}/skills")) if work else ()
    agent = AgentFound(AGENT, {}, _told(tree, work), dict(_notes(tree, work)) if work else {})
    secrets = keys.secrets | read_env_keys(tree, "")
    tree.leave_out_rest(REASONS)
    return ImportedHome(
        "nanobot",
        "",
        str(tree.root),
        keys.config,
        secrets,
        (agent,),
        (),  # those who may write stand in `allow_from` of their channel
        talks,
        jobs,
        memories,
        skills=skills,
        left_out=tree.notes.all_left_out(),
        changed=tree.notes.all_changed(),
        broken=tree.notes.all_broken(),
        trusted=tree.is_private(
            *(each for each in ("config.json", "sessions", work) if each and tree.has(each))
        ),
    )


# ---------------------------------------------------------------------- settings


def _read_config(tree: Tree) -> dict[str, Any]:
    if not tree.has_file("config.json"):
        return {}
    try:
        found = tree.read_json("config.json")
    except Unread as error:
        tree.note_unread("config.json", error)
        return {}
    if not isinstance(found, dict):
        tree.notes.fail("config.json", "it is no object")
        return {}
    return found


def _drop_unused_channels(raw: Mapping[str, Any]) -> dict[str, Any]:
    """nanobot writes down every channel that there could be: those that are off and have neither a
    key nor people say nothing."""
    if not isinstance(raw.get("channels"), Mapping):
        return dict(raw)
    kept = {
        name: each
        for name, each in as_map(raw["channels"]).items()
        if not isinstance(each, Mapping) or _is_used(snake_fields(each))
    }
    return {**raw, "channels": kept}


def _is_used(channel: Mapping[str, Any]) -> bool:
    return bool(channel.get("enabled")) or any(
        value and (name == "allow_from" or name.endswith(("token", "secret", "password", "key")))
        for name, value in channel.items()
    )


def _defaults(raw: Mapping[str, Any]) -> dict[str, Any]:
    return section_at(raw, "agents", "defaults")


def _convert_settings(tree: Tree, raw: Mapping[str, Any]) -> ImportedKeys:
    """Its settings as keys of ours, and its keys as secrets."""
    theirs = _defaults(raw)
    presets = {
        str(name): snake_fields(each)
        for name, each in snake_fields(raw.get("model_presets")).items()
    } or {str(name): snake_fields(each) for name, each in (raw.get("modelPresets") or {}).items()}
    own = {
        ours: theirs[name] for name, ours in _SETTINGS.items() if theirs.get(name) not in (None, "")
    }
    if models := _models(tree, theirs, presets):
        own["models"] = models
    if level := thinking_level(
        tree, "agents.defaults.reasoningEffort", theirs.get("reasoning_effort")
    ):
        own["thinking"] = level
    config: dict[str, Any] = {"defaults": own} if own else {}
    if theirs.get("timezone") and theirs.get("timezone_mode", "manual") == "manual":
        config["timezone"] = theirs["timezone"]
    secrets: dict[str, str] = {}
    for name, each in snake_fields(raw.get("providers")).items():
        provider = snake_fields(each)
        take_key(tree, secrets, provider_variable(name), provider.get("api_key"))
        add_address(config, name, provider.get("api_base"))
    search = section_at(raw, "tools", "web", "search")
    if search.get("api_key"):
        variable = provider_variable(str(search.get("provider") or "brave"))
        take_key(tree, secrets, variable, search["api_key"])
    note_unused_keys(tree, raw, _USED_KEYS, _KEY_REASONS)
    ours = select_keys(tree, "config.json", config)
    _convert_speech(tree, raw, ours, secrets)
    return ImportedKeys(dict(raw), {}, ours, secrets)


def _convert_speech(
    tree: Tree, raw: Mapping[str, Any], config: dict[str, Any], secrets: Mapping[str, str]
) -> None:
    """What hears: TranscriptionConfig in nanobot/config/schema.py, and the keys of channels that
    came before it. It does not speak. It writes down the provider that it would take, which counts
    where there is a key for it."""
    section = snake_fields(raw.get("transcription"))
    earlier = snake_fields(raw.get("channels"))
    usual = str(earlier.get("transcription_provider") or "")
    if provider_variable(usual) not in secrets:
        usual = ""
    engine = ForeignEngine(
        where="transcription",
        off=section.get("enabled") is False,
        provider=str(section.get("provider") or usual),
        model=str(section.get("model") or ""),
        language=str(section.get("language") or earlier.get("transcription_language") or ""),
    )
    speech = SpeechImport(tree.notes, config.get("providers", {}))
    speech.take("hear", engine)
    if speech.config:
        config["speech"] = speech.config


def _convert_dialect(tree: Tree, channels: Any) -> dict[str, Any]:
    """Its channels in the words of all systems. `group_policy` says whether it has to be named in a
    group: the classes `...Config` in nanobot/channels/*/runtime.py."""
    found: dict[str, Any] = {}
    for platform, each in as_map(channels).items():
        if not isinstance(each, Mapping):
            continue
        settings = snake_fields(each)
        if settings.get("group_policy") in ("open", "mention"):
            settings["require_mention"] = settings.pop("group_policy") == "mention"
        within = snake_fields(settings.get("dm"))  # of Slack: who may write to it alone
        settings["allow_from"] = [
            *as_list(settings.get("allow_from")),
            *as_list(within.pop("allow_from", None)),
        ]
        if within == {"enabled": True, "policy": "open"}:
            settings.pop("dm")  # as it is without that
        found[platform] = settings
    return found


def _models(
    tree: Tree, theirs: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The models in their order: the first one, and those that stand in for it."""
    preset = presets.get(str(theirs.get("model_preset") or ""), {})
    first = join_provider(
        preset.get("model") or theirs.get("model"),
        preset.get("provider") or theirs.get("provider"),
    )
    found = [first] if first else []
    for number, each in enumerate(as_list(theirs.get("fallback_models")), 1):
        one = snake_fields(each) or presets.get(str(each), {})
        if name := join_provider(one.get("model"), one.get("provider")):
            found.append(name)
        else:
            tree.notes.leave_out(
                f"fallback model {number}", "there is no preset of that name", "deskhand model"
            )
    return list(dict.fromkeys(found))


def _add_paired(tree: Tree, keys: ImportedKeys) -> None:
    """Whom its owner has approved may write as those in `allowFrom` may."""
    if not tree.has_file("pairing.json"):
        return
    try:
        found = tree.read_json("pairing.json")
    except Unread as error:
        tree.note_unread("pairing.json", error)
        return
    found = snake_fields(found)
    for platform, people in snake_fields(found.get("approved")).items():
        ids = [str(each) for each in as_list(people)]
        channels = keys.raw.get("channels")
        channel = channels.get(platform) if isinstance(channels, dict) else None
        if isinstance(channel, dict) and ids:
            name = "allow_from" if "allow_from" in channel else "allowFrom"
            channel[name] = [*as_list(channel.get(name)), *ids]
        elif ids:
            tree.notes.leave_out(
                f"that {', '.join(ids)} may write on {platform}",
                explain_no_channel(platform)
                if platform not in KINDS
                else f"no channel for {platform} is imported",
            )
    if waiting := snake_fields(found.get("pending")):
        tree.notes.leave_out(
            f"{len(waiting)} who asked to write", "nobody has approved them", "deskhand pair"
        )


def _workspace(tree: Tree, raw: Mapping[str, Any]) -> str:
    """The folder of its workspace, from the home; '' where it lies elsewhere."""
    named = str(_defaults(raw).get("workspace") or "workspace")
    if re.fullmatch(r"~/\.nanobot/(.+)", named):  # the home may have been moved
        named = named.removeprefix("~/.nanobot/")
    inner = tree.resolve_inside(named)
    if inner is None:
        tree.notes.leave_out(
            f"the files of its workspace {named}", "that folder is outside this home", KEEP
        )
        return ""
    return inner if tree.has_folder(inner) else ""


# ---------------------------------------------------------------------- conversations


def _conversations(
    tree: Tree, work: str, bots: Bots, zone: tzinfo
) -> Iterator[ImportedConversation]:
    found: dict[str, tuple[str, ImportedConversation]] = {}
    for inner in _session_files(tree, work):
        read_one = _read_conversation(tree, inner, bots, zone)
        if read_one is None:
            continue
        until, talk = read_one
        if talk.key in found and found[talk.key][0] >= until:
            tree.leave_out(inner, "a newer copy of this conversation is imported")
        else:
            found[talk.key] = (until, talk)
    for _, talk in found.values():
        yield talk


def _session_files(tree: Tree, work: str) -> Iterator[str]:
    for folder in ("sessions", f"{work}/sessions" if work else ""):
        for entry in tree.entries(folder) if folder else ():
            inner = f"{folder}/{entry.name}"
            if entry.name.endswith(".jsonl"):
                yield inner
            elif entry.kind == "folder" and not entry.name.startswith("."):
                for each in tree.entries(inner):
                    if each.name.endswith(".jsonl"):
                        yield f"{inner}/{each.name}"


def _read_conversation(
    tree: Tree, inner: str, bots: Bots, zone: tzinfo
) -> tuple[str, ImportedConversation] | None:
    """When it was changed, and the conversation; None where there is none."""
    if not tree.has_file(inner):
        return None
    head: dict[str, Any] = {}
    lines = list[JsonlRecord]()
    try:
        for found in tree.read_json_lines(inner):
            if found.get("_type") == "metadata":
                head = found
            elif "_type" in found:
                tree.notes.count_left_out("lines of state in sessions", FOR_THE_MODEL)
            else:
                lines += _convert_line(tree, found, zone)
    except Unread as error:
        tree.note_unread(inner, error)
        return None
    key = str(head.get("key") or _key_of_file(inner.rpartition("/")[2].removesuffix(".jsonl")))
    if not lines:
        tree.leave_out(inner, "there is no message in it")
        return None
    if _INTERNAL.fullmatch(key):
        tree.leave_out(inner, "nanobot talked to itself there")
        return None
    more = snake_fields(head.get("metadata"))
    talk = _make_conversation(tree, key, lines, more, bots)
    return str(head.get("updated_at") or ""), talk


def _make_conversation(
    tree: Tree,
    key: str,
    lines: list[JsonlRecord],
    more: Mapping[str, Any],
    bots: Bots,
) -> ImportedConversation:
    chat = parse_chat(key)
    job = key.partition(":")[2] if chat.platform == "cron" else ""
    found = ChatFound()
    if chat.platform not in _OWN_PLATFORMS:
        found = bots.find_chat(AGENT, chat)
        if found.place is None:
            tree.notes.note_past(key, found.why)
    if chat.platform in _ONE_PERSON and not found.group:
        by = f"{KINDS[chat.platform]}:{chat.id}"
        lines = [
            JsonlRecord("user", line.content, line.timestamp, by=by, before=line.before)
            if line.role == "user"
            else line
            for line in lines
        ]
    title = str(more.get("title") or "")[:TITLE_CHARS]
    return ImportedConversation(
        key,
        AGENT,
        tuple(lines),
        found.place,
        found.group,
        job,
        options=SessionOptions(title=title) if title else None,
        own=chat.platform == "cli",
    )


def _key_of_file(name: str) -> str:
    """The name of the conversation in a file of this name: base64, or with `_` for what no file
    name may have."""
    try:
        key = urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
        if ":" in key and urlsafe_b64encode(key.encode()).decode().rstrip("=") == name:
            return key
    except ValueError:
        pass
    if re.fullmatch(r"telegram_-?\d+(_topic_\d+)?", name):
        return name.replace("_", ":")
    return name.replace("_", ":", 1)


def _convert_line(tree: Tree, found: Mapping[str, Any], zone: tzinfo) -> Iterator[JsonlRecord]:
    role = found.get("role")
    text = _text_of(tree, found.get("content"))
    when = _with_zone(found.get("timestamp"), zone)
    if found.get("_command") or found.get("injected_event"):
        tree.notes.count_left_out("commands and notices in sessions", FOR_THE_MODEL)
        return
    said = {name: value for name, value in found.items() if not name.startswith("_")}
    tree.notes.count_unused_fields("messages in sessions", said, _LINE)
    if found.get("media"):
        tree.notes.count_left_out("files of messages", "conversations are imported without them")
    if role == "user":
        before, rest = _split_context(text)
        yield JsonlRecord("user", rest, when, before=before)
    elif role == "assistant":
        yield JsonlRecord("assistant", text, when, tool_calls=found.get("tool_calls"))
    elif role == "tool":
        call = str(found.get("tool_call_id") or "")
        name = str(found.get("name") or "unknown")
        yield JsonlRecord("tool", text, when, tool_call_id=call, tool_name=name)
    else:
        tree.notes.count_left_out(describe_role(role), FOR_THE_MODEL)


def _text_of(tree: Tree, content: Any) -> str:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = [part for part in content if isinstance(part, Mapping)]
    if any(part.get("type") != "text" for part in parts):
        tree.notes.count_left_out("files of messages", "conversations are imported without them")
    return "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))


def _split_context(text: str) -> tuple[str, str]:
    """(what the program put before or behind the words of a person, their words)."""
    at = text.find(_CONTEXT)
    if at < 0:
        return "", text
    end = text.find(_CONTEXT_END, at)
    if end >= 0:
        end += len(_CONTEXT_END)
    elif at == 0:
        end = text.find("\n\n")
    end = len(text) if end < 0 else end
    return text[at:end].strip(), f"{text[:at]}{text[end:]}".strip()


def _with_zone(said: Any, zone: tzinfo) -> str | None:
    """Its times do not say of which zone they are: of the one in its settings, as far as is
    known."""
    try:
        at = datetime.fromisoformat(str(said))
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


# ---------------------------------------------------------------------- what it is told, and knows


def _told(tree: Tree, work: str) -> dict[str, str]:
    """The files that tell it something. What only speaks of nanobot stays behind."""
    found = tree.read_texts(work, TOLD) if work else {}
    if "HEARTBEAT.md" in found:
        text = _COMMENT.sub("", found["HEARTBEAT.md"])
        if any(line.strip() and not line.startswith("#") for line in text.splitlines()):
            found["HEARTBEAT.md"] = text.strip() + "\n"
        else:
            del found["HEARTBEAT.md"]
            tree.notes.leave_out(f"{work}/HEARTBEAT.md", "there is no task in it")
    if "nanobot" in found.get("AGENTS.md", ""):
        del found["AGENTS.md"]
        tree.notes.leave_out(
            f"{work}/AGENTS.md",
            "it explains nanobot's own program",
            "put what you want to keep into AGENTS.md of the agent",
        )
    if "(your name)" in found.get("USER.md", ""):
        del found["USER.md"]
        tree.notes.leave_out(f"{work}/USER.md", "it was never filled in")
    return found


def _notes(tree: Tree, work: str) -> Iterator[tuple[str, bytes]]:
    """Its daily logs, and what it has written down of each conversation."""
    yield from read_notes(tree, work)
    for name, text in tree.read_texts(f"{work}/memory", ("HISTORY.md",)).items():
        yield f"memory/{name}", text.encode()
    inner = f"{work}/memory/history.jsonl"
    if not tree.has_file(inner):
        return
    try:
        entries = [
            f"## {found.get('timestamp')}\n\n{str(found.get('content')).strip()}\n"
            for found in tree.read_json_lines(inner)
            if found.get("content") and not _INTERNAL.fullmatch(str(found.get("session_key")))
        ]
    except Unread as error:
        tree.note_unread(inner, error)
        return
    if entries:
        yield "memory/history.md", "\n".join(entries).encode()


# ---------------------------------------------------------------------- jobs


def _jobs(tree: Tree, work: str, bots: Bots) -> Iterator[JobFound]:
    for inner in (f"{work}/cron/jobs.json" if work else "", "cron/jobs.json"):
        if inner and tree.has_file(inner):
            yield from read_jobs(
                tree, inner, lambda each, name: _job(tree, each, name, bots), _JOB_FIELDS
            )
            return


def _job(tree: Tree, each: Mapping[str, Any], name: str, bots: Bots) -> Job | None:
    entry = snake_fields(each)
    schedule = snake_fields(entry.get("schedule"))
    payload = snake_fields(entry.get("payload"))
    if payload.get("kind") == "system_event":
        tree.notes.leave_out(f"job {entry.get('name')}", "Deskhand has its own job for that")
        return None
    kind = str(schedule.get("kind") or "cron")
    text = str(schedule.get("expr") or "")
    if kind == "every":
        text = f"every {int(schedule.get('every_ms') or 0)}ms"
    elif kind == "at":
        due = datetime.fromtimestamp(int(schedule.get("at_ms") or 0) / 1000, UTC)
        text = f"at {due.isoformat()}"
    return Job(
        name,
        str(payload.get("message") or ""),
        str(entry.get("name") or ""),
        text,
        str(schedule.get("tz") or "") if kind == "cron" else "",
        agent=AGENT,
        session="isolated",
        to=bots.find_target(AGENT, _find_target_chat(payload)),
        delete_after_run=bool(entry.get("delete_after_run")) or kind == "at",
        enabled=bool(entry.get("enabled", True)),
    )


def _find_target_chat(payload: Mapping[str, Any]) -> ForeignChat:
    """Where a job sends to: to the chat that it names, else to the one that it was made in."""
    to = payload.get("to") or payload.get("origin_chat_id")
    if to:
        platform = payload.get("channel") or payload.get("origin_channel")
        chat = parse_chat(f"{platform or ''}:{to}")
    else:
        chat = parse_chat(str(payload.get("session_key") or ""))
    if chat.thread:
        return chat
    origin = snake_fields(payload.get("origin_metadata"))
    topic = origin.get("message_thread_id") or snake_fields(origin.get("slack")).get("thread_ts")
    return ForeignChat(chat.platform, chat.id, str(topic or ""))
