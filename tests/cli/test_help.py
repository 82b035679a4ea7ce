"""The help of every command, on a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.testing import CliRunner

from deskhand.cli.root import COMMANDS, SECTIONS, cli


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of each command and sub-command."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            known = command.get_command(context, name)
            assert known is not None
            yield from commands(known, (*path, name))


def test_all_help_fits_and_nothing_of_it_is_cut() -> None:
    runner = CliRunner(env={"COLUMNS": "80"})
    wrong = []
    paths = list(commands(cli))
    assert len(paths) > 120
    for path in paths:
        shown = runner.invoke(cli, [*path, "--help"], prog_name="deskhand", terminal_width=80)
        assert shown.exit_code == 0, (path, shown.output)
        for line in shown.output.splitlines():
            is_cut = line.rstrip().endswith(("…", "...")) and not line.startswith("Usage:")
            if len(line) > 80 or is_cut or "…" in line:
                wrong.append(f"{' '.join(path)}: {line}")
    assert not wrong, "\n".join(wrong)


def test_every_command_stands_in_one_section() -> None:
    listed = [name for _, names in SECTIONS for name in names]
    assert sorted(listed) == sorted(COMMANDS)
