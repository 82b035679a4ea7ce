"""Prepares what a person or a program sent: cleans text, labels parts, and recognises commands."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import asdict, replace

from ..policy.approval import parse_choice
from ..types.client import CLIENT_HISTORY_SOURCE
from ..types.commands import COMMAND_ALIASES, COMMANDS
from ..types.door import TEXT_CHARS
from ..types.identity import (
    Body,
    Command,
    Configure,
    Edit,
    Principal,
    Rewind,
    Said,
    ToolResults,
    principal_label,
)
from ..types.labels import Label
from ..types.marked_texts import mark_text
from ..types.messages import (
    Audio,
    File,
    Image,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    clean_text,
)

HISTORY_CHARS = 10_000_000
HISTORY_MESSAGES = 5_000
"""The longest history that a program may send with a message."""
COMMAND_NAME_CHARS = 64
"""An unknown command is repeated up to this length."""
_COMMAND = re.compile(r"(/)(\w{1,64})(?:\s+(.*))?|(!)(\w\S*)(?:\s+(.*))?", re.DOTALL)


def normalize_body(body: Body, principal: Principal, *, by_program: bool = False) -> Body:
    """The body with its text cleaned and its parts labelled. A message that is a command becomes a
    Command, unless a bot wrote it."""
    match body:
        case Said():
            return _normalize_said(body, principal, by_program=by_program)
        case Edit():
            return Edit(body.of, label_parts(body.message, principal, by_program=by_program))
        case Rewind(message=message) if message is not None:
            return Rewind(body.to_n, label_parts(message, principal))
        case Configure():
            texts = {
                name: clean_text(value)
                for name, value in asdict(body.options).items()
                if isinstance(value, str)
            }
            return Configure(replace(body.options, **texts))
        case ToolResults():
            results = tuple(map(_label_result, body.results))
            if body.message is None:
                return replace(body, results=results)
            return replace(body, results=results, message=label_parts(body.message, principal))
        case _:
            return body


def _normalize_said(body: Said, principal: Principal, *, by_program: bool) -> Body:
    if by_program:
        return replace(body, message=label_parts(body.message, principal, by_program=True))
    text = "".join(map(_typed_text, body.message.parts)).strip()
    if text.startswith(("/", "!")):
        command = _parse_command(text, body, principal)
        if command is not None:
            return command
    if body.earlier or body.message.role != "user":
        return _label_history(body, principal)
    return Said(label_parts(body.message, principal), (), body.request)


def body_problem(body: Body) -> str:
    """Why this body is too long to be accepted, or ''."""
    match body:
        case Said(message=message, earlier=earlier):
            wrong = history_problem(earlier) if earlier else ""
            return wrong or _message_problem(message)
        case ToolResults(results=results, message=message):
            size = sum(len(each.text) for each in results)
            if size > TEXT_CHARS:
                return f"the results have {size:,} characters; at most {TEXT_CHARS:,} fit"
            return _message_problem(message)
        case Edit(message=message) | Rewind(message=message):
            return _message_problem(message)
        case _:
            return ""


def _message_problem(message: Message | None) -> str:
    size = count_chars(message) if message is not None else 0
    if size <= TEXT_CHARS:
        return ""
    return (
        f"the message has {size:,} characters; at most {TEXT_CHARS:,} fit. Send it as a "
        "file, or in parts"
    )


def history_problem(earlier: Sequence[Message]) -> str:
    """Why this history is too long to be accepted, or ''."""
    if len(earlier) > HISTORY_MESSAGES:
        return f"the history has {len(earlier):,} messages; at most {HISTORY_MESSAGES:,} fit"
    size = sum(map(count_chars, earlier))
    if size > HISTORY_CHARS:
        return f"the history has {size:,} characters; at most {HISTORY_CHARS:,} fit"
    return ""


def count_chars(message: Message) -> int:
    """The length of its texts and tool results."""
    return sum(len(part.text) for part in message.parts if isinstance(part, Text | ToolResult))


def label_parts(message: Message, principal: Principal, *, by_program: bool = False) -> Message:
    """The message with a label on each part.

    Text that the sender typed has their label. Pictures, recordings and files may come from
    anybody, so they are untrusted, and so is text that the channel marked as from outside and
    everything that a program wrote. A channel can only lower a label, never raise it.
    """
    mine = principal_label(principal)
    if by_program:
        mine = Label("untrusted", source=mark_text("the bot {id}").format(id=principal.id))
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Text):
            label = part.label if _has_outside_label(part) else mine
            parts.append(Text(clean_text(part.text), label))
        elif isinstance(part, Image | Audio | File):
            if not _has_outside_label(part):
                source = _source_name(part, principal)
                part = replace(part, label=Label("untrusted", source=source, by=mine.by))
            parts.append(replace(part, shown="") if isinstance(part, File) else part)
        else:
            parts.append(part)
    return Message("user", tuple(parts))


def _source_name(part: Image | Audio | File, sender: Principal) -> str:
    """What people are told of where it comes from."""
    if isinstance(part, File):
        return mark_text("file {path}").format(path=part.display_name)
    return f"a {'picture' if isinstance(part, Image) else 'recording'} from {sender.id}"


def _has_outside_label(part: Text | Image | Audio | File) -> bool:
    """Whether the channel says that this part comes from outside, and from where."""
    return part.label.integrity == "untrusted" and bool(part.label.source)


def _typed_text(part: Part) -> str:
    """The text of a part that the sender typed, or ''."""
    return part.text if isinstance(part, Text) and not _has_outside_label(part) else ""


def _label_history(body: Said, principal: Principal) -> Said:
    """A message of a program, with the history that it sent along. The message may be a result of
    the program's own tool."""
    earlier = tuple(_label_program_message(message, principal) for message in body.earlier)
    return Said(_label_program_message(body.message, principal), earlier, body.request)


