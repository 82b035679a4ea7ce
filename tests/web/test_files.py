"""The workspace and attached files over HTTP: inside, and nowhere else."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from .served import Client, Served
from .test_guard import problem

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32


def folder(served: Served) -> Path:
    return served.app.settings.home.workspace("default")


def form(*files: tuple[str, bytes], field: str = "files") -> aiohttp.FormData:
    made = aiohttp.FormData(quote_fields=False)
    for name, data in files:
        made.add_field(
            field, io.BytesIO(data), filename=name, content_type="application/octet-stream"
        )
    return made


async def whole(client: Client, path: str) -> tuple[int, Mapping[str, str], bytes]:
    async with client.http.get(client.url + path, headers=client.headers) as answer:
        return answer.status, answer.headers, await answer.read()


async def test_listed_shown_and_fetched(served: Served) -> None:
    top = folder(served)
    (top / "notes").mkdir()
    (top / "notes" / "a.py").write_text("print('ä')\n")
    (top / "big.txt").write_text("ä" * 60_000)
    (top / "picture").write_bytes(PNG)
    (top / "odd.html").write_text("<script>alert(1)</script>")
    (top / ".tasks").mkdir()
    listed = await served.owner.get("/api/files")
    assert {each["name"] for each in listed} >= {"notes", "big.txt", "picture"}
    assert ".tasks" not in {each["name"] for each in listed}
    inner = await served.owner.get("/api/files?path=notes")
    assert [(each["path"], each["kind"], each["size"]) for each in inner] == [
        ("notes/a.py", "file", 12)
    ]
    shown = await served.owner.get("/api/files/preview?path=notes/a.py")
    assert (shown["content"], shown["language"], shown["binary"]) == (
        "print('ä')\n",
        "python",
        False,
    )
    long = await served.owner.get("/api/files/preview?path=big.txt")
    assert long["truncated"] and long["size"] == 120_000 and set(long["content"]) == {"ä"}
    assert len(long["content"].encode()) <= 100_000
    binary = await served.owner.get("/api/files/preview?path=picture")
    assert binary["content"] is None and binary["binary"] and not binary["truncated"]
    status, headers, data = await whole(served.owner, "/api/files/raw?path=odd.html")
    assert (status, data) == (200, b"<script>alert(1)</script>")
    assert headers["content-disposition"].startswith("attachment")
    assert (
        "sandbox" in headers["content-security-policy"]
        and headers["x-content-type-options"] == "nosniff"
    )


async def test_uploaded(served: Served) -> None:
    status, made = await served.owner.ask(
        "POST", "/api/files?subdir=in/here", data=form(("a.txt", b"one"), ("b", b""))
    )
    assert (status, made) == (200, {"uploaded": ["in/here/a.txt", "in/here/b"]})
    assert (folder(served) / "in" / "here" / "a.txt").read_bytes() == b"one"
    for name in ("../../x", "/etc/z"):  # only the last part is a name
        status, made = await served.owner.ask("POST", "/api/files", data=form((name, b"1")))
        assert (status, made["uploaded"]) == (200, [name[-1]])
    before = sorted(folder(served).rglob("*"))
    many = [(f"{n}", b"x") for n in range(30)]
    for data, wanted in (
        (form(("big", b"x" * 10_000_001)), 413),
        (form((".env", b"x")), 400),
        (form(("a", b"x"), field="other"), 400),
        (form(*many), 400),
        (b"--x\r\nnonsense", 415),
    ):
        assert problem(await served.owner.ask("POST", "/api/files", data=data))[0] == wanted
    broken = {"content-type": "multipart/form-data; boundary=x"}
    for raw in (
        b"",
        b"--x\r\nnonsense",
        b"--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--",
        b"--y--",
    ):
        assert (
            problem(await served.owner.ask("POST", "/api/files", data=raw, headers=broken))[0]
            == 400
        )
    none = {"content-type": "multipart/form-data"}
    assert (
        problem(await served.owner.ask("POST", "/api/files", data=b"--x--", headers=none))[0] == 400
    )
    assert sorted(folder(served).rglob("*")) == before


async def test_a_file_of_a_conversation(served: Served) -> None:
    (folder(served) / "notes").mkdir()
    (folder(served) / "notes" / "a.html").write_text("<b>hi</b>")
    await served.owner.ask("POST", "/api/chat/talk", {"message": "hi"})
    status, headers, data = await whole(served.owner, "/api/files/talk/notes/a.html")
    assert (status, data) == (200, b"<b>hi</b>") and headers["content-disposition"].startswith(
        "attachment"
    )
    for path in (
        "/api/files/none/notes/a.html",
        "/api/files/talk/none",
        "/api/files/talk/..%2f..%2fdeskhand.yaml",
    ):
        assert problem(await served.owner.ask("GET", path))[0] in (403, 404), path


async def test_nothing_leads_out(served: Served, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (folder(served) / "link").symlink_to(secret)
    (folder(served) / "up").symlink_to(tmp_path)
    os.mkfifo(folder(served) / "pipe")
    outside = [
        "../secret.txt",
        "/etc/passwd",
        "link",
        "up/secret.txt",
        "a/../../secret.txt",
        "~/x",
        "%00",
        "pipe",
    ]
    for path in [
        *outside,
        "/proc/self/environ",
        str(tmp_path / "deskhand.yaml"),
        "x" * 5000,
        "a/" * 200 + "b",
    ]:
        for route in ("/api/files/preview", "/api/files/raw"):
            status, said = await served.owner.ask("GET", f"{route}?path={path}")
            assert status in (400, 403, 404) and "secret" not in str(said).replace(
                "secret.txt", ""
            ), (route, path)
    for into in ("..", "/tmp", "up", "up/deep", "../../x"):
        status, _ = await served.owner.ask(
            "POST", f"/api/files?subdir={into}", data=form(("x", b"x"))
        )
        assert status in (400, 403, 404), into
    assert not (tmp_path / "x").exists()


async def test_attached_and_fetched_by_who_sees_it(served: Served) -> None:
    headers = {"content-type": "image/png"}
    status, made = await served.owner.ask(
        "POST", "/api/blobs?name=../p.png", data=PNG, headers=headers
    )
    assert status == 201 and made["name"] == "p.png" and made["size_bytes"] == len(PNG)
    said = {"text": "look", "files": [made]}
    assert (await served.owner.ask("POST", "/api/sessions/pic/messages", said))[0] == 202
    path = f"/api/blobs/{made['blob']}?session=pic"
    await served.owner.get("/api/sessions/pic/log")
    status, shown, data = await whole(served.owner, path)
    kept = shown
    assert (status, data) == (200, PNG) and kept["content-disposition"].startswith("inline")
    assert kept["content-type"] == "image/png" and "sandbox" in kept["content-security-policy"]
    await served.owner.ask("POST", "/api/sessions/other/messages", {"text": "hi"})
    assert problem(await served.owner.ask("GET", f"/api/blobs/{made['blob']}?session=other")) == (
        404,
        "not_found",
    )
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    for name in ("pic", "default~web:owner:pic"):
        assert problem(await eve.ask("GET", f"/api/blobs/{made['blob']}?session={name}")) == (
            404,
            "not_found",
        )
    assert any(note.who == "eve" for note in await served.people.list_audit_notes())
    html = {"content-type": "image/png"}
    status, evil = await served.owner.ask(
        "POST", "/api/blobs?name=x.png", data=b"<script>", headers=html
    )
    await served.owner.ask(
        "POST", "/api/sessions/pic/messages", {"text": "and this", "files": [evil]}
    )
    assert await served.owner.get("/api/sessions/pic/log")
    status, shown, _ = await whole(served.owner, f"/api/blobs/{evil['blob']}?session=pic")
    if status == 200:
        assert shown["content-disposition"].startswith("attachment")
    too_much = await served.owner.ask(
        "POST", "/api/blobs", data=io.BytesIO(b"x" * 20_000_001), headers=headers
    )
    assert problem(too_much) == (413, "too_large")
    assert (
        problem(await served.owner.ask("POST", "/api/blobs", data=b"", headers=headers))[0] == 400
    )


async def test_a_list_of_all_files_says_that_there_are_more(served: Served) -> None:
    workspace = served.app.settings.home.workspace("default")
    (workspace / "many").mkdir()
    for number in range(2_001):
        (workspace / "many" / f"{number}.txt").touch()
    async with served.http.get(
        f"{served.url}/api/workspace/files", headers=served.owner.headers
    ) as answer:
        assert answer.headers["x-truncated"] == "true" and len(await answer.json()) == 2_000
    (workspace / "many").rename(workspace.parent / "elsewhere")
    async with served.http.get(
        f"{served.url}/api/workspace/files", headers=served.owner.headers
    ) as answer:
        assert "x-truncated" not in answer.headers
