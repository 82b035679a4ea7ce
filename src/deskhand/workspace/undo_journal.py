"""The undo journal: what calls have changed, who may see it, and how it is undone."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..config.clock import RandomIds, SystemClock
from ..config.config import Settings, workspace_of
from ..store.base import Store
from ..store.blobs import DIGEST_PREFIX, Blobs
from ..store.queries import subagents_of
from ..tools import journal
from ..tools.base import ToolScope
from ..tools.journal import KV_FOLDER, TASKS_FOLDER, JournalEntry, UndoItem
from ..tools.label_marks import load_scope_marks
from ..tools.notes import By
from ..tools.path_states import parse_digest
from ..tools.paths import Allowed
from ..tools.queries import find_label, tasks_of
from ..tools.task_rows import parse_task_id, undo_tasks
from ..tools.undo import (
    LeftUndone,
    UndoneEffect,
    undo_files,
    undo_values,
)
from ..tools.watch import commit_owed
from ..tools.watched_folder import (
    WatchedFolder,
    find_watched_folder,
    list_owned_folders,
    make_allowed_folder,
)
from ..types.clock import Clock, Ids
from ..types.errors import ConfigError, Refused, ToolError
from ..types.events import AnyEvent, CommandRun, Undone
from ..types.identity import Principal
from ..types.labels import LOCAL, Label, join_labels
from ..types.marked_texts import mark_text
from ..types.messages import Text
from .scope import SandboxProvider, ToolScopes, folders_without_secrets
from .undo_subagents import find_tasks_of_turns, list_entries_of_tasks, stop_tasks

log = logging.getLogger(__name__)

MAX_TASKS_OF_TURN = 100
"""So many of the latest tasks of sub-agents are looked at for changes of one turn."""

_decode_label = msgspec.json.Decoder(Label).decode

MOST_ITEMS = 1_000_000
MAX_UNDONE = 10_000
"""So many entries of a session are looked through for /undo."""
MAX_NAMED = 3
DAY_S = 86_400.0
PUT_BACK = mark_text("Put back: {names_text}.")
NOT_KEPT = mark_text("Not put back, as it was not kept: {names_text}.")
NOT_UNDONE = mark_text("Not undone, {change}: {why_text}.")
LATEST = 1 << 60


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of undoing one entry. `undo` is the number of the entry that the undo itself has,
    or None when nothing was changed. `back` are the places that are as before, `left` those that
    are not; `words` say it to people, under this `label`."""

    entry: JournalEntry
    undo: int | None
    back: tuple[str, ...]
    left: tuple[LeftUndone, ...]
    words: str
    label: Label = LOCAL

    @property
    def was_refused(self) -> bool:
        """Nothing was undone, because something was changed since or could not be written."""
        return self.undo is None and self.words.startswith("Not undone")


