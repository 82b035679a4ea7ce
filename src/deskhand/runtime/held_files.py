"""What is held back from prompts, and why; and how an owner approves it, so that it speaks as it is
now.

An approval binds: what was approved is held back from everybody as soon as it is another. Files
that we write ourselves, memories and knowledge, are let in and not bound, since they change with
every conversation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio.to_thread
import msgspec

from ..assembly.knowledge_index import FOLDER as KNOWLEDGE
from ..assembly.prompt import MEMORY_FILE, WORKSPACE_FILES, day_files
from ..assembly.tools import skills_of
from ..config.config import Settings, workspace_of
from ..customtools.files import FOLDERS as PYTHON_FOLDERS
from ..customtools.files import is_in_reviewed_folder
from ..jobs.heartbeat import FILE as HEARTBEAT_FILE
from ..store.base import Store
from ..tools.approved import (
    MAX_BYTES,
    MAX_FILES,
    Bound,
    Content,
    approval_rows,
    bound_from_rows,
    read_content,
)
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.names import display_name
from ..tools.queries import (
    Approval,
    approved_digests,
    drop_approval,
    list_approvals,
    list_file_labels,
)
from ..types.errors import ConfigError, DeskhandError, Refused
from ..types.labels import Label
from ..types.marked_texts import mark_text
from ..workspace.quarantine import Quarantine, is_held_back

OWN_FOLDERS = ("memory", "knowledge")
"""Folders of a workspace whose files we write ourselves."""
TEXT_CHARS = 200_000


class HeldFile(msgspec.Struct, frozen=True):
    """A file or folder, by its real path, that would be heard by `agent` and is held back. `why` is
    a clause."""

    path: str
    agent: str
    why: str


class HeldFileView(msgspec.Struct, frozen=True):
    """What lies at a real path, for an owner to look at: `digest` is what an approval binds, ''
    where nothing there can be approved; then `problem` says why. `text` has what nobody sees
    written out. `bound`: an approval would bind."""

    path: str
    agent: str
    text: str
    digest: str = ""
    problem: str = ""
    why: str = ""
    bound: bool = True


class Marks(msgspec.Struct, frozen=True):
    """The labels of files and the approvals, by real path."""

    labels: dict[str, Label]
    approvals: dict[str, Approval]


class Approving:
    """Over the files of all agents of these settings."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store

    async def list_held(self, now: float) -> list[HeldFile]:
        """All that is held back from owners, in order. Raises StoreError."""
        marks = await self._load_marks()
        quarantine = Quarantine(self._store)
        quarantine.refresh()
        held = await anyio.to_thread.run_sync(quarantine.find_held)

        def scan() -> list[HeldFile]:
            found = dict[str, HeldFile]()
            for agent in self._settings.agents:
                for path in self._prompt_paths(agent, now):
                    if path not in found and (
                        is_held_back(held, path) or self._is_unreviewed(path, agent, held.bound)
                    ):
                        found[path] = HeldFile(path, agent, self._why_held(path, marks, held.bound))
            for path in marks.approvals:
                if held.bound.is_changed(path) and os.path.realpath(path) not in map(
                    os.path.realpath, found
                ):
                    found[path] = HeldFile(path, "", self._why_held(path, marks, held.bound))
            return sorted(found.values(), key=lambda each: (each.agent, each.path))

        return await anyio.to_thread.run_sync(scan)

    async def view(self, path: str, agent: str = "") -> HeldFileView:
        """What lies there. A file in the folder of a skill stands for the whole skill. Raises
        Refused."""
        marks = await self._load_marks()
        digests = {each.path: each.digest for each in marks.approvals.values()}

        def read() -> HeldFileView:
            place, whose, bound = self._resolve(path, agent)
            why = self._why_held(place, marks, bound_from_rows(digests))
            content = read_content(place)
            if content is None:
                return HeldFileView(
                    place, whose, "", problem=_why_not_approvable(place), why=why, bound=bound
                )
            return HeldFileView(
                place, whose, _render_content(place, content), content.digest.hex(), "", why, bound
            )

        return await anyio.to_thread.run_sync(read)

    async def approve(self, seen: HeldFileView, by: str, now: float) -> None:
        """Let in what was seen, as it was seen. Raises Refused where it cannot be approved, or is
        another by now."""
        content = await anyio.to_thread.run_sync(read_content, seen.path)
        if not seen.digest:
            raise Refused(
                mark_text("{file} cannot be approved: {problem_text}").format(
                    file=seen.path, problem_text=seen.problem
                )
            )
        if content is None or content.digest.hex() != seen.digest:
            raise Refused(
                mark_text(
                    "{file} was changed just now; review it again: deskhand held show {path}"
                ).format(file=seen.path, path=seen.path)
            )
        rows = approval_rows(seen.path, content.digest, by, now)
        if not seen.bound:
            rows = (*rows, drop_approval(seen.path))
        await self._store.change(rows)

    async def revoke(self, path: str, agent: str = "") -> bool:
        """Take an approval back, also that of a folder around it; what lies there is heard as it is
        from then on. False: nothing was approved there."""
        approved = await approved_digests(self._store)
        paths = await anyio.to_thread.run_sync(self._candidate_paths, path, agent)
        found = [each for each in approved if _contains(each, *paths)]
        if found:
            await self._store.change([drop_approval(each) for each in found])
        return bool(found)

    async def _load_marks(self) -> Marks:
        labels = await list_file_labels(self._store)
        approvals = await list_approvals(self._store)
        return Marks(labels, {each.path: each for each in approvals})

    def _prompt_paths(self, agent: str, now: float) -> Iterator[str]:
        """The paths of all that an agent would hear, or have as a tool, if nothing held it back."""
        with suppress(DeskhandError, OSError):
            workspace = workspace_of(self._settings, agent)
            days = day_files(now, ZoneInfo(self._settings.config.timezone))
            for name in (*WORKSPACE_FILES, HEARTBEAT_FILE, MEMORY_FILE, *days):
                if os.path.lexists(workspace / name):
                    yield str(workspace / name)
            yield from (
                str(workspace / KNOWLEDGE / name) for name in _list_names(workspace / KNOWLEDGE)
            )
            for skill in skills_of(self._settings, agent).find().values():
                if skill.source != "bundled":
                    yield str(skill.folder)
            for folder in PYTHON_FOLDERS:
                yield from (
                    str(workspace / folder / name)
                    for name in _list_names(workspace / folder, ".py")
                )

    def _is_unreviewed(self, path: str, agent: str, bound: Bound) -> bool:
        """Whether it is Python that waits for a first review: its tools, or what they import."""
        real = os.path.realpath(path)
        is_tools = (
            is_in_reviewed_folder(workspace_of(self._settings, agent), real)
            and real.endswith(".py")
            and not real.endswith("/__init__.py")  # nothing imports it
        )
        return is_tools and not bound.covers(real) and Path(real).is_file()

    def _why_held(self, path: str, marks: Marks, bound: Bound) -> str:
        real = os.path.realpath(path)
        if bound.is_changed(real) or bound.is_changed(path):
            for each in marks.approvals.values():
                if _contains(each.path, real, path):
                    at = _format_time(each.at, self._settings)
                    return f"changed since {each.by} approved it on {at}"
            return "changed since it was approved"
        if bound.covers(real):
            return ""
        inside = [
            label
            for each, label in marks.labels.items()
            if _contains(real, each, each) or each == path
        ]
        sources = sorted(
            {label.source or "outside" for label in inside if label.integrity == "untrusted"}
        )
        if sources:
            return f"content from outside: {', '.join(map(display_name, sources[:3]))}"
        people = sorted({each for label in inside for each in label.by})
        if people:
            return f"written by {', '.join(map(display_name, people[:3]))}"
        if inside:
            return "written for others"
        if any(self._is_unreviewed(path, agent, bound) for agent in self._settings.agents):
            return "a Python skill that nobody has reviewed yet"
        return ""

    def _resolve(self, path: str, agent: str) -> tuple[str, str, bool]:
        """The path that an approval of this would bind, whose it is, and whether it binds. Raises
        Refused."""
        for place in self._candidate_paths(path, agent)[1:]:
            if not os.path.lexists(place):
                continue
            for whose in self._agents(agent):
                workspace = str(workspace_of(self._settings, whose))
                skills = skills_of(self._settings, whose).find().values()
                folders = [os.path.realpath(each.folder) for each in skills]
                skill = next(
                    (each for each in folders if _contains(each, place, os.path.realpath(place))),
                    "",
                )
                if skill:
                    return skill, whose, True
                if place.startswith(f"{workspace}/"):
                    inner = place[len(workspace) + 1 :]
                    ours = inner.split("/")[0] in OWN_FOLDERS and not f"{inner}/".startswith(
                        tuple(f"{f}/" for f in PYTHON_FOLDERS)
                    )
                    return place, whose, not ours
            raise Refused(
                f"{path!r} is not in a workspace or a folder of skills, so it cannot be held back"
            )
        raise Refused(
            f"there is no file {path!r}; list the files that are held back with: deskhand held"
        )

    def _candidate_paths(self, path: str, agent: str) -> list[str]:
        """The real paths that somebody may mean: from where they are, and from a workspace."""
        tops = [Path.cwd()]
        with suppress(ConfigError):
            tops += [workspace_of(self._settings, each) for each in self._agents(agent)]
        places = [top / Path(path).expanduser() for top in tops]
        return [path, *(f"{os.path.realpath(place.parent)}/{place.name}" for place in places)]

    def _agents(self, agent: str) -> Sequence[str]:
        return (agent,) if agent else self._settings.agents


