"""The page in Firefox, under its own policy: everything that people do in it, by mouse, keyboard
and screen reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from .conftest import Desk, desk_at
from .desk import SPOKEN
from .firefox import Firefox, Tab, start
from .test_answers import CHART, DIAGRAM, SVG, TABLE
from .test_components import LIST, WRONG
from .test_doing import PIXEL
from .test_frame import APP, ELEMENTS, KINDS, LEAVING, Packets, made
from .test_looks import ALL, AXE, RUN
from .test_reach import PANELS
from .test_safety import Elsewhere

pytestmark = pytest.mark.timeout(240)
FIELD = "Message to Deskhand"
TONE, HEARD = next(iter(SPOKEN.items()))
LOOKS = [
    (theme, width, height)
    for theme in ("light", "dark")
    for width, height in ((1280, 800), (390, 844))
]
FOCUSED = "document.activeElement.textContent"
UPPERMOST = """(() => {
  const top = document.querySelector(".scroll").getBoundingClientRect().top;
  const turns = [...document.querySelectorAll(".turn")];
  const turn = turns.find((each) => each.getBoundingClientRect().bottom > top);
  return Number(/\\d+/.exec(turn.querySelector(".bubble").textContent)[0]);
})()"""
"""The number of the question that is uppermost in sight."""
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One for this file, so that its counts are known."""
    home = tmp_path_factory.mktemp("desk")
    (home / "long").touch()
    found = desk_at(home)
    yield found
    found.kill()


@pytest.fixture(scope="module")
def downloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloaded")