class UndoJournal:
    """What calls have changed, who may see it, and how to undo it.

    `open_scope` opens the tool scope of an agent by its name; it raises ConfigError for an agent
    that is gone, and ToolError when its workspace cannot be opened.
    """

    def __init__(
        self,
        store: Store,
        open_scope: Callable[[str], Awaitable[ToolScope]],
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._store = store
        self.open_scope = open_scope
        self._clock = clock
        self._ids = ids

    # Reading

    async def timeline(
        self, who: Principal, session: str = "", before: int = LATEST, limit: int = 50
    ) -> list[JournalEntry]:
        """The entries, the latest first. An owner sees all, others what they did themselves.
        Changes of tasks are left out: there are hundreds in long work, and they are undone with
        their turns."""
        return await journal.list_entries(self._store, who, session, before, limit)

    async def get(self, who: Principal, n: int) -> JournalEntry:
        """The entry with this number. Raises Refused when there is none, or it is not theirs."""
        entry = await journal.find_entry(self._store, n)
        if entry is None or not ("owner" in who.roles or entry.person == who.id):
            raise Refused(mark_text("there is no change {change_name}").format(change_name=n))
        return entry

    async def items(
        self, entry: JournalEntry, limit: int = MOST_ITEMS, offset: int = 0
    ) -> list[UndoItem]:
        """The files, keys or tasks that it changed."""
        return await journal.items_of_entry(self._store, entry.n, limit, offset)

    async def list_undoable(
        self, who: Principal, limit: int, session: str = ""
    ) -> list[JournalEntry]:
        """What can be undone, the latest first."""
        return await journal.undoable_entries(self._store, who, session, limit)

    async def list_redoable(
        self, who: Principal, limit: int, session: str = ""
    ) -> list[JournalEntry]:
        """The undos that can be taken back, the latest first."""
        return await journal.redoable_entries(self._store, who, session, limit)

    async def label(self, entry: JournalEntry, items: Sequence[UndoItem]) -> Label:
        """The label of what is said of this entry: joined from what the call had read, and from
        what it changed, by name and by content."""
        labels = [LOCAL]
        own = await find_label(self._store, f"effect:{entry.key}")
        if own is not None:
            labels.append(own)
        if entry.folder == KV_FOLDER:
            labels += _labels_of_values(items)
        elif entry.folder != TASKS_FOLDER:
            labels += await self._labels_of_files(entry, items)
        return join_labels(labels)

    async def _labels_of_files(self, entry: JournalEntry, items: Sequence[UndoItem]) -> list[Label]:
        digests: dict[str, None] = {}  # in order, each once
        for item in items:
            for state in (item.before, item.after):
                if digest := parse_digest(state):
                    digests[digest] = None

        labels = []
        for digest in digests:
            label = await find_label(self._store, f"blob:{DIGEST_PREFIX}{digest}")
            if label is not None:
                labels.append(label)

        marks = await load_scope_marks(await self._open_scope(entry.agent))
        paths = [f"{entry.folder}/{item.path}" if entry.folder else item.path for item in items]
        labels.append(marks.listing_label_by_name(paths))
        return labels

    # Undoing

    async def undo(self, who: Principal, entry: JournalEntry, *, force: bool = False) -> Outcome:
        """Undo one entry.

        With `force` also what was changed since. Only owners may do that: it brings old text of
        theirs back over newer text, at a time that somebody else has chosen.

        Raises Refused when the entry is undone already, when its folder cannot be opened, and for
        `force` by somebody who is no owner.
        """
        if force and "owner" not in who.roles:
            raise Refused(mark_text("only an owner may undo over what was changed since; ask one"))
        folder = None
        if entry.folder not in (KV_FOLDER, TASKS_FOLDER):
            folder = await self._open_folder(entry)
        if (await self.get(who, entry.n)).undone_at is not None:
            raise Refused(
                mark_text("change {change_name} ({change}) is undone already").format(
                    change_name=entry.n, change=entry.description
                )
            )

        items = await self.items(entry)
        label = await self.label(entry, items)
        by = By(
            key=self._ids.new("undo"),
            agent=entry.agent,
            session=entry.session,
            person=who.id,
            tool="undo" if entry.undoes is None else "redo",
            what=entry.what,
            at=self._clock.now(),
            undoes=entry.n,
            revives=entry.undoes,
        )
        if folder is not None:
            taken = await anyio.to_thread.run_sync(undo_files, folder, items, by, force, label)
        elif entry.folder == TASKS_FOLDER:
            taken = await self._undo_tasks(items, by, force)
        else:
            taken = await self._undo_values(items, by, force)
        await self._commit(taken, folder)
        if folder is not None and folder.owned:
            (await self._open_scope(entry.agent)).untold.add(by.session)

        undo = await journal.find_entry_number(self._store, by.key)
        said = await self._describe_undone(entry, items, taken)
        return Outcome(
            entry=entry,
            undo=undo,
            back=taken.back,
            left=taken.left,
            words=said.text,
            label=join_labels((label, said.label)),
        )

    async def restore(
        self, who: Principal, agent: str, folder: str, items: Sequence[UndoItem]
    ) -> UndoneEffect:
        """Make these paths of a folder what they were `before`, where they still are as `after`
        says. Raises Refused when the agent that changed them cannot write in the folder."""
        watched = _find_folder(await self._open_scope(agent), folder, agent)
        by = By(
            key=self._ids.new("undo"),
            agent=agent,
            session="",
            person=who.id,
            tool="undo",
            what=f"all to review in {folder}",
            at=self._clock.now(),
        )
        with anyio.CancelScope(shield=True):
            taken = await anyio.to_thread.run_sync(undo_files, watched, items, by, False)
            await self._commit(taken, watched)
        return taken

    async def _commit(self, taken: UndoneEffect, folder: WatchedFolder | None) -> None:
        """Store what was put back."""
        with anyio.CancelScope(shield=True):
            if taken.rows:
                await self._store.change(taken.rows)
            if taken.running is not None and folder is not None:
                folder.release(taken.running)

    async def _undo_values(self, items: Sequence[UndoItem], by: By, force: bool) -> UndoneEffect:
        now: dict[bytes, str | None] = {}
        for item in items:
            namespace, key = msgspec.json.decode(item.place, type=tuple[str, str])
            now[item.place] = await journal.value_state(self._store, by.agent, namespace, key)
        return undo_values(items, now, by, force)

    async def _undo_tasks(self, items: Sequence[UndoItem], by: By, force: bool) -> UndoneEffect:
        now: dict[bytes, str | None] = {}
        for item in items:
            now[item.place] = await journal.task_state(self._store, by.session, parse_task_id(item))
        return undo_tasks(items, now, tasks_of(self._store, by.session), by, force)

    async def undo_turns(
        self, session: str, who: Principal, events: list[AnyEvent]
    ) -> list[AnyEvent]:
        """For /undo: put back what the turns did that these events undo, and say so in the
        reply."""
        undone = next((event for event in events if isinstance(event, Undone)), None)
        reply = next((event for event in events if _is_undo_reply(event)), None)
        if undone is None or not isinstance(reply, CommandRun):
            return events

        tasks = await find_tasks_of_turns(self._store, session, undone.to_n)
        stopped = await stop_tasks(self._store, tasks)
        entries = await journal.entries_of_session(self._store, session, MAX_UNDONE)
        undo = [each for each in entries if _turn_number(each.key, session) > undone.to_n]
        undo += await list_entries_of_tasks(self._store, tasks, entries)
        undo.sort(key=lambda entry: entry.n, reverse=True)
        outcomes = [await self._try_undo(who, each) for each in undo]
        text = " ".join(filter(None, (reply.reply, stopped, summarize_outcomes(outcomes))))
        return [replace(event, reply=text) if event is reply else event for event in events]

    async def has_changes(self, session: str, since: float) -> bool:
        """Whether /undo would put back files that were changed in this session, or by its
        sub-agents, since then."""
        sessions = [session]
        for each in sessions:
            if await journal.has_changed_files(self._store, each, since):
                return True
            tasks = subagents_of(self._store, each, MAX_TASKS_OF_TURN)
            sessions += [task.session for task in tasks if task.at >= since]
        return False

    async def _try_undo(self, who: Principal, entry: JournalEntry) -> Outcome:
        try:
            return await self.undo(who, entry)
        except Refused as error:
            words = NOT_UNDONE.format(change=entry.description, why_text=error)
            return Outcome(entry=entry, undo=None, back=(), left=(), words=words)

    # What people are told

    async def _describe_undone(
        self, entry: JournalEntry, items: Sequence[UndoItem], taken: UndoneEffect
    ) -> Text:
        """One or two sentences for people. The label is that of other changes that they name."""
        if not taken.rows:
            return await self._describe_not_undone(entry, items, taken)

        said = []
        if taken.back:
            said.append(PUT_BACK.format(names_text=format_names(taken.back)))
        if lost := _places(taken.left, "lost"):
            said.append(NOT_KEPT.format(names_text=format_names(lost)))
        failed = [each for each in taken.left if each.why == "failed"]
        said += [
            mark_text("{place} could not be put back: {why_text}.").format(
                place=each.place, why_text=each.words
            )
            for each in failed[:MAX_NAMED]
        ]
        return Text(" ".join(said), LOCAL)

    async def _describe_not_undone(
        self, entry: JournalEntry, items: Sequence[UndoItem], taken: UndoneEffect
    ) -> Text:
        changed = [each for each in taken.left if each.why == "changed"]
        failed = [each for each in taken.left if each.why == "failed"]
        reasons = []
        labels = [LOCAL]
        for each in changed[:MAX_NAMED]:
            later = await self._describe_later_change(entry, items, each)
            reasons.append(later.text)
            labels.append(later.label)
        reasons += [each.words for each in failed[:MAX_NAMED]]

        why = "; ".join(reasons)
        if len(changed) > MAX_NAMED:
            why += f" and {len(changed) - MAX_NAMED} more"
        text = NOT_UNDONE.format(change=entry.description, why_text=why)
        return Text(text, join_labels(labels))

    async def _describe_later_change(
        self, entry: JournalEntry, items: Sequence[UndoItem], left: LeftUndone
    ) -> Text:
        place = next(item.place for item in items if item.display_name == left.place)
        later = await journal.find_later_change(self._store, entry, place)
        if later is None or later.after != left.words:
            outside = mark_text("{place} was changed since, outside of Deskhand")
            return Text(outside.format(place=left.place), LOCAL)

        labels = [LOCAL]
        other = await journal.find_entry(self._store, later.n)
        if other is not None:
            labels.append(await self.label(other, ()))
        text = mark_text("{place} was changed since by change {change_name} ({change})").format(
            place=left.place, change_name=later.n, change=f"{later.tool}: {later.what[:60]}"
        )
        return Text(text, join_labels(labels))

    # Folders

    async def _open_folder(self, entry: JournalEntry) -> WatchedFolder:
        """The folder of its files, after finishing what was cut off there. Raises Refused."""
        scope = await self._open_scope(entry.agent)
        folder = _find_folder(scope, entry.folder, entry.agent)
        await commit_owed(scope, folder, self._clock.now())
        return folder

    async def _open_scope(self, agent: str) -> ToolScope:
        """Raises Refused."""
        try:
            return await self.open_scope(agent)
        except (ToolError, ConfigError) as error:
            raise Refused(str(error)) from error

    # Housekeeping

    async def record_interrupted(self, agents: Iterable[str]) -> None:
        """Write down what commands of these agents changed before they were killed together with
        Deskhand."""
        for agent in agents:
            try:
                scope = await self._open_scope(agent)
                for folder in (
                    find_watched_folder(scope)[0],
                    *list_owned_folders(scope, scope.owned),
                ):
                    await commit_owed(scope, folder, self._clock.now())
            except (Refused, ToolError) as error:
                log.warning("The last changes of agent %r cannot be undone: %s", agent, error)

    async def expire(self, blobs: Blobs, days: float, mb: int) -> None:
        """Forget the entries that are older than `days`, and the oldest ones when all that is kept
        for undo takes more than `mb` megabytes."""
        seen: set[str] = set()
        size_bytes = 0
        last = 0
        for kept in await journal.kept_blobs(self._store):
            if kept.digest not in seen:
                seen.add(kept.digest)
                size_bytes += await anyio.to_thread.run_sync(blobs.size, kept.digest)
            if size_bytes > mb << 20:
                last = kept.n
                break
        before = self._clock.now() - days * DAY_S
        await self._store.change(journal.expire_entries(before, last))


def summarize_outcomes(outcomes: Sequence[Outcome]) -> str:
    """What /undo says of files, key-values and tasks."""
    said = []
    back = list(dict.fromkeys(place for each in outcomes for place in each.back))
    if back:
        said.append(PUT_BACK.format(names_text=format_names(back)))
    lost = dict.fromkeys(place for each in outcomes for place in _places(each.left, "lost"))
    if lost:
        said.append(NOT_KEPT.format(names_text=format_names(list(lost))))

    refused = [each for each in outcomes if each.was_refused][:MAX_NAMED]
    said += [each.words for each in refused]
    if refused:
        said[-1] = mark_text(
            "{said_text} `deskhand undo --change {change_name} --force` does it all the same, and "
            "keeps what it overwrites."
        ).format(said_text=said[-1], change_name=refused[0].entry.n)

    if not said:
        said.append(mark_text("No file, key-value or task was changed by it."))
    elif any(each.back and each.entry.folder != TASKS_FOLDER for each in outcomes):
        redo = mark_text("{said_text} `deskhand undo --redo` takes that back.")
        said[-1] = redo.format(said_text=said[-1])
    said.append(mark_text("Messages sent stay as they are."))
    return " ".join(said)


def format_names(places: Sequence[str]) -> str:
    """The first of these by name, and how many more there are."""
    more = len(places) - MAX_NAMED
    return ", ".join(places[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _places(left: Sequence[LeftUndone], why: str) -> list[str]:
    """The places that were left as they are for this reason."""
    return [each.place for each in left if each.why == why]


def _labels_of_values(items: Sequence[UndoItem]) -> list[Label]:
    """The labels of key-values. The journal has each state as JSON: the value, when it expires, and
    its label in hex ('' for none)."""
    labels = []
    for item in items:
        for state in (item.before, item.after):
            if state is None:
                continue
            label = msgspec.json.decode(state[2:], type=tuple[str, float | None, str])[2]
            if label:
                labels.append(_decode_label(bytes.fromhex(label)))
                break
    return labels


def _is_undo_reply(event: AnyEvent) -> bool:
    return isinstance(event, CommandRun) and event.name == "undo"


def _turn_number(key: str, session: str) -> int:
    """The number of the event that made a call, from the key of the call; 0 for a call of another
    session."""
    prefix = f"{session}#"
    if not key.startswith(prefix):
        return 0
    number = key.removeprefix(prefix).partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _find_folder(scope: ToolScope, folder: str, agent: str) -> WatchedFolder:
    """The folder of an entry, held open; '' is the workspace. Raises Refused."""
    if scope.shadow is None:
        raise Refused(mark_text("nothing is kept here"))
    workspace = scope.files.roots[0][0]
    for real, descriptor, write in scope.files.roots:
        if not write or real != (folder or workspace):
            continue
        if real == workspace:
            return WatchedFolder(scope.shadow, descriptor, real)
        return make_allowed_folder(scope, scope.shadow, (real, descriptor))
    raise Refused(
        mark_text("{folder} is no longer a folder that {agent_name} may write").format(
            folder=repr(folder), agent_name=agent
        )
    )


@asynccontextmanager
async def open_undo_journal(settings: Settings, store: Store) -> AsyncIterator[UndoJournal]:
    """The journal for a process that does not drive, such as the command line."""
    home = Path(settings.environment.get("HOME", "/"))
    scopes = ToolScopes(
        store, Blobs(settings.home.blobs), SandboxProvider(), undo=lambda: settings.config.undo
    )

    async def open_scope(agent: str) -> ToolScope:
        wide = settings.agent(agent).sandbox is False

        async def list_implicit_folders() -> tuple[Allowed, ...]:
            return folders_without_secrets(home, settings.home.root) if wide else ()

        return await scopes.open_scope(agent, workspace_of(settings, agent), list_implicit_folders)

    try:
        yield UndoJournal(store, open_scope, SystemClock(), RandomIds())
    finally:
        scopes.close()
