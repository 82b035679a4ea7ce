"""Has Chromium show one page and gives what its scripts made of it. It runs inside the sandbox,
once for each page.

It speaks the protocol of https://chromedevtools.github.io/devtools-protocol/ over two pipes:
messages are JSON, each ended by a zero byte.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
import time
from typing import Any

_DISABLED_FEATURES = (
    "Translate,MediaRouter,OptimizationHints,NetworkTimeServiceQuerying,AimServerEligibilityEnabled,"
    "AimServerRequestOnStartupEnabled,PreconnectToSearch,LensOverlay"
)
CONFINED_FLAGS = (
    # Our sandbox is around it; it cannot make its own inside.
    "--headless",
    "--no-sandbox",
    "--no-zygote",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--disable-dev-shm-usage",
    "--password-store=basic",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--mute-audio",
    "--disable-domain-reliability",
    "--no-pings",
    "--dns-prefetch-disable",
    "--disable-quic",
    "--deny-permission-prompts",
    "--js-flags=--max-old-space-size=384",
    "--remote-debugging-pipe",
    # Nothing but the proxy: no names are looked up, nothing goes out beside it, not even to this
    # very machine.
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    f"--disable-features={_DISABLED_FEATURES}",
    # What it would ask its maker by itself goes nowhere.
    "--google-base-url=http://127.0.0.1:9",
    "--gaia-url=http://127.0.0.1:9",
    # Version 156 asks for parts of itself although their updates are switched off.
    "--component-updater=url-source=http://127.0.0.1:9/",
    "--disable-field-trial-config",
    "--disable-search-engine-choice-screen",
    "--disable-client-side-phishing-detection",
    "--metrics-recording-only",
)
"""How every Chromium of ours is started, in the sandbox and with no way out but the proxy."""
_FLAGS = (
    *CONFINED_FLAGS,
    "--user-data-dir=/tmp/profile",
    "--disk-cache-size=1",
    "--block-new-web-contents",
    "--blink-settings=imagesEnabled=false",
    "--window-size=1280,2000",
)
_PAGE_TYPES = ("text/", "application/xhtml+xml", "application/xml", "application/json")
MAX_HTML_CHARS = 5_000_000
_MAX_MESSAGE_BYTES = 40 << 20
_MAX_LOADED_BYTES = 40 << 20
_ANSWER_S = 5.0
_REST_S = 2.0
# What is not seen, marked for whoever reads the markup. In a world of its own: nothing that it
# calls is the page's.
_MARK_HIDDEN_SCRIPT = """(() => {
  const seen = {checkOpacity: true, checkVisibilityCSS: true, contentVisibilityAuto: false}
  for (const each of document.querySelectorAll('body *')) {
    const words = [...each.childNodes].some(n => n.nodeType === 3 && n.data.trim())
    if (!words || each.closest('script, style, noscript, template, option')) continue
    const size = parseFloat(getComputedStyle(each).fontSize)
    if (!each.checkVisibility(seen) || size < 2) each.setAttribute('hidden', '')
  }
})()"""


class BrowserFailed(Exception):
    """There is no page to give. The message completes a sentence about it."""


class Browser:
    """A running Chromium with one page."""

    def __init__(self, program: str, proxy: str, until: float) -> None:
        self._until = until
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # Out of the way: 3 and 4 are the numbers that it expects.
        self._in = _duplicate_above_9(ours_in)
        self._out = _duplicate_above_9(ours_out)
        theirs_in = _duplicate_above_9(theirs_in)
        theirs_out = _duplicate_above_9(theirs_out)
        os.closerange(3, 10)
        os.dup2(theirs_in, 3)  # where it reads, and 4 is where it writes
        os.dup2(theirs_out, 4)
        quiet = subprocess.DEVNULL
        argv = [program, *_FLAGS, f"--proxy-server={proxy}", "about:blank"]
        self._process = subprocess.Popen(
            argv, stdin=quiet, stdout=quiet, stderr=quiet, pass_fds=(3, 4)
        )
        for each in (3, 4, theirs_in, theirs_out):
            os.close(each)
        self._poll = select.poll()
        self._poll.register(self._in, select.POLLIN | select.POLLHUP)
        self._buffer = bytearray()
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.session = self.frame = ""
        self.document: dict[str, Any] = {}
        self.loaded_at: float | None = None
        self.loaded_bytes = 0
        self.crashed = False

    def call(
        self, method: str, params: dict[str, Any] | None = None, wait_s: float = 60.0
    ) -> dict[str, Any]:
        """Send a command and wait for its answer. Raises Failed where it is refused,
        TimeoutError."""
        number = self._send(method, params)
        until = min(self._until, time.monotonic() + wait_s)
        while number not in self._answers:
            self.listen(until)
            if time.monotonic() >= until and number not in self._answers:
                raise TimeoutError(method)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise BrowserFailed(
                f"the browser refused {method}: {str(answer['error'].get('message', ''))[:200]}"
            )
        found: dict[str, Any] = answer.get("result", {})
        return found

    def _send(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params or {}}
        if self.session:
            message["sessionId"] = self.session
        try:
            os.write(self._out, json.dumps(message).encode() + b"\0")
        except OSError as error:
            raise BrowserFailed("the browser has ended") from error
        return self._number

    def listen(self, until: float) -> None:
        """Take in what the browser says next; return at `until` if it says nothing."""
        if not self._poll.poll(max(0, int((until - time.monotonic()) * 1000) + 1)):
            return
        piece = os.read(self._in, 1 << 20)
        if not piece:
            raise BrowserFailed(
                "the browser has ended: the page used too much memory or crashed it"
            )
        self._buffer += piece
        if len(self._buffer) > _MAX_MESSAGE_BYTES:
            raise BrowserFailed("the page is too large")
        *whole, rest = self._buffer.split(b"\0")
        self._buffer = bytearray(rest)
        for each in whole:
            message = json.loads(each)
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                self._on_event(message["method"], message.get("params", {}))

    def _on_event(self, what: str, said: dict[str, Any]) -> None:
        match what:
            case "Network.responseReceived" if (
                said.get("type") == "Document" and said.get("frameId") == self.frame
            ):
                self.document = said["response"]
            case "Network.dataReceived":
                self.loaded_bytes += int(said.get("dataLength", 0))
            case "Page.loadEventFired":
                self.loaded_at = time.monotonic()
            case "Page.frameStartedLoading" if said.get("frameId") == self.frame:
                self.loaded_at = None  # its scripts lead on to another page
            case "Page.javascriptDialogOpening":
                self._send(
                    "Page.handleJavaScriptDialog", {"accept": said.get("type") == "beforeunload"}
                )
            case "Inspector.targetCrashed":
                self.crashed = True

    def close(self) -> None:
        self._process.kill()


def _duplicate_above_9(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)


def load_page(browser: Browser, url: str, wait_s: float, until: float) -> dict[str, object]:
    """The page at `url`, as it is `wait_s` seconds after it has loaded. Raises Failed,
    TimeoutError."""
    _open_page(browser)
    begun = browser.call("Page.navigate", {"url": url}, until - time.monotonic())
    if error := begun.get("errorText"):
        raise BrowserFailed(_explain_error(str(error), browser))
    notes = _wait_for_load(browser, wait_s, until)
    address = str(browser.call("Target.getTargetInfo")["targetInfo"]["url"])
    if not address.startswith(("http://", "https://")):
        if address.startswith("chrome-error:"):
            raise BrowserFailed(_explain_error("", browser))
        raise BrowserFailed(f"it redirected to {address[:80]!r}")
    media = str(browser.document.get("mimeType", "text/html"))
    if not media.startswith(_PAGE_TYPES):
        raise BrowserFailed(f"it is {media[:60]}, not a web page; read it with tier='plain'")
    html = _read_markup(browser)
    if len(html) > MAX_HTML_CHARS:
        notes.append(f"only the first {MAX_HTML_CHARS:,} characters of its markup are read")
    status = int(browser.document.get("status", 200))
    return {"url": address, "status": status, "html": html[:MAX_HTML_CHARS], "notes": notes}


def _open_page(browser: Browser) -> None:
    made = browser.call("Target.createTarget", {"url": "about:blank"})
    attached = browser.call(
        "Target.attachToTarget", {"targetId": made["targetId"], "flatten": True}
    )
    agent = str(browser.call("Browser.getVersion")["userAgent"]).replace("Headless", "")
    browser.call("Browser.setDownloadBehavior", {"behavior": "deny"})
    browser.session = str(attached["sessionId"])
    for each in ("Page.enable", "Network.enable", "Inspector.enable"):
        browser.call(each)
    browser.call("Network.setUserAgentOverride", {"userAgent": agent})
    browser.frame = str(browser.call("Page.getFrameTree")["frameTree"]["frame"]["id"])


def _wait_for_load(browser: Browser, wait_s: float, until: float) -> list[str]:
    """Let it load, and its scripts run. What was not waited for."""
    until -= _ANSWER_S + _REST_S
    while time.monotonic() < until:
        if browser.crashed:
            raise BrowserFailed("the page used too much memory or crashed the browser")
        if browser.loaded_bytes > _MAX_LOADED_BYTES:
            browser.call("Page.stopLoading")
            return [f"it was stopped after {_MAX_LOADED_BYTES >> 20} MB"]
        if browser.loaded_at is not None and time.monotonic() >= browser.loaded_at + wait_s:
            return []
        rest = until if browser.loaded_at is None else min(until, browser.loaded_at + wait_s)
        browser.listen(rest)
    return ["it was still loading, or its scripts still running, when the time was up"]


def _read_markup(browser: Browser) -> str:
    """The page's markup now. Scripts that never rest are ended first."""
    try:
        return _get_outer_html(browser, _REST_S)
    except TimeoutError:
        for method, params in (
            ("Emulation.setScriptExecutionDisabled", {"value": True}),
            ("Runtime.terminateExecution", {}),
        ):
            browser._send(method, params)
    try:
        return _get_outer_html(browser, _ANSWER_S)
    except TimeoutError:
        raise BrowserFailed("its scripts never finish, so it could not be read") from None


