"""Reads the home of operator-use (0.2.9): config.json, crons.json, and for each agent sessions, memory and skills."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from ...types.errors import JobInvalid
from ...types.identity import Address
from ...types.jobs import Job, checked
from ..transcript import Line
from .found import AgentFound, Found, JobFound, Memory, Talk
from .operator_ai import WORKSPACE_FILES, moment, skills_in
from .settings import Keys, keys_of, variables
from .tree import Tree, Unread

PLATFORMS = ("telegram",)
"""Platforms that we have a channel for."""
_BOT = re.compile(r"(\d{1,20}):.+", re.DOTALL)
_DAY = re.compile(r"\d{2}-\d{2}-\d{4}")


def read(tree: Tree, now: float) -> Found:
    """All that this home holds. Raises Unread where nothing of it can be read."""
    keys = keys_of(tree, "config.json")
    channels, bots = _channels(tree, keys)
    if channels:
        keys.config["channels"] = channels
        here = [{"agent": agent, "channel": name} for agent, (name, _) in bots.items()]
        keys.config["bindings"] = [*here, *keys.config.get("bindings", ())]
    names = list(keys.agents) or ["operator"]
    homes = {name: home for name in names if (home := _workspace(tree, name, keys.agents.get(name)))}
    if not keys.agents:  # before there were several, everything lay at the top
        homes = {"operator": "."} if tree.has("sessions") else homes
    files = [(name, inner) for name, home in homes.items() for inner in _sessions(tree, f"{home}/sessions")]
    talks = [talk for name, inner in files if (talk := _talk(tree, inner, name, bots)) is not None]
    skills = {skill.name: skill for home in homes.values() for skill in skills_in(tree, f"{home}/skills")}
    return Found(
        "operator-use",
        "0.2",
        str(tree.root),
        keys.config,
        keys.secrets | variables(tree, ""),
        tuple(_agent(tree, name, homes.get(name, "")) for name in names),
        (),  # those who may write stand in `allow_from` of their channel
        tuple(talks),
        tuple(_jobs(tree, bots, names)),
        tuple(memory for name, home in homes.items() for memory in _memories(tree, name, home)),
        skills=tuple(skills.values()),
        left=tree.all_left(),
        trusted=tree.private("config.json", *(home for home in homes.values() if tree.has(home))),
    )


def _workspace(tree: Tree, name: str, settings: Any) -> str:
    """Where an agent's files lie, from the home; '' where they do not lie in it."""
    given = settings.get("workspace") if isinstance(settings, Mapping) else None
    if given:
        path = Path(str(given)).expanduser()
        if path.is_absolute() and not path.is_relative_to(tree.root):
            tree.leave(f"agent {name}", f"its workspace {str(given)!r} lies elsewhere: deskhand import that folder too")
            return ""
        inner = str(path.relative_to(tree.root)) if path.is_absolute() else str(path)
    else:
        inner = f"workspaces/{name}" if tree.has(f"workspaces/{name}") else "workspace"
    return inner if ".." not in PurePosixPath(inner).parts and tree.has(inner) else ""


