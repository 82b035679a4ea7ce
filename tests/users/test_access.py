"""Who may do what, asked of everything that there is: a command, a kind of message, a route or a
change of users without a rule fails here. Then the rules themselves, on a whole Deskhand."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import anyio
import msgspec
import pytest

from deskhand.agent.state import State
from deskhand.assembly.chat_commands import ChatCommands
from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import FileTool
from deskhand.types.commands import COMMANDS
from deskhand.types.errors import Refused
from deskhand.types.events import ApprovalAsked, CommandRun
from deskhand.types.identity import (
    Address,
    Answer,
    Body,
    Command,
    Configure,
    Deletion,
    Edit,
    Inbound,
    Principal,
    Reaction,
    Receipt,
    Result,
    Rewind,
    Said,
    ToolResults,
    Waiting,
)
from deskhand.types.messages import Audio, File, Image, Message, Part, Text, ToolCall, ToolResult
from deskhand.types.options import SessionOptions
from deskhand.types.people import ROLE_SCOPES, SCOPES, Grant, Identity, People
from deskhand.users.strangers import NO_ACCESS
from deskhand.web.endpoints import ENDPOINTS, SOCKETS
from deskhand.web.errors import HttpProblem
from deskhand.web.guard import check_scope
from deskhand.web.routing import Needs

T0 = 1_800_000_000.0

COMMAND_RULES = dict.fromkeys(
    (
        "help",
        "stop",
        "start",
        "status",
        "undo",
        "retry",
        "branch",
        "voice",
        "handoff",
        "quiet",
        "language",
        "digest",
        "document",
        "clean",
        "trust",
        "model",
        "title",
        "approval",
        "teams",
        "plan",
        "context",
        "compact",
        "uncompact",
        "cost",
        "agents",
        "jobs",
        "memory",
        "deep",
        "goal",
    ),
    "",
) | {"restart": "owner", "skills": "owner"}
"""The role that each chat command needs; '' for everyone who may talk here."""
BODY_RULES: dict[type, tuple[str, ...]] = {
    Said: ("chat",),
    Answer: ("chat",),  # of an approval: policy.may_approve, asked when it is taken in
    Command: ("chat",),
    Edit: ("chat",),
    Deletion: ("chat",),
    Reaction: ("chat",),
    Rewind: ("chat",),  # whose turns: agent.rewind
    Configure: ("chat",),  # lowering the approval: assembly.chat_commands
    Result: (),  # from our own parts alone
    ToolResults: ("chat",),  # whose calls: agent.admit, by names that nobody can guess
}
"""The scope that a person needs to hand in each kind of thing."""
PEOPLE_RULES: dict[str, set[str]] = {
    "owner": {
        *(
            "add_user",
            "remove_user",
            "link",
            "unlink",
            "add_role",
            "remove_role",
            "make_token",
            "rotate",
        ),
        *("make_login", "pairings", "approve", "refuse", "list_audit_notes"),
    },
    "own or owner": {"users", "tokens", "revoke"},
    "anyone": {
        "acting_as",
        "health",
        "add_audit_note",
        "authorize",
        "find_user",
        "make_grant",
        "may_talk",
        "authenticate",
        "log_in",
        "redeem_login",
        "request_pairing",
    },
}
"""Who may call each method: `test_only_an_owner_changes_anything` in test_users.py tries those of
owners."""
PUBLIC_ROUTES = {
    "POST /api/login",
    "POST /api/login/platform",
    "GET /health",
    "GET /openapi.json",
    "GET /api/auth/config",
    "GET /auth/sign-in",
    "GET /auth/callback",
    "POST /api/hooks/{name}",
    "POST /api/hooks/channels/{name}",
    "GET /.well-known/agent-card.json",
    "POST /auth/device",
    "POST /auth/token",
    "GET /auth/approve",
    "GET /share/{secret}",
    "GET /share/{secret}/files/{file}",
}
"""What is answered without a credential: nothing that tells or changes anything of anyone. A hook
wants a signature; a device waits for an owner, where the settings allow any; the address of what
was shared is its credential."""
PUSH = ("POST /api/push", "DELETE /api/push/{id}", "POST /api/push/{id}/test")
READING_POSTS = {"POST /api/logout", "DELETE /api/tokens/{id}", "PUT /api/inbox/seen", *PUSH}
"""What changes nothing but the caller's own credentials, and what they have seen."""
NEEDS: dict[str, Needs] = {each.name: each.needs for each in ENDPOINTS} | {
    f"WS {s.path}": s.needs for s in SOCKETS
}


