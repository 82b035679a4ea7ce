"""The frame around a conversation: what it says, what it counts, and that nothing sticks out of
it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, Route, StorageState, ViewportSize, expect

from .conftest import Desk, answer, say
from .used import make_usage

pytestmark = pytest.mark.timeout(120)
PHONE: ViewportSize = {"width": 390, "height": 844}


def test_a_command_may_come_first(page: Page) -> None:
    for said, shown in (
        ("/help", "/status"),
        ("/status", "Nothing is running."),
        ("/nonsense", "nonsense"),
    ):
        page.goto("/#/")
        page.get_by_role("heading", name="What should we do").wait_for()
        say(page, said)
        expect(page.locator(".command-run")).to_contain_text(shown)
        expect(page.get_by_label("Message to Deskhand")).to_be_visible()
        expect(page.get_by_text("cannot be shown")).to_have_count(0)
    say(page, "and now this")
    expect(answer(page, "You said: and now this")).to_be_visible()
    page.reload()
    expect(answer(page, "You said: and now this")).to_be_visible()


def test_what_waits_is_counted_and_slash_searches(page: Page) -> None:
    conversations = page.get_by_role("navigation", name="Conversations")
    before = len(page.request.get("/api/approvals").json())  # others share this Deskhand
    for _ in range(2):
        page.goto("/#/")
        page.get_by_role("heading", name="What should we do").wait_for()
        say(page, "post it")
        page.get_by_role("region", name="Permission needed").wait_for()
    settings = conversations.get_by_role("link", name="Settings")
    waiting = page.get_by_label("Waiting for you")
    expect(settings).to_contain_text(f"{before + 2} waiting")
    links = waiting.get_by_role("link").count()
    assert links >= 2
    field = page.get_by_label("Message to Deskhand")
    search = page.get_by_label("Search everything")
    field.focus()
    expect(page.locator(".search kbd")).to_have_text("Ctrl /")
    page.keyboard.press("Control+/")
    expect(search).to_be_focused()
    expect(field).to_have_value("")
    page.goto("/#/settings/approvals")
    expect(
        page.get_by_role("navigation", name="Settings").get_by_role("link", name="Approvals")
    ).to_contain_text(f"{before + 2} waiting")
    for left in (1, 0):
        page.get_by_role("button", name="Do not allow").last.click()
        expect(waiting.get_by_role("link")).to_have_count(links - 2 + left)
    expect(page.locator(".side-foot .tag", has_text="waiting")).to_have_count(int(before > 0))


def test_the_name_of_the_owner_stands_in_the_corner(page: Page) -> None:
    corner = page.locator(".who")
    expect(corner).to_contain_text("owner")
    page.goto("/#/settings/setup")
    page.locator("#step-person").wait_for()
    headers = {"X-Deskhand": "1", "Origin": page.evaluate("location.origin")}
    assert page.request.post("/api/setup/person", data={"name": "Robin"}, headers=headers).ok
    page.goto("/#/")
    expect(corner).to_contain_text("Robin")
    assert page.request.post("/api/setup/person", data={"name": "owner"}, headers=headers).ok


def test_nothing_sticks_out_on_a_phone(browser: Browser, desk: Desk, signed: StorageState) -> None:
    context = browser.new_context(
        storage_state=signed, base_url=desk.url, viewport=PHONE, has_touch=True
    )
    try:
        page = context.new_page()
        page.goto("/")
        say(
            page,
            "hold it, with a line that is long enough to be cut where the room for it is narrow",
        )
        page.get_by_role("button", name="Send").click()
        answer(page, "The first half of it.").wait_for()
        for last in (".talk-button", ".send"):  # the second takes the place of the first
            composer, send = (page.locator(each).bounding_box() for each in (".composer", last))
            stop = page.get_by_role("button", name="Stop").bounding_box()
            assert composer and send and stop
            assert send["x"] + send["width"] <= composer["x"] + composer["width"] - 4
            assert stop["x"] + stop["width"] <= send["x"]
            page.get_by_label("Message to Deskhand").fill("more")
        page.get_by_label("Message to Deskhand").fill("")
        desk.release()
        page.locator(".did").wait_for()
        page.route("**/api/usage?*", lambda route: route.fulfill(json=make_usage()))
        page.goto("/#/settings/usage")
        expect(page.locator(".figures")).to_contain_text("$3.82")
        expect(page.locator(".figures")).to_contain_text("plus 12 calls of unknown price")
        expect(page.get_by_text("The price of home/made is not known")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate(
            "[...document.querySelectorAll('.figures div')].every((c) => c.scrollWidth <= "
            "c.clientWidth)"
        )
        page.goto("/#/")
        page.get_by_role("button", name="Options").click()
        page.get_by_role("button", name="Set up a new conversation").click()
        page.get_by_role("switch", name="Plan first").wait_for()
        expect(page.get_by_role("switch", name="Teams")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.get_by_role("button", name="Close the panel").click()
        say(page, "Invite Ada to the river, please")
        page.get_by_role("button", name="Send").click()
        page.get_by_role("region", name="Permission needed").wait_for()
        page.goto("/#/settings/health")
        page.locator(".pages .sr").wait_for(
            state="attached"
        )  # what the count beside Approvals says aloud
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    finally:
        context.close()


CLOSE_AND_LOOK = """async () => {
  document.querySelector(".panel-head button").click();
  await new Promise((done) => setTimeout(done));
  return document.activeElement.getAttribute("aria-label");
}"""


def test_a_panel_gives_the_focus_back_before_the_next_key(page: Page) -> None:
    page.get_by_role("button", name="Options of this conversation").click()
    page.get_by_role("complementary", name="This conversation").wait_for()
    assert page.evaluate(CLOSE_AND_LOOK) == "Options of this conversation"


def test_a_phone_shows_which_page_of_the_settings_is_open(page: Page) -> None:
    page.set_viewport_size(PHONE)
    tabs = page.get_by_role("navigation", name="Settings")
    for name, place in (("Configuration", "settings"), ("Set up", "setup")):
        page.goto(f"/#/settings/{place}")
        expect(tabs.get_by_role("link", name=name)).to_be_in_viewport(ratio=1)


def test_the_slider_and_hits_show_their_words_on_a_phone(page: Page) -> None:
    text = "a question that goes on for so long that one line of a phone does not hold it"
    say(page, text)
    expect(answer(page, f"You said: {text}")).to_be_visible()
    page.get_by_role("switch", name="Developer view").click()
    page.get_by_role("button", name="Slider over").click()
    row = page.locator(".panel .span summary .cut", has_text=text).first
    row.wait_for()
    page.set_viewport_size(PHONE)
    assert row.evaluate(
        "e => e.scrollWidth <= e.clientWidth && e.getBoundingClientRect().right <= innerWidth"
    )
    page.get_by_role("button", name="Close the panel").click()
    page.get_by_role("button", name="Show the conversations").click()
    page.get_by_label("Search everything").fill("phone does not hold")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_role("navigation", name="Conversations").get_by_role(
        "link", name="Settings"
    ).focus()  # it is reached
    expect(page.get_by_role("link", name="Settings")).to_be_focused()
    page.set_viewport_size(PHONE)
    title = page.locator(".entry.tall .cut").first
    title.wait_for()
    assert title.evaluate("e => e.scrollWidth <= e.clientWidth")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_role("switch", name="Developer view").click()


SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries())
      if (!hadRecentInput) window.shifted += value;
  }).observe({ type: "layout-shift" });
}"""
FIRST_PAGE_SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries())
      if (sources.some(({ node }) => node?.closest?.(".empty"))) window.shifted += value;
  }).observe({ type: "layout-shift", buffered: true });
}"""


def test_nothing_moves_when_the_rest_of_the_first_page_comes(page: Page) -> None:
    waiting: list[Route] = []
    page.route("**/api/setup", lambda route: waiting.append(route))
    with page.expect_request("**/api/setup"):
        page.reload()
    page.get_by_role("navigation", name="Conversations").get_by_role("link").first.wait_for()
    page.wait_for_function("document.fonts.status === 'loaded'")
    page.wait_for_timeout(300)  # what is there without it is drawn
    page.evaluate(FIRST_PAGE_SHIFTS)
    waiting.pop().continue_()
    page.get_by_role("heading", name="What should we do?").wait_for()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))")
    assert page.evaluate("window.shifted") == 0


def test_a_panel_leaves_room_for_the_conversation(page: Page) -> None:
    """Where there is none for both, the list of conversations is folded away meanwhile."""
    say(page, "hello")
    answer(page, "You said: hello").wait_for()
    conversations = page.get_by_role("navigation", name="Conversations")
    page.evaluate(SHIFTS)
    for width, is_folded in ((1440, False), (1221, False), (1220, True), (1024, True), (768, True)):
        page.set_viewport_size({"width": width, "height": 768})
        expect(conversations).to_be_visible()
        page.wait_for_timeout(100)  # what the size of the window moves is reported by then
        page.evaluate("window.shifted = 0")
        page.get_by_role("button", name="Files", exact=True).click()
        panel = page.get_by_role("complementary", name="Files")
        panel.get_by_text("notes.txt").wait_for()
        expect(conversations).to_be_visible(visible=not is_folded)
        beside, talk = panel.bounding_box(), page.get_by_role("main").bounding_box()
        assert beside and talk
        assert talk["width"] >= 480
        assert talk["x"] + talk["width"] <= beside["x"]
        assert beside["x"] + beside["width"] <= width
        page.wait_for_timeout(100)
        assert page.evaluate("window.shifted") < 0.05
        page.keyboard.press("Escape")
        expect(panel).to_have_count(0)
        expect(page.get_by_role("button", name="Files", exact=True)).to_be_focused()


def test_the_folded_list_comes_over_an_open_panel(page: Page) -> None:
    page.set_viewport_size({"width": 1024, "height": 768})
    say(page, "where we started")
    answer(page, "You said: where we started").wait_for()
    page.get_by_role("button", name="Files", exact=True).click()
    page.get_by_role("button", name="Show the conversations").click()
    conversations = page.get_by_role("navigation", name="Conversations")
    expect(conversations).to_be_visible()
    page.keyboard.press("Escape")
    expect(conversations).to_be_hidden()
    expect(page.get_by_role("complementary", name="Files")).to_be_visible()

    page.get_by_role("button", name="Show the conversations").click()
    conversations.get_by_role("button", name="New conversation").click()
    expect(conversations).to_be_hidden()
    expect(page.get_by_role("heading", name="What should we do")).to_be_visible()
    expect(page.get_by_role("complementary", name="Files")).to_be_visible()
    page.get_by_role("button", name="Close the panel").click()
    expect(conversations).to_be_visible()
    expect(page.locator(".veil")).to_have_count(0)
