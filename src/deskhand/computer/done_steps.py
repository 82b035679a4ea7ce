"""What was done in a browser or on a desktop, so that it can be done again: each step with its
element as one can find it anew."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..types.labels import UNTRUSTED, Label
from .elements import Element, find_elements, has_words, list_own_parts
from .snapshot import render_name

MAX_STEPS = 200
"""So many are remembered."""
MAX_WORDS_CHARS = 60
MAX_TRIED = 20
_PLAIN = re.compile(r"\w[^\\\n]*")


class DoneStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step. `arguments` are those of the tool that say no ref. `element` and `drop_on` are role
    and name as they are shown, `within` are words that stand beside the element and tell it from
    others. `host` is that of the page. `place` is the tab or the window; the window is called
    `title` and is one of `program`. `headings` are those that came with it. `problem` says why it
    cannot be done again. `label` is that of its words."""

    arguments: dict[str, Any]
    element: str = ""
    within: str = ""
    drop_on: str = ""
    host: str = ""
    place: str = ""
    program: str = ""
    title: str = ""
    headings: tuple[str, ...] = ()
    problem: str = ""
    label: Label = UNTRUSTED


def describe_step(
    arguments: dict[str, Any], root: Element, element: Element | None, onto: Element | None
) -> DoneStep:
    """The step that is about to be done to these elements of what is shown."""
    more = {key: value for key, value in arguments.items() if key not in ("ref", "to")}
    if element is not None and element.role == "password" and {"text", "keys"} & {*more}:
        kept = {"action": arguments["action"]}
        return DoneStep(arguments=kept, problem="passwords are not kept: give a sign-in instead")
    step = DoneStep(arguments=more)
    if element is not None:
        within, problem = _tell_apart(root, element)
        step = msgspec.structs.replace(
            step, element=render_name(element), within=within, problem=problem
        )
    if onto is not None:
        within, problem = _tell_apart(root, onto)
        problem = problem or ("it is dropped on one of several that are alike" if within else "")
        step = msgspec.structs.replace(
            step, drop_on=render_name(onto), problem=step.problem or problem
        )
    return step


def _tell_apart(root: Element, element: Element) -> tuple[str, str]:
    """Words that stand beside this element and beside none that is called the same, '' where it is
    the only one; and why there are none."""
    found = find_elements(root, element.role, element.name)
    alike = [each for each in found if _is(each, element)]
    if len(alike) < 2:
        return "", ""
    parts = list_own_parts(root, found)
    own = next((part for each, part in parts if each is element), element)
    for words in _list_words(own, element):
        fits = [each for each, part in parts if _is(each, element) and has_words(part, words)]
        if fits == [element]:
            return words, ""
    return "", f"{len(alike)} elements are {render_name(element)}, and nothing tells them apart"


def _list_words(part: Element, element: Element) -> list[str]:
    """Words that stand in this part beside the element."""
    found = []
    for each in part.walk():
        words = _PLAIN.match(" ".join(each.name.split()))
        if each is not element and words is not None:
            found.append(words[0][:MAX_WORDS_CHARS].strip())
        if len(found) == MAX_TRIED:
            break
    return found


def _is(one: Element, other: Element) -> bool:
    return (one.role, one.name) == (other.role, other.name)


def list_headings(root: Element) -> list[str]:
    """The headings of what is shown."""
    names = (" ".join(each.name.split()) for each in root.walk() if each.role == "heading")
    return [name for name in names if name]
