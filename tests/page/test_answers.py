"""Figures, tables and sources of answers: drawn as soon as they are complete, and nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from .conftest import WAIT_MS, Desk, answer, say
from .states import LOOKS
from .test_looks import ALL, AXE

pytestmark = pytest.mark.timeout(120)

DIAGRAM = """```mermaid
flowchart LR
  accTitle: How a message is answered
  A[Message] --> B{Needs approval?}
  B -- yes --> C[Person]
```"""
CHART = """```chart
{"type": "bar", "title": "Visits", "unit": "k", "labels": ["Mon", "Tue"],
 "series": [{"name": "2025", "values": [12, 19]}, {"name": "2026", "values": [15, null]}]}
```"""
LINE = '```chart\n{"type": "line", "labels": ["a", "b"], "values": [21.5, 22]}\n```'
PIE = '```chart\n{"type": "pie", "labels": ["Rent", "Food"], "values": [75, 25]}\n```'
SVG = """```svg
<svg viewBox="0 0 10 6"><title>A sun</title><circle cx="5" cy="3" r="2" fill="orange"/>
<script>alert(1)</script><image href="{url}/x.png"/></svg>
```"""
TABLE = """| Name | Price | [Link](https://example.org) |
|---|---:|:-:|
| Beta | 1,200 € | x |
| alpha | 30 € | =1+1 |
| Gamma, "big" | 400.5 € | -3 |
"""


def drawn(page: Page, number: int) -> None:
    expect(page.locator(".figure.drawn")).to_have_count(number)


def test_figures_are_drawn(page: Page) -> None:
    say(page, f"say Look:\n\n{DIAGRAM}\n\n{CHART}\n\n{LINE}\n\n{PIE}\n\n{SVG}\n")
    drawn(page, 5)
    figures = page.locator(".figure")
    picture = figures.nth(0).get_by_role("img", name="How a message is answered")
    width = picture.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert width > 200
    assert picture.evaluate("image => image.src.startsWith('data:image/svg+xml')")
    expect(figures.nth(0).locator("pre")).to_be_hidden()
    figures.nth(0).get_by_role("button", name="Source").click()
    expect(figures.nth(0).locator("pre")).to_contain_text("Needs approval?")
    figures.nth(0).get_by_role("button", name="Source").click()
    light = str(picture.get_attribute("src"))
    page.get_by_role("button", name="Use dark colours").click()
    expect(picture).not_to_have_attribute("src", light)
    figures.nth(0).get_by_role("button", name="Open: How a message").click()
    pane = page.get_by_role("complementary", name="Preview of diagram.svg")
    expect(pane.get_by_role("img", name="diagram.svg")).to_be_visible()
    pane.get_by_role("button", name="Close the preview").click()

    bars = figures.nth(1)
    expect(bars.get_by_role("img")).to_have_attribute(
        "aria-label", "Bar chart: Visits. 2025, 2026. The numbers are in its table."
    )
    expect(bars.locator("rect.bar")).to_have_count(3)
    heights = bars.locator("rect.series-0.bar").evaluate_all(
        "all => all.map(bar => bar.getBoundingClientRect().height)"
    )
    assert heights[1] / heights[0] == pytest.approx(19 / 12, rel=0.02), "bars begin at zero"
    expect(bars.locator("rect.bar title").last).to_have_text("Mon, 2026: 15 k")
    bars.get_by_text("Table", exact=True).click()
    expect(bars.get_by_role("cell").nth(3)).to_have_text("")
    expect(figures.nth(2).locator("circle.point")).to_have_count(2)
    expect(figures.nth(3).get_by_role("listitem")).to_have_text(["Rent 75 %", "Food 25 %"])
    expect(figures.nth(4).get_by_role("img", name="A sun")).to_be_visible()


BROKEN = {
    "```mermaid\nflowchart LR\n  A -->\n```": "Parse error on line 3",
    "```chart\n{nonsense}\n```": "this is no JSON",
    '```chart\n{"labels": ["a"], "values": [1, 2]}\n```': "is a list of 1 numbers",
    '```chart\n{"type": "pie", "labels": ["a"], "values": [-1]}\n```': "no negative values",
    "```svg\n<p>no drawing</p>\n```": "this is no SVG",
    "```svg\n<svg><rect></svg>\n```": "this SVG cannot be read",
}


def test_what_cannot_be_drawn_says_why(page: Page) -> None:
    say(page, "say " + "\n\n".join(BROKEN))
    expect(page.locator(".figure.failed")).to_have_count(len(BROKEN))
    for n, why in enumerate(BROKEN.values()):
        box = page.locator(".figure").nth(n)
        expect(box.locator(".problem")).to_contain_text(why)
        expect(box.locator("pre")).to_be_visible()


SHIFTS = """() => {
  window.shifted = [];
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries())
      if (!hadRecentInput && sources.some(({ node }) => node?.closest?.(".turn")))
        window.shifted.push(value);
  }).observe({ type: "layout-shift" });
}"""


def test_nothing_moves_when_a_figure_is_drawn(page: Page, desk: Desk) -> None:
    """And what is selected stays selected."""
    page.evaluate(SHIFTS)
    diagram = DIAGRAM.replace("  B --", "⏸  B --")
    rest = f"{CHART}\n\nThen it goes on.\n\n{TABLE}\n\n{SVG}\n\n{LINE}\n"
    say(page, f"say The beginning.\n\n{diagram}\n\n{rest}")
    expect(page.locator(".figure code")).to_contain_text("Needs approval?")
    page.evaluate("() => getSelection().selectAllChildren(document.querySelector('.answer p'))")
    growing = page.locator(".figure").first.bounding_box()
    desk.release()
    page.locator(".did").wait_for()
    drawn(page, 4)
    complete = page.locator(".figure").first.bounding_box()
    assert growing is not None and complete is not None
    assert growing["height"] == complete["height"]
    assert page.evaluate("() => String(getSelection())") == "The beginning."
    assert sum(page.evaluate("() => window.shifted")) < 0.05


FONT = "/vendor/stix-two-math.woff2"
FORMULAS = r"""The energy is $E = mc^2$.

