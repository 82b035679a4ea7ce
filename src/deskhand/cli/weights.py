"""`deskhand model pull` and `deskhand model test`: fetch the weights of an embedded model, and try
any model."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import anyio
import click

from ..assembly.model_offers import format_gigabytes
from ..assembly.models import Models
from ..config.config import Settings
from ..models.base import ContextMessage, Reply, Request, TextDelta
from ..models.weights import PROVIDER, WeightsFolder, read_free_memory
from ..types.errors import DeskhandError
from ..types.labels import OWNER
from ..types.messages import Message, Text
from .run import config_option, fail, load_settings

TEST_TIMEOUT_S = 600.0


@click.command()
@click.argument("name", default="")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Use this file instead of downloading.",
)
@config_option
def pull(name: str, file: Path | None, config: str | None) -> None:
    """Download the weights of an embedded model; without NAME, the one that fits this machine.

    An interrupted download is resumed. The hash is checked before first use.

    \b
    Examples:
      deskhand model pull
      deskhand model pull --file ~/Downloads/weights.gguf
    """
    settings = load_settings(config)
    shelf = WeightsFolder(settings.cache_folder / "models")
    name = name.removeprefix(f"{PROVIDER}/") or shelf.choose(read_free_memory())
    bar = Bar(name)

    async def main() -> Path:
        return await shelf.pull(name, bar, file, bar.print_note)

    try:
        path = anyio.run(main)
    except DeskhandError as error:
        bar.end()
        fail(str(error))
    bar.end()
    click.echo(f"{PROVIDER}/{name} is ready; its hash is correct: {path}")
    if settings.config.defaults.models != (f"{PROVIDER}/{name}",):
        click.echo(f"Use it: deskhand model use {PROVIDER}/{name}")


@click.command()
@click.argument("name", default="")
@config_option
def test(name: str, config: str | None) -> None:
    """Ask the chosen model, or NAME, for one sentence and show how long it took.

    \b
    Example:
      deskhand model test ollama/qwen3
    """
    settings = load_settings(config)
    wanted = name or next(iter(settings.config.defaults.models), "")
    try:
        first_s, whole_s, text = anyio.run(_time_reply, settings, wanted)
    except DeskhandError as error:
        fail(str(error))
    click.echo(
        f"{wanted}: {text.strip()}\nfirst words after {first_s:.1f} s, all after {whole_s:.1f} s"
    )


async def _time_reply(settings: Settings, name: str) -> tuple[float, float, str]:
    """(seconds to the first piece, seconds in all, what it said). Raises ModelError."""
    asked = Message("user", (Text("Say hello in one short sentence.", OWNER),))
    request = Request(
        name.partition("/")[2], (), (ContextMessage(4, asked),), max_output_tokens=200
    )
    began = time.perf_counter()
    first_s = 0.0
    text = ""
    async with Models(settings) as models:
        with anyio.move_on_after(TEST_TIMEOUT_S):
            async for item in models.open(name).reply(request):
                if isinstance(item, TextDelta) and not first_s:
                    first_s = time.perf_counter() - began
                elif isinstance(item, Reply):
                    text = item.message.text
    return first_s, time.perf_counter() - began, text


class Bar:
    """Progress: one line that is rewritten on a terminal, a line for every tenth elsewhere."""

    def __init__(self, name: str) -> None:
        self._name, self._terminal = name, sys.stderr.isatty()
        self._began = time.perf_counter()
        self._tenth = -1
        self._shown = 0.0
        self._first = -1

    def __call__(self, done: int, size: int) -> None:
        self._first = done if self._first < 0 else self._first
        now = time.perf_counter()
        part = done / size if size else 0.0
        if self._terminal and (now - self._shown > 0.1 or done == size):
            self._shown = now
            rate = (done - self._first) / max(now - self._began, 0.01)
            blocks = "█" * int(part * 30)
            line = (
                f"\r{self._name} {blocks:<30} {part:4.0%} of {format_gigabytes(size)}, "
                f"{rate / 1e6:.0f} MB/s "
            )
            click.echo(line, nl=False, err=True)
        elif not self._terminal and int(part * 10) > self._tenth:
            self._tenth = int(part * 10)
            click.echo(f"{self._name}: {part:.0%} of {format_gigabytes(size)}", err=True)

    def print_note(self, line: str) -> None:
        """A remark between two pictures of the bar."""
        self.end()
        click.echo(f"deskhand: {line}", err=True)

    def end(self) -> None:
        if self._terminal and self._shown:
            click.echo("", err=True)
            self._shown = 0.0
