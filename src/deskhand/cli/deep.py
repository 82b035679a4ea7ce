"""`deskhand deep`: what goes on by itself: which task, how far, and what it has used."""

from __future__ import annotations

import anyio
import click

from ..config.clock import SystemClock
from ..config.config import Settings
from ..deepwork.fold import LongRun
from ..deepwork.progress import (
    STATES,
    is_continuing,
    list_long_work,
    load_long_work,
    render_long_work,
)
from ..secrets.redaction import Redactor
from ..store.sql_store import SqlStore
from ..tools.queries import load_tasks
from ..tools.task_words import render_tasks
from ..types.goals import LongWork
from .asks import has_driver, session_name
from .encoded import to_json
from .plain import escape_control
from .run import USAGE, config_option, fail, limit_option, load_settings, with_store
from .sessions import resolve_session_key
from .table import print_table

POLL_S = 1.0


@click.command()
@click.argument("session", default="")
@click.option("--follow", "-f", is_flag=True, help="Keep running, and print a line for each step.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; with --follow, one object per line."
)
@limit_option()
@config_option
def deep(session: str, follow: bool, as_json: bool, limit: int | None, config: str | None) -> None:
    """Show the progress, usage and remaining budget of long-running work.

    With SESSION, also show its tasks. Start such work in a conversation: /deep REQUEST or /goal
    TEXT.

    \b
    Examples:
      deskhand deep
      deskhand deep nov21-0930
      deskhand deep nov21-0930 --follow
    """
    settings = load_settings(config)
    key = resolve_session_key(settings, session) if session else ""
    if follow and not key:
        fail("--follow needs the name of one conversation; list them with: deskhand deep", USAGE)
    if follow:
        _follow(settings, key, as_json)
        return
    found = _load_work(settings, key)[:limit]
    hide = Redactor(settings)
    if as_json:
        click.echo(hide(to_json(found)))
    elif not found:
        which = f"{session} has no long-running work" if session else "No long-running work"
        click.echo(
            f"{escape_control(which)}. Start it in a conversation: /deep REQUEST, or /goal TEXT."
        )
    elif key:
        lines = [*render_long_work(found[0]), *_render_tasks(settings, key)]
        click.echo(escape_control(hide("\n".join(lines))))
    else:
        rows = [_render_row(each, settings, hide) for each in found]
        print_table(("conversation", "done", "now", "tokens used", "left", ""), rows)
    if found and not as_json and not has_driver(settings):
        click.echo("Deskhand is not running. To continue this work: deskhand serve", err=True)


def _load_work(settings: Settings, key: str) -> list[LongWork]:
    async def use(store: SqlStore) -> list[LongWork]:
        config = settings.config.deep_work
        if not key:
            return list(await list_long_work(store, config))
        one = await load_long_work(store, key, config)
        return [one] if one is not None else []

    return with_store(settings, use)


def _render_tasks(settings: Settings, key: str) -> list[str]:
    async def use(store: SqlStore) -> str:
        return render_tasks(await load_tasks(store, key))

    text = with_store(settings, use)
    return [text] if text else []


def _render_row(work: LongWork, settings: Settings, hide: Redactor) -> tuple[str, ...]:
    far = f"{work.percent} % ({work.done}/{work.tasks})" if work.tasks else "-"
    used, most = (work.used, work.most) if work.deep else (work.goal_used, work.goal_most)
    what = work.doing or (f"goal: {work.goal}" if work.goal else "-")
    state = STATES[work.state]
    return (
        session_name(work.session, settings),
        far,
        hide(what),
        f"{used:,}",
        f"{max(most - used, 0):,}",
        state,
    )


def _follow(settings: Settings, key: str, as_json: bool) -> None:
    """Until it is ended, or there is nothing left that would go on. A line stands where something
    is new."""
    hide = Redactor(settings)
    config = settings.config.deep_work

    async def use(store: SqlStore) -> str:
        before = ""
        known = LongRun(key)
        rests = False
        clock = SystemClock()
        told = has_driver(settings)
        while True:
            work = await load_long_work(store, key, config, known)
            if work is None:
                break
            now = f"{work.done}/{work.tasks} {work.doing} {work.state} {work.round}"
            if now != before:
                before = now
                if as_json:
                    click.echo(hide(to_json(work)))
                else:
                    click.echo(escape_control(hide(_render_line(work))))
            if work.state == "done" and not work.goal:
                return ""
            rested = rests
            rests = not await is_continuing(store, known, config, clock.now())
            if not rests and not told:
                told = True
                click.echo(
                    "Deskhand is not running. To continue this work: deskhand serve", err=True
                )
            if rested and rests:  # twice: somebody's words may be on their way
                return "It has stopped. To continue it, write in that conversation."
            await anyio.sleep(POLL_S)
        return "It no longer continues by itself." if before else "It does not continue by itself."

    said = with_store(settings, use)
    if said:
        click.echo(said, err=as_json)


def _render_line(work: LongWork) -> str:
    used, most = (work.used, work.most) if work.deep else (work.goal_used, work.goal_most)
    far = f"{work.percent:3} %  {work.done}/{work.tasks}  " if work.tasks else ""
    what = f"{work.doing}; " if work.doing else ""
    return f"{far}{what}{STATES[work.state]}; {used:,} of {most:,} tokens"
