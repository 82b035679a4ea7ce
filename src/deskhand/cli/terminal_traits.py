"""What the terminal is like: whether its background is dark, and whether it shows pictures. It is
asked only what terminals of its kind are known to answer, and nothing that others would show as
text."""

from __future__ import annotations

import os
import re
import select
import termios
import time
from collections.abc import Mapping
from typing import Literal

import msgspec

ANSWER_S = 1.0
"""So long an answer may take. Every terminal that is asked answers the last question, so this time
passes only where the line is cut."""
Pictures = Literal["", "kitty", "iterm"]
"""The protocol in which a terminal takes pictures; '' where it takes none."""

_ASK_BACKGROUND = b"\x1b]11;?\x1b\\"
# A picture of one pixel that is only checked: https://sw.kovidgoyal.net/kitty/graphics-protocol/
_ASK_KITTY = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
_ASK_ATTRIBUTES = b"\x1b[c"
"""Who are you? (DA1): it stands last, so that its answer ends the answers."""
_BACKGROUND = re.compile(
    rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
    rb"(?:/[0-9a-fA-F]{1,4})?(?:\x1b\\|\x07)"
)
_KITTY = re.compile(rb"\x1b_Gi=31;([^\x1b]*)\x1b\\")
_ATTRIBUTES = re.compile(rb"\x1b\[\?[0-9;]*c")
_ANSWERING = re.compile(r"(?:xterm|rxvt|tmux|alacritty|foot|konsole|contour|st|wezterm|vte)(?:-|$)")
_KITTY_PROGRAMS = ("ghostty", "kitty", "WezTerm")
_ITERM_PROGRAMS = ("iTerm.app", "iTerm2")


class TerminalTraits(msgspec.Struct, frozen=True):
    """`typed` is what the person typed while the terminal was asked."""

    dark: bool = True
    pictures: Pictures = ""
    typed: bytes = b""


def guess_traits(environment: Mapping[str, str]) -> TerminalTraits:
    """What the environment tells of the terminal. It is asked nothing, and has not said that it
    shows pictures."""
    background = _read_colorfgbg(environment.get("COLORFGBG", ""))
    return TerminalTraits(background is not False, _expect_pictures(environment))


def read_traits(environment: Mapping[str, str], input_fd: int, output_fd: int) -> TerminalTraits:
    """What the terminal at these two is like. It must read by lines now, and be nobody else's; it
    is left as it was. What it does not tell is taken to be usual."""
    guessed = guess_traits(environment)
    background = _read_colorfgbg(environment.get("COLORFGBG", ""))
    pictures = guessed.pictures
    questions = b""
    if background is None and _ANSWERING.match(environment.get("TERM", "")):
        questions += _ASK_BACKGROUND
    if pictures == "kitty":
        questions += _ASK_KITTY
    if not questions:
        return guessed

    said = _ask(questions + _ASK_ATTRIBUTES, input_fd, output_fd)
    if colour := _BACKGROUND.search(said):
        background = _is_dark(*colour.groups())
    if pictures == "kitty":
        answer = _KITTY.search(said)
        pictures = "kitty" if answer and answer[1] == b"OK" else ""
    for answers in (_BACKGROUND, _KITTY, _ATTRIBUTES):
        said = answers.sub(b"", said)
    return TerminalTraits(background is not False, pictures, said)


def _read_colorfgbg(value: str) -> bool | None:
    """Whether the background is dark, from the variable that some terminals set: the numbers of two
    colours, such as `15;0`."""
    last = value.rpartition(";")[2]
    return int(last) not in (7, *range(9, 16)) if last.isdecimal() else None


def _expect_pictures(environment: Mapping[str, str]) -> Pictures:
    """What a terminal of this name takes. Within a multiplexer nothing is known of the terminal
    around it."""
    name = environment.get("TERM", "")
    if environment.get("TMUX") or environment.get("STY") or name.startswith(("tmux", "screen")):
        return ""
    program = environment.get("TERM_PROGRAM", "")
    if program in _ITERM_PROGRAMS or environment.get("LC_TERMINAL") in _ITERM_PROGRAMS:
        return "iterm"
    speaks_kitty = (
        name in ("xterm-kitty", "xterm-ghostty")
        or program in _KITTY_PROGRAMS
        or environment.get("KITTY_WINDOW_ID")
        or environment.get("WEZTERM_EXECUTABLE")
    )
    return "kitty" if speaks_kitty else ""


def _is_dark(*colour: bytes) -> bool:
    """By its luminance: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance, without its gamma."""
    red, green, blue = (int(part, 16) / float(16 ** len(part) - 1) for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5


def _ask(questions: bytes, input_fd: int, output_fd: int) -> bytes:
    """Everything that is read until the terminal says who it is, or nothing more comes."""
    try:
        before = termios.tcgetattr(input_fd)
    except termios.error:
        return b""
    raw = [*before]
    raw[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(input_fd, termios.TCSANOW, raw)
    try:
        os.write(output_fd, questions)
        return _read_answers(input_fd)
    except OSError:  # the terminal went away; whoever reads from it next is told so
        return b""
    finally:
        termios.tcsetattr(input_fd, termios.TCSANOW, before)


def _read_answers(input_fd: int) -> bytes:
    said = b""
    until = time.monotonic() + ANSWER_S
    while not _ATTRIBUTES.search(said):
        left = until - time.monotonic()
        if left <= 0 or not select.select([input_fd], [], [], left)[0]:
            break
        more = os.read(input_fd, 4096)
        if not more:
            break
        said += more
    return said