@pytest.fixture(scope="module")
def firefox(downloaded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    downloads = {"browser.download.folderList": 2, "browser.download.dir": str(downloaded)}
    with start(tmp_path_factory.mktemp("firefox"), downloads) as started:
        yield started


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    with closing(Elsewhere()) as found:
        yield found


@pytest.fixture
def packets() -> Iterator[Packets]:
    with closing(Packets()) as found:
        yield found


@pytest.fixture
def tab(firefox: Firefox, desk: Desk) -> Iterator[Tab]:
    """A tab with a new conversation. Nothing may break in it, and nothing be refused by its
    policy."""
    opened = signed_in(firefox, desk)
    yield opened
    opened.close()
    assert opened.errors == []
    assert [url for url in opened.requests if not url.startswith((desk.url, "data:"))] == []


def signed_in(firefox: Firefox, desk: Desk) -> Tab:
    desk.another_login()
    tab = firefox.open()
    tab.goto(desk.login)
    tab.see("h1, h2", "What should we do")
    return tab


def say(tab: Tab, text: str) -> None:
    tab.fill("textbox", FIELD, text)
    tab.press("Enter")


def begin(tab: Tab, text: str) -> None:
    """A conversation that begins with these words."""
    tab.evaluate("void (location.hash = '#/')")
    tab.see("h1, h2", "What should we do")
    say(tab, text)
    tab.see(".answer", f"You said: {text}")


def choose(tab: Tab, row: str, *labels: str) -> None:
    """Open the menu of this conversation, and choose these, one after the other."""
    tab.click("button", "Conversation menu", inside=f".entry-row:has(a[title^='{row} ·'])")
    for label in labels:
        tab.click("menuitem", label, inside="[role=menu]")
    tab.see("[role=menu]", count=0)


def look(tab: Tab, name: str, rules: str) -> dict[str, list[str]]:
    """What the checker of accessibility finds in light, in dark and on a phone; nothing may stick
    out."""
    found: dict[str, list[str]] = {}
    tab.see(".none .spin", count=0)
    for theme, width, height in LOOKS:
        tab.resize(width, height)
        tab.evaluate(f"void (document.documentElement.dataset.theme = '{theme}')")
        assert tab.evaluate(WIDTH) <= width, f"{name} sticks out at {width} pixels"
        found[f"{name}, {theme}, {width}"] = tab.evaluate(f"({rules})()")
    return {state: each for state, each in found.items() if each}


def test_a_link_signs_in_and_an_answer_grows(tab: Tab, desk: Desk) -> None:
    assert "login" not in tab.evaluate("location.href"), "the secret must leave the address"
    say(tab, "How does Deskhand remember what we did?")
    tab.see(".answer", "The page is a fold of that log")
    tab.see(".answer", "An example", count=0)
    tab.see("button[aria-label=Stop]")
    desk.release()
    tab.see(".did")
    tab.see(".answer pre .hljs-keyword", "def")
    tab.see(".answer table td", "the truth")
    tab.reload()
    tab.see(".answer blockquote", "Nothing is lost")


def test_formulas_and_figures_are_drawn(tab: Tab) -> None:
    say(tab, "What is the area under the bell curve?")
    tab.see(".answer math", count=3)
    tab.wait_until("document.querySelector('.answer math mfrac, .answer math msup') !== null")
    say(tab, f"say Look:\n\n{DIAGRAM}\n\n{CHART}\n\n{SVG}\n\n{TABLE}")
    tab.see(".figure.drawn", count=3)


def test_an_approval_is_answered(tab: Tab) -> None:
    say(tab, "post it")
    tab.find("region", "Permission needed")
    tab.click("button", "Allow once")
    tab.see(".answer", "The letter: posted to Ada")
    tab.see(".ask.answered", "Allowed once · owner")
    say(tab, "choose")
    tab.click("button", "By the river")
    tab.see(".answer", "Then By the river.")


def open_file(tab: Tab, desk: Desk, name: str, text: str) -> None:
    """Show a file that an agent made, beside the conversation."""
    (desk.home / "agents" / "default" / "workspace" / name).write_text(text)
    say(tab, f"say [open it]({name})")
    tab.click("button", "open it")


def frame_of(tab: Tab) -> Tab:
    """The frame in which a page is shown."""
    tab.see("iframe.frame")
    (frame,) = tab.frames()
    return frame


def test_a_page_in_its_frame_works(tab: Tab, desk: Desk) -> None:
    open_file(tab, desk, "app.html", APP)
    frame = frame_of(tab)
    frame.click("button", "milk")
    frame.fill("textbox", "Words", "bread")
    frame.click("button", "Add")
    frame.see("li", "milk")
    frame.click("button", "bread")
    frame.see("li button", count=1)


def test_a_component_is_used(tab: Tab, desk: Desk) -> None:
    open_file(tab, desk, "list.tsx", LIST)
    frame = frame_of(tab)
    frame.see("h1", "Groceries")
    frame.fill("textbox", "New", "bread")
    frame.click("button", "Add")
    frame.click("checkbox", "milk")
    frame.see("p", "1 left")


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_component_is_said_with_its_place(
    tab: Tab, desk: Desk, what: str
) -> None:
    text, _, place = WRONG[what]
    line, *_ = place.split(",")  # which column of an expression is named, differs between browsers
    open_file(tab, desk, f"{what}.jsx", text)
    frame_of(tab).see("[role=alert]", line)
    tab.errors.clear()  # of the component


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_in_its_frame_reaches_nothing(
    firefox: Firefox, tab: Tab, desk: Desk, elsewhere: Elsewhere, packets: Packets, kind: str
) -> None:
    windows = len(firefox.send("browsingContext.getTree")["contexts"])
    page = ELEMENTS.replace("{url}", elsewhere.url).replace("{own}", desk.url)
    open_file(tab, desk, *made(kind, "attack", page.replace("{udp}", str(packets.port))))
    frame = frame_of(tab)
    frame.see("#log", "done")
    assert frame.evaluate("document.getElementById('log').textContent") == "done "
    assert (elsewhere.asked, packets.heard) == ([], [])
    assert len(firefox.send("browsingContext.getTree")["contexts"]) == windows
    assert tab.evaluate("document.title").endswith("Deskhand")
    tab.errors.clear()  # its policy has refused all of this


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", LEAVING)
def test_a_page_that_leaves_its_frame_is_stopped(
    tab: Tab, desk: Desk, elsewhere: Elsewhere, way: str, kind: str
) -> None:
    text = LEAVING[way].replace("{to}", elsewhere.url).replace("{own}", desk.url)
    open_file(tab, desk, *made(kind, f"leave-{way}", f"<p>here</p>{text}"))
    tab.see("[role=alert]", "tried to go to another page and was stopped")
    tab.see("iframe.frame", count=0)
    assert elsewhere.asked == []
    assert tab.evaluate("location.href").startswith(desk.url)
    tab.errors.clear()


def test_what_is_done_in_the_list(tab: Tab) -> None:
    begin(tab, "about the taxes")
    choose(tab, "about the taxes", "Pin to the top")
    tab.find("link", "about the taxes", inside="section[aria-label=Pinned]")
    choose(tab, "about the taxes", "Unpin")
    choose(tab, "about the taxes", "Rename")
    tab.fill("textbox", "Title", "the taxes", inside="dialog")
    tab.press("Enter")
    tab.see("h1", "the taxes")
    choose(tab, "the taxes", "Move to folder", "New folder …")
    tab.fill("textbox", "Name", "Money", inside="dialog")
    tab.press("Enter")
    tab.click("button", "Money 1")
    tab.find("link", "the taxes", inside="section[aria-label=Folders]")
    choose(tab, "the taxes", "Move to archive Comes back when somebody writes in it")
    tab.click("button", "Archive 1")
    tab.find("link", "the taxes")
    choose(tab, "the taxes", "Erase", "Yes, erase it for good")
    tab.see("h1, h2", "What should we do")


def test_what_is_chosen_beside_the_message(tab: Tab) -> None:
    for picker, choice, after in (
        ("Effort: Default", "High For hard tasks; slower", "Effort: High"),
        (
            "Permissions: Usual permissions",
            "Ask before each step Every tool that changes something waits for you",
            "Permissions: Ask before each step",
        ),
    ):
        tab.click("button", picker)
        tab.click("menuitemradio", choice)
        tab.find("button", after)
    tab.click("button", "Model: Default model")
    tab.see("[role=menuitemradio][aria-checked=true]", "scripted/desk")
    tab.press("Escape")
    tab.see("[role=menu]", count=0)


def test_commands_and_files_are_completed(tab: Tab) -> None:
    tab.fill("textbox", FIELD, "/st")
    tab.see("[role=option]", count=3)
    tab.press("ArrowDown")
    tab.press("ArrowDown")
    tab.press("Tab")
    assert tab.evaluate("composer.value") == "/status "
    tab.press("Enter")
    tab.see(".command-run", "Nothing is running.")
    tab.type("read @not")
    tab.see("[role=option]", "notes.txt")
    tab.press("Enter")
    assert tab.evaluate("composer.value") == "read @notes.txt "


def test_a_message_is_edited_and_its_versions_are_paged(tab: Tab) -> None:
    begin(tab, "first")
    tab.click("button", "Edit and send again")
    tab.fill("textbox", "Your message", "second")
    tab.press("Enter")
    tab.see(".answer", "You said: second")
    tab.see(".answer", "You said: first", count=0)
    tab.see("[role=group][aria-label=Versions]", "2/2")
    tab.click("button", "The version before")
    tab.see(".answer", "You said: first")
    tab.click("button", "The version after")
    tab.see(".answer", "You said: second")


def test_search_and_inbox(tab: Tab) -> None:
    begin(tab, "where the elk sleeps")
    tab.fill("searchbox", "Search everything that was said", "elk")
    tab.see(".side .entry", "where the elk sleeps")
    tab.press("Escape")
    say(tab, "fail with this")
    tab.see(".note.bad", "the key is wrong")
    say(tab, "post it")
    tab.see(".ask.open")
    tab.evaluate("void (location.hash = '#/inbox')")
    tab.see("li", "the key is wrong")
    tab.wait_until("document.title.startsWith('(')")
    tab.click("button", "Mark all as read")
    tab.see("h2, h3", "Earlier")


def test_every_page_of_the_settings(tab: Tab) -> None:
    tab.evaluate(f"(() => {{ {AXE.read_text()} }})()")
    found: dict[str, list[str]] = {}
    for panel in PANELS:
        tab.evaluate(f"void (location.hash = '#/settings/{panel}')")
        tab.see(".page .section, .page .rows, .page .none, .page .steps")
        found |= look(tab, panel, ALL)
    assert found == {}


def test_nothing_stands_in_the_way(tab: Tab, desk: Desk) -> None:
    tab.evaluate(f"(() => {{ {AXE.read_text()} }})()")
    found = look(tab, "empty", RUN)
    say(tab, "What is the area under the bell curve?")
    tab.see(".answer math", count=3)
    tab.see(".did")
    found |= look(tab, "formatted", RUN)
    say(tab, "post it")
    tab.see(".ask.open")
    found |= look(tab, "approval", RUN)
    tab.fill("textbox", FIELD, "/st")
    tab.see("[role=listbox]")
    found |= look(tab, "completion", RUN)
    assert found == {}


def test_files_are_attached(tab: Tab, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("milk\n")
    (tmp_path / "dot.png").write_bytes(PIXEL)
    tab.attach(".composer input[type=file]", [tmp_path / "list.txt", tmp_path / "dot.png"])
    tab.see(".composer .chip", count=2)
    say(tab, "see these")
    tab.see(".answer", "You said: see these")
    tab.see(".bubble .file-card", "list.txt")
    tab.wait_until("document.querySelector('.bubble img')?.naturalWidth === 1")


def test_a_long_conversation_does_not_jump(tab: Tab, desk: Desk) -> None:
    tab.goto(f"{desk.url}/#/c/{desk.long}")
    tab.see(".answer", "Answer 624")
    seen = [tab.evaluate(UPPERMOST)]
    while seen[-1] > 560:
        before = tab.evaluate("document.querySelector('.scroll').scrollTop")
        tab.scroll(".scroll", -1500)
        tab.wait_until(f"document.querySelector('.scroll').scrollTop !== {before}")
        seen.append(tab.evaluate(UPPERMOST))
    assert all(0 <= a - b <= 25 for a, b in pairwise(seen)), f"nothing jumps: {seen}"
    tab.evaluate("document.querySelector('.scroll').focus()")
    tab.press("Home")
    tab.see(".bubble", "Question 0:")
    assert tab.evaluate(UPPERMOST) == 0
    tab.press("End")
    tab.see(".answer", "Answer 624")


def holds(folder: Path, text: str) -> bool:
    return any(text in one.read_text() for one in folder.iterdir())


def test_files_are_shown_and_downloaded(tab: Tab, downloaded: Path) -> None:
    begin(tab, "hello")
    tab.click("button", "Files")
    tab.click("button", "notes.txt 25 B")
    tab.see("aside pre, aside code", "Milk, bread, a new tent.")
    tab.click("link", "Download notes.txt")
    tab.wait_for(lambda: holds(downloaded, "Milk, bread, a new tent."))
    choose(tab, "hello", "Save as a file", "Markdown To read and to edit")
    tab.wait_for(lambda: holds(downloaded, "You said: hello"))
    tab.click("button", "Copy this answer")
    tab.see("[role=status]", "Copied")


def test_without_a_microphone_the_next_step_is_said(tab: Tab) -> None:
    tab.click("button", "Hold to talk")
    tab.see("[role=alert]", "There is no microphone here. Connect one")


def test_what_is_spoken_is_heard_and_answered_aloud(desk: Desk, tmp_path: Path) -> None:
    """The microphone is a tone of Firefox's own, which the desk understands by its pitch."""
    tone = {
        "media.navigator.streams.fake": True,
        "media.navigator.permission.disabled": True,
        "media.navigator.audio.fake_frequency": TONE,
    }
    with start(tmp_path, tone) as firefox:
        tab = signed_in(firefox, desk)
        tab.click("button", "Hold to talk")
        tab.see("[role=timer]")
        tab.wait_until("document.querySelector('[role=timer]').textContent.includes('0:02')")
        tab.click("button", "Send")
        tab.see(".bubble", HEARD)
        tab.see(".answer", f"You said: {HEARD}")
        tab.find("button", "Stop reading")
        tab.press("Escape")
        tab.find("button", "Read this answer aloud")
        assert tab.errors == []


def test_everything_by_keyboard(tab: Tab) -> None:
    tab.evaluate("document.querySelector('.brand').focus()")
    tab.press("Shift+Tab")
    assert tab.evaluate(FOCUSED) == "Go to the message field"
    tab.press("Enter")
    tab.wait_until("document.activeElement.id === 'composer'")
    tab.type("two")
    tab.press("Shift+Enter")
    tab.type("lines")
    tab.press("Enter")
    tab.see(".answer", "You said: two")
    tab.type("post it")
    tab.press("Enter")
    tab.see(".ask.open")
    tab.press("Alt+a")
    assert "Allow once" in tab.evaluate(FOCUSED)
    tab.press("y")
    tab.see(".answer", "The letter: posted to Ada")
    tab.press("Control+k")
    tab.find("dialog", "Commands")
    tab.type("dark")
    tab.press("Enter")
    tab.wait_until("document.documentElement.dataset.theme === 'dark'")
    tab.press("Control+/")
    tab.wait_until("document.activeElement.id === 'search'")
    tab.type("two")
    tab.see(".side h3", "In conversations")
    tab.press("ArrowDown")
    tab.wait_until(f"{FOCUSED}.includes('two')")
    tab.press("Enter")
    tab.see(".answer", "You said: two")
    tab.find("button", "Files")
    tab.evaluate("document.querySelector('[aria-label=Files]').focus()")
    tab.press("Enter")
    tab.find("complementary", "Files")
    tab.press("Tab")
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    tab.press("Escape")
    tab.see("aside[aria-label=Files]", count=0)


def test_a_killed_server_is_survived(firefox: Firefox, tmp_path: Path) -> None:
    desk = desk_at(tmp_path / "desk")
    try:
        tab = signed_in(firefox, desk)
        say(tab, "before")
        tab.see(".answer", "You said: before")
        tab.see("html[data-kept]")
        desk.kill()
        tab.see("[role=status], [role=alert]", "Deskhand is not reached.")
        say(tab, "said while it was away")
        tab.see(".waiting", "Not sent yet")
        tab.reload()
        tab.see(".answer", "You said: before")
        tab.see(".waiting", "said while it was away")
        desk.start()
        tab.see(".answer", "You said: said while it was away")
        tab.see(".waiting", count=0)
        tab.close()
    finally:
        desk.kill()
