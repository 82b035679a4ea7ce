"""`deskhand skills proposals|show|try|accept|reject|revert`: what agents would have as skills, and
your word on it."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

import click

from ..config.config import Settings
from ..learning.proposals.queries import StoredProposal
from ..learning.proposals.review import render_verdict
from ..runtime.app import App
from ..skills.scan import ScanFinding
from .plain import escape_control, shorten_line
from .run import ME, config_option, fail, json_option, limit_option, load_settings
from .sessions import format_local_time
from .table import print_json_rows, print_table
from .temporary_app import with_app

COLORS = {"bad": "red", "look": "yellow"}


@click.command("proposals")
@click.option("--all", "every", is_flag=True, help="Include decided proposals.")
@limit_option()
@json_option
@config_option
def proposals(every: bool, limit: int | None, as_json: bool, config: str | None) -> None:
    """List skills that agents propose. None of them is active until you accept it.

    \b
    Examples:
      deskhand skills proposals
      deskhand skills show 3
    """
    settings = load_settings(config)

    async def use(app: App) -> list[StoredProposal]:
        return await app.features.reviewing.proposals.list_proposals(every=every)

    rows = with_app(settings, use, drive=False)[:limit]
    if as_json:
        listed = [
            (row.id, row.name, row.agent, _state(row), row.description, row.session, row.at)
            for row in rows
        ]
        print_json_rows(("id", "skill", "agent", "state", "description", "session", "at"), listed)
        return
    if not rows:
        hint = "" if every else " To include decided ones: deskhand skills proposals --all"
        click.echo(f"No skills are proposed.{hint}")
        return
    shown = [
        (str(row.id), row.name, row.agent, _state(row), shorten_line(row.description, 100))
        for row in rows
    ]
    print_table(("id", "skill", "agent", "state", "what it is for"), shown)


def _state(row: StoredProposal) -> str:
    if row.state != "proposed":
        return row.state
    if row.doubt:
        return "untrusted"
    return "proposed" if row.card is None else "tried"


@click.command("show")
@click.argument("number", type=click.IntRange(1))
@config_option
def show(number: int, config: str | None) -> None:
    """Show a proposal: its source, the scan's findings, its replay results and its full text.

    \b
    Example:
      deskhand skills show 3
    """
    settings = load_settings(config)

    async def use(app: App) -> list[str]:
        row = await app.features.reviewing.proposals.get(number)
        return [*_render_proposal(row, settings), "", app.redact(row.body)]

    for line in with_app(settings, use, drive=False):
        click.echo(escape_control(line))


def _render_proposal(row: StoredProposal, settings: Settings) -> Iterator[str]:
    zone = ZoneInfo(settings.config.timezone)
    yield f"{row.name}: {row.description}"
    yield (
        f"proposed by {row.writer} of {row.agent}, {format_local_time(row.at, zone)}, from "
        f"{row.session}"
    )
    decided = (
        f" by {row.decided_by}, {format_local_time(row.decided_at, zone)}" if row.decided_at else ""
    )
    yield f"state: {row.state}{decided}{f': {row.why}' if row.why else ''}"
    if row.doubt:
        yield f"untrusted: {row.doubt}"
    yield from map(render_finding, row.findings)
    if row.card is not None:
        yield render_verdict(row.card)
        for score in row.card.scores:
            solved = "solved" if score.with_it.solved else "not solved"
            unknown = f", {score.unknown} calls without a recorded result" if score.unknown else ""
            yield (
                f"  “{score.asked}”: {solved}, {score.with_it.calls} calls (without it "
                f"{score.without.calls}), "
                f"{score.with_it.tokens:,} tokens ({score.without.tokens:,}){unknown}"
            )
    elif row.state == "proposed":
        yield f"Not tested on recorded turns yet: deskhand skills try {row.id}"
    if row.state in ("accepted", "kept"):
        yield f"Remove it: deskhand skills revert {row.id}"
    if row.state == "proposed":
        yield (
            f"Accept it: deskhand skills accept {row.id}   Reject it: deskhand skills reject "
            f"{row.id}"
        )


def render_finding(finding: ScanFinding) -> str:
    """A finding in a line."""
    return f"{finding.severity}: {finding.words}" + (
        f" (“{finding.excerpt}”)" if finding.excerpt else ""
    )


@click.command("try")
@click.argument("number", type=click.IntRange(1))
@config_option
def try_(number: int, config: str | None) -> None:
    """Replay recorded turns of its conversation with a proposed skill. This calls models; no tool
    is run.

    \b
    Example:
      deskhand skills try 3
    """

    async def use(app: App) -> str:
        reviewing = app.features.reviewing
        return render_verdict(await reviewing.try_out(await reviewing.proposals.get(number)))

    click.echo(escape_control(with_app(load_settings(config), use, drive=False)))


@click.command("accept")
@click.argument("number", type=click.IntRange(1))
@click.option(
    "--untrusted",
    is_flag=True,
    help="Accept it even if it is based on what people other than an owner said.",
)
@click.option("--yes", is_flag=True, help="Do not ask again.")
@config_option
def accept(number: int, untrusted: bool, yes: bool, config: str | None) -> None:
    """Accept a proposed skill. Its agent can use it from its next step on. `deskhand undo` removes
    it again.

    \b
    Example:
      deskhand skills accept 3
    """
    settings = load_settings(config)

    async def render(app: App) -> list[str]:
        row = await app.features.reviewing.proposals.get(number)
        return [*_render_proposal(row, settings), "", app.redact(row.body)]

    async def use(app: App) -> StoredProposal:
        return await app.features.reviewing.proposals.accept(number, ME, untrusted=untrusted)

    if not yes:
        for line in with_app(settings, render, drive=False):
            click.echo(escape_control(line))
        if not click.confirm("Accept it?", default=False):
            fail("nothing was changed")
    row = with_app(settings, use, drive=False)
    click.echo(
        f"{escape_control(row.name)} is a skill of {escape_control(row.agent)} now: {escape_control(row.file)} in its "  # noqa: E501
        "workspace."
    )
    click.echo(
        "If turns that use it fail more often than before, it is removed again, and you are "
        "notified."
    )


@click.command("revert")
@click.argument("number", type=click.IntRange(1))
@config_option
def revert(number: int, config: str | None) -> None:
    """Remove a skill that you accepted. Changes that were made to it by hand are kept and
    reported.

    \b
    Example:
      deskhand skills revert 3
    """

    async def use(app: App) -> StoredProposal:
        return await app.features.reviewing.proposals.revert(number, ME)

    row = with_app(load_settings(config), use, drive=False)
    click.echo(f"Removed {escape_control(row.name)}. To restore it: deskhand undo --redo")


@click.command("reject")
@click.argument("number", type=click.IntRange(1))
@click.option("--why", default="", help="Reason, kept with the proposal.")
@config_option
def reject(number: int, why: str, config: str | None) -> None:
    """Reject a proposal. No skill of this name is proposed again.

    \b
    Example:
      deskhand skills reject 3 --why "too special"
    """

    async def use(app: App) -> StoredProposal:
        return await app.features.reviewing.proposals.reject(number, ME, why)

    click.echo(f"Rejected {escape_control(with_app(load_settings(config), use, drive=False).name)}")
