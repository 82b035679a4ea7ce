"""Firefox, driven over WebDriver BiDi (https://www.w3.org/TR/webdriver-bidi/).

Playwright drives a Firefox of its own. That of a distribution it drives only where the policy of a
page allows `eval`, which ours does not.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

WAIT_S = 20.0
"""For what a page should show."""
PREFERENCES = {"ui.prefersReducedMotion": 1}
KEYS = {
    "ArrowDown": "\ue015",
    "ArrowLeft": "\ue012",
    "ArrowRight": "\ue014",
    "ArrowUp": "\ue013",
    "Alt": "\ue00a",
    "Backspace": "\ue003",
    "Control": "\ue009",
    "End": "\ue010",
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Home": "\ue011",
    "Shift": "\ue008",
    "Tab": "\ue004",
}
"""https://www.w3.org/TR/webdriver/#keyboard-actions"""
COVERED = """element => {
  element.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
  const box = element.getBoundingClientRect();
  const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return element.contains(hit) ? "" : JSON.stringify(`${hit?.outerHTML.slice(0, 200)} covers it`);
}"""
LEFT = re.compile("interrupted while the page was loading|can.t establish a connection")
"""What Firefox says about a stream that was open when somebody left the page."""

Json = dict[str, Any]


class BidiError(Exception):
    """Firefox refused a command."""


