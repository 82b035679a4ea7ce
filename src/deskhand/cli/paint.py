"""Colours and Markdown as strings of lines, for a screen of a given width."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from markdown_it import MarkdownIt
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, ListElement, Markdown
from rich.panel import Panel
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme as RichTheme

from .plain import escape_control
from .themes import DARK, Theme

COLOR_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
}
"""The names of rich for what a terminal can show."""
_COLOR_CODE = re.compile(r"\x1b\[[0-9;]*m")
_FENCE_END = re.compile(r" {0,3}(?:`{3,}|~{3,})\s*")
_parser = MarkdownIt().enable("strikethrough").enable("table")


class _Heading(Heading):
    """On the left, without a box: a chat is no title page."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    """Set in by two, without empty lines around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = str(self.text).rstrip()
        yield Syntax(
            text,
            self.lexer_name,
            theme=self.theme,
            word_wrap=True,
            padding=(0, 2),
            background_color="default",
        )


class _NumberedList(ListElement):
    """Each number is as wide as it is: an item stays as it was when others follow."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, item in enumerate(self.items, self.list_start or 0):
            yield from item.render_number(console, options, number, number)


class _Markdown(Markdown):
    elements = Markdown.elements | {
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "ordered_list_open": _NumberedList,
    }


def _encode_line(segments: Sequence[Segment], system: ColorSystem | None) -> str:
    """The line in as few bytes as it takes: a terminal may be far away."""
    pieces = [(each.text, each.style or Style()) for each in Segment.simplify(segments)]
    while pieces and not pieces[-1][0].strip() and not pieces[-1][1].underline:
        pieces.pop()
    if pieces:
        pieces[-1] = (pieces[-1][0].rstrip(), pieces[-1][1])
    line = "".join(style.render(text, color_system=system) for text, style in pieces)
    return line.replace(";49m", "m").replace("\x1b[49m", "")  # the usual background


def stable_length(text: str) -> int:
    """How many characters of Markdown that is still being written cannot change any more: all
    blocks but the last."""
    starts = [
        token.map[0]
        for token in _parser.parse(text)
        if token.level == 0 and token.map and token.nesting >= 0
    ]
    if len(starts) < 2:
        return 0
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: starts[-1]])


def begun_length(text: str) -> int:
    """How many characters of a block that is still being written are rows that stay as they are:
    the complete lines of a code block, all items of a list but the last. 0 for other blocks, in
    which what follows may change what was before. `text` begins with the block."""
    tokens = _parser.parse(text)
    if not tokens or tokens[0].map is None or tokens[0].map[0]:
        return 0
    lines = text.split("\n")
    if tokens[0].type in ("bullet_list_open", "ordered_list_open"):
        items = [each for each in tokens if each.type == "list_item_open" and each.level == 1]
        kept = lines[: items[-1].map[0]] if items[-1].map else []
    elif tokens[0].type == "fence":
        kept = lines[:-1]
        while len(kept) > 1 and (not kept[-1].strip() or _FENCE_END.fullmatch(kept[-1])):
            kept.pop()
        if len(kept) < 2:
            return 0
    else:
        return 0
    return sum(len(line) + 1 for line in kept)


class Paint:
    """Makes lines of text. `width` tells the columns of the screen now; `colours` is a colour
    system of rich, or None for a screen without any. Everything that is given in is made plain
    first."""

    def __init__(
        self, width: Callable[[], int], colours: str | None = None, theme: Theme = DARK
    ) -> None:
        self._width = width
        self._theme = theme
        self.colours = colours
        self._system = None if colours is None else COLOR_SYSTEMS[colours]
        self._console = lru_cache(maxsize=2)(self._make_console)

    @property
    def width(self) -> int:
        return max(self._width(), 20)

    def use_theme(self, theme: Theme) -> None:
        """From now on."""
        self._theme = theme
        self._console.cache_clear()

    def _make_console(self, width: int) -> Console:
        return Console(
            file=io.StringIO(),
            force_terminal=True,
            color_system=self.colours,  # type: ignore[arg-type]  # a plain string where rich lists its literals
            no_color=self.colours is None,
            width=width,
            height=25,
            theme=RichTheme(dict(self._theme.styles)),
            highlight=False,
            emoji=False,
            legacy_windows=False,
        )

    def _render(self, renderable: Text | Markdown | Panel, width: int) -> list[str]:
        console = self._console(width)
        lines = console.render_lines(renderable, console.options, pad=False)
        return [_encode_line(line, self._system) for line in lines]

    def markdown(self, text: str) -> list[str]:
        """The text as Markdown, without empty lines around it. Links are written out, so that what
        is seen is where they lead."""
        source = _Markdown(escape_control(text), code_theme=self._theme.code, hyperlinks=False)
        lines = self._render(source, min(self.width, 100))
        while lines and not _COLOR_CODE.sub("", lines[0]).strip():
            lines.pop(0)
        while lines and not _COLOR_CODE.sub("", lines[-1]).strip():
            lines.pop()
        return lines

    def text(self, text: str, style: str = "", indent: str = "") -> list[str]:
        """The text as it is, wrapped."""
        lines = self._render(Text(escape_control(text), style), max(self.width - len(indent), 20))
        return [indent + line for line in lines]

    def line(self, *pieces: tuple[str, str]) -> str:
        """One line of (text, style), cut at the width."""
        whole = Text(no_wrap=True, overflow="ellipsis")
        for text, style in pieces:
            whole.append(" ".join(escape_control(text).split("\n")), style)
        return self._render(whole, self.width)[0]

    def panel(self, lines: Sequence[tuple[str, str]], title: str) -> list[str]:
        """The exact text in a frame, by lines of (text, style)."""
        inner = Text("\n", overflow="fold").join(
            Text(escape_control(text), style) for text, style in lines
        )
        return self._render(
            Panel(inner, title=title, title_align="left", border_style="warn"), self.width
        )
