"""What a page says while there is nothing on it, and the one button with which it begins."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from playwright.sync_api import Page, Route, expect

from .conftest import say

EMPTY: Mapping[str, object] = {
    "approvals": [],
    "activity?limit=60": {"events": [], "more": None},
    "changes?limit=50": {"changes": [], "more": None},
    "memories?*": {"facts": [], "more": None, "enabled": True},
    "pairings": [],
    "proposals*": [],
    "skills": [],
    "settings": {"config": {}, "keys": [], "file": "deskhand.yaml", "warnings": []},
}
EXAMPLES = {
    "activity": "Which files are in your workspace?",
    "changes": "Write a packing list for a weekend by the sea into a file.",
    "memory": "Remember that I like short answers.",
    "proposals": "Propose a skill for how my weekly report is written. "
    "Ask me what you need to know.",
}


def answer_with(page: Page, answers: Mapping[str, object]) -> None:
    """Have the API say this."""
    for path, said in answers.items():
        _answer_one(page, path, said)


def _answer_one(page: Page, path: str, said: object) -> None:
    def fulfil(route: Route) -> None:
        route.fulfill(json=said)

    page.route(f"**/api/{path}", fulfil)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_put_into_the_message_field(routed_page: Page, name: str) -> None:
    page = routed_page
    answer_with(page, EMPTY)
    page.goto(f"/#/settings/{name}")
    page.get_by_role("button", name="Try an example").click()
    field = page.get_by_label("Message to Deskhand")
    expect(field).to_have_value(EXAMPLES[name])
    expect(field).to_be_focused()
    expect(page.locator(".bubble")).to_have_count(0)  # nothing is sent


def test_what_is_written_already_stays(routed_page: Page) -> None:
    page = routed_page
    answer_with(page, EMPTY)
    page.get_by_label("Message to Deskhand").fill("half a sentence")
    for _ in range(2):  # the second time it is there already
        page.goto("/#/settings/memory")
        page.get_by_role("button", name="Try an example").click()
        expect(page.get_by_label("Message to Deskhand")).to_have_value(
            f"{EXAMPLES['memory']}\n\nhalf a sentence"
        )


def test_beside_a_conversation_it_is_put_into_its_field(page: Page) -> None:
    say(page, "hello")
    page.locator(".did").wait_for()
    page.get_by_role("button", name="Tasks", exact=True).click()
    page.get_by_role("complementary", name="Tasks").get_by_role(
        "button", name="Try an example"
    ).click()
    field = page.get_by_label("Message to Deskhand")
    expect(field).to_have_value(re.compile("^/deep Plan a weekend"))
    expect(field).to_be_focused()
    page.set_viewport_size({"width": 390, "height": 844})
    field.fill("")
    page.get_by_role("button", name="Try an example").click()
    expect(page.get_by_role("complementary", name="Tasks")).to_have_count(0)
    expect(field).to_be_in_viewport()


def test_a_board_without_tasks_says_what_it_is_good_for(routed_page: Page) -> None:
    page = routed_page
    mate = {"name": "ann", "role": "reader", "status": "idle", "doing": "", "session": ""}
    answer_with(page, {"sessions/*/team": {"teammates": [mate], "tasks": []}})
    say(page, "hello")
    page.locator(".did").wait_for()
    page.get_by_role("button", name="Tasks", exact=True).click()
    page.get_by_role("button", name="Open the board").click()
    board = page.get_by_role("dialog", name="Board of the team")
    expect(board).to_contain_text("you see here who does what")
    board.get_by_role("button", name="Try an example").click()
    expect(board).to_have_count(0)
    expect(page.get_by_label("Message to Deskhand")).to_have_value(re.compile("^Break this work"))


@pytest.mark.parametrize(
    ("place", "button", "step"),
    [
        ("approvals", "Set what it may do unasked", "Permissions"),
        ("people", "Connect a chat program", "A chat program"),
    ],
)
def test_a_step_of_the_setup_is_opened(
    routed_page: Page, place: str, button: str, step: str
) -> None:
    page = routed_page
    answer_with(page, EMPTY)

    # Or the step is the next one to do, and open by itself.
    begun = page.request.get("/api/setup").json() | {"done": []}
    page.route("**/api/setup", lambda route: route.fulfill(json=begun))
    page.goto(f"/#/settings/{place}")
    page.get_by_role("button", name=button).click()
    head = page.get_by_role("button", name=step, expanded=True)
    expect(head).to_be_focused()
    page.goto("/#/settings/health")
    page.goto("/#/settings/setup")
    expect(head).to_have_count(0)  # it is open once


def test_where_mcp_servers_come_from_and_what_tools_are_for(routed_page: Page) -> None:
    page = routed_page
    tool = {"description": "Say the\ntime. And more.", "effect": "fetch", "parameters": {}}
    answer_with(page, {**EMPTY, "mcp-servers": [], "tools": [{**tool, "name": "mcp__clock__now"}]})
    page.goto("/#/settings/models")
    expect(page.get_by_text("There are no skills yet.")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="mcp__clock__now")).to_have_text(
        re.compile(r"Say the time\.\s*reads the web")
    )
    page.goto("/#/settings/servers")
    page.get_by_role("button", name="Ask which one would help").click()
    expect(page.get_by_label("Message to Deskhand")).to_have_value(re.compile("^Which MCP server"))


def test_ten_thousand_rows_are_drawn_in_parts(routed_page: Page) -> None:
    page = routed_page
    count = 10_000
    tokens = [
        {"id": str(i), "name": f"token {i}", "kind": "token", "user": "ann", "scopes": ["read"]}
        for i in range(count)
    ]
    tools = [{"name": f"tool_{i}", "description": "Look.", "effect": "none"} for i in range(count)]
    answer_with(page, {"tokens": tokens, "tools": tools})
    for place, first, last in (("people", "token 0", "token 99"), ("models", "tool_0", "tool_99")):
        page.goto(f"/#/settings/{place}")
        expect(page.get_by_text(first, exact=True)).to_be_visible()
        expect(page.get_by_text(last, exact=True)).to_have_count(1)
        assert page.locator("#page li").count() < 400
        page.get_by_role("button", name="Show more (9900 left)").click()
        expect(page.get_by_text(last.replace("99", "599"), exact=True)).to_have_count(1)
        assert page.locator("#page li").count() < 900
