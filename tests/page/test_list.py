"""The list of conversations: pins, folders, the archive, and what can be done with a row."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from .conftest import answer, say

pytestmark = pytest.mark.timeout(120)


def begin(page: Page, text: str) -> str:
    """A conversation that begins with these words. Returns its name."""
    page.goto("/#/")
    page.get_by_role("heading", name="What should we do").wait_for()
    say(page, text)
    expect(answer(page, f"You said: {text}")).to_be_visible()
    return str(page.evaluate("decodeURIComponent(location.hash.slice(4))"))


def choose(page: Page, row: str, *labels: str) -> None:
    """Open the menu of a row, and choose these, one after the other."""
    menu_button(page, row).click()
    for label in labels:
        page.get_by_role("menu").get_by_role("menuitem", name=label).or_(
            page.get_by_role("menu").get_by_role("menuitemradio", name=label)
        ).click()
    expect(page.get_by_role("menu")).to_have_count(0)


def menu_button(page: Page, row: str) -> Locator:
    """The button of the row that begins so."""
    link = page.get_by_role("link", name=row)
    entry = page.locator(".entry-row", has=link).first
    return entry.get_by_role("button", name="Conversation menu")


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("navigation", name="Conversations").get_by_role("region", name=name)


def test_a_pinned_conversation_is_on_top(page: Page) -> None:
    begin(page, "the pinned one")
    begin(page, "the latest one")
    choose(page, "the pinned one", "Pin to the top")
    pinned = section(page, "Pinned").get_by_role("link", name="the pinned one")
    expect(pinned).to_be_visible()
    expect(section(page, "Today").get_by_role("link", name="the pinned one")).to_have_count(0)
    page.reload()
    expect(pinned).to_be_visible()
    choose(page, "the pinned one", "Unpin")
    expect(section(page, "Today").get_by_role("link", name="the pinned one")).to_be_visible()
    expect(pinned).to_have_count(0)


def test_conversations_are_dragged_into_folders(page: Page) -> None:
    # What is dragged and where to are both in sight: a list that is scrolled between lets go of it.
    page.set_viewport_size({"width": 1280, "height": 1600})
    begin(page, "about the boat")
    choose(page, "about the boat", "Move to folder", "New folder")
    page.get_by_role("dialog", name="New folder").get_by_label("Name").fill("Boats")
    page.keyboard.press("Enter")
    folder = section(page, "Folders").get_by_role("button", name="Boats")
    expect(folder).to_have_accessible_name("Boats 1")
    begin(page, "about the sail")
    page.locator(".did").wait_for()
    page.wait_for_load_state("networkidle")
    row = section(page, "Today").get_by_role("link", name="about the sail")
    row.drag_to(folder, steps=5)  # as a hand does
    expect(folder).to_have_accessible_name("Boats 2")
    expect(row).to_have_count(0)
    folder.click()
    begin(page, "something else")
    page.locator(".did").wait_for()
    page.wait_for_load_state("networkidle")  # a row that is drawn anew lets go of what is dragged
    inside = section(page, "Folders").get_by_role("link", name="about the sail")
    expect(section(page, "Folders").get_by_role("link")).to_have_text(
        ["about the sail", "about the boat"]
    )
    target = section(page, "Today").get_by_role("link", name="something else")
    inside.drag_to(target, steps=5)
    expect(row).to_be_visible()
    expect(folder).to_have_accessible_name("Boats 1")
    page.get_by_role("button", name="Folder menu").click()
    page.get_by_role("menuitem", name="Delete the folder").click()
    expect(folder).to_have_count(0)


def test_folders_are_made_renamed_and_deleted(page: Page) -> None:
    begin(page, "about the taxes")
    choose(page, "about the taxes", "Move to folder", "New folder")
    page.get_by_role("dialog", name="New folder").get_by_label("Name").fill("  Money   matters ")
    page.keyboard.press("Enter")
    folder = section(page, "Folders").get_by_role("button", name="Money matters 1")
    expect(folder).to_be_visible()
    expect(page.get_by_role("link", name="about the taxes")).to_have_count(0)
    folder.click()
    inside = section(page, "Folders").get_by_role("link", name="about the taxes")
    expect(inside).to_be_visible()

    inside.click()
    page.get_by_role("button", name="Options").click()
    with page.expect_response(lambda each: each.request.method != "GET"):
        page.get_by_label("Preset").select_option("coding")
    page.get_by_role("button", name="Folder menu").click()
    page.get_by_role("menuitem", name="New conversation here").click()
    expect(page.get_by_text("In the folder Money matters")).to_be_visible()
    say(page, "the taxes of next year")
    expect(section(page, "Folders").get_by_role("button", name="Money matters 2")).to_be_visible()
    expect(page.get_by_label("Preset")).to_have_value("coding")
    choose(page, "the taxes of next year", "Move to folder", "No folder")
    expect(folder).to_be_visible()

    page.get_by_role("button", name="Folder menu").click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Taxes")
    page.get_by_role("button", name="Save", exact=True).click()
    renamed = section(page, "Folders").get_by_role("button", name="Taxes 1")
    expect(renamed).to_be_visible()
    begin(page, "more about the taxes")
    choose(page, "more about the taxes", "Move to folder", "Taxes")
    expect(section(page, "Folders").get_by_role("button", name="Taxes 2")).to_be_visible()

    page.get_by_role("button", name="Folder menu").click()
    page.get_by_role("menuitem", name="Delete the folder").click()
    expect(section(page, "Folders").get_by_role("button", name="Taxes")).to_have_count(0)
    expect(section(page, "Today").get_by_role("link", name="about the taxes")).to_have_count(2)


def test_what_is_archived_comes_back_when_it_goes_on(page: Page) -> None:
    name = begin(page, "an old story")
    begin(page, "another story")
    row = section(page, "Today").get_by_role("link", name="an old story")
    choose(page, "an old story", "Move to archive")
    expect(row).to_have_count(0)
    page.locator(".shelf").get_by_role("button", name="Archive").click()
    shelved = page.locator(".shelf").get_by_role("link", name="an old story")
    expect(shelved).to_be_visible()
    shelved.click()
    say(page, "it goes on")
    expect(answer(page, "You said: it goes on")).to_be_visible()
    expect(row).to_be_visible()
    expect(shelved).to_have_count(0)
    page.reload()
    expect(row).to_be_visible()
    options = page.request.get(f"/api/sessions?name={name}").json()["sessions"][0]
    assert options["archived"] is False


def test_a_row_is_renamed_and_erased_from_its_menu(page: Page) -> None:
    begin(page, "a name to change")
    choose(page, "a name to change", "Rename")
    title = page.get_by_role("dialog").get_by_label("Title")
    expect(title).to_be_focused()
    expect(title).to_have_value("a name to change")
    title.fill("a plainer name")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="a plainer name")).to_be_visible()
    choose(page, "a plainer name", "Erase", "Cancel")
    expect(section(page, "Today").get_by_role("link", name="a plainer name")).to_be_visible()
    choose(page, "a plainer name", "Erase", "Yes, erase it for good")
    expect(page.get_by_role("link", name="a plainer name")).to_have_count(0)
    expect(page.get_by_role("heading", name="What should we do")).to_be_visible()


def test_a_menu_is_used_with_the_keyboard(page: Page) -> None:
    begin(page, "with the keyboard")
    button = menu_button(page, "with the keyboard")
    button.focus()
    page.keyboard.press("Enter")
    menu = page.get_by_role("menu", name="with the keyboard")
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("End")
    expect(menu.get_by_role("menuitem").last).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("p")
    expect(menu.get_by_role("menuitem", name="Pin to the top")).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(button).to_be_focused()


def test_a_row_is_dragged_while_its_folder_changes(page: Page) -> None:
    begin(page, "about the oars")
    choose(page, "about the oars", "Move to folder", "New folder")
    page.get_by_role("dialog", name="New folder").get_by_label("Name").fill("Oars")
    page.keyboard.press("Enter")
    folder = section(page, "Folders").get_by_role("button", name="Oars")
    expect(folder).to_have_accessible_name("Oars 1")
    folder.click()
    begin(page, "about the rudder")
    page.locator(".did").wait_for()
    page.wait_for_load_state("networkidle")
    today = section(page, "Today").get_by_role("link", name="about the rudder")
    name = str(today.get_attribute("href")).removeprefix("#/c/")

    section(page, "Folders").get_by_role("link", name="about the oars").hover()
    page.mouse.down()
    page.mouse.move(200, 300, steps=4)
    page.evaluate(
        """async (name) => {
          const { updateSession } = await import("/js/state.js");
          await updateSession(name, { folder: "Oars" });
        }""",
        name,
    )
    page.wait_for_timeout(1_000)
    expect(folder).to_have_accessible_name("Oars 1")
    section(page, "Today").locator("h3").hover()
    section(page, "Today").locator("h3").hover()
    page.mouse.up()
    expect(section(page, "Today").get_by_role("link", name="about the oars")).to_be_visible()
    expect(section(page, "Folders").get_by_role("link")).to_have_text(["about the rudder"])
