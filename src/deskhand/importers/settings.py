"""The configuration of another system, as keys of ours; and of those only such as open nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..config import keys
from ..config.config import parse_config, translate_config
from ..config.foreign_keys import (
    FOREIGN_PROVIDER_NAMES,
    SECRET_NOTE,
    normalize_model_name,
    to_snake_case,
)
from ..config.parse import parse_data, parse_env
from ..types.errors import ConfigError
from .safe_files import MCP_SERVERS, Tree

AGENT_KEYS = frozenset({
    "models", "steps", "tokens", "output_tokens", "context_ratio", "thinking", "temperature", "tools", "skills",  # noqa: E501
    "profile", "also_allow", "deny", "deferred_tools", "prompt", "voice", "cheap_model",
})  # fmt: skip
TAKEN_KEYS = frozenset(
    {"roles", "bindings", "timezone", "show_usage", "reject_response", "deep_work", "reflection"}
)
MEMORY_KEYS = frozenset(
    {
        "enabled",
        "max_memories",
        "inject_top_k",
        "inject_min_relevance",
        "candidate_ttl_days",
        "harvester",
        "cleaner",
    }
)
WHY_OPENS = "an imported file must not set this"
NO_SUCH_KEY = "Deskhand has no such setting"
NO_SUCH_CHANNEL_KEY = "Deskhand has no such setting of a channel"
NO_SUCH_SPEECH_KEY = "Deskhand has no such setting of speech"
OWN_MEANING = "Deskhand computes embeddings on this machine"
KEYS_NOT_TAKEN = {
    "workspace": ("Deskhand works in a folder of its own, so that nothing here is changed", ""),
    "sandbox": (
        "commands stay in the sandbox",
        "to run them outside the sandbox: deskhand config set agents.NAME.sandbox false",
    ),
    "env_file": ("its keys go to Deskhand's own .env", ""),
    "web": ("Deskhand's page has its own address", "deskhand config set web.port PORT"),
    "memory.embed_model": (
        OWN_MEANING,
        "to use another model: deskhand config set memory.embed_model NAME",
    ),
    "memory.embed_dimensions": (OWN_MEANING, ""),
}
"""Our keys that are not taken over: (why, what to do)."""
REASONS = {
    "acp_*": ("Deskhand does not speak ACP", ""),
    "mcp_servers*": MCP_SERVERS,
    "agents.*.channels.*": (NO_SUCH_CHANNEL_KEY, "see docs/channels.md"),
    "agents.*.computer_use": ("Deskhand does not control the desktop yet", ""),
    "agents.*.browser_use": ("Deskhand browses in the same way for all agents", ""),
    "agents.*.streaming": (
        "it is set for each channel",
        "deskhand config set channels.NAME.streaming false",
    ),
    "agents.*.subagent.*": ("Deskhand has no sub-agents yet", ""),
    "gateway.host": (
        "Deskhand listens on this machine only, so that an import opens nothing to the network",
        "see docs/serve.md",
    ),
    "sessions.max_history_tokens": (
        "it depends on the window of the model",
        "deskhand config set defaults.context_ratio 0.5",
    ),
    "memory.embedding_*": (
        OWN_MEANING,
        "to use another model: deskhand config set memory.embed_model NAME",
    ),
    "*.deep_work.max_iterations": (
        "deep work is limited by tokens",
        "deskhand config set deep_work.tokens NUMBER",
    ),
    "pinchtab.*": ("Deskhand does not use PinchTab", ""),
    "DATABASE_URL": ("Deskhand keeps conversations in a database of its own", ""),
    "PROMPTS_DIR": ("its presets are in prompts/ of Deskhand's home", ""),
    "CONTEXT_WINDOW": ("the catalogue of models knows the window", ""),
    "LLM_*": ("Deskhand has its own pauses between tries", ""),
    "BACKGROUND_TIMEOUT": ("background commands have a limit of their own", ""),
    "MAX_TEAMMATES": ("Deskhand has no teammates yet", ""),
    "TEAMMATE_*": ("Deskhand has no teammates yet", ""),
    "SUBAGENT_*": ("Deskhand has no sub-agents yet", ""),
    "WORKSPACE_CLEANUP_DELAY": ("Deskhand removes no workspace", ""),
    "GOOGLE_CLIENT_ID": (
        "who may sign in is a list of Deskhand's own",
        "deskhand config set web.sign_in.client_id ID, and deskhand users link NAME sign-in EMAIL",
    ),
}
"""Keys of the other systems that have no counterpart, by patterns: (why, what to do)."""


class ImportedKeys(msgspec.Struct):
    """What a configuration says. `raw` is as it stands, `agents` their settings by name, in their
    order; `config` are our keys, `secrets` variables, `env_file` where more of them lie."""

    raw: dict[str, Any] = {}
    agents: dict[str, Any] = {}
    config: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    env_file: str = ""


def read_config_keys(
    tree: Tree, inner: str, handled: tuple[str, ...] = (), beneath: Mapping[str, Any] | None = None
) -> ImportedKeys:
    """The configuration in this file; what cannot be read or is not taken is noted. `handled` are
    patterns of keys that the reader itself looks after; a secret under one of them is not taken.
    `beneath` are keys that hold where the file says nothing else."""
    if not tree.has_file(inner) and not beneath:
        return ImportedKeys()
    try:
        raw = keys.overlay(beneath or {}, _read(tree, inner) if tree.has_file(inner) else {})
        found = translate_config(raw, Path(inner))
        keys.normalize(found.config)
    except ConfigError as error:
        tree.note_unread(inner, error)
        return ImportedKeys()
    secrets = dict(found.secrets)
    for path, value in found.translation.left:
        variable = (
            str(value).removeprefix(SECRET_NOTE).removesuffix(")")
            if str(value).startswith(SECRET_NOTE)
            else ""
        )
        if any(fnmatchcase(snake_path(path), pattern) for pattern in handled):
            secrets.pop(variable, None)
        elif not variable and not _KEY.fullmatch(path):
            tree.notes.leave_out(path, *explain_unknown_key(path))
    secrets = {name: value for name, value in secrets.items() if value not in PLACEHOLDERS}
    env_file = str(found.config.get("env_file", ""))
    kept = _select_taken(tree, found.config, handled)
    return ImportedKeys(raw, _agents(raw), _select_valid(tree, inner, kept), secrets, env_file)


PLACEHOLDERS = frozenset({"ADD_KEY_HERE"})
"""What stands in a configuration where a key is to be put."""


def snake_path(path: str) -> str:
    """A path of keys with all of them in snake_case."""
    return ".".join(to_snake_case(part) for part in path.split("."))


def explain_unknown_key(path: str) -> tuple[str, str]:
    """Why a key is left out, and what to do."""
    plain = snake_path(path)
    found = (said for pattern, said in REASONS.items() if fnmatchcase(plain, pattern))
    return next(found, (NO_SUCH_KEY, "see docs/configuration.md"))


def select_keys(tree: Tree, inner: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Of these keys of ours, made from a file of another system, those that such a file may set,
    with values of their types; the others are noted."""
    return _select_valid(tree, inner, _select_taken(tree, dict(config), ()))


