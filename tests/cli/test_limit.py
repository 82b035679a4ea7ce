"""Every command that prints a list takes `-n/--limit`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from deskhand.cli.root import cli
from tests.cli.test_commands import ALL, Desk

LISTS = {path for path in ALL if path[-1:] == ("list",) and path != ("config", "list")} | {
    ("acp", "sessions"),
    ("approvals", "grants"),
    ("deep",),
    ("jobs", "blueprints"),
    ("jobs", "runs"),
    ("logs",),
    ("memories", "contradictions"),
    ("memories", "search"),
    ("sessions", "search"),
    ("skills",),
    ("skills", "proposals"),
    ("trace",),
    ("undo",),
    ("users", "log"),
}
NO_LISTS = {("config", "list")}
"""It prints the configuration, which is one thing."""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


def _options(path: tuple[str, ...]) -> Iterator[click.Option]:
    return (each for each in ALL[path].params if isinstance(each, click.Option))


@pytest.mark.parametrize("path", sorted(LISTS), ids=" ".join)
def test_every_list_has_the_same_option(path: tuple[str, ...]) -> None:
    option = next(each for each in _options(path) if "--limit" in each.opts)
    taken = any("-n" in each.opts for each in _options(path) if each is not option)
    assert "-n" in option.opts or taken
    assert option.help == "Maximum number of entries to show."
    assert isinstance(option.type, click.IntRange)


def test_no_list_was_forgotten() -> None:
    """Commands whose help says that they list or show several things."""
    words = ("List ", "Find ", "Show each ", "Show everything ", "What became ")
    said = {
        path for path, command in ALL.items() if path and (command.help or "").startswith(words)
    }
    groups = {
        path for path in said if isinstance(ALL[path], click.Group) and (*path, "list") in ALL
    }
    assert said - groups - NO_LISTS <= LISTS


Fill = tuple[tuple[str, ...], ...]

FILLED: dict[str, tuple[Fill, str]] = {
    "agents": ((("agents", "add", "coder"),), "agents"),
    "allow": ((("allow", "path", "{home}/a"), ("allow", "path", "{home}/b")), "allow list"),
    "blueprints": ((), "jobs blueprints"),
    "budget": (
        (("config", "set", "budgets.all", "{{tokens: 5, tokens_per_day: 3}}"),),
        "budget list --json",
    ),
    "hosts": ((("hosts", "allow", "a.example"), ("hosts", "allow", "b.example")), "hosts list"),
    "jobs": (
        (
            ("jobs", "add", "a", "-s", "daily 09:00", "-p", "x"),
            ("jobs", "add", "b", "--on", "webhook", "-p", "x"),
        ),
        "jobs",
    ),
    "values": ((("values", "set", "a", "1"), ("values", "set", "b", "2")), "values list"),
    "models": ((), "model list anthropic"),
    "providers": ((), "model list"),
    "secrets": (
        (("secrets", "set", "a", "--env", "A"), ("secrets", "set", "b", "--env", "B")),
        "secrets",
    ),
    "sessions": ((("ask", "-s", "a", "hello"), ("ask", "-s", "b", "hello")), "sessions"),
    "sessions search": (
        (("ask", "-s", "a", "hello"), ("ask", "-s", "b", "hello")),
        "sessions search hello --json",
    ),
    "skills": ((), "skills"),
    "tokens": ((("tokens", "create", "a"), ("tokens", "create", "b")), "tokens --json"),
    "tools": ((), "tools"),
    "trace": ((("ask", "-s", "a", "hello"), ("ask", "-s", "a", "again")), "trace a --json"),
    "users": ((("users", "add", "ann", "telegram", "1"),), "users --json"),
    "users log": (
        (("users", "add", "ann", "telegram", "1"), ("users", "add-role", "ann", "approver")),
        "users log",
    ),
}


def _entries(desk: Desk, *args: str) -> int:
    """How many a command printed: of a JSON list or map, of JSON lines, or of lines that begin an
    entry."""
    result = CliRunner().invoke(
        cli, args, env={"DESKHAND_HOME": str(desk.home)}, prog_name="deskhand"
    )
    assert result.exit_code == 0, result.output
    text = result.stdout
    if "--json" in args and text.startswith("["):
        return len(msgspec.json.decode(text))
    if args[0] == "values":
        return len(msgspec.json.decode(text))
    begun = (line for line in text.splitlines() if line and not line.startswith((" ", "Chosen: ")))
    return len(list(begun))


@pytest.mark.parametrize("name", FILLED)
def test_no_more_than_so_many(desk: Desk, name: str) -> None:
    desk("init")
    desk("config", "set", "defaults.models", "scripted/echo")
    for folder in "ab":
        (desk.home / folder).mkdir()
        skill = desk.home / "skills" / folder / "SKILL.md"
        skill.parent.mkdir()
        skill.write_text(f"---\nname: {folder}\ndescription: for a test\n---\nText.\n")
    fill, command = FILLED[name]
    for each in fill:
        desk(*(word.format(home=desk.home) for word in each))
    whole = _entries(desk, *command.split())
    assert whole >= 2
    assert _entries(desk, *command.split(), "--limit", "1") == 1
    assert _entries(desk, *command.split(), "--limit", "2") == 2


def test_of_the_log_the_last_lines(desk: Desk) -> None:
    desk("init")
    log = desk.home / "logs" / "deskhand.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("one\ntwo\nthree\n")
    for option in ("-n", "--lines", "--limit"):
        assert desk("logs", option, "2") == "two\nthree\n"


@pytest.mark.parametrize("command", ["sessions --limit 0", "tools -n x"])
def test_a_limit_is_a_number_from_one(desk: Desk, command: str) -> None:
    assert "Invalid value for '--limit' / '-n'" in desk(*command.split(), code=2)
