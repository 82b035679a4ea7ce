"""In which language the chat in the terminal speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ..config.config import Settings
from ..languages.catalogue import find_language
from ..languages.sentences import say_notice

Say = Callable[[str], str]
"""Says a text in the language of the person at the terminal."""


def terminal_say(settings: Settings) -> Say:
    """Speaks the language of the terminal, else that of the configuration."""
    return partial(say_notice, language=_find(settings.environment) or settings.config.language)


def _find(environment: Mapping[str, str]) -> str:
    """The code of the language that the environment asks for; '' for none. The first of these that
    is set counts (POSIX.1-2017, XBD 8.2)."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    wanted = next((environment[name] for name in names if environment.get(name)), "")
    language = find_language(wanted)
    return language.code if language is not None else ""