def _list_names(folder: Path, ending: str = "") -> list[str]:
    with suppress(OSError):
        return sorted(each.name for each in folder.iterdir() if each.name.endswith(ending))
    return []


def _contains(folder: str, *paths: str) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for path in paths)


def _format_time(at: float, settings: Settings) -> str:
    return datetime.fromtimestamp(at, ZoneInfo(settings.config.timezone)).strftime("%Y-%m-%d %H:%M")


def _why_not_approvable(path: str) -> str:
    if Path(path).is_symlink():
        return mark_text("it is a link; approve its target, or replace the link with the file")
    return mark_text(
        "it contains links or special files, or more than {files_number} files or "
        "{size_number} MB, or it is being changed right now"
    ).format(files_number=MAX_FILES, size_number=MAX_BYTES >> 20)


def _render_content(path: str, content: Content) -> str:
    """All that is approved, file by file, as text; of what is none its size and digest. What was
    changed since the look is said to be that."""
    shown = list[str]()
    for inner in sorted(content.files):
        if inner:
            shown.append(f"--- {'/'.join(map(display_name, inner.split('/')))}")
        try:
            data = Path(path, inner).read_bytes()
        except OSError:
            data = b""
        if sha256(data).digest() != content.files[inner]:
            shown.append("[changed while it was read]")
        else:
            shown.append(_render_bytes(data))
    return "\n".join(shown)


def _render_bytes(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"[no text: {len(data):,} bytes, SHA-256 {sha256(data).hexdigest()}]"
    if len(text) <= TEXT_CHARS:
        return escape_invisible(text)
    return (
        f"{escape_invisible(text[:TEXT_CHARS])}\n[{len(text) - TEXT_CHARS:,} more characters: read "
        "them in the file]"
    )
