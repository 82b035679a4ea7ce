"""`deskhand worker`: drive conversations beside the server, on the same database."""

from __future__ import annotations

import re
import sys
from socket import gethostname

import anyio
import click

from ..config.config import name_worker
from .run import USAGE, config_option, fail, load_service_settings
from .serve import acquire_service_lock, make_supervisor

WITHOUT_POSTGRESQL = (
    "a worker needs a database that several processes can use: set `store` to a PostgreSQL "
    "database, and move the home to it with `deskhand store move postgresql://...`"
)


@click.command()
@click.argument("name", required=False)
@config_option
def worker(name: str | None, config: str | None) -> None:
    """Drive conversations beside a server that uses the same database.

    The server (`deskhand serve`) receives and sends messages, starts jobs and serves the page. Each
    worker takes over some of the agents: one agent is driven by one process at a time. When a
    worker ends, the others take over its agents within ten seconds.

    NAME tells the workers of one home apart; without it, a worker is called as its machine. They
    need the same home as the server, so put it on a volume that all machines share.

    \b
    Examples:
      deskhand worker
      deskhand worker second
    """
    name = name or re.sub(r"[^A-Za-z0-9_-]+", "-", gethostname())[:40]
    name_worker(name)
    settings = load_service_settings(config, quiet=False)
    if not settings.config.store:
        fail(WITHOUT_POSTGRESQL, USAGE)
    acquire_service_lock(settings)
    click.echo(f"Worker {name} is running. Press Ctrl+C to stop it. Log: {settings.home.log}")
    sys.exit(anyio.run(make_supervisor(settings, config).run))
