"""The field to write in: what it completes, what is chosen beside it, and messages that wait."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from .conftest import Desk, answer, comes_true, say
from .test_list import begin

pytestmark = pytest.mark.timeout(120)


def field(page: Page) -> Locator:
    return page.get_by_label("Message to Deskhand")


def hold(page: Page) -> None:
    """A turn that runs until the desk lets it go."""
    say(page, "hold it")
    answer(page, "The first half of it.").wait_for()


def queue(page: Page, text: str) -> Locator:
    page.get_by_role("radio", name="Queue").click()
    say(page, text)
    row = waiting(page).get_by_role("listitem").filter(has_text=text)
    expect(row).to_be_visible()
    return row


def waiting(page: Page) -> Locator:
    return page.get_by_role("region", name="Messages that wait")


def test_commands_are_completed(page: Page) -> None:
    field(page).press_sequentially("/st")
    offered = page.get_by_role("listbox", name="Commands")
    expect(offered.get_by_role("option")).to_have_count(3)
    expect(offered.get_by_role("option", selected=True)).to_contain_text("/stop")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(offered.get_by_role("option", selected=True)).to_contain_text("/status")
    expect(field(page)).to_have_attribute("aria-activedescendant", "completion-2")
    page.keyboard.press("Tab")
    expect(field(page)).to_have_value("/status ")
    expect(offered).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator(".command-run")).to_contain_text("Nothing is running.")

    field(page).press_sequentially("/help")
    expect(page.get_by_role("option", name="/help")).to_be_visible()
    page.keyboard.press("Enter")  # what is written out is sent
    expect(page.locator(".command-run").last).to_contain_text("/status")
    field(page).press_sequentially("/s")
    expect(offered).to_be_visible()
    page.keyboard.press("Escape")
    expect(offered).to_have_count(0)
    expect(field(page)).to_have_value("/s")


def test_skills_and_presets_are_completed(page: Page) -> None:
    field(page).press_sequentially("/code-r")
    skill = page.get_by_role("option", name="/code-review")
    expect(skill).to_contain_text("Skill: ")
    page.keyboard.press("Enter")
    expect(field(page)).to_have_value("Use the skill code-review: ")
    field(page).fill("")
    field(page).press_sequentially("/c")
    expect(page.get_by_role("option", name="/coding")).to_contain_text("Preset: ")
    page.keyboard.type("odi")
    page.keyboard.press("Tab")  # before the list for it has come
    expect(field(page)).to_have_value("")
    say(page, "which preset is it?")
    expect(answer(page, "You said")).to_be_visible()
    page.get_by_role("button", name="Options").click()
    expect(page.get_by_label("Preset")).to_have_value("coding")


def test_files_and_conversations_are_completed(page: Page, desk: Desk) -> None:
    workspace = desk.home / "agents" / "default" / "workspace"
    (workspace / "plans").mkdir(exist_ok=True)
    (workspace / "plans" / "a garden.md").write_text("Beans.")
    begin(page, "plainly about the garden")
    field(page).press_sequentially("read @pla")
    offered = page.get_by_role("listbox", name="Files and conversations")
    expect(offered.get_by_role("option", name="plans/")).to_be_visible()
    conversation = offered.get_by_role("option", name="plainly about the garden")
    expect(conversation).to_contain_text("conversation")
    page.keyboard.press("Enter")
    expect(field(page)).to_have_value("read @plans/")
    expect(offered.get_by_role("option", name="plans/a garden.md")).to_be_visible()
    page.keyboard.press("Enter")
    expect(field(page)).to_have_value('read @"plans/a garden.md" ')
    field(page).press_sequentially("and @plainly")
    conversation.click()
    expect(field(page)).to_have_value('read @"plans/a garden.md" and @"plainly about the garden" ')
    field(page).fill("mail@example.org")
    page.wait_for_timeout(300)
    expect(offered).to_have_count(0)


def test_what_a_new_conversation_chooses_goes_with_its_first_message(page: Page) -> None:
    page.get_by_role("button", name="Effort: Default").click()
    page.get_by_role("menuitemradio", name="High").click()
    page.get_by_role("button", name="Permissions: Usual").click()
    page.get_by_role("menuitemradio", name="Plan first").click()
    expect(page.get_by_role("button", name="Permissions: Plan first")).to_be_visible()
    assert "#/c/" not in page.url, "nothing has begun"
    say(page, "with a plan")
    expect(answer(page, "You said: with a plan")).to_be_visible()
    name = page.evaluate("decodeURIComponent(location.hash.slice(4))")
    options = page.request.get(f"/api/sessions/{name}").json()["options"]
    assert (options["thinking"], options["plan_mode"]) == ("high", True)
    page.goto("/#/")
    expect(page.get_by_role("button", name="Effort: Default")).to_be_visible()


def test_a_model_is_chosen_beside_the_message(page: Page) -> None:
    begin(page, "which model?")
    page.get_by_role("button", name="Model: desk").click()
    choices = page.get_by_role("menu", name="Model").get_by_role("menuitemradio")
    expect(choices.first).to_have_attribute("aria-checked", "true")
    expect(choices.first).to_contain_text("scripted/desk")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Permissions").click()
    page.get_by_role("menuitemradio", name="Ask before each step").click()
    expect(page.get_by_role("button", name="Permissions: Ask before")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Permissions: Ask before")).to_be_visible()
    page.get_by_role("button", name="Permissions").click()
    page.get_by_role("menuitemradio", name="Usual permissions").click()
    expect(page.get_by_role("button", name="Permissions: Usual")).to_be_visible()


def test_what_was_chosen_long_ago_is_known(page: Page) -> None:
    headers = {"X-Deskhand": "1", "Origin": page.evaluate("location.origin")}
    changed = page.request.patch("/api/sessions/long", data={"thinking": "low"}, headers=headers)
    assert changed.ok
    page.goto("/#/c/long")
    expect(page.get_by_role("button", name="Effort: Low")).to_be_visible()


def test_the_field_says_what_a_message_does_while_it_works(page: Page, desk: Desk) -> None:
    hold(page)
    expect(field(page)).to_have_attribute("placeholder", "Say more while it works")
    page.get_by_role("radio", name="Queue").click()
    expect(field(page)).to_have_attribute("placeholder", "Say what comes next")
    page.get_by_role("radio", name="Steer").click()
    desk.release()
    expect(field(page)).to_have_attribute("placeholder", "Message Deskhand")


def test_a_waiting_message_is_taken_back(page: Page, desk: Desk) -> None:
    hold(page)
    row = queue(page, "never mind this")
    row.get_by_role("button", name="Take this message back").click()
    expect(waiting(page)).to_have_count(0)
    desk.release()
    expect(answer(page, "The second half of it.")).to_be_visible()
    say(page, "and now")
    expect(answer(page, "You said: and now")).to_be_visible()
    expect(page.get_by_text("never mind this")).to_have_count(0)


def test_a_waiting_message_is_changed(page: Page, desk: Desk) -> None:
    hold(page)
    queue(page, "bring two tents")
    page.reload()  # the server knows what waits
    row = waiting(page).get_by_role("listitem")
    expect(row).to_contain_text("bring two tents")
    row.get_by_role("button", name="Change this message").click()
    expect(field(page)).to_have_value("bring two tents")
    expect(waiting(page)).to_have_count(0)
    page.get_by_role("radio", name="Queue").click()
    field(page).fill("bring three tents")
    page.keyboard.press("Enter")
    desk.release()
    expect(answer(page, "You said: bring three tents")).to_be_visible()
    expect(answer(page, "bring two tents")).to_have_count(0)


def test_waiting_messages_are_put_in_order(page: Page, desk: Desk) -> None:
    hold(page)
    for text in ("the first", "the second", "the third"):
        queue(page, text)
    rows = waiting(page).get_by_role("listitem")
    rows.nth(1).get_by_role("button", name="Move up").click()
    comes_true(
        page,
        """[...document.querySelectorAll(".waiting-list li > .grow")]
        .map((one) => one.textContent.trim()).join() === "the second,the first,the third" """,
    )
    desk.release()
    expect(answer(page, "You said: the third")).to_be_visible()
    said = page.locator(".answer").all_inner_texts()
    assert [text for text in said if "the" in text][-3:] == [
        "You said: the second",
        "You said: the first",
        "You said: the third",
    ]


def test_one_that_waits_need_not(page: Page, desk: Desk) -> None:
    hold(page)
    row = queue(page, "hurry up")
    row.get_by_role("button", name="Do not wait").click()
    expect(waiting(page).get_by_role("listitem").filter(has_text="next step")).to_be_visible()
    desk.release()
    expect(answer(page, "You said: hurry up")).to_be_visible()