def _label_program_message(message: Message, principal: Principal) -> Message:
    """One message of a history: what the person typed has their label, everything else is from
    outside. An assistant may quote a page that was read for an earlier request, and nobody here
    knows of that."""
    if message.role == "user":
        return label_parts(message, principal)
    outside = Label("untrusted", source=CLIENT_HISTORY_SOURCE)
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            parts.append(_label_result(part))
        elif isinstance(part, Text):
            parts.append(Text(clean_text(part.text), outside))
        elif isinstance(part, ToolCall):
            parts.append(part)
    return Message(message.role, tuple(parts))


def _label_result(result: ToolResult) -> ToolResult:
    sources = [part.label.source for part in result.parts if part.label.source]
    source = sources[0] if sources else CLIENT_HISTORY_SOURCE
    label = Label("untrusted", source=clean_text(source))
    texts = [part for part in result.parts if isinstance(part, Text)]
    return replace(result, parts=tuple(Text(clean_text(part.text), label) for part in texts))


def _parse_command(text: str, body: Said, principal: Principal) -> Command | None:
    """The command that a message with this text is, or None.

    A word directly after `!` is always a command, known or not: such a message never reaches the
    model. With a file, unknown words are its caption, so that the file is not lost. After `/` an
    unknown word is a command only when nothing follows; with more words it is text, such as a path.
    `/yes` and `!once` are answers to a question. From a program only commands that exist count.
    """
    match = _COMMAND.fullmatch(text)
    if match is None:
        return None
    prefix, word, args = match.groups()[:3] if match[1] else match.groups()[3:]
    name = COMMAND_ALIASES.get(word.lower(), word.lower())
    if name not in COMMANDS:
        if not _is_plain_text(body, principal) or parse_choice(text) is not None:
            return None
        if prefix == "/" and args is not None:
            return None
        name = clean_text(name)[:COMMAND_NAME_CHARS]
    return Command(name, clean_text(args or ""), "/" if prefix == "/" else "!")


def _is_plain_text(body: Said, principal: Principal) -> bool:
    """Whether a person typed all of it, with no file and no history."""
    if principal.kind != "person" or body.earlier or body.request is not None:
        return False
    return all(
        isinstance(part, Text) and not _has_outside_label(part) for part in body.message.parts
    )
