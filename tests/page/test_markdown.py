"""What an answer in Markdown becomes: the same however it comes, as CommonMark says, and nothing
that is not safe."""

from __future__ import annotations

from collections import Counter

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from .canonical import canonical
from .conftest import answer, comes_true, say
from .corpus import EXAMPLES, LONG, OWN

pytestmark = pytest.mark.timeout(400)

DRAW = """
const {html, render} = await import('/js/lib.js');
const {Markdown} = await import('/js/text.js');
const draw = (box, text, live = false) => { render(html`<${Markdown} text=${text} live=${live} />`, box); return box; };
const fresh = () => document.createElement('div');
const warm = draw(document.body.appendChild(fresh()), '```js\\n1\\n```\\n\\n$x$');
const ready = () => warm.querySelector('math') && warm.querySelector('.hljs-number');
while (!ready()) await new Promise((done) => setTimeout(done, 20));
warm.remove();
"""  # noqa: E501
STREAM = f"""async (texts) => {{ {DRAW}
  const wrong = [];
  let cuts = 0;
  for (const text of texts) {{
    const whole = draw(fresh(), text).innerHTML;
    for (let at = 0; at <= text.length; at++) {{
      const box = fresh();
      draw(box, text.slice(0, at), true);
      draw(box, text, true);
      if (draw(box, text).innerHTML !== whole) wrong.push([text, at, whole, box.innerHTML]);
      cuts++;
    }}
    const grown = fresh();
    for (let at = 0; at <= text.length; at++) draw(grown, text.slice(0, at), true);
    if (draw(grown, text).innerHTML !== whole) wrong.push([text, 'each', whole, grown.innerHTML]);
  }}
  return [cuts, wrong.slice(0, 3)];
}}"""
DRAWN = f"""async (texts) => {{ {DRAW}
  return texts.map((text) => {{
    const box = draw(fresh(), text), all = [...box.querySelectorAll('*')];
    return {{
      html: box.innerHTML,
      tags: all.map((each) => each.localName),
      attributes: all.flatMap((each) => [...each.attributes].map((one) => one.name)),
      addresses: [...box.querySelectorAll('[href]')].map((each) => each.getAttribute('href')),
      pictures: [...box.querySelectorAll('[src]')].map((each) => each.getAttribute('src')),
    }};
  }});
}}"""
GROW = """async (texts) => {
  const {readDocument} = await import('/js/markdown/document.js');
  const shown = ({blocks, notes}) => JSON.stringify([blocks, notes]);
  return texts.map((text) => {
    const whole = readDocument(text), step = Math.ceil(text.length / 60);
    let grown = null;
    for (let at = step; at < text.length; at += step) grown = readDocument(text.slice(0, at), grown, true);
    grown = readDocument(text, grown);
    return {same: shown(whole) === shown(grown), once: whole.read / text.length, grown: grown.read};
  });
}"""  # noqa: E501

OVER = f"""async (texts) => {{ {DRAW}
  return texts.map((text) => {{
    const grown = fresh(), seen = [];
    for (let part = 40; part < 100; part++) {{
      const read = text.slice(0, text.length * part / 100);
      draw(grown, read, true);
      seen.push([grown.querySelectorAll('.as-is').length, grown.textContent.length >= read.length]);
    }}
    return {{
      late: seen.some(([late]) => late),
      all: seen.every(([, all]) => all),
      same: draw(grown, text).innerHTML === draw(fresh(), text).innerHTML,
    }};
  }});
}}"""

TAGS = {
    *(
        "a",
        "blockquote",
        "br",
        "button",
        "code",
        "del",
        "div",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "img",
    ),
    *("input", "label", "li", "ol", "p", "pre", "section", "span", "strong", "sup"),
    *("table", "tbody", "td", "th", "thead", "tr", "ul"),
    *(
        "math",
        "mfrac",
        "mi",
        "mn",
        "mo",
        "mrow",
        "mspace",
        "msub",
        "msup",
        "mtable",
        "mtd",
        "mtext",
        "mtr",
    ),
}
ATTRIBUTES = {
    *(
        "align",
        "alt",
        "aria-label",
        "aria-pressed",
        "checked",
        "class",
        "data-act",
        "data-at",
        "data-copy",
        "data-figure",
        "data-mark",
        "data-note",
        "data-path",
        "data-url",
    ),
    *(
        "dir",
        "disabled",
        "href",
        "loading",
        "rel",
        "role",
        "src",
        "start",
        "tabindex",
        "target",
        "type",
    ),
    *("display", "form", "lspace", "rspace"),
    *("displaystyle", "height", "mathcolor", "scriptlevel", "width"),
}


