"""`deskhand memories correct`, `merge` and `contradictions`: what a person changes by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from zoneinfo import ZoneInfo

import anyio.to_thread
import click

from ..config.clock import RandomIds, SystemClock
from ..config.config import Settings
from ..memory.contradictions import Contradiction, find_contradictions
from ..memory.corrections import (
    BOTH_HOLD,
    begin_edit,
    correct_fact,
    find_obstacle,
    find_repeated,
    format_pair,
    merge_facts,
)
from ..memory.facts import fit_fact_text, make_unrestricted_viewer
from ..memory.queries import facts_by_key, processed_subjects
from ..memory.recall import Memory
from ..memory.rendering import describe_owner
from ..store.sql_store import SqlStore
from ..types.commit import Change
from .run import (
    ME,
    USAGE,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
    with_store,
)
from .sessions import format_local_time
from .table import print_json_rows, print_table

T = TypeVar("T")
COMPARED = 20_000
UNRESTRICTED = make_unrestricted_viewer()


def with_memory(settings: Settings, use: Callable[[Memory, SqlStore], Awaitable[T]]) -> T:
    return with_store(settings, lambda store: use(Memory(store, SystemClock()), store))


@click.command()
@click.argument("number", type=int)
@click.argument("text")
@config_option
def correct(number: int, text: str, config: str | None) -> None:
    """Replace a memory by what is right. The earlier version stays in the history.

    \b
    Example:
      deskhand memories correct 12 "The garage code is 8820"
    """
    _replace(load_settings(config), [number], text, "Corrected")


@click.command()
@click.argument("number", type=int)
@click.argument("other", type=int)
@click.option("--text", "-t", default="", help="What both say. Default: the text of the first.")
@config_option
def merge(number: int, other: int, text: str, config: str | None) -> None:
    """Replace two memories that say the same by one. `undo` separates them again.

    \b
    Examples:
      deskhand memories merge 12 15
      deskhand memories merge 12 15 --text "Ann likes green tea"
    """
    _replace(load_settings(config), [number, other], text, "Merged")


def _replace(settings: Settings, numbers: Sequence[int], text: str, done: str) -> None:
    """Replace these facts by one with this text, '' for that of the first."""
    keeping = settings.config.memory.keeping

    async def use(memory: Memory, store: SqlStore) -> int | str:
        facts = []
        for number in numbers:
            fact = await memory.get(number, UNRESTRICTED)
            if fact is None:
                return f"there is no memory #{number}; list memories with: deskhand memories"
            facts.append(fact)
        words = fit_fact_text(text) or facts[0].text
        if problem := find_obstacle(facts) or await find_repeated(memory, words, facts):
            return problem
        now = SystemClock().now()
        unique = RandomIds().new("fact")
        edit = await begin_edit(store, facts, who=ME, at=now, unique=unique, keeping=keeping)
        changes: tuple[Change, ...] = (
            correct_fact(facts[0], words, edit)
            if len(facts) == 1
            else merge_facts(facts, words, edit)
        )
        await store.change(changes)
        (written,) = await facts_by_key(store, [edit.key])
        return written.id

    found = with_memory(settings, use)
    if isinstance(found, str):
        fail(found, USAGE)
    replaced = " and ".join(f"#{number}" for number in numbers)
    click.echo(
        f"{done}: #{found} in place of {replaced}. Take it back: deskhand memories undo {found}"
    )


@click.command()
@limit_option()
@json_option
@config_option
def contradictions(limit: int | None, as_json: bool, config: str | None) -> None:
    """List memories of the same owner that cannot both hold.
    They are found without a model: the same subject and property with another value.

    \b
    Example:
      deskhand memories contradictions
    """
    settings = load_settings(config)

    async def use(memory: Memory, store: SqlStore) -> list[Contradiction]:
        facts = await memory.list_facts(UNRESTRICTED, limit=COMPARED)
        settled = await processed_subjects(store, BOTH_HOLD)
        found = await anyio.to_thread.run_sync(find_contradictions, facts)
        return [each for each in found if format_pair(each.older, each.newer) not in settled]

    found = with_memory(settings, use)[:limit]
    if as_json:
        pairs = [
            (pair.about, each.id, each.valid_from, describe_owner(each), each.text)
            for pair in found
            for each in (pair.older, pair.newer)
        ]
        print_json_rows(("about", "id", "valid_from", "whose", "text"), pairs)
        return
    if not found:
        click.echo("No contradicting memories.", err=True)
        return
    zone = ZoneInfo(settings.config.timezone)
    rows = [
        [
            f"#{fact.id}",
            format_local_time(fact.valid_from, zone),
            describe_owner(fact),
            pair.about,
            fact.text,
        ]
        for pair in found
        for fact in (pair.older, pair.newer)
    ]
    print_table(["ID", "SINCE", "WHOSE", "ABOUT", "WHAT"], rows)
    click.echo("Forget or correct one of two: deskhand memories forget NUMBER", err=True)
