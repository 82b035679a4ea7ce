"""Lists what agents changed in folders of the owner, until a person accepts it or puts it back."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

import anyio.to_thread
from msgspec.structs import replace

from ..store.base import Store
from ..store.blobs import Blobs
from ..tools import review, tree
from ..tools.journal import UndoItem
from ..tools.names import display_name
from ..tools.path_states import encode_state, parse_digest
from ..tools.review import WrittenFile
from ..tools.undo import UndoneEffect
from ..types.clock import Clock
from ..types.commit import Change
from ..types.diffs import CallDiff, FileDiff
from ..types.errors import Refused
from ..types.events import Turn
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..users.owner_alerts import Alerts
from .diffs import NOT_KEPT_TEXT, describe_special_file, diff_bytes
from .undo_journal import UndoJournal, format_names

MAX_DIFFS = 200
"""So many diffs are made at once; the rest is named."""


class Unreviewed(WrittenFile, frozen=True):
    """A path that an agent changed, and its state `now`: None when nothing is there, '?' when it
    cannot be read."""

    now: str | None = None

    @property
    def path(self) -> str:
        return os.fsdecode(self.place)

    @property
    def relative_path(self) -> str:
        """Its path in the folder."""
        return self.path[len(self.folder) + 1 :]

    @property
    def display_path(self) -> str:
        """Its whole path, for people."""
        text = self.place.decode(errors="backslashreplace")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    @property
    def change_kind(self) -> Literal["made", "changed", "removed"]:
        return "made" if self.before is None else "removed" if self.now is None else "changed"


class ReviewReader:
    """Reads what is to be reviewed from the store, and what is there now from the disk."""

    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    async def list_unreviewed(self, folder: str = "") -> list[Unreviewed]:
        """What differs from what was last reviewed at this path and beneath it, or everywhere."""
        found = await review.list_written(self._store, folder)
        if folder:
            place = os.fsencode(folder)
            inside = os.fsencode(folder.rstrip("/")) + b"/"
            found = [each for each in found if each.place == place or each.place.startswith(inside)]
        looked = await anyio.to_thread.run_sync(_with_current_states, found)
        return [each for each in looked if each.now != each.before]

    async def accept(self, seen: Sequence[Unreviewed]) -> int:
        """A person has seen these as they are. What an agent has changed since stays to be
        reviewed. Returns how many were accepted."""
        looked = await anyio.to_thread.run_sync(_with_current_states, seen)
        same = [now for now, then in zip(looked, seen, strict=True) if now.now == then.now]
        done = await self._store.change(
            [review.accept_written(each.place, each.after) for each in same]
        )
        return sum(done)

    async def diff(self, seen: Sequence[Unreviewed]) -> CallDiff:
        """What was done to each, the first of them with their text."""
        return await anyio.to_thread.run_sync(self._make_diffs, seen)

    def _make_diffs(self, seen: Sequence[Unreviewed]) -> CallDiff:
        return CallDiff(
            True,
            tuple(self._diff_one(each) for each in seen[:MAX_DIFFS]),
            max(len(seen) - MAX_DIFFS, 0),
        )

    def _diff_one(self, one: Unreviewed) -> FileDiff:
        kinds = {state[0] for state in (one.before, one.now) if state is not None}
        if "h" in kinds:
            return FileDiff(
                one.display_path,
                one.change_kind,
                why=mark_text("Something in this folder was changed. It is not kept."),
            )
        if not kinds & set("fu"):
            return FileDiff(
                one.display_path, one.change_kind, why=describe_special_file(one.before, one.now)
            )
        try:
            before, after = self._read_before(one), _read_bytes(one)
        except OSError:
            return FileDiff(
                one.display_path,
                one.change_kind,
                why=f"{NOT_KEPT_TEXT} {_describe_size(one)}".strip(),
            )
        diff, why = diff_bytes(one.display_path, before, after)
        modes = [
            state[1:5] for state in (one.before, one.now) if state is not None and state[0] in "fu"
        ]
        if len({*modes}) > 1:
            why = mark_text("Its mode was {before} and is {after}.").format(
                before=modes[0], after=modes[1]
            )
        elif len(modes) == 1 and one.now is not None and int(modes[0], 8) & 0o111:
            why = mark_text("It may be executed.")
        return FileDiff(one.display_path, one.change_kind, diff, why)

    def _read_before(self, one: Unreviewed) -> bytes | None:
        """Raises OSError where it was not kept."""
        if one.before is None:
            return None
        if one.before[0] not in "fu":
            return b""
        if one.blob is None:
            raise FileNotFoundError(one.path)
        data = self._blobs.path(one.blob).read_bytes()
        if sha256(data).hexdigest() != parse_digest(one.before):
            raise FileNotFoundError(one.path)
        return data


def _with_current_states(files: Sequence[WrittenFile]) -> list[Unreviewed]:
    """These files as they are now. A folder that is never read counts as the agent left it. It
    blocks."""
    found = []
    for each in files:
        one = Unreviewed(**{name: getattr(each, name) for name in WrittenFile.__struct_fields__})
        after = one.after or ""
        if after[:1] == "h" or (after[:1] == "d" and " " in after):
            now = one.after if os.path.isdir(one.path) else None  # noqa: PTH112 -- any bytes
        else:
            now = _read_state(one)
        found.append(replace(one, now=now))
    return found


def _read_state(one: Unreviewed) -> str | None:
    """The state of the path, with no link followed in its folder; '?' where it cannot be looked
    at."""
    try:
        root = os.open(one.folder, tree.FOLDER_FLAGS)
    except FileNotFoundError:
        return None
    except OSError:
        return "?"
    try:
        status = tree.stat_path(root, one.relative_path)
        if status is None:
            return None
        if stat.S_ISLNK(status.st_mode):
            with tree.open_parent(root, one.relative_path) as (above, name):
                return encode_state(status, os.fsencode(os.readlink(name, dir_fd=above)).hex())
        kept = any(parse_digest(state) for state in (one.before, one.after))
        return encode_state(
            status,
            _hash_file(root, one.relative_path) if kept and stat.S_ISREG(status.st_mode) else "",
        )
    except OSError:
        return "?"
    finally:
        os.close(root)


def _hash_file(root: int, path: str) -> str:
    with (
        tree.open_parent(root, path) as (above, name),
        os.fdopen(tree.open_file(above, name), "rb") as file,
    ):
        whole = sha256()
        while block := file.read(tree.BLOCK_BYTES):
            whole.update(block)
    return whole.hexdigest()


def _read_bytes(one: Unreviewed) -> bytes | None:
    """What it holds now. Raises OSError."""
    if one.now is None:
        return None
    if one.now[0] not in "fu":
        return b""
    root = os.open(one.folder, tree.FOLDER_FLAGS)
    try:
        with (
            tree.open_parent(root, one.relative_path) as (above, name),
            os.fdopen(tree.open_file(above, name), "rb") as file,
        ):
            return file.read()
    finally:
        os.close(root)


def _describe_size(one: Unreviewed) -> str:
    try:
        return f"There are {os.lstat(one.path).st_size:,} bytes now." if one.now is not None else ""
    except OSError:
        return ""


async def discard_changes(
    effects: UndoJournal, who: Principal, seen: Sequence[Unreviewed]
) -> list[str]:
    """Put back what was there before, where it still is as the person has seen it. Returns a line
    for each folder."""
    said = list[str]()
    of = dict[tuple[str, str], list[Unreviewed]]()
    for each in seen:
        of.setdefault((each.agent, each.folder), []).append(each)
    for (agent, folder), group in of.items():
        kept = [
            each for each in group if "h" not in {(each.before or " ")[0], (each.now or " ")[0]}
        ]
        items = [
            UndoItem(os.fsencode(each.relative_path), each.before, each.now, each.blob)
            for each in kept
        ]
        try:
            taken = await effects.restore(who, agent, folder, items)
        except Refused as error:
            said.append(f"Not put back: {error}.")
            continue
        lost = [each.relative_path for each in group if each not in kept]
        said.append(_describe_outcome(folder, taken, lost))
    return said


def _describe_outcome(folder: str, taken: UndoneEffect, lost: Sequence[str]) -> str:
    changed = [each.place for each in taken.left if each.why == "changed"]
    if changed:
        return (
            f"Nothing is put back in {folder}: changed since you looked: {format_names(changed)}."
        )
    said = [f"Put back in {folder}: {len(taken.back)}."]
    missing = [each.place for each in taken.left] + [display_name(each) for each in lost]
    if missing:
        said.append(f"Not put back, as it was not kept: {format_names(missing)}.")
    return " ".join(said)


class ReviewNotice:
    """Implements `agent.protocols.ClosingNotes`: says at the end of a turn which files there are to
    review. `untold` are the sessions that have changed files and not said so."""

    def __init__(self, store: Store, untold: set[str], alerts: Alerts, clock: Clock) -> None:
        self._store = store
        self._untold = untold
        self._alerts = alerts
        self._clock = clock
        self._recalled = False

    async def closing_note(self, session: str, turn: Turn) -> tuple[str, tuple[Change, ...]]:
        """What to add to the answer ('' for nothing), and the rows that mark it as said. When no
        owner reads the answer, the owners are told in a message of their own."""
        if not self._recalled:  # once: those that an earlier process left
            self._untold.update(await review.sessions_with_unreported_files(self._store))
            self._recalled = True
        if session not in self._untold:
            return "", ()
        found = await review.unreported_folders(self._store, session)
        changes = [review.mark_reported(session)]
        if not found:
            self._untold.discard(session)
            return "", tuple(changes)
        text = "\n".join(describe_unreviewed(each.folder, each.count) for each in found)
        if turn.principal.kind != "person" or "owner" not in turn.principal.roles:
            changes += await self._alerts.alert_owners(
                f"written:{session}:{self._clock.now()}", text
            )
        return text, tuple(changes)


def describe_unreviewed(folder: str, count: int) -> str:
    """A line on what there is to review in a folder."""
    command = f"deskhand written {shlex.quote(folder)}"
    if count == 1:
        one = mark_text(
            "1 file in {folder} was changed by an agent. Review it before you run anything there: "
            "`{command}`"
        )
        return one.format(folder=folder, command=command)
    return mark_text(
        "{files_number} files in {folder} were changed by an agent. Review them before you run "
        "anything there: `{command}`"
    ).format(files_number=count, folder=folder, command=command)
