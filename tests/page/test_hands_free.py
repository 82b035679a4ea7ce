"""Talking hands-free: the page listens by itself, sends what was said, reads the answer aloud, and
is silent when somebody speaks.

The microphone is a file that is played over and over: silence, and a tone that the desk understands
by its pitch.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, Request, StorageState, expect

from deskhand.testing.speech import RATE, write_wav

from .conftest import ARGUMENTS, Desk, answer, comes_true, say
from .desk import SPOKEN
from .states import LOOKS
from .test_looks import AXE, RUN
from .test_voice import PLAYS, REFUSED, SILENT, opened

pytestmark = pytest.mark.timeout(180)
(NOTES, NOTES_TEXT), (HOLD, HOLD_TEXT) = SPOKEN.items()
KEEP_MICROPHONE = """
const { mediaDevices } = navigator;
const open = mediaDevices.getUserMedia.bind(mediaDevices);
mediaDevices.getUserMedia = async wanted => {
  window.wanted = wanted;
  return (window.microphone = await open(wanted));
};
"""
HEARING = "document.querySelector('.hands-free [data-phase=hearing]')"
BE_DEAF = """async () => {
  const { currentUser } = await import("/js/state.js");
  const button = document.querySelector(".hands-free-button");
  const speech = { hear_problem: "Nothing hears.", say_problem: "" };
  button.addEventListener("click", () => {
    currentUser.value = { ...currentUser.value, speech };
  }, { capture: true });
}"""
CLOSED = "window.microphone.getTracks().every(track => track.readyState === 'ended')"


def make_sentences(pitch: float, before_s: float, after_s: float) -> bytes:
    """A sentence of a second and a half, between the quiet noise of a room."""
    room = np.random.default_rng(1)
    tone = 12_000 * np.sin(2 * np.pi * pitch * np.arange(int(RATE * 1.5)) / RATE)
    quiet = [room.normal(0, 20, int(RATE * seconds)) for seconds in (before_s, after_s)]
    samples = np.concatenate([quiet[0], tone, quiet[1]])
    return write_wav(samples.astype("<i2").tobytes(), RATE)


@contextmanager
def speaking(browser: Browser, sound: Path) -> Iterator[Browser]:
    """A browser into whose microphone this is said."""
    launched = browser.browser_type.launch(
        executable_path=shutil.which("chromium") or "/usr/bin/chromium",
        args=[
            *ARGUMENTS,
            "--use-fake-device-for-media-stream",
            "--use-fake-ui-for-media-stream",
            f"--use-file-for-fake-audio-capture={sound}",
        ],
    )
    yield launched
    launched.close()


@pytest.fixture(scope="module")
def often(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The same is asked every eight seconds."""
    sound = tmp_path_factory.mktemp("voice") / "often.wav"
    sound.write_bytes(make_sentences(NOTES, 1.0, 5.5))
    with speaking(browser, sound) as launched:
        yield launched