def test_a_text_that_grows_ends_as_the_whole_text(page: Page) -> None:
    """In two pieces, cut everywhere; and letter by letter."""
    texts = [*OWN, *(example["markdown"] for example in EXAMPLES[::4])]
    cuts, wrong = page.evaluate(STREAM, texts)
    assert len(texts) > 180 and cuts > 5_000
    assert wrong == []


DIFFERENT = {
    "HTML is shown, and never becomes elements": {
        *range(148, 192),
        *range(613, 618),
        *(623, *range(625, 632)),
        *(21, 31, 201, 308, 309, 344, 475, 476, 477, 491, 494, 524, 536, 642, 643),
    },
    "a definition that nothing refers to is shown": {
        207,
        208,
        210,
        317,
        537,
        538,
        545,
        563,
        565,
        567,
        571,
        592,
    },
    "GFM: an address is a link without brackets too": {602, 608, 611, 612},
    "an address with a name of HTML such as &auml; keeps it": {32, 33, 503},
    "a language is letters, digits and +#.-": {34, 144},
    "an address is written as browsers do": {603},
    "a link without words shows its path": {484},
}


def test_the_examples_of_commonmark(page: Page) -> None:
    """All but those that differ on purpose; each of those does differ."""
    drawn = page.evaluate(DRAWN, [example["markdown"] for example in EXAMPLES])
    different = {number for numbers in DIFFERENT.values() for number in numbers}
    wrong = [
        (example["number"], example["section"], example["markdown"], canonical(one["html"]))
        for example, one in zip(EXAMPLES, drawn, strict=True)
        if (canonical(example["html"]) != canonical(one["html"]))
        != (example["number"] in different)
    ]
    assert wrong == []


DEEP = [LONG[name] for name in ("brackets", "quotes", "lists in each other")]


def test_nothing_that_is_drawn_is_unsafe(page: Page) -> None:
    drawn = page.evaluate(DRAWN, [*OWN, *DEEP, *(example["markdown"] for example in EXAMPLES)])
    tags, attributes = (
        Counter[str](name for one in drawn for name in one[kind]) for kind in ("tags", "attributes")
    )
    assert set(tags) <= TAGS
    assert set(attributes) <= ATTRIBUTES
    addresses = {address for one in drawn for address in one["addresses"]}
    assert addresses, "links stay"
    assert all(address.startswith(("https://", "http://", "mailto:")) for address in addresses)
    pictures = {picture for one in drawn for picture in one["pictures"]}
    assert pictures and all(address.startswith("/api/files/raw?agent=") for address in pictures)


def test_what_a_text_costs_grows_with_its_length(page: Page) -> None:
    """Characters that are read: each once, and while a text grows at most a dozen times beside a
    fixed number."""
    for name, cost in zip(LONG, page.evaluate(GROW, list(LONG.values())), strict=True):
        assert cost["same"], name
        assert cost["once"] <= 2, name
        assert cost["grown"] <= 2_000_000 + 14 * len(LONG[name]), name


def test_what_would_cost_too_much_while_it_grows_is_shown_as_it_is_written(page: Page) -> None:
    """Nothing is missing meanwhile, and in the end it is drawn as the whole is."""
    assert (
        page.evaluate(OVER, [LONG["code"], LONG["one paragraph"]])
        == [{"late": True, "all": True, "same": True}] * 2
    )


FORMULAS: dict[str, list[str]] = {
    "It costs $5 and $6.": [],
    "From $5-$6 to $7/month, or 10$": [],
    "$5 million and 10$ a US$5 $ x $ and $PATH:$HOME": [],
    "$x$, $2x + 3$, $100\\,\\text{km}$ and ($n$)": ["$x$", "$2x + 3$", "$100\\,\\text{km}$", "$n$"],
    "`$x$` and \\$x$ and $a `b$`": [],
    "\\(x_1\\) and \\[y\\] \\[see above\\]": ["\\(x_1\\)", "\\[y\\]"],
    "a $$x$$ b": ["$$x$$"],
    "$$\n*x*\n- y\n$$\ntext": ["$$\n*x*\n- y\n$$"],
    "$$\nx\n\ny\n$$": [],
    "*a $b*c$ d*": ["$b*c$"],
}
PATHS: dict[str, str | None] = {
    "gradient.png": "gradient.png",
    "./out/report.md": "out/report.md",
    "my%20file.png": "my file.png",
    "a..b/c": "a..b/c",
    "x" * 300: "x" * 300,
    **dict.fromkeys(
        [
            "x" * 301,
            "/etc/passwd",
            "//x.test/y",
            "a//b",
            "../x",
            "a/../b",
            "%2e%2e/x",
            "a%5Cb",
            "C:x",
            "file:x",
            "#a",
            "",
        ]
    ),
}


