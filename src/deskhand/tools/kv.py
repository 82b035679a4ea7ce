"""Key-values of an agent, by namespace, for as long as they are wanted."""

from __future__ import annotations

import msgspec

from ..store.sql import load_sql
from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join_labels
from .base import Context, Done, call_label, make_result
from .define import tool
from .label_marks import needs_mark
from .output import make_bounded_result
from .undo import KV_FOLDER, make_closing_rows, make_effect_row
from .watched_folder import make_by

MAX_KEY_CHARS = 500
MAX_VALUE_CHARS = 200_000
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
    if len(value) > MAX_VALUE_CHARS or len(key) > MAX_KEY_CHARS:
        raise ToolError(
            f"a key may have {MAX_KEY_CHARS} characters and a value {MAX_VALUE_CHARS:,}: for "
            "more, write a file"
        )
    expires_at = now + ttl_hours * 3600 if ttl_hours > 0 else None
    label = msgspec.json.encode(context.label) if needs_mark(context.label) else None
    change = Change("kv_set", (context.agent, namespace, key, value, expires_at, label))
    changes = (
        Change("kv_expire", (now,)),
        *_make_undoable_rows(context, "kv_set", namespace, key, change),
    )
    return msgspec.structs.replace(
        make_result(f"ok, {key} is set", call_label(context)), changes=changes
    )


@tool
async def kv_get(key: str, context: Context, namespace: str = "") -> Done:
    """The value under a key."""
    rows = await context.reach.rows("kv_get", (context.agent, namespace, key, context.clock.now()))
    return (
        await make_bounded_result(str(rows[0][0]), context, _decode_label(rows[0][1]))
        if rows
        else make_result("[not found]", call_label(context))
    )


@tool(effect="local_write", replay="commit")
async def kv_delete(key: str, context: Context, namespace: str = "") -> Done:
    """Forget a key."""
    change = Change("kv_delete", (context.agent, namespace, key))
    changes = _make_undoable_rows(context, "kv_delete", namespace, key, change)
    return msgspec.structs.replace(
        make_result(f"ok, {key} is deleted", call_label(context)), changes=changes
    )


@tool
async def kv_list(context: Context, namespace: str = "", prefix: str = "") -> Done:
    """The keys and values that begin with a prefix, as JSON."""
    rows = await context.reach.rows(
        "kv_list", (context.agent, namespace, prefix, context.clock.now())
    )
    text = msgspec.json.encode({key: value for key, value, _, _ in rows}).decode()
    return await make_bounded_result(
        text, context, join_labels((LOCAL, *(_decode_label(label) for _, _, _, label in rows)))
    )


def _make_undoable_rows(
    context: Context, tool: str, namespace: str, key: str, change: Change
) -> tuple[Change, ...]:
    """The change, between the rows with which it can be undone: they are written in one
    transaction."""
    who = make_by(context, tool, f"{namespace}/{key}" if namespace else key)
    place = (who.key, msgspec.json.encode((namespace, key)), namespace, key)
    before = Change("effect_kv_before", place)
    after = Change("effect_kv_after", place)
    return (make_effect_row(who, KV_FOLDER), before, change, after, *make_closing_rows(who.key))


def _decode_label(stored: bytes | None) -> Label:
    return LOCAL if stored is None else msgspec.json.decode(stored, type=Label)


TOOLS = (kv_set, kv_get, kv_delete, kv_list)
