"""The journal of what can be undone: who sees it, and taking back what stands in it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..config.clock import RandomIds, SystemClock
from ..config.config import Settings, workspace_of
from ..store.base import Store
from ..store.blobs import DIGEST_PREFIX, Blobs
from ..tools.base import ToolScope
from ..tools.label_marks import marks_in
from ..tools.notes import By
from ..tools.paths import Allowed
from ..tools.states import digest_of
from ..tools.task_rows import id_of, read, take_back_tasks
from ..tools.undo import KV, TASKS, LeftUndone, UndoItem, UndoneEffect, take_back, take_back_values
from ..tools.watch import make_up
from ..tools.watched_folder import WatchedFolder, ground, ground_beside, owned_grounds
from ..types.clock import Clock, Ids
from ..types.commit import Change
from ..types.errors import ConfigError, Refused, ToolError
from ..types.events import AnyEvent, CommandRun, Undone
from ..types.identity import Principal
from ..types.labels import LOCAL, Label, join_labels
from .scope import SandboxProvider, ToolScopes, folders_without_secrets

log = logging.getLogger(__name__)

_decode_label = msgspec.json.Decoder(Label).decode

MOST_ITEMS = 1_000_000
MAX_NAMED = 3
DAY_S = 86_400.0
LATEST = 1 << 60


class Effect(msgspec.Struct, frozen=True):
    """A line of the journal: what a call, or an undo (of `undoes`), changed. `count` is how many
    files, keys or tasks."""

    n: int
    key: str
    agent: str
    session: str
    person: str
    tool: str
    folder: str
    what: str
    at: float
    undoes: int | None
    undone_at: float | None
    count: int

    @property
    def description(self) -> str:
        """For people, in a line."""
        return f"{self.tool}: {self.what}" if self.tool else self.what


class Outcome(msgspec.Struct, frozen=True):
    """What came of taking back one effect: `undo` is the effect that this is; None where nothing
    was changed. `label` is that of the `words`."""

    effect: Effect
    undo: int | None
    back: tuple[str, ...]
    left: tuple[LeftUndone, ...]
    words: str
    label: Label = LOCAL


class Effects:
    """The journal. `reach` of an agent by its name is asked for when its files are to be touched;
    it raises ConfigError for one that is gone."""

    def __init__(
        self, store: Store, reach: Callable[[str], Awaitable[ToolScope]], clock: Clock, ids: Ids
    ) -> None:
        self._store = store
        self.tool_scope_of = reach
        self._clock = clock
        self._ids = ids

    async def timeline(
        self, who: Principal, session: str = "", before: int = LATEST, limit: int = 50
    ) -> list[Effect]:
        """The latest first; an owner sees all, others what they did themselves. What became of
        tasks is not in it: a long work changes a hundred of them, and they come back with their
        turns."""
        return _parse_rows(
            await self._store.query("effect_list", (*_scope(who), session, before, limit))
        )

    async def get(self, who: Principal, n: int) -> Effect:
        """One of them. Raises Refused where there is none that is theirs."""
        found = _parse_rows(await self._store.query("effect_get", (n,)))
        if not found or not ("owner" in who.roles or found[0].person == who.id):
            raise Refused(f"there is no change {n}")
        return found[0]

    async def items(
        self, effect: Effect, limit: int = MOST_ITEMS, offset: int = 0
    ) -> list[UndoItem]:
        """What it changed."""
        return [
            UndoItem(*row)
            for row in await self._store.query("effect_items", (effect.n, limit, offset))
        ]

    async def list_undoable(
        self, who: Principal, limit: int, session: str = "", *, again: bool = False
    ) -> list[Effect]:
        """What can be undone, or with `again` the undos that can be taken back; the latest
        first."""
        name = "effect_again" if again else "effect_live"
        return _parse_rows(await self._store.query(name, (*_scope(who), session, limit)))

    async def undo(self, who: Principal, effect: Effect, *, force: bool = False) -> Outcome:
        """Take it back. Raises Refused where it is taken back already, or its folder is out of
        reach.

        With `force` also over what was changed since; that is for owners: old words of theirs would
        come back over the new, at a time that somebody else has chosen.
        """
        if force and "owner" not in who.roles:
            raise Refused("only an owner may undo over what was changed since; ask one")
        where = None if effect.folder in (KV, TASKS) else await self._open_folder(effect)
        if (await self.get(who, effect.n)).undone_at is not None:
            raise Refused(f"change {effect.n} ({effect.description}) is undone already")
        items = await self.items(effect)
        tool = "redo" if effect.undoes is not None else "undo"
        key = self._ids.new("undo")
        now = self._clock.now()
        by = By(
            key,
            effect.agent,
            effect.session,
            who.id,
            tool,
            effect.what,
            now,
            effect.n,
            effect.undoes,
        )
        label = await self.label(effect, items)
        if effect.folder == TASKS:
            taken = await self._undo_tasks(items, by, force)
        elif where is None:
            taken = await self._undo_values(items, by, force)
        else:
            taken = await anyio.to_thread.run_sync(take_back, where, items, by, force, label)
        with anyio.CancelScope(shield=True):
            if taken.rows:
                await self._store.change(taken.rows)
            if taken.running is not None and where is not None:
                where.leave(taken.running)
        if where is not None and where.owned:
            (await self._tool_scope(effect.agent)).untold.add(by.session)
        made = await self._store.query("effect_known", (key,))
        words, said = await self._describe_undone(effect, items, taken)
        return Outcome(
            effect,
            made[0][0] if made else None,
            taken.back,
            taken.left,
            words,
            join_labels((label, said)),
        )

    async def label(self, effect: Effect, items: Sequence[UndoItem]) -> Label:
        """The label of what is told of it: of what the call had read, and of what it changed, by
        name and by bytes."""
        rows = await self._store.query("file_label_get", (f"effect:{effect.key}",))
        kept = [
            f"blob:{DIGEST_PREFIX}{digest}"
            for each in items
            for digest in map(digest_of, (each.before, each.after))
            if digest
        ]
        if effect.folder not in (KV, TASKS):
            for name in dict.fromkeys(kept):
                rows += await self._store.query("file_label_get", (name,))
        labels = [_decode_label(row[0]) for row in rows]
        if effect.folder == KV:
            labels += [
                _decode_label(bytes.fromhex(found))
                for each in items
                if (found := _label_of_value(each))
            ]
        elif effect.folder != TASKS:
            marks = await marks_in(await self._tool_scope(effect.agent))
            paths = (
                f"{effect.folder}/{each.path}" if effect.folder else each.path for each in items
            )
            labels.append(marks.told_by_name(paths))
        return join_labels((LOCAL, *labels))

    async def restore(
        self, who: Principal, agent: str, folder: str, items: Sequence[UndoItem]
    ) -> UndoneEffect:
        """Make these paths of a folder what they were before, where they still are as `after` says.
        Raises Refused where the folder is out of reach of the agent that changed it."""
        where = _find_folder(await self._tool_scope(agent), folder, agent)
        by = By(
            self._ids.new("undo"),
            agent,
            "",
            who.id,
            "undo",
            f"all to review in {folder}",
            self._clock.now(),
        )
        with anyio.CancelScope(shield=True):
            taken = await anyio.to_thread.run_sync(take_back, where, items, by, False)
            if taken.rows:
                await self._store.change(taken.rows)
            if taken.running is not None:
                where.leave(taken.running)
        return taken

    async def _open_folder(self, effect: Effect) -> WatchedFolder:
        """The folder of its files. What was cut off there is finished first. Raises Refused."""
        reach = await self._tool_scope(effect.agent)
        where = _find_folder(reach, effect.folder, effect.agent)
        await make_up(reach, where, self._clock.now())
        return where

    async def _undo_values(self, items: Sequence[UndoItem], by: By, force: bool) -> UndoneEffect:
        now = dict[bytes, str | None]()
        for each in items:
            namespace, key = msgspec.json.decode(each.place, type=tuple[str, str])
            rows = await self._store.query("effect_kv_now", (by.agent, namespace, key))
            now[each.place] = rows[0][0] if rows else None
        return take_back_values(items, now, by, force)

    async def _undo_tasks(self, items: Sequence[UndoItem], by: By, force: bool) -> UndoneEffect:
        now = dict[bytes, str | None]()
        for each in items:
            rows = await self._store.query("effect_task_now", (by.session, id_of(each)))
            now[each.place] = rows[0][0] if rows else None
        graph = read(await self._store.query("task_of", (by.session,)))
        return take_back_tasks(items, now, graph, by, force)

    async def _tool_scope(self, agent: str) -> ToolScope:
        try:
            return await self.tool_scope_of(agent)
        except (ToolError, ConfigError) as error:
            raise Refused(str(error)) from error

    async def record_interrupted(self, agents: Iterable[str]) -> None:
        """Note what commands did that were killed with their process."""
        for agent in agents:
            try:
                reach = await self._tool_scope(agent)
                for where in (ground(reach)[0], *owned_grounds(reach, reach.owned)):
                    await make_up(reach, where, self._clock.now())
            except (Refused, ToolError) as error:
                log.warning("what was changed last is not in the journal of changes: %s", error)

    async def _describe_undone(
        self, effect: Effect, items: Sequence[UndoItem], taken: UndoneEffect
    ) -> tuple[str, Label]:
        """One or two sentences for people, and the label of what they say of other changes."""
        changed = [each for each in taken.left if each.why == "changed"]
        if not taken.rows:
            found = [
                await self._describe_later_change(effect, items, each)
                for each in changed[:MAX_NAMED]
            ]
            since = [said for said, _ in found]
            labels = [label for _, label in found]
            since += [each.words for each in taken.left if each.why == "failed"][:MAX_NAMED]
            more = f" and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
            return f"Not undone, {effect.description}: {'; '.join(since)}{more}.", join_labels(
                (LOCAL, *labels)
            )
        said = [f"Put back: {format_names(taken.back)}."] if taken.back else []
        lost = [each.place for each in taken.left if each.why == "lost"]
        said += [f"Not put back, as it was not kept: {format_names(lost)}."] if lost else []
        said += [
            f"{each.place} could not be put back: {each.words}."
            for each in taken.left
            if each.why == "failed"
        ][:MAX_NAMED]
        return " ".join(said), LOCAL

    async def _describe_later_change(
        self, effect: Effect, items: Sequence[UndoItem], left: LeftUndone
    ) -> tuple[str, Label]:
        place = next(item.place for item in items if item.shown == left.place)
        row = (place, effect.folder, effect.n, effect.agent, effect.session)
        rows = await self._store.query("effect_since", row)
        if not rows or rows[0][3] != left.words:
            return f"{left.place} was changed since, outside of Deskhand", LOCAL
        n, tool, what, _ = rows[0]
        other = _parse_rows(await self._store.query("effect_get", (n,)))
        labels = [await self.label(each, ()) for each in other]
        return f"{left.place} was changed since by change {n} ({tool}: {what[:60]})", join_labels(
            (LOCAL, *labels)
        )

    async def undo_turns(
        self, session: str, who: Principal, events: list[AnyEvent]
    ) -> list[AnyEvent]:
        """For /undo: put back what the turns did that these events take back, and say so in the
        reply."""
        to_n = next((event.to_n for event in events if isinstance(event, Undone)), None)
        reply = next(
            (event for event in events if isinstance(event, CommandRun) and event.name == "undo"),
            None,
        )
        if to_n is None or reply is None:
            return events
        rows = _parse_rows(await self._store.query("effect_turns", (session, 10_000)))
        theirs = [effect for effect in rows if _turn_number(effect.key, session) > to_n]
        outcomes = [await self._try_undo(who, effect) for effect in theirs]
        said = f"{reply.reply} {summarize_outcomes(outcomes)}"
        return [replace(event, reply=said) if event is reply else event for event in events]

    async def _try_undo(self, who: Principal, effect: Effect) -> Outcome:
        try:
            return await self.undo(who, effect)
        except Refused as error:
            return Outcome(effect, None, (), (), f"Not undone, {effect.description}: {error}.")

    async def expire(self, blobs: Blobs, days: float, mb: int) -> None:
        """Forget what is older than so many days, and the oldest beyond so many MB of kept
        bytes."""
        seen = set[str]()
        size = 0
        last = 0
        for n, digest in await self._store.query("effect_blobs", ()):
            if digest not in seen:
                seen.add(digest)
                size += await anyio.to_thread.run_sync(blobs.size, digest)
            if size > mb << 20:
                last = n
                break
        await self._store.change(
            [Change("effect_expire", (self._clock.now() - days * DAY_S, last)), *_EXPIRE]
        )


def summarize_outcomes(outcomes: Sequence[Outcome]) -> str:
    """What /undo says of the files, key-values and tasks."""
    back = list(dict.fromkeys(place for each in outcomes for place in each.back))
    said = [f"Put back: {format_names(back)}."] if back else []
    lost = list(
        dict.fromkeys(left.place for each in outcomes for left in each.left if left.why == "lost")
    )
    said += [f"Not put back, as it was not kept: {format_names(lost)}."] if lost else []
    refused = [
        each for each in outcomes if each.undo is None and each.words.startswith("Not undone")
    ]
    said += [each.words for each in refused[:MAX_NAMED]]
    if refused:
        ns = " ".join(str(each.effect.n) for each in refused[:MAX_NAMED])
        said.append(
            f"`deskhand undo --change {ns.split()[0]} --force` does it all the same, and "
            "keeps what it overwrites."
        )
    if not said:
        said = ["No file, key-value or task was changed by it."]
    elif any(each.back and each.effect.folder != TASKS for each in outcomes):
        said.append("`deskhand undo --redo` takes that back.")
    return " ".join([*said, "Messages sent stay as they are."])


def format_names(places: Sequence[str]) -> str:
    """The first of these by name, and how many more there are."""
    more = len(places) - MAX_NAMED
    return ", ".join(places[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _label_of_value(item: UndoItem) -> str:
    """The label that a key-value has, in hex; '' for none."""
    for state in (item.before, item.after):
        if state is not None:
            label = msgspec.json.decode(state[2:], type=tuple[str, float | None, str])[2]
            if label:
                return label
    return ""


def _turn_number(key: str, session: str) -> int:
    """The number of the event that made a call, by the key of the call; 0 for what is none of this
    session."""
    number = (
        key.removeprefix(f"{session}#").partition(".")[0] if key.startswith(f"{session}#") else ""
    )
    return int(number) if number.isdecimal() else 0


def _find_folder(reach: ToolScope, folder: str, agent: str) -> WatchedFolder:
    """The folder of an effect, held open. Raises Refused."""
    if reach.shadow is None:
        raise Refused("nothing is kept here")
    here = reach.files.roots
    for real, descriptor, write in here:
        if write and (real == folder or (not folder and real == here[0][0])):
            if real == here[0][0]:
                return WatchedFolder(reach.shadow, descriptor, real)
            return ground_beside(reach, reach.shadow, (real, descriptor))
    raise Refused(f"{folder!r} is no longer a folder that {agent} may write")


def _scope(who: Principal) -> tuple[int, str]:
    return int("owner" in who.roles), who.on_behalf_of or who.id


def _parse_rows(rows: Sequence[tuple[Any, ...]]) -> list[Effect]:
    return [Effect(*row) for row in rows]


_EXPIRE = (Change("effect_item_expire", ()), Change("effect_label_expire", ()))


@asynccontextmanager
async def open_effects(settings: Settings, store: Store) -> AsyncIterator[Effects]:
    """The journal for whoever does not drive; the one who does finds the files changed."""
    home = Path(settings.environment.get("HOME", "/"))
    reaches = ToolScopes(
        store, Blobs(settings.home.blobs), SandboxProvider(), undo=lambda: settings.config.undo
    )

    async def scope_of(agent: str) -> ToolScope:
        wide = settings.agent(agent).sandbox is False

        async def list_implicit_folders() -> tuple[Allowed, ...]:
            return folders_without_secrets(home, settings.home.root) if wide else ()

        return await reaches.open_scope(agent, workspace_of(settings, agent), list_implicit_folders)

    try:
        yield Effects(store, scope_of, SystemClock(), RandomIds())
    finally:
        reaches.close()
