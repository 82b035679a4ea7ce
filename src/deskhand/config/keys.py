"""Keys as paths: which exist, which are ours, and what to say of the others."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from ..types.errors import ConfigError
from .foreign_keys import (
    FOREIGN_TOOL_NAMES,
    index_by_name,
    normalize_model_name,
    to_snake_case,
    translate_binding,
)

_UNSUPPORTED = re.compile(
    "acp_agents|acp_server|agent|bindings|gateway|image|lmstudio|mcp_servers"
    "|openrouter_api_key|pinchtab|roles|runtime|search|sessions|settings|stt|tts|[A-Z_]+"
)
"""Sections and variables of the other systems that are not read here: some have no counterpart,
others are taken by `deskhand import`."""
_UNSUPPORTED_IN_AGENT = re.compile(
    "acp_token|channels|description|permissions|plugins|sandbox|streaming|subagent|system_prompt"
    "|tools|transport"
)
RENAMED_KEYS = {"posture": "permission_mode"}
"""Keys that had another name in an earlier version, old -> new. Both are read; where both are
written, the new one holds."""


def field_types(of: type[msgspec.Struct]) -> dict[str, Any]:
    """name -> type."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(of)}


def entry_type(kind: Any) -> type[msgspec.Struct] | None:
    """The struct of a map by name, such as `agents`; None for any other type."""
    if typing.get_origin(kind) is dict:
        inner = typing.get_args(kind)[1]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            return inner
    return None


def _struct_type(kind: Any) -> type[msgspec.Struct] | None:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def split_known(
    data: Mapping[str, Any], into: type[msgspec.Struct]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the keys that `into` has, the others), both with their places kept. camelCase counts as
    snake_case."""
    known: dict[str, Any] = {}
    foreign: dict[str, Any] = {}
    types = field_types(into)
    for key, value in data.items():
        name = key if key in types else to_snake_case(key)
        if name in RENAMED_KEYS and name not in types:
            name = RENAMED_KEYS[name]
            if name in data:
                continue

        kind = types.get(name)
        is_foreign_tools = name == "tools" and isinstance(value, Mapping)  # {profile: coding}
        if kind is None or is_foreign_tools:
            foreign[key] = value
            continue

        inner = _struct_type(kind)
        by = entry_type(kind)
        is_section = inner is not None or by is not None
        if value is None and is_section:  # its keys are all comments
            value = {}
        if by is not None and isinstance(value, list):
            value = index_by_name(value)

        if by is not None and isinstance(value, Mapping):
            # operator-use has a list and defaults there
            theirs = name == "agents" and ("list" in value or "defaults" in value)
            _split_entries(name, value, by, (known, foreign), theirs=theirs)
        elif inner is not None and isinstance(value, Mapping):
            known[name], rest = split_known(value, inner)
            if rest:
                foreign[key] = rest
        else:
            known[name] = value
    return known, foreign


def _split_entries(
    name: str,
    value: Mapping[str, Any],
    by: type[msgspec.Struct],
    into: tuple[dict[str, Any], dict[str, Any]],
    *,
    theirs: bool,
) -> None:
    known, foreign = into
    if theirs:
        foreign[name] = value
        return
    known[name] = {}
    for each, inner in value.items():
        if not isinstance(inner, Mapping):
            known[name][each] = {} if inner is None else inner
            continue
        mine, rest = split_known(inner, by)
        if mine or not rest or name == "agents":
            known[name][each] = mine
        if rest:
            foreign.setdefault(name, {})[each] = rest


def overlay(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Both, map by map; `top` wins."""
    both = dict(base)
    for key, value in top.items():
        old = both.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            both[key] = overlay(old, value)
        else:
            both[key] = value
    return both


