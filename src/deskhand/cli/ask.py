"""`deskhand ask`: one question, one answer, for people and for pipes."""

from __future__ import annotations

import sys
from contextlib import aclosing

import click
import msgspec

from ..runtime.app import OWNER, App
from ..types.door import Progress
from ..types.events import ApprovalAsked, ModelReplied, QuestionAsked, Recorded, TurnEnded
from ..types.identity import Address, Inbound, Said
from ..types.messages import Message, Text
from .run import FAILED, NEEDS_APPROVAL, USAGE, fail, settings_of, with_app


@click.command()
@click.argument("words", nargs=-1)
@click.option("--session", "-s", default="", help="Go on with this conversation instead of a fresh one.")
@click.option("--model", "-m", default="", help="Use this model (provider/name).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line: the events, as they are logged.")
@click.option("--config", help="Use this configuration file.")
def ask(words: tuple[str, ...], session: str, model: str, as_json: bool, config: str | None) -> None:
    """Ask one thing and print the answer. Words may also come from a pipe.

    Exit codes: 0 answered, 1 failed, 2 wrong usage, 3 it waits for an approval.
    """
    text = " ".join(words)
    if not sys.stdin.isatty():
        text = f"{text}\n{sys.stdin.buffer.read().decode(errors='replace')}".strip()
    if not text:
        fail('say what to ask, such as: deskhand ask "what is in this folder?"', USAGE)
    settings = settings_of(config, model)

    async def use(app: App) -> int:
        ids, now = app.parts.ids, app.parts.clock.now()
        address = Address("terminal", chat=session or ids.new("ask"))
        inbound = Inbound(ids.new("line"), address, "owner", now, Said(Message("user", (Text(text),))))
        receipt = await app.door.submit(inbound)
        if receipt.status == "refused":
            fail(receipt.reason, USAGE)
        show = _Json() if as_json else _Plain()
        async with aclosing(app.door.follow(receipt.session, OWNER, receipt.after)) as items:
            async for item in items:
                code = show(item, receipt.inbox_id)
                if code is not None:
                    return code
        return FAILED

    with_app(settings, use)


class _Plain:
    """Text as it comes; what the runtime itself says at the end of it."""

    def __init__(self) -> None:
        self._shown = ""

    def __call__(self, item: Recorded | Progress, inbox_id: int) -> int | None:
        if isinstance(item, Progress):
            self._progress(item)
            return None
        event = item.event
        if isinstance(event, ModelReplied):
            click.echo(event.message.text[len(self._shown) :], nl=bool(event.message.text))
            self._shown = ""
        elif isinstance(event, ApprovalAsked):
            click.echo(f"It needs your approval: {event.question}\nReason: {event.reason}", err=True)
            return NEEDS_APPROVAL
        elif isinstance(event, QuestionAsked):
            click.echo(f"It asks: {event.question}", err=True)
            return NEEDS_APPROVAL
        elif isinstance(event, TurnEnded) and inbox_id in event.answers:
            if event.said:
                click.echo(event.said, err=event.reason != "done")
            return 0 if event.reason == "done" else FAILED
        return None

    def _progress(self, item: Progress) -> None:
        if item.kind in ("text", "snapshot"):
            click.echo(item.text, nl=False)
            self._shown += item.text
        elif item.kind == "reset":
            click.echo(" […]")
            self._shown = ""


class _Json:
    """Each event as a line, exactly as it is logged."""

    def __call__(self, item: Recorded | Progress, inbox_id: int) -> int | None:
        if isinstance(item, Progress):
            return None
        click.echo(msgspec.json.encode(item))
        event = item.event
        if isinstance(event, ApprovalAsked | QuestionAsked):
            return NEEDS_APPROVAL
        if isinstance(event, TurnEnded) and inbox_id in event.answers:
            return 0 if event.reason == "done" else FAILED
        return None
