"""The page in the language of its reader."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from .conftest import WAIT_MS, Desk
from .states import MORE_STATES, STATES, settle
from .test_reach import PLACES, STICKS_OUT

languages = SimpleNamespace(
    **runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "languages.py"))
)
pytestmark = pytest.mark.timeout(240)
FILES = sorted(languages.LANGUAGES.glob("*.json"))
FORMS = {"zero", "one", "two", "few", "many", "other"}
"""What `Intl.PluralRules` calls the forms by a count."""
OWN = " ".join(
    " ".join(file.read_text().split()) for file in sorted((languages.STATIC / "js").rglob("*.js"))
)
NAMES = {
    *("Deskhand", "owner", "desk", ": desk", "openai", "read_file", "Models"),
    *(guide.title for guide in languages.GUIDES.values()),
    *languages.PERMISSION_MODES,
    *(f"/{name}" for name in languages.COMMANDS),
}
"""What is called so in every language, or by the server."""
IDENTIFIER = re.compile(r"[a-z_]+")
"""So tools, presets and people are called. A label of one small word is not told from these."""
BEGIN, END = "⟦", "⟧"
SEEN = """() => {
  const isData = (element) => element.closest(".answer, .md, pre, code");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (node.parentElement.checkVisibility() && !isData(node.parentElement)) found.push(node.data);
  for (const name of ["aria-label", "title", "placeholder", "alt"])
    for (const element of document.body.querySelectorAll(`[${name}]`))
      if (element.checkVisibility() && !isData(element)) found.push(element.getAttribute(name));
  return found;
}"""
"""What is seen and read aloud on the page, without what people and models have said."""


def read(file: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(file.read_text())
    return said


def test_the_english_texts_are_written_alike() -> None:
    """A space before the dots, and a link in the documents is part of its sentence: the page shows
    its words alone."""
    texts = languages.collect()
    assert [text for text in texts if re.search(r"[a-z]…", text)] == []
    rows = (languages.ROOT / "docs" / "configuration.md").read_text().splitlines()
    assert [row for row in rows if re.search(r": \[[^\]]*\]\([^)]*\)\. \|$", row)] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_language_has_every_text_and_no_other(file: Path) -> None:
    texts = languages.collect()
    language = read(file)
    said = language["texts"]
    sentences = language["sentences"]
    assert list(sentences) == languages.collect_sentences(), "run scripts/languages.py"
    for text, form in sentences.items():
        assert form, f"not translated: {text!r}"
        assert values_of(form) == values_of(text), text
        assert (form != form.strip()) == (text != text.strip()), text
    assert sorted(texts.keys() - said.keys()) == [], "run scripts/languages.py"
    assert sorted(said.keys() - texts.keys()) == [], "run scripts/languages.py"
    for text, one in texts.items():
        forms = languages.forms(said[text])
        assert all(forms), f"not translated: {text!r}"
        wanted, known = values_of(text), values_of(text) | values_of(one)
        if one:
            assert said[text].keys() <= FORMS, text
            assert values_of(said[text]["other"]) == wanted, text
            assert set().union(*map(values_of, forms)) <= known, text
        else:
            assert values_of(said[text]) == wanted, text
        assert all((form != form.strip()) == (text != text.strip()) for form in forms), text


def values_of(text: str) -> set[str]:
    return set(re.findall(r"\{\w+\}", text))


def test_it_speaks_as_the_browser_does(german: Page) -> None:
    page = german
    assert page.evaluate("document.documentElement.lang") == "de"
    expect(page.get_by_placeholder("Nachricht an Deskhand")).to_be_visible()
    page.locator("#composer").fill("tell me something")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Diese Antwort kopieren")).to_be_visible()
    page.goto("/#/settings/usage")
    expect(page.get_by_role("heading", name="Verbrauch und Kosten")).to_be_visible()
    assert "Einstellungen" in page.title()


def test_the_reader_may_choose(german: Page) -> None:
    page = german
    page.get_by_role("button", name="Sprache").click()
    expect(page.get_by_role("menuitemradio")).to_have_text(["Wie im Browser", "English", "Deutsch"])
    expect(page.get_by_role("menuitemradio", checked=True)).to_have_text("Wie im Browser")
    page.get_by_role("menuitemradio", name="English").click()
    expect(page.get_by_placeholder("Message Deskhand")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "en"
    page.reload()
    page.get_by_role("button", name="Language").click()
    page.get_by_role("menuitemradio", name="As in the browser").click()
    expect(page.get_by_placeholder("Nachricht an Deskhand")).to_be_visible()


def test_dates_numbers_and_amounts_are_written_as_in_the_language(german: Page) -> None:
    said = german.evaluate(
        """async () => {
          const format = await import("/js/format.js");
          return [format.formatMoney(1234.5), format.formatMoney(0.001), format.formatBytes(1_530),
            format.formatCount(1_234_567), format.formatDuration(2.34),
            format.formatList(["a", "b", "c"])];
        }"""
    )
    space = "\u00a0"
    assert said == [
        f"${space}1.234,50",
        f"< ${space}0,01",
        "1,5 KB",
        "1,2 Mio.",
        "2,3 s",
        "a, b und c",
    ]


def test_without_the_server_it_still_speaks_it(german: Page) -> None:
    page = german
    page.evaluate("navigator.serviceWorker.ready")
    page.reload()  # through the worker, which keeps what it fetches
    expect(page.get_by_placeholder("Nachricht an Deskhand")).to_be_visible()
    page.context.set_offline(True)
    page.reload()
    expect(page.get_by_text("Deskhand ist nicht erreichbar")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "de"


def test_a_language_that_cannot_be_had_is_english(german: Page) -> None:
    page = german
    page.context.route("**/languages/*.json", lambda route: route.fulfill(status=500))
    page.evaluate(
        "navigator.serviceWorker.getRegistrations()"
        ".then((all) => Promise.all(all.map((one) => one.unregister())))"
    )
    page.reload()
    expect(page.get_by_placeholder("Message Deskhand")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "en"


def test_what_is_not_translated_yet_is_said_in_english(
    browser: Browser, desk: Desk, signed: StorageState
) -> None:
    """A language as `scripts/languages.py` begins it."""
    empty = {text: {"other": ""} if one else "" for text, one in languages.collect().items()}
    made = browser.new_context(
        storage_state=signed, base_url=desk.url, locale="de-DE", service_workers="block"
    )
    made.set_default_timeout(WAIT_MS)
    made.route(
        "**/languages/de.json",
        lambda route: route.fulfill(json={"name": "Deutsch", "dir": "ltr", "texts": empty}),
    )
    page = made.new_page()
    page.goto("/")
    expect(page.get_by_placeholder("Message Deskhand")).to_be_visible()
    said = page.evaluate(
        """async () => {
          const { t, tCount, tData } = await import("/js/language.js");
          const files = tCount(1, "{count} file", "{count} files");
          return [t("Send again"), files, tData("constructor")];
        }"""
    )
    assert said == ["Send again", "1 file", "constructor"]
    made.close()


def make_marked(direction: str) -> dict[str, Any]:
    """A language whose texts are those of English between marks."""
    texts = languages.collect()
    said = {
        text: {"one": mark(one), "other": mark(text)} if one else mark(text)
        for text, one in texts.items()
    }
    return {"name": "Marked", "dir": direction, "texts": said}


def mark(text: str) -> str:
    """The words between marks, and what is filled in outside of them."""
    return re.sub(r"(\{\w+\})", rf"{END}\1{BEGIN}", f"{BEGIN}{text}{END}")


def unmarked(text: str) -> str:
    """What of it is outside of all marks."""
    depth, rest = 0, ""
    for character in text:
        depth += (character == BEGIN) - (character == END)
        if not depth and character != END:
            rest += character
    return " ".join(rest.split())


@pytest.fixture
def marked(browser: Browser, desk: Desk, signed: StorageState) -> Iterator[Page]:
    made = browser.new_context(
        storage_state=signed,
        base_url=desk.url,
        locale="de-DE",
        service_workers="block",
        reduced_motion="reduce",
    )
    made.set_default_timeout(WAIT_MS)
    sentences = {text: mark(text) for text in languages.collect_sentences()}
    made.route("**/languages/de.json", lambda route: route.fulfill(json=make_marked("rtl")))
    made.route("**/languages/de.server.json", lambda route: route.fulfill(json=sentences))
    yield made.new_page()
    made.close()


def find_unmarked(page: Page) -> set[str]:
    """What the page says of its own that has no mark. What stands in none of its files was said
    by people, models or the server."""
    rest = {unmarked(text) for text in page.evaluate(SEEN)}
    return {
        text
        for text in rest - NAMES
        if re.search(r"[A-Za-z]{2,}", text) and not IDENTIFIER.fullmatch(text) and text in OWN
    }


def test_every_text_of_a_panel_is_in_the_catalogue(marked: Page) -> None:
    found = {}
    for place in PLACES:
        marked.goto("about:blank")
        marked.goto(f"/{place}")
        marked.locator("h1").first.wait_for()
        settle(marked)
        found[place] = find_unmarked(marked)
        assert marked.evaluate(STICKS_OUT) == [], f"{place} from right to left"
    assert {place: rest for place, rest in found.items() if rest} == {}


@pytest.mark.parametrize("state", [*STATES, *MORE_STATES])
def test_every_text_of_a_state_is_in_the_catalogue(marked: Page, desk: Desk, state: str) -> None:
    marked.goto("/#/")
    marked.locator("#composer").wait_for()
    (STATES | MORE_STATES)[state](marked, desk)
    settle(marked)
    assert find_unmarked(marked) == set()
