"""What a plugin is: tools, hooks and a section of the system prompt, from somebody else's code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .base import Tool
from .hooks import Handler, HookName


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
