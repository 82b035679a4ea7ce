"""`deskhand approvals`: what waits for a yes, answered from any terminal."""

from __future__ import annotations

import click
import msgspec

from ..runtime.app import App
from .asks import OpenAsk, answer, back_to, open_asks, somebody_drives
from .live import with_app
from .plain import plain
from .run import FAILED, Listing, config_option, fail, settings_of, with_store


@click.group(cls=Listing)
def approvals() -> None:
    """See what waits for your yes, and answer it.

    \b
    Examples:
      deskhand approvals list
      deskhand approvals allow ask_5f0c
      deskhand approvals deny ask_5f0c
    """


@approvals.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@config_option
def list_(as_json: bool, config: str | None) -> None:
    """Show everything that waits for an answer.

    \b
    Example:
      deskhand approvals list
    """
    settings = settings_of(config)
    asks = with_store(settings, open_asks)
    if as_json:
        click.echo(msgspec.json.encode(asks))
        return
    if not asks:
        click.echo("Nothing waits for you.")
    for ask in asks:
        kind = "wants to run" if ask.approval else "asks"
        click.echo(f"{click.style(ask.id, bold=True)}  {plain(ask.session)} {kind}")
        click.echo("    " + plain(ask.question).replace("\n", "\n    "))
        if ask.reason:
            click.echo(f"    because {plain(ask.reason)}")
        if not ask.approval and ask.choices:
            click.echo(f"    choices: {', '.join(map(plain, ask.choices))}")
        click.echo(
            f"    deskhand approvals allow {ask.id}" if ask.approval else f"    {back_to(ask.session, settings)}"
        )


@approvals.command()
@click.argument("ask_id", metavar="ID")
@click.option("--always", is_flag=True, help="And exactly this again, without asking.")
@config_option
def allow(ask_id: str, always: bool, config: str | None) -> None:
    """Say yes. The beginning of an id is enough, if no other begins so.

    \b
    Example:
      deskhand approvals allow ask_5f0c
    """
    _answer(ask_id, "always" if always else "once", config)


@approvals.command()
@click.argument("ask_id", metavar="ID")
@click.option("--never", is_flag=True, help="And exactly this never, without asking.")
@config_option
def deny(ask_id: str, never: bool, config: str | None) -> None:
    """Say no.

    \b
    Example:
      deskhand approvals deny ask_5f0c
    """
    _answer(ask_id, "never" if never else "no", config)


def _answer(ask_id: str, choice: str, config: str | None) -> None:
    settings = settings_of(config)

    async def use(app: App) -> OpenAsk:
        asks = await open_asks(app.store)
        found = [ask for ask in asks if ask.approval and ask.id.startswith(ask_id)]
        if len(found) != 1:
            why = "begins more than one" if found else "is not open any more, or never was"
            fail(f"{ask_id!r} {why}; `deskhand approvals list` shows what is open", FAILED)
        receipt = await answer(app, found[0], choice)
        if receipt.status == "refused":
            fail(receipt.reason)
        return found[0]

    ask = with_app(settings, use, drive=False)
    said = {"once": "Allowed", "always": "Allowed, and always exactly this", "no": "Denied", "never": "Denied for good"}
    click.echo(f"{said[choice]}: {plain(ask.question)}")
    if not somebody_drives(settings):
        click.echo(f"Nothing is running now; it goes on with: {back_to(ask.session, settings)}")
