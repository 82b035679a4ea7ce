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
from .label_marks import LabelMarks, listing_label, load_marks
from .names import describe_lookalikes, display_name
from .output import make_bounded_result
from .paths import Entry, Place, Workspace

HIDDEN_NAMES = {"node_modules", "__pycache__"}
MAX_FOLDER_ENTRIES = 500
MAX_LISTED = 2000
"""What is listed of one folder, and in all."""
MAX_DEPTH = 8
MAX_SEARCH_FILE_BYTES = 512 * 1024
MAX_HITS = 200
MAX_SEARCH_FILES = 20_000
SEARCH_S = 20.0
MAX_HIT_CHARS = 300


@tool(effect="none")
async def list_files(context: Context, path: str = ".", depth: int = 2) -> Done:
    """List a folder without hidden names."""
    walk = _Walk(context.reach.files)
    await anyio.to_thread.run_sync(
        walk.run, path, max(1, min(depth, MAX_DEPTH)), abandon_on_cancel=True
    )
    label = await listing_label(walk.places, context)  # a name is words too
    return await make_bounded_result(
        "\n".join(walk.lines) or "[the folder is empty]", context, label
    )


@tool(effect="none")
async def search_files(text: str, context: Context, path: str = ".") -> Done:
    """Find lines and file names that contain a text; no pattern, any case."""
    if not text.strip():
        raise ToolError("the search text is empty")
    if "\n" in text:
        raise ToolError("search for one line at a time")
    search = _Search(context.reach.files, context.clock, text.casefold())
    label = await search.search(path, context)
    return await make_bounded_result(
        "\n".join(search.hits) or f"nothing contains {text!r}", context, label, search.note
    )


class _Walk:
    """The lines of a listing. What cannot be listed beneath is passed over."""

    def __init__(self, files: Workspace) -> None:
        self._files = files
        self.lines: list[str] = []
        self.places: list[Place] = []

    def run(self, path: str, depth: int, indent: str = "") -> None:
        listed = self._files.list_folder(path, MAX_FOLDER_ENTRIES * 4)
        found = listed.entries
        entries = [entry for entry in found if not _is_hidden(entry)]
        twins = describe_lookalikes(entry.name for entry in found)
        for entry in sorted(
            entries[:MAX_FOLDER_ENTRIES],
            key=lambda entry: (entry.kind != "folder", entry.name.casefold()),
        ):
            if len(self.lines) >= MAX_LISTED:
                if self.lines[-1] != _MORE_TEXT:
                    self.lines.append(_MORE_TEXT)
                return
            self.places.append(listed.place_of(entry))
            self._add_entry(path, entry, depth, indent, twins.get(entry.name, ""))
        if len(entries) > MAX_FOLDER_ENTRIES:
            self.lines.append(
                f"{indent}[and more: only {MAX_FOLDER_ENTRIES} names of a folder are listed]"
            )

    def _add_entry(self, path: str, entry: Entry, depth: int, indent: str, twin: str) -> None:
        line = indent + display_name(entry.name)
        note = f"  {twin}" if twin else ""
        if entry.kind != "folder":
            self.lines.append(f"{line}  {_describe_size(entry)}{note}")
            return
        self.lines.append(f"{line}/{note}")
        if depth > 1:
            try:
                self.run(f"{path}/{entry.name}", depth - 1, indent + "  ")
            except ToolError as error:
                self.lines.append(f"{indent}  [not listed: {error}]")


def _describe_size(entry: Entry) -> str:
    if entry.kind == "file":
        return f"{entry.size_bytes} bytes"
    return "(link)" if entry.kind == "link" else "(other)"


_MORE_TEXT = f"[and more: only {MAX_LISTED} names are listed; list a folder of these]"


