"""The text of a PDF in the preview: selected, copied, searched."""

from __future__ import annotations

from pathlib import Path

import pytest
from docx import Document
from playwright.sync_api import Page, expect

from deskhand.testing.written_pdf import TWO_LINES, written_pdf
from deskhand.tools.office_pdf import find_soffice

from .conftest import Desk

OTHER = "BT /F1 20 Tf 30 150 Td (another line) Tj ET"


@pytest.fixture
def report(desk: Desk) -> Path:
    found = desk.home / "agents" / "default" / "workspace" / "words.pdf"
    found.write_bytes(written_pdf(TWO_LINES, OTHER, ""))
    return found


def open_report(page: Page, name: str) -> None:
    page.get_by_role("button", name="Files", exact=True).first.click()
    page.locator(".panel").get_by_role("button", name=name).click()


def test_words_are_found_one_after_the_other(page: Page, report: Path) -> None:
    open_report(page, "words.pdf")
    pane = page.locator(".preview")
    field = pane.get_by_role("searchbox", name="Search this document")
    field.fill("LINE")
    status = pane.get_by_role("status")
    expect(status).to_have_text("1 of 3")
    expect(pane.locator(".hit")).to_have_count(3)
    field.press("Enter")
    expect(status).to_have_text("2 of 3")
    field.press("Enter")
    expect(status).to_have_text("3 of 3")
    expect(pane.locator("li").nth(1).locator(".hit.now")).to_be_in_viewport()
    field.press("Enter")
    expect(status).to_have_text("1 of 3")
    field.press("Shift+Enter")
    expect(status).to_have_text("3 of 3")
    field.fill("first  line second")
    expect(status).to_have_text("1 of 1")
    expect(pane.locator(".hit.now")).to_have_count(3)
    field.fill("nowhere")
    expect(status).to_have_text("Not found")
    field.press("Escape")
    expect(field).to_have_value("")
    expect(pane).to_be_visible()


def test_words_are_copied_in_their_order(page: Page, report: Path) -> None:
    open_report(page, "words.pdf")
    pane = page.locator(".preview")
    words = pane.locator(".pdf-words text")
    expect(words.first).to_have_text("The")
    picture = pane.get_by_role("img", name="Page 1 of 3").bounding_box()
    word = words.first.bounding_box()
    assert picture and word
    assert word["x"] - picture["x"] == pytest.approx(picture["width"] * 0.1, abs=6)
    copied = page.evaluate(
        """() => {
          const words = document.querySelectorAll(".pdf-words text");
          getSelection().setBaseAndExtent(words[0].firstChild, 1, words[4].firstChild, 3);
          const data = new DataTransfer();
          const event = new ClipboardEvent("copy", {
            clipboardData: data, bubbles: true, cancelable: true,
          });
          words[0].dispatchEvent(event);
          return data.getData("text/plain");
        }"""
    )
    assert copied == "he first line\nsecond lin"


def test_a_scan_says_that_it_has_no_text(page: Page, report: Path) -> None:
    report.write_bytes(written_pdf(""))
    open_report(page, "words.pdf")
    expect(page.locator(".preview")).to_contain_text("This PDF has no text to search")


@pytest.mark.timeout(240)
@pytest.mark.skipif(not find_soffice(), reason="needs LibreOffice")
def test_a_word_document_has_pages_and_text(page: Page, report: Path) -> None:
    document = Document()
    document.add_paragraph("Dear Ada, come")
    document.save(str(report.with_name("letter.docx")))
    open_report(page, "letter.docx")
    pane = page.locator(".preview")
    expect(pane.get_by_role("img", name="Page 1 of 1")).to_be_visible(timeout=120_000)
    expect(pane.locator(".pdf-words text").first).to_have_text("Dear")
    pane.get_by_role("searchbox", name="Search this document").fill("ada")
    expect(pane.get_by_role("status")).to_have_text("1 of 1")
    pane.get_by_role("button", name="Text", exact=True).click()
    expect(pane).to_contain_text("This is the text of the document")
    expect(pane.locator(".pdf-words")).to_have_count(0)
