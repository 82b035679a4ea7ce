"""Macros: steps that were taken in a browser or on the desktop, kept as a file that people read and
edit, and taken again without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import yaml

from ..computer.done_steps import DoneStep
from ..config.parse import parse_plain
from ..types.errors import ConfigError, ToolError
from .inside.macro_player import OURS, SELECTOR

FOLDER = "macros"
"""In the workspace of an agent."""
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_NAME_CHARS = 60
MAX_STEPS = 60
MAX_FILE_CHARS = 32_000
MAX_EXPECTED_CHARS = 80
MacroTool = Literal["browser", "desktop"]

_BEGINNINGS = frozenset(("open", "sign_in", "launch"))
_SLOT = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")
_SELECTORS = ("element", "drop_on")
_HEADER = """\
# A macro. `element` is role and name as the agent sees them, `within` are words that stand beside
# the element, `expect` are words that are shown after the step. {{name}} stands for the slot of
# this name; an empty slot has to be given. Put values with a colon or # into quotes.
"""

Step = dict[str, Any]


class Macro(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`steps` are arguments of the `tool`, with `element` and `drop_on` in the place of refs,
    `within` for words beside the element, `expect` for words that are shown afterwards, and `host`
    for where the page is. `slots` are values that change from time to time; '' for one that has to
    be given."""

    tool: MacroTool
    steps: tuple[Step, ...]
    about: str = ""
    slots: dict[str, str] = {}


def parse_macro(text: str) -> Macro:
    """Raises ConfigError with what is wrong."""
    try:
        found = msgspec.convert(parse_plain(text, MAX_FILE_CHARS), Macro)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error)) from error
    if not 0 < len(found.steps) <= MAX_STEPS:
        raise ConfigError(f"a macro has 1 to {MAX_STEPS} steps")
    for name in found.slots:
        _check_slot_name(name)
    for number, step in enumerate(found.steps, 1):
        if problem := _find_problem(step, found.slots):
            raise ConfigError(f"step {number}: {problem}")
    return found


def _find_problem(step: Step, slots: Mapping[str, str]) -> str:
    """Why this is no step; '' where it is one."""
    if "action" not in step:
        return "it has no action"
    for key, value in step.items():
        if not isinstance(value, str):
            return f"{key}: it is no text"
        if key in _SELECTORS and SELECTOR.fullmatch(_SLOT.sub("x", value)) is None:
            return f'{key}: it names no element: write it as it is shown, as button "Save"'
        for name in re.findall(r"\{\{([^{}]*)\}\}", value):
            if name not in slots:
                return f"{key}: {{{{{name}}}}} is not among the slots"
    return ""


def _check_slot_name(name: str) -> None:
    if not _SLOT.fullmatch(f"{{{{{name}}}}}"):
        raise ConfigError(f"{name!r} is no name of a slot: use lower case, digits and _")


def render_macro(macro: Macro) -> str:
    """Its file."""
    body = {
        **({"about": macro.about} if macro.about else {}),
        "tool": macro.tool,
        **({"slots": macro.slots} if macro.slots else {}),
        "steps": [*macro.steps],
    }
    return _HEADER + yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=100)


def fill_slots(macro: Macro, values: Mapping[str, str]) -> list[Step]:
    """The steps with these values in them; `fixed` marks those whose element has one. Raises
    ToolError."""
    if strange := sorted({*values} - {*macro.slots}):
        there = ", ".join(macro.slots) or "none"
        raise ToolError(f"it has no slot {strange[0]!r}; its slots are: {there}")
    filled = {**macro.slots, **values}
    if missing := [name for name, value in filled.items() if not value]:
        raise ToolError(f"these slots have to be given: {', '.join(missing)}")
    return [_fill_step(step, filled) for step in macro.steps]


def _fill_step(step: Step, filled: Mapping[str, str]) -> Step:
    def fill(key: str, text: str) -> str:
        def value_of(found: re.Match[str]) -> str:
            value = " ".join(filled[found[1]].split()) if key in _SELECTORS else filled[found[1]]
            quoted = value.replace("\\", "\\\\").replace('"', '\\"')
            return quoted if key in _SELECTORS else value

        return _SLOT.sub(value_of, text)

    made = {key: fill(key, str(value)) for key, value in step.items()}
    if any(_SLOT.search(str(step.get(key, ""))) for key in _SELECTORS):
        made["fixed"] = "true"
    return made


