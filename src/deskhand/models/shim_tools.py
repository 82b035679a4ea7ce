"""The few tools that a small model is shown, in the simplest form, and how that form maps to the real tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ..types.messages import clean

STRING = {"type": "string"}
WORDS = {"type": "string", "minLength": 1}
REPLY = "reply"
ASK = "ask_user"
READS = frozenset({"read_file", "list_files", "search_files"})

Arguments = dict[str, Any]


class Form(msgspec.Struct, frozen=True):
    """A tool as the model writes it. `real` makes the real tool's arguments of the model's, `small` goes back."""

    arguments: dict[str, dict[str, Any]]
    real: Callable[[Arguments], Arguments]
    small: Callable[[Arguments], Arguments]


def _only(*names: str) -> Callable[[Arguments], Arguments]:
    return lambda given: {name: given[name] for name in names if name in given}


def _write(given: Arguments) -> Arguments:
    content = str(given["content"])
    mode = "append" if given.get("mode") == "append" else "overwrite"
    return {"path": given["path"], "content": content if content.endswith("\n") else content + "\n", "mode": mode}


def _written(given: Arguments) -> Arguments:
    mode = "append" if given.get("mode") == "append" else "new"
    return {"path": given.get("path", ""), "mode": mode, "content": str(given.get("content", "")).removesuffix("\n")}


def _edited(given: Arguments) -> Arguments:
    edits = given.get("edits")
    first = edits[0] if isinstance(edits, list) and edits and isinstance(edits[0], dict) else {}
    return {"path": given.get("path", ""), "old": first.get("old", ""), "new": first.get("new", "")}


_DULL = frozenset({"the", "and", "for", "file", "files", "what", "word", "where", "which"})


def search_words(text: str) -> list[str]:
    """The words of a phrase that are worth looking for one by one, the longest first; none if it is a single word."""
    words = [word for word in re.findall(r"\w[\w-]{2,}", text) if word.lower() not in _DULL]
    return sorted(words, key=len, reverse=True) if len(text.split()) > 1 else []


FORMS: Mapping[str, Form] = {
    "read_file": Form({"path": STRING}, _only("path"), _only("path")),
    "write_file": Form(
        {"path": STRING, "mode": {"type": "string", "enum": ["new", "append"]}, "content": STRING}, _write, _written
    ),
    "edit_file": Form(
        {"path": STRING, "old": STRING, "new": STRING},
        lambda given: {"path": given["path"], "edits": [{"old": given["old"], "new": given["new"]}]},
        _edited,
    ),
    "list_files": Form({"path": STRING}, lambda given: {"path": given["path"] or ".", "depth": 1}, _only("path")),
    "search_files": Form({"text": STRING}, _only("text"), _only("text")),
    "shell": Form({"command": STRING}, _only("command"), _only("command")),
    ASK: Form({"question": WORDS}, _only("question"), _only("question")),
    REPLY: Form({"text": WORDS}, _only("text"), _only("text")),
}
"""By the name of the tool, which the model shares with everyone else."""


class Move(msgspec.Struct, frozen=True):
    """What the model decided: a tool, or `reply`, with arguments in the small form."""

    tool: str
    arguments: Arguments


def schema(names: Sequence[str]) -> dict[str, Any]:
    """A JSON schema that allows a move with one of these tools and nothing else. The tool stands before its arguments,
    so that they are written for it."""
    return {
        "oneOf": [
            _object({"tool": {"const": name}, "arguments": _object(dict(FORMS[name].arguments))}) for name in names
        ]
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_move(text: str) -> Move | None:
    """The first move in what a model wrote, fenced or not; None where there is none that is whole."""
    for found in objects_in(text):
        if isinstance(name := found.get("tool", found.get("name")), str):
            given = found.get("arguments", found.get("parameters"))
            form = FORMS.get(name)
            if form is not None and isinstance(given, dict) and set(form.arguments) - {"mode"} <= set(given):
                return Move(name, {key: _cleaned(value) for key, value in given.items() if key in form.arguments})
    return None


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in what a model wrote, each from where one begins."""
    decoder = json.JSONDecoder(strict=False)
    for match in re.finditer(r"\{", text):
        with suppress(ValueError, RecursionError):
            found, _ = decoder.raw_decode(text, match.start())
            yield found


def _cleaned(value: object) -> str:
    return clean(value if isinstance(value, str) else json.dumps(value))


def real_arguments(move: Move) -> msgspec.Raw:
    """The real tool's arguments, as the bytes that an approval will show. What has no form is real already."""
    form = FORMS.get(move.tool)
    return msgspec.Raw(msgspec.json.encode(form.real(move.arguments) if form else move.arguments))


def small_move(tool: str, arguments: bytes) -> Move:
    """A call of the log as the model is shown it. Another model's call of a tool that is not ours stays as it is."""
    try:
        given = msgspec.json.decode(arguments)
    except ValueError:
        given = {}
    given = given if isinstance(given, dict) else {}
    return Move(tool, FORMS[tool].small(given) if tool in FORMS else given)
