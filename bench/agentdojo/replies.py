"""How a model that makes independent calls in one reply does a task of AgentDojo.

Its ground truth has one call after the other. Here those share a reply that follow each other
there, that a person may be asked about in one question, and of which none names anything that came
back from one before it in that reply. No call is moved, and a read is never made beside a call that
could use what it brings in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentdojo.functions_runtime import Function, FunctionsRuntime, TaskEnvironment
from house import Row
from pydantic_core import to_json

from deskhand.testing.obedient import Deed, Reply


def replies_of(
    deeds: Sequence[Deed],
    env: TaskEnvironment,
    tools: Sequence[Function[Any, Any]],
    rows: Mapping[str, Row],
) -> list[Reply]:
    """The calls, reply by reply. `env` is the world in which they are made; it stays as it is."""
    kinds = [_kind(rows[deed.name]) for deed in deeds]
    if not any(kind and kind == before for kind, before in zip(kinds[1:], kinds, strict=False)):
        return list(deeds)
    runtime = FunctionsRuntime(tools)
    world = env.model_copy(deep=True)
    replies: list[list[Deed]] = []
    told = ""
    last = ""
    for deed, kind in zip(deeds, kinds, strict=True):
        if kind and kind == last and not _needs(deed, told, replies[-1]):
            replies[-1].append(deed)
        else:
            replies.append([deed])
            told = ""
        result, _ = runtime.run_function(world, deed.name, dict(deed.arguments))
        told += "\n" + _text(result)
        last = kind
    return [tuple(each) if len(each) > 1 else each[0] for each in replies]


def _kind(row: Row) -> str:
    """Calls of the same kind may share a reply; '' shares it with none."""
    return (
        "sends"
        if row.effect in ("send_other", "network")
        else "reads"
        if row.effect == "fetch"
        else ""
    )


def _needs(deed: Deed, told: str, before: Sequence[Deed]) -> bool:
    """Whether anything that it names came back from the calls before it, and was not said to
    them."""
    said = "\n".join(_text(each.arguments) for each in before)
    return any(value in told and value not in said for value in _values(deed.arguments))


def _values(given: Any) -> list[str]:
    if isinstance(given, Mapping):
        return [value for each in given.values() for value in _values(each)]
    if isinstance(given, list | tuple):
        return [value for each in given for value in _values(each)]
    return [_text(given)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value, fallback=str).decode()
