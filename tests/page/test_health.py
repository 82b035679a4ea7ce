"""Health: one sentence, what to do about each finding, and the details folded."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

pytestmark = pytest.mark.timeout(120)
WELL = {"name": "store", "state": "ok", "detail": "80 GB are free"}
GOOD = {"name": "clock", "level": "good", "text": "plausible", "remedy": ""}
NOTE = {"name": "voice", "level": "note", "text": "not installed", "remedy": "deskhand voice pull"}


def make_health(*parts: dict[str, Any], status: str = "ok") -> dict[str, Any]:
    filled = [{"last_error": "", "restarts": 0, "detail": "", **part} for part in parts]
    return {"status": status, "version": "1.0", "components": filled}


def show(page: Page, health: dict[str, Any], *checks: dict[str, Any]) -> None:
    page.route("**/health", lambda route: route.fulfill(json=health))
    page.route("**/api/setup/checks", lambda route: route.fulfill(json=list(checks)))
    page.goto("/#/settings/health")


def test_all_is_well_and_the_rest_is_folded(routed_page: Page) -> None:
    page = routed_page
    show(page, make_health(WELL), GOOD, NOTE)
    expect(page.locator(".verdict")).to_have_text("All is well.")
    expect(page.locator(".page .rows")).to_have_count(0)
    page.get_by_text("1 suggestion").click()
    expect(page.get_by_role("listitem").filter(has_text="voice")).to_contain_text(
        "deskhand voice pull"
    )
    page.get_by_text("1 part, one by one").click()
    expect(page.get_by_role("listitem").filter(has_text="store")).to_contain_text("80 GB are free")
    page.get_by_text("Version, model and agents").click()
    expect(page.get_by_text("Running since")).to_be_visible()


def test_each_finding_says_what_to_do_the_worst_first(routed_page: Page) -> None:
    page = routed_page
    telegram = {
        "name": "channel telegram",
        "state": "degraded",
        "last_error": "the token was refused",
        "last_error_at": 1_790_000_000.0,
    }
    sandbox = {"name": "sandbox", "state": "degraded", "detail": "no command is run"}
    checks = [
        {"name": "sandbox", "level": "bad", "text": "none", "remedy": "sudo apt-get install it"},
        {"name": "disk", "level": "bad", "text": "only 3 MB are free", "remedy": "du -xh /"},
    ]
    show(page, make_health(WELL, telegram, sandbox, status="degraded"), *checks, GOOD)
    expect(page.locator(".verdict")).to_have_text("3 things need you.")
    findings = page.get_by_role("region", name="Now").get_by_role("listitem")
    expect(findings).to_have_count(3)
    expect(findings.first).to_contain_text("Disk")
    expect(findings.first).to_contain_text("What to do: du -xh /")
    channel = findings.filter(has_text="A channel does not work: telegram")
    expect(channel).to_contain_text("the token was refused")
    expect(channel).to_contain_text("What to do: Check its token.")
    expect(channel.get_by_role("link", name="Set up")).to_have_attribute("href", "#/settings/setup")
    expect(findings.filter(has_text="Commands cannot be run")).to_contain_text(
        "sudo apt-get install it"
    )


def test_a_part_that_nobody_foresaw_has_advice_too(routed_page: Page) -> None:
    page = routed_page
    show(page, make_health({"name": "teams", "state": "down", "last_error": "it broke"}), GOOD)
    expect(page.locator(".verdict")).to_have_text("1 thing needs you.")
    finding = page.get_by_role("region", name="Now").get_by_role("listitem")
    expect(finding).to_contain_text("A part does not work: teams")
    expect(finding).to_contain_text("deskhand logs")


def test_nothing_is_said_to_be_well_before_it_was_looked_at(routed_page: Page) -> None:
    page = routed_page
    held: list[Route] = []
    page.route("**/health", lambda route: route.fulfill(json=make_health(WELL)))
    page.route("**/api/setup/checks", lambda route: held.append(route))
    page.goto("/#/settings/health")
    expect(page.locator(".verdict")).to_contain_text("Looking at everything …")
    held[0].fulfill(json=[GOOD])
    expect(page.locator(".verdict")).to_have_text("All is well.")


def test_an_error_can_be_tried_again(routed_page: Page) -> None:
    page = routed_page
    problem = {"code": "failed", "message": "It is too busy.", "request_id": "r1"}
    page.route("**/health", lambda route: route.fulfill(status=500, json={"error": problem}))
    page.route("**/api/setup/checks", lambda route: route.fulfill(json=[GOOD]))
    page.goto("/#/settings/health")
    expect(page.get_by_role("alert").filter(has_text="It is too busy.")).to_be_visible()
    page.unroute("**/health")
    page.route("**/health", lambda route: route.fulfill(json=make_health(WELL)))
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".verdict")).to_have_text("All is well.")
