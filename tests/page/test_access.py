"""Folders and hosts beyond the workspace, allowed where an agent wanted them and taken back in the
settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from deskhand.computer.browser.sign_ins import SignIns, SiteSignIn

from .conftest import Desk, answer, say

pytestmark = pytest.mark.timeout(120)


def calls(page: Page, tool: str, **arguments: str) -> None:
    say(page, f"call {tool} {json.dumps(arguments)}")


def test_a_folder_is_allowed_where_it_was_refused(page: Page, desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "Ann's papers"
    folder.mkdir()
    (folder / "list.txt").write_text("milk\n")
    calls(page, "read_file", path=str(folder / "list.txt"))
    refused = page.get_by_role("group", name="A folder outside the workspace")
    expect(refused).to_contain_text(f"It wants to read {folder}, which is outside its workspace.")
    refused.get_by_role("button", name="Always allow reading this folder").click()
    expect(answer(page, f"You may read {folder} now. Go on.")).to_be_visible()
    expect(page.locator(".tool")).to_contain_text("It may use")
    calls(page, "read_file", path=str(folder / "list.txt"))
    read = page.locator(".tool.ok", has_text="list.txt")
    read.get_by_role("button").first.click()
    expect(read).to_contain_text("milk")

    page.goto("/#/settings/approvals")
    row = page.get_by_role("listitem").filter(has_text=str(folder))
    expect(row).to_contain_text("read")
    row.get_by_role("button", name="Revoke").click()
    row.get_by_role("button", name="Yes, take it back").click()
    expect(row).to_have_count(0)


def test_what_a_tool_of_others_says_offers_nothing(page: Page, tmp_path: Path) -> None:
    """Only our own file tools are believed: any other can word its error like theirs."""
    sentence = (
        f"'{tmp_path}/x' is outside the workspace, so it is not read. The owner can allow it: "
        f"deskhand allow path {tmp_path}"
    )
    calls(page, "echo_back", text=f"refuse {sentence}")
    page.locator(".did").wait_for()
    expect(page.locator(".tool.error")).to_have_count(1)
    page.wait_for_load_state("networkidle")
    expect(page.locator(".folder-access")).to_have_count(0)


def test_a_sign_in_is_deleted_in_the_settings(page: Page, desk: Desk) -> None:
    kept = SignIns(desk.home / "state" / "sign_ins")
    kept.save(SiteSignIn((), (), "shop.test", 1_790_000_000.0))
    page.goto("/#/settings/approvals")
    row = page.get_by_role("listitem").filter(has_text="shop.test")
    expect(row).to_contain_text("given on Sep")
    expect(row).to_contain_text("asks before it is used")
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Yes, delete it").click()
    expect(row).to_have_count(0)
    assert kept.list_sites() == []


def test_a_folder_is_allowed_in_the_settings(page: Page, tmp_path: Path) -> None:
    page.goto("/#/settings/approvals")
    page.get_by_role("button", name="Allow a folder").click()
    field = page.get_by_label("Folder on this machine")
    field.fill(str(tmp_path / "nowhere"))
    page.get_by_role("button", name="Allow", exact=True).click()
    expect(page.locator("form").get_by_role("alert")).to_contain_text("There is no folder")
    field.fill(str(tmp_path))
    page.get_by_label("It may write there, too").check()
    page.get_by_role("button", name="Allow", exact=True).click()
    row = page.get_by_role("listitem").filter(has_text=str(tmp_path))
    expect(row).to_contain_text("read and write")
    expect(field).to_have_count(0)
    row.get_by_role("button", name="Revoke").click()
    row.get_by_role("button", name="Yes, take it back").click()
    expect(row).to_have_count(0)


def test_a_host_is_allowed_for_always(page: Page) -> None:
    calls(page, "request_host", host="pypi.org")
    card = page.get_by_role("region", name="Permission needed")
    expect(card.get_by_role("heading")).to_have_text("Allow it to let its commands reach pypi.org?")
    card.get_by_role("button", name="Always allow pypi.org").hover()
    expect(card).to_contain_text("Commands may reach it without asking")
    card.get_by_role("button", name="Always allow pypi.org").click()
    expect(answer(page, "That is done.")).to_be_visible()
    page.goto("/#/")
    page.get_by_role("heading", name="What should we do").wait_for()
    calls(page, "request_host", host="pypi.org")
    expect(answer(page, "That is done.")).to_be_visible()
    page.goto("/#/settings/approvals")
    section = page.locator("section", has=page.get_by_role("heading", name="Standing answers"))
    answered = section.get_by_role("listitem").filter(has_text="pypi.org")
    answered.get_by_role("button", name="Revoke").click()
    answered.get_by_role("button", name="Yes, ask again").click()
    expect(answered).to_have_count(0)
