"""`deskhand approvals`: what waits for a yes, answered from any terminal."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import click

from ..gateway.standing_grants import revoke_grant
from ..runtime.app import App
from ..store.base import OpenAsk
from ..store.queries import StandingGrant, standing_grants
from ..store.sql_store import SqlStore
from ..types.errors import Refused
from .asks import has_driver, resume_command, submit_answer
from .encoded import to_json
from .plain import escape_control
from .run import FAILED, ME, Listing, config_option, fail, limit_option, load_settings, with_store
from .sessions import format_local_time
from .table import print_table
from .temporary_app import with_app


@click.group(cls=Listing)
def approvals() -> None:
    """Show and answer approval requests.

    \b
    Examples:
      deskhand approvals list
      deskhand approvals allow ask_5f0c
      deskhand approvals deny ask_5f0c
      deskhand approvals grants
    """


@approvals.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def list_(as_json: bool, limit: int | None, config: str | None) -> None:
    """List open requests.

    \b
    Example:
      deskhand approvals list
    """
    settings = load_settings(config)
    asks = with_store(settings, lambda store: store.open_asks(ME))[:limit]
    if as_json:
        click.echo(to_json(asks))
        return
    if not asks:
        click.echo("No approval requests.")
    for ask in asks:
        kind = "asks"
        if ask.tool:
            kind = f"wants to run {len(ask.calls)} calls" if ask.calls else "wants to run"
        click.echo(f"{click.style(ask.ask_id, bold=True)}  {escape_control(ask.session)} {kind}")
        click.echo("    " + escape_control(ask.question).replace("\n", "\n    "))
        if ask.reason:
            click.echo(f"    because {escape_control(ask.reason)}")
        if not ask.tool and ask.choices:
            click.echo(f"    choices: {', '.join(map(escape_control, ask.choices))}")
        if ask.tool:
            click.echo(f"    deskhand approvals allow {ask.ask_id}")
        else:
            click.echo(f"    {resume_command(ask.session, settings)}")
        if ask.calls:
            click.echo(f"    deskhand approvals split {ask.ask_id}")


@approvals.command()
@click.argument("ask_id", metavar="ID")
@click.option("--always", is_flag=True, help="Always allow this exact call.")
@config_option
def allow(ask_id: str, always: bool, config: str | None) -> None:
    """Approve a request. A unique prefix of the id is enough.

    \b
    Example:
      deskhand approvals allow ask_5f0c
    """
    _submit_answer(ask_id, "always" if always else "once", config)


@approvals.command()
@click.argument("ask_id", metavar="ID")
@click.option("--never", is_flag=True, help="Never allow this exact call.")
@config_option
def deny(ask_id: str, never: bool, config: str | None) -> None:
    """Deny a request.

    \b
    Example:
      deskhand approvals deny ask_5f0c
    """
    _submit_answer(ask_id, "never" if never else "no", config)


@approvals.command()
@click.argument("ask_id", metavar="ID")
@config_option
def split(ask_id: str, config: str | None) -> None:
    """Split one request about several calls into one request each.

    \b
    Example:
      deskhand approvals split ask_5f0c
    """
    _submit_answer(ask_id, "each", config)


@approvals.command("grants")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def grants_(as_json: bool, limit: int | None, config: str | None) -> None:
    """List standing approvals and denials.

    \b
    Example:
      deskhand approvals grants
    """
    settings = load_settings(config)
    found = with_store(settings, lambda store: standing_grants(store, ME))[:limit]
    if as_json:
        click.echo(to_json(found))
        return
    if not found:
        click.echo(
            "No standing approvals or denials. To create one, answer a request with always or "
            "never."
        )
        return
    zone = ZoneInfo(settings.config.timezone)
    rows = [
        (
            grant.id[:12],
            grant.verdict,
            grant.by,
            format_local_time(grant.at, zone),
            escape_control(f"{grant.tool} {grant.arguments}"),
        )
        for grant in found
    ]
    print_table(("id", "", "decided by", "at", "exact call"), rows)


@approvals.command("revoke")
@click.argument("grant_id", metavar="ID")
@config_option
def revoke_(grant_id: str, config: str | None) -> None:
    """Revoke a standing approval or denial, so that you are asked again. A unique prefix of the id
    is enough.

    \b
    Example:
      deskhand approvals revoke 5f0c92ab
    """

    async def use(store: SqlStore) -> StandingGrant:
        try:
            return await revoke_grant(store, ME, grant_id)
        except Refused as error:
            fail(f"{error}; list them with: deskhand approvals grants", FAILED)

    grant = with_store(load_settings(config), use)
    click.echo(f"Revoked: {grant.verdict} {escape_control(f'{grant.tool} {grant.arguments}')}")


def _submit_answer(ask_id: str, choice: str, config: str | None) -> None:
    settings = load_settings(config)

    async def use(app: App) -> OpenAsk:
        asks = await app.store.open_asks(ME)
        found = [ask for ask in asks if ask.tool and ask.ask_id.startswith(ask_id)]
        if len(found) != 1:
            why = "matches more than one request" if found else "is not an open request"
            fail(f"{ask_id!r} {why}; list open requests with: deskhand approvals list", FAILED)
        if choice not in found[0].choices:
            several = "contains several calls; split it first with: deskhand approvals split"
            why = several if found[0].calls else "contains only one call"
            fail(f"{found[0].ask_id} {why}", FAILED)
        receipt = await submit_answer(app, (found[0].session, found[0].ask_id), choice)
        if receipt.status == "refused":
            fail(receipt.reason)
        return found[0]

    ask = with_app(settings, use, drive=False)
    said = {
        "once": "Allowed",
        "always": "Always allowed (this exact call)",
        "no": "Denied",
        "never": "Never allowed (this exact call)",
    }
    said["each"] = "Split into one request per call"
    click.echo(f"{said[choice]}: {escape_control(ask.question)}")
    if not has_driver(settings):
        click.echo(
            f"Deskhand is not running. Continue with: {resume_command(ask.session, settings)}"
        )
