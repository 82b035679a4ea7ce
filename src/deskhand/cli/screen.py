"""The terminal: lines that stay go above, and below them what changes, with the line that is
written on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings
from prompt_toolkit.key_binding.defaults import load_key_bindings
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.layout.screen import Screen as ScreenCells
from prompt_toolkit.layout.screen import WritePosition
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from ..types.folders import make_private_folder
from .hints import Hints
from .plain import cell_width, shorten_line
from .themes import Theme

MAX_INPUT_LINES = 8
FRAME_S = 1 / 12
"""The least time between two redraws: each costs bytes, and some terminals are far away."""


def open_history(path: Path) -> History:
    """What was typed before, in a file that nobody else can read; only for now where it cannot be
    written."""
    try:
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return InMemoryHistory()
    return FileHistory(str(path))


class RawInput(Vt100Input):
    """Keys stay keys while lines are written above. A terminal that reads by lines meanwhile, as it
    does by default, hands Enter over as a line feed, which starts a new line here and sends
    nothing."""

    def cooked_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


def _parse_keys(typed: bytes) -> list[KeyPress]:
    presses: list[KeyPress] = []
    parser = Vt100Parser(presses.append)
    parser.feed_and_flush(typed.decode(errors="surrogateescape"))
    return presses


class LiveWindow(Window):
    """What changes, as it is coloured. A window marks its last line with a style of its own, so
    that each line would be written a second time when another one follows."""

    def _apply_style(
        self, new_screen: ScreenCells, write_position: WritePosition, parent_style: str
    ) -> None:
        pass


class FrameOutput(Vt100_Output):
    """Writes each frame at once. It never asks the terminal where its cursor is: it would ask again
    after each line that is put above, which costs a round trip and a page of line feeds."""

    held = False
    _marks_pastes = False

    @property
    def responds_to_cpr(self) -> bool:
        return False

    def flush(self) -> None:
        if not self.held:
            super().flush()

    def enable_bracketed_paste(self) -> None:
        if not self._marks_pastes:
            super().enable_bracketed_paste()
            self._marks_pastes = True

    def disable_bracketed_paste(self) -> None:
        if not self.held:  # within a frame it is only put on again
            super().disable_bracketed_paste()
            self._marks_pastes = False


def read_size() -> Size:
    """How large the terminal is now."""
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        columns, rows = 80, 24
    return Size(rows=rows or 24, columns=columns or 80)


class Screen:
    """Owns the terminal while `run` runs. `live(height)`, `status()` and `hints` are asked for at
    each redraw."""

    def __init__(
        self,
        live: Callable[[int], list[str]],
        status: Callable[[], str],
        hints: Hints,
        history: History,
    ) -> None:
        self._live = live
        self._status = status
        self._hints = hints
        self._pending: list[str] = []
        self._live_lines: list[str] = []
        self._buffer = Buffer(multiline=True, history=history)
        self._output = FrameOutput(sys.stdout, read_size)
        self._application: Application[None] | None = None

    @property
    def columns(self) -> int:
        return read_size().columns

    def print(self, lines: list[str]) -> None:
        """Put lines above, for good. They must be plain but for our own colours."""
        if lines:
            self._pending += lines
            self.redraw()

    def redraw(self) -> None:
        if self._application is not None:
            self._application.invalidate()

    def leave(self) -> None:
        if self._application is not None and self._application.is_running:
            self._application.exit()

    async def run(self, keys: KeyBindings, theme: Theme, typed: bytes = b"") -> None:
        """Until `leave`. `typed` is what was typed before. Raises EOFError when the terminal goes
        away."""
        keyboard = RawInput(sys.stdin)
        store_typeahead(keyboard, _parse_keys(typed))
        self._application = Application(
            Layout(self._make_layout()),
            key_bindings=merge_key_bindings([load_key_bindings(), keys]),
            style=Style.from_dict(dict(theme.typed)),
            erase_when_done=True,
            min_redraw_interval=FRAME_S,
            before_render=self._begin_frame,
            after_render=self._end_frame,
            input=keyboard,
            output=self._output,
            mouse_support=False,
        )
        self._application.ttimeoutlen = 0.1
        await self._application.run_async(handle_sigint=False)

    def _begin_frame(self, application: Application[None]) -> None:
        """Put the lines above that are to stay, then ask what is going on: once for each frame,
        since it is not cheap."""
        if self._pending:
            self._output.held = True
            application.renderer.erase(leave_alternate_screen=False)
            self._output.write_raw("\n".join(self._pending) + "\n")
            self._pending = []
        self._live_lines = self._live(self._max_live_lines())

    def _end_frame(self, application: object) -> None:
        self._output.held = False
        self._output.flush()

    def _make_layout(self) -> HSplit:
        def live() -> AnyFormattedText:
            return ANSI("\n".join(self._live_lines))

        def status() -> AnyFormattedText:
            return [("class:status", self._status())]

        above = FormattedTextControl(live)
        field = BufferControl(
            self._buffer, input_processors=[BeforeInput("> ", style="class:prompt")]
        )
        shows = Condition(lambda: bool(self._live_lines))
        hints = Condition(lambda: bool(self._hints.find(self._before)))
        return HSplit(
            [
                ConditionalContainer(LiveWindow(above, dont_extend_height=True), shows),
                Window(
                    field,
                    height=Dimension(min=1, max=MAX_INPUT_LINES),
                    dont_extend_height=True,
                    wrap_lines=True,
                ),
                ConditionalContainer(
                    Window(FormattedTextControl(self._render_hints), dont_extend_height=True), hints
                ),
                Window(FormattedTextControl(status), height=1),
            ]
        )

    @property
    def _before(self) -> str:
        return self._buffer.document.text_before_cursor

    def _render_hints(self) -> AnyFormattedText:
        """What can come of what is being written, a line each."""
        found = self._hints.window(self._before)
        width = min(max((cell_width(hint.shown) for hint, _ in found), default=0), 40)
        pieces: StyleAndTextTuples = []
        for hint, chosen in found:
            room = self.columns - 3
            name = shorten_line(hint.shown, room)
            about = shorten_line(hint.about, max(room - width - 2, 2)) if hint.about else ""
            filler = " " * (width - cell_width(name) + 2) if about else ""
            style = "class:chosen" if chosen else "class:hint"
            pieces += [(style, f"  {name}{filler}{about}"), ("", "\n")]
        return pieces[:-1]

    def _max_live_lines(self) -> int:
        """How many lines what changes may take, so that it never scrolls away by itself."""
        typed = min(self._buffer.document.line_count, MAX_INPUT_LINES)
        return max(read_size().rows - typed - 4, 3)
