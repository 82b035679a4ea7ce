"""`deskhand failed`: what was given up, to look at, to try again, or to forget."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import click
import msgspec

from ..config.config import Settings
from ..gateway.queries import UnsentMessage, drop_unsent, retry_unsent, unsent_messages
from ..runtime.app import App
from ..store.queries import DeadLetter, dead_letters, drop_dead_letter
from ..store.sql_store import SqlStore
from ..types.commit import Change
from ..types.events import MessageReceived, TurnEnded
from ..types.identity import Inbound, Receipt, Said
from .asks import has_driver, resume_command, session_name
from .encoded import to_json
from .plain import escape_control, shorten_line
from .run import USAGE, Listing, config_option, fail, limit_option, load_settings, with_store
from .sessions import format_local_time
from .table import print_table
from .temporary_app import with_app


class Letter(msgspec.Struct, frozen=True):
    """`id` is `d7` for a conversation that was given up, `o7` for an answer that no platform
    took."""

    id: str
    session: str
    at: float
    reason: str
    n: int = 0

    @property
    def number(self) -> int:
        """What the store calls it."""
        return int(self.id[1:])


@click.group(cls=Listing)
def failed() -> None:
    """List and retry permanent failures: conversations that crashed repeatedly, and answers that
    could not be sent.

    \b
    Examples:
      deskhand failed list
      deskhand failed retry d7
      deskhand failed drop o3
    """


@failed.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def list_(as_json: bool, limit: int | None, config: str | None) -> None:
    """List permanent failures, latest first.

    \b
    Example:
      deskhand failed list
    """
    settings = load_settings(config)
    letters = with_store(settings, list_failed)[:limit]
    if as_json:
        click.echo(to_json(letters))
    elif not letters:
        click.echo("No permanent failures.")
    else:
        zone = ZoneInfo(settings.config.timezone)
        rows = [
            (
                each.id,
                format_local_time(each.at, zone),
                session_name(each.session, settings),
                shorten_line(each.reason, 300),
            )
            for each in letters
        ]
        print_table(("id", "when", "conversation", "why"), rows)


@failed.command()
@click.argument("letter_id", metavar="ID")
@config_option
def retry(letter_id: str, config: str | None) -> None:
    """Retry a failure: process the messages of a conversation again, or send an answer again.

    \b
    Example:
      deskhand failed retry d7
    """
    settings = load_settings(config)
    letter = _find_letter(settings, letter_id)
    if letter.id[0] == "o":
        _change(settings, retry_unsent(letter.number))
        click.echo("It is sent again when its channel is running, marked as a possible duplicate.")
        return

    async def use(app: App) -> int:
        messages = await _load_messages(app, letter)
        receipts = [await _resubmit(app, letter, message) for message in messages]
        refused = [receipt.reason for receipt in receipts if receipt.status == "refused"]
        if refused:
            fail(refused[0])
        await app.store.change((drop_dead_letter(letter.number),))
        return len(receipts)

    count = with_app(settings, use, drive=False)
    click.echo(f"{count} message{'s' * (count != 1)} queued again.")
    if not has_driver(settings):
        click.echo(
            f"Deskhand is not running. Continue with: {resume_command(letter.session, settings)}"
        )


@failed.command()
@click.argument("letter_id", metavar="ID")
@config_option
def drop(letter_id: str, config: str | None) -> None:
    """Discard a failed message. The conversation stays in the log.

    \b
    Example:
      deskhand failed drop o3
    """
    settings = load_settings(config)
    letter = _find_letter(settings, letter_id)
    drop_letter = drop_dead_letter if letter.id[0] == "d" else drop_unsent
    _change(settings, drop_letter(letter.number))
    click.echo(f"Dropped {letter.id}: {escape_control(letter.reason)}")


async def list_failed(store: SqlStore) -> list[Letter]:
    """All that failed for good, the latest first."""
    dead = map(_to_dead_letter, await dead_letters(store))
    unsent = map(_to_unsent_letter, await unsent_messages(store))
    return sorted([*dead, *unsent], key=lambda letter: -letter.at)


def _to_dead_letter(row: DeadLetter) -> Letter:
    return Letter(f"d{row.id}", row.session, row.at, row.reason, row.n)


def _to_unsent_letter(row: UnsentMessage) -> Letter:
    return Letter(f"o{row.id}", row.session, row.at, f"not sent on {row.channel}: {row.error}")


def _find_letter(settings: Settings, letter_id: str) -> Letter:
    letters = with_store(settings, list_failed)
    found = next((letter for letter in letters if letter.id == letter_id), None)
    if found is None:
        fail(f"there is no failure {letter_id!r}; list failures with: deskhand failed list", USAGE)
    return found


def _change(settings: Settings, change: Change) -> None:
    with_store(settings, lambda store: store.change((change,)))


async def _load_messages(app: App, letter: Letter) -> list[MessageReceived]:
    """The messages that the turn had taken in which was given up."""
    log = await app.store.events(letter.session)
    events = [recorded.event for recorded in log if recorded.n <= letter.n]
    answers: tuple[int, ...] = ()
    for event in events:
        if isinstance(event, TurnEnded) and event.reason == "dead":
            answers = event.answers  # of the last one
    received = [event for event in events if isinstance(event, MessageReceived)]
    return [event for event in received if event.inbox_id in answers]


async def _resubmit(app: App, letter: Letter, event: MessageReceived) -> Receipt:
    """Hand the message in as new: its first external id has been used."""
    ids = app.parts.ids
    now = app.parts.clock.now()
    said = Said(event.message)
    inbound = Inbound(
        ids.new("retry"),
        event.address,
        event.principal.id,
        now,
        said,
        letter.session,
        event.reply_to,
    )
    return await app.door.submit(inbound)
