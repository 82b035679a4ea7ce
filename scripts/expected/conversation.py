"""What people expect of a conversation."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import answer, say

from .houses import House
from .rows import Part, ask, open_list, open_panel, row


def _preview(page: Page) -> Locator:
    """Beside the conversation, or on top of it where there is no room."""
    beside = page.get_by_role("complementary", name="Preview of")
    return beside.or_(page.get_by_role("dialog", name="Preview of"))


@row("desk")
def highlighting(page: Page, house: House) -> Part:
    ask(page, "Sum my receipts by month, in Python")
    page.locator(".hljs-keyword").first.wait_for()
    return page.locator(".turn")


@row("desk")
def copy(page: Page, house: House) -> Part:
    ask(page, "Sum my receipts by month, in Python")
    page.locator(".hljs-keyword").first.wait_for()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".code-bar").get_by_role("button", name="Copy").click()
    return page.locator(".turn")


@row("desk")
def formulas(page: Page, house: House) -> Part:
    ask(page, "What do I pay a month for a loan of 12,000?")
    page.locator("math").first.wait_for()
    return page.locator(".turn")


@row("desk")
def diagrams_and_charts(page: Page, house: House) -> Part:
    ask(page, "Show me how an order becomes a parcel")
    expect(page.locator(".figure.drawn")).to_have_count(2)
    return page.locator(".turn")


@row("desk")
def tables(page: Page, house: House) -> Part:
    ask(page, "Compare these three tents")
    return page.locator(".turn")


@row("desk")
def footnotes(page: Page, house: House) -> Part:
    ask(page, "Is a heat pump worth it in an old house?")
    return page.locator(".turn")


@row("desk")
def made_pictures(page: Page, house: House) -> Part:
    ask(page, "Draw the hike along the lake")
    page.locator(".made img").wait_for()
    return page.locator(".turn")


@row("desk")
def links_to_files(page: Page, house: House) -> Part:
    ask(page, "Where is the report of November?")
    page.get_by_role("button", name="the energy report").click()
    _preview(page).get_by_role("heading", name="Energy report").last.wait_for()
    return None


@row("desk")
def preview(page: Page, house: House) -> Part:
    ask(page, "Build a page that splits a bill")
    page.locator(".answer").get_by_role("button", name="bill.html").first.click()
    page.frame_locator("iframe.frame").get_by_text("Each pays").wait_for()
    return None


@row("desk")
def pictures_and_pdf(page: Page, house: House) -> Part:
    ask(page, "Send me the contract")
    page.get_by_role("button", name="Open contract.pdf").click()
    _preview(page).get_by_role("img", name="Page 1 of 2").wait_for()
    return None


@row("desk")
def attachments(page: Page, house: House) -> Part:
    workspace = house.home / "agents" / "default" / "workspace"
    names = ("hike.png", "hills.png", "lake.png", "prices.csv")
    page.locator("input[type=file]").first.set_input_files([workspace / name for name in names])
    expect(page.locator(".composer .chip img")).to_have_count(3)
    expect(page.get_by_text("uploading …")).to_have_count(0)
    ask(page, "Which of these is the best for the cover?")
    expect(page.locator(".bubble .thumbs img")).to_have_count(3)
    page.locator("input[type=file]").first.set_input_files([workspace / "energy.md"])
    page.locator(".composer .chip").wait_for()
    return None


@row("desk")
def diffs(page: Page, house: House) -> Part:
    file = house.home / "agents" / "default" / "workspace" / "area.py"
    file.write_text(file.read_text().replace("math.pi * r**2", "3.14 * r * r"))
    ask(page, "Use the exact value of pi in area.py")
    page.locator(".tool-head").click()
    page.locator(".tool .diff .plus").first.wait_for()
    return page.locator(".turn")


@row("desk")
def approvals(page: Page, house: House) -> Part:
    say(page, "Invite Ada to the river on Saturday")
    page.get_by_role("region", name="Permission needed").wait_for()
    return None


@row("desk")
def plans(page: Page, house: House) -> Part:
    page.get_by_role("button", name="Permissions").click()
    page.get_by_role("menuitemradio", name="Plan first").click()
    say(page, "Plan how we tidy the receipts")
    page.get_by_role("heading", name="Approve this plan?").wait_for()
    return None


@row("desk")
def steering(page: Page, house: House) -> Part:
    assert house.desk is not None
    house.desk.hold()
    say(page, "Write a short guide to the garden")
    answer(page, "Begin with the beds").wait_for()
    page.get_by_role("radio", name="Queue").click()
    for text in ("and one for the balcony", "then send both to Ada"):
        say(page, text)
        page.get_by_role("region", name="Messages that wait").get_by_text(text).wait_for()
    return None


@row("desk")
def edit_and_retry(page: Page, house: House) -> Part:
    ask(page, "Tell me a joke")
    page.get_by_role("button", name="Try this turn again").click()
    expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    page.get_by_role("button", name="Edit and send again").last.click()
    page.get_by_label("Your message", exact=True).wait_for()
    return None


@row("desk")
def branches(page: Page, house: House) -> Part:
    ask(page, "Where is it warm in May?")
    for words in ("Somewhere near the sea", "And not too far by train"):
        before = page.url
        page.get_by_role("button", name="Branch from here").last.click()
        page.wait_for_url(lambda url, before=before: url != before)
        page.get_by_text("Branched here").last.wait_for()
        say(page, words)
        answer(page, "Cefalù" if "sea" in words else "Liguria").wait_for()
    open_panel(page, "Branches")
    page.get_by_role("navigation", name="Branches").get_by_text("And not too far").wait_for()
    return None


@row("desk")
def commands(page: Page, house: House) -> Part:
    page.get_by_label("Message to Deskhand").press_sequentially("/co")
    page.get_by_role("listbox", name="Commands").wait_for()
    return None


@row("desk")
def voice(page: Page, house: House) -> Part:
    button = page.locator(".talk-button")
    button.click()
    page.get_by_role("timer").wait_for()
    page.wait_for_timeout(1200)
    return None


@row("desk")
def offline(page: Page, house: House) -> Part:
    ask(page, "Which tent do we take to the lake?")
    page.context.set_offline(True)
    page.get_by_text("Deskhand is not reached.").wait_for()
    say(page, "And which stove?")
    page.get_by_text("Not sent yet").wait_for()
    return None


@row("desk", phone=True)
def phone(page: Page, house: House) -> Part:
    ask(page, "Compare these three tents")
    return None


@row("desk", phone=True)
def installed(page: Page, house: House) -> Part:
    open_list(page)
    return None


@row("desk")
def time_travel(page: Page, house: House) -> Part:
    open_list(page)
    switch = page.get_by_role("switch", name="Developer view")
    if switch.get_attribute("aria-checked") == "false":
        switch.click()
    close = page.get_by_role("button", name="Close the list")
    if close.is_visible():
        close.click()
    ask(page, "Look at the notes, and pack")
    open_panel(page, "Slider over")
    panel = page.get_by_role("complementary", name="Slider")
    panel.get_by_role("tab", name="Decisions").click()
    return None


@row("desk")
def folders_outside(page: Page, house: House) -> Part:
    say(page, "Summarise the letters in my documents")
    page.get_by_role("group", name="A folder outside the workspace").wait_for()
    return page.locator(".turn")
