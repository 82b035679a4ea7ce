"""Keys as paths: which exist, which are ours, and what to say of the others."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from .aliases import TOOLS, binding_of, by_name, model_name, snake

_ELSEWHERE = re.compile(
    "acp_agents|acp_server|agent|bindings|gateway|image|lmstudio|mcp_servers"
    "|openrouter_api_key|pinchtab|roles|runtime|search|sessions|settings|stt|tts|[A-Z_]+"
)
"""Sections and variables of the other systems that have no counterpart here yet."""
_ELSEWHERE_IN_AGENT = re.compile(
    "acp_token|channels|description|permissions|plugins|sandbox|streaming|subagent|system_prompt|tools|transport"
)


def fields(of: type[msgspec.Struct]) -> dict[str, Any]:
    """name -> type."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(of)}


def named(kind: Any) -> type[msgspec.Struct] | None:
    """The struct of a map by name, such as `agents`; None for any other type."""
    if typing.get_origin(kind) is dict:
        inner = typing.get_args(kind)[1]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            return inner
    return None


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def split(data: Mapping[str, Any], into: type[msgspec.Struct]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the keys that `into` has, the others), both with their places kept. camelCase counts as snake_case."""
    known: dict[str, Any] = {}
    foreign: dict[str, Any] = {}
    types = fields(into)
    for key, value in data.items():
        name = key if key in types else snake(key)
        kind = types.get(name)
        if kind is None or (name == "tools" and isinstance(value, Mapping)):  # `tools: {profile: coding}`
            foreign[key] = value
            continue
        inner, by = _struct(kind), named(kind)
        if by is not None and isinstance(value, list):
            value = by_name(value)
        if by is not None and isinstance(value, Mapping):
            theirs = name == "agents" and ("list" in value or "defaults" in value)  # as operator-use has them
            _split_named(name, value, by, (known, foreign), theirs=theirs)
        elif inner is not None and isinstance(value, Mapping):
            known[name], rest = split(value, inner)
            if rest:
                foreign[key] = rest
        else:
            known[name] = value
    return known, foreign


def _split_named(
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
        mine, rest = split(inner, by)
        if mine or not rest or name == "agents":
            known[name][each] = mine
        if rest:
            foreign.setdefault(name, {})[each] = rest


def overlay(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Both, map by map; `top` wins."""
    both = dict(base)
    for key, value in top.items():
        old = both.get(key)
        both[key] = overlay(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


def put(data: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set the value at a path, making what is missing on the way."""
    for part in path[:-1]:
        inner = data.get(part)
        if not isinstance(inner, dict):
            inner = data[part] = {}
        data = inner
    data[path[-1]] = value


def get(data: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The value at a path. Raises KeyError."""
    found: Any = data
    for part in path:
        if not isinstance(found, Mapping):
            raise KeyError(part)
        found = found[part]
    return found


def exists(path: str, into: type[msgspec.Struct]) -> bool:
    """Whether this dotted path names a key or a section."""
    kind: Any = into
    for part in path.split("."):
        by, struct = named(kind), _struct(kind)
        if by is not None:
            kind = by
        elif struct is not None and part in fields(struct):
            kind = fields(struct)[part]
        else:
            return False
    return True


def every(into: type[msgspec.Struct], at: str = "") -> Iterator[str]:
    """All paths that exist, `NAME` standing for a name."""
    for name, kind in fields(into).items():
        inner, by = _struct(kind), named(kind)
        if inner is not None:
            yield from every(inner, f"{at}{name}.")
        elif by is not None:
            yield from every(by, f"{at}{name}.NAME.")
        else:
            yield f"{at}{name}"


def near(path: str, into: type[msgspec.Struct]) -> str:
    """The key that was probably meant, or ''."""
    parts = path.split(".")
    known = list(every(into))
    sections = {key.partition(".")[0] for key in known}
    if len(parts) == 1:
        return next(iter(get_close_matches(parts[0], sections, 1)), "")
    by = {key.rpartition(".")[2]: key for key in known if key.split(".")[0] in (parts[0], "defaults")}
    found = get_close_matches(parts[-1], by, 1)
    return ".".join([*parts[:-1], found[0]]) if found else ""


def complaints(left: Sequence[tuple[str, Any]], into: type[msgspec.Struct]) -> list[str]:
    """A sentence for each key that means nothing, and one for all that only another system has."""
    said, elsewhere, transports = [], [], dict[str, list[str]]()
    for path, value in left:
        parts = [snake(part) for part in path.split(".")]
        if parts[0] == "agents" and parts[2:3] == ["transport"]:
            named = [str(value)] if parts[-1].endswith("_env") else []
            transports[parts[1]] = [*transports.get(parts[1], []), *named]
        elif path == "DATABASE_URL":
            said.append("DATABASE_URL is not used: conversations are kept in a database of our own, in the home")
        elif _ELSEWHERE.fullmatch(parts[0]) or any(map(_ELSEWHERE_IN_AGENT.fullmatch, parts[1:])):
            elsewhere.append(path)
        else:
            guess = near(path, into)
            said.append(f"unknown key {path!r}" + (f"; did you mean {guess!r}?" if guess else ""))
    for agent, variables in transports.items():
        unread = f", and {' and '.join(variables)} are not read" if variables else ""
        told = f"set `channels` and `bindings` instead; until then {agent!r} answers in the terminal{unread}"
        said.append(f"agents.{agent}.transport: {told}")
    if elsewhere:
        shown = ", ".join(elsewhere[:4]) + (f" and {len(elsewhere) - 4} more" if len(elsewhere) > 4 else "")
        said.append(f"not used here yet: {shown}")
    return said


_NAMES: dict[str, Callable[[str], str]] = {
    "models": lambda name: model_name(name.strip()),
    **dict.fromkeys(("tools", "also_allow", "deny"), lambda name: TOOLS.get(name.strip(), name.strip())),
    "skills": str.strip,
    "commands": str.strip,
}
"""How a name of each kind becomes ours."""


def normalise(data: dict[str, Any]) -> None:
    """Names of models, tools and skills as ours, in place; a single name becomes a list."""
    agents = data.get("agents")
    for agent in (data.get("defaults"), *(agents.values() if isinstance(agents, dict) else ())):
        if not isinstance(agent, dict):
            continue
        for key, as_ours in _NAMES.items():
            names = [agent[key]] if isinstance(agent.get(key), str) else agent.get(key)
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                agent[key] = [as_ours(name) for name in names]
    memory = data.get("memory")
    inner = [memory.get("harvester"), memory.get("cleaner")] if isinstance(memory, dict) else []
    for asked in (*inner, data.get("reflection")):
        _normalise_models(asked)
    roles = data.get("roles")
    for role in roles.values() if isinstance(roles, dict) else ():
        if isinstance(role, dict) and isinstance(role.get("agents"), str):
            role["agents"] = [role["agents"]]
    if isinstance(data.get("bindings"), list):
        data["bindings"] = [binding_of(each) if isinstance(each, dict) else each for each in data["bindings"]]


def _normalise_models(asked: Any) -> None:
    """A single name, or none, as a list of ours."""
    if isinstance(asked, dict) and "models" in asked:
        names = [asked["models"]] if isinstance(asked["models"], str) else asked["models"]
        if isinstance(names, list):
            asked["models"] = [model_name(name) if isinstance(name, str) else name for name in names if name]


def plainly(error: Exception) -> str:
    """What msgspec says of a wrong value, with our path for its `$.a[...].b`."""
    text = str(error)
    match = re.search(r" - at `\$?\.?(.*?)`$", text)
    return f"{match[1]!r}: {text[: match.start()]}" if match else text
