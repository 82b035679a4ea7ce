"""`deskhand audit`: proof that the log is what was written."""

from __future__ import annotations

import sys

import click

from ..gateway.audit_anchor import read_anchors
from ..store.chain import Break
from ..store.sql_store import SqlStore
from .encoded import to_json
from .plain import escape_control
from .run import FAILED, Group, config_option, load_settings, with_store


@click.group(cls=Group)
def audit() -> None:
    """Verify that nothing in the log was changed, removed or cut off.

    \b
    Example:
      deskhand audit verify
    """


@audit.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@config_option
def verify(as_json: bool, config: str | None) -> None:
    """Check every event against its hash chain and against the anchor file; exit 1 if a check
    fails.

    Keep a copy of the anchor file elsewhere: anyone who can change both files can hide a change.

    \b
    Example:
      deskhand audit verify && echo verified
    """
    settings = load_settings(config)
    anchors = read_anchors(settings.home.anchors)

    async def use(store: SqlStore) -> tuple[int, list[Break]]:
        return await store.audit(anchors)

    events, breaks = with_store(settings, use)
    if as_json:
        broken = [item._asdict() for item in breaks]
        click.echo(to_json({"events": events, "anchors": len(anchors), "breaks": broken}))
    else:
        for broken_at in breaks:
            click.echo(f"{escape_control(broken_at.session)}, event {broken_at.n}: {broken_at.why}")
        if any("is gone" in broken_at.why for broken_at in breaks):
            click.echo(
                "If you started over on purpose, move the old anchor file away as well: "
                f"{settings.home.anchors}"
            )
        anchored = (
            f"{len(anchors)} conversation{'s' * (len(anchors) != 1)} anchored in "
            f"{settings.home.anchors}"
        )
        click.echo(
            f"{events} events, {anchored}: "
            f"{'all valid' if not breaks else f'{len(breaks)} broken'}."
        )
    sys.exit(FAILED if breaks else 0)
