"""Runs a tool once, whatever it does: there is always an outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import msgspec

from ..types.errors import ToolError
from ..types.labels import LOCAL
from ..types.messages import Text, clean
from .base import Ask, Context, Done, Tool


async def attempt(tool: Tool, arguments: msgspec.Raw, context: Callable[[], Awaitable[Context]]) -> Done | Ask:
    """What came of it; an error where it raised, took too long or returned what is no outcome."""
    name, limit_s = tool.spec.name, tool.spec.timeout_s
    try:
        with anyio.fail_after(limit_s):
            outcome = await tool.run(arguments, await context())
        if not isinstance(outcome, (Done, Ask)):  # a tool from outside that nobody type-checked
            raise TypeError(f"it returned {outcome!r}")
        return outcome
    except ToolError as error:
        return _error(str(error))
    except TimeoutError:
        return _error(f"{name} took longer than {limit_s:.0f} s and was stopped")
    except Exception as error:  # noqa: BLE001 -- the model, not the operator, decides what a broken tool means
        return _error(f"{name} broke: {type(error).__name__}: {error}")


def _error(text: str) -> Done:
    return Done((Text(clean(text), LOCAL),), "error")
