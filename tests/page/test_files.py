"""What the agent makes, and what people attach, is seen; and every edit has a diff."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, StorageState, expect

from .conftest import WAIT_MS, Desk, answer, dismissed, say, watched
from .states import LOOKS
from .test_looks import AXE, RUN

pytestmark = pytest.mark.timeout(120)
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40" onload="alert(1)">
<rect width="60" height="40"/><script>alert(2)</script></svg>"""
PDF = """%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R 3 0 R]/Count 2>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj
trailer<</Root 1 0 R>>
"""
NAMES = (
    "[the notes](trip/notes.md) ![A gradient](gradient.png) ![Gone](./gone.png) ![No "
    "picture](prices.csv) "
    "![Out](../../../deskhand.yaml)"
)
"""Files as an answer names them."""


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x90" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture
def workspace(desk: Desk) -> Path:
    found = desk.home / "agents" / "default" / "workspace"
    (found / "gradient.png").write_bytes(png(1600, 1000))
    (found / "drawing.svg").write_text(SVG)
    (found / "report.pdf").write_text(PDF)
    (found / "prices.csv").write_text(
        "item,price\n" + "".join(f"thing {n},{n}\n" for n in range(700))
    )
    (found / "blob.bin").write_bytes(bytes(range(256)) * 300)
    (found / "trip").mkdir(exist_ok=True)
    (found / "trip" / "notes.md").write_text("# Trip\n\n- tent\n")
    (found / "area.py").write_text("import math\n\n\ndef area(r):\n    return 3.14 * r * r\n")
    return found


@pytest.fixture
def context(browser: Browser, desk: Desk, signed: StorageState) -> Iterator[BrowserContext]:
    """The checker of accessibility must get past our policy; what it refuses is told all the
    same."""
    made = browser.new_context(
        storage_state=signed, base_url=desk.url, reduced_motion="reduce", bypass_csp=True
    )
    made.set_default_timeout(WAIT_MS)
    yield made
    made.close()


@pytest.fixture
def strict(browser: Browser, desk: Desk, signed: StorageState) -> Iterator[Page]:
    """A tab in which our policy holds."""
    made = browser.new_context(storage_state=signed, base_url=desk.url, reduced_motion="reduce")
    made.set_default_timeout(WAIT_MS)
    opened = made.new_page()
    broken = watched(opened)
    opened.goto("/")
    opened.get_by_label("Message to Deskhand").wait_for()
    yield opened
    assert broken == []
    made.close()


def call(page: Page, tool: str, **arguments: object) -> None:
    """Have this call made, and wait for the end of the turn."""
    before = page.locator(".did").count()
    say(page, f"call {tool} {json.dumps(arguments)}")
    page.locator(".did").nth(before).wait_for()