class Look:
    """Looks through files, the nearest first, for as long as a person would wait. `hits` are the
    lines that were found, `places` where each of them stands, `note` says what was left out."""

    large_files_hint = ""

    def __init__(self, files: Workspace, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._until = clock.monotonic() + SEARCH_S
        self.hits: list[str] = []
        self.places: list[Place] = []
        self.note = ""

    async def search(self, path: str, context: Context) -> Label:
        """Look over a file, or those of a folder, for who reads this conversation. What is not for
        them is left out: as the marks were, and as they are when it was read. Returns the label of
        what was found. Raises ToolError."""
        before = await load_marks(context)
        run = partial(self.run, path, lambda place: before.is_hidden_from(place, context))
        await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
        return await anyio.to_thread.run_sync(self._filter_hits, await load_marks(context), context)

    def _filter_hits(self, marks: LabelMarks, context: Context) -> Label:
        found = dict.fromkeys(self.places)
        closed = {place for place in found if marks.is_hidden_from(place, context)}
        both = zip(self.hits, self.places, strict=True)
        kept = [(hit, place) for hit, place in both if place not in closed]
        self.hits = [hit for hit, _ in kept]
        self.places = [place for _, place in kept]
        return marks.listing_label(dict.fromkeys(self.places))

    def is_searched(self, place: str) -> bool:
        """Whether to look into this file."""
        return True

    def add_hits(self, place: str, text: str) -> None:
        """Add the hits in the text of a file, about SEARCH_HITS at most."""
        raise NotImplementedError

    def run(self, path: str, closed: Callable[[Place], bool] = lambda place: False) -> None:
        """Look into a file, or into those of a folder, but for those that are `closed`. Raises
        ToolError."""
        large = 0
        top = self._files.stat(path)
        one = iter([(path, msgspec.structs.replace(top, name=path), self._files.find_place(path))])
        found = iter_files(self._files, path) if top.kind == "folder" else one
        for looked, (name, entry, place) in enumerate(found, 1):
            if not closed(place) and self.is_searched(name):
                self._note_place(place)
                if entry.size_bytes <= MAX_SEARCH_FILE_BYTES:
                    self._search_file(name)
                else:
                    large += 1
            if len(self.hits) > MAX_HITS:
                self.hits = self.hits[:MAX_HITS]
                self.places = self.places[:MAX_HITS]
                self.note = (
                    f"\n[only the first {MAX_HITS} hits; search one folder, or for a longer text]"
                )
                break
            if looked >= MAX_SEARCH_FILES or self._clock.monotonic() > self._until:
                self.note = f"\n[stopped after {looked} files; search one folder]"
                break
        if large:
            self.note += (
                f"\n[{large} files over {MAX_SEARCH_FILE_BYTES >> 10} KB were not "
                f"searched{self.large_files_hint}]"
            )

    def _search_file(self, name: str) -> None:
        try:
            found = self._files.read_opened(name, MAX_SEARCH_FILE_BYTES)
        except ToolError:
            return
        if b"\0" not in found.data[:1024]:
            self.add_hits(name, found.data.decode(errors="replace"))
            self._note_place(found.place)

    def _note_place(self, place: Place) -> None:
        """The latest hits stand there."""
        self.places += [place] * (len(self.hits) - len(self.places))


class _Search(Look):
    """Looks for a text in names and lines."""

    large_files_hint = "; use grep in shell"

    def __init__(self, files: Workspace, clock: Clock, wanted: str) -> None:
        super().__init__(files, clock)
        self._wanted = wanted

    def is_searched(self, place: str) -> bool:
        if self._wanted in place.rpartition("/")[2].casefold():
            self.hits.append(display_name(place))
        return True

    def add_hits(self, place: str, text: str) -> None:
        for number, line in enumerate(text.split("\n"), 1):
            if self._wanted in line.casefold():
                self.hits.append(
                    f"{display_name(place)}:{number}: {self._excerpt_around(line.rstrip(chr(13)))}"
                )
                if len(self.hits) > MAX_HITS:
                    return

    def _excerpt_around(self, line: str) -> str:
        """The line, or the part of a long one in which the text stands."""
        if len(line) <= MAX_HIT_CHARS:
            return line
        start = max(0, line.casefold().find(self._wanted) - MAX_HIT_CHARS // 3)
        return ("…" if start else "") + line[start : start + MAX_HIT_CHARS] + "…"


def iter_files(files: Workspace, path: str) -> Iterator[tuple[str, Entry, Place]]:
    """The files in a folder, by their paths, the nearest first; those with hidden names are left
    out."""
    todo = deque([path])
    while todo:
        folder = todo.popleft()
        try:
            listed = files.list_folder(folder, MAX_SEARCH_FILES)
        except ToolError:
            if folder == path:
                raise
            continue  # it went away, or may not be read
        for entry in listed.entries:
            name = entry.name if folder == "." else f"{folder}/{entry.name}"
            if entry.kind == "folder" and not _is_hidden(entry):
                todo.append(name)
            elif entry.kind == "file" and not _is_hidden(entry):
                yield name, entry, listed.place_of(entry)


def _is_hidden(entry: Entry) -> bool:
    return entry.name.startswith(".") or entry.name in HIDDEN_NAMES


TOOLS = (list_files, search_files)
