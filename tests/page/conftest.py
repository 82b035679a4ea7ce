"""One browser and one Deskhand for all of these tests; each test has a browser context of its
own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Dialog,
    Locator,
    Page,
    StorageState,
    expect,
    sync_playwright,
)

WAIT_MS = 20_000
"""For what a page should show. It looks for a lost server every four seconds."""

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
DESK = Path(__file__).parent / "desk.py"


class Desk:
    """A Deskhand process on `home`. It can be killed and started again, on the same port. `long` is
    a conversation of 5,000 events."""

    long = "long"

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = ""
        self.login = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        port = int(self.url.rpartition(":")[2] or 0)
        config: dict[str, object] = {
            "defaults": {"models": ["scripted/desk"]},
            "web": {"port": port},
        }
        if (self.home / "small").exists():
            config["providers"] = {"scripted": {"tools": "fenced"}}
        if (self.home / "push").exists():
            config["web"] = {
                "port": port,
                "push": {"services": [(self.home / "push").read_text()]},
            }
        if (self.home / "servers").exists():
            config["mcp"] = msgspec.json.decode((self.home / "servers").read_bytes())
        (self.home / "deskhand.yaml").write_bytes(msgspec.json.encode(config))
        with (self.home / "stderr").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(DESK), str(self.home)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._read()

    def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, (self.home / "stderr").read_text()
        said = json.loads(line)
        self.url = said["url"]
        self.login = said["login"]

    def another_login(self) -> None:
        """A new link to log in with."""
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._read()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def release(self) -> None:
        """Let go on what waits in a reply or a tool."""
        (self.home / "go").touch()

    def hold(self) -> None:
        (self.home / "go").unlink(missing_ok=True)


def desk_at(home: Path) -> Desk:
    found = Desk(home)
    (home / "agents" / "default" / "workspace").mkdir(parents=True)
    (home / "agents" / "default" / "workspace" / "notes.txt").write_text(
        "Milk, bread, a new tent.\n"
    )
    found.start()
    return found


def state_of(browser: Browser, desk: Desk) -> StorageState:
    """What a browser keeps that opened a new link."""
    desk.another_login()
    context = browser.new_context()
    page = context.new_page()
    page.goto(desk.login)
    page.get_by_label("Message to Deskhand").wait_for()
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "/usr/bin/chromium", args=[*ARGUMENTS]
        )
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("desk")
    (home / "long").touch()
    found = desk_at(home)
    yield found
    found.kill()


@pytest.fixture(scope="package")
def signed(browser: Browser, shared: Desk) -> StorageState:
    return state_of(browser, shared)


@pytest.fixture
def desk(shared: Desk) -> Iterator[Desk]:
    """The shared one; what a reply waits for is not there yet."""
    shared.hold()
    yield shared
    shared.release()


@pytest.fixture
def context(browser: Browser, desk: Desk, signed: StorageState) -> Iterator[BrowserContext]:
    made = browser.new_context(storage_state=signed, base_url=desk.url, reduced_motion="reduce")
    made.set_default_timeout(WAIT_MS)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab with a new conversation. Nothing may break in it, and nothing be refused by its
    policy."""
    opened = context.new_page()
    broken = watched(opened)
    opened.goto("/")
    opened.get_by_label("Message to Deskhand").wait_for()
    yield opened
    assert broken == []


@pytest.fixture
def routed_page(browser: Browser, desk: Desk, signed: StorageState) -> Iterator[Page]:
    """The same for a test that answers requests itself: what a service worker sends on passes it
    by, from the moment when that worker takes the page over."""
    made = browser.new_context(
        storage_state=signed,
        base_url=desk.url,
        reduced_motion="reduce",
        service_workers="block",
    )
    made.set_default_timeout(WAIT_MS)
    opened = made.new_page()
    broken = watched(opened)
    opened.goto("/")
    opened.get_by_label("Message to Deskhand").wait_for()
    yield opened
    assert broken == []
    made.close()


def watched(page: Page) -> list[str]:
    """What broke in a tab, from now on."""
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.on(
        "console",
        lambda said: (
            broken.append(said.text)
            if ("Security Policy" in said.text or "Trusted" in said.text)
            and not is_of_frame(said.text)
            else None
        ),
    )
    return broken


def is_of_frame(said: str) -> bool:
    """Whether a handler in an attribute was reported of what others made, whose policy alone has a
    nonce. Chromium reports it as soon as it is read, before the frame makes a function of it."""
    return "inline event handler" in said and "'nonce-" in said


def comes_true(page: Page, expression: str, within_s: float = 30.0) -> None:
    """Wait until this is true in the page. Playwright's own way evaluates text in the page, which
    our policy refuses as soon as it has to ask twice."""
    over = time.monotonic() + within_s
    while not page.evaluate(expression):
        assert time.monotonic() < over, f"it did not come true: {expression}"
        page.wait_for_timeout(50)


def say(page: Page, text: str) -> None:
    page.get_by_label("Message to Deskhand").fill(text)
    page.keyboard.press("Enter")


def answer(page: Page, text: str) -> Locator:
    """An answer with this in it."""
    return page.locator(".answer", has_text=text)


def dismissed(page: Page) -> list[str]:
    """What dialogs said that opened in this tab, from now on: a script that ran would open one."""
    said: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    return said


@pytest.fixture
def german(browser: Browser, desk: Desk, signed: StorageState) -> Iterator[Page]:
    made = browser.new_context(storage_state=signed, base_url=desk.url, locale="de-AT")
    made.set_default_timeout(WAIT_MS)
    page = made.new_page()
    broken = watched(page)
    page.goto("/")
    page.locator("#composer").wait_for()
    yield page
    assert broken == []
    made.close()