def _channels(tree: Tree, keys: Keys) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    """Channels as we have them, and for each agent (the name of its channel, the id of its bot)."""
    channels: dict[str, Any] = {}
    bots: dict[str, tuple[str, str]] = {}
    for agent, settings in keys.agents.items():
        given = settings.get("channels") if isinstance(settings, Mapping) else None
        for platform, each in given.items() if isinstance(given, Mapping) else ():
            if not isinstance(each, Mapping) or not each.get("enabled"):
                continue
            if platform not in PLATFORMS:
                tree.leave(f"channel {platform} of {agent}", f"Deskhand has no channel for {platform} yet")
                continue
            first = platform not in channels
            name = platform if first else f"{platform}-{agent}"
            variable = f"{platform}_bot_token" if first else f"{platform}_{agent}_bot_token"
            variable = re.sub(r"\W", "_", variable).upper()
            if token := str(each.get("token") or ""):
                keys.secrets[variable] = token
            bot = _BOT.fullmatch(token)
            bots[agent] = (name, bot[1] if bot else "")
            allowed = each.get("allowFrom", each.get("allow_from"))
            listed = [str(one) for one in allowed] if isinstance(allowed, list) else []
            if not listed:
                tree.leave(
                    f"that anybody may write to {agent} on {platform}", "nobody may before they are let in: pair"
                )
            own = {} if first else {"type": platform, "token_env": variable}
            channels[name] = own | ({"allow_from": listed} if listed else {})
    keys.secrets = {name: value for name, value in keys.secrets.items() if not name.startswith("AGENTS_LIST_")}
    tree.left = [each for each in tree.left if not each.what.startswith("agents.list.") or "channels" not in each.what]
    return channels, bots


def _sessions(tree: Tree, folder: str) -> Iterator[str]:
    """The files of sessions; later versions keep them in a folder for each day."""
    for entry in tree.entries(folder):
        if entry.kind == "file" and entry.name.endswith(".jsonl"):
            yield f"{folder}/{entry.name}"
        elif entry.kind == "folder" and _DAY.fullmatch(entry.name):
            for each in tree.entries(f"{folder}/{entry.name}"):
                if each.kind == "file" and each.name.endswith(".jsonl"):
                    yield f"{folder}/{entry.name}/{each.name}"


def _talk(tree: Tree, inner: str, agent: str, bots: Mapping[str, tuple[str, str]]) -> Talk | None:
    name = inner.rpartition("/")[2].removesuffix(".jsonl")
    key, lines = "", list[Line]()
    at: float | None = None
    try:
        for found in tree.lines(inner):
            if found.get("type") == "metadata":
                key, at = str(found.get("id") or ""), moment(found.get("created_at"))
            else:
                lines += _lines(found, at, key.partition(":")[0] or name.partition("_")[0])
    except Unread as error:
        tree.leave(inner, str(error))
        return None
    if not lines:
        return None
    key = key or name.replace("_", ":", 1)
    platform, _, chat = key.partition(":")
    channel, bot = bots.get(agent, ("", ""))
    group = chat.startswith("-")
    place = None
    if platform in PLATFORMS and channel and bot and chat.removeprefix("-").isdecimal():
        place = Address(channel, bot, chat, group=group)
    elif platform in PLATFORMS:
        tree.leave(f"the place of {key}", "no bot of this agent has a token in this home, so it is kept as a past one")
    return Talk(key, agent, tuple(lines), place, group)


def _lines(found: Mapping[str, Any], at: float | None, platform: str) -> Iterator[Line]:
    """A message as lines. A tool's has its call in it."""
    role, told = found.get("role"), found.get("metadata")
    text = found.get("content") if isinstance(found.get("content"), str) else ""
    if role == "human":
        user = str(told.get("user_id") or "") if isinstance(told, Mapping) else ""
        yield Line("user", text, at, by=f"{platform}:{user}" if user else "")
    elif role == "ai" and text:
        yield Line("assistant", text, at)
    elif role == "tool":
        call, name = str(found.get("id") or "call"), str(found.get("name") or "unknown")
        params = found.get("params")
        calls = [{"id": call, "name": name, "arguments": params if isinstance(params, dict) else {}}]
        yield Line("assistant", "", at, tool_calls=calls)
        yield Line("tool", text, at, tool_call_id=call, tool_name=name)


def _agent(tree: Tree, name: str, home: str) -> AgentFound:
    """What it is told; templates that say nothing of a person stay behind by themselves."""
    return AgentFound(name, {}, tree.texts(home, WORKSPACE_FILES) if home else {})


