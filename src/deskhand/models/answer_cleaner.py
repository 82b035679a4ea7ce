"""Takes out of an answer what is none: marks of messages that a model repeats at its beginning, and
control tokens."""

from __future__ import annotations

import re

from .decode import TextCleaner

_MARK = re.compile(r"\s{0,100}(?:\[(?:bot_)?msg_id:[^\]\n]{1,80}\]\s{0,100}){1,20}")
"""Bounded in every part, so that little is held back."""
_CONTROL = re.compile(r"<ctrl\d{1,3}>")
_CONTROL_BEGINS = re.compile(r"<(?:c(?:t(?:r(?:l\d{0,3})?)?)?)?\Z")
_MARK_STARTS = ("[msg_id:", "[bot_msg_id:")
_MAX_HELD_CHARS = 200
"""More than white space and a mark can be: what is longer and still open is text."""


class Echoes:
    """Feed it text as it comes; it gives back what is meant for people. Marks that come later are
    part of the text: people ask about them."""

    __slots__ = ("_begun", "_control", "_held")

    def __init__(self) -> None:
        self._begun = False
        self._held = ""
        self._control = ""

    def feed(self, text: str) -> str:
        """What is now certain."""
        if self._begun and not self._control and "<" not in text:
            return text
        text = self._control + text
        unfinished = _CONTROL_BEGINS.search(text)
        end = unfinished.start() if unfinished else len(text)
        self._control = text[end:]
        return self._strip_leading_marks(_CONTROL.sub("", text[:end]))

    def close(self) -> str:
        """What was held back."""
        rest = self._held + self._control
        self._held = ""
        self._control = ""
        return self._strip_rest(rest)

    def _strip_leading_marks(self, text: str) -> str:
        if self._begun:
            return text
        self._held += text
        marks = _MARK.match(self._held)
        rest = self._held[marks.end() :] if marks else self._held
        if len(rest) <= _MAX_HELD_CHARS and (not rest.strip() or _may_be_mark(rest.lstrip())):
            return ""
        self._begun = True
        self._held = ""
        return rest

    def _strip_rest(self, text: str) -> str:
        if self._begun:
            return text
        marks = _MARK.match(text)
        return text[marks.end() :] if marks else text


class AnswerCleaner(TextCleaner):
    """A cleaner of text that is meant for people."""

    def __init__(self) -> None:
        super().__init__()
        self._echoes = Echoes()

    def feed(self, text: str) -> str:
        return self._echoes.feed(super().feed(text))

    def close(self) -> str:
        return self._echoes.feed(super().close()) + self._echoes.close()


def _may_be_mark(text: str) -> bool:
    """Whether it may become a mark that is not closed yet."""
    if "]" in text or "\n" in text:
        return False
    return any(name.startswith(text[: len(name)]) for name in _MARK_STARTS)
