"""Pictures and files of a shared conversation: what its link shows, and what nobody gets by it."""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.models.base import Request
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types import events as e
from deskhand.types.identity import Principal
from deskhand.types.messages import File, Message, ResultStatus, Text, ToolCall, ToolResult
from deskhand.types.shares import Share
from deskhand.web.shared_files import list_shared, redact_file

from .calling import Caller, workspace
from .served import Client, Served, serving

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
KEYS = {"EXAMPLE_API_KEY": SECRET}
PAGE = b"<!doctype html><script>alert(1)</script>"
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def answer(request: Request) -> Message:
    return say("thanks")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, ScriptedModel(answer), environment=KEYS) as found:
        yield found


async def upload(client: Client, name: str, mime: str, data: bytes) -> dict[str, Any]:
    headers = {**client.headers, "content-type": mime}
    address = f"{client.url}/api/blobs?name={name}"
    async with client.http.post(address, data=data, headers=headers) as response:
        assert response.status == 201
        return dict(await response.json())


async def send(client: Client, session: str, *files: dict[str, Any], text: str = "look") -> None:
    attached = [{key: each[key] for key in ("blob", "name", "mime")} for each in files]
    body = {"text": text, "files": attached}
    before = len(await turns(client, session))
    status, got = await client.ask("POST", f"/api/sessions/{session}/messages", body)
    assert status == 202, got
    while len(await turns(client, session)) == before:
        await anyio.sleep(0.01)


async def turns(client: Client, session: str) -> list[Any]:
    status, log = await client.ask("GET", f"/api/sessions/{session}/log")
    return [each for each in log if each["event"]["type"] == "turn_ended"] if status == 200 else []


async def share(client: Client, session: str, *, files: bool = True, days: int = 7) -> Any:
    body = {"days": days, "files": files}
    status, made = await client.ask("POST", f"/api/sessions/{session}/shares", body)
    assert status == 201 and made["files"] is files, made
    return made


async def fetch(served: Served, path: str) -> tuple[int, bytes, dict[str, str]]:
    """As somebody who has nothing but the address."""
    async with served.http.get(served.url + path) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return response.status, await response.read(), headers


async def addresses(served: Served, made: Any) -> list[str]:
    _, page, _ = await fetch(served, made["path"])
    return re.findall(r'<a href="(/share/[^"]*)"', page.decode())


async def test_whoever_has_the_link_gets_the_files(served: Served) -> None:
    picture = await upload(served.owner, "tent.png", "image/png", PNG)
    notes = await upload(served.owner, "notes.txt", "text/plain", f"the key is {SECRET}".encode())
    await send(served.owner, "talk", picture, notes)
    made = await share(served.owner, "talk")
    _, page, headers = await fetch(served, made["path"])
    first, second = await addresses(served, made)
    assert f'<img src="{first}" alt="tent.png" loading="lazy">' in page.decode()
    assert f'<a href="{second}" download>notes.txt</a>' in page.decode()
    assert "; img-src 'self'" in headers["content-security-policy"]
    status, data, headers = await fetch(served, first)
    assert (status, data, headers["content-type"]) == (200, PNG, "image/png")
    assert headers["content-disposition"].startswith("inline; ")
    assert headers["cache-control"] == "no-store" and "noindex" in headers["x-robots-tag"]
    status, data, headers = await fetch(served, second)
    assert status == 200 and data.startswith(b"the key is ") and SECRET.encode() not in data
    assert headers["content-disposition"].startswith("attachment; ")
    (listed,) = await served.owner.get("/api/shares")
    assert listed["files"] is True
    (kept,) = await served.owner.get("/api/audit?limit=1")
    assert kept["what"] == "conversation shared with its files"


async def test_files_are_shared_only_where_that_was_asked_for(served: Served) -> None:
    await send(served.owner, "talk", await upload(served.owner, "tent.png", "image/png", PNG))
    wide = await share(served.owner, "talk")
    (address,) = await addresses(served, wide)
    _, made = await served.owner.ask("POST", "/api/sessions/talk/shares", {"days": 7})
    _, page, headers = await fetch(served, made["path"])
    assert "tent.png" in page.decode() and "<img" not in page.decode().partition("</style>")[2]
    assert "img-src" not in headers["content-security-policy"]
    other = address.replace(wide["path"], made["path"])
    assert other != address and (await fetch(served, other))[0] == 404


