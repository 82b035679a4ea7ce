"""Takes the values of secrets out of what is about to be remembered: nothing of them reaches the
log.

The model knows no value, as all that it reads has come through here. Where it wrote one all the
same (it was no secret yet when the model read it), the call is made with the handle: the broker
knows that, and no file takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ..agent.profile import Hiding
from ..types import events as e
from ..types.commit import Choices, Outgoing, SayPart
from ..types.errors import Refused
from ..types.identity import Body, Said
from ..types.labels import join
from ..types.messages import (
    File,
    Image,
    Message,
    Part,
    ResultPart,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ..types.secrets import HANDLE, handle
from .redaction import Redactor

Redact = Callable[[str], str]


class SecretHiding:
    """Hides the secrets that a redactor knows."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self.stream = redact.stream

    def event(self, event: e.AnyEvent) -> e.AnyEvent:
        return hidden(event, self._redact)

    def outgoing(self, outgoing: Outgoing) -> Outgoing:
        return hidden_outgoing(outgoing, self._redact)


def hidden(event: e.AnyEvent, redact: Redact) -> e.AnyEvent:
    """The event without any secret in what a tool, a provider or a person said, names included."""
    match event:
        case e.ToolFinished(result=result):
            kept = _hidden_result(result, redact)
            return event if kept is result else replace(event, result=kept)
        case e.ModelReplied(message=message):
            said = hidden_message(message, redact)
            return event if said is message else replace(event, message=said)
        case e.ModelFailed(detail=detail):
            return replace(event, detail=redact(detail))
        case e.CallClosed(reason=reason):
            return replace(event, reason=redact(reason))
        case e.ApprovalAsked(reason=reason, source=source, about=about):
            return replace(event, reason=redact(reason), source=redact(source), about=redact(about))
        case e.QuestionAsked(question=question, choices=choices):
            return replace(event, question=redact(question), choices=tuple(map(redact, choices)))
        case e.CommandRun(args=args, reply=reply):
            return replace(event, args=redact(args), reply=redact(reply))
        case e.Recalled(part=part):
            return replace(event, part=replace(part, text=redact(part.text)))
        case e.Compacted(note=note) if note:
            return replace(event, note=redact(note))
        case e.OptionsSet():
            return everywhere(event, redact)
        case e.TurnEnded(said=told) if told:
            return replace(event, said=redact(told))
        case _:
            return event


def hidden_message(message: Message, redact: Redact) -> Message:
    """The same message where there was nothing to hide."""
    parts = _parts(message.parts, redact)
    return message if parts == message.parts else replace(message, parts=parts)


def _hidden_result(result: ToolResult, redact: Redact) -> ToolResult:
    """The same result where there was nothing to hide."""
    parts = tuple(part for part in _parts(result.parts, redact) if isinstance(part, ResultPart))
    return result if parts == result.parts else replace(result, parts=parts)


def hidden_body(body: Body, redact: Redact) -> Body:
    """What a person or a program hands in, before it is stored: without secrets in any string of
    it."""
    if isinstance(body, Said) and not body.earlier and body.request is None:  # as nearly always
        return replace(body, message=hidden_message(body.message, redact))
    return everywhere(body, redact)


T = TypeVar("T")


def everywhere(value: T, redact: Redact) -> T:
    """The same value without secrets in any string of it, however deep it lies; the very same where
    there is none. What is a key by which something else is found is another one then, and finds
    nothing."""
    found: Any = value
    match found:
        case str():
            kept: Any = redact(found)
        case Raw():
            written = bytes(found).decode(errors="replace")
            kept = found if (plain := redact(written)) == written else Raw(as_json(plain))
        case Struct():
            found = (
                _part(found, redact) if isinstance(found, Part) else found
            )  # some are sealed, some hold JSON
            fields = {name: getattr(found, name) for name in found.__struct_fields__}
            changed = {
                name: new
                for name, old in fields.items()
                if (new := everywhere(old, redact)) is not old
            }
            kept = replace(found, **changed) if changed else found
        case tuple() | list():
            members = [everywhere(each, redact) for each in found]
            kept = (
                found
                if all(new is old for new, old in zip(members, found, strict=True))
                else type(found)(members)
            )
        case dict():
            pairs = {
                everywhere(key, redact): everywhere(each, redact) for key, each in found.items()
            }
            kept = found if pairs == found else pairs
        case _:
            kept = found
    return cast("T", kept)  # of the same type: only strings have changed


def secret_in(text: str, redact: Redact) -> str:
    """What stands in place of the first secret in this text, '' where there is none."""
    if (kept := redact(text)) == text:
        return ""
    there = set(HANDLE.findall(text))
    return next((handle(name) for name in HANDLE.findall(kept) if name not in there), "[secret]")


def refuse_secrets(what: str, text: str, redact: Redact) -> None:
    """Raises Refused where what is about to be written holds the value of a secret."""
    if found := secret_in(text, redact):
        raise Refused(
            f"{what} holds the value of a secret: write {found} in its place, which "
            "commands may use, or leave it out"
        )


def _parts(parts: tuple[Part, ...], redact: Redact) -> tuple[Part, ...]:
    return tuple(_part(part, redact) for part in parts)


def _part(part: Part, redact: Redact) -> Part:
    match part:
        case Text(text=text):
            return part if (kept := redact(text)) == text else replace(part, text=kept)
        case File(name=name, shown=shown):
            return replace(part, name=redact(name), shown=redact(shown))
        case Thinking(text=text) if (kept := redact(text)) != text:
            return replace(part, text=kept, signature="")  # the seal was over the other words
        case ToolResult():
            return _hidden_result(part, redact)
        case ToolCall(name=name, arguments=arguments):
            written = bytes(arguments).decode(errors="replace")
            kept = redact(written)
            called = redact(name)
            if kept == written and called == name:
                return part
            return replace(part, name=called, arguments=Raw(as_json(kept)))
        case Image(name=name) if name:
            return replace(part, name=redact(name))
        case _:
            return part


def hidden_outgoing(outgoing: Outgoing, redact: Redact) -> Outgoing:
    """What is to be said without secrets: its words, the names of its files, its question and the
    choices."""
    parts: list[SayPart] = []
    for together, run in groupby(outgoing.parts, lambda part: isinstance(part, Text)):
        if together:
            texts = [part for part in run if isinstance(part, Text)]
            words = "".join(part.text for part in texts)
            kept = redact(words)
            parts += texts if kept == words else [Text(kept, join(part.label for part in texts))]
            continue
        parts += [
            replace(part, name=redact(part.name)) for part in run if isinstance(part, File | Image)
        ]
    ask = outgoing.ask
    return replace(outgoing, parts=tuple(parts), ask=ask and _hidden_choices(ask, redact))


def _hidden_choices(ask: Choices, redact: Redact) -> Choices:
    return replace(
        ask,
        question=redact(ask.question),
        choices=tuple(map(redact, ask.choices)),
        note=redact(ask.note),
        decided=redact(ask.decided),
    )


def as_json(text: str) -> bytes:
    """The text where it is JSON, else the text as a JSON string: where a secret reached over
    brackets, it is none any more."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.json.encode(text)
    return text.encode()


_: type[Hiding] = SecretHiding
