"""Typed queries on the tables of the tools: labels of files, and approvals."""

from __future__ import annotations

import msgspec

from ..store.base import Store
from ..types.commit import Change
from ..types.labels import Label

_encode = msgspec.json.encode
_decode_label = msgspec.json.Decoder(Label).decode


class FileMarks(msgspec.Struct, frozen=True):
    """What is known of files, by real path: their `labels` as JSON, and the SHA-256 of those that a
    person `approved`."""

    labels: dict[str, bytes]
    approved: dict[str, bytes]


class Approval(msgspec.Struct, frozen=True):
    """What a person approved at a real path: `digest` is the SHA-256 of what was there at `at`
    (seconds since the epoch)."""

    path: str
    digest: bytes
    by: str
    at: float


# Labels of files, blobs and effects


async def list_file_labels(store: Store) -> dict[str, Label]:
    """The labels of all files that have one, by real path."""
    rows = await store.query("file_labels", ())
    return {path: _decode_label(label) for path, label in rows}


async def find_label(store: Store, name: str) -> Label | None:
    """The label of a real path, of `blob:DIGEST` or of `effect:KEY`. None when it has none."""
    for (label,) in await store.query("file_label_get", (name,)):
        return _decode_label(label)
    return None


def set_label(name: str, label: Label, session: str, at: float) -> Change:
    """Give this name a label. `session` and `at` say in which conversation that was, and when."""
    return Change("file_label_set", (name, _encode(label), session, at))


# Approved files


def read_file_marks(store: Store) -> FileMarks:
    """The labels of all files and all approvals. Asked before every call of a model, so the labels
    are not decoded here."""
    labels: dict[str, bytes] = {}
    approved: dict[str, bytes] = {}
    for path, label, digest in store.query_sync("held_back"):
        if label is not None:
            labels[path] = label
        if digest is not None:
            approved[path] = digest
    return FileMarks(labels, approved)


async def list_approvals(store: Store) -> list[Approval]:
    """All approvals, by path."""
    return [Approval(*row) for row in await store.query("approved_files", ())]


async def approved_digests(store: Store) -> dict[str, bytes]:
    """The SHA-256 of what was approved, by real path."""
    return {each.path: each.digest for each in await list_approvals(store)}


def drop_approval(path: str) -> Change:
    """Take back the approval of this real path."""
    return Change("approved_file_drop", (path,))


def approve(path: str, digest: bytes, by: str, at: float) -> Change:
    """A person approves the content of this real path, whose SHA-256 this is."""
    return Change("approved_file_set", (path, digest, by, at))


def drop_label(path: str) -> Change:
    """Take away the label of this real path."""
    return Change("file_label_drop", (path,))
