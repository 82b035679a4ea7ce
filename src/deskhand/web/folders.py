"""Endpoints of the folders in the list of conversations."""

from __future__ import annotations

from itertools import starmap
from typing import Annotated

import msgspec

from ..store.base import FIRST_PAGE, ListPlace
from ..types.marked_texts import mark_text
from ..types.options import FOLDER_CHARS, SessionOptions
from .conversations import to_receipt_view
from .errors import bad_request, not_found
from .routing import Call, Endpoint

PAGE_ROWS = 200


class FolderView(msgspec.Struct, frozen=True):
    """`sessions` is how many conversations are in it that are not archived."""

    name: str
    sessions: int


class FoldersView(msgspec.Struct, frozen=True):
    """`archived` is how many conversations are in the archive."""

    folders: list[FolderView]
    archived: int


class FolderName(msgspec.Struct, frozen=True):
    name: Annotated[str, msgspec.Meta(max_length=FOLDER_CHARS)]


class MovedView(msgspec.Struct, frozen=True):
    """How many conversations were moved, archived ones included."""

    sessions: int


async def list_folders(call: Call) -> FoldersView:
    found = await call.web.store.folders(call.principal)
    return FoldersView(list(starmap(FolderView, found.folders.items())), found.archived)


async def rename_folder(call: Call) -> MovedView:
    name = make_folder_name(call.body.name)
    if not name:
        raise bad_request("`name` is empty: give the folder a name, or delete it.")
    return await _move_all(call, name)


async def delete_folder(call: Call) -> MovedView:
    return await _move_all(call, "")


async def _move_all(call: Call, to: str) -> MovedView:
    """Move what is in the folder of the path. Raises HttpProblem where nothing is in it, or where
    one of them may not be moved."""
    place = ListPlace(folder=call.path("folder"))
    if not place.folder or place.folder == to:
        raise not_found(mark_text("such folder"))
    moved = 0
    behind = FIRST_PAGE
    while rows := await call.web.store.sessions(call.principal, PAGE_ROWS, behind, place):
        for row in rows:
            options = SessionOptions(folder=to)
            receipt = await call.web.door.configure(row.session, call.principal, options)
            to_receipt_view(call, receipt)  # raises for one that they may not move
        moved += len(rows)
        behind = rows[-1].last_at, rows[-1].session
    if not moved:
        raise not_found(mark_text("such folder"))
    return MovedView(moved)


def make_folder_name(text: str) -> str:
    """The name as it is kept: without more than one space in a row."""
    return " ".join(text.split())


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/folders",
        "read",
        list_folders,
        "List the folders of your conversations, and count what is archived",
        returns=FoldersView,
        tag="conversations",
    ),
    Endpoint(
        "PATCH",
        "/api/folders/{folder}",
        "chat",
        rename_folder,
        "Rename a folder",
        body=FolderName,
        returns=MovedView,
        tag="conversations",
    ),
    Endpoint(
        "DELETE",
        "/api/folders/{folder}",
        "chat",
        delete_folder,
        "Delete a folder; its conversations stay",
        returns=MovedView,
        tag="conversations",
    ),
)
