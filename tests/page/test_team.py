"""The team of a conversation on the page: who is in it, and the board of its tasks."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from .conftest import Desk, say


def _begin(page: Page) -> None:
    say(page, "/teams on")
    expect(page.get_by_text("From now on I may work with a team here.")).to_be_visible()
    say(page, 'call spawn_teammate {"name": "ann", "role": "reader", "prompt": "say hello"}')
    expect(page.get_by_text("[teammate ann “ann: say hello” is done]").first).to_be_visible()
    expect(page.get_by_text("You said: [teammate ann").first).to_be_visible()
    for number, title in enumerate(("Read the letters", "Count them"), 1):
        given = f'{{"action": "create", "title": "{title}", "owner": "later"}}'
        say(page, f"call manage_tasks {given}")
        expect(page.locator(".did", has_text="manage_tasks")).to_have_count(number)
    page.get_by_role("button", name="Tasks", exact=True).click()


def test_a_task_is_assigned_on_the_board_and_done(page: Page) -> None:
    _begin(page)
    team = page.get_by_label("Team", exact=True)
    expect(team).to_contain_text("ann reader idle")
    expect(team.locator(".outcome")).to_have_text("hello")
    page.get_by_role("button", name="Open the board").click()
    board = page.get_by_role("dialog", name="Board of the team")
    to_do = board.get_by_role("region", name="To do")
    expect(to_do.locator(".card")).to_have_count(2)
    to_do.locator(".card-title").first.drag_to(board.get_by_label("ann", exact=True), steps=5)
    done = board.get_by_role("region", name="Done")
    expect(done.locator(".card")).to_contain_text("Read the letters")
    expect(to_do.locator(".card")).to_have_count(1)


def test_a_task_is_moved_and_commented_on(page: Page) -> None:
    _begin(page)
    page.get_by_role("button", name="Open the board").click()
    board = page.get_by_role("dialog", name="Board of the team")
    card = board.locator(".card", has_text="Count them")
    card.get_by_label("Status of task 2").select_option("Blocked")
    blocked = board.get_by_role("region", name="Blocked")
    expect(blocked.locator(".card")).to_contain_text("Count them")
    blocked.get_by_text("Comment").click()
    blocked.get_by_label("Comment on task 2").fill("Wait for the post")
    blocked.get_by_role("button", name="Add").click()
    expect(blocked).to_contain_text("Wait for the post")
    page.keyboard.press("Escape")
    expect(board).to_be_hidden()


def test_a_teammate_is_shut_down(page: Page) -> None:
    _begin(page)
    page.get_by_role("button", name="Shut down").click()
    page.get_by_role("button", name="Shut ann down").click()
    expect(page.get_by_label("Team", exact=True)).to_contain_text("shut down")


def test_what_a_teammate_does_now_is_said(page: Page, desk: Desk) -> None:
    say(page, "/teams on")
    expect(page.get_by_text("From now on I may work with a team here.")).to_be_visible()
    say(page, 'call spawn_teammate {"name": "ann", "role": "reader", "prompt": "count letters"}')
    page.get_by_role("button", name="Tasks", exact=True).click()
    team = page.get_by_label("Team", exact=True)
    expect(team).to_contain_text("works: count letters")
    expect(team.locator(".doing")).to_contain_text("count_slowly")
    expect(team.locator(".outcome")).to_have_count(0)
    desk.release()
    expect(team.locator(".outcome")).to_have_text("All counted.")
    expect(team.locator(".doing")).to_have_count(0)
