"""Users, their identities and roles, and who is let in: in the real store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from deskhand.config.statements import load_statements
from deskhand.policy.roles import allowed_agents, allowed_scopes, may_talk, narrow_roles
from deskhand.store.schema import connect
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock
from deskhand.types.errors import ConfigError, Refused, StoreError
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import Message, Text
from deskhand.types.people import ROLE_SCOPES, SCOPES, Identity, Scope
from deskhand.users.users import LocalPeople, open_people

T0 = 1_800_000_000.0
FAMILY = {"family": ("kitchen", "garden")}
CAT = Identity("chat", "42")


@asynccontextmanager
async def people_in(
    home: Path,
    clock: SetClock,
    roles: Mapping[str, Collection[str]] | None = None,
    guests: Mapping[str, tuple[str, ...]] | None = None,
) -> AsyncIterator[LocalPeople]:
    store = SqliteStore(home / "deskhand.db", load_statements())
    try:
        yield open_people(store, clock, lambda: roles or {}, lambda: guests or {})
    finally:
        await store.close()


def wrote(sender: str, channel: str = "chat", account: str = "", group: bool = False) -> Inbound:
    place = Address(channel, account, f"chat of {sender}", group=group)
    return Inbound("1", place, sender, T0, Said(Message("user", (Text("hello"),))))


async def test_who_is_who(tmp_path: Path) -> None:
    async with people_in(tmp_path, SetClock(T0)) as people:
        assert [user.name for user in await people.users()] == ["owner"]
        ann = await people.add_user("ann", "approver", CAT)
        assert (ann.roles, ann.identities, ann.created_at) == (("approver",), (CAT,), T0)
        assert people.authorize(wrote("42")) == Principal("ann", ("approver",))
        for stranger in (
            wrote("43"),
            wrote("ann"),
            wrote(""),
            wrote("42", "other"),
            wrote("ann", "door"),
        ):
            assert people.authorize(stranger) is None, stranger
        assert (
            people.authorize(wrote("ann", "web"))
            == people.authorize(wrote("ann", "api"))
            == Principal("ann", ann.roles)
        )
        assert people.authorize(wrote("whoever", "terminal")) == Principal("owner", ("owner",))
        await people.link("ann", Identity("mail", "ann@x", "work"))
        assert people.authorize(wrote("ann@x", "mail", "work")) is not None
        assert people.authorize(wrote("ann@x", "mail", "home")) is None, "another account"
        await people.unlink(CAT)
        assert people.authorize(wrote("42")) is None
        await people.remove_user("ann")
        assert (
            people.authorize(wrote("ann@x", "mail", "work")) is None
            and people.authorize(wrote("ann", "web")) is None
        )
        assert [(note.who, note.what) for note in await people.list_audit_notes()] == [
            ("owner", what) for what in ("user removed", "unlinked", "linked", "user added")
        ]


async def test_roles_come_and_go(tmp_path: Path) -> None:
    async with people_in(tmp_path, SetClock(T0), FAMILY) as people:
        await people.add_user("bob", "family", CAT)
        assert (await people.add_role("bob", "admin")).roles == ("family", "owner")
        assert (await people.remove_role("bob", "admin")).roles == ("family",)
        await people.remove_role("bob", "family")
        assert people.authorize(wrote("42")) is None, "without a role nobody is let in"
        assert (await people.add_role("bob", "viewer")).roles == ("viewer",)


async def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    async with people_in(tmp_path, SetClock(T0), FAMILY) as people:
        await people.add_user("ann", "member", CAT)
        for name in ("", "Ann", "a b", "a/b", "ä", "a" * 65):
            with pytest.raises(ConfigError, match="invalid user name"):
                await people.add_user(name, "member")
        for role, words in (
            ("boss", "admin, approver, family, member, owner, viewer"),
            ("guest", "allow_from"),
        ):
            with pytest.raises(ConfigError, match=words):
                await people.add_user("bob", role)
        with pytest.raises(Refused, match="belongs to 'ann'; unlink it first"):
            await people.add_user("bob", "member", CAT)
        with pytest.raises(Refused, match="belongs to 'ann'"):
            await people.link("owner", Identity("chat", "42", "bot"))
        for identity in (Identity("terminal", "x"), Identity("web", "ann"), Identity("chat", " ")):
            with pytest.raises(ConfigError, match="is not an identity"):
                await people.link("ann", identity)
        for refused in (
            people.add_user("ann", "member"),
            people.remove_user("bob"),
            people.link("bob", CAT),
        ):
            with pytest.raises(Refused, match=r"'ann' already|no user 'bob'"):
                await refused
        with pytest.raises(Refused, match="cannot be removed"):
            await people.remove_user("owner")
        with pytest.raises(Refused, match="keeps that role"):
            await people.remove_role("owner", "admin")
        assert [user.name for user in await people.users()] == ["ann", "owner"]


async def test_only_an_owner_changes_anything(tmp_path: Path) -> None:
    """Each change that there is, as everybody who is not one."""
    async with people_in(tmp_path, SetClock(T0), FAMILY) as owner:
        await owner.add_user("eve", "member", CAT)
        token, _ = await owner.make_token("owner", "phone")
        before = (await owner.users(), await owner.tokens(), await owner.list_audit_notes())
        for role in ("approver", "member", "viewer", "guest", "family", ""):
            eve = owner.acting_as(Principal("eve", (role,) if role else ()))
            for attempt in (
                eve.add_user("mallory", "owner"),
                eve.remove_user("owner"),
                eve.link("eve", Identity("chat", "43")),
                eve.unlink(CAT),
                eve.add_role("eve", "owner"),
                eve.remove_role("owner", "owner"),
                eve.make_token("eve", "mine"),
                eve.tokens(),
                eve.tokens("owner"),
                eve.rotate(token.id),
                eve.revoke(token.id),
                eve.make_login("eve"),
                eve.approve("ABCDEFGH"),
                eve.refuse("ABCDEFGH"),
                eve.pairings(),
                eve.list_audit_notes(),
            ):
                with pytest.raises(Refused, match="only an owner may"):
                    await attempt
            assert [user.name for user in await eve.users()] == ["eve"] and await eve.tokens(
                "eve"
            ) == []
        for kind in ("agent", "clock"):
            with pytest.raises(Refused):
                await owner.acting_as(Principal("owner", ("owner",), kind)).add_user("x", "member")
        assert (await owner.users(), await owner.tokens(), await owner.list_audit_notes()) == before


async def test_another_process_changes_it(tmp_path: Path) -> None:
    script = """