@pytest.mark.parametrize(
    ("name", "mime", "data"),
    [
        ("page.html", "text/html", PAGE),
        ("drawing.svg", "image/svg+xml", DRAWING),
        ("picture.png", "image/png", PAGE),
        ("picture.png", "image/png", DRAWING),
        ("page.xhtml", "application/xhtml+xml", PAGE),
    ],
)
async def test_nothing_that_was_sent_runs(
    served: Served, name: str, mime: str, data: bytes
) -> None:
    await send(served.owner, "talk", await upload(served.owner, name, mime, data))
    (address,) = await addresses(served, await share(served.owner, "talk"))
    status, got, headers = await fetch(served, address)
    assert status == 200 and got == data
    assert headers["content-disposition"].startswith("attachment; ")
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert headers["x-content-type-options"] == "nosniff"


async def test_a_name_is_no_html(served: Served) -> None:
    name = "%22%3E<script>alert(1)<"
    sent = await upload(served.owner, name, "image/png", PNG)
    assert sent["name"] == '"><script>alert(1)<'
    await send(served.owner, "talk", sent)
    _, page, _ = await fetch(served, (await share(served.owner, "talk"))["path"])
    assert "<script" not in page.decode() and "&quot;&gt;&lt;script&gt;" in page.decode()


async def test_other_files_cannot_be_guessed(served: Served) -> None:
    """Those of another conversation, those that came later, and those that nobody sent."""
    hidden = await upload(served.owner, "hidden.txt", "text/plain", b"of another conversation")
    await send(served.owner, "other", hidden)
    await send(served.owner, "talk", await upload(served.owner, "a.txt", "text/plain", b"shared"))
    made = await share(served.owner, "talk")
    later = await upload(served.owner, "later.txt", "text/plain", b"sent later")
    await send(served.owner, "talk", later)
    (address,) = await addresses(served, made)
    wide = await addresses(served, await share(served.owner, "talk"))
    assert len(wide) == 2, "a link that is made now shows both"
    beyond = wide[1].rpartition("/")[2]
    names = [hidden["blob"], later["blob"], hidden["blob"][7:], beyond, "../files", "1-1", "2-0"]
    names += [
        "0-0",
        "-1-0",
        "1--1",
        "1-0x",
        "1",
        "%2e%2e%2f",
        "%D9%A1-%D9%A0",
        "9" * 20 + "-0",
        "1-" + "9" * 9,
    ]
    for name in names:
        status, data, _ = await fetch(served, f"{made['path']}/files/{name}")
        assert status == 404, name
        assert b"another" not in data and b"later" not in data
    taken = set()
    for n in range(40):
        for number in range(3):
            status, data, _ = await fetch(served, f"{made['path']}/files/{n}-{number}")
            taken |= {data} if status == 200 else set()
    assert taken == {b"shared"}
    file = address.rpartition("/")[2]
    for secret in ("x" * 43, "x", made["path"][7:-1] + "_", made["id"]):
        assert (await fetch(served, f"/share/{secret}/files/{file}"))[0] == 404


async def test_files_end_with_their_link(tmp_path: Path) -> None:
    clock = SetClock(1_800_000_000.0)
    async with serving(tmp_path, ScriptedModel(answer), clock=clock) as served:
        sent = await upload(served.owner, "a.txt", "text/plain", b"shared")
        for session in ("revoked", "erased", "over"):
            await send(served.owner, session, sent)
        links = {name: await share(served.owner, name, days=1) for name in ("revoked", "erased")}
        links["over"] = await share(served.owner, "over", days=1)
        found = {name: (await addresses(served, made))[0] for name, made in links.items()}
        for address in found.values():
            assert (await fetch(served, address))[0] == 200
        await served.owner.ask("DELETE", f"/api/shares/{links['revoked']['id']}")
        await served.owner.ask("DELETE", "/api/sessions/erased")
        assert (await fetch(served, found["revoked"]))[0] == 404
        assert (await fetch(served, found["erased"]))[0] == 404
        assert (await fetch(served, found["over"]))[0] == 200
        clock.advance(24 * 3600.0 + 1)
        status, page, _ = await fetch(served, found["over"])
        assert status == 404 and b"shared" not in page


