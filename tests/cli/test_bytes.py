"""What the chat writes to the terminal is little, and seldom: the terminal may be at the other end
of a slow line."""

from __future__ import annotations

import time

from .terminal import Terminal
from .test_chat import Open
from .test_chat import opened as opened

FRAME = b"\x1b[?25l"
"""Each redraw begins by hiding the cursor."""
MAX_FRAMES_PER_S = 15
MAX_BYTES_PER_S = 3_500
MAX_BYTES_PER_FRAME = 320


def write(chat: Terminal, text: str, until: str) -> tuple[bytes, float]:
    """What is written until this is seen, and how many seconds that took."""
    before = len(chat.raw)
    chat.say(text)
    took = chat.wait_for(until, 60)
    return chat.raw[before:], took


def test_a_streamed_answer_is_few_bytes(opened: Open) -> None:
    """At 50 pieces a second, with code and a list that scroll away."""
    chat = opened()
    chat.wait_ready()
    wrote, took = write(chat, "program", "The end of it.")
    assert took > 5
    assert wrote.count(FRAME) < MAX_FRAMES_PER_S * took
    assert len(wrote) < MAX_BYTES_PER_S * took
    assert len(wrote) < MAX_BYTES_PER_FRAME * wrote.count(FRAME)
    assert b"\x1b[6n" not in wrote, "nothing waits for an answer of the terminal"
    assert "Point 39" in chat.all and "This is line 39" in chat.all


def test_what_waits_is_nearly_free(opened: Open) -> None:
    chat = opened()
    chat.wait_ready()
    chat.say("slow")
    chat.wait_for("line 3")
    before = len(chat.raw)
    time.sleep(2)
    wrote = chat.raw[before:]
    assert wrote.count(FRAME) <= 2 * MAX_FRAMES_PER_S
    assert len(wrote) < 2 * 1_500
    chat.type("\x03")
    chat.wait_for("Stopped.")
    time.sleep(1)
    before = len(chat.raw)
    time.sleep(1)
    assert len(chat.raw) == before, "at rest it writes nothing"
