"""An answer as a file: which one, and under which name. Pure."""

from __future__ import annotations

import re

from ..types.errors import Refused
from ..types.events import CommandRun
from ..types.identity import Command
from ..types.marked_texts import mark_text
from .rewind import RewindView

DEFAULT_NAME = "answer.md"
MAX_NAME_CHARS = 60
MAX_HEADING_CHARS = 300
MAX_SEARCHED_CHARS = 20_000
"""A heading further down names nothing."""
DOCUMENT_MIME = "text/markdown"
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S.*)$", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_NOT_IN_NAMES = re.compile(r"[^\w\s.,()+&'-]|_")


def find_answer(past: RewindView, command: Command) -> str:
    """The Markdown that /document sends: the last answer of the conversation, or that of the turn
    whose button was pressed. Raises Refused where there is none."""
    turns = [turn.said[0].inbox_id for turn in past.turns_at(len(past.log))]
    wanted = [turn for turn in turns if command.turn in (0, turn)]
    for turn in wanted:
        if answer := past.answers.get(turn, ""):
            return answer
    brought = [] if command.turn or past.current.archived else past.current.messages
    for shown in reversed(brought):  # a branch begins with what was said before it
        message = shown.message
        if message.role == "assistant" and not message.calls and message.text.strip():
            return message.text
    raise Refused(mark_text("there is no answer in this conversation yet; ask something first"))


def is_out_of_date(past: RewindView, command: Command) -> bool:
    """Whether a button was pressed that can do nothing any more: its turn was undone, or is no
    longer the last one, or the document was sent already."""
    if not command.turn:
        return False
    turns = [turn.said[0].inbox_id for turn in past.turns_at(len(past.log))]
    if command.name != "document":
        return command.turn not in turns[:1]
    return command.turn not in turns or any(
        isinstance(event, CommandRun) and event.turn == command.turn and event.file is not None
        for event in (recorded.event for recorded in past.log)
    )


def name_document(markdown: str) -> str:
    """The name of its file: the first heading, where there is one."""
    heading = _HEADING.search(_FENCED.sub("", markdown[:MAX_SEARCHED_CHARS]))
    if heading is None:
        return DEFAULT_NAME
    title = heading[1][:MAX_HEADING_CHARS].rstrip(" \t#")
    words = _NOT_IN_NAMES.sub(" ", _LINK.sub(r"\1", title))
    name = " ".join(words.split())[:MAX_NAME_CHARS].strip(". ")
    return f"{name}.md" if name else DEFAULT_NAME
