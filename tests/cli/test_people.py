"""Users, pairing, tokens and logins on the command line, on a real home."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from deskhand.config.clock import SystemClock
from deskhand.config.statements import load_statements
from deskhand.store.sqlite import SqliteStore
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text
from deskhand.types.people import Grant, Identity
from deskhand.users.users import LocalPeople, open_people

from .test_commands import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path / "home")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "deskhand.yaml").write_text(
        "agents: {main: {}, kitchen: {}}\nroles: {family: {agents: [kitchen]}}\n"
    )
    return made


def in_store(desk: Desk, ask: str, *args: object) -> object:
    """What another process sees there."""

    async def main() -> object:
        store = SqliteStore(desk.home / "state" / "deskhand.db", load_statements())
        try:
            found = getattr(open_people(store, SystemClock(), dict, dict), ask)(*args)
            return await found if hasattr(found, "__await__") else found
        finally:
            await store.close()

    assert hasattr(LocalPeople, ask)
    return anyio.run(main)


def wrote(sender: str) -> Inbound:
    place = Address("telegram", "bot", sender)
    return Inbound("1", place, sender, 1.0, Said(Message("user", (Text("hello"),))))


def test_users(desk: Desk) -> None:
    assert desk("users") == (
        "owner\towner\t\nOnly you, on this machine. To approve people who message your "
        "bot: deskhand pair\n"
    )
    assert desk("user", "add", "gavin", "--role", "admin", "slack", "U04ABC123") == (
        "Added gavin: owner, slack:U04ABC123\n"
    )
    assert desk("user", "link", "gavin", "telegram", "12345678", "--account", "bot").startswith(
        "Linked. Identities of gavin: "
    )
    assert desk("users", "add", "kid", "-r", "family") == "Added kid: family\n"
    assert desk("users", "list") == (
        "gavin\towner\tslack:U04ABC123, telegram/bot:12345678\nkid\tfamily\t\nowner\towner\t\n"
    )
    assert [user["name"] for user in json.loads(desk("users", "--json"))] == [
        "gavin",
        "kid",
        "owner",
    ]
    assert desk("users", "add-role", "kid", "viewer") == "kid has: family, viewer\n"
    assert desk("users", "remove-role", "kid", "viewer") == "kid has: family\n"
    told = desk("users", "info", "kid")
    assert (
        "may       read, chat\nagents    kitchen\n" in told
        and "no identities yet: deskhand users link" in told
    )
    assert desk("users", "unlink", "gavin", "slack", "U04ABC123") == "Unlinked slack:U04ABC123.\n"
    assert "Their conversations are kept" in desk("users", "remove", "gavin")
    assert desk("users", "list").splitlines() == ["kid\tfamily\t", "owner\towner\t"]
    log = [line.split("\t")[1:] for line in desk("users", "log").splitlines()]
    assert log[0] == ["owner", "user removed", "gavin"] and log[-1] == [
        "owner",
        "user added",
        "gavin owner slack:U04ABC123",
    ]
    assert len(log) == 7


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (
            ("users", "add", "Gavin"),
            1,
            "invalid user name 'Gavin': use a-z, 0-9, dot and hyphen",
        ),
        (
            ("users", "add", "g", "-r", "boss"),
            1,
            "there is no role 'boss'; there are: admin, approver, family, member",
        ),
        (("users", "add", "g", "slack"), 2, "add the person's id on 'slack'"),
        (
            ("users", "add", "g", "terminal", "1"),
            1,
            "'terminal:1' is not an identity: name a channel",
        ),
        (("users", "info", "g"), 2, "there is no user 'g'; list users with: deskhand users list"),
        (
            ("users", "remove", "owner"),
            1,
            "'owner' is the owner at this machine and cannot be removed",
        ),
        (("users", "remove-role", "owner", "admin"), 1, "keeps that role"),
        (
            ("users", "remove-role", "owner", "family"),
            1,
            "does not have the role 'family'; it has: owner",
        ),
        (("users", "unlink", "owner", "slack", "1"), 2, "slack:1 is not linked to 'owner'"),
        (
            ("tokens", "create", "x", "--scopes", "all"),
            2,
            "there is no scope 'all'; choose from: read, chat, approve, admin",
        ),
        (("tokens", "create", "x", "--user", "g"), 1, "there is no user 'g'"),
        (
            ("tokens", "revoke", "tok_"),
            2,
            "'tok_' is not a token; list tokens with: deskhand tokens list",
        ),
        (
            ("pair", "approve", "ABCDEFGH"),
            1,
            "this code is not valid: it was used, is too old, or was never given",
        ),
        (
            ("pair", "refuse", "ABCDEFGH"),
            1,
            "nobody waits with the code 'ABCDEFGH'; see: deskhand pair list",
        ),
        (("login",), 1, "Deskhand is not running; start it with: deskhand serve"),
    ],
)
def test_mistakes_end_in_a_sentence(
    desk: Desk, args: tuple[str, ...], code: int, said: str
) -> None:
    assert said in desk(*args, code=code)


def test_tokens(desk: Desk) -> None:
    assert desk("tokens") == "No tokens yet. Create one: deskhand tokens create phone\n"
    made = desk("tokens", "create", "phone", "--scopes", "read, chat", "--days", "30").splitlines()
    secret, told = made
    assert (
        secret.startswith("dh_")
        and "owner may read, chat with it, for 30 days" in told
        and secret not in told
    )
    grant = in_store(desk, "authenticate", secret)
    assert isinstance(grant, Grant) and grant.scopes == ("read", "chat")
    desk("tokens", "create", "script", "--days", "0")
    phone, script = sorted(desk("tokens").splitlines(), key=lambda line: line.split("\t")[2])
    assert "matches more than one token" in desk("tokens", "revoke", "tok_", code=2)
    token_id, *_, expires, _ = phone.split("\t")
    assert expires.startswith("20") and script.split("\t")[1:5] == [
        "owner",
        "script",
        "read,chat,approve,admin",
        "never",
    ]
    fresh, told = desk("tokens", "rotate", token_id[:10]).splitlines()
    assert in_store(desk, "authenticate", secret) is None and isinstance(
        in_store(desk, "authenticate", fresh), Grant
    )
    again = next(
        row["id"] for row in json.loads(desk("tokens", "--json")) if row["name"] == "phone"
    )
    assert desk("tokens", "revoke", again) == f"Revoked {again}.\n"
    assert in_store(desk, "authenticate", fresh) is None
    assert secret.encode() not in b"".join(
        path.read_bytes() for path in (desk.home / "state").glob("deskhand.db*")
    )


def test_login(desk: Desk) -> None:
    desk("users", "add", "ann")
    (desk.home / "state" / "web.json").write_text('{"url": "http://127.0.0.1:8000"}')
    link, told = desk("login", "--user", "ann").splitlines()
    url, _, secret = link.partition("#login=")
    assert (
        url == "http://127.0.0.1:8000/"
        and told == "Open it within ten minutes; it signs in one browser as ann."
    )
    assert (
        in_store(desk, "redeem_login", secret) is not None
        and in_store(desk, "redeem_login", secret) is None
    )
    assert "browser" in desk("tokens")


def test_pairing(desk: Desk) -> None:
    assert desk("pair").startswith("No pairing requests. ")
    first, second, third = [
        in_store(desk, "request_pairing", wrote(sender)) for sender in ("42", "43", "44")
    ]
    assert isinstance(first, str) and isinstance(second, str) and isinstance(third, str)
    rows = [line.split("\t") for line in desk("pair").splitlines()]
    asked = ((first, 42), (second, 43), (third, 44))
    asked = ((first, 42), (second, 43), (third, 44))
    assert sorted(rows) == sorted(
        [code, f"telegram/bot:{sender}", "60 minutes"] for code, sender in asked
    )
    assert {row["code"] for row in json.loads(desk("pair", "list", "--json"))} == {
        first,
        second,
        third,
    }
    asked_first = desk("pair", "approve", first, code=1)
    assert (
        "telegram/bot:42 will be you, the owner, who may do everything." in asked_first
        and "--yes" in asked_first
    )
    named = desk("pair", "approve", first, "--user", "gavin", code=2)
    assert (
        "gavin would be the first user: add --role owner if that is you, otherwise --role member"
        in named
    )
    assert json_identities(desk) == []
    assert desk("pair", "approve", first, "--yes") == (
        "telegram/bot:42 will be you, the owner, who may do everything.\n"
        "Approved: you, the owner, who may do everything, known as telegram/bot:42\n"
    )
    assert desk("pair", "approve", second.lower(), "--user", "bob", "-r", "family") == (
        "telegram/bot:43 will be bob, role family.\nApproved: bob, role family, known as "
        "telegram/bot:43\n"
    )
    fourth = in_store(desk, "request_pairing", wrote("45"))
    assert isinstance(fourth, str)
    assert "will be gavin, role member, who may talk.\n" in desk(
        "pair", "approve", fourth, "--user", "gavin"
    )
    assert desk("pair", "refuse", third) == "Refused.\n" and desk("pair").startswith(
        "No pairing requests. "
    )
    assert Identity("telegram", "42", "bot") in json_identities(desk)
    for left in (4, 3, 2, 1):
        assert f"({left} tries left)" in desk(
            "pair", "approve", "ABCDEFGH", "--user", "eve", code=1
        )
    assert "none is accepted for an hour" in desk(
        "pair", "approve", "ABCDEFGH", "--user", "eve", code=1
    )
    assert "Too many wrong codes: no code is accepted until" in desk("pair")


def json_identities(desk: Desk) -> list[Identity]:
    return [
        Identity(**each)
        for user in json.loads(desk("users", "--json"))
        for each in user["identities"]
    ]
