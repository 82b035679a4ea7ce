"""The page by keyboard alone, on a phone, without its server, and in its panels."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import (
    APIResponse,
    Browser,
    Page,
    Route,
    StorageState,
    ViewportSize,
    expect,
)

from .conftest import Desk, answer, comes_true, desk_at, say, state_of, watched

pytestmark = pytest.mark.timeout(120)
PHONE: ViewportSize = {"width": 390, "height": 844}
QR = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9"/></svg>'


def test_everything_by_keyboard(page: Page, desk: Desk) -> None:
    focused = page.locator(":focus")
    page.get_by_role("link", name="Deskhand, a new").focus()
    page.keyboard.press("Shift+Tab")
    expect(focused).to_have_text("Go to the message field")
    expect(focused).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Message to Deskhand")).to_be_focused()
    page.keyboard.type("two")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("lines")
    page.keyboard.press("Enter")
    expect(page.locator(".bubble")).to_have_text(re.compile("two\\s+lines"))
    expect(answer(page, "You said: two")).to_be_visible()
    page.keyboard.type("post it")
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Permission needed").wait_for()
    page.keyboard.press("Alt+a")
    expect(focused).to_contain_text("Allow once")
    page.keyboard.press("y")
    expect(answer(page, "The letter: posted to Ada")).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Commands")).to_be_visible()
    page.keyboard.type("dark")
    page.keyboard.press("Enter")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    expect(page.get_by_label("Search everything")).to_be_focused()
    page.keyboard.type("two lines")
    conversations = page.get_by_role("navigation", name="Conversations")
    expect(conversations.get_by_role("heading", name="In conversations")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(focused).to_contain_text("two lines")
    page.keyboard.press("Enter")
    expect(answer(page, "You said: two")).to_be_visible()


def test_light_and_dark_follow_the_system_until_they_are_chosen(page: Page) -> None:
    html = page.locator("html")
    page.emulate_media(color_scheme="dark")
    expect(html).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="light")
    expect(html).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Use dark colours").click()
    page.emulate_media(color_scheme="dark")
    page.emulate_media(color_scheme="light")
    expect(html).to_have_attribute("data-theme", "dark")


def test_the_palette_begins_with_what_begins_so(page: Page) -> None:
    page.keyboard.press("Control+k")
    found = page.get_by_role("dialog", name="Commands")
    found.wait_for()
    page.keyboard.type("se")
    expect(found.get_by_role("option").first).to_have_text("Settings: Set up")


def test_who_presses_enter_before_anything_is_found_does_not_lose_it(page: Page) -> None:
    say(page, "the tent by the lake")
    answer(page, "You said: the tent by the lake").wait_for()
    page.get_by_role("link", name="New conversation").first.click()
    held: list[Route] = []
    page.route("**/api/sessions?*title=*", lambda route: held.append(route))
    page.keyboard.press("Control+k")
    found = page.get_by_role("dialog", name="Commands")
    found.wait_for()
    with page.expect_request("**/api/sessions?*title=*"):
        page.keyboard.type("tent by")
    page.keyboard.press("Enter")
    expect(found.get_by_role("option")).to_have_text("One moment …")
    for route in held:
        route.continue_()
    expect(found).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text("the tent by the lake")


def test_focus_is_seen_and_escape_closes_what_is_on_top(page: Page, desk: Desk) -> None:
    say(page, "hold it")
    answer(page, "The first half of it.").wait_for()
    page.get_by_role("button", name="Files", exact=True).focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Files", exact=True)
    expect(panel).to_be_focused()
    page.keyboard.press("Tab")
    outline = page.locator(":focus").evaluate("e => getComputedStyle(e).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.get_by_role("button", name="Files", exact=True)).to_be_focused()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()


def test_on_a_phone(browser: Browser, desk: Desk, signed: StorageState) -> None:
    context = browser.new_context(
        storage_state=signed, base_url=desk.url, viewport=PHONE, has_touch=True, is_mobile=True
    )
    try:
        page = context.new_page()
        broken = watched(page)
        page.goto("/")
        page.get_by_label("Message to Deskhand").fill("markdown")
        page.get_by_role("button", name="Send").tap()
        expect(page.get_by_role("table")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390, "nothing sticks out"
        composer = page.locator(".composer").bounding_box()
        assert composer is not None and composer["y"] + composer["height"] <= 844
        conversations = page.get_by_role("navigation", name="Conversations")
        expect(conversations).to_have_count(0)
        page.get_by_role("button", name="Show the conversations").tap()
        expect(conversations.get_by_role("link", name="markdown").first).to_be_visible()
        conversations.get_by_role("link", name="Settings").tap()
        expect(conversations).to_have_count(0)
        expect(page.get_by_role("link", name="Set up")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert broken == []
    finally:
        context.close()


def until_answered_elsewhere(browser: Browser, desk: Desk, url: str, text: str) -> None:
    """Start it, and look at the same conversation in another browser."""
    desk.start()
    with browser.new_context(storage_state=state_of(browser, desk), base_url=desk.url) as beside:
        page = beside.new_page()
        page.goto(url)
        expect(answer(page, text)).to_be_visible()


def test_a_killed_server_is_survived_in_the_middle_of_an_answer(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    desk = desk_at(tmp_path_factory.mktemp("killed"))
    context = browser.new_context(storage_state=state_of(browser, desk), base_url=desk.url)
    try:
        page = context.new_page()
        page.goto("/")
        say(page, "before")
        expect(answer(page, "You said: before")).to_be_visible()
        page.locator("html[data-kept]").wait_for()
        last = page.evaluate("async () => (await import('/js/talk.js')).talk.value.n")
        page.locator(f"html[data-remembered='{last}']").wait_for()
        say(page, "hold it")
        answer(page, "The first half of it.").wait_for()
        listed = page.get_by_role("navigation", name="Conversations").get_by_role(
            "link", name="before"
        )
        expect(
            listed
        ).to_be_visible()  # the page asks for its list a moment after each message, and keeps it
        desk.kill()
        banner = page.get_by_text("Deskhand is not reached.")
        expect(banner).to_be_visible()
        expect(answer(page, "The first half of it.")).to_be_visible()
        say(page, "said while it was away")
        expect(page.locator(".waiting")).to_contain_text("Not sent yet")
        page.reload()
        expect(answer(page, "You said: before")).to_be_visible()
        expect(banner).to_be_visible()
        expect(page.locator(".waiting")).to_contain_text("said while it was away")
        expect(listed).to_be_visible()
        context.set_offline(
            True
        )  # else what was said meanwhile may get into the turn that goes on, and be answered there
        desk.release()
        until_answered_elsewhere(browser, desk, page.url, "The second half of it.")
        context.set_offline(False)  # the page finds it by itself
        expect(answer(page, "The second half of it.")).to_be_visible()
        expect(answer(page, "You said: said while it was away")).to_be_visible()
        expect(banner).to_have_count(0)
        expect(page.locator(".bubble")).to_have_text(
            ["before", "hold it", "said while it was away"]
        )
        expect(page.locator(".answer")).to_have_count(3)
    finally:
        context.close()
        desk.kill()


def test_what_is_in_the_log_is_sent_before_the_server_has_said_so(routed_page: Page) -> None:
    """The answer to the sending comes late: nothing is shown twice meanwhile."""
    held: list[Route] = []
    page = routed_page
    say(page, "first")
    expect(answer(page, "You said: first")).to_be_visible()
    page.route("**/messages", lambda route: held.append(route))
    say(page, "second")
    expect(page.locator(".waiting")).to_have_count(1)
    sent = held[0].fetch()
    expect(answer(page, "You said: second")).to_be_visible()
    expect(page.locator(".waiting")).to_have_count(0)
    expect(page.locator(".bubble")).to_have_text(["first", "second"])
    held[0].fulfill(response=sent)
    page.wait_for_timeout(100)
    expect(page.locator(".bubble")).to_have_text(["first", "second"])


def test_a_message_that_was_sent_twice_is_taken_once(routed_page: Page) -> None:
    """The answer to the first try is lost on its way; the page sends it again, under the same
    id."""
    page = routed_page
    lost: list[str] = []

    def lose(route: object) -> None:
        body = route.request.post_data  # type: ignore[attr-defined]
        if not lost:
            route.fetch()  # type: ignore[attr-defined]
            route.abort()  # type: ignore[attr-defined]
        else:
            route.continue_()  # type: ignore[attr-defined]
        lost.append(body)

    page.route("**/messages", lose)
    say(page, "only once")
    expect(answer(page, "You said: only once")).to_be_visible()
    assert len(lost) == 2
    assert lost[0] == lost[1]
    expect(page.locator(".bubble")).to_have_count(1)


def test_simple_and_developer_view(page: Page) -> None:
    say(page, "work")
    page.locator(".did").wait_for()
    expect(page.get_by_role("button", name="Trace")).to_have_count(0)
    page.locator(".tool-head").nth(1).click()
    expect(page.get_by_role("heading", name="Arguments")).to_have_count(0)
    page.get_by_role("switch", name="Developer view").click()
    expect(page.get_by_role("heading", name="Arguments")).to_be_visible()
    page.get_by_role("button", name="Trace").click()
    trace = page.get_by_role("complementary", name="Trace")
    expect(trace.get_by_text("write_file")).to_be_visible()
    trace.get_by_role("tab", name="Events").click()
    trace.get_by_text("model_replied").first.click()
    expect(trace.get_by_text('"type": "model_replied"')).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Trace")).to_be_visible()
    page.get_by_role("switch", name="Developer view").click()
    expect(page.get_by_role("button", name="Trace")).to_have_count(0)


def test_the_slider_shows_any_moment(page: Page) -> None:
    page.get_by_role("switch", name="Developer view").click()
    say(page, "work")
    page.locator(".did").wait_for()
    say(page, "post it")
    page.get_by_role("button", name="Do not allow").click()
    expect(page.locator(".did")).to_have_count(2)
    page.get_by_role("button", name="Slider over").click()
    panel = page.get_by_role("complementary", name="Slider")
    expect(panel.get_by_text("The letter:").first).to_be_visible()
    panel.get_by_role("tab", name="Decisions").click()
    expect(panel.get_by_text("denied")).to_be_visible()
    panel.get_by_role("tab", name="Context").click()
    panel.get_by_role("button", name="Turn before").click()
    expect(panel.get_by_text("The letter:")).to_have_count(0)
    expect(panel.get_by_text("The list is in").first).to_be_visible()
    panel.get_by_role("slider").focus()
    page.keyboard.press("ArrowLeft")
    expect(panel.get_by_text("In the middle of a turn")).to_be_visible()
    expect(panel.get_by_role("button", name="Undo to here")).to_be_disabled()
    page.keyboard.press("ArrowRight")
    panel.get_by_role("button", name="Undo to here").click()
    expect(page.get_by_role("button", name="1 turn undone")).to_be_visible()


def test_options_files_and_the_settings(page: Page) -> None:
    page.get_by_role("button", name="Options").click()
    page.get_by_role("button", name="Set up a new conversation").click()
    panel = page.get_by_role("complementary", name="This conversation")
    panel.get_by_role("switch", name="Ask before each tool").click()
    expect(panel.get_by_role("switch", name="Ask before each tool")).to_have_attribute(
        "aria-checked", "true"
    )
    say(page, "tool please")
    expect(page.get_by_role("region", name="Permission needed")).to_contain_text("echo_back")
    page.get_by_role("button", name="Allow once").click()
    page.locator(".did").wait_for()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("A better name")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="A better name")).to_be_visible()
    entry = page.get_by_role("navigation", name="Conversations").get_by_role(
        "link", name="A better name"
    )
    expect(entry).to_be_visible()
    page.get_by_role("button", name="Files", exact=True).click()
    files = page.get_by_role("complementary", name="Files", exact=True)
    files.get_by_role("button", name="notes.txt").click()
    shown = page.get_by_role("complementary", name="Preview of")
    expect(shown.get_by_text("Milk, bread, a new tent.")).to_be_visible()
    with page.expect_download() as download:
        shown.get_by_role("link", name="Download").click()
    assert download.value.path().read_text() == "Milk, bread, a new tent.\n"
    shown.get_by_role("button", name="Close the preview").click()
    files.get_by_label("Files to upload").set_input_files(
        {"name": "brought.txt", "mimeType": "text/plain", "buffer": b"hello"}
    )
    files.get_by_role("button", name="brought.txt").click()
    expect(shown.get_by_text("hello", exact=True)).to_be_visible()


def test_models_health_and_activity(page: Page) -> None:
    say(page, "work")
    page.locator(".did").wait_for()
    page.goto("/#/settings/activity")
    made = page.get_by_role("listitem").filter(has_text="packing.md")
    expect(made.first).to_contain_text("write_file")
    page.get_by_role("navigation", name="Settings").get_by_role(
        "link", name="Models and skills"
    ).click()
    expect(page.get_by_role("listitem").filter(has_text="scripted/desk")).to_contain_text(
        "answers now"
    )
    expect(page.get_by_role("listitem").filter(has_text="deskhand-help").first).to_be_visible()
    page.get_by_role("navigation", name="Settings").get_by_role("link", name="Health").click()
    expect(
        page.get_by_role("status").get_by_text(re.compile(r"^\d+ things? needs? you[.]"))
    ).to_be_visible()  # the scripted model is unknown to the checks
    page.get_by_text(re.compile(r"\d+ parts, one by one")).click()
    expect(page.get_by_role("listitem").filter(has_text="store").first).to_contain_text("ok")


def test_a_setting_says_what_it_does_and_what_holds_without_it(page: Page) -> None:
    page.goto("/#/settings/settings")
    page.get_by_label("Find a setting").fill("model calls in one turn")
    row = page.get_by_role("listitem").filter(has_text="defaults.steps")
    expect(row).to_contain_text("The most model calls in one turn.")
    expect(row).to_contain_text("Default: 50")
    field = row.get_by_label("defaults.steps", exact=True)
    field.fill("60")
    row.get_by_role("button", name="Save").click()
    expect(page.locator(".as-is")).to_contain_text('"steps": 60')
    field.fill("")
    row.get_by_role("button", name="Save").click()
    expect(page.locator(".as-is")).not_to_contain_text('"steps": 60')
    page.get_by_label("Find a setting").fill("no such thing")
    expect(page.get_by_text("No matching setting.")).to_be_visible()


def test_what_was_said_is_found_and_shown_in_its_place(page: Page, desk: Desk) -> None:
    search = page.get_by_label("Search everything")
    search.fill("Question 17")
    conversations = page.get_by_role("navigation", name="Conversations")
    hit = (
        conversations.get_by_role("link")
        .filter(has=page.locator("mark"))
        .filter(has_text="Question 17:")
    )
    hit.click()
    expect(page.locator(".bubble").get_by_text("Question 17:")).to_be_in_viewport()
    search.fill("nobody ever wrote this")
    expect(conversations.get_by_text("No results for")).to_be_visible()


def test_standing_answers_are_listed_and_taken_back(page: Page) -> None:
    say(page, "post it")
    page.get_by_role("button", name="Always allow exactly this").click()
    expect(page.locator(".did")).to_be_visible()
    say(page, "post it again")
    expect(page.locator(".did")).to_have_count(2)
    expect(page.locator(".ask.answered")).to_have_count(1)
    say(page, "choose")
    page.get_by_role("region", name="A question for you").wait_for()
    page.goto("/#/settings/approvals")
    page.get_by_role("listitem").filter(has_text="Where to?").get_by_role(
        "button", name="By the river"
    ).first.click()
    # What other tests left waiting names the same tool.
    standing = (
        page.get_by_role("listitem").filter(has_text="post_letter").filter(has_text="owner said so")
    )
    expect(standing).to_be_visible()
    standing.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Yes, ask again").click()
    expect(standing).to_have_count(0)
    page.goto("/#/settings/usage")
    expect(page.get_by_role("figure", name="By model")).to_contain_text("scripted/desk")


def test_people_tokens_and_the_phone(page: Page) -> None:
    page.goto("/#/settings/people")
    page.get_by_role("button", name="Make a link").click()
    expect(page.get_by_text("a phone cannot follow the link")).to_be_visible()
    expect(page.get_by_text("deskhand config set web.hosts")).to_be_visible()
    expect(page.get_by_role("img", name="The link as a QR code")).to_have_count(0)

    def under_a_name(route: Route) -> None:
        route.fulfill(status=201, json={"url": "//desk.example/#login=x", "qr_svg": QR})

    page.route("**/api/logins", under_a_name)
    page.get_by_role("button", name="Make a link").click()
    code = page.get_by_role("img", name="The link as a QR code")
    expect(code).to_be_visible()
    assert code.evaluate("async image => { await image.decode(); return image.naturalWidth > 0 }")
    page.get_by_role("button", name="Add person").click()
    page.get_by_label("Name").fill("ada")
    page.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("listitem").filter(has_text="no chat account linked")
    expect(row.locator(".tag")).to_have_text("Member")
    page.get_by_role("button", name="Make a token").click()
    page.get_by_label("What it is for").fill("a script")
    page.get_by_role("button", name="Make", exact=True).click()
    expect(page.get_by_text(re.compile("^dh_"))).to_be_visible()
    page.get_by_role("button", name="Done").click()
    page.get_by_role("listitem").filter(has_text="a script").get_by_role(
        "button", name="Revoke"
    ).click()
    page.get_by_role("button", name="Yes, revoke it").click()
    expect(page.get_by_role("listitem").filter(has_text="a script")).to_have_count(0)
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Yes, with all their keys").click()
    expect(row).to_have_count(0)


def test_the_browser_in_use_is_marked_and_not_revoked(
    page: Page, desk: Desk, browser: Browser
) -> None:
    state_of(browser, desk)
    page.goto("/#/settings/people")
    rows = page.get_by_role("listitem").filter(has_text="may: everything")
    mine = rows.filter(has_text="this browser")
    expect(mine).to_have_count(1)
    expect(mine).to_contain_text("You are using it now.")
    expect(mine.get_by_role("button")).to_have_count(0)
    others = rows.filter(has_not_text="this browser")
    expect(others.first.get_by_role("button", name="Revoke")).to_be_visible()


def test_signing_out_forgets_everything(page: Page, desk: Desk, browser: Browser) -> None:
    say(page, "remember me")
    page.locator(".did").wait_for()
    context = browser.new_context(storage_state=state_of(browser, desk), base_url=desk.url)
    try:
        other = context.new_page()
        other.goto(page.url)
        other.locator(".did").wait_for()
        other.get_by_role("button", name="Sign out").click()
        expect(other.get_by_role("heading", name="Sign in to Deskhand")).to_be_visible()
        other.reload()
        expect(other.get_by_role("heading", name="Sign in to Deskhand")).to_be_visible()
        comes_true(other, "async () => (await indexedDB.databases()).length === 0")
        comes_true(other, "!Object.keys(localStorage).some(k => k.startsWith('deskhand.me'))")
    finally:
        context.close()
    expect(page.locator(".did")).to_be_visible()


def test_what_is_being_stored_while_one_signs_out_is_forgotten_too(
    page: Page, desk: Desk, browser: Browser
) -> None:
    context = browser.new_context(storage_state=state_of(browser, desk), base_url=desk.url)
    try:
        other = context.new_page()
        other.goto("/")
        other.get_by_role("button", name="Sign out").wait_for()
        other.evaluate("""async () => {
            const { storeEvents } = await import("/js/storage.js");
            const { signOut } = await import("/js/state.js");
            const stores = Array.from({ length: 30 }, (_, n) => storeEvents("c" + n, [{ n: 1 }]));
            await signOut();
            await Promise.all(stores);
            await storeEvents("late", [{ n: 1 }]);
        }""")
        comes_true(other, "async () => (await indexedDB.databases()).length === 0")
    finally:
        context.close()


def test_a_list_that_comes_late_does_not_replace_a_newer_one(page: Page) -> None:
    late: list[tuple[Route, APIResponse]] = []
    comes_true(page, "async () => (await import('/js/list.js')).sessions.value !== null")

    def hold_the_first(route: Route) -> None:
        if late:
            route.continue_()
        else:
            late.append((route, route.fetch()))

    page.route("**/api/sessions?limit=60&brief=true&pinned=false*", hold_the_first)
    page.reload()
    say(page, "in the newer list alone")
    link = page.get_by_role("navigation", name="Conversations").get_by_role(
        "link", name="in the newer list alone"
    )
    expect(link).to_be_visible()
    route, response = late[0]
    with page.expect_event("requestfinished", lambda request: "/api/sessions" in request.url):
        route.fulfill(response=response)
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    expect(link).to_be_visible()