def note_unused_keys(
    tree: Tree,
    raw: Mapping[str, Any],
    used: Collection[str],
    reasons: Mapping[str, tuple[str, str]] | None = None,
) -> None:
    """Note all keys that say something and fit none of the patterns in `used`: those of one section
    together. `reasons` are (why, what to do) by patterns of paths in snake_case."""
    sections: dict[tuple[str, str, str], list[str]] = {}
    for path, value in _iter_leaves(raw):
        plain = ".".join(map(to_snake_case, path))
        if value in (None, "", [], {}) or any(fnmatchcase(plain, each) for each in used):
            continue
        said = (reasons or {}).items()
        why, todo = next(
            (each for pattern, each in said if fnmatchcase(plain, pattern)),
            (NO_SUCH_KEY, "see docs/configuration.md"),
        )
        sections.setdefault((".".join(path[:-1]), why, todo), []).append(path[-1])
    for (section, why, todo), names in sections.items():
        tree.notes.leave_out(f"{section}: {', '.join(names)}" if section else names[0], why, todo)


def _iter_leaves(
    data: Mapping[str, Any], at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, value) of everything that is no map."""
    for name, value in data.items():
        path = (*at, str(name))
        if isinstance(value, Mapping) and value:
            yield from _iter_leaves(value, path)
        else:
            yield path, value


def join_provider(model: Any, provider: Any = "") -> str:
    """`provider/model` as we write it; '' for nothing. A model that begins with its provider keeps
    it."""
    name, where = str(model or "").strip(), to_snake_case(str(provider or "").strip())
    where = FOREIGN_PROVIDER_NAMES.get(where, where)
    if not name:
        return ""
    known = normalize_model_name(name)
    if where in ("", "auto") or known.startswith(f"{where}/"):
        return known
    return f"{where}/{name}"


def names_variable(text: str) -> bool:
    """Whether this is the name of a variable in which a key is, and not the key."""
    return bool(_KEY.fullmatch(text))


def provider_variable(provider: str) -> str:
    """The variable for the key of a provider."""
    plain = to_snake_case(provider)
    ours = FOREIGN_PROVIDER_NAMES.get(plain, plain)
    name = "AZURE_OPENAI" if ours == "azure" else re.sub(r"\W", "_", ours).upper()
    return f"{name}_API_KEY"


def snake_fields(value: Any) -> dict[str, Any]:
    """A section with its keys in snake_case; {} for anything else."""
    if not isinstance(value, Mapping):
        return {}
    return {to_snake_case(str(name)): each for name, each in value.items()}


def section_at(raw: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """The section at this path of keys in snake_case, with its own keys in snake_case; {} where
    there is none."""
    section: Any = raw
    for name in path:
        section = snake_fields(section).get(name)
    return snake_fields(section)


def as_list(value: Any) -> list[Any]:
    """A list as it is; a text or a number as a list of its parts between commas; [] for anything
    else."""
    if isinstance(value, list):
        return value
    if isinstance(value, str | int) and not isinstance(value, bool):
        return [part.strip() for part in str(value).split(",") if part.strip()]
    return []


def as_map(value: Any) -> dict[str, Any]:
    """A map with texts for keys; {} for anything else."""
    return {str(name): each for name, each in value.items()} if isinstance(value, Mapping) else {}


def add_address(config: dict[str, Any], provider: str, address: Any) -> None:
    """Note in this configuration where a provider is. `select_keys` looks at the address."""
    if address:
        ours = FOREIGN_PROVIDER_NAMES.get(provider, provider)
        config.setdefault("providers", {})[ours] = {"base_url": str(address)}


def take_key(tree: Tree, secrets: dict[str, str], variable: str, value: Any) -> None:
    """Add a key to the secrets; what stands in place of one is noted."""
    text = value.strip() if isinstance(value, str) else ""
    if text and not _STAND_IN.fullmatch(text):
        secrets[variable] = text
    elif value:
        tree.notes.leave_out(
            f"the key {variable}",
            "the file names a variable, or a word in place of a key",
            f"put {variable} into Deskhand's own .env",
        )


def thinking_level(tree: Tree, where: str, effort: Any) -> str:
    """How hard a model thinks, in our words; '' for what we have no word for, which is noted."""
    said = str(effort or "").lower()
    if said and said not in _LEVELS:
        tree.notes.leave_out(
            f"{where}: {said}",
            "Deskhand has no such level",
            "deskhand config set defaults.thinking high",
        )
    return _LEVELS.get(said, "")


_STAND_IN = re.compile(r"\$\{?\w+\}?|dummy|EMPTY|ADD_KEY_HERE|your[-_ ].*", re.IGNORECASE)
_LEVELS = {
    "none": "off",
    "off": "off",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}


def _read(tree: Tree, inner: str) -> dict[str, Any]:
    if inner.endswith(".env"):
        return dict(parse_env(tree.read_text(inner)))
    return parse_data(tree.read_text(inner), Path(inner))


def _agents(raw: Mapping[str, Any]) -> dict[str, Any]:
    agents = raw.get("agents")
    listed = agents.get("list") if isinstance(agents, Mapping) else None
    if isinstance(listed, list):
        return {
            str(each.get("id") or each.get("name")): each
            for each in listed
            if isinstance(each, Mapping)
        }
    return as_map(agents)


def _select_taken(tree: Tree, config: dict[str, Any], handled: tuple[str, ...]) -> dict[str, Any]:
    """What may be set by a file that came from elsewhere."""
    kept: dict[str, Any] = {key: value for key, value in config.items() if key in TAKEN_KEYS}
    if defaults := _select_agent_keys(tree, "defaults", config.get("defaults")):
        kept["defaults"] = defaults
    agents = config.get("agents")
    if isinstance(agents, Mapping) and agents:
        kept["agents"] = {
            str(name): _select_agent_keys(tree, f"agents.{name}", each)
            for name, each in agents.items()
        }
    for key, value in as_map(config.get("memory")).items():
        if key in MEMORY_KEYS:
            kept.setdefault("memory", {})[key] = value
        else:
            tree.notes.leave_out(f"memory.{key}", *explain_not_taken(f"memory.{key}", value))
    for name, each in as_map(config.get("providers")).items():
        if isinstance(each, Mapping) and each.get("base_url"):
            if is_free_of_secrets(str(each["base_url"])):
                kept.setdefault("providers", {})[name] = {"base_url": each["base_url"]}
            else:
                todo = f"deskhand config set providers.{name}.base_url URL"
                tree.notes.leave_out(f"the address of {name}", "there may be a key in it", todo)
        for key, value in as_map(each).items():
            if key != "base_url":
                tree.notes.leave_out(
                    f"providers.{name}.{key}", *explain_not_taken(f"providers.{name}.{key}", value)
                )
    for key in config.keys() - {*TAKEN_KEYS, *handled, "defaults", "agents", "memory", "providers"}:
        inner = config[key]
        leaves = (
            {f"{key}.{name}": value for name, value in inner.items()}
            if isinstance(inner, Mapping)
            else {}
        )
        for path, value in (leaves or {key: inner}).items():
            tree.notes.leave_out(
                path, *explain_not_taken(key if key in KEYS_NOT_TAKEN else path, value)
            )
    return kept


def explain_not_taken(key: str, value: Any) -> tuple[str, str]:
    """Why a key of ours is not taken over, and what to do. A text is not repeated: it may be a
    secret."""
    said = msgspec.json.encode(value).decode() if isinstance(value, bool | int | float) else "VALUE"
    return KEYS_NOT_TAKEN.get(
        key, (WHY_OPENS, f"review it, and set it yourself: deskhand config set {key} {said}")
    )


def is_free_of_secrets(url: str) -> bool:
    """Whether this is an address with neither a name and a password in it nor a query or a
    fragment, in which keys are put."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return "@" not in url and not parts.query and not parts.fragment


