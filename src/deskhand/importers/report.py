"""What a person reads of an import, before it and after it: what is taken, what is changed, what is
left out.

Pure; no value of a key stands in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ..jobs.text import when
from ..types.people import OWNER_NAME
from .model import ChangedName, LeftOut, counts, in_words
from .notes import shown
from .plan import ImportPlan, NewPerson

MOST_NAMED = 12
"""So many are named in a line; `--json` lists all."""
OFF = (
    "switched off, so that nothing is done twice while the other system runs; to switch one on: "
    "deskhand jobs enable {}"
)


class Report(msgspec.Struct, frozen=True):
    """The three lists. `taken` are (kind, what each of them is called)."""

    taken: tuple[tuple[str, tuple[str, ...]], ...]
    changed: tuple[ChangedName, ...]
    left_out: tuple[LeftOut, ...]


def report_of(
    plan: ImportPlan,
    zone: str = "UTC",
    *,
    start_jobs: bool = False,
    more_left: Sequence[LeftOut] = (),
) -> Report:
    """The report of a plan. `zone` is for jobs where nobody said another, `more_left` what could
    not be taken after all. Where nothing is new, what was said of the home before is not said
    again."""
    again = bool(plan.known) and not plan.counts()
    left = plan.left[len(plan.found.left) :] if again else plan.left
    changed = plan.changed[len(plan.found.changed) :] if again else plan.changed
    if not start_jobs:
        off = [each.job.name for each in plan.jobs if each.job.enabled]
        changed = (*changed, *(ChangedName(f"job {name}", OFF.format(off[0])) for name in off))
    taken = [(name, tuple(map(shown, values))) for name, values in _taken(plan, zone)]
    return Report(
        tuple((name, values) for name, values in taken if values), changed, (*left, *more_left)
    )


def _taken(plan: ImportPlan, zone: str) -> Iterator[tuple[str, Iterable[str]]]:
    yield "agents", (_as(each.name, plan.agents[each.name]) for each in plan.new_agents)
    yield "users", map(_person, plan.new_people)
    yield "conversations", _places(plan)
    yield "options of conversations", _options(plan)
    yield "jobs", (f"{each.job.name} {when(each.job, zone)}" for each in plan.jobs)
    yield "memories", _memories(plan)
    yield "key-values", (f"{each.key} of {each.agent}" for each in plan.values)
    yield "skills", (each.name for each in plan.skills)
    yield "tasks", (task.title for each in plan.tasks for task in each.tasks)
    yield "presets", (each.name for each in plan.presets)
    yield "notes", (each.path for each in plan.notes)
    yield (
        "files",
        (
            f"{each.name}/{name}"
            for each in plan.new_agents
            for name in (*each.own, *each.workspace)
        ),
    )
    yield "settings", (line for path, value in plan.keys for line in _setting(path, value))
    yield "keys to .env", sorted(plan.secrets)


# ---------------------------------------------------------------------- as lines


def head(plan: ImportPlan, place: str) -> Iterator[str]:
    """What there is in a home. `place` is the home as a person writes it."""
    found = plan.found
    yield (
        f"{found.system}{found.version and ' '}{found.version} in {place}: "
        f"{summary(counts(found)) or 'nothing'}"
    )
    new = plan.counts()
    if plan.known:
        yield (
            f"  taken before: most of it; new since then: {summary(new)}"
            if new
            else "  all of it was taken before"
        )


def lines_of(report: Report) -> Iterator[str]:
    """The three lists; an empty one is not shown."""
    if report.taken:
        yield "\nTaken:"
    for name, values in report.taken:
        if name in (
            "settings",
            "users",
        ):  # what gives rights, and settings: each on a line of its own
            yield f"  {name}:"
            yield from (f"    {value}" for value in values)
        else:
            yield f"  {name}: {_named(values, '; ' if name in ('jobs', 'conversations') else ', ')}"
    yield from _grouped("Changed", [(each.what, each.why, "") for each in report.changed])
    yield from _grouped("Left out", [(each.what, each.why, each.todo) for each in report.left_out])


def _grouped(title: str, rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """What has the same reason stands together: what, below it why, and below that what to do."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for what, why, todo in rows:
        reasons.setdefault((why, todo), []).append(what)
    if reasons:
        yield f"\n{title}:"
    for (why, todo), whats in reasons.items():
        yield f"  {_named(whats)}"
        yield f"    {why}"
        if todo:
            yield f"    To do: {todo}"


def summary(given: Iterable[tuple[int, str]]) -> str:
    """`14 conversations, 3 jobs, 120 memories`."""
    return ", ".join(in_words(number, name) for number, name in given)


def _named(whats: Sequence[str], between: str = ", ") -> str:
    more = len(whats) - MOST_NAMED
    return between.join(whats[:MOST_NAMED]) + (
        f" and {more} more (--json lists all)" if more > 0 else ""
    )


# ---------------------------------------------------------------------- what each is called


def _places(plan: ImportPlan) -> Iterator[str]:
    """Where conversations go on."""
    channels = [each.place.channel for each in plan.talks]
    for channel in dict.fromkeys(channels):
        number = channels.count(channel)
        if channel == "terminal":
            yield f"{number} to read, search and go on with here"
        elif channel in plan.channels:
            yield f"{number} on {channel}, where {'it goes' if number == 1 else 'they go'} on"
        else:
            why = f"there is no channel for {channel} yet"
            yield f"{number} of {channel}, to read, search and go on with here, since {why}"


def _options(plan: ImportPlan) -> Iterator[str]:
    """What is set for single conversations; of a text only that there is one."""
    for talk in plan.talks:
        if talk.options is not None:
            given = msgspec.to_builtins(talk.options)
            names = [name for name in given if name != "title"]
            about = str(given.get("title") or talk.talk.key)
            yield f"{about} ({', '.join(names)})" if names else about


def _memories(plan: ImportPlan) -> Iterator[str]:
    """How many of whom."""
    owners = [
        "all" if each.scope == "global" else f"{each.scope} {each.owner}" for each in plan.memories
    ]
    for owner in dict.fromkeys(owners):
        yield f"{owners.count(owner)} of {owner}"


def _as(theirs: str, here: str) -> str:
    return theirs if theirs == here else f"{theirs} as {here}"


def _person(new: NewPerson) -> str:
    role = "you, the owner here" if new.here == OWNER_NAME else ", ".join(new.roles)
    ids = ", ".join(f"{channel} {one}" for channel, one in new.person.ids)
    name = new.person.name if new.here == OWNER_NAME else _as(new.person.name, new.here)
    return f"{name} ({role}{ids and ': '}{ids})"


def _setting(path: Sequence[str], value: object) -> Iterator[str]:
    """A key as it will be, on a line of its own; what is an agent's stands together."""
    plain = msgspec.to_builtins(value)
    name = ".".join(path)
    if isinstance(plain, dict) and plain:
        yield f"{name}: {', '.join(f'{key} {_value(each)}' for key, each in plain.items())}"
    elif isinstance(plain, list | tuple):
        yield from (f"{name}: {_value(each)}" for each in plain)
    else:
        yield f"{name}: {_value(plain)}" if plain != {} else f"{name}: as usual"


def _value(value: object) -> str:
    """As one would write it."""
    match value:
        case str():
            return value or "''"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            return ", ".join(f"{key} {_value(each)}" for key, each in value.items())
        case _:
            return msgspec.json.encode(value).decode()
