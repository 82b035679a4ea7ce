"""`deskhand config`: what holds, and how to change it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec

from ..agent.next_step import COMPACT_AT
from ..config import keys
from ..config.config import LIST_KEYS, Config, Settings, parse_config
from ..config.foreign_file import add_secrets, read_foreign_settings
from ..config.parse import parse_value, read_text
from ..config.yaml_edit import set_key, unset_key
from ..tools.shell import TIMEOUT_S
from ..types.errors import ConfigError, DeskhandError
from ..types.limits import Limits
from ..types.private_files import write_private_file
from .encoded import to_json
from .plain import escape_control
from .run import USAGE, Group, config_option, fail, load_settings


@click.group(cls=Group, invoke_without_command=True)
@config_option
@click.pass_context
def config(ctx: click.Context, config: str | None) -> None:
    """Print the effective configuration as JSON, without secrets.

    \b
    Examples:
      deskhand config
      deskhand config set defaults.steps 80
      deskhand config import ~/.operator/operator.yaml --write
    """
    ctx.ensure_object(dict)
    ctx.obj["config"] = config
    if ctx.invoked_subcommand is None:
        _print_json(resolve_config(load_settings(config)))


def resolve_config(settings: Settings) -> dict[str, Any]:
    """Every key with what holds for it; each agent as it is, over the defaults."""
    whole = _dump_fields(settings.config)
    whole["agents"] = {name: _resolve_agent(settings, name) for name in settings.agents}
    return whole


def _resolve_agent(settings: Settings, name: str) -> dict[str, Any]:
    """An agent with what holds for it, also where neither it nor the defaults say anything."""
    agent = settings.agent(name)
    limits = settings.limits(agent, Limits().window)
    holds = {
        "steps": limits.steps,
        "tokens": limits.tokens,
        "context_ratio": COMPACT_AT if agent.context_ratio is None else agent.context_ratio,
        "shell_timeout_s": TIMEOUT_S if agent.shell_timeout_s is None else agent.shell_timeout_s,
        "profile": settings.offered_tools(name).profile,
        "permission_mode": settings.permission_mode(name),
    }
    return _dump_fields(agent) | holds


def _dump_fields(struct: msgspec.Struct) -> dict[str, Any]:
    """All fields, those that are not set too."""
    found: dict[str, Any] = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct):
            value = _dump_fields(value)
        elif isinstance(value, dict):
            value = {
                key: _dump_fields(inner) if isinstance(inner, msgspec.Struct) else inner
                for key, inner in value.items()
            }
        found[name] = msgspec.to_builtins(value)
    return found


def _print_json(value: Any) -> None:
    click.echo(to_json(value, indent=2))


def _inherited_config(ctx: click.Context, config: str | None) -> str | None:
    return config or (ctx.obj or {}).get("config")


@config.command()
@click.argument("key")
@config_option
@click.pass_context
def get(ctx: click.Context, key: str, config: str | None) -> None:
    """Print the value of one key: text as is, everything else as JSON.

    \b
    Example:
      deskhand config get defaults.models
    """
    settings = load_settings(_inherited_config(ctx, config))
    key = keys.current_path(key)
    try:
        value = keys.get_value(resolve_config(settings), key.split("."))
    except KeyError:
        if keys.exists(key, Config):
            fail(f"{key!r} is not set")
        _fail_unknown_key(key)
    if isinstance(value, str):
        click.echo(escape_control(value))
    elif isinstance(value, dict):
        _print_json(value)
    else:
        click.echo(to_json(value))


@config.command("list")
@click.option("--json", is_flag=True, expose_value=False, help="Print JSON, as it always does.")
@config_option
@click.pass_context
def list_(ctx: click.Context, config: str | None) -> None:
    """Print the whole configuration, as `config` does.

    \b
    Example:
      deskhand config list
    """
    _print_json(resolve_config(load_settings(_inherited_config(ctx, config))))


@config.command("set")
@click.argument("key")
@click.argument("value")
@config_option
@click.pass_context
def set_(ctx: click.Context, key: str, value: str, config: str | None) -> None:
    """Set a key. The value is written as in the file: 25, true, [a/b, c/d], or a word.

    \b
    Example:
      deskhand config set agents.main.thinking high
    """
    settings = load_settings(_inherited_config(ctx, config))
    key = keys.current_path(key)
    if not keys.exists(key, Config):
        _fail_unknown_key(key)
    try:
        data = parse_value(value) if value else ""
        listed = key.rpartition(".")[2] in LIST_KEYS or key == "plugins"
        if listed and isinstance(data, str):
            data = [name.strip() for name in data.split(",")]
        _write_config(settings, set_key(_read_text(settings.file), key.split("."), data))
    except DeskhandError as error:
        fail(str(error), USAGE)


@config.command()
@click.argument("key")
@config_option
@click.pass_context
def unset(ctx: click.Context, key: str, config: str | None) -> None:
    """Remove a key, so that its default applies again.

    \b
    Example:
      deskhand config unset defaults.temperature
    """
    settings = load_settings(_inherited_config(ctx, config))
    path = keys.current_path(key).split(".")
    try:
        _write_config(settings, unset_key(_read_text(settings.file), path, Config))
    except KeyError:
        fail(f"{key!r} is not set in {str(settings.file)!r}")
    except DeskhandError as error:
        fail(str(error), USAGE)


@config.command()
@config_option
@click.pass_context
def path(ctx: click.Context, config: str | None) -> None:
    """Print the path of the configuration file.

    \b
    Example:
      $EDITOR "$(deskhand config path)"
    """
    click.echo(str(load_settings(_inherited_config(ctx, config)).file))


@config.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--write", is_flag=True, help="Write it as the configuration; keep the old one as .bak."
)
@config_option
@click.pass_context
def import_(ctx: click.Context, file: str, write: bool, config: str | None) -> None:
    """Convert another system's configuration and print it.

    It reads operator-use's config.json, operator-ai's operator.yaml, agent_computer's config.json
    and openagent-core's .env. What has no counterpart yet is kept as comments; secrets go to .env.

    \b
    Example:
      deskhand config import ~/.operator/operator.yaml --write
    """
    settings = load_settings(_inherited_config(ctx, config))
    try:
        imported = read_foreign_settings(Path(file))
    except ConfigError as error:
        fail(str(error), USAGE)
    if not write:
        click.echo(escape_control(imported.text), nl=False)
    else:
        target = settings.file
        if target.exists():
            write_private_file(target.with_name(f"{target.name}.bak"), read_text(target))
            click.echo(f"Saved the old configuration as {target.name}.bak.", err=True)
        write_private_file(target, imported.text)
        for name in add_secrets(settings.home.env, imported.secrets):
            click.echo(f"Added {name} to {settings.home.env}.", err=True)
        click.echo(f"Wrote {target}.", err=True)
    if imported.left:
        count = len(imported.left)
        click.echo(
            f"{count} key{'s are' if count > 1 else ' is'} not used here yet: see the comments.",
            err=True,
        )
    if imported.secrets and not write:
        click.echo(f"Secrets that --write puts into .env: {', '.join(imported.secrets)}.", err=True)


def _fail_unknown_key(key: str) -> NoReturn:
    near = keys.find_similar(key, Config)
    fail(
        f"there is no key {key!r}"
        + (f"; did you mean {near!r}?" if near else "; list all keys with: deskhand config"),
        USAGE,
    )


def _read_text(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""


def _write_config(settings: Settings, text: str) -> None:
    """Write it only if it can be read back. Raises ConfigError."""
    known, _ = keys.split_known(parse_value(text) or {}, Config)
    keys.normalize(known)
    parse_config(known, settings.file)
    write_private_file(settings.file, text)
