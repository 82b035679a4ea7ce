"""`deskhand memories`: what is remembered, why, and how to take it back."""

from __future__ import annotations

from typing import NoReturn, get_args
from zoneinfo import ZoneInfo

import click

from ..assembly.models import Models
from ..config.clock import SystemClock
from ..config.config import Settings
from ..memory.facts import (
    Fact,
    FactChoice,
    Writer,
    close_fact,
    erase_fact,
    make_unrestricted_viewer,
    promote_fact,
    restore_facts,
    undo_last_change,
)
from ..memory.queries import (
    FactCounts,
    count_facts,
    count_vectors,
    find_successor,
    latest_fact,
    source_text,
)
from ..memory.recall import Memory, Only
from ..memory.rendering import describe_owner, explain_fact
from ..store.sql_store import SqlStore
from ..supervision.erased_index import describe_backups, erased_fact
from ..types.errors import ConfigError, ModelError
from .encoded import to_json
from .memory_corrections import contradictions, correct, merge, with_memory
from .plain import escape_control
from .run import (
    USAGE,
    Listing,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
)
from .sessions import format_local_time
from .table import print_json_rows, print_table
from .times import parse_past_time

MAX_EMBEDDED = 640
UNRESTRICTED = make_unrestricted_viewer()


@click.group(cls=Listing)
def memories() -> None:
    """List, search and manage memories.

    \b
    Examples:
      deskhand memories
      deskhand memories search "garage code"
      deskhand memories why 12
      deskhand memories undo 12
    """


@memories.command("list")
@click.option(
    "--scope",
    "-s",
    type=click.Choice(["user", "agent", "global"]),
    help="Only memories of this scope.",
)
@click.option(
    "--scope-id", "-i", default="", metavar="NAME", help="Only memories of this person or agent."
)
@click.option("--pinned", "which", flag_value="pinned", help="Only pinned memories.")
@click.option("--held", "which", flag_value="held", help="Only memories that wait for approval.")
@limit_option(50)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@config_option
def list_(
    scope: str | None,
    scope_id: str,
    which: str | None,
    limit: int,
    as_json: bool,
    config: str | None,
) -> None:
    """List memories, latest first.

    \b
    Examples:
      deskhand memories list --scope user --scope-id ann
      deskhand memories list --held
    """
    settings = load_settings(config)
    only = Only(scope_id, which == "pinned", which == "held")
    found = with_memory(
        settings, lambda memory, _: memory.list_facts(UNRESTRICTED, scope or "", limit, only=only)
    )
    if as_json:
        click.echo(to_json(found))
    elif not found:
        said = "No memories yet. Ask an agent to remember something."
        if scope or scope_id or which:
            said = "No matching memories."
        click.echo(said, err=True)
    else:
        _print_facts(settings, found)


def _print_facts(settings: Settings, found: list[Fact]) -> None:
    zone = ZoneInfo(settings.config.timezone)
    rows = [
        [
            f"#{fact.id}",
            format_local_time(fact.valid_from, zone),
            describe_owner(fact),
            _render_marks(fact),
            fact.text,
        ]
        for fact in found
    ]
    print_table(["ID", "SINCE", "WHOSE", "", "WHAT"], rows)


def _render_marks(fact: Fact) -> str:
    marks = {"pinned": fact.pinned, "held": fact.held, "candidate": fact.retention == "candidate"}
    return ", ".join(name for name, on in marks.items() if on) or "-"


@memories.command()
@config_option
def stats(config: str | None) -> None:
    """Count memories by owner, and those with a vector.

    \b
    Example:
      deskhand memories stats
    """
    settings = load_settings(config)

    async def use(_: Memory, store: SqlStore) -> tuple[list[FactCounts], dict[str, int]]:
        return await count_facts(store), await count_vectors(store)

    counts, vectors = with_memory(settings, use)
    rows = []
    for each in counts:
        numbers = (each.open, each.held, each.pinned, each.candidates, each.closed)
        rows.append([f"{each.scope} {each.owner}".strip(), *map(str, numbers)])
    print_table(["WHOSE", "MEMORIES", "HELD", "PINNED", "CANDIDATES", "CLOSED"], rows)
    for model, count in vectors.items():
        click.echo(f"{count} searched by meaning, with {model}")
    if not vectors:
        click.echo(
            "Memories are searched by words. To search them by meaning, too: pip install "
            "'deskhand[memory]'",
            err=True,
        )


