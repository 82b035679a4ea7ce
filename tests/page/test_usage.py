"""Usage and cost: what is used by day, model, agent and person, what the month comes to and why."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from .conftest import answer, say
from .used import Answer, make_sum, make_unused, make_usage

pytestmark = pytest.mark.timeout(120)
USAGE = "**/api/usage?*"


def show(page: Page, found: Answer) -> None:
    page.route(USAGE, lambda route: route.fulfill(json=found))
    page.goto("/#/settings/usage")


def test_what_was_just_used_is_shown_and_leads_to_its_conversation(page: Page) -> None:
    say(page, "say how much was it?")
    expect(answer(page, "how much was it?")).to_be_visible()
    page.goto("/#/settings/usage")
    chart = page.get_by_role("figure", name="By day")
    expect(chart.get_by_role("img")).to_have_attribute("aria-label", f"{_summary(page)}")
    chart.get_by_text("Show as a table").click()
    expect(chart.get_by_role("row").nth(1)).to_contain_text("$0.00")
    expect(page.get_by_role("figure", name="By model")).to_contain_text("scripted/desk")
    expect(page.get_by_role("figure", name="By person")).to_contain_text("owner")
    dearest = page.get_by_role("region", name="The dearest conversations")
    link = dearest.get_by_role("link", name="say how much was it?")
    more = dearest.get_by_role("button", name="Show more")
    while not link.count() and more.count():  # others were dearer
        more.click()
    link.click()
    expect(answer(page, "how much was it?")).to_be_visible()


def _summary(page: Page) -> str:
    """The sentence above the chart."""
    caption = page.get_by_role("figure", name="By day").locator("figcaption")
    expect(caption).to_contain_text("in the last 30 days. The busiest day was")
    return caption.inner_text()


def test_the_month_is_foretold_and_unknown_prices_stand_beside_it(routed_page: Page) -> None:
    page = routed_page
    show(page, make_usage())
    month = page.locator(".forecast")
    expect(month).to_contain_text(
        "$2.21 so far this month, about $4.10 by the end of the month, at the pace of the last 7 "
        "days. Plus 3 calls of unknown price."
    )
    models = page.get_by_role("figure", name="By model")
    expect(models).to_contain_text("anthropic/claude-sonnet-5 comes first with $3.20 (84%)")
    expect(models.get_by_role("button").last).to_contain_text("12 calls of unknown price")
    expect(page.get_by_text("unknown", exact=True)).to_have_count(0)

    page.get_by_role("button", name="Tokens", exact=True).click()
    expect(month).to_contain_text("2.1M tokens so far this month, about 3.9M tokens by the end")
    expect(models.get_by_role("button").last).to_contain_text("310k tokens (7%)")
    expect(page.get_by_role("figure", name="By day").locator(".scale")).to_contain_text("3.0M")

    month.get_by_role("link", name="Set a limit").click()
    expect(page.get_by_label("budgets.all.usd_per_month", exact=True)).to_be_visible()


def test_bars_are_as_long_as_what_they_show(routed_page: Page) -> None:
    page = routed_page
    show(page, make_usage())
    bars = page.locator(".day .bar")
    expect(bars).to_have_count(30)
    heights = [float(bar.get_attribute("height") or 0) for bar in bars.all()]
    assert heights[29 - 3] == pytest.approx(100 * 2.8 / 3)
    assert [bool(height) for height in heights].count(True) == 3
    expect(page.locator(".day title").nth(29 - 1)).to_contain_text(
        "$0.52 plus 12 calls of unknown price"
    )
    agents = page.get_by_role("figure", name="By agent").get_by_role("button")
    expect(agents.first).to_contain_text("main$3.30 (86%) plus 10 calls of unknown price")


def test_a_row_leads_to_what_was_dear_about_it(routed_page: Page) -> None:
    page = routed_page
    asked: list[dict[str, list[str]]] = []

    def answer_usage(route: Route) -> None:
        wanted = parse_qs(urlsplit(route.request.url).query)
        asked.append(wanted)
        parts: Answer = {}
        if len(wanted) > 1:
            row = make_sum(900_000, 1, 0.7, session_id="hers", preview="Only hers")
            parts = {"sessions": [row], "total": make_sum(900_000, 1, 0.7)}
        route.fulfill(json=make_usage(**parts))

    page.route(USAGE, answer_usage)
    page.goto("/#/settings/usage")
    dearest = page.get_by_role("region", name="The dearest conversations")
    expect(dearest.get_by_role("heading")).to_have_text("Why did this cost $3.82?")
    first = dearest.get_by_role("listitem").first
    expect(first).to_contain_text("Search the archive")
    expect(first).to_contain_text("sub-agent")
    expect(first).to_contain_text("310 calls, each reading about 12k tokens; 401k written")

    page.get_by_role("figure", name="By person").get_by_role("button", name="anna $0.70").click()
    heading = dearest.get_by_role("heading", name="Why did anna cost $0.70?")
    expect(heading).to_be_focused()
    expect(dearest.get_by_role("listitem")).to_have_count(1)
    expect(dearest.get_by_role("link", name="Only hers")).to_have_attribute("href", "#/c/hers")
    assert asked[-1] == {"range": ["30d"], "person": ["anna"]}

    dearest.get_by_role("button", name="Show all").click()
    expect(dearest.get_by_role("listitem")).to_have_count(2)
    chart = page.get_by_role("figure", name="By day")
    chart.get_by_text("Show as a table").click()
    chart.get_by_role("button").first.click()
    expect(dearest.get_by_role("link", name="Only hers")).to_be_visible()
    assert set(asked[-1]) == {"range", "day"}

    page.get_by_role("button", name="7 days").click()
    expect(dearest.get_by_role("listitem")).to_have_count(2)
    assert asked[-1] == {"range": ["7d"]}


def test_what_nobody_in_particular_used_leads_nowhere(routed_page: Page) -> None:
    page = routed_page
    show(page, make_usage(people=[make_sum(1000, 1, 0.7, id="")]))
    by_person = page.get_by_role("figure", name="By person")
    expect(by_person.get_by_role("listitem")).to_contain_text("Nobody in particular")
    expect(by_person.get_by_role("button")).to_have_count(0)


def test_before_the_first_message_it_says_what_it_is_good_for(routed_page: Page) -> None:
    page = routed_page
    show(page, make_unused())
    expect(page.get_by_text("No model was called in the last 30 days.")).to_contain_text(
        "what each model, agent and person uses and costs, what the month will come to"
    )
    page.get_by_role("button", name="Look further back").click()
    expect(page.get_by_text("No model was called so far.")).to_be_visible()


def test_while_it_is_loaded_and_after_an_error(routed_page: Page) -> None:
    page = routed_page
    held: list[Route] = []
    page.route(USAGE, lambda route: held.append(route))
    page.goto("/#/settings/usage")
    expect(page.locator(".page .spin")).to_be_visible()
    problem = {"code": "failed", "message": "The database is busy.", "request_id": "r1"}
    held[0].fulfill(status=500, json={"error": problem})
    expect(page.get_by_role("alert").filter(has_text="The database is busy.")).to_be_visible()
    page.unroute(USAGE)
    page.route(USAGE, lambda route: route.fulfill(json=make_usage()))
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".plot")).to_be_visible()


def test_ten_thousand_rows_are_drawn_in_parts(routed_page: Page) -> None:
    page = routed_page
    count = 10_000
    sessions = [
        make_sum(1000 + n, 1, n / 1000, session_id=f"s{n}", preview=f"Conversation {n}")
        for n in range(count)
    ]
    people = [make_sum(1000 + n, 1, n / 1000, id=f"person{n}") for n in range(count)]
    show(page, make_usage(sessions=sessions, people=people))
    dearest = page.get_by_role("region", name="The dearest conversations")
    expect(dearest.get_by_role("listitem")).to_have_count(10)
    expect(dearest.get_by_role("listitem").first).to_contain_text("Conversation 9999")
    dearest.get_by_role("button", name="Show more (9990 left)").click()
    expect(dearest.get_by_role("listitem")).to_have_count(60)
    by_person = page.get_by_role("figure", name="By person")
    expect(by_person.get_by_role("listitem")).to_have_count(6)
    by_person.get_by_text("Show as a table").click()
    expect(by_person.get_by_role("row")).to_have_count(101)