def test_every_command_has_a_rule() -> None:
    assert {name: command.role for name, command in COMMANDS.items()} == COMMAND_RULES


def test_every_kind_of_message_has_a_rule() -> None:
    assert set(get_args(Body)) == set(BODY_RULES)


def test_every_change_of_users_has_a_rule() -> None:
    methods = {
        name
        for name, _ in inspect.getmembers(People, inspect.isfunction)
        if not name.startswith("_")
    }
    ruled = [name for names in PEOPLE_RULES.values() for name in names]
    assert sorted(ruled) == sorted(methods)


def test_every_route_has_a_rule() -> None:
    """What needs nothing is listed here, and what changes something needs more than reading."""
    assert {each.name for each in ENDPOINTS if each.needs == "public"} <= PUBLIC_ROUTES
    assert set(NEEDS.values()) <= {"public", *SCOPES}
    weak = {each.name for each in ENDPOINTS if each.method != "GET" and each.needs == "read"}
    assert weak <= READING_POSTS
    assert "public" not in {NEEDS[f"WS {each.path}"] for each in SOCKETS}


@pytest.mark.parametrize("role", ROLE_SCOPES)
def test_a_route_is_for_those_who_have_its_scope(role: str) -> None:
    scopes = ROLE_SCOPES[role]
    grant = Grant(Principal("x", (role,)), scopes, "tok")
    for needs in NEEDS.values():
        if needs == "public":
            continue
        with pytest.raises(HttpProblem) as anonymous:
            check_scope(None, needs)
        assert anonymous.value.status == 401
        if needs not in scopes:
            with pytest.raises(HttpProblem) as refused:
                check_scope(grant, needs)
            assert refused.value.status == 403


@pytest.mark.parametrize("roles", [("viewer",), ("member",), ("approver",), ("guest",), ()])
def test_a_command_of_owners_is_refused_to_all_others(roles: tuple[str, ...]) -> None:
    """As far as there are any: each one that needs a role is tried."""
    place = Address("web", "x", "1")
    for name, command in COMMANDS.items():
        row = Waiting(1, Principal("x", roles), Inbound("1", place, "x", T0, Command(name)))
        refused = bool(command.role) and command.role not in roles
        done = ChatCommands(lambda principal, session, options: "").run(State("s"), row) or []
        replies = [event.reply for event in done if isinstance(event, CommandRun)]
        assert (replies == [f"/{name} is for {command.role}s."]) == refused


# ---------------------------------------------------------------------- on a whole Deskhand

CONFIG = {
    "defaults": {"models": ["scripted/x"]},
    "agents": {"main": {}, "kitchen": {}},
    "roles": {"family": {"agents": ["kitchen"]}},
}


def script(request: Request) -> Message:
    text = request.messages[-1].message.text
    if "act" in text:
        return say("", ToolCall("c1", "act", msgspec.Raw(b'{"text":"rm x"}')))
    return say(f"You said: {text.rpartition('] ')[2]}")


@asynccontextmanager
async def running(home: Path, channel: MemoryChannel) -> AsyncIterator[App]:
    settings = Settings(Home(home), msgspec.convert(CONFIG, Config, strict=False))
    act = FileTool("act", home / "acts.txt")
    act.spec = msgspec.structs.replace(act.spec, effect="host")
    parts = Parts(
        lambda name: ScriptedModel(script), {"act": act}, channels=(channel,), clock=SetClock(T0)
    )
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        for name, role in (
            ("ann", "owner"),
            ("bob", "member"),
            ("vera", "viewer"),
            ("kid", "family"),
        ):
            await app.people.add_user(name, role, Identity("memory", f"id of {name}"))
        tasks.start_soon(app.run)
        yield app
        tasks.cancel_scope.cancel()


