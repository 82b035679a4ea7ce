"""What the keys do in the chat."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys as Key

from ..types.commands import COMMANDS
from ..types.marked_texts import mark_text
from ..types.messages import clean_text
from .hints import Hint, Hints
from .mentions import complete_name, find_open_mention
from .pastes import Pastes
from .terminal_language import Say

ANSWER_KEYS = {"y": "once", "a": "always", "n": "no", "N": "never", "e": "each"}
MAX_HISTORY_CHARS = 20_000
"""Something longer was pasted; it is not kept in the history of what was typed."""
LOCAL_COMMANDS = {
    "resume": mark_text("go on with another conversation"),
    "quit": mark_text("quit; the conversation is kept"),
}
"""Commands of this terminal alone."""


class KeyActions(Protocol):
    """What the keys act on."""

    def submit(self, text: str) -> None:
        """The line was sent."""
        ...

    def answer(self, choice: str) -> None:
        """An open approval was answered by a key."""
        ...

    def interrupt(self) -> None:
        """Ctrl+C on an empty line."""
        ...

    def leave(self) -> None: ...

    @property
    def hints(self) -> Hints:
        """What may be meant by what is being written."""
        ...

    def find_names(self, beginning: str) -> list[str]:
        """The files of the workspace and the conversations that may be meant by this."""
        ...

    @property
    def answer_choices(self) -> tuple[str, ...]:
        """What an approval that is open may be answered with by a key; () where none has been for
        long enough that a key is meant for it."""
        ...


def match_commands(text: str) -> list[tuple[str, str]]:
    """The commands that begin as `text` does, with their help; none when it is no command."""
    if not text.startswith("/") or " " in text or "\n" in text:
        return []
    known = {name: command.help for name, command in COMMANDS.items()} | LOCAL_COMMANDS
    return [
        (f"/{name}", help_) for name, help_ in known.items() if name.startswith(text[1:].lower())
    ]


def hint_commands(text: str, say: Say = str) -> list[Hint]:
    """The same, as what the text may become, with the help as `say` says it."""
    return [Hint(name, f"{name} ", say(help_)) for name, help_ in match_commands(text)]


def complete_command(text: str) -> str:
    """`text` with as much of a command added as is certain."""
    names = [name for name, _ in match_commands(text)]
    if not names:
        return text
    if len(names) == 1:
        return f"{names[0]} "
    sure = names[0]
    while not all(name.startswith(sure) for name in names):
        sure = sure[:-1]
    return sure if len(sure) > len(text) else text


class Keys:
    """Enter sends, Alt+Enter is a new line, Tab completes, Ctrl+C stops, Ctrl+D leaves, and some
    keys answer. The arrows choose from what may be meant, which Enter takes. A long paste is shown
    as a mark, which Backspace removes as a whole."""

    def __init__(self, desk: KeyActions) -> None:
        self._desk = desk
        self._pastes = Pastes()
        self.bindings = KeyBindings()
        add = self.bindings.add
        add("enter")(self._send)
        add("escape", "enter")(self._newline)
        add("c-j")(self._newline)
        add("tab")(self._complete)
        hinted = Condition(self._is_hinted)
        chosen = Condition(lambda: self._desk.hints.chosen(_text_before_cursor()) is not None)
        add("down", filter=hinted)(partial(self._choose, 1))
        add("up", filter=hinted)(partial(self._choose, -1))
        add("enter", filter=chosen)(self._take)
        add("tab", filter=chosen)(self._take)
        add("c-c")(self._interrupt)
        add("c-d")(self._leave)
        add("c-l")(self._clear)
        add(Key.BracketedPaste)(self._paste)
        add("backspace", filter=Condition(lambda: bool(self._mark_before())))(self._remove_mark)
        for key, choice in ANSWER_KEYS.items():
            add(key, filter=Condition(partial(self._may_answer, choice)))(self._answer)

    def _may_answer(self, choice: str) -> bool:
        return choice in self._desk.answer_choices

    def _is_hinted(self) -> bool:
        """Whether there is something to choose: not where a whole name stands there already, as in
        what was sent before."""
        before = _text_before_cursor()
        found = self._desk.hints.find(before)
        return len(found) > 1 or (len(found) == 1 and found[0].text.rstrip() != before)

    def _send(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text = clean_text(self._pastes.expand(buffer.text))
        self._pastes.clear()
        if text.strip():
            if len(text) <= MAX_HISTORY_CHARS:
                buffer.append_to_history()
            buffer.reset()
            self._desk.submit(text)

    def _newline(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def _complete(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        before = buffer.document.text_before_cursor
        beginning = find_open_mention(before)
        text = (
            complete_command(before)
            if beginning is None
            else complete_name(before, self._desk.find_names(beginning))
        )
        self._replace_before(event, text)

    def _choose(self, step: int, event: KeyPressEvent) -> None:
        self._desk.hints.move(_text_before_cursor(), step)

    def _take(self, event: KeyPressEvent) -> None:
        chosen = self._desk.hints.chosen(_text_before_cursor())
        if chosen is not None:
            self._replace_before(event, chosen.text)

    def _replace_before(self, event: KeyPressEvent, text: str) -> None:
        buffer = event.current_buffer
        if text != buffer.document.text_before_cursor:
            buffer.text = text + buffer.document.text_after_cursor
            buffer.cursor_position = len(text)

    def _paste(self, event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(self._pastes.collapse(text))

    def _mark_before(self) -> str:
        return self._pastes.mark_before(_text_before_cursor())

    def _remove_mark(self, event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(len(self._mark_before()))

    def _interrupt(self, event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            self._desk.interrupt()

    def _leave(self, event: KeyPressEvent) -> None:
        if not event.current_buffer.text:
            self._desk.leave()

    def _clear(self, event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    def _answer(self, event: KeyPressEvent) -> None:
        key = event.key_sequence[0].key
        if event.current_buffer.text:
            event.current_buffer.insert_text(event.data)
        else:
            self._desk.answer(ANSWER_KEYS[key])


def _text_before_cursor() -> str:
    return get_app().current_buffer.document.text_before_cursor
