"""The first minutes: the start, and a model."""

from __future__ import annotations

from playwright.sync_api import Page

from deskhand.testing.llm_script import Behaviour, FakeCall
from tests.page.conftest import answer, say

from .houses import House, open_ollama
from .rows import Part, ask, row

PROBED = Behaviour(match="weather", calls=(FakeCall("weather", '{"city": "Paris"}'),))
REFUSED = '{"error": {"message": "Invalid API Key", "type": "invalid_request_error"}}'
SORTED = "Sort the photos of the summer by place and day, and tell me how many there are"


def _set_up(page: Page) -> None:
    page.goto("/#/settings/setup")
    head = page.locator("#step-model")
    head.wait_for()
    if head.get_attribute("aria-expanded") == "false":
        head.click()
    page.get_by_label("Or a key for").wait_for()


def _give_key(page: Page, provider: str, key: str) -> None:
    page.get_by_label("Or a key for").fill(provider)
    page.get_by_label("Key", exact=True).fill(key)


def _script(house: House, *behaviours: Behaviour) -> None:
    assert house.provider is not None
    house.provider.script(*behaviours)


@row("new")
def start(page: Page, house: House) -> Part:
    page.get_by_role("heading", name="What should we do").wait_for()
    return None


@row("new")
def local_models(page: Page, house: House) -> Part:
    with open_ollama():
        _set_up(page)
        page.get_by_text("qwen3:8b").first.wait_for()
    return page.locator(".step").first


@row("new")
def own_address(page: Page, house: House) -> Part:
    _script(house, PROBED, Behaviour(text="I am here."))
    assert house.provider is not None
    _set_up(page)
    _give_key(page, "attic", "")
    page.get_by_text("Another address or model").click()
    page.get_by_label("Base URL").fill(house.provider.url)
    page.get_by_label("Model", exact=True).fill("qwen3-vl-30b")
    page.get_by_label("Sees pictures").select_option("yes")
    page.get_by_role("button", name="Test and save").click()
    page.get_by_text("and it calls tools").wait_for()
    return page.locator(".step").first


@row("new")
def wrong_key(page: Page, house: House) -> Part:
    _script(house, Behaviour(status=401, error=REFUSED))
    _set_up(page)
    _give_key(page, "groq", "gsk-a-wrong-one")
    page.get_by_role("button", name="Test and save").click()
    page.get_by_text("Nothing was changed.").wait_for()
    return page.locator(".step").first


def _take_groq(page: Page, house: House, *behaviours: Behaviour) -> None:
    """A key that works, and a new conversation."""
    _script(house, PROBED, Behaviour(text="I am here."))
    _set_up(page)
    _give_key(page, "groq", "gsk-a-key-of-mine")
    page.get_by_role("button", name="Test and save").click()
    page.get_by_text("and it calls tools").wait_for()
    _script(house, *behaviours, Behaviour(text="There are 214 photos of 9 places."))
    page.goto("/#/")
    page.get_by_role("heading", name="What should we do").wait_for()


@row("new")
def choose_a_model(page: Page, house: House) -> Part:
    _take_groq(page, house)
    page.get_by_role("button", name="Model:").click()
    page.get_by_role("menu", name="Model").wait_for()
    return None


@row("new")
def titles(page: Page, house: House) -> Part:
    told = Behaviour(text="There are **214 photos** of 9 places, sorted by day.", times=1)
    _take_groq(page, house, told, Behaviour(text="Holiday pictures", times=1))
    ask(page, SORTED)
    page.get_by_role("heading", name="Holiday pictures", level=1).wait_for()
    return None


@row("new")
def pictures_for_models(page: Page, house: House) -> Part:
    told = Behaviour(text="Hills below a warm sky, with the sun on the right.")
    _take_groq(page, house, told)
    _set_up(page)
    _give_key(page, "attic", "")
    page.get_by_text("Another address or model").click()
    assert house.provider is not None
    page.get_by_label("Base URL").fill(house.provider.url)
    page.get_by_label("Model", exact=True).fill("qwen3-vl-30b")
    page.get_by_label("Sees pictures").select_option("yes")
    _script(house, PROBED, told)
    page.get_by_role("button", name="Test and save").click()
    page.get_by_text("and it calls tools").wait_for()
    page.goto("/#/")
    page.get_by_role("heading", name="What should we do").wait_for()
    picture = house.home / "hills.png"
    page.locator("input[type=file]").first.set_input_files([picture])
    page.locator(".composer .chip img").wait_for()
    say(page, "What is in this picture?")
    answer(page, "Hills below").wait_for()
    page.locator(".bubble img").wait_for()
    return None
