"""The index of what an agent has written down by topics: a line for each, so that it knows what to look up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from ...skills.skill import split_front
from ...tools import tree
from ...tools.approved import MOST_BYTES, UNBOUND
from ...tools.documents.invisible import written_out
from ...tools.names import alike, shown_name
from ...tools.paths import Workspace
from ...types.clock import Clock
from ...types.errors import ToolError
from ..quarantine import NOTHING, Held, holds
from ..texts import without_comments

FOLDER = "knowledge"
HEADS = ("context.md", "index.md")
"""A topic may be a folder: one of these, the first that is there, says what it holds."""
MOST_TOPICS, LINE_CHARS, INDEX_CHARS, HEAD_BYTES = 300, 120, 8_000, 4_096
LOOK_S = 1.0
_INTRODUCTION = "# Knowledge\nWhat is known of these lies in files. Read the file before you deal with its topic."


class Knowledge:
    """The topics in the `knowledge` folder of a workspace."""

    def __init__(self, workspace: Path, clock: Clock) -> None:
        self._held: Held = NOTHING
        self._workspace, self._folder, self._clock = str(workspace), f"{workspace}/{FOLDER}", clock
        self._watched: dict[str, tuple[int, int]] = {}
        self._looked_s = 0.0
        self._index = ""

    def index(self, held: Held = NOTHING) -> str:
        """The lines for the prompt, without what is `held` back; '' without any topic. A topic that came, went or was
        replaced is seen at once, and one that was edited in its place within LOOK_S: there may be hundreds."""
        now = self._clock.monotonic()
        if held is not self._held and held != self._held:
            self._held, self._watched = held, {}
        fresh = self._watched and now - self._looked_s < LOOK_S and _looks(self._folder) == self._watched[self._folder]
        if not fresh:
            self._looked_s = now
            if not self._watched or any(_looks(path) != looked for path, looked in self._watched.items()):
                self._watched = {path: _looks(path) for path in self._paths()}
                self._index = self._read()
        return self._index

    def _paths(self) -> Iterator[str]:
        """Whatever changes when a topic comes, goes or gets another first line."""
        yield self._folder
        with suppress(OSError), tree.scanned(self._folder) as inside:
            for path in sorted(f"{self._folder}/{entry.name}" for entry in inside)[:MOST_TOPICS]:
                yield path
                if not path.endswith(".md"):
                    yield from (f"{path}/{head}" for head in HEADS)

    def _read(self) -> str:
        lines, size = [_INTRODUCTION], 0
        with suppress(ToolError), Workspace(self._workspace) as files:
            names = [each.name for each in files.list(FOLDER, MOST_TOPICS)]
            twins = alike(names)
            found = [(name, self._topic(files, name, twins.get(name, ""))) for name in names]
            topics = [topic for name, topic in found if topic and not self._is_held(name)]  # asked after it was read
            for number, line in enumerate(topics):
                size += len(line)
                if size > INDEX_CHARS:
                    lines.append(f"[and {len(topics) - number} more: list_files {FOLDER}]")
                    break
                lines.append(line)
        return "\n".join(lines) if len(lines) > 1 else ""

    def _is_held(self, name: str) -> bool:
        return holds(self._held, f"{self._folder}/{name}")

    def _topic(self, files: Workspace, name: str, twin: str) -> str:
        """The line of one topic; '' where this is none, or is not what was approved. What nobody could read by its
        name is none."""
        flat, bound = name.endswith(".md"), self._held.bound
        if name.startswith(".") or not name.isprintable():
            return ""
        for path in (name,) if flat else tuple(f"{name}/{head}" for head in HEADS):
            with suppress(ToolError):
                data = files.read(f"{FOLDER}/{path}", HEAD_BYTES if bound is UNBOUND else MOST_BYTES)
                if not self._held.allows(f"{self._folder}/{path}", sha256(data).digest()):
                    return ""
                first = _first_line(data[:HEAD_BYTES])
                said = f": {first}" if first else ""
                note = f" {twin}" if twin else ""
                return f"- {shown_name(name.removesuffix('.md'))}{said} ({FOLDER}/{shown_name(path)}){note}"
        return ""


def _first_line(data: bytes) -> str:
    text = written_out(without_comments(split_front(data.decode("utf-8-sig", "replace"))[1]))
    return next((plain for line in text.split("\n") if (plain := line.lstrip("# ").strip())), "")[:LINE_CHARS]


def _looks(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 -- before every model call, and a third of the cost
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
