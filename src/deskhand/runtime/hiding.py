"""Takes the values of secrets out of what is about to be remembered: nothing of them reaches the log.

What a call was made with stays as the model wrote it, since that is what runs, also after a restart. The model itself
never knows a value, as all that it reads has come through here.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ..types import events as e
from ..types.identity import Body, Command, Edit, Rewind, Said
from ..types.messages import File, Message, Part, ResultPart, Text

Redact = Callable[[str], str]


def hidden(event: e.AnyEvent, redact: Redact) -> e.AnyEvent:
    """The event without any secret in what a tool, a provider or a person said."""
    match event:
        case e.ToolFinished(result=result):
            parts = tuple(part for part in _parts(result.parts, redact) if isinstance(part, ResultPart))
            return event if parts == result.parts else replace(event, result=replace(result, parts=parts))
        case e.ModelReplied(message=message):
            said = hidden_message(message, redact)
            return event if said is message else replace(event, message=said)
        case e.ModelFailed(detail=detail):
            return replace(event, detail=redact(detail))
        case e.CallClosed(reason=reason):
            return replace(event, reason=redact(reason))
        case e.QuestionAsked(question=question, choices=choices):
            return replace(event, question=redact(question), choices=tuple(map(redact, choices)))
        case e.TurnEnded(said=told) if told:
            return replace(event, said=redact(told))
        case _:
            return event


def hidden_message(message: Message, redact: Redact) -> Message:
    """The same message where there was nothing to hide."""
    parts = _parts(message.parts, redact)
    return message if parts == message.parts else replace(message, parts=parts)


def hidden_body(body: Body, redact: Redact) -> Body:
    """What a person hands in, before it is stored."""
    match body:
        case Said(message=message) | Edit(message=message):
            return replace(body, message=hidden_message(message, redact))
        case Rewind(message=Message() as message):
            return replace(body, message=hidden_message(message, redact))
        case Command(args=args):
            return replace(body, args=redact(args))
        case _:
            return body


def _parts(parts: tuple[Part, ...], redact: Redact) -> tuple[Part, ...]:
    return tuple(_part(part, redact) for part in parts)


def _part(part: Part, redact: Redact) -> Part:
    match part:
        case Text(text=text):
            return replace(part, text=redact(text))
        case File(shown=shown) if shown:
            return replace(part, shown=redact(shown))
        case _:
            return part
