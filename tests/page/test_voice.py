"""Voice: a person holds a button and talks, sees what was heard, and hears the answer.

The microphone is a file with a tone, which the desk understands by its pitch after the browser has
encoded it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, StorageState, expect

from .conftest import ARGUMENTS, WAIT_MS, Desk, answer, comes_true, say, watched
from .desk import SPOKEN, make_tone
from .states import LOOKS
from .test_looks import AXE, RUN

pytestmark = pytest.mark.timeout(180)
TONE, HEARD = next(iter(SPOKEN.items()))
NOTE_SOUND = """
window.sounds = [];
const play = HTMLMediaElement.prototype.play;
HTMLMediaElement.prototype.play = function () {
  if (!window.sounds.includes(this)) window.sounds.push(this);
  return play.call(this);
};
"""
PLAYS = "window.sounds.some(sound => !sound.paused && sound.currentTime > 0)"
SILENT = "window.sounds.every(sound => sound.paused)"
NOTE_ADDRESSES = """
window.addresses = new Set();
const { createObjectURL, revokeObjectURL } = URL;
URL.createObjectURL = made => {
  const address = createObjectURL.call(URL, made);
  window.addresses.add(address);
  return address;
};
URL.revokeObjectURL = address => {
  window.addresses.delete(address);
  revokeObjectURL.call(URL, address);
};
"""


@pytest.fixture(scope="module")
def talking(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with a microphone in front of a loudspeaker."""
    tone = tmp_path_factory.mktemp("voice") / "tone.wav"
    tone.write_bytes(make_tone(TONE, 4.0))
    launched = browser.browser_type.launch(
        executable_path=shutil.which("chromium") or "/usr/bin/chromium",
        args=[
            *ARGUMENTS,
            "--use-fake-device-for-media-stream",
            "--use-fake-ui-for-media-stream",
            f"--use-file-for-fake-audio-capture={tone}",
        ],
    )
    yield launched
    launched.close()


@contextmanager
def opened(
    talking: Browser, desk: Desk, signed: StorageState, script: str = "", **more: Any
) -> Iterator[Page]:
    made = talking.new_context(
        storage_state=signed,
        base_url=desk.url,
        reduced_motion="reduce",
        service_workers="block",  # what passes through one is not seen by `page.route`
        **more,
    )
    made.set_default_timeout(WAIT_MS)
    made.add_init_script(NOTE_SOUND + script)
    page = made.new_page()
    broken = watched(page)
    page.goto("/")
    page.get_by_label("Message to Deskhand").wait_for()
    yield page
    assert broken == []
    made.close()


@pytest.fixture
def page(talking: Browser, desk: Desk, signed: StorageState) -> Iterator[Page]:
    with opened(talking, desk, signed) as page:
        yield page


def mic(page: Page) -> Locator:
    return page.locator(".talk-button")


def press(page: Page) -> tuple[float, float]:
    """Put the pointer down on the button, and return where that is."""
    box = mic(page).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    return x, y


def hold(page: Page, seconds: float = 1.2) -> None:
    """Hold the button that long, from when the microphone is open."""
    press(page)
    wait_for_tone(page)
    page.wait_for_timeout(seconds * 1000)
    page.mouse.up()


def wait_for_tone(page: Page) -> None:
    expect(page.get_by_role("timer")).to_be_visible()
    expect(page.locator(".meter path")).to_have_attribute("d", re.compile("v1[0-9]"))


def spoken(page: Page) -> Locator:
    return page.locator(".bubble", has_text=HEARD)


def reading(page: Page) -> Locator:
    return page.get_by_text("Reading the answer aloud")


def bar(page: Page) -> Locator:
    """What shows that an answer is read aloud, or is about to be."""
    return page.locator(".speaking-bar")


def note_sounds(page: Page) -> list[str]:
    """The addresses of the answers whose sound is asked for from now on."""
    found: list[str] = []
    page.on(
        "request", lambda made: found.append(made.url) if made.url.endswith("/speech") else None
    )
    return found


def test_who_holds_the_button_is_heard_and_answered_aloud(page: Page) -> None:
    hold(page)
    expect(spoken(page)).to_be_visible()
    expect(answer(page, f"You said: {HEARD}")).to_be_visible()
    expect(reading(page)).to_be_visible()
    comes_true(page, PLAYS)
    bar(page).get_by_role("button", name="Stop reading").click()
    comes_true(page, SILENT)
    expect(bar(page)).to_have_count(0)

    page.get_by_role("button", name="Read this answer aloud").click()
    expect(reading(page)).to_be_visible()
    page.locator(".did").get_by_role("button", name="Stop reading").click()
    expect(bar(page)).to_have_count(0)

    asked = note_sounds(page)
    page.reload()
    expect(spoken(page)).to_be_visible()
    expect(answer(page, f"You said: {HEARD}")).to_be_visible()
    page.wait_for_timeout(300)
    assert asked == []


