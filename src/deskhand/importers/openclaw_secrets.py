"""The variables and the keys of OpenClaw: in its configuration, in .env, and in the profiles of its
agents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .safe_files import Tree, Unread, parse_json
from .settings import (
    as_map,
    names_variable,
    provider_variable,
    read_env_variables,
    snake_fields,
    take_key,
)
from .sqlite_reader import SqliteRows


def read_variables(tree: Tree, raw: Mapping[str, Any]) -> dict[str, str]:
    """All variables that it sets: in `env` of the configuration and in .env."""
    env = as_map(raw.get("env"))
    given = {**env, **as_map(env.get("vars"))}
    found = {
        name: value
        for name, value in given.items()
        if isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z0-9_]*", name)
    }
    return found | read_env_variables(tree, "")


def resolve_secret(tree: Tree, what: str, given: Any, variables: Mapping[str, str]) -> str:
    """The secret, which may be named: as a variable, or as a reference. '' where it is not in this
    home, which is noted."""
    name = given if isinstance(given, str) else ""
    if isinstance(given, Mapping):
        name = str(given.get("id") or "") if given.get("source") == "env" else ""
    plain = name.removeprefix("${").removesuffix("}")
    if plain in variables:
        return variables[plain]
    if isinstance(given, str) and plain == name and not names_variable(plain):
        return given
    where = f"it is in the variable {plain}" if plain else "it is kept elsewhere"
    tree.notes.leave_out(what, where, "put it into Deskhand's own .env")
    return ""


def read_profiles(
    tree: Tree, agent: str, shared: Sequence[tuple[Any, ...]], secrets: dict[str, str]
) -> None:
    """The keys of an agent's profiles, and of those that all share; who signed in has to do that
    again."""
    inner = f"agents/{agent}/agent/auth-profiles.json"
    stores: list[Any] = []
    if tree.has_file(inner):
        try:
            stores.append(tree.read_json(inner))
        except Unread as error:
            tree.note_unread(inner, error)
    database = f"agents/{agent}/agent/openclaw-agent.sqlite"
    kept = _rows(tree, database, "auth_profile_store", ("store_key", "store_json"))
    for _, store in (*kept, *shared):
        try:
            stores.append(parse_json(str(store)))
        except (ValueError, RecursionError):
            tree.notes.leave_out(f"keys of agent {agent}", "they cannot be read")
    for store in stores:
        for name, each in as_map(snake_fields(store).get("profiles")).items():
            one = snake_fields(each)
            variable = provider_variable(str(one.get("provider") or name.partition(":")[0]))
            if one.get("type") != "api_key":
                tree.notes.leave_out(
                    f"the sign-in {name}", "signing in does not move", "sign in again"
                )
            elif variable not in secrets and one.get("key"):
                take_key(tree, secrets, variable, one["key"])


def _rows(tree: Tree, database: str, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The rows of a table; none where there is no such database."""
    if not tree.has_file(database):
        return []
    try:
        rows = SqliteRows(tree, database)
        try:
            return list(rows.read(table, columns))
        finally:
            rows.close()
    except Unread as error:
        tree.note_unread(database, error)
        return []
