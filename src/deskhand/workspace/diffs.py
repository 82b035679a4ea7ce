"""Makes diffs of changes: of past ones from the undo journal, and of calls that wait for approval
from the files as they are.

Nothing is stored for that. A person sees only what the labels of the files allow, whoever made the
change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import anyio.to_thread
import msgspec

from ..policy.information_flow import may_see
from ..store.base import Store
from ..store.blobs import DIGEST_PREFIX
from ..tools import journal
from ..tools.base import ToolScope
from ..tools.diffs import MAX_TEXT_BYTES, decode_text, unified_diff
from ..tools.file_snapshots import FileSnapshots
from ..tools.files import make_rewrite, plan_rewrite
from ..tools.journal import KV_FOLDER, FileVersion, JournalEntry, UndoItem
from ..tools.label_marks import load_scope_marks
from ..tools.names import describe_lookalikes
from ..tools.path_states import parse_digest
from ..tools.queries import find_label
from ..types.diffs import CallDiff, FileDiff
from ..types.errors import ConfigError, Refused, ToolError
from ..types.events import CallClosed, ModelReplied, Recorded, ToolFinished
from ..types.identity import Principal, list_reader_names
from ..types.labels import LOCAL, Label, join_labels
from ..types.marked_texts import mark_text
from ..types.messages import ToolCall

MAX_FILES = 20
MAX_LINES = 400
MAX_CHARS = 32_000
MAX_TOTAL_CHARS = 120_000
"""How many files are shown of one change, how many lines and characters of each, and of all
together."""
MAX_SIBLINGS = 5_000
"""So many names in the same folder are compared, to warn of a name that looks like another one."""
NOT_KEPT_TEXT = mark_text("What stood there is not kept any more.")
NOT_ALLOWED_TEXT = mark_text("You may not see what stands in it.")
TOO_MUCH_TEXT = mark_text("Too much is changed to show all of it.")
UNCHANGED_TEXT = mark_text("Its text stayed the same.")

_decode_label = msgspec.json.Decoder(Label).decode


class Diffs:
    """Makes the diffs. `reach` opens the tool scope of an agent; it raises ConfigError and
    ToolError when that is gone."""

    def __init__(self, store: Store, reach: Callable[[str], Awaitable[ToolScope]]) -> None:
        self._store = store
        self._reach = reach

    async def diff_change(self, who: Principal, entry: JournalEntry) -> CallDiff:
        """The diff of an entry of the journal. The caller has checked that `who` may know of it."""
        if not await self.may_see_effect(who, entry):
            return CallDiff(True)
        items = await journal.items_of_entry(self._store, entry.n, MAX_FILES)
        more = max(entry.count - len(items), 0)
        if entry.folder == KV_FOLDER:
            return CallDiff(True, tuple(_diff_value(who, each) for each in items), more)
        try:
            reach = await self._reach(entry.agent)
        except (ConfigError, ToolError):
            named = [each for each in items if each.display_name == entry.what]
            return CallDiff(
                True,
                tuple(
                    FileDiff(each.display_name, change_kind(each), why=NOT_KEPT_TEXT)
                    for each in named
                ),
                more,
            )
        seen = await self._visible_places(who, reach, entry.folder, items)
        items = [each for each in items if _is_visible(each, entry, seen)]
        return CallDiff(
            True,
            tuple(await anyio.to_thread.run_sync(_diff_files, reach, entry, items, seen)),
            more,
        )

    async def may_see_effect(self, who: Principal, entry: JournalEntry) -> bool:
        """Whether this person may see what, and how much, a call has changed: that may say what it
        had read."""
        label = await find_label(self._store, f"effect:{entry.key}")
        return label is None or may_see(label, list_reader_names(who))

    async def visible_items(
        self, who: Principal, entry: JournalEntry, items: Sequence[UndoItem]
    ) -> list[UndoItem]:
        """The items of an entry that this person may see: a name is text too."""
        if not await self.may_see_effect(who, entry):
            return []
        if entry.folder == KV_FOLDER:
            return list(items)
        try:
            reach = await self._reach(entry.agent)
        except (ConfigError, ToolError):
            return [each for each in items if each.display_name == entry.what]
        seen = await self._visible_places(who, reach, entry.folder, items)
        return [each for each in items if _is_visible(each, entry, seen)]

    async def read_version(self, who: Principal, version: FileVersion) -> bytes:
        """The content of a file after this change. Raises Refused for content that this person may
        not see, and where it is not kept."""
        entry, item = version.entry, version.item
        if not await self.may_see_effect(who, entry):
            raise Refused(NOT_ALLOWED_TEXT)
        reach = await self._reach(entry.agent)
        if item.place not in await self._visible_places(who, reach, entry.folder, (item,)):
            raise Refused(NOT_ALLOWED_TEXT)
        shadow = _find_snapshots(reach, entry.folder)
        if shadow is None or item.after is None or item.after[0] != "f":
            raise Refused(NOT_KEPT_TEXT)
        try:
            return await anyio.to_thread.run_sync(_read_bytes, shadow, item.after)
        except OSError as error:
            raise Refused(NOT_KEPT_TEXT) from error

    async def diff_call(self, who: Principal, session: str, n: int, call_id: str) -> CallDiff:
        """The diff of the call that event `n` made, or of what it would change if it has not run
        yet. 0 is the latest event with a call of this id. Raises Refused when there is none."""
        n = n or _latest_call_event(await self._store.events(session), call_id)
        key = f"{session}#{n}.{call_id}"
        entries = await journal.entries_of_call(self._store, key)
        if entries:
            diffs = [await self.diff_change(who, entry) for entry in entries]
            files = tuple(file for each in diffs for file in each.files)
            return CallDiff(True, files, sum(each.more for each in diffs))
        call, closed = _find_call(await self._store.events(session, n - 1), n, call_id)
        if call is None:
            raise Refused("there is no such call")
        return CallDiff(True) if closed else await self._diff_proposed(who, session, call)

    async def _diff_proposed(self, who: Principal, session: str, call: ToolCall) -> CallDiff:
        try:
            reach = await self._reach(session.partition("/")[0])
            marks = await load_scope_marks(reach)
            if not may_see(
                marks.file_label(marks.resolve_place(_guess_path(call))), list_reader_names(who)
            ):
                return CallDiff(
                    False, (FileDiff(_guess_path(call), "changed", why=NOT_ALLOWED_TEXT),)
                )
            plan = await anyio.to_thread.run_sync(
                plan_rewrite, call.name, call.arguments, reach, session
            )
            if plan is None:
                return CallDiff(False)
            did: Literal["made", "changed"] = "made" if plan.before is None else "changed"
            marks = await load_scope_marks(reach)
            place = plan.before.place if plan.before is not None else marks.resolve_place(plan.path)
            if not may_see(marks.file_label(place), list_reader_names(who)):
                return CallDiff(False, (FileDiff(plan.path, did, why=NOT_ALLOWED_TEXT),))
            rewrite = await anyio.to_thread.run_sync(make_rewrite, plan)
        except (ConfigError, ToolError) as error:
            return CallDiff(
                False,
                (
                    FileDiff(
                        _guess_path(call),
                        "changed",
                        why=mark_text("This would fail: {why_text}.").format(why_text=error),
                    ),
                ),
            )
        made = (rewrite.path, rewrite.before, rewrite.after)
        diff, why = await anyio.to_thread.run_sync(diff_bytes, *made)
        twin = await anyio.to_thread.run_sync(_lookalike_note, reach, rewrite.path)
        return CallDiff(
            False, (FileDiff(rewrite.path, did, diff, " ".join(filter(None, (twin, why)))),)
        )

    async def _visible_places(
        self, who: Principal, reach: ToolScope, folder: str, items: Sequence[UndoItem]
    ) -> frozenset[bytes]:
        """The places of which this person may see both the old and the new content."""
        marks = await load_scope_marks(reach)
        readers = list_reader_names(who)
        seen = set[bytes]()
        for each in items:
            labels = [
                marks.listing_label_by_name((f"{folder}/{each.path}" if folder else each.path,))
            ]
            for digest in filter(None, map(parse_digest, (each.before, each.after))):
                label = await find_label(self._store, f"blob:{DIGEST_PREFIX}{digest}")
                if label is not None:
                    labels.append(label)
            if may_see(join_labels((LOCAL, *labels)), readers):
                seen.add(each.place)
        return frozenset(seen)


def _is_visible(item: UndoItem, entry: JournalEntry, seen: frozenset[bytes]) -> bool:
    """Whether somebody who may see these places may see the item. What the call itself named, they
    know."""
    return item.place in seen or item.display_name == entry.what


def _lookalike_note(reach: ToolScope, path: str) -> str:
    """A sentence when another name in the folder looks like this one; '' otherwise."""
    folder, _, name = path.rpartition("/")
    with suppress(ToolError):
        beside = [
            each.name
            for each in reach.files.list(
                folder or ("/" if path.startswith("/") else "."), MAX_SIBLINGS
            )
        ]
        note = describe_lookalikes((*beside, name)).get(name, "").strip("()")
        return f"{note[:1].upper()}{note[1:]}." if note else ""
    return ""


def _latest_call_event(log: Sequence[Recorded], call_id: str) -> int:
    """The event with the latest call of this id, or 1, which makes no call, when there is none."""
    replies = [(each.n, each.event) for each in log if isinstance(each.event, ModelReplied)]
    return next(
        (
            n
            for n, event in reversed(replies)
            if call_id in [call.id for call in event.message.calls]
        ),
        1,
    )


def _find_call(log: Sequence[Recorded], n: int, call_id: str) -> tuple[ToolCall | None, bool]:
    """The call that the first of these events made, and whether it has ended."""
    if not log or log[0].n != n or not isinstance(log[0].event, ModelReplied):
        return None, False
    call = next((each for each in log[0].event.message.calls if each.id == call_id), None)
    for recorded in log[1:]:
        match recorded.event:
            case ToolFinished(result=result) if result.call_id == call_id:
                return call, True
            case CallClosed(call_id=closed) if closed == call_id:
                return call, True
            case _:
                pass
    return call, False


def _guess_path(call: ToolCall) -> str:
    """The path in the arguments of a call, as far as they can be read; '' otherwise."""
    try:
        given: Any = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    found = given.get("path") if isinstance(given, Mapping) else None
    return found if isinstance(found, str) else ""


def change_kind(item: UndoItem) -> Literal["made", "changed", "removed"]:
    """What was done to the file or key-value."""
    if item.before is None:
        return "made"
    return "removed" if item.after is None else "changed"


def _diff_value(who: Principal, item: UndoItem) -> FileDiff:
    """The diff of a key-value. Its states are JSON: the value, when it expires, and its label."""
    values = list[bytes | None]()
    for state in (item.before, item.after):
        if state is None:
            values.append(None)
            continue
        value, _, label = msgspec.json.decode(state[2:], type=tuple[str, float | None, str])
        if label and not may_see(_decode_label(bytes.fromhex(label)), list_reader_names(who)):
            return FileDiff(item.display_name, change_kind(item), why=NOT_ALLOWED_TEXT)
        values.append(value.encode())
    return FileDiff(
        item.display_name, change_kind(item), *diff_bytes(item.display_name, values[0], values[1])
    )


def _diff_files(
    reach: ToolScope, entry: JournalEntry, items: Sequence[UndoItem], seen: frozenset[bytes]
) -> list[FileDiff]:
    shadow = _find_snapshots(reach, entry.folder)
    found = list[FileDiff]()
    room = MAX_TOTAL_CHARS
    for item in items:
        diff = why = ""
        if item.place not in seen:
            why = NOT_ALLOWED_TEXT
        elif room <= 0:
            why = TOO_MUCH_TEXT
        else:
            diff, why = _diff_file(shadow, item, min(room, MAX_CHARS))
        room -= len(diff)
        found.append(FileDiff(item.display_name, change_kind(item), diff, why))
    return found


def _diff_file(shadow: FileSnapshots | None, item: UndoItem, chars: int) -> tuple[str, str]:
    """The diff, or why there is none."""
    states = (item.before, item.after)
    kinds = {state[0] for state in states if state is not None}
    if not kinds & set("fu"):
        return "", describe_special_file(*states)
    if shadow is None or "u" in kinds:
        return "", NOT_KEPT_TEXT
    try:
        before, after = (None if state is None else _read_bytes(shadow, state) for state in states)
    except OSError:
        return "", NOT_KEPT_TEXT
    diff, why = diff_bytes(item.display_name, before, after, chars)
    return diff, mark_text("Only its mode was changed.") if why == UNCHANGED_TEXT else why


def _read_bytes(shadow: FileSnapshots, state: str) -> bytes:
    """The content of the file in this state, or nothing when it was no file. Raises OSError."""
    if state[0] != "f":
        return b""
    with shadow.open(parse_digest(state)) as file:
        return file.read()


def diff_bytes(
    path: str, before: bytes | None, after: bytes | None, chars: int = MAX_CHARS
) -> tuple[str, str]:
    """The diff, or why there is none."""
    if decode_text(before) is None or decode_text(after) is None:
        large = max(len(before or b""), len(after or b"")) > MAX_TEXT_BYTES
        form = (
            mark_text(
                "It is too large to compare: {before_number} bytes before, {after_number} after."
            )
            if large
            else mark_text("It is no text: {before_number} bytes before, {after_number} after.")
        )
        return "", form.format(
            before_number=f"{len(before or b''):,}", after_number=f"{len(after or b''):,}"
        )
    diff = unified_diff(path, before, after, lines=MAX_LINES, chars=chars)
    return diff, "" if diff else UNCHANGED_TEXT


def describe_special_file(before: str | None, after: str | None) -> str:
    """A sentence on a folder, a link or another special file."""
    if "l" in {(before or " ")[0], (after or " ")[0]}:
        led, leads = (_link_target(state) for state in (before, after))
        return (
            mark_text("A link to {path}.").format(path=leads)
            if leads
            else mark_text("It was a link to {path}.").format(path=led)
        )
    return (
        mark_text("A folder.")
        if {(before or "d")[0], (after or "d")[0]} <= set("dh")
        else mark_text("No file.")
    )


def _link_target(state: str | None) -> str:
    if state is None or state[0] != "l":
        return ""
    return bytes.fromhex(state[2:]).decode(errors="backslashreplace")


def _find_snapshots(reach: ToolScope, folder: str) -> FileSnapshots | None:
    """The snapshots that have the files of that folder."""
    if reach.shadow is None:
        return None
    root = reach.files.roots[0][0]
    return reach.shadow if folder in (root, "") else reach.shadow.for_folder(folder)
