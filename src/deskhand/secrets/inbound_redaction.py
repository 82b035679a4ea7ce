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

from ..agent.protocols import SecretHider
from ..types import events as e
from ..types.commit import Choices, Outgoing, SayPart
from ..types.errors import Refused
from ..types.identity import Body, Said
from ..types.labels import Label, join_labels
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
from ..types.secrets import HANDLE_PATTERN, format_handle
from .redaction import Redactor

Redact = Callable[[str], str]


class SecretHiding:
    """Hides the secrets that a redactor knows."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self.stream = redact.stream
        self.redact_text: Redact = redact

    def redact_event(self, event: e.AnyEvent) -> e.AnyEvent:
        return redact_event(event, self._redact)

    def redact_outgoing(self, outgoing: Outgoing) -> Outgoing:
        return redact_outgoing(outgoing, self._redact)


def redact_event(event: e.AnyEvent, redact: Redact) -> e.AnyEvent:
    """The event without any secret in what a tool, a provider or a person said, names included."""
    match event:
        case e.ToolFinished(result=result):
            kept = _redact_result(result, redact)
            return event if kept is result else replace(event, result=kept)
        case e.ModelReplied(message=message):
            said = redact_message(message, redact)
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
        case e.OptionsSet() | e.Transcribed():
            return redact_value(event, redact)
        case e.TurnEnded(said=told) if told:
            return replace(event, said=redact(told))
        case _:
            return event


def redact_message(message: Message, redact: Redact) -> Message:
    """The same message where there was nothing to hide."""
    parts = _redact_parts(message.parts, redact)
    return message if parts == message.parts else replace(message, parts=parts)


def _redact_result(result: ToolResult, redact: Redact) -> ToolResult:
    """The same result where there was nothing to hide."""
    parts = tuple(
        part for part in _redact_parts(result.parts, redact) if isinstance(part, ResultPart)
    )
    return result if parts == result.parts else replace(result, parts=parts)


def redact_body(body: Body, redact: Redact) -> Body:
    """What a person or a program hands in, before it is stored: without secrets in any string of
    it."""
    match body:
        # Nearly always: one text, on the word of one person, whom no secret names.
        case Said(
            message=Message(
                parts=(Text(label=Label(source=source, by=(), readers=None)),)
            ) as message,
            earlier=(),
            request=None,
        ) if not source or redact(source) == source:
            return replace(body, message=redact_message(message, redact))
        case _:
            return redact_value(body, redact)


T = TypeVar("T")


def redact_value(value: T, redact: Redact) -> T:
    """The same value without secrets in any string of it, however deep it lies; the very same where
    there is none. What is a key by which something else is found is another one then, and finds
    nothing."""
    found: Any = value
    match found:
        case str():
            kept: Any = redact(found)
        case Raw():
            written = bytes(found).decode(errors="replace")
            kept = found if (plain := redact(written)) == written else Raw(ensure_json(plain))
        case Struct():
            found = (
                _redact_part(found, redact) if isinstance(found, Part) else found
            )  # some are sealed, some hold JSON
            fields = {name: getattr(found, name) for name in found.__struct_fields__}
            changed = {
                name: new
                for name, old in fields.items()
                if (new := redact_value(old, redact)) is not old
            }
            kept = replace(found, **changed) if changed else found
        case tuple() | list():
            members = [redact_value(each, redact) for each in found]
            kept = (
                found
                if all(new is old for new, old in zip(members, found, strict=True))
                else type(found)(members)
            )
        case dict():
            pairs = {
                redact_value(key, redact): redact_value(each, redact) for key, each in found.items()
            }
            kept = found if pairs == found else pairs
        case _:
            kept = found
    return cast("T", kept)  # of the same type: only strings have changed


def find_secret(text: str, redact: Redact) -> str:
    """What stands in place of the first secret in this text, '' where there is none."""
    if (kept := redact(text)) == text:
        return ""
    there = set(HANDLE_PATTERN.findall(text))
    return next(
        (format_handle(name) for name in HANDLE_PATTERN.findall(kept) if name not in there),
        "[secret]",
    )


def reject_secrets(what: str, text: str, redact: Redact) -> None:
    """Raises Refused where what is about to be written holds the value of a secret."""
    if found := find_secret(text, redact):
        raise Refused(
            f"{what} contains the value of a secret: write {found} instead, which commands may "
            "use, or leave it out"
        )


def _redact_parts(parts: tuple[Part, ...], redact: Redact) -> tuple[Part, ...]:
    return tuple(_redact_part(part, redact) for part in parts)


def _redact_part(part: Part, redact: Redact) -> Part:
    match part:
        case Text(text=text):
            return part if (kept := redact(text)) == text else replace(part, text=kept)
        case File(name=name, shown=shown):
            return replace(part, name=redact(name), shown=redact(shown))
        case Thinking(text=text) if (kept := redact(text)) != text:
            return replace(part, text=kept, signature="")  # the seal was over the other words
        case ToolResult():
            return _redact_result(part, redact)
        case ToolCall(name=name, arguments=arguments):
            written = bytes(arguments).decode(errors="replace")
            kept = redact(written)
            called = redact(name)
            if kept == written and called == name:
                return part
            return replace(part, name=called, arguments=Raw(ensure_json(kept)))
        case Image(name=name) if name:
            return replace(part, name=redact(name))
        case _:
            return part


def redact_outgoing(outgoing: Outgoing, redact: Redact) -> Outgoing:
    """What is to be said without secrets: its words, the names of its files, its question and the
    choices."""
    parts: list[SayPart] = []
    for together, run in groupby(outgoing.parts, lambda part: isinstance(part, Text)):
        if together:
            texts = [part for part in run if isinstance(part, Text)]
            words = "".join(part.text for part in texts)
            kept = redact(words)
            parts += (
                texts if kept == words else [Text(kept, join_labels(part.label for part in texts))]
            )
            continue
        parts += [
            replace(part, name=redact(part.name)) for part in run if isinstance(part, File | Image)
        ]
    ask = outgoing.ask
    return replace(outgoing, parts=tuple(parts), ask=ask and _redact_choices(ask, redact))


def _redact_choices(ask: Choices, redact: Redact) -> Choices:
    return replace(
        ask,
        question=redact(ask.question),
        choices=tuple(map(redact, ask.choices)),
        note=redact(ask.note),
        decided=redact(ask.decided),
    )


def ensure_json(text: str) -> bytes:
    """The text where it is JSON, else the text as a JSON string: where a secret reached over
    brackets, it is none any more."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.json.encode(text)
    return text.encode()


_: type[SecretHider] = SecretHiding
