"""What people may set for one conversation."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import asdict, replace

TITLE_CHARS = 80
SYSTEM_PROMPT_CHARS = 100_000
FOCUS_CHARS = 500
FOLDER_CHARS = 60
FOCUS_ALL = "all"
"""The focus of a summary where no one thing matters more than another."""


class SessionOptions(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How one conversation is held. None leaves what was set before, '' goes back to what the agent
    has.

    `model` (`provider/name`) is asked first, the agent's own are its fallback. `approval` asks a
    person before every tool that is not on the safe list; False is the normal policy, never less.
    `trust` are hosts and other sources whose words are taken for this machine's own here.
    `plan_mode`: it only looks, until a person said yes to its plan. `compact` asks for a shorter
    context, once no call is open: what matters in it, `all` for no more of one thing than of
    another. `loaded_tools` are deferred ones that it has asked for, in that order; they only become
    more. `voice`: answers are spoken as well as written, always or never; '' where the message was.
    `pinned`, `folder` ('' is none) and `archived` put it somewhere in the list of conversations,
    which says where it is: a message brings it back from the archive, and a branch begins among the
    latest.
    `tracing`: who follows it is shown what the model is asked. `teams` and `mode` are kept
    for the parts that act on them. `prompt_by` and `title_by` are the people below an owner on
    whose word the system prompt and the title are: nobody sets them, they follow from who set
    those.
    """

    model: str | None = None
    thinking: Literal["", "off", "low", "medium", "high", "max"] | None = None
    preset: str | None = None
    system_prompt: str | None = None
    approval: bool | None = None
    plan_mode: bool | None = None
    teams: bool | None = None
    tracing: bool | None = None
    title: str | None = None
    mode: Literal["", "normal", "deep_work"] | None = None
    trust: tuple[str, ...] | None = None
    compact: str | None = None
    loaded_tools: tuple[str, ...] | None = None
    voice: Literal["", "on", "off"] | None = None
    pinned: bool | None = None
    folder: str | None = None
    archived: bool | None = None
    prompt_by: tuple[str, ...] | None = None
    title_by: tuple[str, ...] | None = None

    def merge(self, newer: SessionOptions) -> SessionOptions:
        """These options with what `newer` sets."""
        given = {name: value for name, value in asdict(newer).items() if value is not None}
        given["prompt_by"] = (
            self.prompt_by if newer.system_prompt is None else newer.prompt_by or None
        )
        given["title_by"] = self.title_by if newer.title is None else newer.title_by or None
        if newer.loaded_tools is not None:
            given["loaded_tools"] = tuple(
                dict.fromkeys((*(self.loaded_tools or ()), *newer.loaded_tools))
            )
        return replace(self, **given)

    def for_new_conversation(self) -> SessionOptions:
        """These options without those that are about what has been said: the sources that are
        trusted, the tools that were loaded, a summary that was asked for."""
        if self.trust is None and self.loaded_tools is None and self.compact is None:
            return self
        return replace(self, trust=None, loaded_tools=None, compact=None)
