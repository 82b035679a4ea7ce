"""`deskhand --resume`: the recent conversations, to search and to choose one of."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings
from prompt_toolkit.key_binding.defaults import load_key_bindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style

from ..config.config import Settings
from ..store.base import SessionRow, Store
from ..types.errors import DeskhandError
from ..types.marked_texts import mark_text
from .asks import session_name
from .plain import cell_width, shorten_line
from .run import ME
from .screen import FRAME_S, FrameOutput, read_size
from .terminal_language import terminal_say
from .themes import Theme
from .times import format_age

MAX_ROWS = 12
MAX_HITS = 50
KEYS = mark_text("↑↓ choose  Enter opens  Esc leaves")
_SEARCH = mark_text("Search: ")
_NO_MATCH = mark_text("No conversation matches.")
_NO_TITLE = mark_text("(no title)")
_ONE_TURN = mark_text("1 turn")
_TURNS = mark_text("{count_number} turns")


def filter_rows(
    rows: Sequence[SessionRow], words: str, said_in: Sequence[str] = ()
) -> list[SessionRow]:
    """Those whose title or name contains all of these words, then those in which they were said."""
    wanted = words.lower().split()
    named = [row for row in rows if _contains(f"{row.title} {row.session}".lower(), wanted)]
    known = {row.session for row in named}
    return named + [row for row in rows if row.session in said_in and row.session not in known]


def _contains(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


class ResumePicker:
    """Shows `rows`, the latest first, until one is chosen. `now` is when their age is told."""

    def __init__(
        self, rows: Sequence[SessionRow], store: Store, settings: Settings, now: float
    ) -> None:
        self._rows = rows
        self._store = store
        self._settings = settings
        self._now = now
        self._say = terminal_say(settings)
        self._at = 0
        self._said_in: list[str] = []
        self._field = Buffer(on_text_changed=self._begin_search, multiline=False)
        self._application: Application[SessionRow | None] | None = None

    async def run(self, theme: Theme) -> SessionRow | None:
        """The one that was chosen; None where the person left."""
        body = HSplit(
            [
                Window(
                    BufferControl(
                        self._field,
                        input_processors=[BeforeInput(self._say(_SEARCH), style="class:prompt")],
                    ),
                    height=1,
                ),
                Window(FormattedTextControl(self._render_rows), dont_extend_height=True),
                Window(FormattedTextControl([("class:status", self._say(KEYS))]), height=1),
            ]
        )
        self._application = Application(
            Layout(body),
            key_bindings=merge_key_bindings([load_key_bindings(), self._make_keys()]),
            style=Style.from_dict(dict(theme.typed)),
            erase_when_done=True,
            min_redraw_interval=FRAME_S,
            output=FrameOutput(sys.stdout, read_size),
        )
        self._application.ttimeoutlen = 0.1
        return await self._application.run_async(handle_sigint=False)

    def _make_keys(self) -> KeyBindings:
        keys = KeyBindings()
        for up in ("up", "c-p"):
            keys.add(up)(partial(self._move, -1))
        for down in ("down", "c-n"):
            keys.add(down)(partial(self._move, 1))
        keys.add("enter")(self._take)
        for leave in ("escape", "c-c", "c-d"):
            keys.add(leave, eager=True)(self._leave)
        return keys

    def _move(self, step: int, event: KeyPressEvent) -> None:
        self._at = max(0, min(self._at + step, len(self._found) - 1))

    def _take(self, event: KeyPressEvent) -> None:
        if self._found:
            event.app.exit(result=self._found[self._at])

    def _leave(self, event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    @property
    def _found(self) -> list[SessionRow]:
        return filter_rows(self._rows, self._field.text, self._said_in)

    def _begin_search(self, field: Buffer) -> None:
        self._at = 0
        self._said_in = []
        if self._application is not None and field.text.strip():
            self._application.create_background_task(self._search(field.text))

    async def _search(self, words: str) -> None:
        """Find out in which conversations these words were said."""
        try:
            hits = await self._store.search(ME, words, MAX_HITS)
        except DeskhandError:
            return
        if words == self._field.text and self._application is not None:
            self._said_in = [hit.session for hit in hits]
            self._application.invalidate()

    def _render_rows(self) -> StyleAndTextTuples:
        found = self._found
        if not found:
            return [("class:hint", f"  {self._say(_NO_MATCH)}")]
        size = read_size()
        room = max(min(MAX_ROWS, size.rows - 4), 1)
        first = max(0, min(self._at - room // 2, len(found) - room))
        pieces: StyleAndTextTuples = []
        for number, row in enumerate(found[first : first + room], first):
            style = "class:chosen" if number == self._at else ""
            pieces += [(style, self._render_row(row, size.columns - 1)), ("", "\n")]
        return pieces[:-1]

    def _render_row(self, row: SessionRow, width: int) -> str:
        turns = self._say(_ONE_TURN if row.turns == 1 else _TURNS.format(count_number=row.turns))
        name = shorten_line(session_name(row.session, self._settings), max(width // 3, 10))
        about = f"  {self._say(format_age(self._now - row.last_at))}, {turns}  {name}"
        named = row.title or self._say(_NO_TITLE)
        title = shorten_line(named, max(width - cell_width(about) - 2, 10))
        filler = " " * max(width - 2 - cell_width(title) - cell_width(about), 0)
        return shorten_end(f"  {title}{filler}{about}", width)


def shorten_end(line: str, width: int) -> str:
    """The line cut at the width, with the blanks in it kept."""
    while cell_width(line) > width:
        line = line[:-1]
    return line
