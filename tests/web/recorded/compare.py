"""Compares what our server answers with what another system's server was recorded to answer.

A recording is a JSON file beside this module:

    {
      "system": "agent_computer",
      "version": "c70b2d5",
      "literals": ["type", "status", ...],
      "cases": {
        "status": [STEP, ...]
      }
    }

A case is a list of steps, played in order (`play.py` plays them against any server). A step has
what was sent, and what came:

    {"http": "GET", "path": "/api/status"}              sent; with a body: "json": {...}, or "text":
    "no JSON"
    {"open": "/ws/a"}                                   opens a WebSocket, or goes back to it;
    frames go there
    {"send": {"type": "message"}, "until": "done"}      sends a frame, and reads events up to the
    first of that type
                                                        ("done|error": of one of these); a list
                                                        sends several,
                                                        a null only reads. "closed" and "silence"
                                                        come where the
                                                        server hangs up, and where nothing comes

    "status": 200, "body": SHAPE                        what came for "http"
    "events": [SHAPE, ...]                              what came for "send", in order

Names and ids that only the server knows are remembered by `"keep": {"id": "conversation_id"}` (the
name, and where in the body or the events it stands, as in "-1.tool_call_id") and put into later
steps where `{id}` is written.

A shape is a value without its words:

    "string", "integer", "number", "boolean", "null"    a value of this type
    "integer|null"                                      one or the other
    "=deleted", "=3"                                    exactly this: only below a key that
    `literals` names
    {"key": SHAPE, ...}                                 an object; "key?" is not always there
    {"json": SHAPE}                                     a string that holds a JSON object
    [SHAPE, ...]                                        an array: one shape for all its elements, or
    one for each
                                                        kind, where they have a "type", "role" or
                                                        "phase"
    {"|": [SHAPE, ...]}                                 one of these, where one is an object or an
    array

Every difference is a `Found`. A table of `Difference` names those that stay, each with its reason;
`unexplained` gives what the table does not name, and `unused` what it names and is not (any more).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

KINDS = ("type", "role", "phase")
"""Keys whose value says what kind of element or event it is."""

ABSENT = "absent"
WORD = re.compile(r"[a-z][a-z_.]{0,30}")
Shape = Any


class Found(NamedTuple):
    """One difference. `path` is where: `status`, `body.messages[user].content`, `events`,
    `events[thinking].model`."""

    case: str
    path: str
    ours: str
    theirs: str


class Difference(NamedTuple):
    """A difference that stays, and why. `*` in `case` and `path` stands for anything."""

    case: str
    path: str
    ours: str
    theirs: str
    reason: str

    def explains(self, found: Found) -> bool:
        mine = (self.case, self.path, self.ours, self.theirs)
        other = tuple(found)
        return all(_matches(pattern, text) for pattern, text in zip(mine, other, strict=True))


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def shape_of(value: Any, literals: Iterable[str] = (), key: str = "") -> Shape:
    """The shape of a JSON value; `key` is the one that it stands below."""
    match value:
        case dict():
            return {name: shape_of(each, literals, name) for name, each in value.items()}
        case list():
            return _by_kind([shape_of(each, literals) for each in value])
        case bool():
            return "boolean"
        case int() | float():
            kind = "integer" if isinstance(value, int) else "number"
            return f"={value}" if key in literals else kind
        case None:
            return "null"
        case str():
            if key in literals and WORD.fullmatch(value):
                return f"={value}"
            held = _object_in(value)
            return "string" if held is None else {"json": shape_of(held, literals)}
    raise TypeError(f"{value!r} is no JSON value")


def _object_in(text: str) -> dict[str, Any] | None:
    """The JSON object that a string holds, if it holds one."""
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def kind_of(shape: Shape) -> str:
    """What kind of element or event this is: `thinking:llm_call`, or nothing."""
    if not isinstance(shape, dict):
        return ""
    words = [shape.get(key, "") for key in KINDS]
    return ":".join(
        word.removeprefix("=") for word in words if isinstance(word, str) and word.startswith("=")
    )


def _by_kind(shapes: Sequence[Shape]) -> list[Shape]:
    groups: dict[str, list[Shape]] = {}
    for shape in shapes:
        groups.setdefault(kind_of(shape), []).append(shape)
    return [merged(group) for group in groups.values()]


def merged(shapes: Sequence[Shape]) -> Shape:
    """One shape for all of these."""
    objects = [shape for shape in _alternatives(shapes) if isinstance(shape, dict)]
    arrays = [shape for shape in _alternatives(shapes) if isinstance(shape, list)]
    scalars = {
        word
        for shape in _alternatives(shapes)
        if isinstance(shape, str)
        for word in shape.split("|")
    }
    scalar = "|".join(sorted(scalars))
    if not objects and not arrays:
        return scalar
    found: list[Shape] = [scalar] if scalar else []
    if objects:
        found.append(_merged_objects(objects))
    if arrays:
        found.append(_by_kind([each for array in arrays for each in array]))
    return found[0] if len(found) == 1 else {"|": found}


def _alternatives(shapes: Sequence[Shape]) -> list[Shape]:
    return [
        each
        for shape in shapes
        for each in (shape["|"] if isinstance(shape, dict) and "|" in shape else [shape])
    ]


def _merged_objects(objects: Sequence[dict[str, Shape]]) -> dict[str, Shape]:
    names = dict.fromkeys(name.removesuffix("?") for each in objects for name in each)
    found = {}
    for name in names:
        there = [each[key] for each in objects for key in (name, f"{name}?") if key in each]
        always = all(name in each for each in objects)
        found[name if always else f"{name}?"] = merged(there)
    return found


def compare_cases(
    theirs: dict[str, list[dict[str, Any]]],
    ours: dict[str, list[dict[str, Any]]],
    literals: Iterable[str] = (),
) -> list[Found]:
    """All differences of the answers to the same steps, case by case."""
    found: list[Found] = []
    for case, steps in theirs.items():
        for mine, other in zip(ours[case], steps, strict=True):
            found += compare_steps(case, mine, other)
    return list(dict.fromkeys(found))


def compare_steps(case: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[Found]:
    found: list[Found] = []
    if ours.get("status") != theirs.get("status"):
        found.append(Found(case, "status", str(ours.get("status")), str(theirs.get("status"))))
    found += compare(case, "body", ours.get("body"), theirs.get("body"))
    return found + compare_events(case, ours.get("events", []), theirs.get("events", []))


def compare_events(case: str, ours: Sequence[Shape], theirs: Sequence[Shape]) -> list[Found]:
    """First what comes when, then what each kind of event has."""
    found: list[Found] = []
    mine = [kind_of(each) for each in ours]
    other = [kind_of(each) for each in theirs]
    for tag, start, end, start_2, end_2 in difflib.SequenceMatcher(
        None, other, mine, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            found += [Found(case, "events", ABSENT, name) for name in other[start:end]]
            found += [Found(case, "events", name, ABSENT) for name in mine[start_2:end_2]]
    for name in dict.fromkeys(other):
        if name in mine:
            one = merged([each for each in ours if kind_of(each) == name])
            two = merged([each for each in theirs if kind_of(each) == name])
            found += compare(case, f"events[{name}]", one, two)
    return found


def compare(case: str, path: str, ours: Shape, theirs: Shape) -> list[Found]:
    """Where two shapes differ. A key that is sometimes there on one side is to be there on the
    other, at least sometimes."""
    if ours == theirs:
        return []
    mine = _parts(ours)
    other = _parts(theirs)
    found: list[Found] = []
    if mine.keys() != other.keys() or mine.get("scalar") != other.get("scalar"):
        found.append(Found(case, path, _name(ours), _name(theirs)))
    if "object" in mine and "object" in other:
        found += _compare_objects(case, path, mine["object"], other["object"])
    if "array" in mine and "array" in other:
        found += _compare_arrays(case, path, mine["array"], other["array"])
    return found


def _compare_objects(
    case: str, path: str, ours: dict[str, Shape], theirs: dict[str, Shape]
) -> list[Found]:
    found: list[Found] = []
    for name in dict.fromkeys(key.removesuffix("?") for key in (*theirs, *ours)):
        mine = ours.get(name, ours.get(f"{name}?"))
        other = theirs.get(name, theirs.get(f"{name}?"))
        if mine is not None and other is not None:
            found += compare(case, f"{path}.{name}", mine, other)
        else:
            found.append(Found(case, f"{path}.{name}", _name(mine), _name(other)))
    return found


def _compare_arrays(case: str, path: str, ours: list[Shape], theirs: list[Shape]) -> list[Found]:
    mine = {kind_of(each): each for each in ours}
    other = {kind_of(each): each for each in theirs}
    found: list[Found] = []
    for kind in dict.fromkeys((*other, *mine)):
        found += compare(case, f"{path}[{kind}]", mine.get(kind), other.get(kind))
    return found


def _parts(shape: Shape) -> dict[str, Any]:
    """The alternatives of a shape: its scalar, its object, its array."""
    found: dict[str, Any] = {}
    for each in _alternatives([shape]):
        match each:
            case None:
                pass
            case dict():
                found["object"] = each
            case list():
                found["array"] = each
            case _:
                found["scalar"] = each
    return found


def _name(shape: Shape) -> str:
    """A shape in a word, for the table."""
    if shape is None:
        return ABSENT
    words = {"object": "object", "array": "array"}
    return "|".join(sorted(words.get(kind) or str(each) for kind, each in _parts(shape).items()))


def unexplained(found: Sequence[Found], table: Sequence[Difference]) -> list[Found]:
    """What the table does not name."""
    return [each for each in found if not any(row.explains(each) for row in table)]


def unused(found: Sequence[Found], table: Sequence[Difference]) -> list[Difference]:
    """Rows of the table that no difference needs (any more)."""
    return [row for row in table if not any(row.explains(each) for each in found)]


HEAD = ("system", "case", "where", "here", "there", "why")


def table_rows(system: str, table: Sequence[Difference]) -> list[str]:
    """The rows of the table in `docs/api.md`."""
    return [f"| {system} | " + " | ".join(_cell(row)) + " |" for row in table]


def _cell(row: Difference) -> list[str]:
    code = [text.replace("|", "\\|") for text in (row.path, row.ours, row.theirs)]
    return [row.case, *(f"`{text}`" for text in code), row.reason.replace("|", "\\|")]


def documented_rows(text: str, system: str) -> list[str]:
    """The rows about this system in the table of a Markdown document."""
    return [line for line in text.splitlines() if line.startswith(f"| {system} |")]