def _select_agent_keys(tree: Tree, where: str, settings: Any) -> dict[str, Any]:
    if not isinstance(settings, Mapping):
        return {}
    for key in settings.keys() - AGENT_KEYS:
        path = f"{where}.{key}"
        tree.notes.leave_out(
            path, *explain_not_taken(key if key in KEYS_NOT_TAKEN else path, settings[key])
        )
    return {key: value for key, value in settings.items() if key in AGENT_KEYS}


def _select_valid(tree: Tree, inner: str, config: dict[str, Any]) -> dict[str, Any]:
    """The keys with values of their types; one with a value that cannot be is noted and left, and
    only it."""
    sound: dict[str, Any] = {}
    for section, value in sorted(
        config.items(), key=lambda each: each[0] == "bindings"
    ):  # these name agents
        around = {"agents": sound["agents"]} if section == "bindings" and "agents" in sound else {}
        if section in ("agents", "providers", "roles") and isinstance(value, Mapping):
            for name, each in value.items():
                checked = _convert_valid(tree, inner, (section, name), each)
                if checked is not None:
                    sound.setdefault(section, {})[name] = checked
        elif (checked := _convert_valid(tree, inner, (section,), value, around)) is not None:
            sound[section] = checked
    return sound


def _convert_valid(
    tree: Tree,
    inner: str,
    path: tuple[str, ...],
    value: Any,
    around: Mapping[str, Any] | None = None,
) -> Any:
    """The value at this path as it is converted; of a map without the keys that cannot be. None for
    nothing."""
    around = around or {}
    try:
        return _convert_at(inner, path, value, around)
    except ConfigError as error:
        if not isinstance(value, Mapping):
            _leave_out_invalid(tree, path, error)
            return None
    good: dict[str, Any] = {}
    for key, each in value.items():
        try:
            _convert_at(inner, path, good | {key: each}, around)
        except ConfigError as error:
            _leave_out_invalid(tree, (*path, str(key)), error)
        else:
            good[key] = each
    try:
        return _convert_at(inner, path, good, around)
    except ConfigError as error:  # a map where there is none
        _leave_out_invalid(tree, path, error)
        return None


