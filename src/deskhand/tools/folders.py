"""Folders of the workspace: what lies in them, and what their files say."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

import anyio.to_thread
import msgspec

from ..types.clock import Clock
from ..types.errors import ToolError
from ..types.labels import Label
from .base import Context, Done
from .define import tool
from .label_marks import LabelMarks, label_of, marks_of
from .names import alike, shown_name
from .output import shown
from .paths import Entry, Place, Workspace

HIDDEN = {"node_modules", "__pycache__"}
FOLDER_ENTRIES = 500
LISTED = 2000
"""What is listed of one folder, and in all."""
DEEPEST = 8
SEARCH_FILE_BYTES = 512 * 1024
SEARCH_HITS = 200
SEARCH_FILES = 20_000
SEARCH_S = 20.0
HIT_CHARS = 300


@tool(effect="none")
async def list_files(context: Context, path: str = ".", depth: int = 2) -> Done:
    """List a folder: folders first, then files with their sizes. Hidden names are left out; links
    are not followed.

    path: the folder
    depth: how many levels
    """
    walk = _Walk(context.reach.files)
    await anyio.to_thread.run_sync(
        walk.run, path, max(1, min(depth, DEEPEST)), abandon_on_cancel=True
    )
    label = await label_of(walk.places, context)  # a name is words too
    return await shown("\n".join(walk.lines) or "[the folder is empty]", context, label)


@tool(effect="none")
async def search_files(text: str, context: Context, path: str = ".") -> Done:
    """Find lines that contain a text, without regard to case, and files whose name does.

    text: what to look for, as it stands; no pattern
    path: a folder or a file to look in
    """
    if not text.strip():
        raise ToolError("say what to look for")
    if "\n" in text:
        raise ToolError("search for one line at a time")
    search = _Search(context.reach.files, context.clock, text.casefold())
    label = await search.over(path, context)
    return await shown(
        "\n".join(search.hits) or f"nothing contains {text!r}", context, label, search.note
    )


class _Walk:
    """The lines of a listing. What cannot be listed beneath is passed over."""

    def __init__(self, files: Workspace) -> None:
        self._files = files
        self.lines: list[str] = []
        self.places: list[Place] = []

    def run(self, path: str, depth: int, indent: str = "") -> None:
        listed = self._files.listed(path, FOLDER_ENTRIES * 4)
        found = listed.entries
        entries = [entry for entry in found if not _hidden(entry)]
        twins = alike(entry.name for entry in found)
        for entry in sorted(
            entries[:FOLDER_ENTRIES],
            key=lambda entry: (entry.kind != "folder", entry.name.casefold()),
        ):
            if len(self.lines) >= LISTED:
                if self.lines[-1] != _MORE:
                    self.lines.append(_MORE)
                return
            self.places.append(listed.place_of(entry))
            self._add(path, entry, depth, indent, twins.get(entry.name, ""))
        if len(entries) > FOLDER_ENTRIES:
            self.lines.append(
                f"{indent}[and more: only {FOLDER_ENTRIES} names of a folder are listed]"
            )

    def _add(self, path: str, entry: Entry, depth: int, indent: str, twin: str) -> None:
        line = indent + shown_name(entry.name)
        note = f"  {twin}" if twin else ""
        if entry.kind != "folder":
            size = (
                "(link)"
                if entry.kind == "link"
                else f"{entry.size_bytes} bytes"
                if entry.kind == "file"
                else "(other)"
            )
            self.lines.append(f"{line}  {size}{note}")
            return
        self.lines.append(f"{line}/{note}")
        if depth > 1:
            try:
                self.run(f"{path}/{entry.name}", depth - 1, indent + "  ")
            except ToolError as error:
                self.lines.append(f"{indent}  [not listed: {error}]")


_MORE = f"[and more: only {LISTED} names are listed; list a folder of these]"


class Look:
    """Looks through files, the nearest first, for as long as a person would wait. `hits` are the
    lines that were found, `places` where each of them stands, `note` says what was left out."""

    instead = ""

    def __init__(self, files: Workspace, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._until = clock.monotonic() + SEARCH_S
        self.hits: list[str] = []
        self.places: list[Place] = []
        self.note = ""

    async def over(self, path: str, context: Context) -> Label:
        """Look over a file, or those of a folder, for who reads this conversation. What is not for
        them is left out: as the marks were, and as they are when it was read. Returns the label of
        what was found. Raises ToolError."""
        before = await marks_of(context)
        run = partial(self.run, path, lambda place: before.closed(place, context))
        await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
        return await anyio.to_thread.run_sync(self._judged, await marks_of(context), context)

    def _judged(self, marks: LabelMarks, context: Context) -> Label:
        found = dict.fromkeys(self.places)
        closed = {place for place in found if marks.closed(place, context)}
        kept = [
            (hit, place)
            for hit, place in zip(self.hits, self.places, strict=True)
            if place not in closed
        ]
        self.hits = [hit for hit, _ in kept]
        self.places = [place for _, place in kept]
        return marks.told(dict.fromkeys(self.places))

    def wants(self, place: str) -> bool:
        """Whether to look into this file."""
        return True

    def read(self, place: str, text: str) -> None:
        """Add the hits in the text of a file, about SEARCH_HITS at most."""
        raise NotImplementedError

    def run(self, path: str, closed: Callable[[Place], bool] = lambda place: False) -> None:
        """Look into a file, or into those of a folder, but for those that are `closed`. Raises
        ToolError."""
        large = 0
        top = self._files.stat(path)
        one = iter([(path, msgspec.structs.replace(top, name=path), self._files.found(path))])
        found = beneath(self._files, path) if top.kind == "folder" else one
        for looked, (name, entry, place) in enumerate(found, 1):
            if not closed(place) and self.wants(name):
                self._note(place)
                if entry.size_bytes <= SEARCH_FILE_BYTES:
                    self._look_into(name)
                else:
                    large += 1
            if len(self.hits) > SEARCH_HITS:
                self.hits = self.hits[:SEARCH_HITS]
                self.places = self.places[:SEARCH_HITS]
                self.note = (
                    f"\n[only the first {SEARCH_HITS} hits; look in one folder, or for more]"
                )
                break
            if looked >= SEARCH_FILES or self._clock.monotonic() > self._until:
                self.note = f"\n[stopped after {looked} files; look in one folder]"
                break
        if large:
            self.note += (
                f"\n[{large} files over {SEARCH_FILE_BYTES >> 10} KB were not looked "
                f"into{self.instead}]"
            )

    def _look_into(self, name: str) -> None:
        try:
            found = self._files.read_opened(name, SEARCH_FILE_BYTES)
        except ToolError:
            return
        if b"\0" not in found.data[:1024]:
            self.read(name, found.data.decode(errors="replace"))
            self._note(found.place)

    def _note(self, place: Place) -> None:
        """The latest hits stand there."""
        self.places += [place] * (len(self.hits) - len(self.places))


class _Search(Look):
    """Looks for a text in names and lines."""

    instead = "; use grep in shell"

    def __init__(self, files: Workspace, clock: Clock, wanted: str) -> None:
        super().__init__(files, clock)
        self._wanted = wanted

    def wants(self, place: str) -> bool:
        if self._wanted in place.rpartition("/")[2].casefold():
            self.hits.append(shown_name(place))
        return True

    def read(self, place: str, text: str) -> None:
        for number, line in enumerate(text.split("\n"), 1):
            if self._wanted in line.casefold():
                self.hits.append(
                    f"{shown_name(place)}:{number}: {self._around(line.rstrip(chr(13)))}"
                )
                if len(self.hits) > SEARCH_HITS:
                    return

    def _around(self, line: str) -> str:
        """The line, or the part of a long one in which the text stands."""
        if len(line) <= HIT_CHARS:
            return line
        start = max(0, line.casefold().find(self._wanted) - HIT_CHARS // 3)
        return ("…" if start else "") + line[start : start + HIT_CHARS] + "…"


def beneath(files: Workspace, path: str) -> Iterator[tuple[str, Entry, Place]]:
    """The files in a folder, by their paths, the nearest first; those with hidden names are left
    out."""
    todo = deque([path])
    while todo:
        folder = todo.popleft()
        try:
            listed = files.listed(folder, SEARCH_FILES)
        except ToolError:
            if folder == path:
                raise
            continue  # it went away, or may not be read
        for entry in listed.entries:
            name = entry.name if folder == "." else f"{folder}/{entry.name}"
            if entry.kind == "folder" and not _hidden(entry):
                todo.append(name)
            elif entry.kind == "file" and not _hidden(entry):
                yield name, entry, listed.place_of(entry)


def _hidden(entry: Entry) -> bool:
    return entry.name.startswith(".") or entry.name in HIDDEN


TOOLS = (list_files, search_files)
