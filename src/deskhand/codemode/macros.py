"""Macros: steps that were taken in a browser or on the desktop, kept as a file that people read and
edit, and taken again without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import yaml

from ..config.parse import parse_plain
from ..types.errors import ConfigError, ToolError
from .inside.macro_player import Mismatch, parse_selector

FOLDER = "macros"
"""In the workspace of an agent."""
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_NAME_CHARS = 60
MAX_STEPS = 60
MAX_EXPECTED_CHARS = 80
MacroTool = Literal["browser", "desktop"]

_RECORDED: Mapping[str, frozenset[str]] = {
    "browser": frozenset(
        (
            *("open", "sign_in", "click", "type", "select", "press", "hover", "drag"),
            *("back", "forward", "dialog", "upload", "script", "pdf"),
        )
    ),
    "desktop": frozenset(
        ("launch", "focus", "press", "click", "scroll", "drag", "type", "keys", "copy", "close")
    ),
}
"""Actions that are steps; the others only look."""
_BEGINNINGS = frozenset(("open", "sign_in", "launch"))
_BOOLS = frozenset(("submit", "append", "accept"))
_INTS = frozenset(("clicks", "times", "tab"))
_FLOATS = frozenset(("pages", "seconds"))
_SLOT = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")
_HEADING = re.compile(r'^ *(?:e\d+ )?(?:heading|alert) "((?:[^"\\]|\\.)*)"', re.MULTILINE)
_LINE = re.compile(
    r'(?P<indent> *)(?:(?P<ref>e\d+) )?(?P<element>[a-z]+(?P<name> "(?:[^"\\]|\\.)*")?)(?P<more>.*)'
)
_INSIDE = re.compile(r' in ([a-z]+ "(?:[^"\\]|\\.)*")')
_HEAD = re.compile(r"\[(?:tab \d+, one of \d+: )?(?P<url>https?://[^\s\]]+)")
_HEADER = """\
# A macro. `element` names an element as the agent sees it: its role and its name. {{name}} stands
# for the slot of this name; what stands there is used where nobody gives another value.
"""

Step = dict[str, Any]


class Macro(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`steps` are arguments of the `tool`, with `element` (and `drop_on`) in the place of refs,
    `within` for what such an element is in, and `expect` for words that are shown afterwards.
    `slots` are values that change from time to time; '' for one that has to be given. `hosts` are
    those on whose pages something is typed, for which a person is asked."""

    tool: MacroTool
    steps: tuple[Step, ...]
    about: str = ""
    slots: dict[str, str] = {}
    hosts: tuple[str, ...] = ()


class Acted(msgspec.Struct, frozen=True):
    """A call of a tool that went well: what it was given, and what it showed."""

    arguments: Mapping[str, Any]
    shown: str


# Files


def parse_macro(text: str) -> Macro:
    """Raises ConfigError with what is wrong."""
    try:
        found = msgspec.convert(parse_plain(text), Macro)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error)) from error
    if not found.steps or len(found.steps) > MAX_STEPS:
        raise ConfigError(f"a macro has 1 to {MAX_STEPS} steps")
    steps = tuple(_check_step(number, step) for number, step in enumerate(found.steps, 1))
    known = {*found.slots}
    for name in _SLOT.findall(msgspec.json.encode(steps).decode()):
        if name not in known:
            raise ConfigError(f"{{{{{name}}}}} stands in a step, but not among the slots")
    return msgspec.structs.replace(found, steps=steps)


def _check_step(number: int, step: Step) -> Step:
    """The step with values of the right kinds: a file has texts alone."""
    if "action" not in step:
        raise ConfigError(f"step {number} has no action")
    checked: Step = {}
    for key, value in step.items():
        try:
            checked[key] = _convert(key, value)
            if key in ("element", "within", "drop_on"):
                parse_selector(value)
        except (ValueError, TypeError, Mismatch) as error:
            raise ConfigError(f"step {number}: {key}: {error}") from error
    return checked


def _convert(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        raise TypeError("it is no text")
    if key in _BOOLS:
        if value.casefold() not in ("true", "false"):
            raise ValueError("it is true or false")
        return value.casefold() == "true"
    if key in _INTS:
        return int(value)
    return float(value) if key in _FLOATS else value


def render_macro(macro: Macro) -> str:
    """Its file."""
    body = {
        **({"about": macro.about} if macro.about else {}),
        "tool": macro.tool,
        **({"slots": macro.slots} if macro.slots else {}),
        **({"hosts": [*macro.hosts]} if macro.hosts else {}),
        "steps": [*macro.steps],
    }
    return _HEADER + yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=100)


def fill_slots(macro: Macro, values: Mapping[str, str]) -> list[Step]:
    """The steps with these values in them. Raises ToolError."""
    if strange := sorted({*values} - {*macro.slots}):
        there = ", ".join(macro.slots) or "none"
        raise ToolError(f"it has no slot {strange[0]!r}; its slots are: {there}")
    filled = {**macro.slots, **values}
    if missing := [name for name, value in filled.items() if not value]:
        raise ToolError(f"these slots have to be given: {', '.join(missing)}")
    return [{key: _fill(value, filled) for key, value in step.items()} for step in macro.steps]


