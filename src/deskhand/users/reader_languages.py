"""In which language somebody reads what Deskhand itself says: the one that they chose with
`/language`, else the one of their chat program, else that of the configuration. What a model says
is in the language in which it was asked."""

from __future__ import annotations

from collections.abc import Callable

from ..languages.catalogue import all_languages, find_language
from ..store.base import Store
from ..types.identity import Address, Body, Command, Principal
from ..types.marked_texts import mark_text
from .queries import (
    choose_language,
    find_reader,
    language_now,
    language_of,
    report_language,
)

LANGUAGE = "language"
AUTO = "auto"
_CHOSEN = mark_text("I write to you in {language_name}.")
_FOLLOWS = mark_text(
    "I write to you in the language of your chat program or page: {language_name}."
)
_USAGE = mark_text("Choose with /language {codes}, or /language auto.")
_UNKNOWN = mark_text("I have no language {language}; there are: {codes}.")


class ReaderLanguages:
    """`default` is the code of the configuration."""

    def __init__(self, store: Store, default: Callable[[], str]) -> None:
        self._store = store
        self._default = default
        self._reported: dict[str, str] = {}  # what was written down, by person

    async def report(self, person: str, wanted: str) -> None:
        """Their chat program has this language, as `de` or `de-AT`. Written down once."""
        language = find_language(wanted)
        code = language.code if language is not None else ""
        if self._reported.get(person) != code:
            await self._store.change([report_language(person, code)])
            self._reported[person] = code

    async def find(self, address: Address) -> str:
        """The code of the language in which this place is written to."""
        reader = "" if address.group else await find_reader(self._store, address)
        known = await language_of(self._store, reader) if reader else ""
        return known or self._default()

    async def carry_out(self, body: Body, principal: Principal) -> None:
        """Write down which language this person chooses, where that is what they say; doing it
        again changes nothing."""
        if isinstance(body, Command) and body.name == LANGUAGE and principal.kind == "person":
            code = _read_choice(body.args)
            if code is not None:
                await self._store.change([choose_language(principal.id, code)])

    def answer(self, principal: Principal, args: str) -> str:
        """What the person reads after `/language` with these arguments."""
        codes = " | ".join(language.code for language in all_languages())
        if args.strip() and _read_choice(args) is None:
            return _UNKNOWN.format(language=repr(args.strip()[:40]), codes=codes)
        chosen, reported = language_now(self._store, principal.id)
        language = find_language(chosen or reported or self._default())
        name = language.name if language is not None else ""
        told = (_FOLLOWS if reported and not chosen else _CHOSEN).format(language_name=name)
        return f"{told} {_USAGE.format(codes=codes)}"


def _read_choice(args: str) -> str | None:
    """The code of the language that is named, '' for that of the chat program; None for none."""
    wanted = args.strip().lower()
    if wanted == AUTO:
        return ""
    for language in all_languages():
        if wanted in (language.code.lower(), language.name.lower()):
            return language.code
    return None
