"""What files of code define, and where a name is used: enough to find one's way, without running
anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..types.clock import Clock
from ..types.errors import ToolError
from .base import Context, Done
from .define import tool
from .folders import MAX_HIT_CHARS, MAX_HITS, Look
from .languages import Symbol, detect_language, find_definitions, find_uses
from .names import display_name
from .output import make_bounded_result
from .paths import Workspace

_NAME = re.compile(r"[^\W\d][\w$]*|[\w$]+")


@tool(effect="none")
async def list_symbols(context: Context, path: str = ".", name: str = "") -> Done:
    """List what files of code define, with the line of each: functions, classes, methods, types.

    path: a file or a folder
    name: only names that contain this, without regard to case
    """

    def find_symbols(place: str, text: str) -> Iterator[Symbol]:
        wanted = name.casefold()
        return (
            symbol for symbol in find_definitions(place, text) if wanted in symbol.name.casefold()
        )

    look = _Look(context.reach.files, context.clock, find_symbols)
    label = await look.search(path, context)
    nothing = f"no definition of a name with {name!r} found" if name else "no definitions found"
    return await make_bounded_result("\n".join(look.hits) or nothing, context, label, look.note)


@tool(effect="none")
async def find_references(name: str, context: Context, path: str = ".") -> Done:
    """Find the lines of code that use a name, as a whole word; its definitions are marked.

    name: a function, class, method or variable
    path: a file or a folder to look in
    """
    name = name.strip().removesuffix("()").rpartition(".")[2]
    if not _NAME.fullmatch(name):
        raise ToolError(f"{name!r} is not a name; to find any text, use search_files")

    look = _Look(
        context.reach.files, context.clock, lambda place, text: find_uses(place, text, name)
    )
    label = await look.search(path, context)
    found = "\n".join(look.hits) or f"no code there uses {name!r}"
    return await make_bounded_result(found, context, label, look.note)


class _Look(Look):
    """Looks into files of code."""

    def __init__(
        self, files: Workspace, clock: Clock, find: Callable[[str, str], Iterator[Symbol]]
    ) -> None:
        super().__init__(files, clock)
        self._find = find

    def is_searched(self, place: str) -> bool:
        return bool(detect_language(place))

    def add_hits(self, place: str, text: str) -> None:
        for symbol in self._find(place, text):
            said = f"{symbol.kind} {symbol.name}" if symbol.kind else symbol.name
            cut = "…" if len(said) > MAX_HIT_CHARS else ""
            self.hits.append(f"{display_name(place)}:{symbol.line}: {said[:MAX_HIT_CHARS]}{cut}")
            if len(self.hits) > MAX_HITS:
                return


TOOLS = (list_symbols, find_references)
