"""The first five minutes of a newcomer, from the command to a phone, with nothing typed into a
file: the real command, a real browser, and servers of their own in the places of a provider and of
Telegram."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import Browser, Page, expect

from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from deskhand.testing.telegram.server import TelegramServer

from .conftest import Desk, answer, say, watched
from .states import open_step

ADA = 77
PROBED = Behaviour(match="weather", calls=(FakeCall("weather", '{"city": "Paris"}'),))


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as opened:
        yield opened


@pytest.fixture
def provider(portal: BlockingPortal) -> Iterator[FakeLLM]:
    with portal.wrap_async_context_manager(FakeLLM()) as fake:
        fake.script(PROBED, Behaviour(text="I am a real model."))
        yield fake


@pytest.fixture
def platform(portal: BlockingPortal) -> Iterator[TelegramServer]:
    with portal.wrap_async_context_manager(TelegramServer()) as server:
        yield server


@pytest.fixture
def link(tmp_path: Path, provider: FakeLLM, platform: TelegramServer) -> Iterator[str]:
    """What `deskhand open` prints in an empty home."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "DESKHAND_WEB__PORT": port,
        "DESKHAND_PROVIDERS__GROQ__BASE_URL": provider.url,
        "DESKHAND_CHANNELS__TELEGRAM__BASE_URL": platform.base_url.removesuffix("/bot"),
    }
    command = [sys.executable, "-P", "-m", "deskhand", "open"]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said, cwd=tmp_path)
    try:
        yield until(lambda: re.search(r"http://\S+#login=\S+", (tmp_path / "said").read_text()))[0]
    finally:
        process.terminate()
        process.wait(30)


def until(found: Callable[[], re.Match[str] | None]) -> re.Match[str]:
    end = time.monotonic() + 30
    while (value := found()) is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


def reply(platform: TelegramServer, pattern: str) -> re.Match[str]:
    """What the bot says to her."""
    return until(lambda: re.search(pattern, "\n".join(platform.chats.said(ADA))))


@pytest.mark.timeout(120)
def test_from_the_command_to_a_phone(
    browser: Browser, link: str, portal: BlockingPortal, platform: TelegramServer, tmp_path: Path
) -> None:
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(30_000)
    page = context.new_page()
    broken = watched(page)
    page.goto(link)
    page.get_by_role("button", name="Write three ideas").click()
    page.keyboard.press("Enter")
    expect(answer(page, "They are in ideas.txt")).to_be_visible()
    expect(page.get_by_text("Changed ideas.txt")).to_be_visible()
    assert (
        (tmp_path / ".deskhand" / "agents" / "default" / "workspace" / "ideas.txt")
        .read_text()
        .startswith("1.")
    )
    assert "login" not in page.url, "the code is gone from the address"

    page.get_by_role("link", name="Settings").click()
    page.goto(f"{page.url.partition('#')[0]}#/settings/setup")
    _choose_a_model(page)
    page.get_by_role("button", name="Next step").click()
    page.get_by_label("Name", exact=True).fill("Ada")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Next step").click()
    page.get_by_role("radio", name="ask-me").click()
    expect(page.get_by_role("radio", name="Ask first")).to_have_attribute("aria-checked", "true")
    _meet_on_telegram(page, portal, platform)

    page.goto(f"{page.url.partition('#')[0]}#/")
    say(page, "Who are you?")
    expect(answer(page, "I am a real model.")).to_be_visible()
    page.goto(f"{page.url.partition('#')[0]}#/settings/health")
    page.get_by_text(re.compile(r"\d+ parts, one by one")).click()
    expect(page.get_by_text("channel telegram")).to_be_visible()
    assert broken == []
    context.close()
    config = (tmp_path / ".deskhand" / "deskhand.yaml").read_text()
    assert (
        "ask-me" in config
        and "groq" in config
        and "gsk-" not in config
        and platform.token not in config
    )


def _choose_a_model(page: Page) -> None:
    page.get_by_label("Or a key for").fill("groq")
    page.get_by_label("Key", exact=True).fill("gsk-a-key-of-mine")
    page.get_by_role("button", name="Test and save").click()
    expect(page.get_by_text("and it calls tools")).to_be_visible()


def _meet_on_telegram(page: Page, portal: BlockingPortal, platform: TelegramServer) -> None:
    """She pastes the token, writes to the bot, reads its code, and lets herself in."""
    open_step(page, "channel")
    page.get_by_label("Bot token").fill(platform.token)
    page.get_by_role("button", name="Connect Telegram").click()
    expect(page.get_by_role("link", name="desk_bot")).to_have_attribute(
        "href", "https://t.me/desk_bot"
    )
    portal.call(platform.chats.says, ADA, "hello")
    code = reply(platform, r"[A-Z0-9]{8}")[0]
    page.goto(f"{page.url.partition('#')[0]}#/settings/people")
    row = page.get_by_role("listitem").filter(has_text=code)
    row.get_by_label("Role").select_option("this is me")
    row.get_by_role("button", name="Approve").click()
    reply(platform, "you are my owner now")
    portal.call(platform.chats.says, ADA, "and who are you?")
    reply(platform, "I am a real model.")


def test_what_was_used_before_is_offered(page: Page, desk: Desk) -> None:
    (desk.home / ".operator").mkdir()
    try:
        (desk.home / ".operator" / "operator.yaml").write_text("{}")
        page.goto("/#/settings/setup")
        note = page.get_by_text("operator-ai was used here (~/.operator).")
        expect(note).to_be_visible()
        expect(note).to_contain_text("deskhand import")
    finally:
        shutil.rmtree(desk.home / ".operator")


def test_each_step_can_be_skipped_and_taken_later(page: Page) -> None:
    page.goto("/#/settings/setup")
    steps = page.locator(".step")
    expect(steps).to_have_count(5)
    expect(steps.nth(0)).to_contain_text("answers now")
    for number in (1, 2, 3, 4):
        head = steps.nth(number).get_by_role("button").first
        expect(head).to_have_attribute("aria-expanded", "true")
        page.get_by_role("button", name="Skip this step").click()
        expect(steps.nth(number)).to_contain_text("Skipped")
    expect(page.locator("#steps-done")).to_be_focused()
    page.reload()
    expect(steps.nth(1)).to_contain_text("Skipped")
    open_step(page, "person")
    expect(page.get_by_label("Name", exact=True)).to_be_visible()


def test_a_key_fits_into_its_field(page: Page) -> None:
    """Also where the list and the pages of the settings leave little room."""
    page.goto("/#/settings/setup")
    open_step(page, "model")
    page.get_by_text("Another address or model").click()
    for width in (1440, 1024, 800, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for label in ("Key", "Base URL"):
            box = page.get_by_label(label, exact=True).bounding_box()
            assert box is not None and box["width"] > 100, (label, width)


def test_what_the_script_showed_becomes_a_task_of_the_model(page: Page) -> None:
    page.goto("/#/settings/setup")
    for _ in range(4):
        page.get_by_role("button", name=re.compile("Skip this step|Next step")).click()
    task = page.locator(".examples button").first
    words = task.inner_text()
    task.click()
    expect(page.get_by_role("heading", name=words)).to_be_visible()
    expect(page.locator(".answer")).to_be_visible()
    page.goto("/#/")
    expect(page.get_by_role("heading", name="What should we do")).to_be_visible()
    expect(page.get_by_text("first steps are left")).to_have_count(0)
