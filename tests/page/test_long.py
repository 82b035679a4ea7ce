"""Lists without an end: 5,000 conversations, and 10,000 messages in one of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from .conftest import WAIT_MS, Desk, answer, comes_true, desk_at, say, state_of, watched
from .crowd import MANY, MESSAGES, OLD

pytestmark = pytest.mark.timeout(180)
LAST = MESSAGES // 2 - 1
NODES = 4_000
TURNS = 330
"""So much is on the page at most, however far one goes: a page of a log is 120 events, and 960 are
drawn at most."""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("crowded")
    subprocess.run([sys.executable, str(Path(__file__).parent / "crowd.py"), str(home)], check=True)
    found = desk_at(home)
    found.release()
    yield found
    found.kill()


@pytest.fixture(scope="module")
def context(browser: Browser, crowded: Desk) -> Iterator[BrowserContext]:
    made = browser.new_context(
        storage_state=state_of(browser, crowded), base_url=crowded.url, reduced_motion="reduce"
    )
    made.set_default_timeout(WAIT_MS)
    yield made
    made.close()


class Asked(list[str]):
    """What a page asks the API for, from now on."""

    def __init__(self, page: Page) -> None:
        page.on(
            "request", lambda request: self.append(request.url) if "/api/" in request.url else None
        )

    def of(self, part: str) -> list[str]:
        return [url.partition("/api/")[2] for url in self if part in url]


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    opened = context.new_page()
    broken = watched(opened)
    opened.goto("/")
    opened.get_by_role("navigation", name="Conversations").get_by_role(
        "link", name="Talk 0 about"
    ).wait_for()
    yield opened
    assert broken == []
    stays = opened.evaluate(
        "[document.scrollingElement.scrollTop, document.scrollingElement.scrollHeight - "
        "innerHeight]"
    )
    assert stays == [0, 0], (
        "the page itself stays where it is, and nothing makes it longer than its window"
    )
    expect(opened.locator("header.head")).to_be_in_viewport(ratio=1)
    opened.close()


def nodes(page: Page) -> int:
    return int(page.evaluate("document.querySelectorAll('*').length"))


def number(page: Page) -> int:
    """Of the question that is uppermost in sight."""
    return int(
        page.evaluate(
            """() => {
              const top = document.querySelector(".scroll").getBoundingClientRect().top;
              const turns = [...document.querySelectorAll(".turn")];
              const turn = turns.find((each) => each.getBoundingClientRect().bottom > top);
              // What has just come into sight has no innerText before it is painted.
              return /\\d+/.exec(turn.textContent)[0];
            }"""
        )
    )


def log_of(page: Page) -> object:
    return page.get_by_role("region", name="Conversation")


def test_a_conversation_of_ten_thousand_messages(page: Page, crowded: Desk) -> None:
    asked = Asked(page)
    page.goto("/#/c/deep")
    end = answer(page, f"Answer {LAST}:")
    expect(end).to_be_in_viewport()
    comes_true(page, "async () => !(await import('/js/talk.js')).loading.value")
    page.wait_for_timeout(300)
    said = [each for each in asked.of("deep") if not each.endswith("/waiting")]  # where it is busy
    assert said == ["sessions/deep/events?after=0&last=120", "sessions/deep/options"], (
        "its end, how it is held, and nothing more"
    )
    assert page.locator(".turn").count() == 40 and nodes(page) < NODES
    area = page.locator(".scroll")
    seen = [number(page)]
    area.hover()
    while seen[-1] > LAST - 400:
        before = page.evaluate("document.querySelector('.scroll').scrollTop")
        page.mouse.wheel(0, -1500)
        comes_true(page, f"document.querySelector('.scroll').scrollTop !== {before}")
        page.wait_for_timeout(60)
        seen.append(number(page))
    assert all(0 <= a - b <= 25 for a, b in pairwise(seen)), f"nothing jumps: {seen}"
    assert page.locator(".turn").count() <= TURNS and nodes(page) < NODES * 4
    assert len(asked.of("amendments")) == 1
    expect(end).to_have_count(0)  # far below: it is not drawn any more
    while page.get_by_role("button", name="To the end").count():
        page.mouse.wheel(0, 6000)
        page.wait_for_timeout(60)
    expect(end).to_be_in_viewport()

    asked.clear()
    area.focus()
    page.keyboard.press("Home")
    expect(page.locator(".bubble").get_by_text("Question 0:")).to_be_in_viewport()
    assert asked.of("deep") == ["sessions/deep/log?after=0&limit=120"]
    assert area.evaluate("area => area.scrollTop") == 0 and page.locator(".turn").count() == 40
    expect(area.get_by_role("button", name="Show earlier")).to_have_count(0)
    page.keyboard.press("End")
    expect(end).to_be_in_viewport()
    page.get_by_role("button", name="To the beginning").wait_for(state="hidden")

    page.keyboard.press("Home")
    say(page, "and on")
    expect(answer(page, "You said: and on")).to_be_in_viewport()
    expect(page.locator(".did").last).to_be_visible()


def test_a_hit_deep_inside_comes_into_sight(page: Page, crowded: Desk) -> None:
    conversations = page.get_by_role("navigation", name="Conversations")
    for wanted in (2345, 77, 2346):
        page.keyboard.press("Control+/")  # from the field to write in, too
        expect(page.get_by_label("Search everything")).to_be_focused()
        page.keyboard.type(f"Question {wanted}")
        hit = (
            conversations.get_by_role("link")
            .filter(has=page.locator("mark"))
            .filter(has_text=f"Question {wanted}:")
        )
        hit.click()
        expect(page.locator(".bubble").get_by_text(f"Question {wanted}:")).to_be_in_viewport()
        page.wait_for_timeout(200)
        expect(page.locator(".bubble").get_by_text(f"Question {wanted}:")).to_be_in_viewport()
        assert page.evaluate("CSS.highlights.get('hit').size") >= 2, "the words are marked"
        assert page.evaluate("document.scrollingElement.scrollTop") == 0
        expect(page.locator("header.head")).to_be_in_viewport(ratio=1)
        page.get_by_label("Search everything").fill("")
    page.get_by_label("Search everything").fill("tent")
    hits = conversations.locator("a.entry.tall")
    expect(hits).to_have_count(30)
    hits.first.hover()
    while hits.count() < 90:
        page.mouse.wheel(0, 3000)
        page.wait_for_timeout(60)


def test_find_in_a_conversation(page: Page, crowded: Desk) -> None:
    page.goto("/#/c/deep")
    answer(page, f"Answer {LAST}:").wait_for()
    page.keyboard.press("Control+f")
    field = page.get_by_role("searchbox", name="Find in this conversation")
    expect(field).to_be_focused()
    page.keyboard.type("question 12")  # 12, 120 to 129, 1200 to 1299
    found = page.get_by_role("search").get_by_role("status")
    expect(found).to_have_text("1 of 50+")
    expect(page.locator(".bubble").get_by_text("Question 1299:")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(found).to_have_text("2 of 50+")
    expect(page.locator(".bubble").get_by_text("Question 1298:")).to_be_in_viewport()
    page.get_by_role("button", name="Later", exact=True).click()
    expect(page.locator(".bubble").get_by_text("Question 1299:")).to_be_in_viewport()
    field.fill("question 4012")
    expect(found).to_have_text("1 of 1")
    expect(page.locator(".bubble").get_by_text("Question 4012:")).to_be_in_viewport()
    field.fill("nobody wrote this")
    expect(found).to_have_text("Not found")
    field.press("Escape")
    expect(field).to_have_count(0)
    expect(page.locator(".scroll")).to_be_focused()


def test_what_was_undone_later_is_undone_where_one_looks_back(page: Page, crowded: Desk) -> None:
    page.goto("/#/c/back")
    page.locator(".bubble").get_by_text("Later 59:").wait_for()
    page.keyboard.press("Control+f")
    page.keyboard.type("matter 50")
    stays = page.locator(".turn", has=page.locator(".bubble").get_by_text("Matter 50:"))
    expect(stays).to_be_in_viewport()
    expect(stays).not_to_have_class("turn undone")
    page.get_by_role("searchbox", name="Find in this").fill("matter 250")
    undone = page.locator(".turn", has=page.locator(".bubble").get_by_text("Matter 250:"))
    expect(undone).to_be_in_viewport()
    expect(undone).to_have_class("turn undone")


def test_five_thousand_conversations_in_the_list(page: Page, crowded: Desk) -> None:
    page.reload()
    conversations = page.get_by_role("navigation", name="Conversations")
    waiting = conversations.get_by_role("region", name="Waiting for you")
    expect(waiting.get_by_role("link", name=OLD)).to_be_visible()
    expect(waiting.get_by_role("img", name="waits for your answer")).to_be_visible()
    expect(conversations.get_by_role("link", name="Settings")).to_contain_text("1 waiting")
    assert page.evaluate("async () => (await import('/js/list.js')).sessions.value.length") == 60

    box = page.locator(".side-list")
    box.hover()
    for _ in range(40):
        page.mouse.wheel(0, 4000)
        page.wait_for_timeout(40)
    comes_true(page, "async () => (await import('/js/list.js')).sessions.value.length >= 600")
    assert nodes(page) < NODES, "what is far away is not drawn"
    rows = page.evaluate(
        "async () => (await import('/js/list.js')).sessions.value.map((row) => row.title)"
    )
    assert len(rows) == len(set(rows))

    conversations.get_by_role("link", name="Talk ").last.focus()
    page.keyboard.press("Home")
    expect(waiting.get_by_role("link", name=OLD)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    comes_true(page, "/Talk [0-9]{3}/.test(document.activeElement.innerText)")


HEADING_IN_SIGHT = """() => {
  const box = document.querySelector(".side-list").getBoundingClientRect();
  const top = document.elementFromPoint(box.left + 30, box.top + 12);
  return top.matches(".side-head") ? top.textContent : top.outerHTML;
}"""
WATCH_SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) window.shifted += value;
  }).observe({ type: "layout-shift" });
}"""


