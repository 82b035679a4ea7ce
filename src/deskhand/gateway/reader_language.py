"""Says what Deskhand itself has written in the language of its reader, at the moment at which it is
sent: the log has it in English, and every reader their own."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Protocol, TypeGuard

from msgspec.structs import replace

from ..languages.sentences import say_notice
from ..types.commit import Outgoing, SayPart
from ..types.errors import StoreError
from ..types.labels import LOCAL
from ..types.messages import Text
from ..users.reader_languages import ReaderLanguages

log = logging.getLogger(__name__)


class Localize(Protocol):
    """Says what is sent in the language of its reader. With `always` that language is looked up
    also where nothing in it is said by Deskhand itself."""

    def __call__(self, outgoing: Outgoing, *, always: bool = False) -> Awaitable[Outgoing]: ...


async def leave_english(outgoing: Outgoing, *, always: bool = False) -> Outgoing:
    """A `Localize` that says everything as it was written."""
    return outgoing


def make_localize(languages: ReaderLanguages) -> Localize:
    """The `Localize` of these readers. Where their language cannot be read it is English."""

    async def localize(outgoing: Outgoing, *, always: bool = False) -> Outgoing:
        own = (outgoing.ask, outgoing.actions)
        if not always and own == (None, None) and not any(map(_is_own, outgoing.parts)):
            return outgoing
        try:
            language = outgoing.language or await languages.find(outgoing.address)
        except StoreError as error:  # what is said matters more
            log.warning("The language of a reader cannot be read: %s", error)
            return outgoing
        return say_outgoing(outgoing, language)

    return localize


def say_outgoing(outgoing: Outgoing, language: str) -> Outgoing:
    """The same in this language: Deskhand's own words, and what stands around a question. What is
    asked about stays byte for byte."""
    parts = tuple([_say_part(part, language) for part in outgoing.parts])
    ask = outgoing.ask
    if ask is not None:
        note = say_notice(ask.note, language)
        ask = replace(ask, note=note, decided=say_notice(ask.decided, language))
    return replace(outgoing, parts=parts, ask=ask, language=language)


def _say_part(part: SayPart, language: str) -> SayPart:
    return Text(say_notice(part.text, language), LOCAL) if _is_own(part) else part


def _is_own(part: SayPart) -> TypeGuard[Text]:
    return isinstance(part, Text) and part.label == LOCAL
