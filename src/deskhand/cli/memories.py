"""`deskhand memories`: what is remembered, why, and how to take it back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar, get_args
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
    latest_fact,
    source_text,
)
from ..memory.recall import Memory, Only
from ..memory.rendering import describe_owner, explain_fact
from ..store.sqlite import SqliteStore
from ..types.errors import ConfigError, ModelError
from .encoded import in_json
from .plain import plain
from .run import USAGE, Listing, config_option, fail, limit_option, settings_of, with_store
from .sessions import when
from .table import table
from .times import moment

T = TypeVar("T")
MADE_AT_ONCE = 640
ALL_SEEING = make_unrestricted_viewer()


def _with_memory(settings: Settings, use: Callable[[Memory, SqliteStore], Awaitable[T]]) -> T:
    return with_store(settings, lambda store: use(Memory(store, SystemClock()), store))


@click.group(cls=Listing)
def memories() -> None:
    """What is remembered: of people, of agents, and of all.

    \b
    Examples:
      deskhand memories
      deskhand memories search "garage code"
      deskhand memories why 12
      deskhand memories undo 12
    """


@memories.command("list")
@click.option(
    "--scope", "-s", type=click.Choice(["user", "agent", "global"]), help="Only of this scope."
)
@click.option(
    "--scope-id", "-i", default="", metavar="NAME", help="Only of this person, or of this agent."
)
@click.option("--pinned", "which", flag_value="pinned", help="Only those that are always told.")
@click.option("--held", "which", flag_value="held", help="Only those that wait for your yes.")
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
    """List what is remembered, the latest first.

    \b
    Examples:
      deskhand memories list --scope user --scope-id ann
      deskhand memories list --held
    """
    settings = settings_of(config)
    only = Only(scope_id, which == "pinned", which == "held")
    found = _with_memory(
        settings, lambda memory, _: memory.list_facts(ALL_SEEING, scope or "", limit, only=only)
    )
    if as_json:
        click.echo(in_json(found))
    elif not found:
        chosen = scope or scope_id or which
        click.echo(
            "No memory is like that." if chosen else "Nothing is remembered yet: tell an agent to.",
            err=True,
        )
    else:
        _table(settings, found)


def _table(settings: Settings, found: list[Fact]) -> None:
    zone = ZoneInfo(settings.config.timezone)
    rows = [
        [f"#{fact.id}", when(fact.valid_from, zone), describe_owner(fact), _marks(fact), fact.text]
        for fact in found
    ]
    table(["ID", "SINCE", "WHOSE", "", "WHAT"], rows)


def _marks(fact: Fact) -> str:
    marks = {"pinned": fact.pinned, "held": fact.held, "candidate": fact.retention == "candidate"}
    return ", ".join(name for name, on in marks.items() if on) or "-"


@memories.command()
@config_option
def stats(config: str | None) -> None:
    """Count what is remembered, by owner, and what has a vector.

    \b
    Example:
      deskhand memories stats
    """
    settings = settings_of(config)

    async def use(_: Memory, store: SqliteStore) -> tuple[list[FactCounts], dict[str, int]]:
        return await count_facts(store), await count_vectors(store)

    counts, vectors = _with_memory(settings, use)
    rows = []
    for each in counts:
        numbers = (each.open, each.held, each.pinned, each.candidates, each.closed)
        rows.append([f"{each.scope} {each.owner}".strip(), *map(str, numbers)])
    table(["WHOSE", "MEMORIES", "HELD", "PINNED", "CANDIDATES", "CLOSED"], rows)
    for model, count in vectors.items():
        click.echo(f"{count} found by meaning, by {model}")
    if not vectors:
        click.echo(
            "All are found by words: pip install 'deskhand[memory]' also finds them by meaning.",
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
    """Find memories by meaning and words, the best first. Without a query: count them.

    \b
    Example:
      deskhand memories search "what may I not eat?"
    """
    if not query.strip():
        context.invoke(stats, config=config)
        return
    settings = settings_of(config)

    async def use(memory: Memory, store: SqliteStore) -> list[tuple[Fact, float]]:
        async with Models(settings) as models:
            await _open_meaning(memory, models, settings, store)
            return [
                (each.fact, each.relevance)
                for each in await memory.search(query, ALL_SEEING, limit)
            ]

    found = _with_memory(settings, use)
    if as_json:
        click.echo(in_json([{"relevance": round(near, 3), "fact": fact} for fact, near in found]))
    elif not found:
        click.echo("Nothing is remembered about that.", err=True)
    else:
        _table(settings, [fact for fact, _ in found])


async def _open_meaning(
    memory: Memory, models: Models, settings: Settings, store: SqliteStore
) -> None:
    """Compare meanings as the settings say, and make the vectors that are missing, within
    reason."""
    try:
        meaning = models.open_meaning(settings.config.memory, store)
        if meaning is None:
            return
        made = 0
        while made < MADE_AT_ONCE and (more := await meaning.embed_missing()):
            made += more
        memory.meaning = meaning
    except (ConfigError, ModelError) as error:
        click.echo(f"deskhand: by words alone: {plain(str(error))}", err=True)


@memories.command()
@click.argument("number", type=int)
@config_option
def why(number: int, config: str | None) -> None:
    """Say where a memory comes from, who sees it, and what became of it.

    \b
    Example:
      deskhand memories why 12
    """
    settings = settings_of(config)

    async def use(memory: Memory, store: SqliteStore) -> tuple[Fact | None, str]:
        fact = await memory.get(number, ALL_SEEING)
        return fact, source_text(store, fact) if fact is not None else ""

    fact, said = _with_memory(settings, use)
    if fact is None:
        _unknown(number)
    zone = ZoneInfo(settings.config.timezone)
    click.echo(plain(fact.text))
    for name, value in explain_fact(
        fact, said, lambda at: when(at, zone), "deskhand memories promote"
    ):
        click.echo(f"  {name + ':':<12}{plain(value)}")


@memories.command()
@click.argument("number", type=int)
@config_option
def history(number: int, config: str | None) -> None:
    """Show what a memory came in place of, and what came in its place.

    \b
    Example:
      deskhand memories history 12
    """
    settings = settings_of(config)
    found = _with_memory(settings, lambda memory, _: memory.history(number, ALL_SEEING))
    if not found:
        _unknown(number)
    zone = ZoneInfo(settings.config.timezone)
    rows = [
        [
            f"#{fact.id}",
            when(fact.valid_from, zone),
            when(fact.valid_to, zone) if fact.valid_to else "now",
            fact.closed_why or _marks(fact),
            fact.text,
        ]
        for fact in found
    ]
    table(["ID", "FROM", "TO", "", "WHAT"], rows)


@memories.command()
@click.argument("number", type=int, required=False)
@click.option(
    "--since",
    metavar="WHEN",
    help="All that happened since then: 2h, 3d, 14:30, or '2026-11-22 14:30'.",
)
@click.option(
    "--writer", type=click.Choice(get_args(Writer)), help="With --since: only what this one wrote."
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
    """Take back the last thing that happened to a memory: it was written, replaced or forgotten.
    Without a number: to the one that changed last. With --since memory is put back to how it was
    then, all of it or a part.

    \b
    Examples:
      deskhand memories undo 12
      deskhand memories undo --since 2h
      deskhand memories undo --since 14:30 --writer harvester
    """
    settings = settings_of(config)
    if since is not None:
        if number is not None:
            fail("say a number, or --since: not both", USAGE)
        _put_back(settings, since, FactChoice("", owner, writer or ""), yes)
        return
    if writer or owner or yes:
        fail(
            "--writer, --scope-id and --yes go with --since: say since when, or leave them out",
            USAGE,
        )

    async def use(memory: Memory, store: SqliteStore) -> tuple[Fact, Fact] | None:
        last = await latest_fact(store) if number is None else number
        fact = await memory.get(last, ALL_SEEING)
        if fact is None:
            return None
        await store.change(undo_last_change(fact, SystemClock().now()))
        now = await memory.get(fact.id, ALL_SEEING)
        return fact, now or fact

    done = _with_memory(settings, use)
    if done is None:
        _unknown(number or 0)
    before, fact = done
    held = fact.valid_to is None
    click.echo(f"#{fact.id} {'holds again' if held else 'is taken back'}: {plain(fact.text)}")
    if before.superseded_by and held:
        click.echo(f"#{before.superseded_by}, which had come in its place, is taken back.")


def _put_back(settings: Settings, since: str, some: FactChoice, yes: bool) -> None:
    """Put memory back to how it was then."""
    now, zone = SystemClock().now(), ZoneInfo(settings.config.timezone)
    then = moment(since, now, zone)
    if then is None:
        fail(
            (
                f"--since {since!r} is no time between 1970 and now: write 90m, 2h, 3d, 14:30, "
                "or '2026-11-22 14:30'"
            ),
            USAGE,
        )
    said = (
        f"Put memory back to how it was on {when(then, zone)}? What was written since is taken "
        "back."
    )
    if not yes and not click.confirm(said):
        fail("Nothing was changed.")

    async def use(_: Memory, store: SqliteStore) -> list[int]:
        before = await count_facts(store)
        await store.change(restore_facts(then, now, some))
        after = await count_facts(store)
        return [sum(each.open for each in counts) for counts in (before, after)]

    before, after = _with_memory(settings, use)
    click.echo(
        f"Memory is as it was on {when(then, zone)}: {after:,} memories hold, {before:,} "
        "did before."
    )
    click.echo(
        "What was taken back stays in the history: deskhand memories why NUMBER, undo NUMBER",
        err=True,
    )


@memories.command()
@click.argument("number", type=int)
@config_option
def promote(number: int, config: str | None) -> None:
    """Say yes to a memory that is held, or keep one that is only a candidate.

    \b
    Example:
      deskhand memories promote 12
    """
    settings = settings_of(config)

    async def use(memory: Memory, store: SqliteStore) -> Fact | None:
        fact = await memory.get(number, ALL_SEEING)
        if fact is not None and fact.valid_to is None:
            await store.change(promote_fact(fact, SystemClock().now()))
        return fact

    fact = _with_memory(settings, use)
    if fact is None:
        _unknown(number)
    if fact.valid_to is not None:
        fail(
            (
                f"#{number} is closed ({fact.closed_why}): `deskhand memories undo {number}` "
                "opens it again"
            ),
            USAGE,
        )
    click.echo(f"#{number} is told from now on: {plain(fact.text)}")


@memories.command()
@click.argument("number", type=int)
@click.option(
    "--erase",
    is_flag=True,
    help="Also from the history and from the bytes of the database, for good.",
)
@config_option
def forget(number: int, erase: bool, config: str | None) -> None:
    """Forget a memory. It stays in the history, and `undo` brings it back, unless it is erased.

    \b
    Examples:
      deskhand memories forget 12
      deskhand memories forget 12 --erase
    """
    settings = settings_of(config)

    async def use(memory: Memory, store: SqliteStore) -> Fact | None:
        fact = await memory.get(number, ALL_SEEING)
        if fact is not None:
            now = SystemClock().now()
            await store.change(
                erase_fact(number) if erase else (close_fact(number, now, "forgotten"),)
            )
            if erase:
                await store.truncate_wal()
        return fact

    fact = _with_memory(settings, use)
    if fact is None:
        _unknown(number)
    click.echo(f"#{number} is {'erased' if erase else 'forgotten'}: {plain(fact.text)}")


def _unknown(number: int) -> NoReturn:
    fail(
        f"there is no memory #{number}: `deskhand memories` lists them"
        if number
        else "nothing is remembered",
        USAGE,
    )