@pytest.fixture(scope="module")
def once(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Something is said, and nothing more while a test lasts."""
    sound = tmp_path_factory.mktemp("voice") / "once.wav"
    sound.write_bytes(make_sentences(HOLD, 1.0, 120.0))
    with speaking(browser, sound) as launched:
        yield launched


def button(page: Page) -> Locator:
    return page.get_by_role("button", name="Talk hands-free")


def layer(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Talk hands-free")


def state(page: Page, name: str) -> Locator:
    return layer(page).get_by_role("status").filter(has_text=re.compile(f"^{name}$"))


def press(page: Page, name: str) -> None:
    layer(page).get_by_role("button", name=name, exact=True).click()


def note_sentences(page: Page) -> list[str]:
    """What is read aloud from now on."""
    said: list[str] = []

    def note(made: Request) -> None:
        if made.url.endswith("/speech") and made.method == "POST":
            said.append(json.loads(made.post_data or "{}")["text"])

    page.on("request", note)
    return said


def test_it_listens_answers_aloud_and_is_silent_when_somebody_speaks(
    often: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(often, desk, signed, KEEP_MICROPHONE) as page:
        said = note_sentences(page)
        whole: list[str] = []
        page.on("request", lambda made: whole.append(made.url))
        button(page).click()
        expect(state(page, "Listening")).to_be_visible()
        expect(state(page, "You are speaking")).to_be_visible()
        expect(layer(page).locator(".heard")).to_contain_text(NOTES_TEXT)
        expect(layer(page).locator(".answer")).to_contain_text(f"You said: {NOTES_TEXT}")
        expect(state(page, "Speaking")).to_be_visible()
        comes_true(page, PLAYS)
        assert said == [f"You said: {NOTES_TEXT}"]
        audio = page.evaluate("window.wanted.audio")
        assert audio["echoCancellation"] and audio["noiseSuppression"]

        comes_true(page, f"{HEARING} && {SILENT}")  # before the sentence is over
        expect(state(page, "Speaking")).to_be_visible()
        expect(page.locator(".bubble", has_text=NOTES_TEXT)).to_have_count(2)
        comes_true(page, PLAYS)

        page.keyboard.press("Escape")
        expect(layer(page)).to_have_count(0)
        comes_true(page, SILENT)
        comes_true(page, CLOSED)
        expect(button(page)).to_be_focused()
        assert not [url for url in whole if "/messages/" in url and url.endswith("/speech")]
        expect(answer(page, f"You said: {NOTES_TEXT}")).to_have_count(2)


def test_an_answer_is_read_while_it_is_written(
    once: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(once, desk, signed) as page:
        said = note_sentences(page)
        button(page).click()
        expect(layer(page).locator(".heard")).to_contain_text(HOLD_TEXT)
        expect(state(page, "Speaking")).to_be_visible()
        comes_true(page, PLAYS)
        assert said == ["The first half of it."]
        press(page, "Pause")
        expect(state(page, "Paused")).to_be_visible()
        comes_true(page, SILENT)
        desk.release()
        expect(layer(page).locator(".answer")).to_contain_text("The second half of it.")
        assert page.evaluate(SILENT)

        press(page, "Pause")
        expect(state(page, "Speaking")).to_be_visible()
        comes_true(page, PLAYS)
        press(page, "Mute")
        expect(layer(page).get_by_role("button", name="Mute", exact=True)).to_have_attribute(
            "aria-pressed", "true"
        )
        comes_true(page, PLAYS)
        press(page, "End")
        comes_true(page, SILENT)
        expect(layer(page)).to_have_count(0)
        assert said[:2] == ["The first half of it.", "The second half of it."]


def test_escape_ends_the_talk_and_not_the_work(
    once: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(once, desk, signed) as page:
        button(page).click()
        expect(layer(page).locator(".answer")).to_contain_text("The first half of it.")
        page.keyboard.press("Escape")
        expect(layer(page)).to_have_count(0)
        desk.release()
        expect(answer(page, "The second half of it.")).to_be_visible()


def test_whoever_is_muted_is_not_heard(often: Browser, desk: Desk, signed: StorageState) -> None:
    with opened(often, desk, signed) as page:
        button(page).click()
        expect(state(page, "You are speaking")).to_be_visible()
        press(page, "Mute")
        expect(state(page, "Microphone is off")).to_be_visible()
        page.wait_for_timeout(9_000)  # it is said once more meanwhile
        expect(page.locator(".bubble")).to_have_count(0)
        press(page, "Mute")
        expect(layer(page).locator(".heard")).to_contain_text(NOTES_TEXT)


def test_what_is_said_answers_no_question(often: Browser, desk: Desk, signed: StorageState) -> None:
    with opened(often, desk, signed) as page:
        say(page, "post it")
        page.get_by_role("region", name="Permission needed").wait_for()
        said = note_sentences(page)
        button(page).click()
        notice = layer(page).get_by_role("region", name="It asks you")
        expect(notice).to_contain_text("Come to the river on Saturday")
        expect(notice).to_contain_text("What you say does not answer this.")
        expect(notice.get_by_role("button")).to_have_count(0)
        expect(state(page, "You are speaking")).to_be_visible()
        with page.expect_response("**/messages") as sent:
            expect(state(page, "Waiting for your answer on the page")).to_be_visible()
        assert '"when":"queue"' in (sent.value.request.post_data or "")
        press(page, "Mute")
        page.wait_for_timeout(500)
        expect(notice).to_be_visible()
        assert said[0] == "I need your permission for something. Please answer on the page."
        notice.get_by_role("link", name="Answer in the conversation").click()
        expect(layer(page)).to_have_count(0)
        expect(page.locator(":focus")).to_contain_text("Allow once")
        page.keyboard.press("n")
        expect(page.get_by_role("region", name="Permission needed")).to_have_count(0)
        expect(answer(page, f"You said: {NOTES_TEXT}")).to_be_visible()


def test_what_did_not_arrive_is_sent_again(
    often: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(often, desk, signed) as page:
        page.route("**/api/blobs?*", lambda route: route.abort(), times=1)
        button(page).click()
        expect(layer(page).get_by_text("What you said did not arrive.")).to_be_visible()
        press(page, "Mute")
        press(page, "Send again")
        expect(layer(page).locator(".heard")).to_contain_text(NOTES_TEXT)


def test_a_voice_that_fails_leaves_the_answer_in_writing(
    often: Browser, desk: Desk, signed: StorageState
) -> None:
    (desk.home / "mute").touch()
    try:
        with opened(often, desk, signed) as page:
            button(page).click()
            expect(layer(page).locator(".answer")).to_contain_text(f"You said: {NOTES_TEXT}")
            expect(layer(page).get_by_text("the voice is hoarse")).to_be_visible()
            expect(state(page, "Listening")).to_be_visible()
    finally:
        (desk.home / "mute").unlink()


@pytest.mark.parametrize("name", REFUSED)
def test_without_a_microphone_the_layer_says_what_to_do(
    often: Browser, desk: Desk, signed: StorageState, name: str
) -> None:
    script = f"""
      window.refuses = true;
      const openAtAll = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
      navigator.mediaDevices.getUserMedia = async wanted => {{
        if (!window.refuses) return openAtAll(wanted);
        throw Object.assign(new Error("odd"), {{ name: "{name}" }});
      }};
    """
    with opened(often, desk, signed, script) as page:
        button(page).click()
        expect(state(page, "You cannot talk here yet")).to_be_visible()
        expect(layer(page).get_by_role("alert")).to_contain_text(REFUSED[name])
        page.evaluate("window.refuses = false")
        press(page, "Try again")
        expect(state(page, "Listening")).to_be_visible()


def test_without_an_engine_the_layer_says_what_is_missing(
    often: Browser, desk: Desk, signed: StorageState
) -> None:
    problems = {"hear_problem": "", "say_problem": "Nothing speaks here."}

    with opened(often, desk, signed) as page:
        me = page.request.get("/api/auth/me").json() | {"speech": problems}
        page.route("**/api/auth/me", lambda route: route.fulfill(json=me))
        page.reload()
        said = note_sentences(page)
        button(page).click()
        expect(layer(page).get_by_text("Nothing speaks here.")).to_be_visible()
        expect(layer(page).locator(".answer")).to_contain_text(f"You said: {NOTES_TEXT}")
        press(page, "End")
        assert said == []

        page.evaluate(BE_DEAF)
        button(page).click()
        expect(layer(page).get_by_text("Nothing hears.")).to_be_visible()
        layer(page).get_by_role("link", name="Open the voice settings").click()
        expect(layer(page)).to_have_count(0)


def test_another_page_ends_it(once: Browser, desk: Desk, signed: StorageState) -> None:
    with opened(once, desk, signed, KEEP_MICROPHONE) as page:
        page.goto("/#/settings/voice")
        page.get_by_role("link", name="Deskhand, a new").click()
        button(page).click()
        expect(state(page, "Listening")).to_be_visible()
        page.go_back()
        expect(layer(page)).to_have_count(0)
        comes_true(page, CLOSED)


def test_nothing_serious_stands_in_the_way(
    often: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(often, desk, signed, bypass_csp=True) as page:
        page.evaluate(AXE.read_text())
        found: dict[str, list[str]] = {}

        def check(name: str) -> None:
            for look, (scheme, width, height) in LOOKS.items():
                page.set_viewport_size({"width": width, "height": height})
                page.evaluate("it => { document.documentElement.dataset.theme = it }", scheme)
                found[f"{name} {look}"] = page.evaluate(RUN)
                assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.set_viewport_size({"width": 390, "height": 844})
            for control in ("Mute", "Pause", "End"):
                shown = layer(page).get_by_role("button", name=control, exact=True)
                expect(shown).to_be_in_viewport(ratio=1)

        button(page).click()
        expect(layer(page).locator(".answer")).to_contain_text(NOTES_TEXT)
        press(page, "Mute")
        check("talking")
        press(page, "End")
        page.set_viewport_size({"width": 1280, "height": 800})
        say(page, "post it")
        page.get_by_role("region", name="Permission needed").wait_for()
        button(page).click()
        expect(layer(page).get_by_role("region", name="It asks you")).to_be_visible()
        check("asked")
        assert not any(found.values()), found
