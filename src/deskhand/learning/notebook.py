"""Keeps the files in which agents and people note things, and the facts that say the same,
together."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from ..agent.profile import Agent
from ..assembly.host import Host
from ..assembly.knowledge_index import FOLDER, INDEX_FILES
from ..memory.facts import (
    Fact,
    NewFact,
    Retention,
    Scope,
    add_fact,
    close_fact,
    encode_owners,
    parse_fact_row,
)
from ..memory.project import Base, Merge, merge_sheet
from ..memory.project_text import Sheet, ShownFacts, render_fact
from ..memory.project_write import replace_if_unchanged
from ..policy.gate import may_see
from ..tools.label_marks import OWNERS, is_private, marks_in, stored_as
from ..tools.paths import Place, Workspace
from ..types.commit import Change
from ..types.errors import ConfigError, StoreUnavailable, ToolError
from ..types.labels import Label, join_labels
from ..types.people import OWNER_NAME

log = logging.getLogger(__name__)

POLL_S = 2.0
FILE_BYTES = 400_000
"""A larger file is neither read nor written."""
MOST_FILES = 400
DAYS = 3
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.md")
_READERS = (OWNER_NAME, *OWNERS)
_decode_label = msgspec.json.Decoder(Label).decode
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


class Paper(msgspec.Struct, frozen=True):
    """One file: whose facts it shows and is read as. `kind` begins the key of what is written in
    its marked part, `around` of what stands around that. `always`: the marked part shows what is
    pinned."""

    sheet: Sheet
    scope: Scope
    owner: str
    kind: str = ""
    around: str = "file"
    always: bool = False
    retention: Retention = "durable"
    day: tuple[float, float] = (0.0, 0.0)


class Notebook:
    """The files of all agents. `agent` gives an agent by its name."""

    def __init__(self, ground: Host, agent: Callable[[str], Agent]) -> None:
        self._ground = ground
        self._agent = agent
        self._lock = anyio.Lock()
        self._looks: dict[str, tuple[int, ...]] = {}
        self._moved: tuple[object, ...] = ()

    async def run(self) -> None:
        """For ever: what somebody wrote becomes facts, and what is known stands in the files,
        within LOOK_S."""
        while True:
            with suppress(StoreUnavailable):
                await self.sync()
            await anyio.sleep(POLL_S)

    async def sync(self) -> str:
        """Bring files and facts together, where either has changed. Returns what came of it, '' for
        nothing. Asks no model."""
        if not self._ground.settings().config.memory.enabled:
            return ""
        async with self._lock:
            moved = (await self._ground.store.query("memory_files_moved", ()))[0]
            today = self._today()
            facts_too = moved[:1] != self._moved[:1]
            labels_too = (*moved[1:], today) != self._moved[1:]
            found: dict[str, int] = {}
            seen: set[str] = set()
            for name in self._ground.settings().agents:
                try:
                    files = (await self._agent(name).open_scope()).files
                except (ToolError, ConfigError) as error:
                    log.warning("the notes of %r are not read: %s", name, error)
                    continue
                root = files.roots[0][0]
                if root not in seen:
                    seen.add(root)
                    await self._sync_agent(
                        name, files, (facts_too or labels_too, labels_too), found
                    )
            self._moved = (moved[0], *moved[1:], today)
            return "; ".join(f"{path}: {number}" for path, number in found.items())

    async def _sync_agent(
        self, agent: str, files: Workspace, changed: tuple[bool, bool], found: dict[str, int]
    ) -> None:
        root = files.roots[0][0]
        papers = await anyio.to_thread.run_sync(lambda: list(self._list_papers(agent, files)))
        for paper in papers:
            path = f"{root}/{paper.sheet.path}"
            looks = await anyio.to_thread.run_sync(_stat_version, files, paper.sheet.path)
            shows = changed[0] and bool(paper.sheet.section)
            if looks == self._looks.get(path) and not shows and not changed[1]:
                continue
            try:
                number = await self._sync_file(paper, agent, files)
            except (ToolError, UnicodeDecodeError) as error:
                if looks != self._looks.get(path):  # else it has been said
                    why = (
                        "it is no UTF-8 text"
                        if isinstance(error, UnicodeDecodeError)
                        else str(error)
                    )
                    log.warning("%s is left as it is, and nothing in it is read: %s", path, why)
                number = 0
            if number:
                found[paper.sheet.path] = number
            self._looks[path] = (
                looks  # as it was before it was read: what somebody saved meanwhile is seen again
            )
        with suppress(ToolError):
            await self._write_index(agent, files)

    async def _write_index(self, agent: str, files: Workspace) -> None:
        """Write which conversations were looked back at, where nobody else has written that
        file."""
        store = self._ground.store
        path = f"{files.roots[0][0]}/{INDEX}"
        rows = await store.query("gathered_list", ("reflect", agent, MOST_FILES))
        before = (await anyio.to_thread.run_sync(_read_bytes, files, INDEX))[0]
        content = render_index(rows)
        if before == content or not (rows or before):
            return
        known = await store.query("memory_file_get", (path,))
        if before is not None and not (known and sha256(before).digest() in known[0][0]):
            return
        # First what it is and what it will be: cut off in between, either is known as ours.
        both = sha256(content).digest() + sha256(before or b"").digest()
        await store.change((Change("memory_file_set", (path, both, self._ground.clock.now())),))
        await anyio.to_thread.run_sync(
            replace_if_unchanged,
            files,
            INDEX,
            before,
            content,
            partial(self._mark_private, files, INDEX),
        )

    def _list_papers(self, agent: str, files: Workspace) -> Iterator[Paper]:
        mine: tuple[Scope, str] = ("user", OWNER_NAME)
        yield Paper(PINNED, *mine, "file", always=True)
        yield Paper(KNOWLEDGE, *mine, "knowledge")
        yield Paper(LEARNINGS, *mine, "learning")
        zone = ZoneInfo(self._ground.settings().config.timezone)
        today = datetime.fromtimestamp(self._ground.clock.now(), zone).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        last = {
            f"{(today - timedelta(days=n)).date()}.md": today - timedelta(days=n)
            for n in range(DAYS)
        }
        for name in sorted(
            {*last, *(name for name in _list_names(files, "memory") if _DAY.fullmatch(name))}
        ):
            begin = last.get(name)
            day = (
                (begin.timestamp(), (begin + timedelta(days=1)).timestamp())
                if begin
                else (0.0, 0.0)
            )
            title = name.removesuffix(".md")
            note = "What conversations were about."
            sheet = Sheet(f"memory/{name}", "conversations", title=title, note=note, log=True)
            yield Paper(sheet, *mine, "summary", "day", retention="candidate", day=day)
        for name in _list_names(files, FOLDER):
            flat = name.endswith(".md")
            for path in (name,) if flat else [f"{name}/{head}" for head in INDEX_FILES]:
                subject = name.removesuffix(".md")
                yield Paper(Sheet(f"{FOLDER}/{path}", subject=subject), "agent", agent)

    async def _sync_file(self, paper: Paper, agent: str, files: Workspace) -> int:
        """One file. Returns how many facts came or went by it."""
        path = paper.sheet.path
        real = await anyio.to_thread.run_sync(os.path.realpath, f"{files.roots[0][0]}/{path}")
        rows = await self._ground.store.query("memory_file_get", (real,))
        base = _decode_base(rows[0][0]) if rows else Base()
        keys = msgspec.json.encode([each.key for each in (*base.ours, *base.theirs)]).decode()
        rows = await self._ground.store.query("notes_known", (keys,))
        ids = {key: id_ for key, id_, holds in rows if holds}
        facts = await self._load_facts(paper, agent)
        show = {
            key: fact for key, each in facts.items() if (fact := _render_fact(paper.sheet, each))
        }
        known = {**{key: fact.id for key, fact in facts.items()}, **ids}
        stays = {*known, *(key for key, _, _ in rows)} if paper.sheet.log else known.keys()
        for _ in range(5):  # somebody may be writing it
            text, place = await anyio.to_thread.run_sync(_read_text, files, path)
            label = join_labels(
                (await self._read_label(agent, place), Label("tool_local", source=f"file {path}"))
            )
            trusted = label.integrity != "untrusted" and not label.by
            here = text is not None
            last = (
                base if here else Base(base.ours, (), base.version)
            )  # who deletes a file forgets nothing
            done = merge_sheet(paper.sheet, text or "", last, show, stays, trusted)
            before = text.encode() if text is not None else None
            write = partial(
                replace_if_unchanged,
                files,
                path,
                before,
                judge=partial(self._mark_private, files, path),
            )
            if done.text is None or await anyio.to_thread.run_sync(write, done.text.encode()):
                break
        else:
            return 0
        if not here:
            done = msgspec.structs.replace(
                done, base=Base(done.base.ours, base.theirs, done.base.version)
            )
        return await self._save_changes(paper, real, done, base, (label, known, facts))

    def _mark_private(self, files: Workspace, path: str, real: str) -> None:
        """What is about the owner stays theirs also where a link leads out of what is theirs. It
        blocks."""
        root = files.roots[0][0]
        if not is_private(root, f"{root}/{path}") or is_private(root, real):
            return
        label = Label("tool_local", OWNERS, f"file {path}")
        row = (stored_as(real), msgspec.json.encode(label), "", self._ground.clock.now())
        anyio.from_thread.run(self._ground.store.change, (Change("file_label_set", row),))

    async def _read_label(self, agent: str, place: Place) -> Label:
        """Whose word is in what was read there, also while somebody writes it."""
        return (await marks_in(await self._agent(agent).open_scope())).of(place)

    async def _save_changes(
        self,
        paper: Paper,
        real: str,
        done: Merge,
        base: Base,
        about: tuple[Label, Mapping[str, int], Mapping[str, Fact]],
    ) -> int:
        """Write down what the file says now, and the facts that came and went with it. What
        somebody changed stays whose it was."""
        label, known, whose = about
        now = self._ground.clock.now()
        held = label.integrity == "untrusted" or bool(label.by)
        place = sha256(real.encode(errors="surrogateescape")).hexdigest()[:12]
        names = {
            new.key: f"{paper.kind if new.ours else paper.around}:{place}:{new.key}"
            for new in done.new
        }
        if done.dropped:
            log.warning("%s has too many entries: %d are only in the file", real, done.dropped)
        changes = [
            close_fact(known[key], now, f"taken out of {paper.sheet.path}")
            for key in done.closed
            if key in known
        ]
        keeping = self._ground.settings().config.memory.keeping
        for new in done.new:
            before = whose.get(new.replaces)
            fact = NewFact(
                self._ground.redact(new.text),
                before.scope if before else paper.scope,
                before.owner if before else paper.owner,
                label,
                "file",
                names[new.key],
                retention="durable" if new.ours and paper.kind != "summary" else paper.retention,
                pinned=new.ours and paper.always and not held,
                held=held,
                replaces=tuple(known[key] for key in (new.replaces,) if key in known),
            )
            changes += add_fact(fact, now, keeping)
        said = _with_final_keys(done.base, names)
        if said != base:
            changes.append(Change("memory_file_set", (real, msgspec.json.encode(said), now)))
        if changes:
            await self._ground.store.change(changes)
        return len(done.new) + len(done.closed)

    async def _load_facts(self, paper: Paper, agent: str) -> dict[str, Fact]:
        """What the marked part is to show."""
        if not paper.sheet.section:
            return {}
        owners = [
            ("user", OWNER_NAME),
            ("agent", agent),
            *([("global", "")] if paper.always else []),
        ]
        store = self._ground.store
        if paper.always:
            rows = await store.query("notes_pinned", ())
        else:
            rows = await store.query("notes_kind", (encode_owners(owners), paper.kind))
        found = [
            fact for row in rows if ((fact := parse_fact_row(row)).scope, fact.owner) in owners
        ]
        begin, end = paper.day
        return {
            fact.key: fact
            for fact in found
            if (not paper.sheet.log or begin <= fact.at < end)
            and fact.label.integrity != "untrusted"
            and may_see(fact.label, _READERS)
        }

    def _today(self) -> str:
        zone = ZoneInfo(self._ground.settings().config.timezone)
        return datetime.fromtimestamp(self._ground.clock.now(), zone).date().isoformat()


def _render_fact(sheet: Sheet, fact: Fact) -> ShownFacts | None:
    source = f"session {fact.session}" if fact.session else fact.label.source or fact.writer
    return render_fact(sheet, fact.text, source, fact.confidence)


def _with_final_keys(base: Base, names: Mapping[str, str]) -> Base:
    """With the names that facts have for ever."""
    ours, theirs = (
        tuple(msgspec.structs.replace(each, key=names.get(each.key, each.key)) for each in entries)
        for entries in (base.ours, base.theirs)
    )
    return Base(ours, theirs, base.version)


def render_index(rows: Iterable[tuple[str, int, float, str, str]]) -> bytes:
    """Which conversations were looked back at, and what came of it (processed, too_short or error),
    as JSON."""
    sessions = {
        session: {
            "status": status,
            "processed_at": datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
            "events": n,
            **({"summary": note} if note else {}),
        }
        for session, n, at, status, note in rows
    }
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
