"""`deskhand logs`: the end of the log file, and what is added to it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path

import anyio
import click

from .encoded import to_json
from .plain import escape_control
from .run import config_option, limit_option, load_settings, run

POLL_S = 0.2


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Follow the log until Ctrl+C.")
@limit_option(50, least=0, names=("-n", "--lines"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON string per line.")
@config_option
def logs(follow: bool, limit: int, as_json: bool, config: str | None) -> None:
    """Show the end of the log.

    \b
    Examples:
      deskhand logs -n 200
      deskhand logs -f
    """
    settings = load_settings(config)
    path = settings.home.log
    found = _read_last_lines(path, limit)
    if not found and limit and not (follow or as_json):
        click.echo(f"Nothing was logged yet. Only problems are logged, to {path}")
        return
    show = to_json if as_json else escape_control
    for line in found:
        click.echo(show(line))
    if follow:
        run(settings, lambda: _follow(path, show))


def _read_last_lines(path: Path, count: int) -> list[str]:
    try:
        with path.open(errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, maxlen=count)]
    except FileNotFoundError:
        return []


async def _follow(path: Path, show: Callable[[str], str]) -> None:
    tail = _Tail(path)
    while True:
        for line in tail.read():
            click.echo(show(line))
        await anyio.sleep(POLL_S)


class _Tail:
    """What is added to a file, also after it was put aside for a new one of the same name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cut = b""
        self._file = self._open()
        if self._file is not None:
            self._file.seek(0, 2)

    def _open(self) -> BufferedReader | None:
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            return None

    def read(self) -> list[str]:
        """The whole lines that are new."""
        if self._file is None:
            self._file = self._open()
        if self._file is None:
            return []
        *lines, self._cut = (self._cut + self._file.read()).split(b"\n")
        try:
            replaced = self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            replaced = True
        if replaced:
            self._file.close()
            self._file = None
        return [line.decode(errors="replace") for line in lines]
