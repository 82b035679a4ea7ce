"""What a model says in a recording: the same against any server.

A script is a list of replies for a message: `{"text": ...}`, and `"calls": [[TOOL, ARGUMENTS],
...]` where it calls tools. The replies come in order, the last one again and again; a reply
`{"fails": true}` is an error of the provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Script = Mapping[str, Sequence[dict[str, Any]]]
OTHERWISE = {"text": "All is done."}


def reply_to(script: Script, said: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What the model says to these messages (role and text), by the last one of the user that has a
    script."""
    for at in range(len(said) - 1, -1, -1):
        role, text = said[at]
        name = _named(script, text) if role == "user" else None
        if name is not None:
            replies = script[name]
            so_far = sum(role == "assistant" for role, _ in said[at:])
            return replies[min(so_far, len(replies) - 1)]
    return OTHERWISE


def _named(script: Script, text: str) -> str | None:
    """The message of the script that this text ends with, but for what a server adds in tags or on
    lines of its own."""
    lines = [line.partition("<")[0].strip() for line in text.splitlines()]
    return next((name for name in script if any(line.endswith(name) for line in lines)), None)
