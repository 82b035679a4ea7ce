"""What the page works out of sound and of words, in the browser: when somebody begins to speak and
is done, and in which pieces an answer is read aloud."""

from __future__ import annotations

import random
from typing import Any

import pytest
from playwright.sync_api import Page

pytestmark = pytest.mark.timeout(120)
FRAME_MS = 20
HEAR = """async ([levels, ms, overVoice]) => {
  const { UNHEARD, hearLevel } = await import("/js/voice/detect-speech.js");
  let state = UNHEARD;
  const events = [];
  for (const [at, level] of levels.entries()) {
    const before = JSON.stringify(state);
    const next = hearLevel(state, level, ms, overVoice);
    if (JSON.stringify(state) !== before) throw new Error("the old state was changed");
    state = next;
    if (state.event) events.push([state.event, at * ms]);
  }
  return events;
}"""
CUT = """async ([text, done]) => {
  const { cutSentences } = await import("/js/voice/sentences.js");
  return cutSentences(text, done);
}"""
READ = """async (steps) => {
  const { UNREAD, readOn } = await import("/js/voice/sentences.js");
  let read = UNREAD;
  return steps.map((answers) => {
    const next = readOn(read, answers);
    read = next.read;
    return next.pieces;
  });
}"""


def lasting(seconds: float, decibels: float, spread: float = 3.0, seed: int = 0) -> list[float]:
    """So long a sound of about this loudness."""
    made = random.Random(f"{seed} {seconds} {decibels}")
    count = round(seconds * 1000 / FRAME_MS)
    return [decibels + made.uniform(-spread, spread) for _ in range(count)]


def speaking(
    seconds: float, decibels: float = -28.0, seed: int = 0, noise: float = -60.0
) -> list[float]:
    """Words of about 300 ms with the short gaps that speech has, never quieter than the noise."""
    levels: list[float] = []
    gap = max(noise, decibels - 20.0)
    while len(levels) * FRAME_MS < seconds * 1000:
        levels += lasting(0.3, decibels, 6.0, seed) + lasting(0.1, gap, 3.0, seed)
        seed += 1
    return levels[: round(seconds * 1000 / FRAME_MS)]


def heard(page: Page, levels: list[float], over_voice: bool = False) -> list[tuple[str, float]]:
    found = page.evaluate(HEAR, [levels, FRAME_MS, over_voice])
    return [(event, at_ms / 1000) for event, at_ms in found]


@pytest.mark.parametrize("noise", [-75.0, -60.0, -50.0, -42.0])
@pytest.mark.parametrize("seed", range(3))
def test_speech_begins_soon_and_ends_a_second_after_it(page: Page, noise: float, seed: int) -> None:
    before, length = 1.0 + seed, 1.2 + 1.7 * seed
    levels = lasting(before, noise, seed=seed) + speaking(length, seed=seed, noise=noise)
    events = heard(page, levels + lasting(2.5, noise, seed=seed + 9))
    assert [event for event, _ in events] == ["begin", "end"]
    (_, begin), (_, end) = events
    assert before <= begin <= before + 0.35
    assert before + length + 0.8 <= end <= before + length + 1.3


@pytest.mark.parametrize("seed", range(6))
def test_begin_and_end_take_turns_whatever_is_heard(page: Page, seed: int) -> None:
    made = random.Random(seed)
    levels: list[float] = []
    while len(levels) < 3_000:
        levels += lasting(
            made.uniform(0.02, 2.0), made.uniform(-90.0, 0.0), 8.0, made.getrandbits(20)
        )
    names = [event for event, _ in heard(page, levels, bool(seed % 2))]
    assert names[::2] == ["begin"] * len(names[::2])
    assert set(names[1::2]) <= {"end", "discard"}


def test_a_pause_within_a_sentence_does_not_end_it(page: Page) -> None:
    levels = lasting(1, -60) + speaking(1.5) + lasting(0.7, -60) + speaking(1.5) + lasting(2, -60)
    assert [event for event, _ in heard(page, levels)] == ["begin", "end"]


def test_noise_alone_is_no_speech(page: Page) -> None:
    for noise in (-90.0, -60.0, -45.0, -30.0):
        assert heard(page, lasting(20, noise, 4.0)) == []


def test_a_click_begins_nothing_and_a_cough_is_discarded(page: Page) -> None:
    assert heard(page, lasting(1, -60) + lasting(0.04, -15) + lasting(2, -60)) == []
    cough = heard(page, lasting(1, -60) + lasting(0.18, -20) + lasting(2, -60))
    assert [event for event, _ in cough] in ([], ["begin", "discard"])


def test_a_fan_that_is_turned_on_is_no_endless_sentence(page: Page) -> None:
    events = heard(
        page,
        lasting(2, -65)
        + lasting(20, -40, 2.0)
        + speaking(2, -20, noise=-40)
        + lasting(3, -40, 2.0),
    )
    assert [event for event, _ in events] == ["begin", "end", "begin", "end"]
    assert events[1][1] < 8, "the noise of the room is known after some seconds"


