"""The configuration of another system, as keys of ours; and of those only such as open nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ...types.errors import ConfigError
from .. import keys
from ..config import convert, ours
from ..datafile import parse_data, parse_env
from .tree import Tree, Unread

AGENT_KEYS = frozenset({
    "models", "steps", "tokens", "output_tokens", "context_ratio", "thinking", "temperature", "tools", "skills",
    "profile", "also_allow", "deny", "deferred_tools", "prompt", "voice", "cheap_model",
})  # fmt: skip
KEYS = frozenset({"roles", "bindings", "timezone", "show_usage", "reject_response"})
MEMORY_KEYS = frozenset(
    {"max_memories", "inject_top_k", "inject_min_relevance", "candidate_ttl_days", "harvester", "cleaner"}
)
OPENS = "a file from elsewhere does not set this: look at it, and set it yourself"
NOT_KEPT = {
    "workspace": "Deskhand works in a folder of its own, so that nothing here is changed",
    "sandbox": "commands stay in the sandbox; to let them out: deskhand config set agents.NAME.sandbox false",
    "env_file": "its keys go to Deskhand's own .env",
    "web": "Deskhand's page has its own address",
    "memory.embed_model": "Deskhand compares meanings on this machine, unless you set it",
    "memory.embed_dimensions": "Deskhand compares meanings on this machine, unless you set it",
}


class Keys(msgspec.Struct):
    """What a configuration says. `raw` is as it stands, `agents` their settings by name, in their order; `config` are
    our keys, `secrets` variables, `env_file` where more of them lie."""

    raw: dict[str, Any] = {}
    agents: dict[str, Any] = {}
    config: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    env_file: str = ""


def keys_of(tree: Tree, inner: str) -> Keys:
    """The configuration in this file; what cannot be read or is not taken is noted."""
    try:
        raw = _read(tree, inner)
    except (Unread, ConfigError) as error:
        tree.leave(inner, str(error))
        return Keys()
    try:
        found = ours(raw, Path(inner))
        keys.normalise(found.config)
    except ConfigError as error:
        tree.leave(inner, str(error))
        return Keys(raw)
    unused = [
        path
        for path, value in found.translation.left
        if not str(value).startswith("(a secret:") and not _KEY.fullmatch(path)
    ]
    for path in dict.fromkeys(
        ".".join(each.split(".")[: 4 if each.startswith("agents.list.") else 3]) for each in unused
    ):
        tree.leave(path, f"keys of {inner} that have no counterpart here")
    env_file = str(found.config.get("env_file", ""))
    return Keys(raw, _agents(raw), _sound(tree, inner, _kept(tree, found.config)), dict(found.secrets), env_file)


def _read(tree: Tree, inner: str) -> dict[str, Any]:
    if inner.endswith(".env"):
        return dict(parse_env(tree.text(inner)))
    return parse_data(tree.text(inner), Path(inner))


def _agents(raw: Mapping[str, Any]) -> dict[str, Any]:
    agents = raw.get("agents")
    listed = agents.get("list") if isinstance(agents, Mapping) else None
    if isinstance(listed, list):
        return {str(each.get("id") or each.get("name")): each for each in listed if isinstance(each, Mapping)}
    return {str(name): value for name, value in agents.items()} if isinstance(agents, Mapping) else {}


def _kept(tree: Tree, config: dict[str, Any]) -> dict[str, Any]:
    """What may be set by a file that came from elsewhere."""
    kept: dict[str, Any] = {key: value for key, value in config.items() if key in KEYS}
    if defaults := _agent(tree, "defaults", config.get("defaults")):
        kept["defaults"] = defaults
    agents = config.get("agents")
    if isinstance(agents, Mapping) and agents:
        kept["agents"] = {str(name): _agent(tree, f"agents.{name}", each) for name, each in agents.items()}
    memory = config.get("memory")
    for key, value in memory.items() if isinstance(memory, Mapping) else ():
        if key in MEMORY_KEYS:
            kept.setdefault("memory", {})[key] = value
        else:
            tree.leave(f"memory.{key}", NOT_KEPT.get(f"memory.{key}", OPENS))
    providers = config.get("providers")
    for name, each in providers.items() if isinstance(providers, Mapping) else ():
        if isinstance(each, Mapping) and each.get("base_url"):
            if _is_plain(str(each["base_url"])):
                kept.setdefault("providers", {})[str(name)] = {"base_url": each["base_url"]}
            else:
                tree.leave(f"the address of {name}", "there may be a key in it: set it yourself")
    for key in config.keys() - {*KEYS, "defaults", "agents", "memory", "providers"}:
        tree.leave(key, NOT_KEPT.get(key, OPENS))
    return kept


def _is_plain(url: str) -> bool:
    """Whether an address has neither a name with a password in it nor a query, in which keys are put."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return "@" not in parts.netloc and not parts.query


def _agent(tree: Tree, where: str, settings: Any) -> dict[str, Any]:
    if not isinstance(settings, Mapping):
        return {}
    for key in settings.keys() - AGENT_KEYS:
        tree.leave(f"{where}.{key}", NOT_KEPT.get(key, OPENS))
    return {key: value for key, value in settings.items() if key in AGENT_KEYS}


def _sound(tree: Tree, inner: str, config: dict[str, Any]) -> dict[str, Any]:
    """The keys with values of their types; one with a value that cannot be is noted and left, and only it."""
    sound: dict[str, Any] = {}
    for section, value in sorted(config.items(), key=lambda each: each[0] == "bindings"):  # these name agents
        named = section in ("agents", "providers", "roles") and isinstance(value, Mapping)
        for name, each in value.items() if named else ((section, value),):
            piece = {section: {name: each}} if named else {section: each}
            around = {"agents": sound["agents"]} if section == "bindings" and "agents" in sound else {}
            try:
                checked = msgspec.to_builtins(convert(around | piece, Path(inner)))
            except ConfigError as error:
                tree.leave(f"{section}.{name}" if named else section, str(error))
                continue
            if named:
                sound.setdefault(section, {})[name] = checked.get(section, {}).get(name, {})
            elif section in checked:
                sound[section] = checked[section]
    return sound


_KEY = re.compile(r"(?!DESKHAND_)[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET|PASSWORD)")
"""Variables that are keys. Any other could change what Deskhand does."""


def variables(tree: Tree, env_file: str) -> dict[str, str]:
    """The keys in `.env`, and in the file that the configuration names, where that lies in the home."""
    found = all_variables(tree, env_file)
    for name in found:
        if not _KEY.fullmatch(name):
            tree.leave(f"variable {name}", "it is no key; what it sets is set in the configuration here")
    return keys_in(found)


def keys_in(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of these variables that are keys."""
    return {name: value for name, value in variables.items() if value and _KEY.fullmatch(name)}


def all_variables(tree: Tree, env_file: str) -> dict[str, str]:
    """All that these files set."""
    found: dict[str, str] = {}
    for inner in dict.fromkeys((".env", env_file)):
        if inner and tree.has(inner):
            try:
                found |= parse_env(tree.text(inner))
            except (Unread, ConfigError) as error:
                tree.leave(inner, str(error))
        elif inner and inner != ".env":
            tree.leave(f"env_file {inner}", "it does not lie in this home: copy its keys into Deskhand's .env")
    return found
