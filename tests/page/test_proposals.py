"""Proposed skills on the page: read, taken in, turned down and taken out again."""

from __future__ import annotations

import sqlite3

import pytest
from playwright.sync_api import Locator, Page, expect

from .conftest import Desk

pytestmark = pytest.mark.timeout(120)


def row(page: Page, name: str) -> Locator:
    region = page.get_by_role("region", name="Proposed skills")
    return region.locator("ul.rows > li").filter(has=page.get_by_text(name, exact=True)).first


def opened(page: Page, name: str) -> Locator:
    row(page, name).get_by_role("button", name=name).first.click()
    return row(page, name)


def test_a_proposal_is_read_taken_in_and_taken_out(page: Page, desk: Desk) -> None:
    file = desk.home / "agents/default/workspace/skills/packing-list/SKILL.md"
    page.goto("/#/settings/proposals")
    expect(row(page, "packing-list")).to_contain_text("waits for you")
    one = opened(page, "packing-list")
    expect(one.get_by_label("The text of packing-list")).to_contain_text("Read notes.txt first.")
    expect(one.get_by_label("What was found in it")).to_contain_text("messages to others")
    turns = one.get_by_label("Turns it was tried on").get_by_role("listitem")
    expect(turns).to_have_count(2)
    expect(turns.first).to_contain_text("3 calls (5 without it)")
    expect(turns.last).to_contain_text("not solved")
    expect(one).to_contain_text("1 solved as well with it")
    assert not file.exists(), "it is not active"
    one.get_by_role("button", name="Accept").click()
    expect(row(page, "packing-list")).to_contain_text("active")
    expect(row(page, "packing-list")).to_contain_text("No turn has read it yet.")
    assert "Read notes.txt first." in file.read_text()
    one.get_by_role("button", name="Remove").click()
    one.get_by_role("button", name="Yes, take it out").click()
    expect(row(page, "packing-list")).to_contain_text("a person took it out")
    assert not file.exists()


def test_what_comes_from_outside_is_read_before_a_yes(page: Page, desk: Desk) -> None:
    page.goto("/#/settings/proposals")
    one = opened(page, "bread")
    expect(one).to_contain_text("https://recipes.example/bread had been read")
    take = one.get_by_role("button", name="Accept")
    expect(take).to_be_disabled()
    one.get_by_role("switch", name="I have read all of it").click()
    expect(take).to_be_enabled()
    one.get_by_label("Reason, if you reject it").fill("we buy bread")
    one.get_by_role("button", name="Reject").click()
    one.get_by_role("button", name="Yes, reject it").click()
    expect(row(page, "bread")).to_contain_text("we buy bread")
    assert not (desk.home / "agents/default/workspace/skills/bread").exists()


def test_what_is_bad_has_no_yes(page: Page, desk: Desk) -> None:
    page.goto("/#/settings/proposals")
    one = opened(page, "quick-start")
    expect(one.get_by_label("What was found in it")).to_contain_text(
        "it runs what comes from the web"
    )
    expect(one).to_contain_text("cannot be taken in as it is")
    expect(one.get_by_role("button", name="Accept")).to_have_count(0)
    expect(one.get_by_role("button", name="Reject")).to_be_visible()


def test_a_held_back_file_is_read_and_approved(page: Page, desk: Desk) -> None:
    """It was approved, and is another one now."""
    soul = desk.home / "agents/default/workspace/SOUL.md"
    before = soul.read_text()
    try:
        soul.write_text("Be kind.\n")
        row = (str(soul.resolve()), bytes(32), "owner", 0.0)
        db = sqlite3.connect(desk.home / "state" / "deskhand.db", timeout=20)
        with db:
            db.execute("INSERT INTO approved_file(path, digest, by, at) VALUES(?, ?, ?, ?)", row)
        soul.write_text("Be kind.\u202e\n")
        page.goto("/#/settings/proposals")
        one = page.get_by_role("list", name="Held back files").get_by_role("listitem")
        expect(one).to_contain_text("SOUL.md")
        expect(one).to_contain_text("changed since owner approved it on")
        one.get_by_role("button", name="SOUL.md").click()
        expect(one.get_by_label("The text of")).to_contain_text("Be kind.\\u202e")
        expect(one.get_by_role("button", name="Approve it")).to_have_count(0)
        one.get_by_role("switch", name="I have read all of it").click()
        one.get_by_role("button", name="Approve it").click()
        one.get_by_role("button", name="Yes, exactly this").click()
        expect(one).to_have_count(0)
    finally:
        soul.write_text(before)
        with db:
            db.execute("DELETE FROM approved_file")
        db.close()
