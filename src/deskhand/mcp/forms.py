"""The forms by which MCP servers ask people (elicitation): what their fields are, how a person is
asked for one, and what an answer means. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from ..tools.documents.invisible_characters import escape_invisible
from ..types.errors import ToolError

MAX_FIELDS = 8
MAX_CHOICES = 20
MAX_MESSAGE_CHARS = 2_000
MAX_CHOICE_CHARS = 200
DECLINE = "decline"
DEFAULT = "default"
SKIP = "skip"
YES = ("yes", "true", "y", "ok", "accept")
NO = ("no", "false", "n")
Value = str | int | float | bool


class FormField(msgspec.Struct, frozen=True):
    """One thing that a person is asked for. `kind` is its type in JSON schema."""

    name: str
    kind: str
    title: str = ""
    choices: tuple[str, ...] = ()
    is_required: bool = False
    default: Value | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        """What a person may say in place of a value, beside declining."""
        usual = (DEFAULT,) if self.default is not None else ()
        return usual if self.is_required else (*usual, SKIP)


def read_fields(schema: Mapping[str, Any]) -> list[FormField]:
    """The fields of a form, as MCP allows them: flat, of texts, numbers and yes or no. Raises
    ToolError for any other."""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(properties, dict) or len(properties) > MAX_FIELDS:
        raise ToolError(f"a form has at most {MAX_FIELDS} fields")
    if not isinstance(required, list):
        raise ToolError("`required` of the form is no list")
    found = []
    for name, given in properties.items():
        kind = given.get("type") if isinstance(given, dict) else None
        if kind not in ("string", "number", "integer", "boolean"):
            raise ToolError(f"a field of the form is of a type that nobody can fill in: {kind!r}")
        choices = _read_choices(given.get("enum", []), kind)
        title = given.get("description") or given.get("title") or ""
        default = given.get("default")
        usual = default if isinstance(default, Value) else None
        found.append(FormField(name, kind, str(title), choices, name in required, usual))
    return found


def _read_choices(given: Any, kind: str) -> tuple[str, ...]:
    """Raises ToolError for some that nobody could read."""
    if kind != "string":
        return ()
    if not isinstance(given, list) or len(given) > MAX_CHOICES:
        raise ToolError(f"a field of the form has at most {MAX_CHOICES} choices")
    choices = tuple(map(str, given))
    if any(len(each) > MAX_CHOICE_CHARS or escape_invisible(each) != each for each in choices):
        raise ToolError("a choice of the form cannot be shown")
    return choices


def make_question(server: str, message: str, field: FormField | None, problem: str = "") -> str:
    """What a person is asked: whose question it is comes first, in our own words."""
    lines = [f"The MCP server {server} asks:", message[:MAX_MESSAGE_CHARS]]
    if field is not None:
        title = f" ({field.title[:MAX_CHOICE_CHARS]})" if field.title else ""
        lines.append(f"{field.name[:MAX_CHOICE_CHARS]}{title}")
        if not list_choices(field):
            lines.append(f"Your next message here goes to {server}.")
        if field.default is not None:
            lines.append(f"Write `{DEFAULT}` for {field.default}.")
        if not field.is_required:
            lines.append(f"Write `{SKIP}` to leave it out.")
    if problem:
        lines.append(f"That does not fit: {problem}.")
    lines.append(f"Write `{DECLINE}` to give no answer.")
    return escape_invisible("\n".join(lines))


def list_choices(field: FormField | None) -> tuple[str, ...]:
    """What a person may choose from; nothing where they write what they like. None is a question
    for yes or no."""
    if field is None:
        return ("yes", "no", DECLINE)
    choices = ("yes", "no") if field.kind == "boolean" else field.choices
    return (*choices, *field.answers, DECLINE) if choices else ()


def parse_answer(field: FormField, text: str) -> Value | None:
    """The value; None where the field is left out. Raises ValueError with what is wrong."""
    said = text.strip()
    if said in field.choices:
        return said
    if said.lower() in field.answers:
        return field.default if said.lower() == DEFAULT else None
    match field.kind:
        case "boolean":
            if said.lower() not in (*YES, *NO):
                raise ValueError("say yes or no")
            return said.lower() in YES
        case "integer":
            return int(said)
        case "number":
            if not isfinite(value := float(said)):
                raise ValueError("say a number")
            return value
        case _:
            if field.choices and said not in field.choices:
                raise ValueError(f"say one of {', '.join(field.choices)}")
            return said
