"""`deskhand trace`: each call of a conversation, with its time, its tokens and what came of it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import anyio
import click

from ..assembly.trace import TraceSpan
from ..assembly.trace_tree import TraceTree
from ..secrets.redaction import Redactor
from ..store.sql_store import SqlStore
from .encoded import to_json
from .plain import escape_control, shorten_line
from .run import config_option, limit_option, load_settings, with_store
from .sessions import load_events, resolve_session_key

POLL_S = 0.2
STYLES = {
    "failed": "red",
    "error": "red",
    "denied": "yellow",
    "interrupted": "yellow",
    "running": "cyan",
}
STYLES |= {"waits": "cyan", "superseded": "yellow", "expired": "yellow", "unasked": "yellow"}


@click.command()
@click.argument("session")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object for each call and each turn."
)
@click.option("--follow", "-f", is_flag=True, help="Keep printing calls as they end, until Ctrl+C.")
@limit_option()
@config_option
def trace(session: str, as_json: bool, follow: bool, limit: int | None, config: str | None) -> None:
    """Show each call of a model or a tool in a conversation, in the order in which they ended.

    Calls of its sub-agents and teammates are among them, with "> " for each level. With --limit the
    latest calls are shown.

    It is read from the log, so it needs no preparation. Values of secrets in the environment are
    replaced by their names. With --json each line is an event for other programs:
    llm_call, tool_call or agent_run (a turn), with the ids of its span, its parent and its trace,
    times, tokens, and the first 200 characters of its result.

    \b
    Examples:
      deskhand trace nov21-0930
      deskhand trace nov21-0930 --json | jq 'select(.took_s > 5)'
      deskhand trace nov21-0930 --json > trace.jsonl
      deskhand trace main/telegram:42 -f
    """
    settings = load_settings(config)
    load_events(settings, session)  # ends the command where there is no such conversation
    key = resolve_session_key(settings, session)
    shown = _Lines(ZoneInfo(settings.config.timezone), as_json=as_json)

    async def use(store: SqlStore) -> None:
        tree = TraceTree(store, key, Redactor(settings))
        spans = await tree.read()
        running = [] if follow else tree.open_spans()
        latest = [*spans, *running]
        if limit is not None:
            latest = latest[-limit:]
        shown.print_head(bool(latest) or follow)
        for span in latest:
            shown.print(span, tree.depth_of(span.session))
        if follow:
            await _follow(store, tree, shown)
        elif not as_json and latest:
            click.echo(_render_totals(spans), err=True)
        elif not as_json:
            click.echo(f"No calls yet in {escape_control(session)}.")

    with_store(settings, use)


async def _follow(store: SqlStore, tree: TraceTree, shown: _Lines) -> None:
    seen = -1
    while True:
        version = store.version()
        if version != seen:
            seen = version
            for span in await tree.read():
                shown.print(span, tree.depth_of(span.session))
        await anyio.sleep(POLL_S)


class _Lines:
    """Prints calls: as JSON, as tabs in a pipe, as columns on a terminal."""

    def __init__(self, zone: ZoneInfo, *, as_json: bool) -> None:
        self._zone = zone
        self._json = as_json
        self._tty = sys.stdout.isatty()

    def print_head(self, any_: bool) -> None:
        if any_ and self._tty and not self._json:
            head = (
                f"{'seq':>6}  {'time':<8}  {'call':<28}  {'took':>8}  {'tokens in/out':>15}  "
                f"{'status':<11}  what"
            )
            click.echo(click.style(head, dim=True))

    def print(self, span: TraceSpan, depth: int) -> None:
        if self._json:
            click.echo(to_json(span))
            return
        if span.kind == "agent_run":
            return
        name = "> " * depth + span.name
        time = datetime.fromtimestamp(span.at, self._zone).strftime("%H:%M:%S")
        tokens = f"{span.input_tokens}/{span.output_tokens}" if span.kind == "llm_call" else ""
        number = str(span.seq) if span.seq else ""
        took = f"{span.took_s:.2f} s" if span.seq else ""
        if not self._tty:
            cells = (number, time, name, took, tokens, span.status, span.detail)
            click.echo("\t".join(" ".join(escape_control(cell).split()) for cell in cells))
            return
        name = shorten_line(name if span.kind == "llm_call" else f"  {name}", 28)
        status = click.style(f"{span.status:<11}", fg=STYLES.get(span.status))
        line = f"{number:>6}  {time}  {name:<28}  {took:>8}  {tokens:>15}  {status}  "
        room = shutil.get_terminal_size().columns - 6 - 8 - 28 - 8 - 15 - 11 - 12
        click.echo(line + (shorten_line(span.detail, room) if room > 8 else ""))


def _render_totals(spans: Sequence[TraceSpan]) -> str:
    models = [span for span in spans if span.kind == "llm_call"]
    tools = [span for span in spans if span.kind == "tool_call"]
    read = sum(span.input_tokens for span in models)
    written = sum(span.output_tokens for span in models)
    calls = f"{len(models)} model calls, {len(tools)} tool calls"
    took_s = sum(span.took_s for span in models)
    return f"{calls}; {read:,} tokens read, {written:,} written; models took {took_s:.1f} s"
