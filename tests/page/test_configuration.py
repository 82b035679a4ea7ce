"""The configuration: five groups, what each key does, what was changed, and errors beside the field
that caused them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from deskhand.config import keys
from deskhand.config.config import Config

from .conftest import Desk, comes_true
from .states import open_step

pytestmark = pytest.mark.timeout(120)
GROUPS = (
    "Models and cost",
    "What it may do",
    "Channels and people",
    "Memory and jobs",
    "This machine",
)
SETTINGS = "**/api/settings"


def open_page(page: Page) -> None:
    page.goto("/#/settings/settings")
    page.locator(".group").first.wait_for()


def find(page: Page, key: str) -> Locator:
    """The row of this key, which is searched for."""
    page.get_by_label("Find a setting").fill(key)
    return page.get_by_role("listitem").filter(has=page.get_by_text(key, exact=True))


def settings_of(config: dict[str, Any], *writable: str) -> dict[str, Any]:
    return {"config": config, "file": "/home/a/deskhand.yaml", "warnings": [], "keys": writable}


def test_five_groups_hold_every_key_once(page: Page, desk: Desk) -> None:
    open_page(page)
    groups = page.locator(".group")
    expect(groups).to_have_count(5)
    assert tuple(groups.locator("summary strong").all_inner_texts()) == GROUPS
    expect(page.locator(".setting")).to_have_count(0)
    for group in groups.all():
        group.locator("summary").click()
    single = {key for key in keys.iter_paths(Config) if "NAME" not in key}
    comes_true(page, f"document.querySelectorAll('.setting').length >= {len(single)}")
    shown = page.locator(".setting code:first-child").all_inner_texts()
    assert single <= set(shown)
    labels = page.locator(".setting label").all_inner_texts()
    assert len(labels) == len(set(labels))
    assert not page.locator(".setting > p:first-of-type", has_text=re.compile(r"^\s*$")).all()
    where = {
        "permission_mode": "What it may do",
        "defaults.voice": "Channels and people",
        "web.sign_in.issuer": "Channels and people",
        "web.port": "This machine",
        "memory.enabled": "Memory and jobs",
        "budgets.all.usd_per_month": "Models and cost",
    }
    for key, title in where.items():
        row = page.locator(".group", has_text=title).locator(".setting")
        expect(row.get_by_text(key, exact=True)).to_have_count(1)


def test_a_permission_mode_has_a_name_beside_its_id(page: Page) -> None:
    open_page(page)
    row = find(page, "permission_mode")
    expect(row).to_contain_text("Default: Workspace only (workspace-free)")
    options = row.get_by_role("combobox").locator("option")
    assert options.all_inner_texts()[1:] == [
        "Read only (read-only)",
        "Ask first (ask-me)",
        "Workspace only (workspace-free)",
        "Everything (everything)",
    ]
    page.goto("/#/settings/setup")
    open_step(page, "permissions")
    mode = page.get_by_role("radio", name="Ask first")
    expect(mode.locator("code")).to_have_text("ask-me")


def test_search_looks_at_keys_and_explanations(page: Page) -> None:
    open_page(page)
    row = find(page, "memory.max_memories")
    expect(row).to_contain_text("Default: 10000 · a whole number, ≥ 1")
    page.get_by_label("Find a setting").fill("seconds requests HOST")
    expect(page.locator(".setting")).to_have_count(1)
    expect(page.locator(".setting")).to_contain_text("web_fetch.pause_s")
    page.get_by_label("Find a setting").fill("no such thing")
    expect(page.get_by_text("No matching setting.")).to_be_visible()
    page.get_by_role("link", name="Health").click()
    page.get_by_role("link", name="Configuration").click()
    expect(page.get_by_label("Find a setting")).to_have_value("")


def test_a_changed_value_is_marked_found_and_reset(page: Page) -> None:
    open_page(page)
    row = find(page, "defaults.thinking")
    expect(row.get_by_text("changed", exact=True)).to_have_count(0)
    expect(row.locator("option").first).to_have_text("Default: off")
    row.get_by_label("defaults.thinking", exact=True).select_option("high")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_text("changed", exact=True)).to_be_visible()

    page.get_by_label("Find a setting").fill("")
    page.get_by_label("Only changed").check()
    expect(page.locator(".setting").get_by_text("defaults.thinking")).to_be_visible()
    expect(page.locator(".setting").get_by_text("defaults.steps")).to_have_count(0)
    page.get_by_role("button", name="Reset defaults.thinking to the default").click()
    expect(page.locator(".setting").get_by_text("defaults.thinking")).to_have_count(0)
    page.get_by_label("Only changed").uncheck()
    row = find(page, "defaults.thinking")
    expect(row.get_by_label("defaults.thinking", exact=True)).to_have_value("")
    expect(row.get_by_role("button", name=re.compile("Reset"))).to_have_count(0)


def test_an_error_stands_beside_its_field(page: Page) -> None:
    open_page(page)
    row = find(page, "defaults.steps")
    field = row.get_by_label("defaults.steps", exact=True)
    field.fill("many")
    row.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Write a whole number.")
    expect(field).to_have_attribute("aria-invalid", "true")
    described = (field.get_attribute("aria-describedby") or "").split()
    assert described[0] == "key-defaults.steps-error"
    field.fill("60")
    expect(row.get_by_text("Write a whole number.")).to_have_count(0)

    row = find(page, "timezone")
    row.get_by_label("timezone", exact=True).fill("Mars/Base")
    row.get_by_role("button", name="Save").click()
    expect(row.locator(".failed")).to_have_text(
        "unknown timezone 'Mars/Base'; use a name such as 'Europe/Berlin'.", ignore_case=True
    )
    expect(row.get_by_label("timezone", exact=True)).to_have_value("Mars/Base")
    expect(page.locator(".setting .failed")).to_have_count(1)


def test_a_list_is_written_with_commas(page: Page) -> None:
    open_page(page)
    row = find(page, "defaults.deny")
    field = row.get_by_label("defaults.deny", exact=True)
    field.fill("shell, write_*")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_text("changed", exact=True)).to_be_visible()
    config = json.loads(page.locator(".as-is").text_content() or "")
    assert config["defaults"]["deny"] == ["shell", "write_*"]
    expect(field).to_have_value("shell, write_*")
    row.get_by_role("button", name=re.compile("Reset")).click()
    expect(field).to_have_value("")


def test_what_opens_the_machine_is_shown_and_set_elsewhere(page: Page) -> None:
    open_page(page)
    row = find(page, "web.port")
    expect(row).to_contain_text("deskhand config set web.port …")
    expect(row.get_by_text("restart", exact=True)).to_be_visible()
    expect(row.get_by_role("textbox")).to_have_count(0)


def test_a_value_that_the_environment_sets_is_not_reset(routed_page: Page) -> None:
    page = routed_page
    found = settings_of({"defaults": {"steps": 7}}, "defaults.steps")
    page.route(SETTINGS, lambda route: route.fulfill(json=found))
    open_page(page)
    row = find(page, "defaults.steps")
    row.get_by_role("button", name=re.compile("Reset")).click()
    expect(row).to_contain_text("an environment variable does")


def test_a_value_like_the_default_is_not_changed_and_a_secret_is_not_shown(
    routed_page: Page,
) -> None:
    page = routed_page
    config = {"log_level": "info", "undo": {"days": 30}, "jobs": {"mqtt": {"secret": "[secret]"}}}
    found = settings_of(config, "log_level", "undo.days", "jobs.mqtt.secret")
    page.route(SETTINGS, lambda route: route.fulfill(json=found))
    open_page(page)
    expect(page.get_by_text("(1)")).to_be_visible()
    page.get_by_label("Only changed").check()
    field = page.get_by_label("jobs.mqtt.secret", exact=True)
    expect(field).to_have_value("")
    expect(field).to_have_attribute("placeholder", "hidden")


def test_while_it_is_loaded_and_after_an_error(routed_page: Page) -> None:
    page = routed_page
    held: list[Route] = []
    page.route(SETTINGS, lambda route: held.append(route))
    page.goto("/#/settings/settings")
    expect(page.locator(".page .spin")).to_be_visible()
    while not held:
        page.wait_for_timeout(20)
    problem = {"code": "failed", "message": "The file is locked.", "request_id": "r1"}
    held[0].fulfill(status=500, json={"error": problem})
    expect(page.get_by_role("alert").filter(has_text="The file is locked.")).to_be_visible()
    page.unroute(SETTINGS)
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".group")).to_have_count(5)


def test_ten_thousand_keys_are_drawn_in_parts(routed_page: Page) -> None:
    page = routed_page
    agents: dict[str, Any] = {f"agent{n}": {} for n in range(400)}
    agents["agent399"] = {"steps": 9}
    inherited = [key for key in keys.iter_paths(Config) if key.startswith("agents.NAME.")]
    found = settings_of({"agents": agents}, *inherited)
    assert len(inherited) * 400 > 10_000
    page.route(SETTINGS, lambda route: route.fulfill(json=found))
    open_page(page)
    page.get_by_label("Find a setting").fill("agents")
    expect(page.locator(".setting")).not_to_have_count(0)
    assert page.locator(".setting").count() <= 500
    page.get_by_role("button", name=re.compile("Show more")).first.click()
    page.get_by_label("Only changed").check()
    expect(page.locator(".setting")).to_have_count(1)
    expect(page.locator(".setting")).to_contain_text("Default: as for all agents")
    expect(page.locator(".group h3")).to_have_text("Agent agent399")