def test_the_heading_of_the_rows_in_sight_stays_above_them(page: Page, crowded: Desk) -> None:
    page.reload()
    conversations = page.get_by_role("navigation", name="Conversations")
    conversations.get_by_role("link", name="Talk 0 about").wait_for()
    page.evaluate(WATCH_SHIFTS)
    box = page.locator(".side-list")
    box.hover()
    headings = list[str]()
    for _ in range(12):
        page.mouse.wheel(0, 640)
        page.wait_for_timeout(150)
        headings.append(page.evaluate(HEADING_IN_SIGHT))
    assert "This week" in headings
    assert set(headings) <= {"Today", "Yesterday", "This week"} | {headings[-1]}
    assert not headings[-1].startswith("<"), headings[-1]
    assert page.evaluate("window.shifted") < 0.01

    # A row that the keyboard reaches from below stays clear of it.
    page.evaluate("""() => {
      const box = document.querySelector(".side-list");
      const top = box.getBoundingClientRect().top;
      const rows = [...box.querySelectorAll("a.entry")];
      rows.find((row) => row.getBoundingClientRect().top > top + 40).focus();
    }""")
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.wait_for_timeout(100)
    assert page.evaluate("""() => {
      const row = document.activeElement.getBoundingClientRect();
      return document.activeElement.contains(document.elementFromPoint(row.left + 9, row.top + 2));
    }""")


