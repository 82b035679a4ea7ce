"""`deskhand talk`: speak with an agent at the terminal."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import click
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..assembly.speech import SpeechEngines
from ..channels.spoken_text import render_spoken
from ..runtime.app import App
from ..speech.base import MAX_SAY_CHARS, WAV, Sound, Voice
from ..speech.recordings import RATE, is_installed, read_samples
from ..speech.wav import wrap_samples
from ..types.errors import SpeechError
from ..types.events import ModelReplied, Transcribed
from ..types.identity import Address, session_key
from ..types.messages import Audio
from .ask import Question, run_question
from .plain import escape_control
from .run import USAGE, agent_option, config_option, fail, load_settings, resolve_agent
from .temporary_app import with_app
from .voice import make_engines

RECORDERS: tuple[tuple[str, ...], ...] = (
    ("pw-record", "--rate", "16000", "--channels", "1"),
    ("parecord", "--file-format=wav", "--rate=16000", "--channels=1"),
    ("arecord", "-q", "-f", "S16_LE", "-r", "16000", "-c", "1", "-t", "wav"),
    ("rec", "-q", "-r", "16000", "-c", "1"),
)
PLAYERS: tuple[tuple[str, ...], ...] = (
    ("pw-play",),
    ("paplay",),
    ("aplay", "-q"),
    ("play", "-q"),
    ("afplay",),
)
INSTALL = "sudo apt-get install pulseaudio-utils"
STOP_S = 3.0
SHORTEST_BYTES = RATE // 2
"""A quarter of a second: somebody pressed the key twice."""


class Programs(msgspec.Struct, frozen=True):
    """What records into a WAV file, and what plays one: the file comes as the last argument."""

    record: tuple[str, ...]
    play: tuple[str, ...] = ()


@click.command()
@click.option("--session", "-s", default="", metavar="NAME", help="Continue this conversation.")
@click.option("--mute", is_flag=True, help="Only listen; answers are written.")
@click.option("--recorder", default="", metavar="COMMAND", help="What records into a WAV file.")
@click.option("--player", default="", metavar="COMMAND", help="What plays a WAV file.")
@agent_option
@config_option
def talk(
    session: str, mute: bool, recorder: str, player: str, agent: str, config: str | None
) -> None:
    """Talk with an agent: press Enter and speak, press Enter again to send it. Answers are written
    and spoken; Enter interrupts them. Ctrl-C leaves.

    \b
    Examples:
      deskhand talk
      deskhand talk --mute
      deskhand talk --recorder "arecord -D plughw:1 -f S16_LE -r 16000 -c 1"
    """
    if not sys.stdin.isatty():
        fail("talk needs a terminal: it waits for keys", USAGE)
    settings = load_settings(config)
    if problem := make_engines(settings).find_problem("hear"):
        fail(f"nothing can listen here: {problem}", USAGE)
    programs = choose_programs(recorder, player, mute=mute)
    question = Question("", resolve_agent(settings, agent), session, interactive=True)
    sys.exit(with_app(settings, lambda app: converse(app, question, programs)))


def choose_programs(recorder: str, player: str, *, mute: bool) -> Programs:
    """Those that were named, else the first that are installed. Ends the command without one."""
    record = tuple(recorder.split()) or _find_installed(RECORDERS)
    if not record:
        fail(f"no program that records was found: {INSTALL}", USAGE)
    play = () if mute else tuple(player.split()) or _find_installed(PLAYERS)
    if not play and not mute:
        click.echo(f"deskhand: answers are not spoken, nothing here plays: {INSTALL}", err=True)
    return Programs(record, play)


def _find_installed(commands: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return next((each for each in commands if shutil.which(each[0])), ())


async def converse(app: App, question: Question, programs: Programs) -> int:
    """Listen and answer until the person leaves."""
    place = question.session or app.parts.ids.new("talk")
    question = replace(question, session=place)
    engines = make_engines(app.settings)
    speaks = bool(programs.play)
    if speaks and (problem := engines.find_problem("say")):
        click.echo(f"deskhand: answers are not spoken: {escape_control(problem)}", err=True)
        speaks = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engines.run)
        tasks.start_soon(_end_with_terminal, tasks)
        while await _wait_for_enter("Press Enter and speak."):
            data = await _record(programs.record)
            if len(data) < SHORTEST_BYTES:
                click.echo("deskhand: nothing was recorded", err=True)
                continue
            audio = Audio(await app.blobs.put(data), WAV)
            await run_question(app, replace(question, audio=audio))
            if speaks:
                await _say_answer(app, question, engines, programs.play)
        tasks.cancel_scope.cancel()
    click.echo(f"Continue with: deskhand talk --session {escape_control(place)}", err=True)
    return 0


async def _wait_for_enter(words: str) -> bool:
    """Whether Enter was pressed; the input may have ended instead."""
    click.echo(click.style(words, dim=True), err=True)
    await anyio.wait_readable(sys.stdin)
    return bool(await anyio.to_thread.run_sync(sys.stdin.readline))


async def _record(command: tuple[str, ...]) -> bytes:
    """What is spoken until Enter is pressed, as WAV."""
    with tempfile.TemporaryDirectory(prefix="deskhand-talk-") as folder:
        path = Path(folder) / "said.wav"
        process = _start((*command, str(path)))
        try:
            await _wait_for_enter("Recording. Press Enter to send it.")
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_stop, process)
        try:
            return await anyio.to_thread.run_sync(path.read_bytes)
        except OSError:
            return b""


async def _say_answer(
    app: App, question: Question, engines: SpeechEngines, play: tuple[str, ...]
) -> None:
    """Say the last answer, until it is said or Enter is pressed."""
    session = question.session
    if "/" not in session:
        session = session_key(question.agent, Address("terminal", chat=session))
    text = language = ""
    for recorded in await app.store.events(session):
        if isinstance(recorded.event, ModelReplied):
            text = recorded.event.message.text
        elif isinstance(recorded.event, Transcribed):
            text, language = "", recorded.event.language
    words = render_spoken(text)
    if not words or len(words) > MAX_SAY_CHARS:
        return
    try:
        sound = await engines.say(words, Voice(language=language))
        data = await _as_wav(sound, app)
    except SpeechError as error:
        click.echo(f"deskhand: the answer was not spoken: {escape_control(str(error))}", err=True)
        return
    with tempfile.TemporaryDirectory(prefix="deskhand-talk-") as folder:
        path = Path(folder) / "answer.wav"
        await anyio.to_thread.run_sync(path.write_bytes, data)
        process = _start((*play, str(path)))
        try:
            await _wait_for_end_or_enter(process)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_stop, process)


async def _end_with_terminal(tasks: TaskGroup) -> None:
    """The microphone is closed with the window, too."""
    with anyio.open_signal_receiver(signal.SIGHUP, signal.SIGTERM) as signals:
        async for _ in signals:
            tasks.cancel_scope.cancel()


async def _wait_for_end_or_enter(process: subprocess.Popen[bytes]) -> None:
    async with anyio.create_task_group() as tasks:

        async def wait_for_end() -> None:
            await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
            tasks.cancel_scope.cancel()

        tasks.start_soon(wait_for_end)
        await anyio.wait_readable(sys.stdin)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        tasks.cancel_scope.cancel()


async def _as_wav(sound: Sound, app: App) -> bytes:
    """What every player can play."""
    if sound.mime == WAV or not is_installed():
        return sound.data
    return wrap_samples(await read_samples(sound, app.sandbox), RATE).data


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Begin it, in a group of its own: Ctrl-C is ours. Ends the command where it is not there."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        fail(f"{command[0]} did not start: {error.strerror}", USAGE)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it as Ctrl-C would, so that it finishes its file; insist if it does not listen."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
