"""`deskhand ask`: one question, one answer, for people and for pipes."""

from __future__ import annotations

import os
import select
import stat
import sys
from contextlib import aclosing
from datetime import datetime, tzinfo
from functools import partial
from zoneinfo import ZoneInfo

import anyio
import click
import msgspec

from ..models.chain import SILENT_WAIT_S
from ..runtime.app import App
from ..types.diffs import CallDiff
from ..types.door import Progress
from ..types.events import (
    ApprovalAsked,
    CommandRun,
    ModelFailed,
    ModelReplied,
    QuestionAsked,
    Recorded,
    ToolFinished,
    Transcribed,
    TurnEnded,
)
from ..types.identity import Address, Configure, Inbound, Said, session_key
from ..types.marked_texts import mark_text
from ..types.messages import Audio, Message, Text, ToolCall
from ..types.options import SessionOptions
from .asks import BECAUSE, CONTINUE_WITH, resume_command, submit_answer
from .diffs import DIFF_HEADING, color_line, render_diff
from .edits import Edits
from .encoded import to_json
from .plain import Pieces, escape_control, shorten_line
from .rehearsals import describe_arguments
from .run import (
    FAILED,
    ME,
    NEEDS_APPROVAL,
    USAGE,
    agent_option,
    config_option,
    fail,
    load_settings,
    resolve_agent,
)
from .temporary_app import with_app
from .terminal_language import Say, terminal_say

MAX_STDIN_BYTES = 4_000_000
"""More cannot be one message anyway, whatever the letters; the Door says how many characters
fit."""
STDIN_HINT_S = 1.0


class Question(msgspec.Struct, frozen=True):
    """What was asked for on the command line, in `text` or in `audio`. `session` is a name in this
    terminal, a whole key, or ''; `model` is what the conversation is to use from here on, '' for
    what it uses already."""

    text: str
    agent: str
    session: str = ""
    model: str = ""
    as_json: bool = False
    wait: bool = False
    interactive: bool = False
    audio: Audio | None = None


@click.command()
@click.argument("words", nargs=-1)
@click.option(
    "--session",
    "-s",
    default="",
    metavar="NAME",
    help="Continue this conversation instead of starting a new one.",
)
@click.option(
    "--model",
    "-m",
    default="",
    metavar="PROVIDER/NAME",
    help="Use this model in this conversation.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the logged events as JSON, one object per line.",
)
@click.option(
    "--wait", is_flag=True, help="Wait for an approval given elsewhere instead of exiting with 3."
)
@agent_option
@config_option
def ask(  # noqa: PLR0913 -- one parameter for each option
    words: tuple[str, ...],
    session: str,
    model: str,
    as_json: bool,
    wait: bool,
    agent: str,
    config: str | None,
) -> None:
    """Ask one question and print the answer. Text can also be piped in.

    Exit codes: 0 answered, 1 failed, 2 wrong usage, 3 it waits for an approval.

    \b
    Examples:
      deskhand ask "what changed here today?"
      git diff | deskhand ask "review this"
      deskhand ask --json "list the files" | jq .event
    """
    before = click.get_current_context().find_root().params
    session = session or before.get("session", "")
    model = model or before.get("model", "")
    text = "\n".join(part for part in (" ".join(words), _read_stdin(bool(words))) if part).strip()
    if not text:
        fail('say what to ask, such as: deskhand ask "what is in this folder?"', USAGE)
    settings = load_settings(config)
    interactive = sys.stdin.isatty() and sys.stderr.isatty() and not as_json
    question = Question(
        text, resolve_agent(settings, agent), session, model, as_json, wait, interactive
    )
    sys.exit(with_app(settings, lambda app: run_question(app, question)))