async def test_what_was_undone_is_gone(served: Served) -> None:
    await send(served.owner, "talk", text="first")
    first = (await turns(served.owner, "talk"))[0]["n"]
    await send(served.owner, "talk", await upload(served.owner, "a.txt", "text/plain", b"shared"))
    (address,) = await addresses(served, await share(served.owner, "talk"))
    assert (await fetch(served, address))[0] == 200
    await served.owner.ask("POST", "/api/sessions/talk/rewind", {"to_n": first, "text": "other"})
    while len(await turns(served.owner, "talk")) < 3:
        await anyio.sleep(0.01)
    assert (await fetch(served, address))[0] == 404


async def test_the_files_that_the_agent_sent_are_shared_and_no_others(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, environment=KEYS) as served:
        folder = workspace(tmp_path)
        (folder / "report.txt").write_text(f"done; {SECRET}")
        (folder / "private.png").write_bytes(PNG)
        calls = [("send_file", {"path": "report.txt"}), ("read_file", {"path": "private.png"})]
        await caller.does(served.owner, "talk", *calls)
        made = await share(served.owner, "talk")
        (address,) = await addresses(served, made)
        _, page, _ = await fetch(served, made["path"])
        assert "report.txt" in page.decode() and "private" not in page.decode()
        status, data, _ = await fetch(served, address)
        assert status == 200 and data.startswith(b"done; ") and SECRET.encode() not in data


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_texts_are_redacted_in_their_encoding(encoding: str) -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2", "***")

    assert redact_file("schön hunter2\n".encode(encoding), redact) == "schön ***\n".encode(encoding)
    plain = "schön\n".encode(encoding)
    assert redact_file(plain, redact) is plain
    for binary in (PNG + b"hunter2", b"\xff\x01hunter2", codecs.BOM_UTF16_LE + b"\x00\xd8x"):
        assert redact_file(binary, redact) == binary


ANN = Principal("ann", ("owner",))
REPORT = File("sha256:1", "report.txt", "text/plain", 1)


def names_after(name: str, arguments: str, *after: e.AnyEvent, status: ResultStatus = "ok") -> Any:
    """The names of the files that a link shows after this call gave a file."""
    call = ToolCall("c1", name, msgspec.Raw(arguments.encode()))
    log = [
        e.ModelReplied(Message("assistant", (call,)), "m"),
        e.ToolFinished(ToolResult("c1", (Text("here"), REPORT), status)),
        *after,
    ]
    recorded = [e.Recorded(n, "a/web:ann:x", n, n, each) for n, each in enumerate(log, 1)]
    shared = Share("s1", "a/web:ann:x", 2, "ann", 0.0, 1.0, files=True)
    found = list_shared(recorded, lambda who: who.id, shared)
    return [file.name for utterance in found for file in utterance.files]


def test_only_what_the_agent_sent_here_is_shown() -> None:
    assert names_after("send_file", '{"path": "report.txt"}') == ["report.txt"]
    assert names_after("image_gen", '{"prompt": "a tent"}') == ["report.txt"]
    assert names_after("read_file", '{"path": "report.txt"}') == []
    assert names_after("send_file", '{"path": "report.txt", "chat": "5"}') == []
    assert names_after("send_file", '{"path": "report.txt", "channel": "telegram"}') == []
    assert names_after("send_file", '"no object"') == []
    assert names_after("send_file", '{"path": "report.txt"}', status="error") == []
    assert names_after("send_file", '{"path": "report.txt"}', e.Undone(0, ANN, 1)) == []
    later = e.ToolFinished(ToolResult("c1", (REPORT,)))
    assert names_after("send_file", '{"path": "report.txt"}', later) == ["report.txt"]
