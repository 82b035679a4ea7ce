"""What the page costs the browser: how long its scripts run while it opens, beside the length of
what it opens; when something is first seen; and how many frames a second are drawn while an answer
comes at 200 tokens a second.

5,000 conversations stand in the list, and one of them has 10,000 messages. The figures are
Chromium's own (the metric `ScriptDuration`, `first-contentful-paint`, layout shifts), the median of
five fresh tabs. Frames are counted for ten seconds behind the 10,000 messages.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, CDPSession, Page, StorageState, sync_playwright  # noqa: E402

from tests.page.conftest import ARGUMENTS, Desk, desk_at, say, state_of  # noqa: E402
from tests.page.crowd import MANY, MESSAGES  # noqa: E402

ROUNDS = 5
STREAMED_S = 10
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
FRAMES = """(forMs) => new Promise((give) => {
  const began = performance.now();
  let count = 0, last = began, longest = 0, shift = 0;
  new PerformanceObserver((seen) => {
    for (const entry of seen.getEntries()) if (!entry.hadRecentInput) shift += entry.value;
  }).observe({ type: "layout-shift" });
  const draw = (now) => {
    count += 1;
    longest = Math.max(longest, now - last);
    last = now;
    if (now - began < forMs) requestAnimationFrame(draw);
    else give({ frames: (count * 1000) / (now - began), longest, shift });
  };
  requestAnimationFrame(draw);
})"""
LIMIT_MS = 1_000.0
SETTLE_MS = 500


class Tab:
    """A page that is not kept by the browser from before, and what its scripts have cost."""

    def __init__(self, page: Page, metrics: CDPSession) -> None:
        self.page = page
        self._metrics = metrics

    def script_ms(self) -> float:
        found = self._metrics.send("Performance.getMetrics")["metrics"]
        return (
            float(next(each["value"] for each in found if each["name"] == "ScriptDuration")) * 1e3
        )

    def opened(self, address: str, text: str) -> float:
        """Script time in milliseconds until this text stands there, and nothing more comes."""
        before = self.script_ms()
        self.page.goto(address)
        self.page.locator(".log").get_by_text(text).first.wait_for()
        self.page.wait_for_timeout(SETTLE_MS)
        return self.script_ms() - before


def measured(browser: Browser, desk: Desk, signed: StorageState, short: str) -> dict[str, float]:
    context = browser.new_context(storage_state=signed, base_url=desk.url, service_workers="block")
    page = context.new_page()
    metrics = context.new_cdp_session(page)
    metrics.send("Performance.enable")
    tab = Tab(page, metrics)
    found = dict[str, float]()
    found["the page, with 5,000 conversations in its list"] = tab.opened("/", "What should we do")
    painted = page.evaluate(FIRST_PAINT)
    found["a conversation of 10,000 messages"] = tab.opened(
        "/#/c/deep", f"Answer {MESSAGES // 2 - 1}:"
    )
    before = tab.script_ms()
    page.get_by_role("region", name="Conversation").focus()
    page.keyboard.press("Home")
    page.locator(".log").get_by_text("Question 0:").wait_for()
    found["from its end to its beginning"] = tab.script_ms() - before
    found["a short conversation"] = tab.opened(short, "You said: short")
    nodes = float(page.evaluate("document.querySelectorAll('*').length"))
    context.close()
    return {**found, "first paint": painted, "nodes": nodes}


def stream(browser: Browser, desk: Desk, signed: StorageState) -> dict[str, float]:
    """What is drawn while an answer comes into the long conversation, beside what the same tab
    draws at rest."""
    context = browser.new_context(storage_state=signed, base_url=desk.url, service_workers="block")
    page = context.new_page()
    page.goto("/#/c/deep")
    page.locator(".log").get_by_text(f"Answer {MESSAGES // 2 - 1}:").first.wait_for()
    page.wait_for_timeout(SETTLE_MS)
    at_rest = page.evaluate(FRAMES, 3_000)
    say(page, f"paced {STREAMED_S + 4}")
    page.locator(".log").get_by_text("As fast as the fastest models").first.wait_for()
    streaming = page.evaluate(FRAMES, STREAMED_S * 1_000)
    context.close()
    return {
        "frames a second at rest": at_rest["frames"],
        "frames a second while an answer comes": streaming["frames"],
        "the longest between two frames then (ms)": streaming["longest"],
        "layout shift meanwhile": streaming["shift"],
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        subprocess.run(
            [sys.executable, str(ROOT / "tests" / "page" / "crowd.py"), home], check=True
        )
        desk = desk_at(Path(home))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "/usr/bin/chromium", args=[*ARGUMENTS]
        )
        signed = state_of(browser, desk)
        page = browser.new_context(storage_state=signed, base_url=desk.url).new_page()
        page.goto("/")
        say(page, "short")
        page.locator(".did").wait_for()
        short = page.url.removeprefix(desk.url)
        rounds = [measured(browser, desk, signed, short) for _ in range(ROUNDS)]
        drawn = stream(browser, desk, signed)
        browser.close()
        desk.kill()
    print(f"Script time of the page, {MANY:,} conversations, median of {ROUNDS} tabs (ms)")
    slow = []
    for name in rounds[0]:
        figure = statistics.median(each[name] for each in rounds)
        print(f"  {name:50} {figure:8.0f}")
        if name != "nodes" and figure > LIMIT_MS:
            slow.append(name)
    for name, figure in drawn.items():
        print(f"  {name:50} {figure:8.4g}")
    if slow:
        sys.exit(f"over {LIMIT_MS:.0f} ms: {', '.join(slow)}")


if __name__ == "__main__":
    main()
