"""The inbox on the page, and its badge."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from .conftest import comes_true, say

pytestmark = pytest.mark.timeout(120)


def test_what_failed_and_what_waits_is_in_the_inbox(page: Page) -> None:
    say(page, "fail with this")
    expect(page.get_by_text("the key is wrong").first).to_be_visible()
    link = page.get_by_role("navigation", name="Conversations").get_by_role("link", name="Inbox")
    expect(link).to_contain_text("new or waiting")
    page.goto("/#/")
    page.get_by_role("heading", name="What should we do").wait_for()
    say(page, "post it")
    page.get_by_role("region", name="Permission needed").wait_for()
    link.click()
    inbox = page.get_by_role("region", name="Inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    expect(inbox.get_by_role("heading", name="Waits for you")).to_be_visible()
    failed = inbox.get_by_role("listitem").filter(has_text="failed").first
    expect(failed).to_contain_text("the key is wrong")
    waits = inbox.get_by_role("region", name="Waits for you").or_(inbox)
    expect(waits.first).to_contain_text("Allow it to use post letter?")
    assert page.title().startswith("(")

    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_role("button", name="Mark all as read")).to_have_count(0)
    expect(inbox.get_by_role("heading", name="Earlier")).to_be_visible()
    before = link.inner_text()
    inbox.get_by_role("link", name="Answer").first.click()
    page.get_by_role("button", name="Do not allow").click()
    expect(link).not_to_have_text(before)
    page.get_by_role("link", name="Inbox").click()
    failed.get_by_role("link").click()
    expect(page.get_by_text("the key is wrong").first).to_be_visible()


def test_the_title_counts_what_fails_elsewhere(page: Page, context: BrowserContext) -> None:
    page.goto("/#/inbox")
    page.get_by_role("heading", name="Inbox").wait_for()
    page.wait_for_load_state("networkidle")
    before = page.title()
    other = context.new_page()
    other.goto("/")
    say(other, "fail with this")
    expect(other.get_by_text("the key is wrong").first).to_be_visible()
    comes_true(page, f"document.title !== {json.dumps(before)}")
    assert page.title().startswith("(") and page.title().endswith("Inbox · Deskhand")
