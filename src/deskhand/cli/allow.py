"""`deskhand allow`: folders beside the workspace, and what was allowed or refused for good."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ..config.clock import SystemClock
from ..runtime.folder_grants import allow_folder, resolve_folder, revoke_folder
from ..store.queries import (
    PathGrant,
    drop_standing_grant,
    path_grants_of,
    standing_grants,
)
from ..store.sql_store import SqlStore
from ..types.commit import Change
from ..types.errors import DeskhandError
from .run import (
    FAILED,
    ME,
    USAGE,
    Listing,
    agent_option,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
    resolve_agent,
    with_store,
)
from .table import print_json_rows


@click.group(cls=Listing)
def allow() -> None:
    """Show, grant and revoke access beyond an agent's workspace.

    \b
    Examples:
      deskhand allow path ~/Downloads --write
      deskhand allow list
    """


@allow.command("path")
@click.argument("folder")
@click.option("--write", is_flag=True, help="Allow writing, too.")
@click.option(
    "--outside",
    is_flag=True,
    help="With --write: also after the conversation has read untrusted content.",
)
@agent_option
@config_option
def path_(folder: str, write: bool, outside: bool, agent: str, config: str | None) -> None:
    """Let the agent read a folder, also in commands; with --write, write there too.

    What it changes there is listed by `deskhand written` until you have reviewed it. A conversation
    that has read untrusted content (a page, a mail) can write there only with --outside.

    \b
    Examples:
      deskhand allow path ~/Downloads
      deskhand allow path ~/Downloads --write
      deskhand allow path ~/src/app --write --outside
    """
    if outside and not write:
        fail("--outside applies to writing only: add --write", USAGE)
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    try:
        real = resolve_folder(settings, name, folder, write=write)
    except DeskhandError as error:
        fail(str(error), USAGE)

    async def use(store: SqlStore) -> None:
        grant = PathGrant(real, write, SystemClock().now(), ME.id, outside)
        await store.change(allow_folder(name, grant))
        quoted = shlex.quote(real)
        if write:
            click.echo(f"{name} may now read and write files in {real}")
            click.echo(f"See and review what it changes there: deskhand written {quoted}")
        else:
            click.echo(f"{name} may now read, but not write, files in {real}")
            click.echo(f"To allow writing as well: deskhand allow path {quoted} --write")
        click.echo(f"To revoke access: deskhand allow revoke {quoted}")

    with_store(settings, use)


@allow.command("list")
@agent_option
@limit_option()
@json_option
@config_option
def list_(agent: str, limit: int | None, as_json: bool, config: str | None) -> None:
    """List access that was granted beyond the rules.

    \b
    Example:
      deskhand allow list
    """
    settings = load_settings(config)

    async def use(store: SqlStore) -> None:
        lines = []
        rows: list[tuple[str | bool, ...]] = []
        for name in (agent,) if agent else settings.agents:
            for folder in await path_grants_of(store, name):
                may = "read, write" if folder.write else "read"
                also = ", also after reading untrusted content" if folder.outside else ""
                lines.append(f"{name}  {may:11}  {folder.path}  (by {folder.by}{also})")
                rows.append((name, may, folder.path, "", folder.by, folder.outside))
        for grant in await standing_grants(store, ME):
            call = f"{grant.tool} {grant.arguments}"
            lines.append(
                f"{grant.agent}  {grant.verdict:11}  {grant.id[:12]}  {call}  (by {grant.by})"
            )
            rows.append((grant.agent, grant.verdict, call, grant.id, grant.by, False))
        if as_json:
            print_json_rows(("agent", "access", "to", "id", "by", "outside"), rows[:limit])
            return
        for line in lines[:limit]:
            click.echo(line)
        if not lines:
            click.echo(
                "No additional access is granted. Allow a folder with: deskhand allow path "
                "~/Downloads"
            )

    with_store(settings, use)


@allow.command("revoke")
@click.argument("what")
@agent_option
@config_option
def revoke(what: str, agent: str, config: str | None) -> None:
    """Revoke access to a folder, or a standing approval or denial by its hash prefix.

    \b
    Example:
      deskhand allow revoke ~/Downloads
    """
    settings = load_settings(config)
    real = str(Path(what).expanduser().resolve())

    async def use(store: SqlStore) -> None:
        changes = list[Change]()
        count = 0
        for name in (agent,) if agent else settings.agents:
            for folder in await path_grants_of(store, name):
                if folder.path in (what, real):
                    changes += revoke_folder(name, folder.path, SystemClock().now(), ME.id)
                    count += 1
        if not changes and len(what) >= 6:
            for grant in await standing_grants(store, ME):
                if grant.id.startswith(what):
                    changes.append(drop_standing_grant(grant.id))
                    count += 1
        if not changes:
            fail(
                f"no access is granted for {what!r}; list what is granted with: deskhand "
                "allow list",
                FAILED,
            )
        await store.change(changes)
        click.echo(f"Revoked: {count}")

    with_store(settings, use)
