"""What a plugin is: tools, hooks and a section of the system prompt, from somebody else's code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .base import Tool
from .hooks import Handler, HookName


class Gathered:
    """What a plugin gives. It stands for the registries of operator-use, whose plugins call
    these."""

    def __init__(self) -> None:
        self.tools: list[Tool] = []
        self.hooks: dict[str, Handler] = {}
        self.prompts: list[str] = []

    def register(self, given: Any, handler: Handler | None = None) -> None:
        """A tool; or with a `handler` the hook of this name, such as BEFORE_TOOL_CALL."""
        if handler is None:
            self.tools.append(given)
        else:
            name = str(getattr(given, "value", given)).lower()
            self.hooks[name] = handler

    def attach(self, text: str) -> None:
        """A section of the system prompt."""
        self.prompts.append(text)


class Plugin:
    """Subclass it and override what you have. The methods are called once, when the plugin is
    loaded.

    A module gives its plugin as the variable `plugin`, an instance or a class that needs no
    arguments. A plugin runs with all rights of Deskhand itself: what it imports and does at import
    is done outside the sandbox.
    """

    def get_tools(self) -> Sequence[Tool]:
        """Tools for every agent whose `tools` allow them. Their names must not be taken."""
        return ()

    def get_system_prompt(self) -> str:
        """A section of the system prompt; '' for none."""
        return ""

    def get_hooks(self) -> Mapping[HookName, Handler]:
        """A handler for each hook that it wants."""
        return {}

    def register_tools(self, registry: Gathered) -> None:
        """Give the tools; those of `get_tools` unless it is overridden."""
        for tool in self.get_tools():
            registry.register(tool)

    def register_hooks(self, hooks: Gathered) -> None:
        """Give the handlers; those of `get_hooks` unless it is overridden."""
        for name, handler in self.get_hooks().items():
            hooks.register(name, handler)

    def attach_prompt(self, prompt: Gathered) -> None:
        """Give the section of the prompt; that of `get_system_prompt` unless it is overridden."""
        prompt.attach(self.get_system_prompt())

    def unregister_tools(self, registry: Any = None) -> None:
        """Called when the plugin is disabled; so is `detach_prompt`."""

    def detach_prompt(self, prompt: Any = None) -> None:
        """Called when the plugin is disabled."""