$$\sqrt{\frac{a^2}{1 + \frac{c}{d}}} = \int_{-\infty}^{\infty} e^{-x^2}\,dx$$

Then it goes on."""


def test_the_font_of_formulas_comes_with_the_first_of_them(page: Page) -> None:
    """It is there before anything is drawn with it, so nothing moves when it comes."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    say(page, "say No formula.")
    page.locator(".did").wait_for()
    assert FONT not in asked
    page.evaluate(SHIFTS)
    page.evaluate(
        """() => new MutationObserver(() => {
          if (document.querySelector("math"))
            window.ready ??= document.fonts.check('1em "STIX Two Math"');
        }).observe(document.body, { childList: true, subtree: true })"""
    )
    say(page, f"say {FORMULAS}")
    expect(page.locator(".answer math")).to_have_count(2)
    expect(page.locator(".did")).to_have_count(2)
    assert page.evaluate("() => window.ready") is True
    assert asked.count(FONT) == 1
    assert sum(page.evaluate("() => window.shifted")) < 0.05


def test_a_table_is_sorted_and_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    say(page, f"say Prices:\n\n{TABLE}")
    page.locator(".did").wait_for()
    table = page.locator(".answer table")
    names = table.locator("tbody td:first-child")
    expect(table.locator("td").nth(1)).to_have_attribute("align", "right")
    table.get_by_role("button", name="Price").click()
    expect(names).to_have_text(["alpha", 'Gamma, "big"', "Beta"])
    expect(table.get_by_role("columnheader", name="Price")).to_have_attribute(
        "aria-sort", "ascending"
    )
    page.locator(".answer").get_by_role("button", name="Copy as CSV").click()
    expect(page.locator(".code-copy.done")).to_have_count(1)
    assert page.evaluate("() => navigator.clipboard.readText()").splitlines() == [
        "Name,Price,Link",
        "alpha,30 €,'=1+1",
        '"Gamma, ""big""",400.5 €,-3',
        'Beta,"1,200 €",x',
    ]
    table.get_by_role("button", name="Price").click()
    expect(names).to_have_text(["Beta", 'Gamma, "big"', "alpha"])
    table.get_by_role("button", name="Price").click()
    expect(names).to_have_text(["Beta", "alpha", 'Gamma, "big"'])
    table.get_by_role("button", name="Name").click()
    expect(names).to_have_text(["alpha", "Beta", 'Gamma, "big"'])
    expect(table.get_by_role("link", name="Link")).to_be_visible()


