"""Typed queries on the files of the owner that agents changed and that are to be reviewed."""

from __future__ import annotations

import os

import msgspec

from ..store.base import Store
from ..types.commit import Change


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A path in a folder of the owner that an agent changed. `before` is its state at the last
    review, `after` what the agent left there. `outside`: words from outside may be in it."""

    place: bytes
    folder: str
    before: str | None
    after: str | None
    blob: str | None
    agent: str
    session: str
    at: float
    outside: bool


class UnreviewedFolder(msgspec.Struct, frozen=True):
    """A folder with so many files to review."""

    folder: str
    count: int


def add_written(file: WrittenFile) -> tuple[Change, ...]:
    """Have this path reviewed. What it was at the last review is kept. Nothing is to be reviewed
    when it is again as it was then."""
    row = (
        file.place,
        file.folder,
        file.before,
        file.after,
        file.blob,
        file.agent,
        file.session,
        file.at,
        int(file.outside),
    )
    return Change("written_add", row), Change("written_same", (file.place,))


async def list_written(store: Store, path: str) -> list[WrittenFile]:
    """What is to be reviewed of the paths that begin with `path`, by path."""
    rows = await store.query("written_list", (os.fsencode(path),))
    return [
        WrittenFile(
            place=place,
            folder=folder,
            before=before,
            after=after,
            blob=blob,
            agent=agent,
            session=session,
            at=at,
            outside=bool(outside),
        )
        for place, folder, before, after, blob, agent, session, at, outside in rows
    ]


def accept_written(place: bytes, after: str | None) -> Change:
    """A person has reviewed this path. Changes nothing when an agent has written there since."""
    return Change("written_seen", (place, after))


async def sessions_with_unreported_files(store: Store) -> list[str]:
    """The sessions that changed files to review and have not told anybody yet."""
    return [session for (session,) in await store.query("written_sessions", ())]


async def unreported_folders(store: Store, session: str) -> list[UnreviewedFolder]:
    """The folders in which this session changed files that it has not reported, with the number of
    all files to review there."""
    return [UnreviewedFolder(*row) for row in await store.query("written_folders", (session,))]


def mark_reported(session: str) -> Change:
    """This session has told a person what there is to review."""
    return Change("written_told", (session,))
