"""The index of the knowledge of an agent: a line for each topic, so that it knows what it can look
up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from ..skills.skill import split_front_matter
from ..tools import tree
from ..tools.approved import MAX_BYTES, NO_APPROVALS
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.names import describe_lookalikes, display_name
from ..tools.paths import Place, Workspace
from ..types.clock import Clock
from ..types.errors import ToolError
from ..workspace.quarantine import NOTHING_HELD, HeldBack, is_held_back
from .file_cache import strip_comments

FOLDER = "knowledge"
INDEX_FILES = ("context.md", "index.md")
"""A topic may be a folder: the first of these files that exists says what it contains."""
MOST_TOPICS = 300
LINE_CHARS = 120
INDEX_CHARS = 8_000
HEAD_BYTES = 4_096
RECHECK_S = 1.0
_NO_PLACE = Place("")
_INTRODUCTION = (
    "# Knowledge\nWhat is known of these lies in files. Read the file before you deal with its "
    "topic."
)


class Knowledge:
    """The topics in the `knowledge` folder of a workspace."""

    def __init__(self, workspace: Path, clock: Clock) -> None:
        self._held: HeldBack = NOTHING_HELD
        self._workspace = str(workspace)
        self._folder = f"{workspace}/{FOLDER}"
        self._clock = clock
        self._watched: dict[str, tuple[int, ...]] = {}
        self._looked_s = 0.0
        self._index = ""

    def render_index(self, held: HeldBack = NOTHING_HELD) -> str:
        """The lines for the prompt, without what is `held` back; '' when there is no topic. A new,
        removed or replaced topic is seen at once, and an edited one within LOOK_S, as there may be
        hundreds."""
        now = self._clock.monotonic()
        if held is not self._held and held != self._held:
            self._held = held
            self._watched = {}
        fresh = (
            self._watched
            and now - self._looked_s < RECHECK_S
            and _fingerprint(self._folder) == self._watched[self._folder]
        )
        if not fresh:
            self._looked_s = now
            if not self._watched or any(
                _fingerprint(path) != looked for path, looked in self._watched.items()
            ):
                self._watched = {path: _fingerprint(path) for path in self._watched_paths()}
                self._index = self._read()  # and notes of what it has read that it is that
        return self._index

    def _watched_paths(self) -> Iterator[str]:
        """A value that changes when a topic comes, goes or gets another first line."""
        yield self._folder
        with suppress(OSError), tree.scan_folder(self._folder) as inside:
            for path in sorted(f"{self._folder}/{entry.name}" for entry in inside)[:MOST_TOPICS]:
                yield path
                if not path.endswith(".md"):
                    yield from (f"{path}/{head}" for head in INDEX_FILES)

    def _read(self) -> str:
        lines = [_INTRODUCTION]
        size = 0
        with suppress(ToolError), Workspace(self._workspace) as files:
            names = [each.name for each in files.list(FOLDER, MOST_TOPICS)]
            twins = describe_lookalikes(names)
            found = [(name, self._read_topic(files, name, twins.get(name, ""))) for name in names]
            # Asked after it was read.
            heard = [
                (name, line, place)
                for name, (line, place) in found
                if line and self._is_unchanged(place)
            ]
            topics = [
                line
                for name, line, place in heard
                if not is_held_back(self._held, self._full_path(name), place.inode)
            ]
            for number, line in enumerate(topics):
                size += len(line)
                if size > INDEX_CHARS:
                    lines.append(f"[and {len(topics) - number} more: list_files {FOLDER}]")
                    break
                lines.append(line)
        return "\n".join(lines) if len(lines) > 1 else ""

    def _is_unchanged(self, place: Place) -> bool:
        """Whether the files that were read are still there. Otherwise everything is read again next
        time."""
        self._watched[place.asked] = (place.changed_ns, place.inode)
        return place.is_at(place.asked)

    def _full_path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _read_topic(self, files: Workspace, name: str, twin: str) -> tuple[str, Place]:
        """The line of one topic, and where that was read; '' where this is none, or is not what was
        approved. What nobody could read by its name is none."""
        flat = name.endswith(".md")
        bound = self._held.bound
        if name.startswith(".") or not name.isprintable():
            return "", _NO_PLACE
        for path in (name,) if flat else tuple(f"{name}/{head}" for head in INDEX_FILES):
            with suppress(ToolError):
                read = files.read_opened(
                    f"{FOLDER}/{path}", HEAD_BYTES if bound is NO_APPROVALS else MAX_BYTES
                )
                whole = f"{self._folder}/{path}"
                if not self._held.allows(whole, sha256(read.data).digest()):
                    return "", _NO_PLACE
                first = _first_line(read.data[:HEAD_BYTES])
                said = f": {first}" if first else ""
                note = f" {twin}" if twin else ""
                line = (
                    f"- {display_name(name.removesuffix('.md'))}{said} "
                    f"({FOLDER}/{display_name(path)}){note}"
                )
                return line, replace(read.place, asked=whole)
        return "", _NO_PLACE


def _first_line(data: bytes) -> str:
    text = escape_invisible(
        strip_comments(split_front_matter(data.decode("utf-8-sig", "replace"))[1])
    )
    return next((plain for line in text.split("\n") if (plain := line.lstrip("# ").strip())), "")[
        :LINE_CHARS
    ]


def _fingerprint(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)  # noqa: PTH116 -- before every model call, and a third of the cost
    except OSError:
        return 0, 0
    return status.st_ctime_ns, status.st_ino
