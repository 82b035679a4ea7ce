"""Every command that prints a list prints it as JSON too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from .test_commands import ALL, Desk
from .test_commands import desk as desk

LIST_NAMES = re.compile(r"list|log|logs|history|search|grants|runs|proposals|blueprints|discover")
LIST_HELP = re.compile(r"List |Look for |Search ")
MORE = {
    ("sessions", "search"): ("hello",),
    ("trace",): ("talk",),
    ("jobs", "runs"): ("job",),
    ("memories", "history"): ("1",),
    ("memories", "search"): ("hello",),
    ("undo",): ("--list",),
}
"""What these take beside it."""
NEED_SOMETHING = {("trace",), ("jobs", "runs"), ("memories", "history")}
"""These list what belongs to one thing, which an empty home has not."""
OBJECTS = {("values", "list"), ("config", "list")}
"""These are not lists of things that are alike."""
LINES = {("logs",)}
"""These print one value a line."""


def is_list(path: tuple[str, ...], command: click.Command) -> bool:
    """Whether it prints several things of one kind, by its name, its first sentence or its
    options."""
    if isinstance(command, click.Group) and not command.invoke_without_command:
        return False
    options = {option for each in command.params for option in each.opts}
    named = bool(LIST_NAMES.fullmatch(path[-1])) if path else False
    return named or "--limit" in options or bool(LIST_HELP.match(command.help or ""))


def list_commands() -> Iterator[tuple[str, ...]]:
    for path, command in ALL.items():
        if path and is_list(path, command):
            yield path


LISTS = list(list_commands())


@pytest.mark.parametrize("path", LISTS, ids=" ".join)
def test_it_takes_json(path: tuple[str, ...]) -> None:
    assert "--json" in {option for each in ALL[path].params for option in each.opts}


@pytest.mark.parametrize(
    "path", [each for each in LISTS if each not in NEED_SOMETHING], ids=" ".join
)
def test_an_empty_home_is_json_too(path: tuple[str, ...], desk: Desk, tmp_path: Path) -> None:
    """Never a sentence: who reads it is a program."""
    args = (*path, *MORE.get(path, ()), "--json")
    if path == ("backup", "list"):
        args = (*path, str(tmp_path), "--json")
    said = desk(*args)
    if path in LINES:
        assert all(isinstance(json.loads(line), str) for line in said.splitlines())
    else:
        assert isinstance(json.loads(said), dict if path in OBJECTS else list)


def test_there_are_many() -> None:
    assert len(LISTS) > 35


def test_the_values_are_what_they_are(desk: Desk) -> None:
    """Not what a table shows of them: numbers, lists and truth values."""
    (agent,) = json.loads(desk("agents", "list", "--json"))
    assert agent["agent"] == "default" and agent["models"] == []
    tools = {each["tool"]: each for each in json.loads(desk("tools", "list", "--json"))}
    assert isinstance(tools["read_file"]["tokens"], int)
    assert {each["deferred"] for each in tools.values()} == {True, False}
    models = json.loads(desk("model", "list", "anthropic", "--json", "-n", "2"))
    assert len(models) == 2 and all(isinstance(each["window"], int) for each in models)
    skill = json.loads(desk("skills", "--json", "-n", "1"))[0]
    assert set(skill) == {"skill", "from", "description", "problem", "where"}
