"""The themes of the terminal: how each kind of text is coloured, for each background."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from rich.console import Console

from ..config.sections import ThemeName
from .colors import wants_color


class Theme(msgspec.Struct, frozen=True):
    """`styles` are those of what is painted, as rich names them; `code` is its theme for code, and
    `typed` what prompt_toolkit draws with."""

    styles: Mapping[str, str]
    code: str
    typed: Mapping[str, str]


_HEADINGS = {
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
}
DARK = Theme(
    {
        "you": "bold cyan",
        "quiet": "dim",
        "good": "green",
        "bad": "red",
        "warn": "yellow",
        "tool": "bold",
        "markdown.code": "cyan",
        "markdown.link_url": "cyan underline",
        "markdown.item.number": "dim",
        "markdown.item.bullet": "dim",
        **_HEADINGS,
    },
    "ansi_dark",
    {
        "prompt": "bold ansicyan",
        "hint": "ansibrightblack",
        "status": "ansibrightblack",
        "chosen": "reverse",
    },
)
LIGHT = Theme(
    {
        **DARK.styles,
        "you": "bold blue",
        "warn": "magenta",
        "markdown.code": "blue",
        "markdown.link_url": "blue underline",
    },
    "ansi_light",
    {**DARK.typed, "prompt": "bold ansiblue"},
)
_BRIGHT = {
    "quiet": "none",
    "tool": "bold",
    "markdown.item.number": "bold",
    "markdown.item.bullet": "bold",
    **_HEADINGS,
}
_FULL_TYPED = {"prompt": "bold", "hint": "", "status": "bold", "chosen": "reverse bold"}
HIGH_CONTRAST_DARK = Theme(
    {
        "you": "bold bright_cyan",
        "good": "bold bright_green",
        "bad": "bold bright_red",
        "warn": "bold bright_yellow",
        "markdown.code": "bold bright_cyan",
        "markdown.link_url": "bright_cyan underline",
        **_BRIGHT,
    },
    "ansi_dark",
    _FULL_TYPED,
)
HIGH_CONTRAST_LIGHT = Theme(
    {
        "you": "bold color(18)",
        "good": "bold color(22)",
        "bad": "bold color(88)",
        "warn": "bold color(90)",
        "markdown.code": "bold color(18)",
        "markdown.link_url": "color(18) underline",
        **_BRIGHT,
    },
    "ansi_light",
    _FULL_TYPED,
)
"""Dark shades of blue, green, red and purple: each has a contrast of at least 7 to 1 on white."""
PLAIN = Theme(DARK.styles, "ansi_dark", {"prompt": "bold", "chosen": "reverse"})


def choose_theme(name: ThemeName, *, dark: bool) -> Theme:
    """The theme of this name on a background that is `dark` or light."""
    match name:
        case "none":
            return PLAIN
        case "high-contrast":
            return HIGH_CONTRAST_DARK if dark else HIGH_CONTRAST_LIGHT
        case "dark":
            return DARK
        case "light":
            return LIGHT
        case "auto":
            return DARK if dark else LIGHT


def detect_color_system(environment: Mapping[str, str], theme: ThemeName) -> str | None:
    """Which colours standard output takes, as rich names them; None for none."""
    wanted = wants_color(environment, theme)
    if wanted is False:
        return None
    found = Console(force_terminal=wanted).color_system
    return found or ("standard" if wanted else None)