SOURCES = """It is so[^1], as the notes say[^2] and [two lines](lines.txt#L40-L41). And known[^3].

[^1]: [The documentation](https://example.org/docs)
[^2]: [notes](notes.txt)
[^3]: Everybody says so, and [somebody](https://example.org/) wrote it down.
"""


def test_marks_lead_to_their_sources(page: Page, desk: Desk) -> None:
    workspace = desk.home / "agents" / "default" / "workspace"
    (workspace / "lines.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    say(page, f"say {SOURCES}")
    page.locator(".did").wait_for()
    shown = answer(page, "It is so")
    web = shown.get_by_role("link", name="Source 1: example.org")
    expect(web).to_have_attribute("href", "https://example.org/docs")
    expect(web).to_have_attribute("rel", "noreferrer noopener")
    shown.locator("sup").get_by_role("button", name="2").click()
    pane = page.get_by_role("complementary", name="Preview of")
    expect(pane).to_contain_text("Milk, bread, a new tent.")
    shown.get_by_role("button", name="two lines").click()
    expect(pane).to_contain_text("line 41")
    mark = pane.locator(".line-mark")
    expect(mark).to_be_in_viewport()
    box, line = mark.bounding_box(), pane.locator("code").bounding_box()
    assert box is not None and line is not None
    height = line["height"] / 101
    assert round((box["y"] - line["y"]) / height) == 39 and round(box["height"] / height) == 2
    shown.get_by_role("button", name="Footnote 3").click()
    expect(shown.locator(".notes li").nth(2)).to_be_focused()


@pytest.fixture
def looked_at(browser: Browser, desk: Desk, signed: StorageState) -> Iterator[Page]:
    """A tab into which the checker can be put past our policy."""
    made = browser.new_context(
        storage_state=signed, base_url=desk.url, reduced_motion="reduce", bypass_csp=True
    )
    made.set_default_timeout(WAIT_MS)
    yield made.new_page()
    made.close()


def test_nothing_stands_in_the_way(looked_at: Page) -> None:
    page = looked_at
    page.goto("/")
    say(page, f"say Look:\n\n{DIAGRAM}\n\n{CHART}\n\n{PIE}\n\n{SVG}\n\n{TABLE}\n\n{SOURCES}")
    drawn(page, 4)
    page.locator(".did").wait_for()
    page.evaluate(AXE.read_text())
    found = {}
    for look, (scheme, width, height) in LOOKS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
        found[look] = page.evaluate(ALL)
        assert page.evaluate("() => document.querySelector('.scroll').scrollWidth") <= width
    assert not any(found.values()), found


WIDE = """```mermaid
flowchart LR
  A[A message comes in] --> B[It is read] --> C{Needs approval?} --> D[A person is asked]
  D --> E[The call is made] --> F[The result is checked] --> G[The answer is written]
```"""
SMALL = "```mermaid\nflowchart TD\n  A --> B\n  A --> C\n```"


def test_a_wide_diagram_can_be_read_on_a_phone(page: Page) -> None:
    """In its box it is scrolled sideways, and opened it begins where it begins."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("Message to Deskhand").fill(f"say Look:\n\n{WIDE}\n\n{SMALL}\n")
    page.get_by_role("button", name="Send").click()
    drawn(page, 2)
    wide, small = (page.locator(".figure").nth(n) for n in (0, 1))
    picture = wide.get_by_role("img")
    scale = "image => image.decode().then(() => image.clientWidth / image.naturalWidth)"
    assert 0.64 < picture.evaluate(scale) < 0.7
    scrolled = wide.locator(".drawing").evaluate("""box => {
      box.scrollLeft = 9999;
      return [box.scrollLeft > 200, box.scrollHeight - box.clientHeight];
    }""")
    assert scrolled == [True, 0]
    assert small.locator(".drawing").evaluate("box => box.scrollWidth - box.clientWidth") == 0
    boxes = [each.bounding_box() for each in (wide, small)]
    assert boxes[0] and boxes[1] and boxes[0]["height"] == boxes[1]["height"]
    assert page.evaluate("document.documentElement.scrollWidth") == 390

    wide.get_by_role("button", name="Open: ").click()
    opened = page.get_by_role("dialog").get_by_role("img", name="diagram.svg")
    box = opened.bounding_box()
    assert box is not None and 0 <= box["x"] < 30 and box["width"] > 1000
