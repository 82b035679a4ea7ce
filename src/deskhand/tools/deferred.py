"""Deferred tools: a request only names them, and has the whole of one once the conversation has
loaded it.

`tool_search` loads them, as an option of the conversation: so the log says what is loaded, and it
is appended in the order in which it came. What stands before it in a request stays as it was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..models.base import ToolSchema, make_tool_schema
from ..models.token_estimate import CHARS_PER_TOKEN
from ..types.errors import ToolError
from ..types.options import SessionOptions
from .base import (
    Context,
    Outcome,
    Spec,
    Tool,
    Tools,
    call_label,
    is_in_mode,
    is_offered,
    make_result,
)
from .define import decode_arguments, make_schema
from .documents.invisible_characters import escape_invisible

TOOL_SEARCH = "tool_search"
MAX_FOUND = 5
MAX_NAMED = 20
MAX_CHOICES = 100
"""So many choices of tools are kept ready for conversations that are held alike."""
MAX_LINE_CHARS = 72
MAX_LIST_CHARS = 3_000
"""The first words of what a tool does; and all that is said of deferred ones. Beyond it they are
named without their hints."""
MIN_SCORE = 2
_TEXT_KEYS = frozenset({"description", "title", "$comment"})
"""What a schema says to whoever reads it."""
_WORD = re.compile(r"[^\W_]{3,}")


class DeferredArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    query: str


class ToolSearch:
    """`tool_search`: loads tools of those that are `deferred`, by name or by what they are for."""

    def __init__(self, deferred: Mapping[str, Spec]) -> None:
        self.deferred = deferred
        parameters = make_schema(DeferredArguments)
        description = (
            "Load more tools by name, or words for what they do. "
            f"There are: {render_tool_list(tuple(deferred.values()))}"
        )
        self.spec = Spec(TOOL_SEARCH, description, parameters)

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        query = decode_arguments(arguments, DeferredArguments, TOOL_SEARCH).query
        now = [spec for spec in self.deferred.values() if is_offered(spec, context.options)]
        found = search_specs(query, now)
        if not found:
            why = f"there are: {_join_names(now) or 'none now'}"
            if search_specs(query, tuple(self.deferred.values())):
                why = "more tools are available after the plan is approved"
            raise ToolError(f"no tool that you may use now matches {query[:100]!r}; {why}")
        lines = "\n".join(f"- {render_tool_line(spec)}" for spec in found)
        loaded = SessionOptions(loaded_tools=tuple(spec.name for spec in found))
        told = make_result(
            f"You can call these from your next reply on:\n{lines}", call_label(context)
        )
        return msgspec.structs.replace(told, options=loaded)


def list_offered_specs(tools: Tools, options: SessionOptions) -> list[Spec]:
    """What a conversation that is held so is offered, in this order: first what is never deferred,
    then what it has loaded. A deferred tool of a mode is offered in that mode."""
    search = tools.get(TOOL_SEARCH)
    later = search.deferred if isinstance(search, ToolSearch) else {}
    specs = {name: tool.spec for name, tool in tools.items() if is_offered(tool.spec, options)}
    first = {name for name, spec in specs.items() if name not in later or is_in_mode(spec, options)}
    offered = [spec for name, spec in specs.items() if name in first]
    loaded = [name for name in options.loaded_tools or () if name in later and name not in first]
    return [*offered, *(specs[name] for name in loaded if name in specs)]


def make_schemas(tools: Tools) -> tuple[ToolSchema, ...]:
    """What models are told of these tools."""
    schemas = list[ToolSchema]()
    for tool in tools.values():
        description = escape_invisible(tool.spec.description)
        parameters = _escape_schema(tool.spec.parameters)
        schemas.append(make_tool_schema(tool.spec.name, description, parameters))
    return tuple(schemas)


def _escape_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with what nobody sees written out in its words for people. It is walked only where
    it has such."""
    text = msgspec.json.encode(schema).decode()
    if text.isascii() or escape_invisible(text) == text:
        return schema
    return {key: _escape_value(key, value) for key, value in schema.items()}


def _escape_value(key: str, value: Any) -> Any:
    match value:
        case str() if key in _TEXT_KEYS:
            return escape_invisible(value)
        case dict():
            return {inner: _escape_value(inner, each) for inner, each in value.items()}
        case list():
            return [_escape_value("", each) for each in value]
        case _:
            return value