def test_what_is_a_formula_and_what_is_a_file(page: Page) -> None:
    formulas = page.evaluate(
        "async (texts) => { const {readDocument} = await import('/js/markdown/document.js');"
        "return texts.map((text) => readDocument(text).blocks.map((one) => one.html).join('')) }",
        list(FORMULAS),
    )
    for text, html in zip(FORMULAS, formulas, strict=True):
        assert html.count('class="tex') == len(FORMULAS[text]) + html.count('class="tex open'), (
            text,
            html,
        )
        for formula in FORMULAS[text]:
            assert f">{formula}</" in html, (text, html)
    paths = page.evaluate(
        (
            "async (all) => { const {localPath} = await import('/js/markdown/draw.js'); return "
            "all.map(localPath) }"
        ),
        list(PATHS),
    )
    assert dict(zip(PATHS, paths, strict=True)) == PATHS


WALK = (
    """say Known[^1] and $e^{x}$, see ![the sea](https://x.test/sea.png), ![plot](out/plot.png).

| a | b |
|:-:|--:|
| 1 | 2 |

- [x] pitch the tent

```python
for n in range(3):  # count
    print(n)
```

مرحبا

"""
    + "filling\n\n" * 40
    + "[^1]: The note."
)


def test_a_formatted_answer_is_used(page: Page) -> None:
    """The libraries come when they are needed; notes lead there and back; everything has a name and
    can be reached."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    say(page, "say plain words")
    expect(answer(page, "plain words")).to_be_visible()
    assert not {"temml.js", "highlight.js"} & {*asked}
    say(page, WALK)
    shown = answer(page, "Known")
    expect(shown.locator("math msup")).to_be_visible()
    expect(shown.locator(".hljs-keyword").first).to_have_text("for")
    assert {"temml.js", "highlight.js"} <= {*asked}
    cells = shown.locator("td").evaluate_all(
        "all => all.map((cell) => getComputedStyle(cell).textAlign)"
    )
    assert [cell.removeprefix("-webkit-") for cell in cells] == ["center", "right"]
    expect(shown.get_by_role("checkbox", name="pitch the tent")).to_be_checked()
    expect(
        shown.get_by_role("button", name="External image: click to open the sea")
    ).to_be_visible()
    assert shown.get_by_role("button", name="plot").get_attribute("data-path") == "out/plot.png"
    assert shown.get_by_text("مرحبا").evaluate("(p) => getComputedStyle(p).direction") == "rtl"
    assert (
        shown.locator(".tex.set").first.evaluate("(one) => getComputedStyle(one).contain")
        == "paint"
    )
    shown.get_by_role("group", name="Code: python").focus()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.get_by_role("button", name="Copy this code").click()
    expected = "for n in range(3):  # count\n    print(n)"
    comes_true(page, f"navigator.clipboard.readText().then((text) => text === {expected!r})")
    mark = shown.get_by_role("button", name="Footnote 1")
    top = page.locator(".top, .middle").first
    before = top.bounding_box()
    mark.focus()
    page.keyboard.press("Enter")
    note = shown.get_by_role("listitem").filter(has_text="The note.")
    expect(note).to_be_focused()
    expect(note).to_be_in_viewport()
    note.get_by_role("button", name="Back to mark 1").click()
    expect(mark).to_be_focused()
    expect(mark).to_be_in_viewport()
    assert top.bounding_box() == before, "the page stays where it is"


def test_without_the_server_code_and_formulas_are_drawn_too(
    context: BrowserContext, page: Page
) -> None:
    """What was loaded on its first use is kept as the rest of the page is."""
    page.locator("html[data-kept]").wait_for()
    say(page, "say $x^2$\n\n```js\nlet kept;\n```")
    formula = page.locator(".answer math")
    keyword = page.locator(".answer .hljs-keyword")
    expect(keyword).to_have_text("let")
    files = "['/vendor/temml.js', '/vendor/stix-two-math.woff2', '/vendor/highlight.js']"
    libraries = f"{files}.map((path) => caches.match(path))"
    comes_true(page, f"Promise.all({libraries}).then((found) => found.every(Boolean))")
    last = page.evaluate("async () => (await import('/js/talk.js')).talk.value.n")
    page.locator(f"html[data-remembered='{last}']").wait_for()
    context.set_offline(True)
    page.reload()
    expect(page.get_by_text("Deskhand is not reached.")).to_be_visible()
    expect(formula).to_be_visible()
    expect(keyword).to_have_text("let")
    assert page.evaluate("""() => document.fonts.check('1em "STIX Two Math"')""")
