"""Records docs/screenshots/terminal.svg: a real shell on a pty, a real chat, and a fake model that
says what is written below.

The picture is an animation of CSS, which GitHub shows in `<img>`. It begins with the approval,
which stays where nothing moves.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import anyio
import anyio.to_thread
import msgspec

from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from tests.cli.terminal import Screen, Terminal

OUTPUT = ROOT / "docs" / "screenshots" / "terminal.svg"
COLUMNS, ROWS = 78, 22
KEY_S = 0.06
"""Two characters are typed in this time."""
LONGEST_WAIT_S = 0.3
"""How long a pause of the machine is at most in the recording."""
MEANT_S = 0.6
"""So soon after it appears, a key is no answer to an approval."""

COMMANDS = ("deskhand", "deskhand undo")
LIST = "- milk\n- eggs\n- bread\n"
SHOPPING = "I have milk and eggs: take them off shopping.txt"
REMINDER = "Remind me at 07:30 from Monday to Friday to plan the day"


def call(tool: str, /, **arguments: object) -> FakeCall:
    return FakeCall(tool, json.dumps(arguments))


SCRIPT = (
    Behaviour(
        match=SHOPPING,
        times=1,
        text="",
        calls=(call("edit_file", path="shopping.txt", old_text="- milk\n- eggs\n", new_text=""),),
    ),
    Behaviour(match=SHOPPING, text="Both are off the list. Only bread is left.", gap_s=0.06),
    Behaviour(
        match=REMINDER,
        times=1,
        text="",
        calls=(
            call(
                "cron",
                mode="add",
                name="plan",
                schedule_mode="cron",
                schedule_expr="30 7 * * 1-5",
                message="Plan the day.",
                deliver=True,
            ),
        ),
    ),
    Behaviour(match=REMINDER, text="I will remind you at 07:30 on weekdays.", gap_s=0.06),
)


# ---------------------------------------------------------------------- what is shown


class Style(msgspec.Struct, frozen=True):
    color: str
    background: str
    bold: bool


Run = tuple[int, str, Style]
"""Where a piece of a line begins, its text, and how it looks."""
Line = tuple[Run, ...]


class Frame(msgspec.Struct):
    """What the screen shows, and for how long."""

    lines: tuple[Line, ...]
    lasts_s: float


COLORS = {
    "default": "#d5d9e0",
    "black": "#1d2026",
    "red": "#ff8a80",
    "green": "#8fd694",
    "brown": "#f0c674",
    "blue": "#8ab4f8",
    "magenta": "#d7a8f0",
    "cyan": "#7fd6e0",
    "white": "#d5d9e0",
    "brightblack": "#8b93a1",
    "brightred": "#ff8a80",
    "brightgreen": "#8fd694",
    "brightbrown": "#f0c674",
    "brightblue": "#8ab4f8",
    "brightmagenta": "#d7a8f0",
    "brightcyan": "#7fd6e0",
    "brightwhite": "#ffffff",
}
WINDOW = "#1d2026"


class DimScreen(Screen):
    """Shows in grey what is to be dim, which pyte leaves out."""

    def select_graphic_rendition(self, *attrs: int, **more: Any) -> None:
        named = 38 in attrs or 48 in attrs  # a 2 in these is a part of a colour
        grey = attrs if named else (90 if attr == 2 else attr for attr in attrs)
        super().select_graphic_rendition(*grey, **more)


class Recorder(Terminal):
    """A terminal that keeps frames."""

    screen_type = DimScreen
    frames: list[Frame]

    def look(self) -> tuple[Line, ...]:
        with self._lock:
            cursor = self.screen.cursor
            shown = not cursor.hidden
            at = (cursor.y, cursor.x) if shown else None
            return tuple(self._line(y, at) for y in range(ROWS))

    def _line(self, y: int, cursor: tuple[int, int] | None) -> Line:
        row = self.screen.buffer[y]
        cells = []
        for x in range(COLUMNS):
            char = row[x]
            color = hex_color(char.fg, "default")
            background = "" if char.bg == "default" else hex_color(char.bg, "black")
            if char.reverse != ((y, x) == cursor):
                color, background = background or WINDOW, color
            cells.append((char.data or " ", Style(color, background, char.bold)))
        runs = []
        x = 0
        for style, group in groupby(cells, key=lambda cell: cell[1]):
            text = "".join(data for data, _ in group)
            if text.strip() or style.background:
                runs.append((x, text, style))
            x += len(text)
        return tuple(runs)

    def keep(self, lasts_s: float) -> None:
        """What is seen now lasts so long, in addition to what it has lasted."""
        lines = self.look()
        if self.frames and self.frames[-1].lines == lines:
            self.frames[-1].lasts_s += lasts_s
        else:
            self.frames.append(Frame(lines, lasts_s))

    def watch(self, until: str, more: int = 0) -> None:
        """Keep what is seen until a text is there `more` times more than at first."""
        wanted = more + 1
        began = time.monotonic()
        idle_s = 0.0
        before: tuple[Line, ...] = ()
        while True:
            done = self.all.count(until) >= wanted
            lines = self.look()
            idle_s = 0.0 if lines != before else idle_s + 0.05
            before = lines
            if idle_s < LONGEST_WAIT_S:
                self.keep(0.05)
            if done:
                return
            if time.monotonic() - began > 60:
                raise TimeoutError(f"no {until!r} in:\n{self.all}")
            time.sleep(0.05)

    def write(self, text: str) -> None:
        """Type it, two characters at a time."""
        for i in range(0, len(text), 2):
            self.type(text[i : i + 2])
            self.wait_for(text[: i + 2][-20:].strip())
            self.keep(KEY_S)


def hex_color(name: str, default: str) -> str:
    if len(name) == 6 and name not in COLORS:
        return f"#{name}"
    return COLORS.get(name, COLORS[default])


# ---------------------------------------------------------------------- the recording


def record(home: Path, url: str) -> list[Frame]:
    """The frames. The first is the approval, as it is all that some people see."""
    (home / "deskhand.yaml").write_text(
        "permission_mode: ask-me\n"
        "timezone: Europe/Berlin\n"
        "defaults: {models: [demo/script], profile: full, deferred_tools: []}\n"
        f"providers: {{demo: {{base_url: {url}}}}}\n"
    )
    workspace = home / "agents" / "default" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "shopping.txt").write_text(LIST)
    env = {
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "DESKHAND_HOME": str(home),
        "PS1": "$ ",
    }
    shell = Recorder(["/bin/bash", "--norc", "--noprofile", "-i"], env, COLUMNS, ROWS)
    shell.frames = []
    try:
        shell.wait_for("$")
        shell.type(COMMANDS[0])
        shell.wait_for(COMMANDS[0])
        shell.keep(1.0)
        shell.type("\r")
        shell.watch("Write a message.")
        shell.wait_ready()
        shell.wait_gone("connected to")  # until the chat has taken the work
        shell.keep(0.6)

        shell.write(SHOPPING)
        shell.type("\r")
        shell.watch("Allow?")
        time.sleep(MEANT_S)
        shell.keep(2.8)
        poster = len(shell.frames) - 1
        shell.type("y")
        shell.watch("bread is left.")
        time.sleep(0.5)
        shell.keep(1.2)

        shell.write(REMINDER)
        shell.type("\r")
        shell.watch("Allow?")
        time.sleep(MEANT_S)
        shell.keep(2.2)
        shell.type("y")
        shell.watch("on weekdays.")
        time.sleep(0.5)
        shell.keep(1.6)

        shell.type("\x04")
        shell.watch("Continue with")
        time.sleep(0.5)
        shell.keep(0.3)
        shell.write(COMMANDS[1])
        shell.keep(0.3)
        shell.type("\r")
        shell.watch("Put back")
        time.sleep(0.5)
        shell.keep(2.6)
        return shell.frames[poster:] + shell.frames[:poster]
    finally:
        shell.close()


# ---------------------------------------------------------------------- the picture

CELL, LINE, MARGIN, TOP = 8.4, 19, 14, 40
"""Pixels: of a character and a line, at the sides, and above the first line."""


def draw(frames: list[Frame]) -> str:
    """The animation as SVG: each text stands there once for each stretch of time in which it can be
    seen."""
    total_s = sum(frame.lasts_s for frame in frames)
    starts = [sum(frame.lasts_s for frame in frames[:i]) for i in range(len(frames) + 1)]
    styles: dict[Style, str] = {}
    timings: dict[tuple[int, int], str] = {}
    body = []
    for y in range(ROWS):
        for line, first, last in stretches(frames, y):
            if not line:
                continue
            still = first == 0 and last == len(frames)
            timing = timings.setdefault((first, last), f"t{len(timings)}")
            shown = " s" if first == 0 else ""
            drawn = "".join(draw_run(run, y, styles) for run in line)
            body.append(drawn if still else f'<g class="f{shown} {timing}">{drawn}</g>')
    width = round(COLUMNS * CELL + 2 * MARGIN)
    height = ROWS * LINE + TOP + MARGIN
    css = [
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}",
        ".f{visibility:hidden}.s{visibility:visible}",
        *(
            f".{name}{{fill:{style.color}{';font-weight:bold' if style.bold else ''}}}"
            for style, name in styles.items()
        ),
    ]
    moving = [f".f{{animation:{total_s:.2f}s step-end infinite}}"]
    for (first, last), name in timings.items():
        begin, end = (
            f"{starts[i] / total_s * 100:.2f}".rstrip("0").rstrip(".") for i in (first, last)
        )
        before = "" if first == 0 else "0%{visibility:hidden}"
        after = "" if last == len(frames) else f"{end}%{{visibility:hidden}}"
        moving.append(f".{name}{{animation-name:{name}}}")
        css.append(f"@keyframes {name}{{{before}{begin}%{{visibility:visible}}{after}}}")
    css.append(f"@media (prefers-reduced-motion:no-preference){{{''.join(moving)}}}")
    dots = "".join(
        f'<circle cx="{20 + 20 * i}" cy="19" r="6" fill="{color}"/>'
        for i, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n'
        f"<title>Deskhand in a terminal</title>\n"
        f"<style>{chr(10).join(css)}</style>\n"
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="9" fill="{WINDOW}" '
        f'stroke="#5c6370"/>\n{dots}\n' + "\n".join(body) + "\n</svg>\n"
    )


def stretches(frames: list[Frame], y: int) -> Iterator[tuple[Line, int, int]]:
    """What line `y` shows, from which frame on, and until before which one."""
    at = 0
    for line, group in groupby(frames, key=lambda frame: frame.lines[y]):
        count = len(list(group))
        yield line, at, at + count
        at += count


def draw_run(run: Run, y: int, styles: dict[Style, str]) -> str:
    x, text, style = run
    plain = msgspec.structs.replace(style, background="")
    name = styles.setdefault(plain, f"c{len(styles)}")
    left = round(MARGIN + x * CELL, 1)
    bottom = TOP + y * LINE + 14
    drawn = ""
    if style.background:
        drawn = (
            f'<rect x="{left}" y="{bottom - 14}" width="{round(len(text) * CELL, 1)}" '
            f'height="{LINE}" fill="{style.background}"/>'
        )
    for piece in re.finditer(r"\S+(?: \S+)*", text):
        words = piece[0]
        left = round(MARGIN + (x + piece.start()) * CELL, 1)
        wide = f' textLength="{round(len(words) * CELL, 1)}"' if len(words) > 1 else ""
        escaped = html.escape(words, quote=False)
        drawn += f'<text class="{name}" x="{left}" y="{bottom}"{wide}>{escaped}</text>'
    return drawn


async def main() -> None:
    async with FakeLLM() as model:
        model.script(*SCRIPT)
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            home.mkdir()
            frames = await anyio.to_thread.run_sync(record, home, model.url)
    OUTPUT.write_text(draw(frames))
    lasts_s = sum(frame.lasts_s for frame in frames)
    print(f"{OUTPUT.stat().st_size / 1000:.0f} kB, {lasts_s:.1f} s, {len(frames)} frames")


if __name__ == "__main__":
    anyio.run(main)
