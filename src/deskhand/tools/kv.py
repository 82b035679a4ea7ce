"""Key-values of an agent, by namespace, for as long as they are wanted."""

from __future__ import annotations

import msgspec

from ..store.sql import load_sql
from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join_labels
from .base import Context, Done, done, own
from .define import tool
from .label_marks import lasting
from .output import shown
from .undo import KV, begun, closing
from .watched_folder import by

KEY_CHARS = 500
VALUE_CHARS = 200_000
STATEMENTS = load_sql(__package__, "kv.sql")


@tool(effect="local_write", replay="commit")
async def kv_set(
    key: str, value: str, context: Context, namespace: str = "", ttl_hours: float = 0
) -> Done:
    """Remember a value under a key.

    namespace: keys of different namespaces do not meet
    ttl_hours: forget it after so many hours; 0 for never
    """
    now = context.clock.now()
    if len(value) > VALUE_CHARS or len(key) > KEY_CHARS:
        raise ToolError(
            f"at most {KEY_CHARS} characters of key and {VALUE_CHARS:,} of value are kept: "
            "write a file"
        )
    expires_at = now + ttl_hours * 3600 if ttl_hours > 0 else None
    label = msgspec.json.encode(context.label) if lasting(context.label) else None
    change = Change("kv_set", (context.agent, namespace, key, value, expires_at, label))
    changes = (Change("kv_expire", (now,)), *_undoable(context, "kv_set", namespace, key, change))
    return msgspec.structs.replace(done(f"ok, {key} is set", own(context)), changes=changes)


@tool
async def kv_get(key: str, context: Context, namespace: str = "") -> Done:
    """The value under a key."""
    rows = await context.reach.rows("kv_get", (context.agent, namespace, key, context.clock.now()))
    return (
        await shown(str(rows[0][0]), context, _label(rows[0][1]))
        if rows
        else done("[not found]", own(context))
    )


@tool(effect="local_write", replay="commit")
async def kv_delete(key: str, context: Context, namespace: str = "") -> Done:
    """Forget a key."""
    change = Change("kv_delete", (context.agent, namespace, key))
    changes = _undoable(context, "kv_delete", namespace, key, change)
    return msgspec.structs.replace(done(f"ok, {key} is gone", own(context)), changes=changes)


@tool
async def kv_list(context: Context, namespace: str = "", prefix: str = "") -> Done:
    """The keys and values that begin with a prefix, as JSON."""
    rows = await context.reach.rows(
        "kv_list", (context.agent, namespace, prefix, context.clock.now())
    )
    text = msgspec.json.encode({key: value for key, value, _, _ in rows}).decode()
    return await shown(
        text, context, join_labels((LOCAL, *(_label(label) for _, _, _, label in rows)))
    )


def _undoable(
    context: Context, tool: str, namespace: str, key: str, change: Change
) -> tuple[Change, ...]:
    """The change, between the rows with which it can be undone: they are written in one
    transaction."""
    who = by(context, tool, f"{namespace}/{key}" if namespace else key)
    place = (who.key, msgspec.json.encode((namespace, key)), namespace, key)
    before = Change("effect_kv_before", place)
    after = Change("effect_kv_after", place)
    return (begun(who, KV), before, change, after, *closing(who.key))


def _label(stored: bytes | None) -> Label:
    return LOCAL if stored is None else msgspec.json.decode(stored, type=Label)


TOOLS = (kv_set, kv_get, kv_delete, kv_list)
