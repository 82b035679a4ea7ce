"""Changes one key of a configuration that a person wrote, and leaves their comments and their order
alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

from . import keys


def set_key(text: str, path: Sequence[str], value: Any) -> str:
    """`text` with the key at `path` set to `value`. The text must be valid."""
    expected = _load_mapping(text)
    path = keys.written_path(expected, path)
    keys.set_value(expected, path, value)
    return _check_edit(text, _set(text, path, expected), expected)


def unset_key(text: str, path: Sequence[str], into: type[msgspec.Struct]) -> str:
    """`text` without the key at `path`, and without the sections that are empty then. An entry of a
    map by name, such as an agent, stays as `{}`: that it is there says something. Raises KeyError
    where there is no such key."""
    expected = _load_mapping(text)
    path = keys.written_path(expected, path)
    _delete_key(expected, path)
    edited = _unset(text, path, expected)

    path = path[:-1]
    while path and not keys.get_value(expected, path) and not keys.is_entry(path, into):
        _delete_key(expected, path)
        edited = _unset(edited, path, expected) if edited is not None else None
        path = path[:-1]

    if edited is not None and path and not keys.get_value(expected, path):
        edited = _set(edited, path, expected)
    return _check_edit(text, edited, expected)


def _delete_key(data: dict[str, Any], path: Sequence[str]) -> None:
    """Raises KeyError where there is no such key."""
    holder = keys.get_value(data, path[:-1])
    if not isinstance(holder, dict):
        raise KeyError(path[-1])
    del holder[path[-1]]


def dump_yaml(data: Any) -> str:
    """As block YAML."""
    return _dump(data, width=110) if data else ""


def _load_mapping(text: str) -> dict[str, Any]:
    found = yaml.safe_load(text)
    return found if isinstance(found, dict) else {}


def _check_edit(text: str, edited: str | None, expected: dict[str, Any]) -> str:
    """The edited text if it says what it should; else everything is written anew, as JSON where it
    was JSON."""
    if edited is not None:
        try:
            if _load_mapping(edited) == expected:
                return edited
        except yaml.YAMLError:
            pass
    if text.lstrip().startswith("{"):
        return json.dumps(expected, indent=2, ensure_ascii=False) + "\n"
    heading = [line for line in text.splitlines() if line.startswith("#")]
    return "\n".join([*heading, dump_yaml(expected)])


def _dump_flow(value: Any) -> str:
    text = _dump(value, width=10_000, flow=True)
    return text.removesuffix("\n").removesuffix("\n...").strip()


def _dump(value: Any, *, width: int, flow: bool = False) -> str:
    how: dict[str, Any] = {"sort_keys": False, "default_flow_style": flow, "width": width}
    text: str = yaml.safe_dump(value, allow_unicode=True, **how)
    if "\x85" in text:  # PyYAML writes it as it is, and reads it as the end of a line
        text = yaml.safe_dump(value, allow_unicode=False, **how)
    return text


def _walk(
    node: yaml.Node | None, path: Sequence[str]
) -> tuple[yaml.MappingNode | None, list[yaml.Node], int]:
    """The deepest map on the way, the (key, value) nodes found last, and how many parts of the path
    exist."""
    holder = None
    pair = list[yaml.Node]()
    depth = 0
    for part in path:
        if not isinstance(node, yaml.MappingNode):
            break
        holder = node
        found = next(([key, value] for key, value in node.value if key.value == part), None)
        if found is None:
            break
        pair = found
        node = found[1]
        depth = depth + 1
    return holder, pair, depth


def _end_index(node: yaml.Node) -> int:
    """Where the node's own text ends; for a block that is the end of its last line, not of the
    comments behind it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end_index(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _set(text: str, path: Sequence[str], wanted: dict[str, Any]) -> str | None:
    """`text` with what `wanted` has at `path`; where that is in braces, or in what is no map yet,
    with the whole of it."""
    value = keys.get_value(wanted, path)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        return text.rstrip("\n") + ("\n" if text.strip() else "") + _render_block(path, value, 0)
    holder, pair, depth = _walk(root, path)
    if holder is None:
        return None
    is_there = depth == len(path)
    if holder.flow_style or (pair and not is_there and not isinstance(pair[1], yaml.MappingNode)):
        return _set(text, path[:-1], wanted) if len(path) > 1 else None
    if is_there:
        colon = text.index(":", pair[0].end_mark.index) + 1
        return f"{text[:colon]} {_dump_flow(value)}{text[max(colon, _end_index(pair[1])) :]}"
    end = text.find("\n", _end_index(holder.value[-1][1]))
    end = len(text) if end < 0 else end
    indent = holder.value[0][0].start_mark.column
    return f"{text[:end]}\n{_render_block(path[depth:], value, indent)}{text[end + 1 :]}"


def _render_block(path: Sequence[str], value: Any, indent: int) -> str:
    lines = [f"{' ' * (indent + 2 * i)}{_dump_flow(part)}:" for i, part in enumerate(path)]
    return "\n".join(lines) + f" {_dump_flow(value)}\n"


def _unset(text: str, path: Sequence[str], wanted: dict[str, Any]) -> str | None:
    """`text` without the lines of this key, which `wanted` does not have; comments on lines of
    their own stay."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    holder, pair, depth = _walk(root, path)
    if holder is None or depth != len(path):
        return None
    if holder.flow_style:
        return _set(text, path[:-1], wanted) if len(path) > 1 else None
    start = text.rfind("\n", 0, pair[0].start_mark.index) + 1
    end = text.find("\n", _end_index(pair[1]))
    return text[:start] + (text[end + 1 :] if end >= 0 else "")