def _convert_at(inner: str, path: tuple[str, ...], value: Any, around: Mapping[str, Any]) -> Any:
    """Raises ConfigError."""
    piece: Any = value
    for part in reversed(path):
        piece = {part: piece}
    whole: Any = msgspec.to_builtins(parse_config(around | piece, Path(inner)))
    for part in path:
        whole = whole.get(part) if isinstance(whole, Mapping) else None
    return {} if whole is None and len(path) > 1 else whole


def _leave_out_invalid(tree: Tree, path: tuple[str, ...], error: ConfigError) -> None:
    tree.notes.leave_out(".".join(path), str(error), "set it yourself: see docs/configuration.md")


_KEY = re.compile(r"(?!DESKHAND_)[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET|PASSWORD)")
"""Variables that are keys. Any other could change what Deskhand does."""


def read_env_keys(tree: Tree, env_file: str) -> dict[str, str]:
    """The keys in `.env`, and in the file that the configuration names, where that lies in the
    home."""
    return take_env_keys(tree, read_env_variables(tree, env_file))


def take_env_keys(tree: Tree, found: Mapping[str, str]) -> dict[str, str]:
    """Those of these variables that are keys; the others are noted."""
    for name in found:
        if not _KEY.fullmatch(name):
            why = (
                "only keys are added to .env: names that end in _KEY, _TOKEN, _SECRET or _PASSWORD"
            )
            tree.notes.leave_out(f"the variable {name}", why, "see docs/configuration.md")
    return select_env_keys(found)


def select_env_keys(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of these variables that are keys."""
    return {name: value for name, value in variables.items() if value and _KEY.fullmatch(name)}


def read_env_variables(tree: Tree, env_file: str) -> dict[str, str]:
    """All that these files set."""
    found: dict[str, str] = {}
    for inner in dict.fromkeys((".env", env_file)):
        path = tree.resolve_inside(inner) if inner else None
        if path and tree.has_file(path):
            try:
                found |= parse_env(tree.read_text(path))
            except ConfigError as error:
                tree.note_unread(path, error)
        elif inner and inner != ".env":
            tree.notes.leave_out(
                f"env_file {inner}",
                "it is not in this home",
                "copy its keys into Deskhand's .env",
            )
    return found
