"""The browser by the names that agent_computer's tools have, for who names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ...tools.base import CallPreview, Context, Outcome, Spec, Tool
from ...tools.define import decode_arguments, make_schema
from ...types.effects import Effect
from ...types.errors import ToolError
from ...types.identity import Address
from ...types.labels import Label
from ...types.options import SessionOptions
from .tool import BrowserTool


class _Nothing(msgspec.Struct, frozen=True):
    pass


class _Navigate(msgspec.Struct, frozen=True):
    url: str


class _Click(msgspec.Struct, frozen=True):
    ref: str


class _Type(msgspec.Struct, frozen=True):
    ref: str
    text: str


class _Press(msgspec.Struct, frozen=True):
    key: str


class _Scroll(msgspec.Struct, frozen=True):
    direction: Literal["down", "up", "left", "right"] = "down"


_VIEWS: tuple[tuple[str, str, str, type[msgspec.Struct], Mapping[str, Any]], ...] = (
    ("navigate", "open", "Open a URL in the browser", _Navigate, {}),
    ("snapshot", "look", "List what the page shows, with refs", _Nothing, {}),
    ("click", "click", "Click on a ref", _Click, {}),
    ("type", "type", "Type behind what a field holds", _Type, {"append": True}),
    ("fill", "type", "Have a field hold this text", _Type, {}),
    ("press", "press", "Press a key", _Press, {}),
    ("scroll", "scroll", "Scroll the page", _Scroll, {}),
    ("text", "text", "Read the page as text", _Nothing, {}),
    ("screenshot", "screenshot", "Take a picture of the page", _Nothing, {}),
    ("tabs", "tab", "List the open tabs", _Nothing, {}),
)
"""Name, action, what it does, its arguments, and those that it implies."""


class _View:
    """One of them."""

    def __init__(
        self,
        browser: BrowserTool,
        spec: Spec,
        kind: type[msgspec.Struct],
        implied: Mapping[str, Any],
    ) -> None:
        self._browser = browser
        self._kind = kind
        self._implied = implied
        self.spec = spec

    def _translate(self, arguments: msgspec.Raw) -> msgspec.Raw:
        given = msgspec.to_builtins(decode_arguments(arguments, self._kind, self.spec.name))
        if "key" in given:
            given["keys"] = given.pop("key")
        return msgspec.Raw(msgspec.json.encode(given | dict(self._implied)))

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            return self._browser.effect_of(self._translate(arguments), address)
        except ToolError:
            return "none"  # it will not be done

    def preview(
        self, arguments: msgspec.Raw, session: str, options: SessionOptions, label: Label
    ) -> CallPreview | None:
        try:
            translated = self._translate(arguments)
        except ToolError:
            return None  # it will not be done
        return self._browser.preview(translated, session, options, label)

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        return await self._browser.run(self._translate(arguments), context)


def make_browser_views(browser: BrowserTool) -> tuple[Tool, ...]:
    """All ten, over this one."""
    views = []
    for name, action, about, kind, implied in _VIEWS:
        spec = replace(
            browser.spec,
            name=f"browser_{name}",
            description=f"{about}.",
            parameters=make_schema(kind),
        )
        views.append(_View(browser, spec, kind, {"action": action, **implied}))
    return tuple(views)
