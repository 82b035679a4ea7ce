"""Memory on the page: searched, explained, corrected, merged, shared and forgotten."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, StorageState, expect

from .conftest import WAIT_MS, Desk, desk_at, state_of, watched
from .test_looks import ALL, AXE

pytestmark = pytest.mark.timeout(120)
LOOKS = [("light", 1440, 900), ("dark", 1440, 900), ("light", 390, 844), ("dark", 390, 844)]


@pytest.fixture(scope="module")
def remembering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("memories")
    (home / "memories").touch()
    found = desk_at(home)
    yield found
    found.kill()


@pytest.fixture(scope="module")
def remembering_state(browser: Browser, remembering: Desk) -> StorageState:
    return state_of(browser, remembering)


@pytest.fixture
def memory(browser: Browser, remembering: Desk, remembering_state: StorageState) -> Iterator[Page]:
    """A tab with the memories of a Deskhand that has many."""
    made = browser.new_context(
        storage_state=remembering_state,
        base_url=remembering.url,
        reduced_motion="reduce",
        service_workers="block",
    )
    made.set_default_timeout(WAIT_MS)
    page = made.new_page()
    broken = watched(page)
    page.goto("/#/settings/memory")
    rows(page).first.wait_for()
    yield page
    assert broken == []
    made.close()


def rows(page: Page, name: str = "Memories") -> Locator:
    return page.get_by_role("list", name=name).locator("> li")


def row(page: Page, text: str) -> Locator:
    exact = re.compile(rf"^{re.escape(text)}$")
    return rows(page).filter(has=page.locator("strong", has_text=exact))


def opened(page: Page, text: str) -> Locator:
    row(page, text).get_by_role("button", name=text).first.click()
    return row(page, text)


def choose(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def search(page: Page, words: str) -> None:
    page.get_by_label("Search memories").fill(words)


def undo(page: Page) -> None:
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.locator(".note", has_text="That change is undone.")).to_be_visible()


def test_what_is_known_and_where_it_comes_from(memory: Page) -> None:
    expect(row(memory, "The garage code is 7719")).to_contain_text("in every prompt")
    expect(row(memory, "The fair is on Saturday")).to_contain_text("told to everybody")
    one = opened(memory, "The dog is Rex")
    expect(one).to_contain_text("Deskhand, from what was said")
    expect(one).to_contain_text("“By the way, my dog is called Rex, and I like green tea.”")
    expect(one).to_contain_text("you, ")
    one.get_by_role("link", name="in this conversation, event 1").click()
    expect(memory.locator(".answer", has_text="A fine name.")).to_be_visible()


def test_many_are_loaded_in_pages_and_searched(memory: Page) -> None:
    expect(row(memory, "River walk 120 took 120 minutes")).to_be_visible()
    for _ in range(4):
        memory.mouse.move(900, 600)
        memory.mouse.wheel(0, 20_000)
        memory.wait_for_timeout(200)
    expect(row(memory, "River walk 1 took 1 minutes")).to_have_count(1)
    search(memory, "which code opens the garage")
    expect(rows(memory).first).to_contain_text("The garage code is 7719")
    search(memory, "zebra")
    expect(memory.get_by_text("No matching memories.")).to_be_visible()
    search(memory, "")
    choose(memory, "Shared")
    expect(rows(memory)).to_have_count(1)
    choose(memory, "In every prompt")
    expect(rows(memory)).to_have_count(1)


def test_a_correction_keeps_the_earlier_version(memory: Page) -> None:
    one = opened(memory, "The garage code is 7719")
    one.get_by_role("button", name="Correct").click()
    one.get_by_label("What is right").fill("The garage code is 8820")
    one.get_by_role("button", name="Save the correction").click()
    new = row(memory, "The garage code is 8820")
    expect(new).to_contain_text("in every prompt")
    expect(row(memory, "The garage code is 7719")).to_have_count(0)
    expect(new).to_contain_text("a person, by hand")
    versions = new.get_by_role("list", name="Other versions")
    expect(versions).to_contain_text("The garage code is 7719")
    versions.get_by_role("button", name="Use again: The garage code is 7719").click()
    expect(row(memory, "The garage code is 7719")).to_be_visible()
    undo(memory)
    expect(row(memory, "The garage code is 8820")).to_be_visible()


def test_forgotten_and_brought_back(memory: Page) -> None:
    one = opened(memory, "River walk 119 took 119 minutes")
    one.get_by_role("button", name="Forget").click()
    expect(row(memory, "River walk 119 took 119 minutes")).to_have_count(0)
    expect(memory.get_by_role("button", name="Undo", exact=True)).to_be_focused()
    undo(memory)
    one = opened(memory, "River walk 119 took 119 minutes")
    one.get_by_role("button", name="Forget").click()
    expect(row(memory, "River walk 119 took 119 minutes")).to_have_count(0)
    choose(memory, "Forgotten")
    gone = row(memory, "River walk 119 took 119 minutes")
    expect(gone).to_contain_text("forgotten on")
    gone.get_by_role("button", name="Bring back").click()
    expect(gone).to_have_count(0)
    choose(memory, "All")
    expect(row(memory, "River walk 119 took 119 minutes")).to_be_visible()


def test_two_become_one(memory: Page) -> None:
    one = opened(memory, "Likes green tea")
    similar = one.get_by_role("list", name="Similar memories")
    similar.get_by_role("button", name="Merge with: The owner likes green tea").click()
    one.get_by_label("One sentence for this").fill("Likes green tea, not black tea")
    one.get_by_role("button", name="Merge the two").click()
    merged = row(memory, "Likes green tea, not black tea")
    expect(merged.get_by_role("list", name="Other versions").locator("> li")).to_have_count(2)
    expect(row(memory, "The owner likes green tea")).to_have_count(0)
    undo(memory)
    expect(row(memory, "The owner likes green tea")).to_be_visible()
    expect(merged).to_have_count(0)


def test_one_of_two_is_right_or_both(memory: Page) -> None:
    pair = rows(memory, "Contradictions")
    expect(pair).to_contain_text("Name of dog")
    pair.get_by_role("button", name="Keep: The dog is Max").click()
    expect(pair).to_have_count(0)
    expect(row(memory, "The dog is Rex")).to_have_count(0)
    undo(memory)
    expect(row(memory, "The dog is Rex")).to_be_visible()
    expect(row(memory, "The dog is Max")).to_be_visible()
    pair.get_by_role("button", name="Both are right").click()
    expect(pair).to_have_count(0)
    memory.reload()
    expect(row(memory, "The dog is Max")).to_be_visible()
    expect(pair).to_have_count(0)


def test_shared_made_private_and_put_in_every_prompt(memory: Page) -> None:
    one = opened(memory, "The fair is on Saturday")
    one.get_by_role("button", name="Make private").click()
    expect(row(memory, "The fair is on Saturday")).to_contain_text("told only to you")
    row(memory, "The fair is on Saturday").get_by_role(
        "button", name="Share with everybody"
    ).click()
    expect(row(memory, "The fair is on Saturday")).to_contain_text("told to everybody")
    row(memory, "The fair is on Saturday").get_by_role("button", name="Put in every prompt").click()
    expect(row(memory, "The fair is on Saturday").locator(".tag")).to_have_text(
        ["in every prompt", "shared"]
    )


def test_what_comes_from_outside_waits(memory: Page) -> None:
    choose(memory, "Waiting (1)")
    one = opened(memory, "Pays bills to account 666")
    expect(one).to_contain_text("https://bills.example/pay had been read")
    expect(one.get_by_role("button", name="Share with everybody")).to_have_count(0)
    one.get_by_role("button", name="Approve").click()
    expect(one).to_have_count(0)
    choose(memory, "All")
    expect(row(memory, "Pays bills to account 666").locator(".tag")).to_have_count(0)
    expect(memory.get_by_role("tab", name="Waiting")).to_have_count(0)


def test_a_failure_is_shown_and_tried_again(memory: Page) -> None:
    broken = True

    def answer(route: Route) -> None:
        if broken and "which=shared" in route.request.url:
            body = json.dumps({"error": {"code": "x", "message": "The store is busy."}})
            route.fulfill(status=503, body=body, content_type="application/json")
        else:
            route.continue_()

    memory.route("**/api/memories?*", answer)
    choose(memory, "Shared")
    alert = memory.get_by_role("alert").filter(has_text="The store is busy.")
    expect(alert).to_be_visible()
    broken = False
    alert.get_by_role("button", name="Try again").click()
    expect(row(memory, "The fair is on Saturday")).to_be_visible()


def test_a_refused_change_leaves_everything_as_it_was(memory: Page) -> None:
    one = opened(memory, "Is in Lisbon this week")
    one.get_by_role("button", name="Correct").click()
    one.get_by_label("What is right").fill("River walk 120 took 120 minutes")
    one.get_by_role("button", name="Save the correction").click()
    expect(memory.get_by_text("says that already: merge the two")).to_be_visible()
    expect(one.get_by_label("What is right")).to_have_value("River walk 120 took 120 minutes")


def test_who_may_only_read_has_no_buttons(memory: Page) -> None:
    me = memory.request.get("/api/auth/me").json() | {"scopes": ["read"]}
    memory.route("**/api/auth/me", lambda route: route.fulfill(json=me))
    memory.reload()
    one = opened(memory, "The dog is Rex")
    expect(one).to_contain_text("You may read memories, but not change them.")
    for name in ("Correct", "Forget", "Approve", "Merge"):
        expect(memory.get_by_role("button", name=name)).to_have_count(0)


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Desk]:
    found = desk_at(tmp_path)
    yield found
    found.kill()


def test_nothing_is_remembered_yet(browser: Browser, forgetful: Desk) -> None:
    made = browser.new_context(storage_state=state_of(browser, forgetful), base_url=forgetful.url)
    page = made.new_page()
    page.goto("/#/settings/memory")
    expect(page.get_by_text("Nothing is remembered yet.")).to_be_visible()
    expect(page.get_by_text("Memory saves you from saying things twice.")).to_be_visible()
    page.get_by_role("tab", name="Forgotten").click()
    expect(page.get_by_text("What you forget can be brought back here.")).to_be_visible()
    made.close()


def test_nothing_stands_in_the_way(
    browser: Browser, remembering: Desk, remembering_state: StorageState
) -> None:
    """Many rows, one of them open with a form, in light and dark and on a phone."""
    found: dict[str, list[str]] = {}
    with browser.new_context(
        storage_state=remembering_state,
        base_url=remembering.url,
        reduced_motion="reduce",
        bypass_csp=True,
        service_workers="block",
    ) as made:
        page = made.new_page()
        page.goto("/#/settings/memory")
        one = opened(page, "Likes green tea")
        one.get_by_role("button", name="Correct").click()
        one.get_by_role("button", name="Merge with").first.click()
        page.evaluate(AXE.read_text())
        for scheme, width, height in LOOKS:
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
            found[f"{scheme} {width}"] = page.evaluate(ALL)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not any(found.values()), found
