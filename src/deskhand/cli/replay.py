"""`deskhand replay`: a turn of a conversation once more, with another model, prompt or skill."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from zoneinfo import ZoneInfo

import click
import msgspec

from ..config.parse import read_text
from ..evals.cases import Cases, make_case
from ..evals.recordings import Course, Made, split_recordings
from ..evals.replay import Replayed
from ..evals.runner import ReplayOptions, open_isolated_skill
from ..runtime.app import App
from ..types.errors import ConfigError
from .encoded import to_json
from .plain import escape_control, shorten_line
from .run import FAILED, USAGE, config_option, fail, load_settings
from .sessions import format_local_time, resolve_session_key
from .table import print_table
from .temporary_app import with_app

COLORS = {"+": "green", "-": "red", "!": "yellow"}


class _Asked(msgspec.Struct, frozen=True):
    """What was said on the command line."""

    session: str
    turn: int
    model: str
    system: str
    save: str
    words: tuple[str, ...]
    compare: bool
    listed: bool
    as_json: bool


@click.command()
@click.argument("session")
@click.argument("turn", default=0, type=click.IntRange(0), metavar="[TURN]")
@click.option("--model", "-m", default="", metavar="PROVIDER/NAME", help="Use this model.")
@click.option(
    "--skill",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Use this skill.",
)
@click.option(
    "--system",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use this file as SYSTEM.md.",
)
@click.option("--compare", is_flag=True, help="Show the differences side by side.")
@click.option(
    "--save",
    default="",
    metavar="NAME",
    help="Save this turn as a test for `deskhand cases run NAME`.",
)
@click.option(
    "--word",
    "words",
    multiple=True,
    help="With --save: text that the answer must contain. Repeatable.",
)
@click.option(
    "--turns", "listed", is_flag=True, help="List the turns of the conversation with their numbers."
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@config_option
def replay(  # noqa: PLR0913 -- one parameter for each option
    session: str,
    turn: int,
    model: str,
    skill: Path | None,
    system: Path | None,
    compare: bool,
    save: str,
    words: tuple[str, ...],
    listed: bool,
    as_json: bool,
    config: str | None,
) -> None:
    """Replay a turn of SESSION, the last or number TURN, with another model, prompt or skill.

    No tool is run: calls get the results that are in the log, and calls that are not in the log get
    an error. Without another model, prompt or skill, no model is called either, and the result must
    be identical to the log, byte for byte; exits with 1 if it is not.

    \b
    Examples:
      deskhand replay nov21-0930
      deskhand replay nov21-0930 3 --model openai/gpt-5-mini --compare
      deskhand replay main/telegram:42 --skill ./my-skill --compare
      deskhand replay nov21-0930 --save disk-check --word "42 GB"
    """
    settings = load_settings(config)
    try:
        text = read_text(system) if system else ""
    except ConfigError as error:
        fail(str(error), USAGE)
    asked = _Asked(
        session=resolve_session_key(settings, session),
        turn=turn,
        model=model,
        system=text,
        save=save,
        words=words,
        compare=compare,
        listed=listed,
        as_json=as_json,
    )
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(open_isolated_skill(skill)) if skill else None
        except ConfigError as error:
            fail(str(error), USAGE)
        wanted = ReplayOptions(model, text, folder)
        code = with_app(settings, lambda app: _replay(app, asked, wanted), drive=False)
    if code:
        raise SystemExit(code)


async def _replay(app: App, asked: _Asked, wanted: ReplayOptions) -> int:
    replaying = app.features.replaying
    zone = ZoneInfo(app.settings.config.timezone)
    if asked.listed:
        log = await app.store.events(asked.session)
        rows = []
        for each in split_recordings(asked.session, log):
            began = format_local_time(each.tape[0].at, zone)
            request = shorten_line(app.redact(each.asked), 200)
            rows.append((str(each.number), began, request))
        print_table(("turn", "began", "request"), rows)
        return 0
    recorded = await replaying.load_recording(asked.session, asked.turn)
    if asked.save:
        found = await replaying.run(recorded)
        case = make_case(found, replaying.models(asked.session)[0], app.redact, asked.words)
        path = Cases(app.settings.home.cases).write(asked.save, case)
        click.echo(
            f"Saved: {escape_control(str(path))}. To change what is expected, edit this file."
        )
        click.echo(f"Run it: deskhand cases run {asked.save}")
        return 0
    found = await replaying.run(recorded, wanted)
    if asked.as_json:
        click.echo(encode_replay(found, app.redact))
    else:
        title = (
            f"Turn {recorded.number}, {format_local_time(recorded.tape[0].at, zone)}: "
            f"“{app.redact(recorded.asked)}”"
        )
        click.echo(click.style(shorten_line(title, 118), bold=True))
        for line in render_replay(found, compare=asked.compare):
            click.echo(color_line(app.redact(line)))
    return FAILED if not found.asked and not found.same else 0


def encode_replay(found: Replayed, redact: Callable[[str], str]) -> str:
    """For programs."""
    recorded = found.recording
    told = {
        "session": recorded.session,
        "turn": recorded.number,
        "same": found.same,
        "asked": found.asked,
        "spent": found.spent,
        "then": found.was,
        "now": found.now,
        "differs": found.differs,
    }
    return redact(to_json(told))


def render_replay(found: Replayed, *, compare: bool) -> Iterator[str]:
    """What came of it, line by line; those that begin with + - ! are differences."""
    was = found.was
    now = found.now
    if not found.asked:
        what = (
            f"events: {len(found.events)}, model replies: {now.steps}, tool calls: {len(now.calls)}"
        )
        yield f"Replayed from the log; {what}. " + (
            "The result is identical." if found.same else "The result differs:"
        )
    elif compare:
        yield from _render_numbers(was, now)
        yield from _render_calls(was.calls, now.calls)
        yield from _render_answers(was.answer, now.answer)
    else:
        yield now.answer
    for each in found.differs:
        yield f"! {each.words}"
    if found.asked:
        used = f"{found.spent.input_tokens:,} tokens read, {found.spent.output_tokens:,} written"
        yield (
            f"Models called: {', '.join(now.models) or 'none answered'}; {used}. No tool was run."
        )


def _render_numbers(was: Course, now: Course) -> Iterator[str]:
    rows = [
        ("", "then", "now"),
        ("model", ", ".join(was.models), ", ".join(now.models)),
        ("ended", was.reason, now.reason),
        ("steps", str(was.steps), str(now.steps)),
        ("tokens read", f"{was.usage.input_tokens:,}", f"{now.usage.input_tokens:,}"),
        ("tokens written", f"{was.usage.output_tokens:,}", f"{now.usage.output_tokens:,}"),
    ]
    width = max(len(then) for _, then, _ in rows) + 2
    for name, then, today in rows:
        yield f"  {name:<16}{then:<{width}}{today}".rstrip()


def _render_calls(was: Sequence[Made], now: Sequence[Made]) -> Iterator[str]:
    yield "Calls"
    if not was and not now:
        yield "  none"
    named = (
        [f"{made.tool} {made.arguments}" for made in was],
        [f"{made.tool} {made.arguments}" for made in now],
    )
    yield from _diff(*named)


def _render_answers(was: str, now: str) -> Iterator[str]:
    yield "Answer"
    yield from _diff(was.splitlines(), now.splitlines())


def _diff(was: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    """All lines of both, each marked as kept, gone or new."""
    for line in difflib.ndiff(was, now):
        if not line.startswith("?"):
            yield line


def color_line(line: str) -> str:
    return click.style(escape_control(line), fg=COLORS.get(line[:1]))