@memories.command()
@click.argument("query", default="")
@limit_option(5, most=50)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@config_option
@click.pass_context
def search(
    context: click.Context, query: str, limit: int, as_json: bool, config: str | None
) -> None:
    """Search memories by meaning and words, best match first. Without a query: count them.

    \b
    Example:
      deskhand memories search "what may I not eat?"
    """
    if not query.strip():
        context.invoke(stats, config=config)
        return
    settings = load_settings(config)

    async def use(memory: Memory, store: SqlStore) -> list[tuple[Fact, float]]:
        async with Models(settings) as models:
            await _open_meaning(memory, models, settings, store)
            hits = await memory.search(query, UNRESTRICTED, limit)
            return [(hit.fact, hit.relevance) for hit in hits]

    found = with_memory(settings, use)
    if as_json:
        click.echo(to_json([{"relevance": round(near, 3), "fact": fact} for fact, near in found]))
    elif not found:
        click.echo("No matching memories.", err=True)
    else:
        _print_facts(settings, [fact for fact, _ in found])


async def _open_meaning(
    memory: Memory, models: Models, settings: Settings, store: SqlStore
) -> None:
    """Compare meanings as the settings say, and make the vectors that are missing, within
    reason."""
    try:
        meaning = models.open_meaning(settings.config.memory, store)
        if meaning is None:
            return
        made = 0
        while made < MAX_EMBEDDED:
            more = await meaning.embed_missing()
            if not more:
                break
            made += more
        memory.meaning = meaning
    except (ConfigError, ModelError) as error:
        click.echo(f"deskhand: searched by words only: {escape_control(str(error))}", err=True)


@memories.command()
@click.argument("number", type=int)
@config_option
def why(number: int, config: str | None) -> None:
    """Show a memory's source, who can see it, and its history.

    \b
    Example:
      deskhand memories why 12
    """
    settings = load_settings(config)

    async def use(memory: Memory, store: SqlStore) -> tuple[Fact | None, str]:
        fact = await memory.get(number, UNRESTRICTED)
        return fact, source_text(store, fact) if fact is not None else ""

    fact, said = with_memory(settings, use)
    if fact is None:
        _fail_unknown(number)
    zone = ZoneInfo(settings.config.timezone)
    click.echo(escape_control(fact.text))
    for name, value in explain_fact(
        fact, said, lambda at: format_local_time(at, zone), "deskhand memories promote"
    ):
        click.echo(f"  {name + ':':<12}{escape_control(value)}")


@memories.command()
@click.argument("number", type=int)
@json_option
@config_option
def history(number: int, as_json: bool, config: str | None) -> None:
    """Show what a memory replaced, and what replaced it.

    \b
    Example:
      deskhand memories history 12
    """
    settings = load_settings(config)
    found = with_memory(settings, lambda memory, _: memory.history(number, UNRESTRICTED))
    if not found:
        _fail_unknown(number)
    if as_json:
        listed = [
            (fact.id, fact.valid_from, fact.valid_to, fact.closed_why, fact.text) for fact in found
        ]
        print_json_rows(("id", "valid_from", "valid_to", "closed_why", "text"), listed)
        return
    zone = ZoneInfo(settings.config.timezone)
    rows = [
        [
            f"#{fact.id}",
            format_local_time(fact.valid_from, zone),
            format_local_time(fact.valid_to, zone) if fact.valid_to else "now",
            fact.closed_why or _render_marks(fact),
            fact.text,
        ]
        for fact in found
    ]
    print_table(["ID", "FROM", "TO", "", "WHAT"], rows)


@memories.command()
@click.argument("number", type=int, required=False)
@click.option(
    "--since",
    metavar="WHEN",
    help="Undo every change since then: 2h, 3d, 14:30, or '2026-11-22 14:30'.",
)
@click.option(
    "--writer",
    type=click.Choice(get_args(Writer)),
    help="With --since: only changes by this writer.",
)
@click.option(
    "--scope-id",
    "-i",
    "owner",
    default="",
    metavar="NAME",
    help="With --since: only of this person or agent.",
)
@click.option("--yes", "-y", is_flag=True, help="With --since: do not ask.")
@config_option
def undo(
    number: int | None,
    since: str | None,
    writer: str | None,
    owner: str,
    yes: bool,
    config: str | None,
) -> None:
    """Undo the last change of a memory: written, replaced or forgotten.
    Without a number, the latest change is undone. With --since, all memories, or some of them, are
    restored to their state at that time.

    \b
    Examples:
      deskhand memories undo 12
      deskhand memories undo --since 2h
      deskhand memories undo --since 14:30 --writer harvester
    """
    settings = load_settings(config)
    if since is not None:
        if number is not None:
            fail("give a number or --since, not both", USAGE)
        _restore(settings, since, FactChoice("", owner, writer or ""), yes)
        return
    if writer or owner or yes:
        fail("--writer, --scope-id and --yes need --since", USAGE)
    _undo_last_change(settings, number)


