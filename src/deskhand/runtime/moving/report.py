"""What a person reads before anything is taken over, and after it. Pure; no value of a key stands in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ...types.people import OWNER_NAME
from ..jobs.told import when
from .found import Left, counts, in_words
from .plan import NewPerson, Plan
from .tree import shown

MOST_NAMED, MOST_SHOWN = 12, 1000
"""So many are named; of what gives rights, and of settings, nothing is left out in silence."""


def told(plan: Plan, place: str, zone: str = "UTC", *, start_jobs: bool = False) -> Iterator[str]:
    """The report of a dry run. `place` is the home as a person writes it, `zone` where nobody said another."""
    found = plan.found
    yield f"{found.system}{found.version and ' '}{found.version} in {place}: {summary(counts(found)) or 'nothing'}"
    new = plan.counts()
    if plan.known:
        yield f"  taken before: most of it; new since then: {summary(new)}" if new else "  all of it was taken before"
    yield from _line("agents", (_as(name, plan.agents[name]) for name in (each.name for each in plan.new_agents)))
    yield from _line("users", map(_person, plan.new_people), most=MOST_SHOWN)
    yield from _line("conversations", _places(plan), "; ")
    jobs = "jobs" if start_jobs else "jobs, switched off at first"
    yield from _line(jobs, (f"{each.job.name} {when(each.job, zone)}" for each in plan.jobs), "; ")
    yield from _line("skills", (each.name for each in plan.skills))
    if plan.keys:
        yield "  settings:"
    yield from (f"    {shown(line)}" for path, value in plan.keys[:MOST_SHOWN] for line in _setting(path, value))
    yield from _line("keys to .env", sorted(plan.secrets))
    yield from not_taken(plan.left if new or not plan.known else plan.left[len(found.left) :])


def not_taken(left: Sequence[Left]) -> Iterator[str]:
    """What stays behind, by the reason."""
    reasons: dict[str, list[str]] = {}
    for each in left:
        reasons.setdefault(each.why, []).append(each.what)
    if reasons:
        yield "  not taken:"
    for why, whats in reasons.items():
        yield f"    {_named(whats)}: {why}"


def summary(given: Iterable[tuple[int, str]]) -> str:
    """`14 conversations, 3 jobs, 120 memories`."""
    return ", ".join(in_words(number, name) for number, name in given)


def _places(plan: Plan) -> Iterator[str]:
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


def _line(name: str, values: Iterable[str], between: str = ", ", most: int = MOST_NAMED) -> Iterator[str]:
    listed = [shown(value) for value in values]
    if listed:
        yield f"  {name}: {_named(listed, between, most)}"


def _named(whats: Sequence[str], between: str = ", ", most: int = MOST_NAMED) -> str:
    more = len(whats) - most
    return between.join(whats[:most]) + (f" and {more} more" if more > 0 else "")


def _as(theirs: str, here: str) -> str:
    return theirs if theirs == here else f"{theirs} as {here}"


def _person(new: NewPerson) -> str:
    role = "you, the owner here" if new.here == OWNER_NAME else ", ".join(new.roles)
    ids = ", ".join(f"{channel} {one}" for channel, one in new.person.ids)
    return (
        f"{_as(new.person.name, new.here) if new.here != OWNER_NAME else new.person.name} ({role}{ids and ': '}{ids})"
    )


def _setting(path: Sequence[str], value: object) -> Iterator[str]:
    """A key as it will be, on a line of its own; what is an agent's stands together."""
    plain, name = msgspec.to_builtins(value), ".".join(path)
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
