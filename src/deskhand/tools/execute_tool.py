"""Runs a tool once, whatever it does: there is always an outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from ..types.effects import Effect
from ..types.errors import StoreError, ToolError
from ..types.labels import UNTRUSTED, Label, join_labels
from ..types.marked_texts import mark_text
from ..types.messages import Text, clean_text
from ..types.secrets import HANDLE_PATTERN
from ..types.turn import OpenCall
from .base import OUTCOMES, Context, Done, Outcome, Tool, call_label
from .label_marks import load_marks

COMMAND_TOOLS = frozenset({"shell", "background_run", "process"})
"""Tools whose words are run: a request in them may name a secret, which the broker puts in."""
MAX_PATH_CHARS = 4096
_TRANSIENT_EFFECTS: frozenset[Effect] = frozenset({"none", "fetch", "send_owner", "send_other"})


class ReadyCall(msgspec.Struct, frozen=True):
    """A call that may run now, and why; '' where a person said yes to it."""

    call: OpenCall
    tool: Tool
    why: str


async def run_tool(
    tool: Tool, arguments: msgspec.Raw, context: Callable[[], Awaitable[Context]]
) -> Outcome:
    """What came of it; an error where it raised, took too long or returned what is no outcome."""
    name = tool.spec.name
    limit_s = tool.spec.timeout_s
    given = None
    try:
        with anyio.fail_after(limit_s):
            given = await context()
            _reject_handles(tool, arguments)
            outcome = await tool.run(arguments, given)
        if not isinstance(outcome, OUTCOMES):  # a tool from outside that nobody type-checked
            raise TypeError(f"it returned {outcome!r}")
        return outcome
    except ToolError as error:
        return _error_result(
            str(error), join_labels((error.label, await _error_label(arguments, given)))
        )
    except TimeoutError:
        return _error_result(
            f"{name} took longer than {limit_s:.0f} s and was stopped",
            UNTRUSTED if given is None else call_label(given),
        )
    except Exception as error:  # noqa: BLE001 -- the model, not the operator, decides what a broken tool means
        broke = Label(
            source=mark_text("an error of {name}").format(name=name)
        )  # it may quote anything, and nobody says what
        return _error_result(
            f"{name} broke: {type(error).__name__}: {error}",
            join_labels((broke, await _error_label(arguments, given))),
        )


def _reject_handles(tool: Tool, arguments: msgspec.Raw) -> None:
    """Raises ToolError where a file, or anything else that lasts, would have a handle in place of a
    secret."""
    spec = tool.spec
    if spec.effect in _TRANSIENT_EFFECTS or spec.name in COMMAND_TOOLS:
        return
    if found := HANDLE_PATTERN.search(bytes(arguments).decode(errors="replace")):
        raise ToolError(
            f"{found[0]} stands for a secret whose value you do not know. Nothing was written, "
            "because the secret in the file would be lost. Leave that line as it is and change "
            "only other lines, or ask the person to fill it in."
        )


async def _error_label(arguments: msgspec.Raw, context: Context | None) -> Label:
    """The label of the call, and of the files that it names: what went wrong with them may quote
    them, or tell where they lead."""
    named = [
        each
        for each in _iter_strings(_decode_arguments(arguments))
        if len(each) <= MAX_PATH_CHARS and each.isprintable()
    ]
    if context is None:
        return UNTRUSTED
    if not named:
        return call_label(context)
    try:
        marks = await load_marks(context)
        return join_labels(
            (
                call_label(context),
                await anyio.to_thread.run_sync(marks.listing_label_by_name, named),
            )
        )
    except (StoreError, OSError):
        return UNTRUSTED


def _decode_arguments(arguments: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return None


def _iter_strings(given: Any) -> Iterator[str]:
    if isinstance(given, str) and given:
        yield given
    elif isinstance(given, dict | list):
        for each in given.values() if isinstance(given, dict) else given:
            yield from _iter_strings(each)


def _error_result(text: str, label: Label) -> Done:
    return Done((Text(clean_text(text), label),), "error")