class ToolSchemas:
    """What models are told of the tools of one agent. Each schema is made once, and each choice of
    them once for conversations that are held alike."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._schemas = {schema.name: schema for schema in make_schemas(tools)}
        self._offered: dict[tuple[object, ...], tuple[ToolSchema, ...]] = {}

    def offered(self, options: SessionOptions) -> tuple[ToolSchema, ...]:
        """Those that a conversation with these options is offered, in the order in which they
        are."""
        key = (options.mode, options.plan_mode, options.teams, options.loaded_tools)
        found = self._offered.get(key)
        if found is None:
            if len(self._offered) >= MAX_CHOICES:
                self._offered.clear()
            specs = list_offered_specs(self._tools, options)
            found = self._offered[key] = tuple(self._schemas[spec.name] for spec in specs)
        return found


def estimate_schema_tokens(schema: ToolSchema) -> int:
    """About how many tokens it takes in a request."""
    return int(schema.size / CHARS_PER_TOKEN)


def defer_tools(tools: Mapping[str, Tool], names: frozenset[str]) -> dict[str, Tool]:
    """These tools, some of them deferred."""
    later = {name: tool.spec for name, tool in tools.items() if name in names}
    return {**tools, TOOL_SEARCH: ToolSearch(later)} if later else dict(tools)


def restrict_tools(tools: Tools, names: Sequence[str]) -> dict[str, Tool]:
    """Only these tools. Who names them has all of them from the first request on."""
    kept = {name: tool for name, tool in tools.items() if name in names}
    if len(kept) < len(tools):
        kept.pop(TOOL_SEARCH, None)
    return kept


def render_tool_list(specs: Sequence[Spec]) -> str:
    """All of them by their names: with their hints, or without where that would be too long. Those
    of a group in one word."""
    alone = [spec for spec in specs if not spec.group]
    groups = Counter(spec.group for spec in specs if spec.group)
    grouped = "".join(f", {name}* ({count} tools)" for name, count in groups.items())
    hinted = ", ".join(
        f"{spec.name} ({escape_invisible(spec.hint)})" if spec.hint else spec.name for spec in alone
    )
    named = hinted if len(hinted) <= MAX_LIST_CHARS else _join_names(alone)
    return (named + grouped).removeprefix(", ")


def render_tool_line(spec: Spec) -> str:
    """A tool in a line: its name, and the beginning of what it does."""
    line = " ".join(escape_invisible(spec.description).split())
    said = re.split(r"[.:;](?:\s|$)", line, maxsplit=1)[0]
    if len(said) > MAX_LINE_CHARS:
        said = f"{said[:MAX_LINE_CHARS].rpartition(' ')[0].rstrip(',')} …"
    return f"{spec.name}: {said}"


def search_specs(query: str, specs: Sequence[Spec]) -> list[Spec]:
    """Those whose names stand in the query; else those that its words fit best."""
    asked = {each.strip("`'\"*") for each in re.split(r"[\s,;]+", query.removeprefix("select:"))}
    named = [spec for spec in specs if spec.name in asked or (spec.group and spec.group in asked)]
    if named:
        return named[:MAX_NAMED]

    words = _extract_words(query) - _STOP_WORDS
    scored = [(_score(words, spec), spec) for spec in specs]
    scored.sort(key=lambda pair: pair[0], reverse=True)
    best = max((score for score, _ in scored), default=0)
    if best < MIN_SCORE:
        return []
    return [spec for score, spec in scored[:MAX_FOUND] if score * 2 >= best]


def _score(words: set[str], spec: Spec) -> int:
    """A word in the name counts four times, one in what it does twice, one in what its arguments
    are once."""
    told = msgspec.json.encode(spec.parameters).decode()
    in_name = _extract_words(spec.name)
    in_description = _extract_words(f"{spec.hint} {spec.description}")
    in_parameters = _extract_words(told)

    score = 0
    for word in words:
        if _has_form(word, in_name):
            score += 4
        if len(word) < 4:
            continue
        if _has_form(word, in_description):
            score += 2
        if _has_form(word, in_parameters):
            score += 1
    return score


def _has_form(word: str, words: set[str]) -> bool:
    """Whether the word is there in a longer form, or in a shorter one of more than 3 letters."""
    return any(_is_form(word, each) for each in words)


def _is_form(word: str, other: str) -> bool:
    return other.startswith(word) or (len(other) > 3 and word.startswith(other))


def _extract_words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


_STOP_WORDS = _extract_words(
    "all and any are can for from have here how into need not one some that the them this tool "
    "tools use what when where which who will with you your"
)


def _join_names(specs: Sequence[Spec]) -> str:
    names = ", ".join(spec.name for spec in specs)
    if len(names) <= MAX_LIST_CHARS:
        return names
    cut = names[:MAX_LIST_CHARS].rpartition(",")[0]
    return f"{cut}, and {len(specs) - cut.count(',') - 1} more: search for them by words"
