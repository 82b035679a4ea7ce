"""`deskhand allow`: folders beside the workspace, and what was allowed or refused for good."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ..config.clock import SystemClock
from ..sandbox.base import Mount
from ..sandbox.launcher import check_mounts
from ..store.sqlite import SqliteStore
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
    limit_option,
    load_settings,
    resolve_agent,
    with_store,
)


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
    real = Path(folder).expanduser().resolve()
    if real.is_file():
        command = (
            f"deskhand allow path {shlex.quote(str(real.parent))}{' --write' if write else ''}"
        )
        fail(f"{folder!r} is a file; allow the folder that holds it: {command}", USAGE)
    if not real.is_dir():
        fail(f"there is no folder {folder!r}", USAGE)
    try:
        settings.agent(name)
        check_mounts([Mount(str(real))])
    except DeskhandError as error:
        fail(str(error), USAGE)
    if settings.home.is_protected(real, write):
        fail(
            f"{str(real)!r} contains Deskhand's own files and keys; allow a different folder", USAGE
        )

    async def use(store: SqliteStore) -> None:
        row = (name, str(real), int(write), SystemClock().now(), ME.id)
        more = (Change("path_grant_outside", (name, str(real))),) if outside else ()
        await store.change((Change("path_grant_set", row), *more))
        may = "read and write" if write else "read, but not write,"
        click.echo(f"{name} may now {may} files in {real}")
        if not write:
            click.echo(
                f"To allow writing as well: deskhand allow path {shlex.quote(str(real))} --write"
            )
        else:
            click.echo(
                f"See and review what it changes there: deskhand written {shlex.quote(str(real))}"
            )
        click.echo(f"To revoke access: deskhand allow revoke {shlex.quote(str(real))}")

    with_store(settings, use)


@allow.command("list")
@agent_option
@limit_option()
@config_option
def list_(agent: str, limit: int | None, config: str | None) -> None:
    """List access that was granted beyond the rules.

    \b
    Example:
      deskhand allow list
    """
    settings = load_settings(config)

    async def use(store: SqliteStore) -> None:
        lines = []
        for name in (agent,) if agent else settings.agents:
            for path, write, _, by, outside in await store.query("path_grants", (name,)):
                also = ", also after reading untrusted content" if outside else ""
                lines.append(
                    f"{name}  {'read, write' if write else 'read':11}  {path}  (by {by}{also})"
                )
        for hash_, verdict, name, tool, exact, _, by in await store.query("call_grants", ()):
            lines.append(f"{name}  {verdict:11}  {hash_[:12]}  {tool} {exact}  (by {by})")
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

    async def use(store: SqliteStore) -> None:
        changes = []
        for name in (agent,) if agent else settings.agents:
            known = await store.query("path_grants", (name,))
            changes += [
                Change("path_grant_drop", (name, row[0])) for row in known if row[0] in (what, real)
            ]
        if not changes and len(what) >= 6:
            known = await store.query("call_grants", ())
            changes = [
                Change("call_grant_drop", (row[0],)) for row in known if row[0].startswith(what)
            ]
        if not changes:
            fail(
                f"no access is granted for {what!r}; list what is granted with: deskhand "
                "allow list",
                FAILED,
            )
        await store.change(changes)
        click.echo(f"Revoked: {len(changes)}")

    with_store(settings, use)
