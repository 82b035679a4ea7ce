"""Proposed skills over HTTP: for owners alone, and only by their yes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deskhand.learning.proposals.queries import Proposal
from deskhand.learning.proposals.store import add_proposal
from deskhand.types.labels import LOCAL, Label
from deskhand.types.people import Identity

from .served import Served, serving

BODY = "Read notes.md, then say what the weather was.\n"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as running:
        yield running


async def propose(
    served: Served, name: str = "weather-notes", label: Label = LOCAL, body: str = BODY
) -> int:
    proposal = Proposal(
        name=name,
        description="How to note the weather.",
        body=body,
        agent="default",
        session="default/web:owner:work",
        n=1,
        label=label,
    )
    await served.app.store.change(add_proposal(proposal, 1.0))
    return int((await served.owner.get("/api/proposals?all=true"))[0]["id"])


def file(served: Served, name: str) -> Path:
    return Path(served.app.current.agent("default").folder) / "skills" / name / "SKILL.md"


async def test_a_yes_and_its_end(served: Served) -> None:
    id_ = await propose(served, body=f"{BODY}Look at https://weather.example/.\n")
    (row,) = await served.owner.get("/api/proposals")
    assert (row["name"], row["state"], row["conversation"]) == ("weather-notes", "proposed", "work")
    # It is tried beside this, and there is nothing on which it could be.
    assert row["verdict"] == "" or row["verdict"].startswith("It was not tried")
    one = await served.owner.get(f"/api/proposals/{id_}")
    assert one["body"].startswith(BODY) and [each["severity"] for each in one["findings"]] == [
        "look"
    ]
    status, taken = await served.owner.ask("POST", f"/api/proposals/{id_}/accept", {})
    assert (
        status == 200
        and taken["proposal"]["state"] == "accepted"
        and taken["decided_by"] == "owner"
    )
    assert BODY in file(served, "weather-notes").read_text() and not await served.owner.get(
        "/api/proposals"
    )
    status, problem = await served.owner.ask("POST", f"/api/proposals/{id_}/accept", {})
    assert status == 403 and "is accepted already" in problem["error"]["message"]
    status, out = await served.owner.ask("POST", f"/api/proposals/{id_}/revert", {})
    assert out["proposal"]["state"] == "reverted" and not file(served, "weather-notes").exists()


async def test_a_no_is_for_good(served: Served) -> None:
    id_ = await propose(served)
    status, told = await served.owner.ask(
        "POST", f"/api/proposals/{id_}/reject", {"why": "too special"}
    )
    assert status == 200 and (told["proposal"]["state"], told["proposal"]["why"]) == (
        "rejected",
        "too special",
    )
    assert not file(served, "weather-notes").exists()


async def test_what_a_member_wrote_is_taken_with_a_further_word(served: Served) -> None:
    id_ = await propose(served, label=Label("member", by=("bob",)), body=BODY)
    one = await served.owner.get(f"/api/proposals/{id_}")
    assert one["proposal"]["by"] == ["bob"] and one["body"] == BODY
    status, problem = await served.owner.ask("POST", f"/api/proposals/{id_}/accept", {})
    assert status == 403 and "It was written on the word of bob." in problem["error"]["message"]
    status, taken = await served.owner.ask(
        "POST", f"/api/proposals/{id_}/accept", {"untrusted": True}
    )
    assert status == 200 and taken["proposal"]["state"] == "accepted"


async def test_what_speaks_against_it(served: Served) -> None:
    outside = await propose(served, label=Label("untrusted", source="https://a.example"))
    status, problem = await served.owner.ask("POST", f"/api/proposals/{outside}/accept", {})
    assert status == 403 and "had read https://a.example" in problem["error"]["message"]
    assert (await served.owner.get(f"/api/proposals/{outside}"))["proposal"][
        "source"
    ] == "https://a.example"
    taken = await propose(served, "deskhand-help")
    findings = (await served.owner.get(f"/api/proposals/{taken}"))["findings"]
    assert findings[0]["words"] == "a skill has this name already", "by what is known now"
    for nothing in ("999", "x", "-1", "9" * 30, "%C2%B2"):
        status, problem = await served.owner.ask("GET", f"/api/proposals/{nothing}")
        assert status in (403, 404), nothing
    folder = file(served, "weather-notes").parent
    folder.mkdir(parents=True)
    (folder / "run.sh").touch()
    status, problem = await served.owner.ask(
        "POST", f"/api/proposals/{outside}/accept", {"untrusted": True}
    )
    assert status == 403 and "already" in problem["error"]["message"]


async def test_nobody_else_sees_them(served: Served) -> None:
    """They come from conversations of all."""
    id_ = await propose(served)
    await served.people.add_user("ann", "approver", Identity("telegram", "7"))
    for scopes in (("read", "chat"), ("read", "chat", "approve")):
        ann = (await served.token("ann", scopes))[1]
        for method, path in (
            ("GET", "/api/proposals"),
            ("GET", f"/api/proposals/{id_}"),
            *(("POST", f"/api/proposals/{id_}/{word}") for word in ("accept", "reject", "revert")),
        ):
            status, said = await ann.ask(method, path, {} if method == "POST" else None)
            assert status == 403 and "weather" not in str(said)
    assert not file(served, "weather-notes").exists()
