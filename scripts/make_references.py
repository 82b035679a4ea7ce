"""Writes docs/cli.md from the commands, and docs/configuration-reference.md from the structs of the
configuration and the table in docs/configuration.md: `make references`.

A test compares both pages with what this makes.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import msgspec

from deskhand.cli.root import SECTIONS, cli
from deskhand.config.config import ENV_PREFIX, Config

DOCS = Path(__file__).parents[1] / "docs"
WIDTH = 100
LARGE = 100_000_000
"""Bounds beyond this only keep numbers within their type."""
TABLE = re.compile(r"^\| `([\w.]+)` \| (?:(.*?) )?\| (.+) \|$", re.MULTILINE)
MADE = "<!-- Made by scripts/make_references.py; run `make references`. -->\n"
SUBTITLES = {
    "defaults": "Defaults of all agents",
    "providers": "Providers of models",
    "web": "The page and the API",
}


def commands() -> str:
    """The page with the help of every command."""
    pages = [f"# Commands\n\n{MADE}\nEvery command has `--help`.\n"]
    root = open_context(cli, "deskhand")
    pages.append(f"## deskhand\n\n```text\n{plain_help(root)}\n```\n")
    for title, names in SECTIONS:
        pages.append(f"## {title}\n")
        for name in names:
            command = cli.get_command(root, name)
            if command is None:
                raise LookupError(f"the section {title!r} names {name!r}, which is no command")
            pages += describe(command, name, root)
    return "\n".join(pages)


def open_context(
    command: click.Command, name: str, parent: click.Context | None = None
) -> click.Context:
    """What click knows when a person types this, in a terminal of our width."""
    own = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    return click.Context(command, parent=parent, info_name=name, **own)


def describe(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    """The help of a command, and of those in it."""
    context = open_context(command, name, parent)
    yield f"### {context.command_path}\n\n```text\n{plain_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None and not found.hidden:
                yield from describe(found, inner, context)


def plain_help(context: click.Context) -> str:
    """Its help, without colours."""
    lines = click.unstyle(context.command.get_help(context)).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def settings() -> str:
    """The page with every key of the configuration."""
    said = {
        key: (default, does)
        for key, default, does in TABLE.findall((DOCS / "configuration.md").read_text())
    }
    rows: dict[str, list[str]] = {}
    for key, kind, default in fields(Config, ""):
        section, _, _ = key.partition(".")
        usual, does = said[key]
        shown = format_value(default) if usual in ("", None) or default not in (None, "") else usual
        typed = format_type(kind)
        in_file_only = "NAME" in key or "entries" in typed
        variable = "" if in_file_only else f"`{ENV_PREFIX}{key.upper().replace('.', '__')}`"
        rows.setdefault(section if "." in key else "", []).append(
            f"| `{key}` | {typed} | {shown} | {variable} | {does} |"
        )
    about = (
        "All keys of `deskhand.yaml`, with their types, defaults and environment variables.\n"
        "[Configuration](configuration.md) explains the file itself. Every key of `defaults` can "
        "also be\nset under `agents.NAME`."
    )
    pages = [f"# Configuration reference\n\n{MADE}\n{about}\n"]
    for section in sorted(rows):
        title = SUBTITLES.get(section, f"`{section}`" if section else "Top level")
        head = "| key | type | default | variable | what it does |\n|---|---|---|---|---|\n"
        pages.append(f"## {title}\n\n{head}" + "\n".join(rows[section]) + "\n")
    return "\n".join(pages)


def fields(of: type[msgspec.Struct], path: str) -> Iterator[tuple[str, Any, Any]]:
    """(key, type, default) of all that can be set. An agent has the keys of `defaults`."""
    for field in msgspec.structs.fields(of):
        key = f"{path}{field.encode_name}"
        kind = field.type
        if key == "agents":
            continue
        if typing.get_origin(kind) is dict:
            yield from fields(typing.get_args(kind)[1], f"{key}.NAME.")
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from fields(kind, f"{key}.")
        else:
            made = field.default_factory
            default = field.default if made is msgspec.NODEFAULT else made()
            yield key, kind, None if default is msgspec.NODEFAULT else default


def format_type(kind: Any) -> str:
    """A type in words, with the values or the range that it allows."""
    origin = typing.get_origin(kind)
    inner = typing.get_args(kind)
    if origin is Annotated:
        return format_type(inner[0]) + format_range(inner[1])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner if value != "")
    if origin in (typing.Union, types.UnionType):
        some = dict.fromkeys(format_type(one) for one in inner if one is not type(None))
        return " or ".join(word for word in some if word)
    if origin in (tuple, list):
        return f"list of {format_type(inner[0])}"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "entries"
    words = {bool: "`true` or `false`", int: "integer", float: "number", str: "text"}
    return words.get(kind, "text")


def format_range(meta: object) -> str:
    """What a number may be, '' where nothing says."""
    if not isinstance(meta, msgspec.Meta):
        return ""
    bounds = [
        f"{sign} {value:g}" if value < 10_000 else f"{sign} {value:,}"
        for sign, value in ((">", meta.gt), ("≥", meta.ge), ("<", meta.lt), ("≤", meta.le))
        if value is not None and value < LARGE
    ]
    return f", {' and '.join(bounds)}" if bounds else ""


def format_value(value: object) -> str:
    """A default as it is written in YAML."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | list):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


PAGES = {"cli.md": commands, "configuration-reference.md": settings}


if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())
