"""Keeps the files of notes and the facts that they show in step."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath
from zoneinfo import ZoneInfo

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..agent.agent import Agent
from ..assembly.host import Host
from ..assembly.knowledge_index import FOLDER, INDEX_FILES
from ..memory import queries
from ..memory.facts import (
    Fact,
    NewFact,
    Retention,
    Scope,
    add_fact,
    close_fact,
)
from ..memory.project import Base, Merge, merge_sheet
from ..memory.project_text import RenderedFact, Sheet, render_fact
from ..memory.project_write import replace_if_unchanged
from ..memory.queries import NotesVersion, ReflectedSession
from ..policy.information_flow import may_see
from ..tools.label_marks import OWNER_READERS, encode_path, is_private, load_scope_marks
from ..tools.paths import Place, Workspace
from ..tools.queries import set_label
from ..types.errors import ConfigError, StoreUnavailable, ToolError
from ..types.labels import Label, join_labels
from ..types.people import OWNER_NAME

log = logging.getLogger(__name__)

POLL_S = 2.0
FILE_BYTES = 400_000
"""A larger file is not read or written."""
MOST_FILES = 400
DAYS = 3
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.md")
_READERS = (OWNER_NAME, *OWNER_READERS)
_decode_base = msgspec.json.Decoder(Base).decode

INDEX = "memory/index.json"
PINNED = Sheet(
    "memory/MEMORY.md",
    "pinned",
    title="Memory",
    note=(
        "What is always known. Change, add or delete lines; what stands around these marks is "
        "yours alone."
    ),
)
KNOWLEDGE = Sheet(
    "memory/knowledge.md",
    "knowledge",
    "topics",
    "Knowledge",
    "What conversations taught. Edit it as you like.",
)
LEARNINGS = Sheet(
    "memory/learnings.md",
    "learnings",
    "learnings",
    "Learnings",
    "Mistakes, and what was right. Edit it as you like.",
)


class NotesFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of notes: which facts it shows, and whose facts its lines become.

    The keys of facts from its marked part begin with `kind`, those from the text around it with
    `around`. With `always` the marked part shows the pinned facts. `day` limits a daily file to
    facts of that time (seconds since the epoch).
    """

    sheet: Sheet
    scope: Scope
    owner: str
    kind: str = ""
    around: str = "file"
    always: bool = False
    retention: Retention = "durable"
    day: tuple[float, float] = (0.0, 0.0)


