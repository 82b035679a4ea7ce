"""What files of code define, and where a name is used: enough to find one's way, without running anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import anyio.to_thread
import msgspec

from ..types.clock import Clock
from ..types.errors import ToolError
from .base import Context, Done
from .define import tool
from .folders import HIT_CHARS, SEARCH_FILE_BYTES, SEARCH_FILES, SEARCH_HITS, SEARCH_S, beneath, plain_name
from .languages import Symbol, definitions, language_of, uses
from .output import shown
from .paths import Workspace

_NAME = re.compile(r"[^\W\d][\w$]*|[\w$]+")


@tool(effect="none")
async def list_symbols(context: Context, path: str = ".", name: str = "") -> Done:
    """List what files of code define, with the line of each: functions, classes, methods, types.

    path: a file or a folder
    name: only names that contain this, without regard to case
    """

    def found(place: str, text: str) -> Iterator[Symbol]:
        wanted = name.casefold()
        return (symbol for symbol in definitions(place, text) if wanted in symbol.name.casefold())

    look = _Look(context.reach.files, context.clock, found)
    await anyio.to_thread.run_sync(look.run, path, abandon_on_cancel=True)
    nothing = f"nothing there defines a name with {name!r}" if name else "no definitions found"
    return await shown("\n".join(look.hits) or nothing, context, note=look.note)


@tool(effect="none")
async def find_references(name: str, context: Context, path: str = ".") -> Done:
    """Find the lines of code that use a name, as a whole word; its definitions are marked.

    name: a function, class, method or variable
    path: a file or a folder to look in
    """
    name = name.strip().removesuffix("()").rpartition(".")[2]
    if not _NAME.fullmatch(name):
        raise ToolError(f"{name!r} is no name; search_files finds any text")

    look = _Look(context.reach.files, context.clock, lambda place, text: uses(place, text, name))
    await anyio.to_thread.run_sync(look.run, path, abandon_on_cancel=True)
    return await shown("\n".join(look.hits) or f"no code there uses {name!r}", context, note=look.note)


class _Look:
    """Looks through files of code, the nearest first, for as long as a person would wait."""

    def __init__(self, files: Workspace, clock: Clock, find: Callable[[str, str], Iterator[Symbol]]) -> None:
        self._files, self._clock, self._find = files, clock, find
        self._until = clock.monotonic() + SEARCH_S
        self.hits: list[str] = []
        self.note = ""

    def run(self, path: str) -> None:
        top = self._files.stat(path)
        one = iter([(path, msgspec.structs.replace(top, name=path))])
        large = 0
        for looked, (place, entry) in enumerate(beneath(self._files, path) if top.kind == "folder" else one, 1):
            if language_of(place):
                if entry.size_bytes <= SEARCH_FILE_BYTES:
                    self._look_into(place)
                else:
                    large += 1
            if len(self.hits) > SEARCH_HITS:
                self.hits = self.hits[:SEARCH_HITS]
                self.note = f"\n[only the first {SEARCH_HITS}; look in one folder]"
                break
            if looked >= SEARCH_FILES or self._clock.monotonic() > self._until:
                self.note = f"\n[stopped after {looked} files; look in one folder]"
                break
        if large:
            self.note += f"\n[{large} files over {SEARCH_FILE_BYTES >> 10} KB were not looked into]"

    def _look_into(self, place: str) -> None:
        try:
            data = self._files.read(place, SEARCH_FILE_BYTES)
        except ToolError:
            return
        if b"\0" in data[:1024]:
            return
        for symbol in self._find(place, data.decode(errors="replace")):
            said = f"{symbol.kind} {symbol.name}" if symbol.kind else symbol.name
            cut = "…" if len(said) > HIT_CHARS else ""
            self.hits.append(f"{plain_name(place)}:{symbol.line}: {said[:HIT_CHARS]}{cut}")
            if len(self.hits) > SEARCH_HITS:
                return


TOOLS = (list_symbols, find_references)