import sys, anyio
from pathlib import Path
from deskhand.config.clock import SystemClock
from deskhand.users.users import open_people
from deskhand.config.statements import load_statements
from deskhand.store.sqlite import SqliteStore
async def main():
    store = SqliteStore(Path(sys.argv[1]), load_statements())
    people = open_people(store, SystemClock(), dict, dict)
    await people.add_role("ann", "approver")
    await people.remove_role("ann", "member")
    await store.close()
anyio.run(main)
"""
    async with people_in(tmp_path, SetClock(T0)) as people:
        await people.add_user("ann", "member", CAT)
        _, secret = await people.make_token("ann", "phone")
        assert people.authorize(wrote("42")) == Principal("ann", ("member",))
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "deskhand.db")], check=True)
        assert people.authorize(wrote("42")) == Principal("ann", ("approver",)), "at once"
        grant = await people.authenticate(secret)
        assert grant is not None and grant.scopes == ("read", "chat"), (
            "a token gives no more than when it was made"
        )


async def test_nothing_is_read_while_nothing_changes(tmp_path: Path) -> None:
    """It stands on the path of every message: one row, and no list of all users."""
    asked = []

    class Counting(SqliteStore):
        def query_sync(
            self, statement: str, args: tuple[str | int | float | bytes | None, ...] = ()
        ) -> list[tuple[object, ...]]:
            asked.append(statement)
            return super().query_sync(statement, args)

    store = Counting(tmp_path / "deskhand.db", load_statements())
    people = open_people(store, SetClock(T0), dict, dict)
    await people.add_user("ann", "member", CAT)
    people.authorize(wrote("42"))
    asked.clear()
    for _ in range(5):
        people.authorize(wrote("42"))
        people.authorize(wrote("whoever", "terminal"))
    assert asked == ["people_version"] * 5
    await store.close()


DAMAGE = {
    "a table is missing": "DROP TABLE user_identity",
    "no version": "DELETE FROM people",
    "all are missing": "; ".join(
        f"DROP TABLE {name}" for name in ("user_role", "user_identity", "token", "login", "user")
    ),
}


@pytest.mark.parametrize("how", [*DAMAGE, "damaged pages"])
async def test_without_users_only_the_terminal_is_let_in(how: str, tmp_path: Path) -> None:
    async with people_in(tmp_path, SetClock(T0), guests={"chat": ("7",)}) as people:
        await people.add_user("ann", "owner", CAT)
        _, secret = await people.make_token("ann", "phone")
        assert (
            people.authorize(wrote("42")) and people.authorize(wrote("7")) and people.health() == ""
        )
    path = tmp_path / "deskhand.db"
    if how in DAMAGE:
        db = connect(path, write=True)
        db.execute(f"PRAGMA foreign_keys = OFF; {DAMAGE[how]}").fetchall()
        db.close()
    else:
        db = connect(path, write=False)
        pages = db.execute(
            "SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'user_identity'"
        ).fetchall()
        db.close()
        raw = bytearray(path.read_bytes())
        for (page,) in pages:
            raw[(int(str(page)) - 1) * 4096 : int(str(page)) * 4096] = b"\xa5" * 4096
        path.write_bytes(raw)
    async with people_in(tmp_path, SetClock(T0), guests={"chat": ("7",)}) as people:
        for stranger in (wrote("42"), wrote("7"), wrote("ann", "web"), wrote("owner", "web")):
            assert people.authorize(stranger) is None, stranger
        assert people.authorize(wrote("x", "terminal")) == Principal("owner", ("owner",))
        assert "only the terminal is let in" in people.health()
        with suppress(StoreError):  # that is no grant either
            assert await people.authenticate(secret) is None
        assert await people.request_pairing(wrote("9")) == ""


async def test_an_empty_list_lets_nobody_in(tmp_path: Path) -> None:
    async with people_in(tmp_path, SetClock(T0), guests={"chat": ()}) as people:
        assert people.authorize(wrote("42")) is None and not people.admits_anyone()
        assert people.health().startswith("nobody may write on chat yet")
        await people.add_user("ann", "member", CAT)
        assert people.health() == "" and people.admits_anyone()
    async with people_in(tmp_path, SetClock(T0), guests={"chat": ("7",)}) as people:
        guest = people.authorize(wrote("7"))
        assert guest == Principal("chat:7", ("guest",)) and people.health() == ""
        assert people.may_talk(guest, "any") and people.authorize(wrote("7", "other")) is None
        assert people.authorize(wrote("42")) == Principal("ann", ("member",)), "a user is no guest"


ROLES: list[tuple[tuple[str, ...], tuple[Scope, ...], tuple[str, ...] | None]] = [
    (("owner",), SCOPES, None),
    (("approver",), ("read", "chat", "approve"), None),
    (("viewer",), ("read",), None),
    (("family",), ("read", "chat"), ("garden", "kitchen")),
    (("family", "viewer"), ("read", "chat"), None),
    (("gone",), (), ()),
    ((), (), ()),
]


@pytest.mark.parametrize(("roles", "scopes", "agents"), ROLES)
def test_what_a_role_is_worth(
    roles: tuple[str, ...], scopes: tuple[Scope, ...], agents: tuple[str, ...] | None
) -> None:
    assert (allowed_scopes(roles, FAMILY), allowed_agents(roles, FAMILY)) == (scopes, agents)
    who = Principal("x", roles)
    assert may_talk(who, "kitchen", FAMILY) == ("chat" in scopes)
    assert may_talk(who, "cellar", FAMILY) == ("chat" in scopes and agents is None)


def test_a_role_of_ones_own_may_take_the_name_of_viewer() -> None:
    custom = {"viewer": ("kitchen",), "owner": ("kitchen",), "all": ("*",)}
    assert allowed_scopes(("viewer",), custom) == ROLE_SCOPES["member"] and allowed_agents(
        ("viewer",), custom
    ) == ("kitchen",)
    assert (
        allowed_scopes(("owner",), custom) == SCOPES and allowed_agents(("owner",), custom) is None
    )
    assert allowed_agents(("viewer", "all"), custom) is None


NARROWED: list[tuple[tuple[str, ...], tuple[Scope, ...], tuple[str, ...]]] = [
    (("owner",), SCOPES, ("owner",)),
    (("owner",), ("read", "chat", "approve"), ("approver",)),
    (("owner",), ("read", "chat"), ("member",)),
    (("approver", "family"), ("read", "chat"), ("member", "family")),
    (("owner",), ("read",), ("viewer",)),
    (("family",), ("read",), ("viewer",)),
    (("viewer",), SCOPES, ("viewer",)),
    (("owner",), (), ()),
]


@pytest.mark.parametrize(("roles", "scopes", "left"), NARROWED)
def test_a_smaller_credential_makes_a_smaller_role(
    roles: tuple[str, ...], scopes: tuple[Scope, ...], left: tuple[str, ...]
) -> None:
    assert narrow_roles(roles, FAMILY, scopes) == left
    assert set(allowed_scopes(left, FAMILY)) <= set(scopes)