def _undo_last_change(settings: Settings, number: int | None) -> None:
    """Of this memory, or of all."""

    async def use(memory: Memory, store: SqlStore) -> tuple[Fact, Fact | None] | None:
        last = await latest_fact(store) if number is None else number
        fact = await memory.get(last, UNRESTRICTED)
        if fact is None:
            return None
        successor = find_successor(store, fact)
        await store.change(undo_last_change(fact, SystemClock().now(), successor=successor))
        now = await memory.get(fact.id, UNRESTRICTED)
        replaced = successor is not None and fact.id in successor.replaces
        return now or fact, successor if replaced else None

    done = with_memory(settings, use)
    if done is None:
        _fail_unknown(number or 0)
    fact, successor = done
    held = fact.valid_to is None
    click.echo(
        f"#{fact.id} {'holds again' if held else 'is taken back'}: {escape_control(fact.text)}"
    )
    if successor is not None and held:
        click.echo(f"#{successor.id}, which had replaced it, is no longer active.")


def _restore(settings: Settings, since: str, some: FactChoice, yes: bool) -> None:
    """Put memory back to how it was then."""
    now = SystemClock().now()
    zone = ZoneInfo(settings.config.timezone)
    then = parse_past_time(since, now, zone)
    if then is None:
        forms = "90m, 2h, 3d, 14:30, or '2026-11-22 14:30'"
        fail(f"--since {since!r} is not a time between 1970 and now: write {forms}", USAGE)
    said = (
        f"Restore memory to its state of {format_local_time(then, zone)}? Everything written "
        "since then is undone."
    )
    if not yes and not click.confirm(said):
        fail("Nothing was changed.")

    async def use(_: Memory, store: SqlStore) -> list[int]:
        before = await count_facts(store)
        await store.change(restore_facts(then, now, some))
        after = await count_facts(store)
        return [sum(each.open for each in counts) for counts in (before, after)]

    before, after = with_memory(settings, use)
    click.echo(
        f"Restored memory to its state of {format_local_time(then, zone)}: {after:,} active "
        f"memories, {before:,} before."
    )
    click.echo(
        "Undone changes stay in the history: deskhand memories why NUMBER, undo NUMBER",
        err=True,
    )


@memories.command()
@click.argument("number", type=int)
@config_option
def promote(number: int, config: str | None) -> None:
    """Approve a held memory, or keep a candidate.

    \b
    Example:
      deskhand memories promote 12
    """
    settings = load_settings(config)

    async def use(memory: Memory, store: SqlStore) -> Fact | None:
        fact = await memory.get(number, UNRESTRICTED)
        if fact is not None and fact.valid_to is None:
            await store.change(promote_fact(fact, SystemClock().now()))
        return fact

    fact = with_memory(settings, use)
    if fact is None:
        _fail_unknown(number)
    if fact.valid_to is not None:
        fail(
            (
                f"#{number} is closed ({fact.closed_why}): reopen it with: deskhand memories "
                f"undo {number}"
            ),
            USAGE,
        )
    click.echo(f"Approved #{number}: {escape_control(fact.text)}")


@memories.command()
@click.argument("number", type=int)
@click.option(
    "--erase",
    is_flag=True,
    help="Also erase it from the history and the database file, permanently.",
)
@config_option
def forget(number: int, erase: bool, config: str | None) -> None:
    """Forget a memory. It stays in the history, and `undo` brings it back, unless it is erased.

    \b
    Examples:
      deskhand memories forget 12
      deskhand memories forget 12 --erase
    """
    settings = load_settings(config)

    async def use(memory: Memory, store: SqlStore) -> Fact | None:
        fact = await memory.get(number, UNRESTRICTED)
        if fact is not None:
            now = SystemClock().now()
            await store.change(
                erase_fact(number) if erase else (close_fact(number, now, "forgotten"),)
            )
            if erase:
                await store.truncate_wal()
        return fact

    fact = with_memory(settings, use)
    if fact is None:
        _fail_unknown(number)
    click.echo(f"#{number} is {'erased' if erase else 'forgotten'}: {escape_control(fact.text)}")
    if erase:
        erased = erased_fact(fact.key, fact.at, fact.text, SystemClock().now())
        kept = describe_backups(settings, erased)
        if kept:
            click.echo(kept)


for each in (correct, merge, contradictions):
    memories.add_command(each)


def _fail_unknown(number: int) -> NoReturn:
    if not number:
        fail("there are no memories", USAGE)
    fail(f"there is no memory #{number}; list memories with: deskhand memories", USAGE)