def look(page: Page) -> None:
    page.evaluate(AXE.read_text())
    for scheme, width, height in LOOKS.values():
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
        assert page.evaluate(RUN) == []
        assert page.evaluate("() => document.querySelector('.scroll').scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 800})


def loaded(picture: Locator) -> tuple[int, int]:
    """How large a picture is drawn, once it is there."""
    picture.scroll_into_view_if_needed()
    picture.evaluate("image => image.decode()")
    box = picture.bounding_box()
    assert box is not None
    return round(box["width"]), round(box["height"])


def preview(page: Page) -> Locator:
    """Beside the conversation, or on top of it where there is no room."""
    beside = page.get_by_role("complementary", name="Preview of")
    return beside.or_(page.get_by_role("dialog", name="Preview of"))


def test_what_the_agent_sends_stands_in_the_conversation(page: Page, workspace: Path) -> None:
    call(page, "send_file", path="gradient.png", text="Blue to red.")
    call(page, "send_file", path="report.pdf")
    picture = page.locator(".made img")
    width, height = loaded(picture)
    assert 200 < width <= 420 and height <= 330
    expect(page.locator(".made figcaption")).to_have_text("Blue to red.")
    expect(page.locator(".did").first).to_contain_text("Sent gradient.png")
    expect(page.locator(".tool-body")).to_have_count(0)
    page.get_by_role("button", name="Open gradient.png").click()
    assert loaded(preview(page).get_by_role("img", name="gradient.png"))[0] > 450
    look(page)
    page.keyboard.press("Escape")
    expect(preview(page)).to_have_count(0)
    expect(page.get_by_role("button", name="Open gradient.png")).to_be_focused()
    card = page.locator(".file-card")
    expect(card).to_contain_text("report.pdf")
    expect(card.get_by_role("link", name="Download report.pdf")).to_have_attribute(
        "download", "report.pdf"
    )
    look(page)
    card.get_by_role("button", name="Open report.pdf").click()
    loaded(preview(page).get_by_role("img", name="Page 2 of 2"))
    look(page)


def test_what_people_attach_is_a_grid_of_small_pictures(page: Page, workspace: Path) -> None:
    names = ("gradient.png", "drawing.svg", "gradient.png", "prices.csv")
    page.locator("input[type=file]").first.set_input_files([workspace / name for name in names])
    expect(page.locator(".composer .chip img")).to_have_count(2)
    expect(page.get_by_text("uploading …")).to_have_count(0)
    say(page, "say These.")
    answer(page, "These.").wait_for()
    thumbs = page.locator(".bubble .thumbs img")
    expect(thumbs).to_have_count(3)
    assert {loaded(thumbs.nth(n)) for n in range(3)} == {(96, 96)}
    expect(page.locator(".bubble .file-card")).to_contain_text("prices.csv")
    thumbs.last.click()
    loaded(preview(page).get_by_role("img", name="gradient.png"))
    page.get_by_role("button", name="Close the preview").click()
    look(page)


def test_one_preview_for_every_file(strict: Page, workspace: Path) -> None:
    """And nothing in a file runs, or is fetched from elsewhere."""
    page, said, asked = strict, dismissed(strict), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("button", name="Files", exact=True).click()

    def opened(name: str) -> Locator:
        if preview(page).count():
            page.keyboard.press("Escape")
        page.locator(".panel").get_by_role("button", name=name).click()
        return preview(page)

    table = opened("prices.csv")
    expect(table.get_by_role("row")).to_have_count(500)
    expect(table).to_contain_text("201 more rows are not shown: these are the first 500.")
    table.get_by_role("button", name="price").dblclick()
    expect(table.get_by_role("cell").nth(1)).to_have_text("498")
    table.get_by_role("button", name="Source").click()
    expect(table.locator("pre")).to_contain_text("thing 3,3")
    expect(opened("area.py").locator("code")).to_contain_text("return 3.14 * r * r")
    nothing = opened("blob.bin")
    expect(nothing).to_contain_text("No preview.")
    expect(nothing.get_by_role("link", name="Download 77 KB")).to_be_visible()
    drawing = opened("drawing.svg").frame_locator("iframe")
    expect(drawing.locator("svg rect")).to_be_visible()
    loaded(opened("report.pdf").get_by_role("img", name="Page 1 of 2"))
    page.keyboard.press("Escape")
    page.locator(".panel").get_by_role("button", name="trip").click()
    expect(opened("notes.md").get_by_role("heading", name="Trip", exact=True)).to_be_visible()
    (workspace / "trip" / "notes.md").unlink()
    expect(opened("notes.md")).to_contain_text("notes.md is not there any more.")
    page.set_viewport_size({"width": 390, "height": 844})
    covering = page.get_by_role("dialog", name="Preview of")
    covering.wait_for()
    box = covering.bounding_box()
    assert box == {"x": 0, "y": 0, "width": 390, "height": 844}
    assert said == [] and all(url.startswith(page.url.partition("#")[0]) for url in asked)


def test_files_that_an_answer_names(strict: Page, workspace: Path) -> None:
    page = strict
    say(page, f"say See these: {NAMES}")
    loaded(answer(page, "See these:").get_by_role("img", name="A gradient"))
    expect(page.locator(".answer")).to_contain_text("gone.png is not there any more")
    expect(page.locator(".answer")).to_contain_text("(picture removed: Out)")
    page.get_by_role("button", name="Open A gradient").click()
    loaded(preview(page).get_by_role("img", name="gradient.png"))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="the notes").click()
    expect(preview(page).get_by_role("heading", name="Trip", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="No picture").click()
    expect(preview(page).get_by_role("cell", name="thing 3", exact=True)).to_be_visible()


def test_every_edit_has_its_diff(page: Page, workspace: Path) -> None:
    edit = {"old": "    return 3.14 * r * r", "new": "    return math.pi * r**2  # \u202ex"}
    call(page, "edit_file", path="area.py", edits=[edit])
    page.locator(".tool-head").click()
    lines = page.locator(".tool .diff span")
    expect(lines.filter(has_text="-    return 3.14 * r * r")).to_have_class("minus")
    expect(lines.filter(has_text="+    return math.pi * r**2  # \\u202ex")).to_have_class("plus")
    expect(page.locator(".tool .tally")).to_have_text("+1 \u22121")
    look(page)
    page.goto("/#/settings/changes")
    page.get_by_role("button", name="1 change", exact=True).first.click()
    expect(page.locator(".places .diff .plus").first).to_contain_text("math.pi")
    page.evaluate(AXE.read_text())
    assert page.evaluate(RUN) == []
    page.get_by_role("button", name="Undo: edit_file area.py").first.click()
    expect(page.get_by_text("Put back: area.py.").first).to_be_visible()


def test_an_approval_shows_what_would_change_as_the_file_is_now(
    page: Page, workspace: Path
) -> None:
    call(page, "list_files", path=".")
    page.get_by_role("button", name="Options of this conversation").click()
    page.get_by_role("switch", name="Ask before").click()
    say(
        page,
        f"call write_file {json.dumps({'path': 'area.py', 'content': 'import math' + chr(10)})}",
    )
    card = page.get_by_role("region", name="Permission needed")
    expect(card).to_contain_text("Changes it would make to the current file")
    expect(card.locator(".diff .minus").last).to_have_text("-    return 3.14 * r * r")
    expect(card.get_by_label("The exact call")).not_to_be_visible()
    look(page)
    card.get_by_text("Exact call", exact=True).click()
    expect(card.get_by_label("The exact call")).to_contain_text('write_file {"path": "area.py"')
    assert "3.14" in (workspace / "area.py").read_text()
    card.get_by_role("button", name="Do not allow").click()
    page.locator(".did").nth(1).wait_for()
    long = "".join(f"line {n}\n" for n in range(900))
    say(page, f"call write_file {json.dumps({'path': 'area.py', 'content': long})}")
    expect(card.locator(".diff .at").last).to_have_text("… 508 more lines")
    page.goto("/#/settings/approvals")
    expect(page.locator(".rows .diff .minus").last).to_have_text("-    return 3.14 * r * r")


def test_a_person_edits_a_text_and_takes_it_back(page: Page, workspace: Path) -> None:
    file = workspace / "area.py"
    before = file.read_text()
    say(page, "say [the area](area.py)")
    page.get_by_role("button", name="the area").click()
    pane = preview(page)
    pane.get_by_role("button", name="Edit", exact=True).click()
    field = pane.get_by_label("Text of area.py")
    expect(field).to_be_focused()
    look(page)
    field.fill(before.replace("3.14", "math.pi"))
    field.press("Control+s")
    expect(pane.locator("code")).to_contain_text("math.pi * r * r")
    assert "math.pi" in file.read_text()

    pane.get_by_role("button", name="Edit", exact=True).click()
    file.write_text("nothing\n")
    field.fill("mine\n")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_role("alert")).to_contain_text("was changed since you opened it")
    assert file.read_text() == "nothing\n"
    pane.get_by_role("button", name="Enlarge").click()
    expect(field).to_have_value("mine\n")
    page.get_by_role("button", name="Show it beside the conversation").click()
    expect(field).to_have_value("mine\n")
    file.write_text(before.replace("3.14", "math.pi"))

    pane.get_by_role("button", name="Versions").click()
    expect(pane.get_by_text("edit · for owner")).to_be_visible()
    pane.get_by_role("button", name="What changed").first.click()
    expect(pane.locator(".diff .minus")).to_have_text("-    return 3.14 * r * r")
    pane.get_by_role("button", name="Show this version").first.click()
    expect(pane.locator("code")).to_contain_text("math.pi")
    look(page)
    pane.get_by_role("button", name="Undo this change").first.click()
    expect(pane.locator("code")).to_contain_text("3.14 * r * r")
    assert file.read_text() == before