def test_a_row_that_has_the_focus_keeps_it_out_of_sight(page: Page, crowded: Desk) -> None:
    """Who scrolls away with the wheel goes on by keyboard from where they were; what they leave is
    let go of."""
    page.reload()
    conversations = page.get_by_role("navigation", name="Conversations")
    days = conversations.locator("section:not([aria-label='Waiting for you'])").filter(
        has=page.get_by_role("link", name="Talk ")
    )
    last_of_day = days.first.get_by_role("link").last
    number = int(last_of_day.inner_text().split()[1])
    here, next_day = (
        conversations.get_by_role("link", name=f"Talk {n} about") for n in (number, number + 1)
    )
    here.focus()
    box = page.locator(".side-list")
    box.hover()
    for _ in range(20):
        page.mouse.wheel(0, 2000)
        page.wait_for_timeout(40)
    comes_true(page, "document.querySelector('.side-list').scrollTop > 5000")
    page.wait_for_timeout(200)
    expect(here).to_be_focused()
    expect(next_day).to_have_count(0)
    page.keyboard.press("ArrowDown")
    expect(next_day).to_be_focused()
    page.keyboard.press("End")
    comes_true(page, "/Talk [0-9]{2,}/.test(document.activeElement.innerText)")
    expect(next_day).to_have_count(0)


