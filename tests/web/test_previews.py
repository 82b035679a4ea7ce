"""Files to look at over HTTP: what kind they are by their bytes, with which headers they come, and
to whom."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deskhand.types.commit import Change
from deskhand.types.labels import Label
from deskhand.web.media import picture_type
from deskhand.web.previews import DOCUMENT_NOTE, make_preview

from .served import Served
from .test_files import PNG, folder, whole
from .test_guard import problem

SVG = (
    b'<?xml version="1.0"?>\n<svg '
    b'xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
)


def pdf(pages: int) -> bytes:
    """Empty pages, without the table of places: readers make one."""
    kids = " ".join(f"{3 + n} 0 R" for n in range(pages))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {pages}>>"]
    objects += ["<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>"] * pages
    numbered = "".join(f"{n} 0 obj{each}endobj\n" for n, each in enumerate(objects, 1))
    return f"%PDF-1.4\n{numbered}trailer<</Root 1 0 R>>\n".encode()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x1cftypavif", "image/avif"),
        (SVG, "image/svg+xml"),
        (b"\xef\xbb\xbf<!-- a --><svg/>"[:-2] + b">", "image/svg+xml"),
        (b"<html><svg>", ""),
        (b"<script>alert(1)</script>", ""),
        (b"<svgx>", ""),
        (b"", ""),
    ],
)
def test_a_picture_is_known_by_its_bytes(data: bytes, kind: str) -> None:
    assert picture_type(data) == kind


@pytest.mark.parametrize(
    ("name", "data", "rows", "more"),
    [
        ("a.csv", b'a,b\n1,"x,\ny"\n', [["a", "b"], ["1", "x,\ny"]], 0),
        ("a.csv", "\ufeffName;Größe\nx;1,5\n".encode(), [["Name", "Größe"], ["x", "1,5"]], 0),
        ("a.tsv", b"a b\tc\n", [["a b", "c"]], 0),
        ("a.csv", b"n\n" * 700, [["n"]] * 500, 200),
    ],
)
def test_a_table(name: str, data: bytes, rows: list[list[str]], more: int) -> None:
    found = make_preview(data, len(data), name)
    assert (found.kind, found.rows, found.more_rows) == ("table", rows, more)


def test_what_is_no_table_is_text() -> None:
    assert make_preview(b'a,"' + b"x" * 200_000, 200_003, "a.csv").kind == "text"
    assert make_preview(b"a,b\n" * 9, 10_000_000, "a.csv").more_rows is None
    assert make_preview(b"\0\0", 2, "a.csv").kind == "none"
    assert make_preview(b"# A\n", 4, "A.MD").kind == "markdown"
    assert make_preview(b"%PDF-1.4 x", 10, "a.txt").kind == "pdf"


async def test_pictures_are_shown_and_drawings_run_nothing(served: Served) -> None:
    for name, data in (("p.txt", PNG), ("d.svg", SVG), ("evil.png", b"<script>alert(1)</script>")):
        (folder(served) / name).write_bytes(data)
    wanted = {
        "p.txt": ("image/png", "inline", "picture"),
        "d.svg": ("image/svg+xml", "attachment", "picture"),
        "evil.png": ("application/octet-stream", "attachment", "text"),
    }
    for name, (kind, disposition, look) in wanted.items():
        _, headers, _ = await whole(served.owner, f"/api/files/raw?path={name}")
        assert (headers["content-type"], headers["content-disposition"].partition(";")[0]) == (
            kind,
            disposition,
        ), name
        assert headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert headers["x-content-type-options"] == "nosniff"
        assert (await served.owner.get(f"/api/files/preview?path={name}"))["kind"] == look


async def test_a_pdf_is_drawn_here(served: Served) -> None:
    (folder(served) / "a.pdf").write_bytes(pdf(2))
    (folder(served) / "bad.pdf").write_bytes(b"%PDF-1.7 nonsense")
    found = await served.owner.get("/api/files/preview?path=a.pdf")
    assert (found["kind"], found["page_count"], len(found["pages"])) == ("pdf", 2, 2)
    status, headers, data = await whole(served.owner, "/api/files/page?path=a.pdf&page=2")
    assert (status, headers["content-type"], data[:8]) == (200, "image/png", PNG[:8])
    assert problem(await served.owner.ask("GET", "/api/files/page?path=a.pdf&page=3"))[0] == 400
    assert problem(await served.owner.ask("GET", "/api/files/page?path=a.pdf&page=0"))[0] == 400
    assert problem(await served.owner.ask("GET", "/api/files/page?path=../a.pdf"))[0] == 403
    bad = await served.owner.get("/api/files/preview?path=bad.pdf")
    assert bad["kind"] == "none" and bad["why"].startswith("The PDF is damaged")


async def test_a_document_is_shown_as_text(served: Served) -> None:
    (folder(served) / "letter.rtf").write_bytes(rb"{\rtf1\ansi Dear \b Ada\b0 ,\par come.}")
    (folder(served) / "broken.docx").write_bytes(b"PK\x03\x04[Content_Types].xml word/")
    shown = await served.owner.get("/api/files/preview?path=letter.rtf")
    assert (shown["kind"], shown["why"], shown["digest"]) == ("markdown", DOCUMENT_NOTE, "")
    assert "Dear" in shown["content"] and "rtf1" not in shown["content"]
    broken = await served.owner.get("/api/files/preview?path=broken.docx")
    assert broken["kind"] == "none" and "broken.docx" in broken["why"]


async def test_a_sent_pdf_and_table(served: Served) -> None:
    kinds = {"r.pdf": pdf(1), "t.csv": b"a,b\n1,2\n"}
    for name, data in kinds.items():
        headers = {"content-type": "application/octet-stream"}
        _, sent = await served.owner.ask(
            "POST", f"/api/blobs?name={name}", data=data, headers=headers
        )
        await served.owner.ask(
            "POST", "/api/sessions/sent/messages", {"text": "look", "files": [sent]}
        )
        await served.owner.get("/api/sessions/sent/log")
        query = f"session=sent&name={name}"
        found = await served.owner.get(f"/api/blobs/{sent['blob']}/preview?{query}")
        assert (found["kind"], found["name"]) == ({"r.pdf": "pdf", "t.csv": "table"}[name], name)
        status, _, drawn = await whole(served.owner, f"/api/blobs/{sent['blob']}/page?session=sent")
        assert drawn.startswith(PNG[:8]) if name == "r.pdf" else status == 400
        await served.people.add_user(f"eve-{name[0]}", "member")
        _, eve = await served.token(f"eve-{name[0]}")
        for rest in ("preview", "page"):
            path = f"/api/blobs/{sent['blob']}/{rest}?session=default~web:owner:sent"
            assert problem(await eve.ask("GET", path)) == (404, "not_found")


async def test_a_file_with_other_readers_is_not_for_everybody(
    served: Served, tmp_path: Path
) -> None:
    top = folder(served)
    for name in ("open.txt", "closed.txt", "USER.md"):
        (top / name).write_text("words\n")
    label = msgspec.json.encode(Label("tool_local", ("role:owner",), "https://mail.test"))
    await served.app.store.change(
        [Change("file_label_set", (str((top / "closed.txt").resolve()), label, "", 0.0))]
    )
    (top / "way").symlink_to("closed.txt")
    await served.people.add_user("eve", "member")
    await served.people.add_user("vera", "viewer")
    (_, eve), (_, vera) = await served.token("eve"), await served.token("vera", ("read",))
    for route in ("preview", "raw", "page", "versions", "version"):
        for path in ("closed.txt", "way", "./closed.txt", "USER.md", "../closed.txt"):
            assert problem(await eve.ask("GET", f"/api/files/{route}?path={path}")) == (
                403,
                "forbidden",
            ), path
        assert problem(await vera.ask("GET", f"/api/files/{route}?path=open.txt")) == (
            404,
            "not_found",
        )
    assert (await eve.get("/api/files/preview?path=open.txt"))["content"] == "words\n"
    for path in ("closed.txt", "way"):
        assert problem(await eve.ask("GET", f"/api/workspace/file/{path}"))[0] == 403
    assert "file refused" in {
        note.what for note in await served.people.list_audit_notes() if note.who == "eve"
    }
    for route in ("preview", "raw"):
        assert (await served.owner.ask("GET", f"/api/files/{route}?path=closed.txt"))[0] == 200