def _get_outer_html(browser: Browser, wait_s: float) -> str:
    world = browser.call("Page.createIsolatedWorld", {"frameId": browser.frame}, wait_s)[
        "executionContextId"
    ]
    marking = {"expression": _MARK_HIDDEN_SCRIPT, "contextId": world, "timeout": 1500}
    browser.call("Runtime.evaluate", marking, wait_s)
    root = browser.call("DOM.getDocument", {"depth": 0}, wait_s)["root"]["nodeId"]
    return str(browser.call("DOM.getOuterHTML", {"nodeId": root}, wait_s)["outerHTML"])


def _explain_error(error: str, browser: Browser) -> str:
    """What the browser's word for it means,
    https://source.chromium.org/chromium/chromium/src/+/main:net/base/net_error_list.h"""
    if browser.crashed:
        return "the page used too much memory or crashed the browser"
    if "CERT" in error or "SSL" in error:
        return "no encrypted connection could be established, or its certificate is not valid"
    if error == "net::ERR_ABORTED":
        return "it is a download, not a web page; read it with tier='plain'"
    if "TUNNEL" in error or "PROXY" in error:
        return "the proxy cannot reach it: it does not exist, or is not on the public web"
    return f"it could not be loaded ({error.removeprefix('net::')[:60] or 'no answer'})"


def main() -> None:
    """Read what is wanted as a line of JSON, write what was found as one."""
    asked = json.loads(sys.stdin.buffer.readline())
    until = time.monotonic() + float(asked["time_s"])
    browser = Browser(asked["program"], asked["proxy"], until)
    try:
        answer = load_page(browser, asked["url"], float(asked["wait_s"]), until)
    except BrowserFailed as error:
        answer = {"failed": str(error)}
    except TimeoutError:
        answer = {"failed": "it took too long to load, or its scripts never finish"}
    finally:
        browser.close()
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