@contextmanager
def start(profile: Path, preferences: Json | None = None) -> Iterator[Firefox]:
    """One process, with a new profile in this folder."""
    chosen = PREFERENCES | (preferences or {})
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(chosen[name])});" for name in chosen)
    (profile / "user.js").write_text("\n".join(lines))
    arguments = ("--headless", "--profile", str(profile), "--remote-debugging-port", "0")
    with subprocess.Popen(
        ["firefox-esr", *arguments, "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            with connect(f"{_read_address(process)}/session", max_size=None) as socket:
                yield Firefox(socket)
        finally:
            process.terminate()
            process.wait(30)


def _read_address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r"BiDi listening on (ws://\S+)", line):
            drain = threading.Thread(target=process.stderr.read, daemon=True)
            drain.start()  # it would wait for a full pipe
            return found[1]
    raise BidiError(f"Firefox ended: {said}")


class Firefox:
    """Commands, and events on their way to the tabs."""

    def __init__(self, socket: ClientConnection) -> None:
        self.tabs: dict[str, Tab] = {}
        self._socket = socket
        self._number = 0
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])

    def send(self, method: str, /, **params: object) -> Json:
        """Give a command, and return its result. Raises BidiError where Firefox refuses it."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            said: Json = json.loads(self._socket.recv(timeout=60))
            if said.get("id") != self._number:
                self._note(said)
            elif said["type"] == "error":
                raise BidiError(f"{method}: {said['message']}")
            else:
                return dict(said["result"])

    def listen(self, seconds: float) -> None:
        """Take in the events of this time."""
        over = time.monotonic() + seconds
        while (left := over - time.monotonic()) > 0:
            try:
                self._note(json.loads(self._socket.recv(timeout=left)))
            except TimeoutError:
                return

    def _note(self, event: Json) -> None:
        params = event.get("params", {})
        tab = self.tabs.get(params.get("context") or params.get("source", {}).get("context"))
        if tab is None:
            return
        if params.get("level") == "error" and not LEFT.search(params["text"]):
            tab.errors.append(str(params["text"]))
        if event["method"] == "network.beforeRequestSent":
            tab.requests.append(params["request"]["url"])

    def open(self) -> Tab:
        """A tab that shares nothing with others."""
        user = self.send("browser.createUserContext")["userContext"]
        tab = self.send("browsingContext.create", type="tab", userContext=user)
        opened = self.tabs[tab["context"]] = Tab(self, tab["context"], user)
        opened.resize(1280, 800)
        return opened


class Tab:
    """A page, as a person uses it: elements are found by role and name, as Firefox tells them to a
    screen reader. `errors` is what its console said was wrong, `requests` are the addresses that
    it asked for."""

    def __init__(self, firefox: Firefox, context: str, user: str) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._firefox = firefox
        self._context = context
        self._user = user

    def close(self) -> None:
        """Close it, and forget what it stored."""
        self._firefox.send("browser.removeUserContext", userContext=self._user)
        del self._firefox.tabs[self._context]

    def goto(self, url: str) -> None:
        self._send("browsingContext.navigate", url=url, wait="interactive")

    def reload(self) -> None:
        self._send("browsingContext.reload", wait="interactive")

    def resize(self, width: int, height: int) -> None:
        self._send("browsingContext.setViewport", viewport={"width": width, "height": height})

    def frames(self) -> list[Tab]:
        """The frames in it."""
        found = self._firefox.send("browsingContext.getTree", root=self._context)["contexts"]
        return [Tab(self._firefox, child["context"], self._user) for child in found[0]["children"]]

    def evaluate(self, expression: str) -> Any:
        """What this comes to in the page, as JSON has it. Raises BidiError where it throws."""
        function = f"async () => JSON.stringify(await ({expression})) ?? 'null'"
        return self._call(function)

    def wait_until(self, expression: str) -> None:
        """Wait until this is true in the page."""
        self.wait_for(lambda: self.evaluate(expression), expression)

    def wait_for(self, question: Callable[[], Any], what: str = "") -> None:
        """Wait until this says yes."""
        over = time.monotonic() + WAIT_S
        while not question():
            assert time.monotonic() < over, f"it did not come true: {what}"
            self._firefox.listen(0.05)

    def see(self, selector: str, text: str = "", count: int | None = None) -> None:
        """Wait until such elements with this text are shown: so many, or one at least."""
        found = (
            f"[...document.querySelectorAll({json.dumps(selector)})].filter(one =>"
            f" one.checkVisibility() && one.textContent.includes({json.dumps(text)})).length"
        )
        self.wait_until(f"{found} === {count}" if count is not None else f"{found} > 0")

    def find(self, role: str, name: str, *, inside: str = "body") -> Json:
        """The element with this role and exactly this name. Waits for it."""
        locator = {"type": "accessibility", "value": {"role": role, "name": name}}
        over = time.monotonic() + WAIT_S
        while not (found := self._locate(locator, inside)):
            assert time.monotonic() < over, f"there is no {role} {name!r} in {inside}"
            self._firefox.listen(0.1)
        return found[0]

    def click(self, role: str, name: str, *, inside: str = "body") -> None:
        """Click it with the mouse, as soon as nothing covers it."""
        over = time.monotonic() + WAIT_S
        while problem := self._hit(self.find(role, name, inside=inside)):
            assert time.monotonic() < over, f"{role} {name!r} cannot be clicked: {problem}"
            self._firefox.listen(0.05)

    def _hit(self, element: Json) -> str:
        """Click an element. Returns what prevents it."""
        try:
            if covered := self._call(COVERED, element):
                return str(covered)
            origin = {"type": "element", "element": element}
            moves = [
                {"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
                {"type": "pointerDown", "button": 0},
                {"type": "pointerUp", "button": 0},
            ]
            self._act({"type": "pointer", "id": "mouse", "actions": moves})
        except BidiError as error:  # it was drawn anew meanwhile
            return str(error)
        return ""

    def scroll(self, selector: str, pixels: int) -> None:
        """Turn the wheel over this element."""
        (element,) = self._locate({"type": "css", "value": selector}, "body")
        origin = {"type": "element", "element": element}
        turn = {"type": "scroll", "x": 0, "y": 0, "deltaX": 0, "deltaY": pixels, "origin": origin}
        self._act({"type": "wheel", "id": "wheel", "actions": [turn]})

    def press(self, keys: str) -> None:
        """Press a key, such as `Enter` or `Control+k`."""
        values = [KEYS.get(key, key) for key in keys.split("+")]
        down = [{"type": "keyDown", "value": value} for value in values]
        up = [{"type": "keyUp", "value": value} for value in reversed(values)]
        self._act({"type": "key", "id": "keyboard", "actions": [*down, *up]})

    def type(self, text: str) -> None:
        """Type this into what has the focus."""
        each = [{"type": kind, "value": sign} for sign in text for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keyboard", "actions": each})

    def fill(self, role: str, name: str, text: str, *, inside: str = "body") -> None:
        """Type this in place of what is in a field."""
        self._call("element => element.focus()", self.find(role, name, inside=inside))
        self.press("Control+a")
        self.press("Backspace")
        self.type(text)

    def attach(self, selector: str, files: Sequence[Path]) -> None:
        """Choose these in a field for files."""
        (element,) = self._locate({"type": "css", "value": selector}, "body")
        self._send("input.setFiles", element=element, files=[str(file) for file in files])

    def _send(self, method: str, /, **params: object) -> Json:
        return self._firefox.send(method, context=self._context, **params)

    def _act(self, source: Json) -> None:
        self._send("input.performActions", actions=[source])

    def _locate(self, locator: Json, inside: str) -> list[Json]:
        """What it finds, as it is named in commands; nothing where the page is just replaced."""
        params: Json = {"locator": locator}
        if inside != "body":
            params["startNodes"] = self._locate({"type": "css", "value": inside}, "body")
            if not params["startNodes"]:
                return []
        try:
            found = self._send("browsingContext.locateNodes", **params)["nodes"]
        except BidiError:
            return []
        return [{"sharedId": node["sharedId"]} for node in found]

    def _call(self, function: str, *elements: Json) -> Any:
        came = self._firefox.send(
            "script.callFunction",
            functionDeclaration=function,
            arguments=elements,
            target={"context": self._context},
            awaitPromise=True,
        )
        if came["type"] == "exception":
            raise BidiError(f"{function[:300]}: {came['exceptionDetails']['text']}")
        value = came["result"].get("value")
        return json.loads(value) if value else None
