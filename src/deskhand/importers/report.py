"""What a person reads of an import, before it and after it: what is taken, what is changed, what is
left out.

Pure; no value of a key stands in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ..jobs.text import describe_timing
from ..types.people import OWNER_NAME
from .model import ChangedName, LeftOut, count_items, format_count
from .notes import clean_line
from .plan import ImportPlan, NewPerson

MAX_NAMED = 12
"""So many are named in a line; `--json` lists all."""
WHY_OFF = (
    "disabled, so that nothing is done twice while the other system runs; to enable one: "
    "deskhand jobs enable {}"
)


class ImportReport(msgspec.Struct, frozen=True):
    """The three lists. `taken` are (kind, what each of them is called)."""

    taken: tuple[tuple[str, tuple[str, ...]], ...]
    changed: tuple[ChangedName, ...]
    left_out: tuple[LeftOut, ...]


def make_report(
    plan: ImportPlan,
    zone: str = "UTC",
    *,
    start_jobs: bool = False,
    more_left: Sequence[LeftOut] = (),
) -> ImportReport:
    """The report of a plan. `zone` is for jobs where nobody said another, `more_left` what could
    not be taken after all. Where nothing is new, what was said of the home before is not said
    again."""
    again = bool(plan.taken_before) and not plan.counts()
    left = plan.left_out[len(plan.found.left_out) :] if again else plan.left_out
    changed = plan.changed[len(plan.found.changed) :] if again else plan.changed
    if not start_jobs:
        off = [each.job.name for each in plan.jobs if each.job.enabled]
        changed = (*changed, *(ChangedName(f"job {name}", WHY_OFF.format(off[0])) for name in off))
    taken = [(name, tuple(map(clean_line, values))) for name, values in _taken_items(plan, zone)]
    return ImportReport(
        tuple((name, values) for name, values in taken if values), changed, (*left, *more_left)
    )


def _taken_items(plan: ImportPlan, zone: str) -> Iterator[tuple[str, Iterable[str]]]:
    yield (
        "agents",
        (_describe_rename(each.name, plan.agents[each.name]) for each in plan.new_agents),
    )
    yield "users", map(_describe_person, plan.new_people)
    yield "conversations", _describe_places(plan)
    yield "options of conversations", _options(plan)
    yield "jobs", (f"{each.job.name} {describe_timing(each.job, zone)}" for each in plan.jobs)
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
    yield "settings", (line for path, value in plan.keys for line in _render_setting(path, value))
    yield "keys to .env", sorted(plan.secrets)


# ---------------------------------------------------------------------- as lines


def render_head(plan: ImportPlan, place: str) -> Iterator[str]:
    """What there is in a home. `place` is the home as a person writes it."""
    found = plan.found
    yield (
        f"{found.system}{found.version and ' '}{found.version} in {place}: "
        f"{render_counts(count_items(found)) or 'nothing'}"
    )
    new = plan.counts()
    if plan.taken_before:
        yield (
            f"  most of it was imported before; new since then: {render_counts(new)}"
            if new
            else "  all of it was imported before"
        )


def render_report(report: ImportReport) -> Iterator[str]:
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
            yield (
                f"  {name}: "
                f"{_join_names(values, '; ' if name in ('jobs', 'conversations') else ', ')}"
            )
    yield from _render_groups("Changed", [(each.what, each.why, "") for each in report.changed])
    yield from _render_groups(
        "Left out", [(each.what, each.why, each.todo) for each in report.left_out]
    )


def _render_groups(title: str, rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """What has the same reason stands together: what, below it why, and below that what to do."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for what, why, todo in rows:
        reasons.setdefault((why, todo), []).append(what)
    if reasons:
        yield f"\n{title}:"
    for (why, todo), whats in reasons.items():
        yield f"  {_join_names(whats)}"
        yield f"    {why}"
        if todo:
            yield f"    To do: {todo}"


def render_counts(given: Iterable[tuple[int, str]]) -> str:
    """`14 conversations, 3 jobs, 120 memories`."""
    return ", ".join(format_count(number, name) for number, name in given)


def _join_names(whats: Sequence[str], between: str = ", ") -> str:
    more = len(whats) - MAX_NAMED
    return between.join(whats[:MAX_NAMED]) + (
        f" and {more} more (--json lists all)" if more > 0 else ""
    )


# ---------------------------------------------------------------------- what each is called


def _describe_places(plan: ImportPlan) -> Iterator[str]:
    """Where conversations go on."""
    channels = [each.place.channel for each in plan.conversations]
    for channel in dict.fromkeys(channels):
        number = channels.count(channel)
        if channel == "terminal":
            yield f"{number} to read, search and continue here"
        elif channel in plan.channels:
            yield (
                f"{number} on {channel}, where {'it continues' if number == 1 else 'they continue'}"
            )
        else:
            why = f"no channel {channel} is set up"
            yield f"{number} of {channel}, to read, search and continue here, because {why}"


def _options(plan: ImportPlan) -> Iterator[str]:
    """What is set for single conversations; of a text only that there is one."""
    for talk in plan.conversations:
        if talk.options is not None:
            given = msgspec.to_builtins(talk.options)
            names = [name for name in given if name != "title"]
            about = str(given.get("title") or talk.conversation.key)
            yield f"{about} ({', '.join(names)})" if names else about


def _memories(plan: ImportPlan) -> Iterator[str]:
    """How many of whom."""
    owners = [
        "all" if each.scope == "global" else f"{each.scope} {each.owner}" for each in plan.memories
    ]
    for owner in dict.fromkeys(owners):
        yield f"{owners.count(owner)} of {owner}"


def _describe_rename(theirs: str, here: str) -> str:
    return theirs if theirs == here else f"{theirs} as {here}"


def _describe_person(new: NewPerson) -> str:
    role = "you, the owner here" if new.here == OWNER_NAME else ", ".join(new.roles)
    ids = ", ".join(f"{channel} {one}" for channel, one in new.person.ids)
    name = (
        new.person.name if new.here == OWNER_NAME else _describe_rename(new.person.name, new.here)
    )
    return f"{name} ({role}{ids and ': '}{ids})"


def _render_setting(path: Sequence[str], value: object) -> Iterator[str]:
    """A key as it will be, on a line of its own; what is an agent's stands together."""
    plain = msgspec.to_builtins(value)
    name = ".".join(path)
    if isinstance(plain, dict) and plain:
        yield f"{name}: {', '.join(f'{key} {_render_value(each)}' for key, each in plain.items())}"
    elif isinstance(plain, list | tuple):
        yield from (f"{name}: {_render_value(each)}" for each in plain)
    else:
        yield f"{name}: {_render_value(plain)}" if plain != {} else f"{name}: defaults"


def _render_value(value: object) -> str:
    """As one would write it."""
    match value:
        case str():
            return value or "''"
        case list() | tuple():
            return f"[{', '.join(map(_render_value, value))}]"
        case dict():
            return ", ".join(f"{key} {_render_value(each)}" for key, each in value.items())
        case _:
            return msgspec.json.encode(value).decode()
