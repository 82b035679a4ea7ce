"""Writes conversations of another system into the log, as if they had been held here; each line
once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import anyio
from msgspec.structs import replace

from ..policy.roles import Roles
from ..secrets.inbound_redaction import redact_event, redact_message
from ..store.base import Store
from ..types.commit import Change, Commit
from ..types.errors import StaleSession
from ..types.events import AnyEvent, MessageReceived, OptionsSet, Recorded
from ..types.identity import Principal, principal_label
from ..types.labels import Label
from ..types.options import SessionOptions
from ..types.people import GUEST, OWNER_NAME
from ..users.users import LocalPeople
from .jsonl import Commits, JsonlReader
from .ledger import Moved, compute_mark
from .model import ImportedHome
from .plan import NewTalk

COMMIT_BATCH = 200
"""So many commits share one write to the disk."""
Speakers = Mapping[str, tuple[Principal, Label]]


def resolve_speakers(
    found: ImportedHome, people: Mapping[str, str], here: LocalPeople, custom: Roles
) -> Speakers:
    """Who spoke, by the names in the lines, and under which label. Where others could write the
    home too, nobody can say whose words these are."""
    users = here.users_by_name()
    by_id = {
        (one.channel, one.external_id): user for user in users.values() for one in user.identities
    }
    voices: dict[str, tuple[Principal, Label]] = {}
    for name in {line.by for talk in found.conversations for line in talk.lines if line.by}:
        channel, colon, one = name.partition(":")
        user = users.get(people.get(name, "")) or (by_id.get((channel, one)) if colon else None)
        principal = Principal(user.name, user.roles) if user else Principal(name, (GUEST,))
        label = (
            principal_label(principal)
            if found.trusted
            else Label("tool_local", source=f"{found.system}: {name}")
        )
        voices[name] = (principal, label)
    return voices


def _default_speaker(found: ImportedHome, job: str) -> Principal:
    """Who spoke where nothing says so."""
    if job:
        return Principal(f"job:{job}", (), "clock", OWNER_NAME)
    if found.system in (
        "agent_computer",
        "openagent-core",
    ):  # one person has each of them to themselves
        return Principal(OWNER_NAME, ("owner",))
    return Principal(f"{found.system}:unknown", (GUEST,))


async def write_conversation(
    store: Store,
    found: ImportedHome,
    new: NewTalk,
    voices: Speakers,
    seen: tuple[float, Callable[[str], str]],
) -> int:
    """Write what is new of a conversation. `seen` is when, and what takes secrets out. Returns the
    lines that were left out since nobody knows their role. Raises StaleSession where somebody else
    writes there at that moment."""
    (now, redact), talk = seen, new.conversation
    source = f"{found.system}, {talk.key}"
    reader = JsonlReader(
        _default_speaker(found, talk.job), new.place, source, talk.at or now, voices
    )
    read = reader.make_commits(talk.lines[new.first :])
    if new.options is not None and read:
        held = OptionsSet(
            0, _default_speaker(found, talk.job), _options_without_secrets(new.options, redact)
        )
        read = [(read[0][0], (held,)), *read]
    commits = [
        (at, tuple(_without_secrets(event, redact) for event in events)) for at, events in read
    ]
    there = await store.events(new.session)
    done = 0
    if not new.first and there:
        done = _count_written(there, commits)
    n = len(there) + 1
    begun = Moved(
        new.session, new.first, compute_mark(talk.lines[: new.first]) if new.first else ""
    )
    ended = Moved(new.session, len(talk.lines), compute_mark(talk.lines))
    rest = commits[done:]
    for begin in range(0, len(rest), COMMIT_BATCH):
        whole = [
            Commit(new.session, 0, at, events, close=True)
            for at, events in rest[begin : begin + COMMIT_BATCH]
        ]
        # whose it is stands there from the first row on, so that a run that is cut off is known
        # again
        if not begin:
            whole[0] = replace(whole[0], changes=(_progress_change(found, new, begun, now),))
        if begin + COMMIT_BATCH >= len(rest):
            whole[-1] = replace(
                whole[-1], changes=(*whole[-1].changes, _progress_change(found, new, ended, now))
            )
        n = await _write_commits(store, n, whole)
    return reader.left_out


def _without_secrets(event: AnyEvent, redact: Callable[[str], str]) -> AnyEvent:
    """As everything enters the log."""
    if isinstance(event, MessageReceived):
        return replace(event, message=redact_message(event.message, redact))
    return redact_event(event, redact)


def _options_without_secrets(
    options: SessionOptions, redact: Callable[[str], str]
) -> SessionOptions:
    return replace(
        options,
        title=redact(options.title) if options.title else None,
        system_prompt=redact(options.system_prompt) if options.system_prompt else None,
    )


def _count_written(there: Sequence[Recorded], commits: Commits) -> int:
    """How many of the commits a run that was cut off has written. Raises StaleSession where it was
    not that."""
    flat: list[AnyEvent] = []
    for number, (_, events) in enumerate(commits, 1):
        flat += events
        if len(flat) == len(there):
            if flat == [each.event for each in there]:
                return number
            break
    raise StaleSession("something else was said there meanwhile")


def _progress_change(found: ImportedHome, new: NewTalk, moved: Moved, now: float) -> Change:
    return Change("moved_so_far", (found.system, new.key, moved.here, moved.lines, moved.mark, now))


async def _write_commits(store: Store, n: int, commits: Sequence[Commit]) -> int:
    """Write these in order from number `n` on, together. Returns the number of the next event."""
    with anyio.CancelScope(shield=True):
        try:
            async with anyio.create_task_group() as group:
                for commit in commits:
                    group.start_soon(store.commit, replace(commit, n=n))
                    n += len(commit.events)
        except* StaleSession as stale:
            raise StaleSession(str(stale.exceptions[0])) from None
    return n