async def until(found: Any) -> Any:
    with anyio.fail_after(20):
        while not (value := await found()):
            await anyio.sleep(0.005)
    return value


def web(sender: str, session: str, body: Body | str, number: str = "1") -> Inbound:
    said = Said(Message("user", (Text(body),))) if isinstance(body, str) else body
    return Inbound(number, Address("web", sender, "x"), sender, T0, said, session)


def message(*parts: Part) -> Message:
    return Message("user", parts)


KINDS: dict[str, Body] = {
    "message": Said(message(Text("hello"))),
    "voice": Said(message(Audio("sha256:" + "a" * 64, "audio/ogg", "hello"))),
    "picture": Said(message(Image("sha256:" + "a" * 64, "image/png"))),
    "file": Said(message(File("sha256:" + "a" * 64, "a.txt", "text/plain", 3))),
    "edit": Edit("1", message(Text("hello"))),
    "deletion": Deletion("1"),
    "reaction": Reaction("1", "👍", True),
    "button": Answer("ask_1", "once"),
    "command": Command("stop"),
    "typed command": Said(message(Text("/stop"))),
    "rewind": Rewind(0),
    "rewind with a message": Rewind(0, message(Text("hello"))),
    "options": Configure(SessionOptions(title="mine")),
    "result": Result("c1", (Text("all is well"),)),
    "results of a program": ToolResults((ToolResult("c1", (Text("all is well"),)),)),
}


def test_every_kind_is_tried() -> None:
    assert {type(body) for body in KINDS.values()} == set(BODY_RULES)


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_of_who_may_not_is_stored(kind: str, tmp_path: Path) -> None:
    """Neither of a stranger, nor of who may only read, nor for an agent that is not theirs: by a
    new message, in a thread, as an answer to another, and with the name of somebody who may."""
    body = KINDS[kind]
    async with running(tmp_path, MemoryChannel()) as app:
        number = 0

        async def hand_in(
            sender: str, place: Address, reply_to: str = "", session: str = ""
        ) -> Receipt:
            nonlocal number
            number += 1
            return await app.door.submit(
                Inbound(str(number), place, sender, T0, body, session, reply_to)
            )

        chat = Address("memory", chat="1")
        thread = Address("memory", chat="1", thread="2")
        for sender in ("666", "ann", "id of vera", "id of kid", ""):
            for place in (chat, thread, Address("memory", chat="all", group=True)):
                assert (await hand_in(sender, place, "5")).status == "refused", sender
        for sender, surface in (
            ("vera", "web"),
            ("nobody", "api"),
            ("ann/viewer", "web"),
            ("kid", "api"),
        ):
            place = Address(surface, sender.partition("/")[0], "1")
            session = f"main/{surface}:{place.account}:1"
            assert (await hand_in(sender, place, session=session)).status == "refused", sender
        assert app.store.last_inbox_id() == 0 and await app.store.open_sessions() == []
        mine = await hand_in("id of bob", chat)
        # A result comes from our own parts alone; and nothing was said that could be taken back.
        of_theirs = not isinstance(body, Result | Deletion)
        assert mine.status == ("accepted" if of_theirs else "refused")