def _fill(value: Any, filled: Mapping[str, str]) -> Any:
    if not isinstance(value, str):
        return value
    return _SLOT.sub(lambda found: filled[found[1]], value)


# What was done, as steps


def record_steps(tool: MacroTool, acted: Sequence[Acted], count: int = 0) -> tuple[Step, ...]:
    """The steps of these calls: the last `count`, or all since the last page was opened or program
    started. Raises ToolError where there are none, or one cannot be kept."""
    known: dict[str, _Seen] = {}
    steps: list[Step] = []
    page = ""
    for each in acted:
        if _is_step(tool, each.arguments):
            steps.append(_make_step(each, known))
        if (head := _HEAD.match(each.shown)) and head["url"] != page:
            page = head["url"]
            known.clear()  # the refs of another page are not used again
        _note_elements(each.shown, known)
    begins = [n for n, step in enumerate(steps) if step["action"] in _BEGINNINGS]
    kept = steps[-count:] if count else steps[begins[-1] if begins else 0 :]
    if not kept:
        raise ToolError(f"nothing was done with {tool} in this conversation that could be kept")
    if len(kept) > MAX_STEPS:
        raise ToolError(f"a macro has at most {MAX_STEPS} steps, and these are {len(kept)}")
    for number, step in enumerate(kept, 1):
        if "what" in step:
            raise ToolError(f"step {number}: {step['what']}")
    if any("{{" in text for text in _texts_of(kept)):
        raise ToolError("a step has '{{' in it, which marks slots in a macro")
    return tuple(kept)


def _is_step(tool: MacroTool, arguments: Mapping[str, Any]) -> bool:
    action = arguments.get("action")
    is_window = tool == "desktop" and action == "look" and bool(arguments.get("window"))
    return is_window or action in _RECORDED[tool]


class _Seen(msgspec.Struct, frozen=True):
    """An element as it was shown, and the nearest named one that it is in."""

    selector: str
    within: str


def _make_step(acted: Acted, known: Mapping[str, _Seen]) -> Step:
    """The step; `what` says why it cannot be kept."""
    step: Step = {"action": acted.arguments["action"]}
    for key, name in (("ref", "element"), ("to", "drop_on")):
        ref = str(acted.arguments.get(key, "")).strip("[]@ ")
        if not ref:
            continue
        if ref not in known:
            return {**step, "what": f"what {ref} was is not known: look, do it again and save then"}
        seen = known[ref]
        step[name] = seen.selector
        is_one_of_several = sum(each.selector == seen.selector for each in known.values()) > 1
        if name == "element" and is_one_of_several and seen.within:
            step["within"] = seen.within
    if step["action"] == "type" and str(step.get("element", "")).startswith("password"):
        return {**step, "what": "a macro keeps no passwords; a person can give a sign-in instead"}
    step |= {key: value for key, value in acted.arguments.items() if key not in ("ref", "to")}
    heading = _HEADING.search(acted.shown)
    if heading and len(heading[1]) <= MAX_EXPECTED_CHARS and not re.search(r"[\d\\]", heading[1]):
        step["expect"] = heading[1]
    return step


def _note_elements(shown: str, known: dict[str, _Seen]) -> None:
    """Learn what the refs in this text are."""
    above: list[tuple[int, str]] = []
    for line in shown.splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        depth = len(found["indent"])
        while above and above[-1][0] >= depth:
            above.pop()
        if found["ref"]:
            inside = _INSIDE.search(found["more"])
            within = inside[1] if inside else above[-1][1] if above else ""
            known[found["ref"]] = _Seen(found["element"], within)
        if found["name"]:
            above.append((depth, found["element"]))


def put_slots(steps: Sequence[Step], slots: Mapping[str, str]) -> tuple[Step, ...]:
    """The steps with slots in the place of these values. Raises ToolError for a value that stands
    nowhere."""
    for name, value in slots.items():
        if not _SLOT.fullmatch(f"{{{{{name}}}}}"):
            raise ToolError(f"{name!r} is no name of a slot: use lower case, digits and _")
        if not value or not any(value in text for text in _texts_of(steps)):
            raise ToolError(f"no step has {value!r} in it, so {name!r} cannot stand for it")
    longest_first = sorted(slots.items(), key=lambda each: -len(each[1]))
    names = {value: name for name, value in longest_first}
    values = re.compile("|".join(map(re.escape, names)))

    def put(value: Any) -> Any:
        if not slots or not isinstance(value, str):
            return value
        return values.sub(lambda found: f"{{{{{names[found[0]]}}}}}", value)

    return tuple(
        {key: value if key == "action" else put(value) for key, value in step.items()}
        for step in steps
    )


def _texts_of(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        yield from (str(value) for key, value in step.items() if key != "action")