def _memories(tree: Tree, agent: str, home: str) -> Iterator[Memory]:
    for inner in (f"{home}/memory/MEMORY.md", f"{home}/MEMORY.md"):
        if tree.has(inner):
            yield from (Memory(text, "agent", agent) for text in facts_in(tree.texts(home, (inner[len(home) + 1 :],))))
    for entry in tree.entries(f"{home}/memory"):
        summary = f"{home}/memory/{entry.name}/summary.md"
        if entry.kind == "folder" and tree.has(summary):
            for text in tree.texts(f"{home}/memory/{entry.name}", ("summary.md",)).values():
                at = moment(entry.name)
                yield Memory(f"{entry.name}: {' '.join(text.split())}", "agent", agent, at=at)


def facts_in(files: Mapping[str, str]) -> Iterator[str]:
    """The facts in a file of notes: each item of a list, each paragraph; short ones with the heading above them."""
    for text in files.values():
        heading, paragraph = "", list[str]()
        for line in [*text.splitlines(), ""]:
            plain = line.strip()
            if plain.startswith("#") or not plain or plain[:2] in ("- ", "* ") or plain in ("---", "***"):
                if paragraph:
                    yield _under(heading, " ".join(paragraph))
                paragraph = [plain[2:].strip()] if plain[:2] in ("- ", "* ") else []
                heading = plain.lstrip("# ").strip() if plain.startswith("#") else heading
            elif not (plain.startswith("(") and plain.endswith(")")) and not plain.startswith("*This file"):
                paragraph.append(plain)


def _under(heading: str, text: str) -> str:
    return f"{heading}: {text}" if heading and len(text) < 60 else text


def _jobs(tree: Tree, bots: Mapping[str, tuple[str, str]], agents: list[str]) -> Iterator[JobFound]:
    if not tree.has("crons.json"):
        return
    try:
        found = tree.json("crons.json")
    except Unread as error:
        tree.leave("crons.json", str(error))
        return
    taken: set[str] = set()
    for each in found.get("jobs", ()) if isinstance(found, dict) and isinstance(found.get("jobs"), list) else ():
        if not isinstance(each, Mapping):
            continue
        name = job_name(str(each.get("name") or each.get("id") or "job"), taken)
        try:
            yield JobFound(checked(_job(each, name, bots)))
        except (JobInvalid, TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
            tree.leave(f"crons.json: {each.get('name') or each.get('id')}", str(error))


def _job(each: Mapping[str, Any], name: str, bots: Mapping[str, tuple[str, str]]) -> Job:
    schedule, payload = each.get("schedule") or {}, each.get("payload") or {}
    mode = str(schedule.get("mode") or "cron")
    text, once = str(schedule.get("expr") or "* * * * *"), mode == "at"
    if mode == "every":
        text = f"every {int(schedule.get('interval_ms') or 0)}ms"
    elif once and (due := each.get("state", {}).get("next_run_at_ms")):
        text = f"at {datetime.fromtimestamp(int(due) / 1000, UTC).isoformat()}"
    channel, chat = str(payload.get("channel") or ""), str(payload.get("chat_id") or "")
    agent = next((one for one, (place, _) in bots.items() if place == channel), "")
    account = bots[agent][1] if agent else ""
    to = Address(channel, account, chat, group=chat.startswith("-")) if channel in PLATFORMS and chat else None
    return Job(
        name,
        str(payload.get("message") or ""),
        str(each.get("name") or ""),
        text,
        "" if mode == "every" else str(schedule.get("tz") or "UTC"),
        agent=agent,
        kind="deliver" if payload.get("deliver") else "prompt",
        session="chat" if to and not payload.get("deliver") else "isolated",
        to=to,
        delete_after_run=bool(each.get("delete_after_run")) or once,
        enabled=bool(each.get("enabled", True)),
    )


def job_name(text: str, taken: set[str]) -> str:
    """A name that a job's folder can have, and none has yet."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50] or "job"
    name = next(name for n in range(1, 100_000) if (name := plain if n == 1 else f"{plain}-{n}") not in taken)
    taken.add(name)
    return name