def test_files_of_the_conversation_are_a_gallery(page: Page, workspace: Path) -> None:
    call(page, "write_file", path="out/report.md", content="# Report\n")
    call(page, "write_file", path="out/sun.svg", content=SVG)
    page.get_by_role("button", name="Files", exact=True).click()
    files = page.get_by_role("complementary", name="Files", exact=True)
    files.get_by_role("button", name="Made here").click()
    expect(files.get_by_role("listitem")).to_have_count(2)
    expect(files.get_by_role("listitem").first).to_contain_text("sun.svg")
    loaded(files.locator(".thumbnail img"))
    look(page)
    files.get_by_role("button", name="report.md").click()
    pane = preview(page)
    expect(pane.get_by_role("heading", name="Report", exact=True)).to_be_visible()
    expect(files).to_be_hidden()
    pane.get_by_role("button", name="Enlarge").click()
    expect(page.get_by_role("dialog", name="Preview of report.md")).to_be_visible()
    page.keyboard.press("Escape")
    expect(files.get_by_role("button", name="report.md")).to_be_visible()


def test_the_conversation_can_be_used_beside_a_file(page: Page, workspace: Path) -> None:
    say(page, "say [the area](area.py)")
    page.get_by_role("button", name="the area").click()
    pane = preview(page)
    expect(pane.locator("code")).to_contain_text("3.14")
    call(page, "edit_file", path="area.py", edits=[{"old": "3.14", "new": "math.pi"}])
    expect(pane.locator("code")).to_contain_text("math.pi")
    page.evaluate("""() => {
      const draw = window.requestAnimationFrame;
      window.requestAnimationFrame = (run) => setTimeout(() => draw(run), 1000);
    }""")
    call(page, "edit_file", path="area.py", edits=[{"old": "math.pi", "new": "math.tau / 2"}])
    expect(pane.locator("code")).to_contain_text("math.tau / 2")
    page.keyboard.press("Escape")
    expect(pane).to_have_count(0)
    page.get_by_role("button", name="the area").click()
    expect(pane.locator("code")).to_contain_text("math.tau / 2")
    page.get_by_role("link", name="New conversation").click()
    expect(pane).to_have_count(0)
