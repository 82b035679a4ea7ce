"""Writes conversations of another system into the log as if they had been held here. Each line is
written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import anyio
from msgspec.structs import replace

from ..policy.roles import Roles
from ..secrets.inbound_redaction import redact_event, redact_message
from ..store.base import Store
from ..types.commit import Commit
from ..types.errors import StaleSession
from ..types.events import AnyEvent, MessageReceived, OptionsSet, Recorded
from ..types.identity import Principal, principal_label
from ..types.labels import Label
from ..types.options import SessionOptions
from ..types.people import GUEST, OWNER_NAME
from ..users.users import LocalPeople
from .jsonl import Commits, JsonlReader
from .ledger import Moved, compute_mark, set_conversation_progress
from .model import ImportedConversation, ImportedHome
from .plan import NewTalk

COMMIT_BATCH = 200
"""So many commits share one write to disk."""
Speakers = Mapping[str, tuple[Principal, Label]]


def resolve_speakers(
    found: ImportedHome, people: Mapping[str, str], here: LocalPeople, custom: Roles
) -> Speakers:
    """Who spoke, and the label of their words, by the names in the lines. When others could write
    the home too, the label says only which system the words are from."""
    users = here.users_by_name()
    by_id = {
        (one.channel, one.external_id): user for user in users.values() for one in user.identities
    }
    speakers: dict[str, tuple[Principal, Label]] = {}
    for name in {line.by for talk in found.conversations for line in talk.lines if line.by}:
        channel, colon, one = name.partition(":")
        user = users.get(people.get(name, "")) or (by_id.get((channel, one)) if colon else None)
        principal = Principal(user.name, user.roles) if user else Principal(name, (GUEST,))
        label = (
            principal_label(principal)
            if found.trusted
            else Label("tool_local", source=f"{found.system}: {name}")
        )
        speakers[name] = (principal, label)
    return speakers


def _default_speaker(found: ImportedHome, talk: ImportedConversation) -> Principal:
    """Who spoke when a line does not say so."""
    if talk.job:
        return Principal(f"job:{talk.job}", (), "clock", OWNER_NAME)
    one_user = talk.own or found.system in ("agent_computer", "openagent-core")
    if one_user and found.trusted:
        return Principal(OWNER_NAME, ("owner",))
    return Principal(f"{found.system}:unknown", (GUEST,))


async def write_conversation(
    store: Store,
    found: ImportedHome,
    new: NewTalk,
    speakers: Speakers,
    *,
    now: float,
    redact: Callable[[str], str],
) -> int:
    """Write what is new of a conversation. `now` is in seconds since the epoch, `redact` takes
    secrets out of texts.

    Returns how many lines were left out because their role is unknown. Raises StaleSession when
    somebody else writes to the session at that moment.
    """
    talk = new.conversation
    speaker = _default_speaker(found, talk)
    source = f"{found.system}, {talk.key}"
    reader = JsonlReader(speaker, new.place, source, talk.at or now, speakers)
    read = reader.make_commits(talk.lines[new.first :])
    if new.options is not None and read:
        options = OptionsSet(0, speaker, _options_without_secrets(new.options, redact))
        read = [(read[0][0], (options,)), *read]
    commits = [
        (at, tuple(_without_secrets(event, redact) for event in events)) for at, events in read
    ]

    there = await store.events(new.session)
    done = _count_written(there, commits) if not new.first and there else 0
    await _write_rest(store, found.system, new, commits[done:], after=len(there), now=now)
    return reader.left_out


async def _write_rest(
    store: Store, system: str, new: NewTalk, rest: Commits, *, after: int, now: float
) -> None:
    """Write these commits after event `after`. The first one notes how far earlier imports came, so
    that an import that is cut off is recognised. The last one notes that all lines are there."""
    lines = new.conversation.lines
    begun_mark = compute_mark(lines[: new.first]) if new.first else ""
    begun = Moved(new.session, new.first, begun_mark)
    ended = Moved(new.session, len(lines), compute_mark(lines))
    n = after + 1
    for begin in range(0, len(rest), COMMIT_BATCH):
        batch = [
            Commit(new.session, 0, at, events, close=True)
            for at, events in rest[begin : begin + COMMIT_BATCH]
        ]
        if begin == 0:
            progress = set_conversation_progress(system, new.key, begun, now)
            batch[0] = replace(batch[0], changes=(progress,))
        if begin + COMMIT_BATCH >= len(rest):
            progress = set_conversation_progress(system, new.key, ended, now)
            batch[-1] = replace(batch[-1], changes=(*batch[-1].changes, progress))
        n = await _write_commits(store, n, batch)


def _without_secrets(event: AnyEvent, redact: Callable[[str], str]) -> AnyEvent:
    """The event without secrets, as everything enters the log."""
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
    """How many of the commits an import that was cut off has written. Raises StaleSession when the
    session holds anything else."""
    flat: list[AnyEvent] = []
    for number, (_, events) in enumerate(commits, 1):
        flat += events
        if len(flat) == len(there):
            if flat == [each.event for each in there]:
                return number
            break
    raise StaleSession("something else was said there meanwhile")


async def _write_commits(store: Store, n: int, commits: Sequence[Commit]) -> int:
    """Write these together, in order, from event number `n` on. Returns the number of the next
    event."""
    with anyio.CancelScope(shield=True):
        try:
            async with anyio.create_task_group() as group:
                for commit in commits:
                    group.start_soon(store.commit, replace(commit, n=n))
                    n += len(commit.events)
        except* StaleSession as stale:
            raise StaleSession(str(stale.exceptions[0])) from None
    return n
