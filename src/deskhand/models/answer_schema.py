"""Holds an answer to a JSON schema that somebody gave.

A schema is a program of its own: it may call itself, and grow without end. It is run by a process
of its own, with little memory and little time (`answer_schema_main.py`, the extra [schema]).
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import anyio
import msgspec
from anyio import CapacityLimiter

from ..types.client import ANY_OBJECT

CHECK_S = 5.0
MAX_CHECKS = 4
"""So many processes check at one time."""
MISMATCH_EXIT_CODE = 3
"""The exit code for what does not fit; the words are on stdout."""
INSTALL = "pip install 'deskhand[schema]'"
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)


class Checked(msgspec.Struct, frozen=True):
    """What is to be checked. Without an `answer` only the schema itself is."""

    schema: dict[str, Any]
    answer: str | None = None


def is_installed() -> bool:
    """Whether a schema can be checked: the library is never loaded into this process."""
    return find_spec("jsonschema_rs") is not None


def render_schema_prompt(schema: dict[str, Any]) -> str:
    """What a model is told of the answer that is wanted."""
    if schema == ANY_OBJECT:
        return "Answer with one JSON object and nothing else."
    wanted = msgspec.json.encode(schema).decode()
    return (
        f"Answer with one JSON value and nothing else. It must follow this JSON schema:\n{wanted}"
    )


def strip_fence(text: str) -> str:
    """The answer without the code fence that models like to put around JSON."""
    text = text.strip()
    if text.startswith("```") and (match := _FENCED.fullmatch(text)):
        return match[1].strip()
    return text


def make_check_limiter() -> CapacityLimiter:
    """The places that all checks of one kind share: who comes later waits."""
    return CapacityLimiter(MAX_CHECKS)


async def find_schema_problem(schema: dict[str, Any], places: CapacityLimiter) -> str:
    """Why this schema cannot be used; '' where it can. It waits for one of the `places`."""
    return await _check(Checked(schema), places)


async def find_answer_problem(text: str, schema: dict[str, Any], places: CapacityLimiter) -> str:
    """Why this answer does not fit the schema; '' where it does. It waits for one of the
    `places`."""
    text = strip_fence(text)
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"it is not JSON: {error}"
    if schema == ANY_OBJECT:
        return "" if isinstance(found, dict) else "it is not a JSON object"
    return await _check(Checked(schema, text), places)


async def _check(checked: Checked, places: CapacityLimiter) -> str:
    if not is_installed():
        return f"checking JSON schemas needs an extra: {INSTALL}"
    command = [sys.executable, "-I", "-m", "deskhand.models.answer_schema_main"]
    try:
        async with places:
            with anyio.fail_after(CHECK_S):
                done = await anyio.run_process(
                    command,
                    input=msgspec.json.encode(checked),
                    check=False,
                    env={},
                    stderr=subprocess.DEVNULL,
                )
    except TimeoutError:
        return f"checking it took longer than {CHECK_S:.0f} s: use a simpler schema"
    if done.returncode == MISMATCH_EXIT_CODE:
        return done.stdout.decode("utf-8", "replace").strip()
    return "" if done.returncode == 0 else "it could not be checked: use a simpler schema"
