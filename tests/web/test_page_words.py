"""The words on the pages of a PDF, over HTTP: which, where, in which order, and for whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from docx import Document

from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.written_pdf import TWO_LINES, written_pdf
from deskhand.tools.office_pdf import find_soffice
from deskhand.web.previews import DOCUMENT_NOTE, INSTALL_OFFICE_NOTE

from .served import Served, serving
from .test_files import PNG, folder, whole
from .test_guard import problem
from .test_shared_files import send, upload


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, ScriptedModel(lambda request: say("thanks"))) as found:
        yield found


async def words_of(served: Served, data: bytes) -> list[Any]:
    (folder(served) / "a.pdf").write_bytes(data)
    return list((await served.owner.get("/api/files/words?path=a.pdf"))["pages"])


async def test_words_stand_where_they_are_drawn(served: Served) -> None:
    first, empty = await words_of(served, written_pdf(TWO_LINES, ""))
    assert empty == []
    assert [(word[0], word[5]) for word in first] == [
        ("The", 0),
        ("first", 0),
        ("line", 1),
        ("second", 0),
        ("line", 0),
    ]
    the, _, line, second, _ = first
    assert the[1] == pytest.approx(1000, abs=100), "30 of 300 points from the left"
    assert the[2] + the[4] == pytest.approx(2500, abs=150), "150 of 200 points from the bottom"
    assert second[2] - the[2] == pytest.approx(2500, abs=150) and line[1] > the[1] + the[3]


@pytest.mark.parametrize("more", ["/Rotate 90", "/CropBox[20 50 280 190]"])
async def test_words_stand_right_on_pages_that_are_turned_or_cropped(
    served: Served, more: str
) -> None:
    (words,) = await words_of(served, written_pdf(TWO_LINES, page=f"/MediaBox[0 0 300 200]{more}"))
    the = words[0]
    if more == "/Rotate 90":  # what was the left is the top now
        assert the[2] == pytest.approx(1000, abs=100) and the[4] > the[3]
    else:
        assert the[1] == pytest.approx(10_000 * 10 / 260, abs=150)
    assert all(0 <= edge <= 10_000 for word in words for edge in word[1:5])


async def test_invisible_words_are_not_there(served: Served) -> None:
    hidden = "BT /F1 20 Tf 30 150 Td (seen) Tj 3 Tr 0 -50 Td (unseen) Tj ET"
    (words,) = await words_of(served, written_pdf(hidden))
    assert [word[0] for word in words] == ["seen"]


async def test_words_of_a_sent_file_are_for_those_who_see_it(served: Served) -> None:
    sent = await upload(served.owner, "a.pdf", "application/pdf", written_pdf(TWO_LINES))
    await send(served.owner, "talk", sent)
    found = await served.owner.get(f"/api/blobs/{sent['blob']}/words?session=talk")
    assert found["pages"][0][0][0] == "The"
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    for session in ("talk", "default~web:owner:talk"):
        address = f"/api/blobs/{sent['blob']}/words?session={session}"
        assert (await eve.ask("GET", address))[0] == 404


async def test_what_has_no_pages_has_no_words(served: Served) -> None:
    (folder(served) / "bad.pdf").write_bytes(b"%PDF-1.7 nonsense")
    refused = await served.owner.ask("GET", "/api/files/words?path=bad.pdf")
    assert problem(refused)[0] == 400 and "damaged" in str(refused)
    assert problem(await served.owner.ask("GET", "/api/files/words?path=../a.pdf"))[0] == 403


@pytest.mark.timeout(240)
@pytest.mark.skipif(not find_soffice(), reason="needs LibreOffice")
async def test_an_office_document_is_drawn_as_pages(served: Served) -> None:
    document = Document()
    document.add_paragraph("Dear Ada, come")
    document.save(str(folder(served) / "letter.docx"))
    found = await served.owner.get("/api/files/preview?path=letter.docx")
    assert found["drawable"] and "Dear Ada" in found["content"] and found["why"] == DOCUMENT_NOTE
    sizes = await served.owner.get("/api/files/pages?path=letter.docx")
    assert sizes["count"] == 1 and len(sizes["sizes"]) == 1
    words = await served.owner.get("/api/files/words?path=letter.docx")
    assert [word[0] for word in words["pages"][0]] == ["Dear", "Ada,", "come"]
    status, headers, data = await whole(served.owner, "/api/files/page?path=letter.docx&page=1")
    assert (status, headers["content-type"], data[:8]) == (200, "image/png", PNG[:8])
    sent = await upload(
        served.owner, "letter.docx", "a/b", (folder(served) / "letter.docx").read_bytes()
    )
    await send(served.owner, "talk", sent)
    sizes = await served.owner.get(f"/api/blobs/{sent['blob']}/pages?session=talk")
    assert sizes["count"] == 1
    assert (await served.owner.ask("GET", "/api/files/pages?path=../a.docx"))[0] == 403


@pytest.fixture
def no_libreoffice(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for when Deskhand starts."""
    monkeypatch.setenv("PATH", "/nowhere")


async def test_without_libreoffice_a_line_says_what_to_install(
    no_libreoffice: None, served: Served
) -> None:
    document = Document()
    document.add_paragraph("Dear Ada, come")
    document.save(str(folder(served) / "letter.docx"))
    found = await served.owner.get("/api/files/preview?path=letter.docx")
    assert not found["drawable"] and "Dear Ada" in found["content"]
    assert found["why"] == INSTALL_OFFICE_NOTE
    status, told = await served.owner.ask("GET", "/api/files/pages?path=letter.docx")
    assert status == 400 and "LibreOffice is not installed" in str(told)
