"""`deskhand values`: an agent's key-values, for people and for the hooks of jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..config.clock import SystemClock
from ..store.sql_store import SqlStore
from ..tools.queries import (
    StoredValue,
    drop_value,
    expire_values,
    find_value,
    list_values,
    set_value,
)
from ..types.messages import clean_text
from .encoded import to_json
from .run import (
    FAILED,
    Listing,
    agent_option,
    config_option,
    fail,
    limit_option,
    load_settings,
    resolve_agent,
    with_store,
)

C = TypeVar("C", bound=Callable[..., Any])
HOUR_S = 3600.0


def _key_options(command: C) -> C:
    """The options that say whose keys are meant."""
    namespace = click.option(
        "--ns",
        "-n",
        default="",
        metavar="NAMESPACE",
        help="Namespace of the key, such as a job's name.",
    )
    return config_option(agent_option(namespace(command)))


@click.group(cls=Listing)
def values() -> None:
    """Manage an agent's stored values (tools `kv_set`, `kv_get`).

    \b
    Examples:
      deskhand values set cursor 42 --ns mail
      deskhand values get cursor --ns mail
      deskhand values list --prefix seen/
    """


@values.command()
@click.argument("key")
@_key_options
def get(key: str, agent: str, ns: str, config: str | None) -> None:
    """Print a value; exit 1 if there is none.

    \b
    Example:
      deskhand values get cursor --ns mail
    """
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    now = SystemClock().now()

    async def use(store: SqlStore) -> str | None:
        found = await find_value(store, name, ns, clean_text(key), now)
        return None if found is None else found.value

    value = with_store(settings, use)
    if value is None:
        sys.exit(FAILED)
    click.echo(value)


@values.command("set")
@click.argument("key")
@click.argument("value")
@click.option(
    "--ttl",
    type=click.FloatRange(min=0, min_open=True),
    metavar="HOURS",
    help="Delete it after this time.",
)
@_key_options
def set_(key: str, value: str, ttl: float | None, agent: str, ns: str, config: str | None) -> None:
    """Store a value.

    \b
    Example:
      deskhand values set seen/17 yes --ns mail --ttl 24
    """
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    now = SystemClock().now()
    expires = now + ttl * HOUR_S if ttl is not None else None
    change = set_value(name, ns, StoredValue(clean_text(key), clean_text(value), expires))

    async def use(store: SqlStore) -> None:
        await store.change((expire_values(now), change))

    with_store(settings, use)


@values.command()
@click.argument("key")
@_key_options
def delete(key: str, agent: str, ns: str, config: str | None) -> None:
    """Delete a value; exit 1 if there is none.

    \b
    Example:
      deskhand values delete cursor --ns mail
    """
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    now = SystemClock().now()

    async def use(store: SqlStore) -> bool:
        found = await find_value(store, name, ns, clean_text(key), now)
        await store.change((drop_value(name, ns, clean_text(key)),))
        return found is not None

    if not with_store(settings, use):
        fail(f"there is no key {key!r}")


@values.command("list")
@click.option("--prefix", "-p", default="", help="Only keys with this prefix.")
@limit_option(names=())  # -n is the namespace
@click.option("--json", is_flag=True, expose_value=False, help="Print JSON, as it always does.")
@_key_options
def list_(prefix: str, limit: int | None, agent: str, ns: str, config: str | None) -> None:
    """Print keys and values as JSON.

    \b
    Example:
      deskhand values list --ns mail --prefix seen/
    """
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    now = SystemClock().now()

    async def use(store: SqlStore) -> dict[str, str]:
        found = await list_values(store, name, ns, clean_text(prefix), now)
        return {each.key: each.value for each in found[:limit]}

    found = with_store(settings, use)
    click.echo(to_json(found, indent=2))