# What was done, as steps


def make_steps(tool: MacroTool, done: Sequence[DoneStep], count: int = 0) -> tuple[Step, ...]:
    """The steps that were done: the last `count`, or all since a page was opened or a program
    started. Raises ToolError where there are none, or one cannot be kept."""
    begins = [n for n, step in enumerate(done) if step.arguments.get("action") in _BEGINNINGS]
    kept = done[-count:] if count else done[begins[-1] if begins else 0 :]
    if not kept:
        raise ToolError(
            f"nothing was done with {tool} here that could be kept: it is remembered until the "
            "browser or Deskhand ends, and what a sub-agent did on the desktop is not"
        )
    if len(kept) > MAX_STEPS:
        raise ToolError(f"a macro has at most {MAX_STEPS} steps, and these are {len(kept)}")
    for number, each in enumerate(kept, 1):
        if each.problem:
            raise ToolError(f"step {number}, {each.arguments['action']}: {each.problem}")
    if tool == "browser" and len({each.place for each in kept}) > 1:
        raise ToolError(
            "these steps were done in several tabs, and a macro has one: open the pages in one "
            "tab, or keep fewer steps"
        )
    steps: list[Step] = []
    last = DoneStep(arguments={})
    for each in kept:
        if tool == "desktop" and each.place:
            if each.place != last.place:
                # Another window of the same program is known by its title.
                words = each.title if each.program == last.program else each.program
                steps.append({"action": "look", "window": words})
            last = each
        steps.append(_make_step(each))
    if any("{{" in text for text in _texts_of(steps)):
        raise ToolError("a step has '{{' in it, which marks slots in a macro")
    return tuple(steps)


def _make_step(done: DoneStep) -> Step:
    step: Step = {"action": done.arguments["action"]}
    more = {key: value for key, value in done.arguments.items() if key != "action"}
    named = {"element": done.element, "within": done.within, "drop_on": done.drop_on}
    step |= {key: value for key, value in named.items() if value}
    step |= more
    if done.element and done.host:
        step["host"] = done.host
    plain = [
        each
        for each in done.headings
        if len(each) <= MAX_EXPECTED_CHARS and not any(char.isdigit() for char in each)
    ]
    return step | ({"expect": plain[0]} if plain else {})


def put_slots(steps: Sequence[Step], values: Mapping[str, str]) -> tuple[Step, ...]:
    """The steps with slots in the place of these values, where they stand as whole words. Raises
    ToolError for a value that stands nowhere."""
    if len({*values.values()}) < len(values):
        raise ToolError("two slots have the same value, so nobody can tell which stands where")
    for name, value in values.items():
        try:
            _check_slot_name(name)
        except ConfigError as error:
            raise ToolError(str(error)) from error
        if not value or not any(_find_word(value).search(text) for text in _texts_of(steps)):
            raise ToolError(f"no step has {value!r} in it, so {name!r} cannot stand for it")
    if not values:
        return tuple(steps)
    names = {value: name for name, value in values.items()}
    longest_first = sorted(names, key=len, reverse=True)
    words = re.compile("|".join(_find_word(value).pattern for value in longest_first))
    return tuple(_put(step, words, names) for step in steps)


def _put(step: Step, words: re.Pattern[str], names: Mapping[str, str]) -> Step:
    made = {}
    for key, value in step.items():
        if key == "expect" and any(each.casefold() in value.casefold() for each in names):
            continue  # it is another one each time
        is_text = isinstance(value, str) and key not in ("action", "host")
        made[key] = words.sub(lambda at: f"{{{{{names[at[0]]}}}}}", value) if is_text else value
    return made


def _find_word(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")


def _texts_of(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        yield from (str(each) for key, each in step.items() if key not in ("action", "host"))


def describe_macro(macro: Macro) -> str:
    """Its steps, a line each."""
    lines = []
    for number, step in enumerate(macro.steps, 1):
        more = {key: value for key, value in step.items() if key not in (*OURS, "action")}
        named = [str(step[key]) for key in ("element", "within", "drop_on") if key in step]
        words = [str(step["action"]), *named, *(f"{key}={value!r}" for key, value in more.items())]
        lines.append(f"{number}. {' '.join(words)}")
    return "\n".join(lines)
