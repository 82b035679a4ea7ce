"""`deskhand held`: files that say nothing in prompts until you have looked at them, and your word
on it."""

from __future__ import annotations

import shlex

import click

from ..config.clock import SystemClock
from ..runtime.held_files import Approving, HeldFile, HeldFileView
from ..store.sql_store import SqlStore
from .encoded import to_json
from .plain import escape_control
from .run import (
    ME,
    Listing,
    agent_option,
    config_option,
    fail,
    limit_option,
    load_settings,
    resolve_agent,
    with_store,
)
from .table import print_table


@click.group(cls=Listing)
def held() -> None:
    """Review files that are withheld from prompts because of their source.

    A file that instructs an agent is held back if it contains untrusted content, if somebody else
    wrote it, or if it was changed since you approved it. So is Python in memory/skills before you
    have approved it.

    \b
    Examples:
      deskhand held
      deskhand held show SOUL.md
      deskhand held approve SOUL.md
    """


@held.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@limit_option()
@config_option
def list_(as_json: bool, limit: int | None, config: str | None) -> None:
    """List withheld files, and why.

    \b
    Example:
      deskhand held list
    """
    settings = load_settings(config)

    async def use(store: SqlStore) -> list[HeldFile]:
        return await Approving(settings, store).list_held(SystemClock().now())

    found = with_store(settings, use)[:limit]
    if as_json:
        click.echo(to_json(found))
    elif found:
        print_table(("agent", "why", "file"), [(each.agent, each.why, each.path) for each in found])
    else:
        click.echo("No files are held back.")


@held.command("show")
@click.argument("path")
@agent_option
@config_option
def show(path: str, agent: str, config: str | None) -> None:
    """Show a withheld file or skill, with invisible characters made visible.

    \b
    Example:
      deskhand held show skills/weekly-report
    """
    for line in _render_file(_view_file(path, agent, config)):
        click.echo(escape_control(line))


@held.command("approve")
@click.argument("path")
@click.option("--yes", is_flag=True, help="Do not ask again.")
@agent_option
@config_option
def approve(path: str, yes: bool, agent: str, config: str | None) -> None:
    """Approve a file or skill as it is now. When it changes, it is held back until you approve it
    again.

    \b
    Examples:
      deskhand held approve SOUL.md
      deskhand held approve skills/weekly-report
    """
    settings = load_settings(config)
    seen = _view_file(path, agent, config)
    if not yes:
        for line in _render_file(seen):
            click.echo(escape_control(line))
    if not seen.digest:
        fail(f"{seen.path} cannot be approved: {seen.problem}")
    if not yes and not click.confirm("Approve this version?", default=False):
        fail("nothing was changed")

    async def use(store: SqlStore) -> None:
        await Approving(settings, store).approve(seen, ME.id, SystemClock().now())

    with_store(settings, use)
    click.echo(escape_control(f"Approved: {seen.path}"))
    click.echo(f"SHA-256 {seen.digest}")
    if seen.bound:
        click.echo("If it changes, it is held back until you approve it again.")
    else:
        click.echo("Deskhand writes this file itself, so a change alone does not hold it back.")


@held.command("forget")
@click.argument("path")
@click.option("--yes", is_flag=True, help="Do not ask again.")
@agent_option
@config_option
def forget(path: str, yes: bool, agent: str, config: str | None) -> None:
    """Revoke an approval. The file is then used as it is, and later changes do not hold it back.

    \b
    Example:
      deskhand held forget SOUL.md
    """
    settings = load_settings(config)
    name = resolve_agent(settings, agent) if agent else ""
    question = escape_control(f"Use {path} from now on without checking it for changes?")
    if not yes and not click.confirm(question, default=False):
        fail("nothing was changed")

    async def use(store: SqlStore) -> bool:
        return await Approving(settings, store).revoke(path, name)

    if not with_store(settings, use):
        fail(f"{path!r} was not approved")
    click.echo(escape_control(f"Revoked the approval of {path}"))


def _view_file(path: str, agent: str, config: str | None) -> HeldFileView:
    settings = load_settings(config)
    name = resolve_agent(settings, agent) if agent else ""

    async def use(store: SqlStore) -> HeldFileView:
        return await Approving(settings, store).view(path, name)

    return with_store(settings, use)


def _render_file(seen: HeldFileView) -> list[str]:
    """What there is to know of it, then all of its text."""
    lines = [seen.path, f"Held back: {seen.why}" if seen.why else "Not held back"]
    if seen.digest:
        lines.append(f"SHA-256 {seen.digest}")
    else:
        lines.append(f"It cannot be approved: {seen.problem}")
    if seen.digest and seen.why:
        lines.append(f"Approve it: deskhand held approve {shlex.quote(seen.path)}")
    return [*lines, "", *seen.text.split("\n")]