def test_rows_stay_as_they_are_while_more_is_listed(page: Page, crowded: Desk) -> None:
    """One that was drawn anew would lose the focus, and a click that had begun on it."""
    page.reload()
    conversations = page.get_by_role("navigation", name="Conversations")
    for _ in range(4):
        conversations.get_by_role("link", name="Talk ").last.focus()
        page.wait_for_timeout(300)
    listed = "async () => (await import('/js/list.js')).sessions.value.length"
    for _ in range(4):
        before = page.evaluate(listed)
        were = page.evaluate("""() => [...document.querySelectorAll('.side-list a')].map((row) => {
            row.setAttribute('data-was', '');
            return row.innerText;
        })""")
        page.get_by_role("button", name="Show older conversations").dispatch_event("click")
        comes_true(
            page, f"async () => (await import('/js/list.js')).sessions.value.length > {before}"
        )
        page.wait_for_timeout(100)
        new = page.locator(".side-list a:not([data-was])").all_inner_texts()
        assert set(were).isdisjoint(new)
        comes_true(page, "document.activeElement.matches('.side-list a[data-was]')")


def test_an_old_conversation_goes_on(page: Page, crowded: Desk) -> None:
    conversations = page.get_by_role("navigation", name="Conversations")
    asked = Asked(page)
    page.keyboard.press("Control+k")
    page.keyboard.type(f"Talk {MANY - 7} ")
    palette = page.get_by_role("dialog", name="Commands")
    palette.get_by_role("option", name=f"Talk {MANY - 7} about the tent").wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Talk {MANY - 7} about the tent")
    say(page, "is it still there?")
    expect(answer(page, "You said: is it still there?")).to_be_visible()
    top = conversations.get_by_role("region", name="Today").get_by_role("link").first
    expect(top).to_have_accessible_name(f"Talk {MANY - 7} about the tent")
    lists = [url for url in asked.of("sessions?limit=60") if "name=" not in url]
    assert lists == [], "what happens moves a row, and the list is not asked for again"

    page.keyboard.press("Control+k")
    found = palette.get_by_role("option", name="Talk ")
    expect(found.first).to_be_visible()
    before = found.count()
    palette.locator(".found-list").hover()
    page.mouse.wheel(0, 30_000)
    comes_true(page, f"document.querySelectorAll('#found li').length > {before}")
    page.keyboard.press("Escape")
    waiting = conversations.get_by_role("region", name="Waiting for you")
    waiting.get_by_role("link", name=OLD).click()
    page.get_by_role("region", name="Permission needed").get_by_role(
        "button", name="Do not allow"
    ).click()
    expect(waiting).to_have_count(0)


ROWS = """async () => {
  const { put, listed, renewed, told } = await import("/js/rows.js");
  const order = (a, b) => b.last_at - a.last_at || (a.key < b.key ? 1 : -1);
  const behind = (edge) => (row) => {
    const [at, key] = edge.split(" ");
    return order({ last_at: Number(at), key }, row) < 0;
  };
  const names = (rows) => rows.map((row) => row.key).join();
  const wrong = [];
  let seed = 7;
  const chance = (most) => (seed = (seed * 48271) % 2147483647) % most;
  for (let round = 0; round < 300; round++) {
    const server = new Map();
    let clock = 1e6, made = 0, connected = true;
    const touch = (key) => server.set(key, { key, name: key, title: key, last_at: clock += chance(3) });
    const page = (limit, edge) => {
      const all = [...server.values()].sort(order), rest = edge ? all.filter(behind(edge)) : all;
      const rows = rest.slice(0, limit), last = rows.at(-1);
      return { rows, more: rest.length > limit ? `${last.last_at} ${last.key}` : undefined };
    };
    while (made < 40) touch(`k${made++}`);
    let { rows, more: edge } = page(10);
    const next = () => { const found = page(7, edge); rows = put(rows, found.rows); edge = found.more; };
    const again = () => { const first = page(10); ({ rows, edge } = renewed(rows, first.rows, first.more, edge)); };
    const happen = () => {
      const key = chance(3) ? `k${chance(made)}` : `k${made++}`, known = rows.find((row) => row.key === key);
      clock += 70;
      touch(key);
      const recorded = { at: server.get(key).last_at, event: { type: "turn_ended" } };
      if (connected) rows = put(rows, [known ? told(known, recorded) : server.get(key)]);
    };
    for (let i = 0; i < 30; i++) {
      const what = chance(6);
      if (what === 0 && edge && connected) next();
      else if (what === 1) { connected = !connected; if (connected) again(); }
      else happen();
    }
    if (!connected) again();
    while (edge) next();
    if (names(listed(rows, edge)) !== names([...server.values()].sort(order))) wrong.push(round);
  }
  return wrong;
}"""


def test_pages_and_events_together_are_the_list(page: Page) -> None:
    """Whatever happens between two pages, on a line that breaks now and then."""
    assert page.evaluate(ROWS) == []
