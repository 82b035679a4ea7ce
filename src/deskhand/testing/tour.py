"""The model of the first visit: a script with real tools, so that everything can be seen before a
model is chosen."""

from __future__ import annotations

import msgspec

from ..models.base import Request
from ..types.messages import Message, Text, ToolCall, ToolResult
from .scripted import say

EXAMPLES = (
    "Write three ideas for a birthday present into ideas.txt",
    "What is in my folder?",
    "Ask me something",
)
"""What the page suggests on the first visit."""
IDEAS = "1. a picnic by the river\n2. a concert at home\n3. a walk with a treasure hunt\n"
HOW = (
    "I am a script, not a language model: I show how Deskhand works, and nothing leaves "
    "this machine. "
    "Choose a real model under **Set up**: a key of yours, a server that runs here, or one "
    "that needs neither."
)


def tour(request: Request) -> Message:
    """A call that fits what the person wrote, and words about what came of it."""
    turn = _since_the_person_spoke(request)
    results = [part for message in turn for part in message.parts if isinstance(part, ToolResult)]
    asked = _said(turn[0]).lower() if turn else ""
    if results:
        return say(_about(results[-1], asked))
    if "idea" in asked or "write" in asked:
        return say("I write them down.", _call("write_file", path="ideas.txt", content=IDEAS))
    if "folder" in asked or "file" in asked:
        return say("I look.", _call("list_files", path="."))
    if "ask me" in asked:
        return say(
            "", _call("ask_user", question="Which do you like better?", choices=["tea", "coffee"])
        )
    return say(
        f"You said: {_said(turn[0]) if turn else ''}\n\n{HOW}\n\nTry: {'; '.join(EXAMPLES)}."
    )


def _about(result: ToolResult, asked: str) -> str:
    if result.status != "ok":
        return f"That did not happen: {result.text}\n\n{HOW}"
    if "ask me" in asked:
        return (
            f"You like {result.text} better. I shall remember it for as long as this "
            f"conversation lasts.\n\n{HOW}"
        )
    if "idea" in asked or "write" in asked:
        return (
            "They are in `ideas.txt`; the files beside this conversation show "
            f"it.\n\n```\n{IDEAS}```\n\n{HOW}"
        )
    return f"This is what I found:\n\n```\n{result.text}\n```\n\n{HOW}"


def _since_the_person_spoke(request: Request) -> list[Message]:
    """The last message of a person and what followed it."""
    messages = [shown.message for shown in request.messages]
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=0)
    return messages[last:]


def _said(message: Message) -> str:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return "".join(texts[1:] if len(texts) > 1 else texts).strip()  # the first piece is the date


def _call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(f"call_{name}", name, msgspec.Raw(msgspec.json.encode(arguments)))