def test_what_was_said_is_played_again(page: Page) -> None:
    hold(page)
    expect(spoken(page)).to_be_visible()
    expect(reading(page)).to_be_visible()
    page.get_by_role("button", name="Play the recording").click()
    expect(bar(page)).to_have_count(0)
    comes_true(page, PLAYS)
    page.get_by_role("button", name="Read this answer aloud").click()
    expect(page.get_by_role("button", name="Play the recording")).to_be_visible()
    expect(reading(page)).to_be_visible()
    page.get_by_role("button", name="Play the recording").click()
    expect(bar(page)).to_have_count(0)
    page.get_by_role("button", name="Pause the recording").click()
    comes_true(page, SILENT)


def test_another_answer_takes_the_place_of_the_first(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(talking, desk, signed, NOTE_ADDRESSES) as page:
        asked = note_sounds(page)
        speakers = page.locator(".did").get_by_role("button", name="Read this answer aloud")
        for number, text in enumerate(("one", "two")):
            say(page, text)
            expect(speakers).to_have_count(number + 1)
        for _ in range(2):  # the second time, the sound of both is there at once
            for _ in range(2):
                speakers.last.click()  # the other one: that which is read has a button to stop
                expect(reading(page)).to_be_visible()
                expect(speakers).to_have_count(1)
                comes_true(page, PLAYS)
                comes_true(page, "window.addresses.size === 1")
        bar(page).get_by_role("button", name="Stop reading").click()
        comes_true(page, "window.addresses.size === 0")
        assert len(asked) == 2


def test_a_recording_is_loaded_once_and_not_played_when_it_comes_late(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(talking, desk, signed, NOTE_ADDRESSES) as page:
        late: list[Route] = []
        hold(page)
        expect(reading(page)).to_be_visible()
        page.route("**/api/blobs/sha256*", lambda route: late.append(route))
        play = page.get_by_role("button", name="Play the recording")
        play.click()
        expect(bar(page)).to_have_count(0)
        play.click()
        page.get_by_role("button", name="Read this answer aloud").click()
        expect(reading(page)).to_be_visible()
        assert len(late) == 1
        late[0].continue_()
        comes_true(page, "window.addresses.size === 2")
        page.wait_for_timeout(300)
        expect(play).to_be_visible()
        assert page.evaluate("window.sounds.length") == 1

        play.click()
        expect(page.get_by_role("button", name="Pause the recording")).to_be_visible()
        page.get_by_role("link", name="Settings").click()
        comes_true(page, SILENT)
        comes_true(page, "window.addresses.size === 0")
        assert len(late) == 1


def test_a_recording_that_is_stopped_at_once_can_be_played_again(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    script = """
      window.interrupts = false;
      const playAtAll = HTMLMediaElement.prototype.play;
      HTMLMediaElement.prototype.play = function () {
        const began = playAtAll.call(this);
        if (window.interrupts) this.pause();
        return began;
      };
    """
    with opened(talking, desk, signed, script) as page:
        hold(page)
        expect(reading(page)).to_be_visible()
        page.evaluate("window.interrupts = true")
        with page.expect_response("**/api/blobs/sha256*"):
            page.get_by_role("button", name="Play the recording").click()
        comes_true(page, "window.sounds.length === 2")
        page.wait_for_timeout(200)
        page.evaluate("window.interrupts = false")
        page.get_by_role("button", name="Play the recording").click()
        comes_true(page, PLAYS)


def test_a_recording_that_cannot_be_played_can_be_downloaded(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(talking, desk, signed) as page:
        hold(page)
        expect(spoken(page)).to_be_visible()
        page.route("**/api/blobs/sha256*", lambda route: route.fulfill(body="no sound"))
        page.get_by_role("button", name="Play the recording").click()
        download = page.get_by_role("link", name="Download it")
        expect(download).to_have_attribute("download", re.compile(r"^voice message\.(ogg|webm)$"))


def test_an_old_answer_is_not_read_aloud_by_itself(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    script = "const read = Date.now; Date.now = () => read.call(Date) + 60_000;"
    with opened(talking, desk, signed, script) as page:
        asked = note_sounds(page)
        hold(page)
        expect(answer(page, f"You said: {HEARD}")).to_be_visible()
        expect(page.get_by_role("button", name="Read this answer aloud")).to_be_visible()
        page.wait_for_timeout(300)
        assert asked == []


def test_nothing_is_read_aloud_while_somebody_talks(page: Page, desk: Desk) -> None:
    page.goto("/#/settings/voice")
    page.get_by_role("radio", name="Always").check()
    page.get_by_role("link", name="Deskhand, a new").click()
    asked = note_sounds(page)
    say(page, "hold on")
    answer(page, "The first half of it.").wait_for()
    mic(page).click()
    wait_for_tone(page)
    desk.release()
    answer(page, "The second half of it.").wait_for()
    expect(page.get_by_role("button", name="Read this answer aloud")).to_be_visible()
    page.keyboard.press("Escape")
    page.wait_for_timeout(300)
    assert asked == []


def test_reading_ends_when_somebody_writes_or_talks(page: Page) -> None:
    hold(page)
    expect(reading(page)).to_be_visible()
    page.get_by_label("Message to Deskhand").press_sequentially("o")
    expect(bar(page)).to_have_count(0)
    comes_true(page, SILENT)
    page.get_by_label("Message to Deskhand").fill("")

    page.get_by_role("button", name="Read this answer aloud").click()
    expect(reading(page)).to_be_visible()
    press(page)
    expect(bar(page)).to_have_count(0)
    comes_true(page, SILENT)
    wait_for_tone(page)
    page.keyboard.press("Escape")
    page.mouse.up()

    page.get_by_role("button", name="Read this answer aloud").click()
    expect(reading(page)).to_be_visible()
    page.keyboard.press("Escape")
    expect(bar(page)).to_have_count(0)


def test_reading_ends_with_the_answer(page: Page) -> None:
    say(page, "be brief")
    page.get_by_role("button", name="Read this answer aloud").click()
    expect(reading(page)).to_be_visible()
    expect(bar(page)).to_have_count(0)
    expect(page.get_by_role("button", name="Read this answer aloud")).to_be_visible()


def test_a_tap_begins_and_another_sends(page: Page) -> None:
    mic(page).click()
    wait_for_tone(page)
    expect(page.get_by_text("Press Send when you are done")).to_be_visible()
    page.wait_for_timeout(800)
    mic(page).click()
    expect(spoken(page)).to_have_count(1)
    page.get_by_label("Message to Deskhand").fill("echo")

    mic(page).click()
    wait_for_tone(page)
    page.wait_for_timeout(800)
    page.get_by_role("button", name="Send", exact=True).click()
    both = spoken(page).nth(1)
    expect(both).to_contain_text("echo")
    expect(page.get_by_label("Message to Deskhand")).to_have_value("")


def test_a_finger_taps_on_a_phone(talking: Browser, desk: Desk, signed: StorageState) -> None:
    with opened(
        talking, desk, signed, viewport={"width": 390, "height": 844}, has_touch=True
    ) as page:
        send = page.get_by_role("button", name="Send", exact=True)
        expect(mic(page)).to_be_visible()
        expect(send).to_be_hidden()
        mic(page).tap()
        wait_for_tone(page)
        expect(mic(page)).to_be_hidden()
        page.wait_for_timeout(800)
        send.tap()
        expect(spoken(page)).to_be_visible()


def test_the_keyboard_holds_the_button_too(page: Page) -> None:
    mic(page).focus()
    page.keyboard.down(" ")
    wait_for_tone(page)
    page.wait_for_timeout(800)
    page.keyboard.up(" ")
    expect(spoken(page)).to_have_count(1)
    mic(page).focus()
    page.keyboard.press("Enter")
    wait_for_tone(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("timer")).to_have_count(0)
    mic(page).evaluate("button => button.click()")  # as a screen reader does
    wait_for_tone(page)
    page.wait_for_timeout(800)
    mic(page).evaluate("button => button.click()")
    expect(spoken(page)).to_have_count(2)


def test_what_is_discarded_is_not_sent(page: Page) -> None:
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(asked.url) if asked.method == "POST" else None)
    gone = page.get_by_role("timer")
    x, y = press(page)
    wait_for_tone(page)
    page.mouse.move(x - 200, y)
    expect(page.get_by_text("Release to discard")).to_be_visible()
    page.mouse.up()
    expect(gone).to_have_count(0)

    mic(page).click()
    wait_for_tone(page)
    page.get_by_role("button", name="Discard the recording").click()
    expect(gone).to_have_count(0)

    mic(page).click()
    wait_for_tone(page)
    page.keyboard.press("Escape")
    expect(gone).to_have_count(0)

    mic(page).click()
    wait_for_tone(page)
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("heading", name="Settings").wait_for()
    page.go_back()
    expect(gone).to_have_count(0)
    assert sent == []


def test_while_it_listens_it_says_so(page: Page, desk: Desk) -> None:
    say(page, "hello")
    expect(answer(page, "You said: hello")).to_be_visible()
    (desk.home / "listens").touch()
    try:
        hold(page)
        expect(page.get_by_text("Listening: 40%")).to_be_visible()
        page.reload()
        expect(page.get_by_text("Listening")).to_be_visible()
        expect(page.get_by_role("button", name="Play the recording")).to_be_visible()
        desk.release()
        expect(spoken(page)).to_be_visible()
    finally:
        (desk.home / "listens").unlink()


def test_when_answers_are_read_aloud_is_a_setting(page: Page, desk: Desk) -> None:
    page.goto("/#/settings/voice")
    page.get_by_role("radio", name="Always").check()
    page.get_by_role("link", name="Deskhand, a new").click()
    say(page, "hold on")
    answer(page, "The first half of it.").wait_for()
    desk.release()
    expect(reading(page)).to_be_visible()
    page.goto("/#/settings/voice")
    page.get_by_role("radio", name="Never").check()
    page.reload()
    expect(page.get_by_role("radio", name="Never")).to_be_checked()
    page.get_by_role("link", name="Deskhand, a new").click()
    asked = note_sounds(page)
    hold(page)
    expect(answer(page, f"You said: {HEARD}")).to_be_visible()
    page.wait_for_timeout(500)
    assert asked == []
    expect(page.get_by_role("button", name="Read this answer aloud")).to_be_visible()


def test_a_voice_that_fails_says_why(page: Page, desk: Desk) -> None:
    (desk.home / "mute").touch()
    try:
        hold(page)
        expect(page.get_by_text("The answer was not spoken: the voice is hoarse.")).to_be_visible()
        expect(bar(page)).to_have_count(0)
    finally:
        (desk.home / "mute").unlink()


def test_an_upload_that_fails_keeps_what_was_said(page: Page) -> None:
    page.route("**/api/blobs?*", lambda route: route.abort(), times=1)
    hold(page)
    chip = page.locator(".chip", has_text="Voice message")
    expect(chip).to_contain_text("not uploaded")
    chip.get_by_role("button", name="Upload again").click()
    expect(chip).not_to_contain_text("not uploaded")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(spoken(page)).to_be_visible()


REFUSED = {
    "NotAllowedError": "Allow it in the browser's settings",
    "NotFoundError": "There is no microphone here. Connect one",
    "NotReadableError": "Close other programs that use it",
    "OddError": "The microphone cannot be opened: odd",
}


def test_without_a_microphone_the_next_step_is_said(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    script = """
      navigator.mediaDevices.getUserMedia = async () => {
        throw Object.assign(new Error("odd"), { name: window.refusal });
      };
    """
    with opened(talking, desk, signed, script) as page:
        for name, told in REFUSED.items():
            page.evaluate("name => { window.refusal = name }", name)
            mic(page).click()
            expect(page.get_by_role("alert").filter(has_text=told)).to_be_visible()
            expect(page.get_by_role("timer")).to_have_count(0)


def test_a_recorder_that_fails_closes_the_microphone(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    script = """
      const { mediaDevices } = navigator;
      const open = mediaDevices.getUserMedia.bind(mediaDevices);
      mediaDevices.getUserMedia = async wanted => (window.microphone = await open(wanted));
      window.AudioContext = class { constructor() { throw new Error("no meter here"); } };
    """
    with opened(talking, desk, signed, script) as page:
        mic(page).click()
        expect(page.get_by_role("alert").filter(has_text="no meter here")).to_be_visible()
        expect(page.get_by_role("timer")).to_have_count(0)
        comes_true(page, "microphone.getTracks().every(track => track.readyState === 'ended')")


def test_an_address_without_tls_says_what_to_do(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    script = "Object.defineProperty(navigator, 'mediaDevices', { value: undefined });"
    with opened(talking, desk, signed, script) as page:
        mic(page).click()
        expect(page.get_by_text("or set web.tls_cert")).to_be_visible()


def test_a_browser_that_cannot_record_has_no_button(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(talking, desk, signed, "delete window.MediaRecorder;") as page:
        asked: list[str] = []
        page.on("request", lambda made: asked.append(made.url))
        page.reload()
        expect(page.get_by_role("button", name="Attach files")).to_be_visible()
        page.wait_for_timeout(300)
        expect(mic(page)).to_have_count(0)
        assert not [each for each in asked if "hold-to-talk" in each]


def test_nothing_is_offered_that_is_not_set_up(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    speech = {"hear_problem": "Nothing hears here.", "say_problem": "Nothing speaks here."}
    with opened(talking, desk, signed) as page:
        me = page.request.get("/api/auth/me").json() | {"speech": speech}
        page.route("**/api/auth/me", lambda route: route.fulfill(json=me))
        page.reload()
        say(page, "hello")
        expect(answer(page, "You said: hello")).to_be_visible()
        expect(page.get_by_role("button", name="Copy this answer")).to_be_visible()
        expect(page.get_by_role("button", name="Read this answer aloud")).to_have_count(0)
        expect(mic(page)).to_have_count(0)
        page.goto("/#/settings/voice")
        expect(page.get_by_text("Nothing hears here.")).to_be_visible()
        expect(page.get_by_text("Nothing speaks here.")).to_be_visible()
        expect(page.get_by_role("radio", name="Always")).to_be_disabled()


CANNOT_TALK: dict[str, dict[str, object]] = {
    "You may read here, but neither write nor talk.": {"scopes": ["read"]},
    "This Deskhand does not tell whether it hears": {"speech": None},
    "This browser cannot record.": {},
}


@pytest.mark.parametrize("reason", CANNOT_TALK)
def test_the_settings_say_why_nobody_can_talk(
    talking: Browser, desk: Desk, signed: StorageState, reason: str
) -> None:
    script = "" if CANNOT_TALK[reason] else "delete window.MediaRecorder;"

    with opened(talking, desk, signed, script) as page:
        me = page.request.get("/api/auth/me").json() | CANNOT_TALK[reason]
        page.route("**/api/auth/me", lambda route: route.fulfill(json=me))
        page.goto("/#/settings/voice")
        page.reload()
        expect(page.get_by_text(reason).last).to_be_visible()
        expect(page.get_by_text("Hold the microphone")).to_have_count(0)


def test_what_is_set_up_meanwhile_is_offered(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    deaf = {"hear_problem": "Nothing hears here.", "say_problem": ""}
    hears = False
    asked = 0

    def answer_with(route: Route) -> None:
        nonlocal asked
        asked += 1
        found = route.fetch().json()
        route.fulfill(json=found if hears else {**found, "speech": deaf})

    with opened(talking, desk, signed) as page:
        page.route("**/api/auth/me", answer_with)
        page.reload()
        expect(page.get_by_role("button", name="Attach files")).to_be_visible()
        expect(mic(page)).to_have_count(0)
        for name in ("models", "usage", "setup"):
            page.goto(f"/#/settings/{name}")
        page.locator("#step-person").wait_for()
        assert asked == 1

        hears = True
        page.get_by_role("link", name="Deskhand, a new").click()
        expect(mic(page)).to_be_visible()
        assert asked == 2
        hears = False
        page.goto("/#/settings/voice")
        expect(page.get_by_text("Nothing hears here.")).to_be_visible()
        assert asked == 3


def test_nothing_serious_stands_in_the_way(
    talking: Browser, desk: Desk, signed: StorageState
) -> None:
    with opened(talking, desk, signed, bypass_csp=True) as page:
        found: dict[str, list[str]] = {}
        page.evaluate(AXE.read_text())

        def check(state: str) -> None:
            for look, (scheme, width, height) in LOOKS.items():
                page.set_viewport_size({"width": width, "height": height})
                page.evaluate("it => { document.documentElement.dataset.theme = it }", scheme)
                found[f"{state} {look}"] = page.evaluate(RUN)
                assert page.evaluate("document.documentElement.scrollWidth") <= width

        hold(page)
        expect(reading(page)).to_be_visible()
        check("reading")
        say(page, "hold it")
        answer(page, "The first half of it.").wait_for()
        page.set_viewport_size({"width": 420, "height": 844})
        mic(page).click()
        wait_for_tone(page)
        check("recording")
        edge = page.locator(".composer").bounding_box()
        send = page.get_by_role("button", name="Send", exact=True).bounding_box()
        assert edge and send and send["x"] + send["width"] <= edge["x"] + edge["width"] - 8
        assert not any(found.values()), found
