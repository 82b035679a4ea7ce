"""Held back files over HTTP: for owners alone, and only as they were seen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from deskhand.types.commit import Change
from deskhand.types.labels import Label

from .served import Served, serving
from .test_attacks import user

OUTSIDE = Label("untrusted", source="https://a.example")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as running:
        yield running


async def held(served: Served, text: str = "Be kind.\u202e") -> Path:
    file = Path(served.app.current.agent("default").folder) / "SOUL.md"
    file.write_text(text)
    row = (str(file.resolve()), msgspec.json.encode(OUTSIDE), "s", 1.0)
    await served.app.store.change((Change("file_label_set", row),))
    return file.resolve()


async def test_a_file_is_seen_and_approved(served: Served) -> None:
    assert await served.owner.get("/api/held") == []
    file = await held(served)
    (row,) = await served.owner.get("/api/held")
    why = "content from outside: https://a.example"
    assert row == {"path": str(file), "shown": str(file), "agent": "default", "why": why}
    one = await served.owner.get(f"/api/held/file?path={quote(str(file))}")
    assert (
        one["text"] == "Be kind.\\u202e"
        and one["why"] == why
        and one["bound"]
        and not one["problem"]
    )
    status, left = await served.owner.ask(
        "POST", "/api/held/approve", {"path": str(file), "digest": one["digest"]}
    )
    assert (status, left) == (200, []) and await served.owner.get("/api/held") == []
    file.write_text("Be bold.")
    (row,) = await served.owner.get("/api/held")
    assert row["why"].startswith("changed since owner approved it on ")


async def test_only_what_was_seen_is_approved(served: Served) -> None:
    file = await held(served)
    one = await served.owner.get(f"/api/held/file?path={quote(str(file))}")
    file.write_text("Be bold.")
    status, problem = await served.owner.ask(
        "POST", "/api/held/approve", {"path": str(file), "digest": one["digest"]}
    )
    assert status == 403 and "was changed after you opened it" in problem["error"]["message"]
    for path in ("SOUL.md", "/etc/passwd", "/none", "/\0"):
        given = {"path": path, "digest": one["digest"]}
        assert (await served.owner.ask("POST", "/api/held/approve", given))[0] in (400, 403, 422), (
            path
        )
    assert await served.owner.get("/api/held") != []


async def test_nobody_else_sees_or_approves(served: Served) -> None:
    file = await held(served)
    one = await served.owner.get(f"/api/held/file?path={quote(str(file))}")
    bob = await user(served, "bob")
    given = {"path": str(file), "digest": one["digest"]}
    for method, path, body in (
        ("GET", "/api/held", None),
        ("GET", f"/api/held/file?path={quote(str(file))}", None),
        ("POST", "/api/held/approve", given),
    ):
        status, said = await bob.ask(method, path, body)
        assert status == 403 and "Be kind" not in str(said), path
    assert len(await served.owner.get("/api/held")) == 1