def _read_stdin(words: bool) -> str:
    """What a pipe or a file holds; nothing where standard input is neither."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    if words and not stat.S_ISREG(mode) and not select.select([0], [], [], STDIN_HINT_S)[0]:
        click.echo(
            "deskhand: reading from standard input; to send nothing, add: < /dev/null",
            err=True,
        )
    data = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    if len(data) > MAX_STDIN_BYTES:
        fail(
            (
                f"standard input is larger than {MAX_STDIN_BYTES // 1_000_000} MB; save it to a "
                "file and ask about the file"
            ),
            USAGE,
        )
    return data.decode(errors="replace").strip()


async def run_line_chat(app: App, question: Question) -> None:
    """Line by line, for a terminal that cannot redraw. An empty line or the end of input leaves."""
    while True:
        line = await anyio.to_thread.run_sync(lambda: sys.stdin.readline(), abandon_on_cancel=True)
        if not line.strip():
            break
        await run_question(app, msgspec.structs.replace(question, text=line.strip()))
    command = escape_control(resume_command(question.session, app.settings))
    click.echo(terminal_say(app.settings)(CONTINUE_WITH.format(command=command)))


async def set_session_model(app: App, session: str, address: Address, model: str) -> None:
    """Have the conversation answered by this model from here on, whichever process answers. Ends
    the command where that cannot be."""
    ids = app.parts.ids
    now = app.parts.clock.now()
    wanted = Configure(SessionOptions(model=model))
    receipt = await app.door.submit(
        Inbound(ids.new("line"), address, "owner", now, wanted, session, when="queue")
    )
    if receipt.status == "refused":
        fail(receipt.reason, USAGE)


async def run_question(app: App, question: Question) -> int:
    """Ask, show what comes, and return the exit code."""
    ids = app.parts.ids
    now = app.parts.clock.now()
    place = question.session if question.session and "/" not in question.session else ids.new("ask")
    address = Address("terminal", chat=place)
    session = question.session if "/" in question.session else session_key(question.agent, address)
    if question.model:
        await set_session_model(app, session, address, question.model)
    spoken = () if question.audio is None else (question.audio,)
    written = (Text(question.text),) if question.text or not spoken else ()
    said = Said(Message("user", (*written, *spoken)))
    # Each question has an answer of its own, also where two processes ask in one conversation.
    receipt = await app.door.submit(
        Inbound(ids.new("line"), address, "owner", now, said, session, when="queue")
    )
    if receipt.status == "refused":
        fail(receipt.reason, USAGE)
    show: _Json | PlainText = _Json()
    if not question.as_json:
        show = PlainText(
            progress=sys.stderr.isatty(), zone=_zone_of(app), say=terminal_say(app.settings)
        )
    begun = question.as_json
    edits = Edits(app, receipt.session)
    async with aclosing(app.door.follow(receipt.session, ME, receipt.after)) as items:
        async for item in items:
            event = item.event if isinstance(item, Recorded) else None
            diff = None if question.as_json else await edits.find_diff(item)
            begun = begun or getattr(event, "inbox_id", None) == receipt.inbox_id
            if begun or (isinstance(item, Progress) and item.kind == "status"):
                show(item)
                if isinstance(event, ToolFinished) and diff is not None and show.progress:
                    _echo_diff(app, diff)
            if not begun:  # the answer to somebody else, who was before us
                continue
            match event:
                case ApprovalAsked() | QuestionAsked():
                    code = await ask_person(app, receipt.session, event, question, diff)
                    if code is not None:
                        return code
                case TurnEnded(reason=reason, answers=answers) if receipt.inbox_id in answers:
                    return 0 if reason == "done" else FAILED
                case CommandRun(inbox_id=inbox_id, refused=refused) if inbox_id == receipt.inbox_id:
                    return FAILED if refused else 0
                case _:
                    pass
    return FAILED


def _echo_diff(app: App, diff: CallDiff) -> None:
    """On stderr, beside what else is told of calls. Colours are for terminals alone."""
    for text, style in render_diff(diff):
        click.echo(f"    {color_line(text, style, app.settings.environment)}", err=True)


async def ask_person(
    app: App,
    session: str,
    event: ApprovalAsked | QuestionAsked,
    question: Question,
    diff: CallDiff | None = None,
) -> int | None:
    """Ask the person here, or say how it can be answered; None means that it goes on."""
    say = terminal_say(app.settings)
    lines = _describe_ask(event, say)
    click.echo("\n".join(map(escape_control, lines)), err=True)
    if diff is not None:
        click.echo(say(DIFF_HEADING), err=True)
        _echo_diff(app, diff)

    if question.interactive:
        prompt = partial(_prompt_person, event, say)
        choice = await anyio.to_thread.run_sync(prompt, abandon_on_cancel=True)
        await submit_answer(app, (session, event.ask_id), choice)
        return None

    if isinstance(event, ApprovalAsked):
        click.echo(say(_ALLOW_WITH.format(ask_name=event.ask_id)), err=True)
    else:
        command = resume_command(session, app.settings)
        click.echo(say(_ANSWER_WITH.format(command=command)), err=True)
    return None if question.wait else NEEDS_APPROVAL


_ALLOW_WITH = mark_text("Allow it with: deskhand approvals allow {ask_name}")
_ANSWER_WITH = mark_text("Answer it with: {command}")
_YOUR_ANSWER = mark_text("Your answer")
_ALLOW = mark_text("Allow? y once, a always (this exact call), n no, never")
_ALLOW_ALL = mark_text("Allow all of them? y yes, e one by one, n no")


def _describe_ask(event: ApprovalAsked | QuestionAsked, say: Say) -> list[str]:
    """What it wants, and why. What would be run stays byte for byte."""
    if isinstance(event, QuestionAsked):
        choices = [f"  {number}  {choice}" for number, choice in enumerate(event.choices, 1)]
        asks = say(mark_text("It asks: {question}"))
        return [asks.format(question=event.question), *choices]

    lines = [say(mark_text("It wants to run: {call}")).format(call=event.question)]
    if event.others:
        calls = event.question.split("\n")
        wants = mark_text("It wants to run {count_number} calls:")
        lines = [say(wants.format(count_number=len(event.calls)))]
        lines += [f"  {call}" for call in calls]
    if event.reason:
        lines.append(say(BECAUSE.format(reason_text=event.reason)))
    return lines


def _prompt_person(event: ApprovalAsked | QuestionAsked, say: Say) -> str:
    if isinstance(event, ApprovalAsked):
        return _prompt_approval(bool(event.others), say)
    return _prompt_answer(event.choices, say)


def _prompt_answer(choices: tuple[str, ...], say: Say) -> str:
    said = str(click.prompt(say(_YOUR_ANSWER), err=True))
    return choices[int(said) - 1] if said.isdigit() and 0 < int(said) <= len(choices) else said


def _prompt_approval(together: bool, say: Say) -> str:
    means = {"y": "once", "a": "always", "n": "no", "never": "never"}
    words = say(_ALLOW)
    if together:
        means = {"y": "once", "e": "each", "n": "no"}
        words = say(_ALLOW_ALL)
    answers = click.Choice(list(means), case_sensitive=False)
    return means[click.prompt(words, type=answers, err=True, show_choices=False)]


def _zone_of(app: App) -> tzinfo:
    return ZoneInfo(app.settings.config.timezone)


_RETRYING_AT = mark_text("retrying at {time_text}")
_HEARD = mark_text("You said: {words}")
_NOTHING = mark_text("nothing")


class PlainText:
    """Text as it comes; what the runtime itself says at the end of it. With `progress`, calls on
    stderr. `say` says in the person's language what Deskhand itself says."""

    def __init__(self, *, progress: bool, zone: tzinfo, say: Say = str) -> None:
        self.progress = progress
        self._say = say
        self._zone = zone
        self._printed = ""
        self._pieces = Pieces()
        self._last_status = ""
        self._calls: dict[str, ToolCall] = {}

    def __call__(self, item: Recorded | Progress) -> None:
        if isinstance(item, Progress):
            self._print_progress(item)
            return
        match item.event:
            case ModelReplied(message=message):
                self._print_rest(message.text)
                for call in message.calls if self.progress else ():
                    raw = bytes(call.arguments).decode(errors="replace")
                    about = describe_arguments(call) or raw
                    line = shorten_line(f"· {call.name} {about}", 100)
                    click.echo(click.style(line, dim=True), err=True)
            case ModelFailed(retry_at=float() as until) if until - item.at > SILENT_WAIT_S:
                why = escape_control(self._say(item.event.detail))
                moment = datetime.fromtimestamp(until, self._zone)
                again = self._say(_RETRYING_AT.format(time_text=f"{moment:%H:%M %Z}"))
                click.echo(f"deskhand: {why} ({again})", err=True)
            case Transcribed(text=text, problem=problem):
                heard = self._say(_HEARD).format(words=text or self._say(_NOTHING))
                words = f"deskhand: {self._say(problem)}" if problem else heard
                click.echo(click.style(escape_control(words), dim=True), err=True)
            case CommandRun(reply=reply) if reply:
                click.echo(escape_control(self._say(reply)))
            case TurnEnded(said=said, reason=reason, note=note):
                if said:
                    told = said if reason == "done" else self._say(said)
                    click.echo(escape_control(told), err=reason != "done")
                if note:
                    click.echo(escape_control(self._say(note)), err=True)
            case _:
                pass

    def _print_rest(self, text: str) -> None:
        """What the deltas did not bring."""
        rest = text[len(self._printed) :] if text.startswith(self._printed) else text
        click.echo(self._pieces(rest, last=True), nl=bool(text))
        self._printed = ""
        self._pieces = Pieces()

    def _print_progress(self, item: Progress) -> None:
        if item.kind == "snapshot" or (item.kind == "text" and item.offset == len(self._printed)):
            click.echo(self._pieces(item.text), nl=False)
            self._printed += item.text
        elif item.kind == "reset" and self._printed:
            click.echo(self._pieces("", last=True) + " […]")
            self._printed = ""
            self._pieces = Pieces()
        elif item.kind == "status" and item.text != self._last_status:
            self._last_status = item.text
            click.echo(f"deskhand: {escape_control(self._say(item.text))}", err=True)


class _Json:
    """Each event as a line, exactly as it is logged."""

    progress = False

    def __call__(self, item: Recorded | Progress) -> None:
        if isinstance(item, Recorded):
            click.echo(to_json(item))