def with_defaults(own: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Both, map by map; `own` wins, and its order holds: of agents, the first one is the
    default."""
    both = dict(own)
    for key, value in defaults.items():
        mine = both.get(key)
        if key not in both:
            both[key] = value
        elif isinstance(mine, Mapping) and isinstance(value, Mapping):
            both[key] = with_defaults(mine, value)
    return both


def set_value(data: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set the value at a path, making what is missing on the way."""
    for part in path[:-1]:
        inner = data.get(part)
        if not isinstance(inner, dict):
            inner = data[part] = {}
        data = inner
    data[path[-1]] = value


def get_value(data: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The value at a path. Raises KeyError."""
    found: Any = data
    for part in path:
        if not isinstance(found, Mapping):
            raise KeyError(part)
        found = found[part]
    return found


def current_path(path: str) -> str:
    """A dotted path with the name that its key has today."""
    section, dot, name = path.rpartition(".")
    return f"{section}{dot}{RENAMED_KEYS.get(name, name)}"


def written_path(data: Mapping[str, Any], path: Sequence[str]) -> list[str]:
    """The path under which this file has the key: with its old name where it is written so."""
    *section, name = path
    try:
        written = get_value(data, section)
    except KeyError:
        return list(path)
    old_names = [old for old, new in RENAMED_KEYS.items() if new == name]
    if isinstance(written, Mapping) and name not in written:
        name = next((old for old in old_names if old in written), name)
    return [*section, name]


def exists(path: str, into: type[msgspec.Struct]) -> bool:
    """Whether this dotted path names a key or a section."""
    kind: Any = into
    for part in path.split("."):
        kind = _child_type(kind, part)
        if kind is None:
            return False
    return True


def is_entry(path: Sequence[str], into: type[msgspec.Struct]) -> bool:
    """Whether this path names an entry of a map by name, such as `agents.main`."""
    kind: Any = into
    for part in path[:-1]:
        kind = _child_type(kind, part)
    return entry_type(kind) is not None


def _child_type(kind: Any, part: str) -> Any:
    """The type of the key `part` in a section of this type, or None."""
    by = entry_type(kind)
    struct = _struct_type(kind)
    if by is not None:
        return by
    return field_types(struct).get(part) if struct is not None else None


def iter_paths(into: type[msgspec.Struct], at: str = "") -> Iterator[str]:
    """All paths that exist, `NAME` standing for a name."""
    for name, kind in field_types(into).items():
        inner = _struct_type(kind)
        by = entry_type(kind)
        if inner is not None:
            yield from iter_paths(inner, f"{at}{name}.")
        elif by is not None:
            yield from iter_paths(by, f"{at}{name}.NAME.")
        else:
            yield f"{at}{name}"


def find_similar(path: str, into: type[msgspec.Struct]) -> str:
    """The key that was probably meant: one that exists and is not this one; or ''.

    A name that is no key is compared with those at its own place first. If none is like it, the
    same name may stand in another section, where it is not ambiguous. Of a name without a section
    that is more likely.
    """
    if exists(path, into):
        return ""
    parts = path.split(".")
    if len(parts) == 1 and (elsewhere := _find_by_name(path, into)):
        return elsewhere
    return _correct_path(parts, into) or _find_by_name(parts[-1], into)


def _correct_path(parts: Sequence[str], into: type[msgspec.Struct]) -> str:
    """The path with the names in it that are no keys replaced by those that are like them, or
    ''."""
    kind: Any = into
    mended: list[str] = []
    for part in parts:
        found = part
        if entry_type(kind) is None:
            struct = _struct_type(kind)
            found = _closest(part, field_types(struct)) if struct is not None else ""
        if not found:
            return ""
        mended.append(found)
        kind = _child_type(kind, found)
    return ".".join(mended)


def _closest(name: str, names: Collection[str]) -> str:
    """`name` itself, the one that it begins, or the one most like it; '' where none is."""
    if name in names:
        return name
    longer = [each for each in names if each.startswith(f"{name}_")]
    return longer[0] if len(longer) == 1 else next(iter(get_close_matches(name, names, 1)), "")


def _find_by_name(name: str, into: type[msgspec.Struct]) -> str:
    """The one key with this name that stands in no map by name, or ''."""
    found = [
        key
        for key in iter_paths(into)
        if key.rpartition(".")[2] == name and "NAME" not in key.split(".")
    ]
    if len(found) > 1:
        found = [key for key in found if key.startswith("defaults.")]
    return found[0] if len(found) == 1 else ""


def describe_unknown(left: Sequence[tuple[str, Any]], into: type[msgspec.Struct]) -> list[str]:
    """A sentence for each key that means nothing, and one for all that only another system has."""
    said = []
    elsewhere = []
    transports = dict[str, list[str]]()
    for path, value in left:
        parts = [to_snake_case(part) for part in path.split(".")]
        if parts[0] == "agents" and parts[2:3] == ["transport"]:
            named = [str(value)] if parts[-1].endswith("_env") else []
            transports[parts[1]] = [*transports.get(parts[1], []), *named]
        elif path == "DATABASE_URL":
            said.append(
                "DATABASE_URL is not used: conversations are stored in Deskhand's own database, "
                "in the home folder"
            )
        elif _UNSUPPORTED.fullmatch(parts[0]) or any(
            map(_UNSUPPORTED_IN_AGENT.fullmatch, parts[1:])
        ):
            elsewhere.append(path)
        else:
            guess = find_similar(path, into)
            said.append(f"unknown key {path!r}" + (f"; did you mean {guess!r}?" if guess else ""))
    for agent, variables in transports.items():
        unread = f", and {' and '.join(variables)} are not read" if variables else ""
        told = (
            f"set `channels` and `bindings` instead; until then {agent!r} answers in the "
            f"terminal{unread}"
        )
        said.append(f"agents.{agent}.transport: {told}")
    if elsewhere:
        shown = ", ".join(elsewhere[:4]) + (
            f" and {len(elsewhere) - 4} more" if len(elsewhere) > 4 else ""
        )
        said.append(f"not used here yet: {shown}")
    return said


_NAME_NORMALIZERS: dict[str, Callable[[str], str]] = {
    "models": lambda name: normalize_model_name(name.strip()),
    **dict.fromkeys(
        ("tools", "also_allow", "deny"),
        lambda name: FOREIGN_TOOL_NAMES.get(name.strip(), name.strip()),
    ),
    "skills": str.strip,
    "commands": str.strip,
}
"""How a name of each kind becomes ours."""


def normalize(data: dict[str, Any]) -> None:
    """Names of models, tools and skills as ours, in place; a single name becomes a list."""
    agents = data.get("agents")
    for agent in (data.get("defaults"), *(agents.values() if isinstance(agents, dict) else ())):
        if not isinstance(agent, dict):
            continue
        for key, as_ours in _NAME_NORMALIZERS.items():
            names = [agent[key]] if isinstance(agent.get(key), str) else agent.get(key)
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                agent[key] = [as_ours(name) for name in names]
    memory = data.get("memory")
    inner = [memory.get("harvester"), memory.get("cleaner")] if isinstance(memory, dict) else []
    for asked in (*inner, data.get("reflection")):
        _normalize_models(asked)
    roles = data.get("roles")
    for role in roles.values() if isinstance(roles, dict) else ():
        if isinstance(role, dict) and isinstance(role.get("agents"), str):
            role["agents"] = [role["agents"]]
    if isinstance(data.get("bindings"), list):
        data["bindings"] = [
            translate_binding(each) if isinstance(each, dict) else each for each in data["bindings"]
        ]


def _normalize_models(asked: Any) -> None:
    """A single name as a list, all of them as ours; '' says nothing."""
    if not isinstance(asked, dict) or "models" not in asked:
        return
    if asked["models"] in ("", [""]):
        del asked["models"]
        return
    names = [asked["models"]] if isinstance(asked["models"], str) else asked["models"]
    if isinstance(names, list):
        asked["models"] = [
            normalize_model_name(name) if isinstance(name, str) else name for name in names if name
        ]


def check_lists(data: Mapping[str, Any]) -> None:
    """Raises ConfigError for a list that is written down and empty, where that would mean the same
    as none: it would read as `no model` and stand for the models of the defaults, or as `no
    program` and stand for all of them."""
    for path in ("defaults", "agents.*", "reflection", "memory.harvester", "memory.cleaner"):
        for place, section in _find_sections(data, path.split(".")):
            models = section.get("models")
            if isinstance(models, list | str) and not any(models):
                raise ConfigError(
                    f"{f'{place}.models'!r} is empty: name at least one model, such as "
                    "[anthropic/claude-sonnet-5], "
                    "or leave the key out"
                )
    rules = data.get("policy")
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        if isinstance(rule, Mapping) and rule.get("commands") == []:
            raise ConfigError(
                f"'policy[{number}].commands' is empty: name at least one program, such as "
                "[git, ls], or leave the key "
                "out for a rule about every command"
            )


def _find_sections(
    data: Any, path: Sequence[str], at: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(its path, the section) for each that is there; `*` stands for every name."""
    if not isinstance(data, Mapping):
        return
    if not path:
        yield at.removeprefix("."), data
        return
    for name in list(data) if path[0] == "*" else [path[0]]:
        yield from _find_sections(data.get(name), path[1:], f"{at}.{name}")


def describe_error(error: Exception) -> str:
    """What msgspec says of a wrong value, with our path for its `$.a[...].b`."""
    text = str(error)
    match = re.search(r" - at `\$?\.?([^`]*)`$", text)
    return f"{match[1]!r}: {text[: match.start()]}" if match else text