async def test_what_is_anothers_is_refused_and_written_down(tmp_path: Path) -> None:
    """By their ids: conversation, approval, stop, and a conversation that does not exist yet."""
    async with running(tmp_path, MemoryChannel()) as app:
        bobs = "main/web:bob:x"
        assert (await app.door.submit(web("bob", bobs, "act"))).status == "accepted"

        async def asked() -> list[ApprovalAsked]:
            events = [recorded.event for recorded in await app.store.events(bobs)]
            return [event for event in events if isinstance(event, ApprovalAsked)]

        (ask,) = await until(asked)
        await app.people.add_user("eve", "approver")
        eve = Principal("eve", ("approver",))
        ids = [
            bobs,
            "main/memory:1",
            "main/web:bob:later",
            "main/terminal:t",
            "main/web:eve2:x",
            "main/web:ev",
        ]
        for number, session in enumerate(ids):
            for body in (
                "hello",
                Answer(ask.ask_id, "once"),
                Command("stop"),
                Reaction("1", "x", True),
            ):
                receipt = await app.door.submit(
                    web("eve", session, body, f"{number}{type(body).__name__}")
                )
                assert receipt == Receipt("refused", reason=f"{session!r} is not yours to write in")
        with pytest.raises(Refused, match="not yours to see"):
            async for _ in app.door.follow(bobs, eve):
                raise AssertionError("it was shown")
        with pytest.raises(Refused, match="not yours to stop"):
            await app.door.stop(bobs, eve)
        with pytest.raises(Refused, match="so you cannot erase it"):
            await app.store.erase(eve, bobs, T0)
        assert await app.store.sessions(eve) == [] and not await app.store.may_see(eve, bobs)
        own = await app.door.submit(web("eve", "main/web:eve:x", Answer(ask.ask_id, "once"), "own"))

        async def replied() -> list[str]:
            events = [recorded.event for recorded in await app.store.events("main/web:eve:x")]
            return [event.reply for event in events if isinstance(event, CommandRun)]

        assert own.status == "accepted" and await until(replied) == [
            "That question is no longer open."
        ]
        assert not (tmp_path / "acts.txt").exists()
        notes = [
            (note.what, note.subject)
            for note in await app.people.list_audit_notes()
            if note.who == "eve"
        ]
        assert sorted(notes) == sorted(
            [("follow", bobs), ("stop", bobs), *(("write in", session) for session in ids)]
        )


async def test_an_agent_is_for_those_whose_roles_name_it(tmp_path: Path) -> None:
    """With all that is the agent's: its conversations, its files, its key-values."""
    async with running(tmp_path, MemoryChannel()) as app:
        refused = await app.door.submit(web("kid", "main/web:kid:x", "hello", "1"))
        allowed = await app.door.submit(web("kid", "kitchen/web:kid:x", "hello", "2"))
        unknown = await app.door.submit(web("kid", "other/web:kid:x", "hello", "3"))
        assert (refused.reason, unknown.reason, allowed.status) == (
            NO_ACCESS,
            NO_ACCESS,
            "accepted",
        )
        _, secret = await app.people.make_token("kid", "tablet")
        grant = await app.people.authenticate(secret)
        assert grant is not None and grant.agents == ("kitchen",)
        assert not app.people.may_talk(grant.principal, "main") and app.people.may_talk(
            grant.principal, "kitchen"
        )
        notes = [
            (note.what, note.subject)
            for note in await app.people.list_audit_notes()
            if note.who == "kid"
        ]
        assert sorted(notes) == [("write to agent", "main"), ("write to agent", "other")]


async def test_a_group_shows_nobody_the_private_chats_of_the_others(tmp_path: Path) -> None:
    channel = MemoryChannel()
    async with running(tmp_path, channel) as app:
        group = Address("memory", chat="all", group=True)
        for number, name in enumerate(("bob", "ann")):
            said = Said(message(Text("hello all")))
            channel.waiting.append(Inbound(f"g{number}", group, f"id of {name}", T0, said))
        channel.write("a secret", chat="bob alone", sender="id of bob", external_id="b")
        channel.write("another secret", chat="ann alone", sender="id of ann", external_id="a")

        async def answered() -> bool:
            return len(channel.sent) == 4

        await until(answered)
        bob = Principal("bob", ("member",))
        eve = Principal("eve", ("member",))
        assert {row.session for row in await app.store.sessions(bob)} == {
            "main/memory:all",
            "main/memory:bob alone",
        }
        assert not await app.store.may_see(bob, "main/memory:ann alone")
        assert await app.store.sessions(eve) == [], "who has said nothing there sees nothing"
