"""Key-values of an agent, by namespace, for as long as they are wanted."""

from __future__ import annotations

import msgspec

from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, join_labels
from .base import Context, Done, call_label, make_result
from .define import tool
from .journal import KV_FOLDER, add_entry, drop_unchanged, note_value_change
from .label_marks import needs_mark
from .output import make_bounded_result
from .queries import StoredValue, drop_value, expire_values, find_value, list_values, set_value
from .watched_folder import make_by

MAX_KEY_CHARS = 500
MAX_VALUE_CHARS = 200_000


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
    label = context.label if needs_mark(context.label) else None
    change = set_value(context.agent, namespace, StoredValue(key, value, expires_at, label))
    changes = (
        expire_values(now),
        *_make_undoable_rows(context, "kv_set", namespace, key, change),
    )
    return msgspec.structs.replace(
        make_result(f"ok, {key} is set", call_label(context)), changes=changes
    )


@tool
async def kv_get(key: str, context: Context, namespace: str = "") -> Done:
    """The value under a key."""
    now = context.clock.now()
    found = await find_value(context.reach.reader, context.agent, namespace, key, now)
    if found is None:
        return make_result("[not found]", call_label(context))
    return await make_bounded_result(found.value, context, found.label or LOCAL)


@tool(effect="local_write", replay="commit")
async def kv_delete(key: str, context: Context, namespace: str = "") -> Done:
    """Forget a key."""
    change = drop_value(context.agent, namespace, key)
    changes = _make_undoable_rows(context, "kv_delete", namespace, key, change)
    return msgspec.structs.replace(
        make_result(f"ok, {key} is deleted", call_label(context)), changes=changes
    )


@tool
async def kv_list(context: Context, namespace: str = "", prefix: str = "") -> Done:
    """The keys and values that begin with a prefix, as JSON."""
    now = context.clock.now()
    found = await list_values(context.reach.reader, context.agent, namespace, prefix, now)
    text = msgspec.json.encode({each.key: each.value for each in found}).decode()
    labels = (each.label or LOCAL for each in found)
    return await make_bounded_result(text, context, join_labels((LOCAL, *labels)))


def _make_undoable_rows(
    context: Context, tool: str, namespace: str, key: str, change: Change
) -> tuple[Change, ...]:
    """The change, between the rows with which it can be undone: they are written in one
    transaction."""
    who = make_by(context, tool, f"{namespace}/{key}" if namespace else key)
    noted = note_value_change(who.key, namespace, key, change)
    return (add_entry(who, KV_FOLDER), *noted, *drop_unchanged(who.key))


TOOLS = (kv_set, kv_get, kv_delete, kv_list)