def test_whoever_speaks_at_once_is_heard(page: Page) -> None:
    events = heard(page, speaking(3) + lasting(2, -60))
    assert [event for event, _ in events] == ["begin", "end"]
    assert events[0][1] < 1.0


def test_silence_without_any_sound_is_silence(page: Page) -> None:
    nothing = -1e9  # a microphone that is turned off: its logarithm is minus infinity
    assert heard(page, [nothing] * 300) == []
    levels = [nothing] * 100 + speaking(1.5) + [nothing] * 100
    assert [event for event, _ in heard(page, levels)] == ["begin", "end"]


def test_its_own_voice_does_not_interrupt_it(page: Page) -> None:
    """What echo cancellation leaves is quiet, or short."""
    echo: list[float] = []
    for seed in range(10):
        echo += lasting(0.9, -60, seed=seed) + lasting(0.12, -38, seed=seed)
    assert heard(page, echo + speaking(4, -46.0), over_voice=True) == []
    person = heard(page, lasting(1, -60) + speaking(2, -24.0) + lasting(2, -60), over_voice=True)
    assert [event for event, _ in person] == ["begin", "end"]
    assert person[0][1] < 1.7


TEXTS = (
    "I looked at your notes. They have **three things**. Milk, bread and a tent! Shall I go on?",
    "Dr. Who paid 3.50 for it, e.g. at St. John's. That was on the 3. of May, they say. It is so.",
    "1. First take the long way home.\n2. Then take the short way home.\n\nThat is all of it.",
    "Look:\n\n```python\nprint('Hello. World. This is code.')\n\nx = 1\n```\n\nThat prints it.",
    "Here is a table:\n\n| a. b | c. d |\n|---|---|\n| One. Two | Three. Four |\n\nThat was it.",
    "Das ist z. B. so gemeint. Und das hier ist ein zweiter Satz, der lang ist.",
    "これは最初の文です。とても長い文章を書いてみましょう。もう一つの文。",
    "word " * 400,
    "",
)


@pytest.mark.parametrize("text", TEXTS)
def test_the_pieces_are_the_text_and_each_stays_as_the_text_grows(page: Page, text: str) -> None:
    whole: list[str] = page.evaluate(CUT, [text, True])
    assert "".join(whole) == text
    for length in range(0, len(text), 7):
        begun: list[str] = page.evaluate(CUT, [text[:length], False])
        assert whole[: len(begun)] == begun


def test_what_belongs_together_is_read_together(page: Page) -> None:
    def cut(text: str) -> Any:
        return [piece.strip() for piece in page.evaluate(CUT, [text, True])]

    assert cut(TEXTS[0]) == [
        "I looked at your notes. They have **three things**.",
        "Milk, bread and a tent! Shall I go on?",
    ]
    assert cut(TEXTS[1])[0] == "Dr. Who paid 3.50 for it, e.g. at St. John's."
    assert [piece[:3] for piece in cut(TEXTS[3])] == ["Loo", "```", "Tha"]
    assert cut(TEXTS[5])[0] == "Das ist z. B. so gemeint."
    assert all(len(piece) <= 600 for piece in cut(TEXTS[7]))


def test_a_short_paragraph_is_read_at_once(page: Page) -> None:
    assert page.evaluate(CUT, ["Yes.\n\n", False]) == ["Yes.\n\n"]
    assert page.evaluate(CUT, ["Yes. It", False]) == []


def test_answers_are_read_once_and_in_their_order(page: Page) -> None:
    first = "I look into your notes for you. "
    second = "They have milk and bread in them. And a tent."

    def growing(text: str) -> dict[str, object]:
        return {"text": text, "done": False}

    def done(text: str) -> dict[str, object]:
        return {"text": text, "done": True}

    pieces = page.evaluate(
        READ,
        [
            [growing("I look into")],
            [growing(first + "It")],
            [done(first + "It is done.")],
            [done(first + "It is done."), growing(second[:36])],
            [done(first + "It is done."), done(second)],
            [done(first + "It is done."), done(second)],
        ],
    )
    assert pieces == [
        [],
        [first.strip()],
        ["It is done."],
        ["They have milk and bread in them."],
        ["And a tent."],
        [],
    ]


def test_an_answer_that_begins_anew_is_read_anew(page: Page) -> None:
    told = "This is what I wanted to say. And"
    other = "Now it is something else altogether. Yes."
    pieces = page.evaluate(
        READ,
        [
            [{"text": told, "done": False}],
            [{"text": "Now", "done": False}],
            [{"text": other, "done": True}],
        ],
    )
    assert pieces == [
        ["This is what I wanted to say."],
        [],
        ["Now it is something else altogether.", "Yes."],
    ]