class _Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one file: the `shown` facts by key, the `ids` of all its open facts by
    key, and the `keys` of all its facts, also closed ones."""

    shown: Mapping[str, Fact]
    ids: Mapping[str, int]
    keys: Collection[str]


class Notebook:
    """The files of notes of all agents. `agent` returns an agent by its name."""

    def __init__(self, ground: Host, agent: Callable[[str], Agent]) -> None:
        self._ground = ground
        self._agent = agent
        self._lock = anyio.Lock()
        self._file_versions: dict[str, tuple[int, ...]] = {}
        self._version: NotesVersion | None = None
        self._day = ""

    async def run(self) -> None:
        """Sync every POLL_S seconds. Never returns."""
        while True:
            with suppress(StoreUnavailable):
                await self.sync()
            await anyio.sleep(POLL_S)

    async def sync(self) -> str:
        """Bring files and facts in step, where either has changed. Asks no model. Returns how many
        facts changed in which file, '' for none."""
        if not self._ground.settings().config.memory.enabled:
            return ""
        async with self._lock:
            version = await queries.notes_version(self._ground.store)
            day = self._today()
            read_all = day != self._day or not _same_labels(version, self._version)
            write_all = read_all or self._version is None or version.facts != self._version.facts

            changed: dict[str, int] = {}
            roots: set[str] = set()
            for name in self._ground.settings().agents:
                try:
                    files = (await self._agent(name).workspace.open_scope()).files
                except (ToolError, ConfigError) as error:
                    log.warning("Cannot read the notes of agent %r: %s", name, error)
                    continue
                root = files.roots[0][0]
                if root not in roots:  # several agents can share a workspace
                    roots.add(root)
                    changed |= await self._sync_agent(
                        name, files, read_all=read_all, write_all=write_all
                    )
            self._version = version
            self._day = day
            return "; ".join(f"{path}: {number}" for path, number in changed.items())

    async def _sync_agent(
        self, agent: str, files: Workspace, *, read_all: bool, write_all: bool
    ) -> dict[str, int]:
        """Returns how many facts came or went by which file."""
        changed: dict[str, int] = {}
        notes = await anyio.to_thread.run_sync(lambda: list(self._list_notes(agent, files)))
        for file in notes:
            name = file.sheet.path
            path = f"{files.roots[0][0]}/{name}"
            version = await anyio.to_thread.run_sync(_stat_version, files, name)
            is_new = version != self._file_versions.get(path)
            shows_facts = bool(file.sheet.section)
            if not is_new and not read_all and not (write_all and shows_facts):
                continue
            number = 0
            try:
                number = await self._sync_file(file, agent, files)
            except UnicodeDecodeError:
                if is_new:  # otherwise it was logged before
                    log.warning("Skipping %s, which stays as it is: it is not UTF-8 text.", path)
            except ToolError as error:
                if is_new:
                    log.warning("Skipping %s, which stays as it is: %s", path, error)
            if number:
                changed[name] = number
            # The version from before the file was read: what is saved meanwhile is seen next time.
            self._file_versions[path] = version
        with suppress(ToolError):
            await self._write_index(agent, files)
        return changed

    async def _write_index(self, agent: str, files: Workspace) -> None:
        """Write which conversations were reflected on, unless somebody else has written that
        file."""
        store = self._ground.store
        path = f"{files.roots[0][0]}/{INDEX}"
        sessions = await queries.reflected_sessions(store, agent, MOST_FILES)
        before, _ = await anyio.to_thread.run_sync(_read_bytes, files, INDEX)
        content = render_index(sessions)
        if before == content or not (sessions or before):
            return
        known = await queries.read_file_base(store, path)
        if before is not None and sha256(before).digest() not in (known or b""):
            return
        # Both digests are stored before the file is written: after a crash in between, the old
        # content and the new one are both known as ours.
        digests = sha256(content).digest() + sha256(before or b"").digest()
        await store.change((queries.set_file_base(path, digests, self._ground.clock.now()),))
        judge = partial(self._mark_private, files, INDEX)
        await anyio.to_thread.run_sync(replace_if_unchanged, files, INDEX, before, content, judge)

    def _list_notes(self, agent: str, files: Workspace) -> Iterator[NotesFile]:
        """The files of notes of this workspace, and those that are to be written. It blocks."""
        yield NotesFile(sheet=PINNED, scope="user", owner=OWNER_NAME, kind="file", always=True)
        yield NotesFile(sheet=KNOWLEDGE, scope="user", owner=OWNER_NAME, kind="knowledge")
        yield NotesFile(sheet=LEARNINGS, scope="user", owner=OWNER_NAME, kind="learning")
        yield from self._list_days(files)
        for name in _list_names(files, FOLDER):
            subject = name.removesuffix(".md")
            paths = [name] if name.endswith(".md") else [f"{name}/{head}" for head in INDEX_FILES]
            for path in paths:
                sheet = Sheet(f"{FOLDER}/{path}", subject=subject)
                yield NotesFile(sheet=sheet, scope="agent", owner=agent)

    def _list_days(self, files: Workspace) -> Iterator[NotesFile]:
        """The notes of the last DAYS days, and of all days that have a file."""
        zone = ZoneInfo(self._ground.settings().config.timezone)
        now = datetime.fromtimestamp(self._ground.clock.now(), zone)
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        days = [today - timedelta(days=ago) for ago in range(DAYS)]
        last = {f"{day.date()}.md": day for day in days}
        older = [name for name in _list_names(files, "memory") if _DAY.fullmatch(name)]
        for name in sorted({*last, *older}):
            limits = (0.0, 0.0)
            if name in last:
                end = last[name] + timedelta(days=1)
                limits = (last[name].timestamp(), end.timestamp())
            sheet = Sheet(
                f"memory/{name}",
                "conversations",
                title=name.removesuffix(".md"),
                note="What conversations were about.",
                log=True,
            )
            yield NotesFile(
                sheet=sheet,
                scope="user",
                owner=OWNER_NAME,
                kind="summary",
                around="day",
                retention="candidate",
                day=limits,
            )

    async def _sync_file(self, file: NotesFile, agent: str, files: Workspace) -> int:
        """Returns how many facts came or went."""
        path = file.sheet.path
        real = await anyio.to_thread.run_sync(os.path.realpath, f"{files.roots[0][0]}/{path}")
        stored = await queries.read_file_base(self._ground.store, real)
        base = _decode_base(stored) if stored is not None else Base()
        facts = await self._load_facts(file, agent, base)
        to_show = {}
        for key, fact in facts.shown.items():
            if rendered := _render_fact(file.sheet, fact):
                to_show[key] = rendered
        stays = {*facts.ids, *facts.keys} if file.sheet.log else facts.ids.keys()

        for _ in range(5):  # somebody may be writing the file
            text, place = await anyio.to_thread.run_sync(_read_text, files, path)
            label = join_labels(
                (await self._read_label(agent, place), Label("tool_local", source=f"file {path}"))
            )
            trusted = label.integrity != "untrusted" and not label.by
            # Deleting a file forgets nothing: then no line counts as deleted.
            last = base if text is not None else Base(base.ours, (), base.version)
            done = merge_sheet(file.sheet, text or "", last, to_show, stays, trusted)
            if done.text is None:
                break
            written = await anyio.to_thread.run_sync(
                replace_if_unchanged,
                files,
                path,
                text.encode() if text is not None else None,
                done.text.encode(),
                partial(self._mark_private, files, path),
            )
            if written:
                break
        else:
            return 0
        if text is None:
            kept = Base(done.base.ours, base.theirs, done.base.version)
            done = replace(done, base=kept)
        return await self._save_changes(file, real, done, base=base, label=label, facts=facts)

    def _mark_private(self, files: Workspace, path: str, real: str) -> None:
        """Label a private file for its owners also when a link leads out of the private folder. It
        blocks."""
        root = files.roots[0][0]
        if not is_private(root, f"{root}/{path}") or is_private(root, real):
            return
        label = Label("tool_local", OWNER_READERS, f"file {path}")
        change = set_label(encode_path(real), label, "", self._ground.clock.now())
        anyio.from_thread.run(self._ground.store.change, (change,))

    async def _read_label(self, agent: str, place: Place) -> Label:
        """The label of what was read at this place, also while somebody writes it."""
        return (await load_scope_marks(await self._agent(agent).workspace.open_scope())).file_label(
            place
        )

    async def _save_changes(
        self, file: NotesFile, real: str, done: Merge, *, base: Base, label: Label, facts: _Facts
    ) -> int:
        """Write what the file says now, and the facts that came and went with it. A fact that was
        edited keeps its owner."""
        now = self._ground.clock.now()
        held = label.integrity == "untrusted" or bool(label.by)
        place = sha256(real.encode(errors="surrogateescape")).hexdigest()[:12]
        if done.dropped:
            log.warning(
                "%s has too many entries: %d of them are not in memory.", real, done.dropped
            )

        changes = [
            close_fact(facts.ids[key], now, f"taken out of {file.sheet.path}")
            for key in done.closed
            if key in facts.ids
        ]
        keys = {}
        for new in done.new:
            kind = file.kind if new.ours else file.around
            keys[new.key] = f"{kind}:{place}:{new.key}"
            before = facts.shown.get(new.replaces)
            durable = new.ours and file.kind != "summary"
            fact = NewFact(
                text=self._ground.redact(new.text),
                scope=before.scope if before else file.scope,
                owner=before.owner if before else file.owner,
                label=label,
                writer="file",
                key=keys[new.key],
                retention="durable" if durable else file.retention,
                pinned=new.ours and file.always and not held,
                held=held,
                replaces=(facts.ids[new.replaces],) if new.replaces in facts.ids else (),
            )
            changes += add_fact(fact, now, self._ground.settings().config.memory.keeping)

        here = _with_final_keys(done.base, keys)
        if here != base:
            changes.append(queries.set_file_base(real, msgspec.json.encode(here), now))
        if changes:
            await self._ground.store.change(changes)
        return len(done.new) + len(done.closed)

    async def _load_facts(self, file: NotesFile, agent: str, base: Base) -> _Facts:
        """The facts that the marked part is to show, and those that the file has become."""
        known = await queries.facts_by_key(
            self._ground.store, [entry.key for entry in (*base.ours, *base.theirs)]
        )
        shown = await self._load_shown_facts(file, agent)
        ids = {key: fact.id for key, fact in shown.items()}
        ids |= {each.key: each.id for each in known if each.holds}
        return _Facts(shown=shown, ids=ids, keys=[each.key for each in known])

    async def _load_shown_facts(self, file: NotesFile, agent: str) -> dict[str, Fact]:
        if not file.sheet.section:
            return {}
        store = self._ground.store
        owners = [("user", OWNER_NAME), ("agent", agent)]
        if file.always:
            owners.append(("global", ""))
            found = queries.pinned_facts(store)
        else:
            found = await queries.facts_of_kind(store, owners, file.kind)

        begin, end = file.day
        shown = {}
        for fact in found:
            if (fact.scope, fact.owner) not in owners:
                continue
            if file.sheet.log and not begin <= fact.at < end:
                continue
            if fact.label.integrity != "untrusted" and may_see(fact.label, _READERS):
                shown[fact.key] = fact
        return shown

    def _today(self) -> str:
        zone = ZoneInfo(self._ground.settings().config.timezone)
        return datetime.fromtimestamp(self._ground.clock.now(), zone).date().isoformat()


def _render_fact(sheet: Sheet, fact: Fact) -> RenderedFact | None:
    source = f"session {fact.session}" if fact.session else fact.label.source or fact.writer
    return render_fact(sheet, fact.text, source, fact.confidence)


def _same_labels(one: NotesVersion, other: NotesVersion | None) -> bool:
    """Whether only facts may have changed between these."""
    return other is not None and replace(one, facts=other.facts) == other


def _with_final_keys(base: Base, keys: Mapping[str, str]) -> Base:
    """With the keys under which the facts are stored, in place of those within the file."""
    ours = tuple(replace(entry, key=keys.get(entry.key, entry.key)) for entry in base.ours)
    theirs = tuple(replace(entry, key=keys.get(entry.key, entry.key)) for entry in base.theirs)
    return Base(ours, theirs, base.version)


def render_index(reflected: Iterable[ReflectedSession]) -> bytes:
    """The sessions that were reflected on, with what came of each, as JSON."""
    sessions = {}
    for each in reflected:
        at = datetime.fromtimestamp(each.at, UTC).isoformat(timespec="seconds")
        sessions[each.session] = {"status": each.status, "processed_at": at, "events": each.n}
        if each.note:
            sessions[each.session]["summary"] = each.note
    return msgspec.json.format(msgspec.json.encode({"sessions": sessions}), indent=2) + b"\n"


def _list_names(files: Workspace, folder: str) -> Sequence[str]:
    try:
        names = [
            each.name for each in files.list(folder, MOST_FILES) if not each.name.startswith(".")
        ]
    except ToolError:
        return ()
    return [name for name in names if name.isprintable() and PurePosixPath(name).name == name]


def _stat_version(files: Workspace, path: str) -> tuple[int, ...]:
    try:
        entry = files.stat(path)
    except ToolError:
        return ()
    return (entry.size_bytes, int(entry.modified_s * 1e6))


def _read_text(files: Workspace, path: str) -> tuple[str | None, Place]:
    """The text of a file, and where it was read; None where there is none. Raises ToolError,
    UnicodeDecodeError."""
    data, place = _read_bytes(files, path)
    return None if data is None else data.decode(), place


def _read_bytes(files: Workspace, path: str) -> tuple[bytes | None, Place]:
    try:
        found = files.read_opened(path, FILE_BYTES + 1)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None, Place(f"{files.roots[0][0]}/{path}", path)
        raise
    if len(found.data) > FILE_BYTES:
        raise ToolError(f"it is larger than {FILE_BYTES:,} bytes")
    return found.data, found.place
