"""The Deskhands in which the pictures are taken: a new one, one in use, and one with very much in
it."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from anyio.from_thread import start_blocking_portal
from pictures import ROOT
from playwright.sync_api import Browser, StorageState
from record_terminal import Recorder

from deskhand.testing.llm import FakeLLM
from tests.page.conftest import Desk, desk_at, say, state_of

from . import scenes

OLLAMA = 11434
MODELS = b'{"data": [{"id": "qwen3:8b"}, {"id": "gemma3:12b"}, {"id": "llama3.2:3b"}]}'


class House:
    """A Deskhand to take pictures in. `provider` plays the models of a new one, and `terminal` is
    the one in which that was started."""

    def __init__(self, url: str, home: Path, signed: StorageState) -> None:
        self.url = url
        self.home = home
        self.signed = signed
        self.desk: Desk | None = None
        self.provider: FakeLLM | None = None
        self.terminal: Recorder | None = None


@contextmanager
def open_desk(browser: Browser, home: Path) -> Iterator[House]:
    """One in use: a script answers, there are files, and conversations of before."""
    scenes.write_home(home)
    desk = desk_at(home)
    scenes.write_files(home / "agents" / "default" / "workspace")
    house = House(desk.url, home, state_of(browser, desk))
    house.desk = desk
    try:
        _begin_conversations(browser, house)
        yield house
    finally:
        desk.kill()


def _begin_conversations(browser: Browser, house: House) -> None:
    with browser.new_context(storage_state=house.signed, base_url=house.url) as context:
        page = context.new_page()
        for sentence in scenes.BEGUN:
            page.goto("/#/")
            page.get_by_role("heading", name="What should we do").wait_for()
            say(page, sentence)
            page.locator(".did").wait_for()


@contextmanager
def open_crowded(browser: Browser, home: Path) -> Iterator[House]:
    """One with 5,000 conversations, and one of 10,000 messages among them."""
    crowd = ROOT / "tests" / "page" / "crowd.py"
    subprocess.run([sys.executable, str(crowd), str(home)], check=True)
    desk = desk_at(home)
    try:
        yield House(desk.url, home, state_of(browser, desk))
    finally:
        desk.kill()


@contextmanager
def open_new(browser: Browser, home: Path) -> Iterator[House]:
    """A new one, as `deskhand open` starts it in an empty home."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(FakeLLM()) as fake:
        env = {
            "PATH": f"{ROOT / '.venv' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "PS1": "$ ",
            "DESKHAND_WEB__PORT": str(port),
            "DESKHAND_PROVIDERS__GROQ__BASE_URL": fake.url,
        }
        shell = Recorder(["/bin/bash", "--norc", "--noprofile", "-i"], env, 78, 22)
        try:
            shell.wait_for("$")
            shell.type("deskhand open\r")
            shell.wait_for("#login=")
            link = re.search(r"http://\S+#login=\S+", shell.raw.decode())  # the screen wraps it
            assert link is not None
            context = browser.new_context()
            page = context.new_page()
            page.goto(link[0])
            page.get_by_label("Message to Deskhand").wait_for()
            house = House(f"http://127.0.0.1:{port}", home, context.storage_state())
            context.close()
            house.provider = fake
            house.terminal = shell
            yield house
        finally:
            shell.close()


@contextmanager
def open_ollama() -> Iterator[None]:
    """Something that lists models where Ollama listens, unless there is one."""

    class Listed(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(MODELS)

        def log_message(self, format: str, *args: object) -> None:
            pass

    try:
        server = ThreadingHTTPServer(("127.0.0.1", OLLAMA), Listed)
    except OSError:
        yield
        return
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
