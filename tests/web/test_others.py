"""What belongs to somebody else, asked for by its id over HTTP: refused in every way there is, and
written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from deskhand.web.endpoints import ENDPOINTS

from .served import serving

BODY = {
    "text": "let me in",
    "message": "let me in",
    "to_n": 0,
    "at_n": 1,
    "choice": "once",
    "title": "mine",
    "link": "x",
}


async def test_a_conversation_and_all_that_is_under_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert (await served.owner.ask("POST", "/api/sessions/mine/messages", {"text": "secret"}))[
            0
        ] == 202
        session = "default/web:owner:mine"
        theirs = "default~web:owner:mine"
        await served.owner.get(f"/api/sessions/{theirs}/log")
        with anyio.fail_after(20):
            while await served.app.store.open_sessions():
                await anyio.sleep(0.005)
        before = len(await served.app.store.events(session))
        for role in ("viewer", "member", "approver"):
            await served.people.add_user(f"a-{role}", role)
            _, client = await served.token(f"a-{role}")
            tried = 0
            for endpoint in ENDPOINTS:
                if "{name}" not in endpoint.path:
                    continue
                tried += 1
                path = (
                    endpoint.path.replace("{name}", theirs)
                    .replace("{ask}", "ask_1")
                    .replace("{path:path}", "x")
                )
                body = BODY if endpoint.method in ("POST", "PATCH", "PUT") else None
                status, said = await client.ask(endpoint.method, path, body)
                signed = endpoint.path.startswith(
                    "/api/hooks/"
                )  # who signs may call it, and nobody else
                assert status == 401 if signed else status in (403, 404), (
                    role,
                    endpoint.name,
                    status,
                )
                assert signed or "secret" not in str(said), (role, endpoint.name)
            assert tried > 5
            assert await client.get("/api/sessions") == {"sessions": []}
            noted = {
                note.subject
                for note in await served.people.list_audit_notes()
                if note.who == f"a-{role}"
            }
            assert session in noted
        assert len(await served.app.store.events(session)) == before


async def test_the_files_of_an_agent_are_for_those_who_may_talk_to_it(tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "agents": {"main": {}, "kitchen": {}},
        "roles": {"family": {"agents": ["kitchen"]}},
    }
    async with serving(tmp_path, **config) as served:
        await served.people.add_user("kid", "family")
        _, kid = await served.token("kid")
        await kid.get("/api/files?agent=kitchen")
        for path in (
            "/api/files?agent=main",
            "/api/files",
            "/api/files/raw?agent=main&path=RULES.md",
        ):
            assert (await kid.ask("GET", path))[0] == 404
        status, _ = await kid.ask(
            "POST", "/api/sessions/main~web:kid:x/messages", {"text": "hello"}
        )
        assert status == 403
        noted = {
            (note.what, note.subject)
            for note in await served.people.list_audit_notes()
            if note.who == "kid"
        }
        assert noted == {("files refused", "main"), ("write to agent", "main")}
