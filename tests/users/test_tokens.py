"""Tokens and one-time links: what they are worth, for how long, and what is kept of them."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from deskhand.testing.clock import SetClock
from deskhand.types.errors import ConfigError, Refused
from deskhand.types.identity import Principal
from deskhand.types.people import SCOPES
from deskhand.users.tokens import BROWSER_TTL_S, LOGIN_TTL_S

from .test_users import FAMILY, T0, people_in, wrote


async def test_a_token_is_worth_what_it_was_made_for(tmp_path: Path) -> None:
    async with people_in(tmp_path, SetClock(T0), FAMILY) as people:
        await people.add_user("ann", "approver")
        row, secret = await people.make_token("ann", " my\nphone ", ("read", "chat", "admin"), 60.0)
        assert (row.user, row.name, row.kind, row.scopes) == (
            "ann",
            "my phone",
            "api",
            ("read", "chat"),
        )
        assert secret.startswith("dh_") and len(secret) == 46
        grant = await people.authenticate(secret)
        assert grant is not None
        assert (grant.principal, grant.scopes, grant.token_id) == (
            Principal("ann", ("member",)),
            row.scopes,
            row.id,
        )
        assert (grant.expires_at, grant.agents, grant.browser) == (T0 + 60, None, False)
        await people.add_user("kid", "family")
        _, theirs = await people.make_token("kid", "tablet")
        kid = await people.authenticate(theirs)
        assert kid is not None and kid.agents == ("garden", "kitchen") and kid.expires_at is None


async def test_of_a_secret_nothing_is_kept(tmp_path: Path) -> None:
    clock = SetClock(T0)
    async with people_in(tmp_path, clock) as people:
        secrets = [(await people.make_token("owner", "a"))[1], await people.make_login("owner")]
        redeemed = await people.redeem_login(secrets[1])
        assert redeemed is not None
        secrets.append(redeemed[1])
        assert len(set(secrets)) == 3
        kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert kept and not any(secret[3:].encode() in kept for secret in secrets)


async def test_what_is_no_secret_is_nothing(tmp_path: Path) -> None:
    async with people_in(tmp_path, SetClock(T0)) as people:
        _, secret = await people.make_token("owner", "a")
        wrong = [
            "",
            "dh_",
            secret[:-1],
            secret + "x",
            secret[:-1] + "\ud800",
            secret.upper(),
            secret[3:],
            "x" * 10_000,
        ]
        wrong += [secret[:-1] + ("a" if secret[-1] != "a" else "b"), "dh_" + "a" * 43]
        for made_up in wrong:
            assert (
                await people.authenticate(made_up) is None
                and await people.redeem_login(made_up) is None
            )
        assert await people.redeem_login(secret) is None, "a token is no link"


async def test_what_was_taken_back_is_dead(tmp_path: Path) -> None:
    clock = SetClock(T0)
    async with people_in(tmp_path, clock) as people:
        await people.add_user("ann", "member")
        expires, one = await people.make_token("ann", "expires", lasts_s=60)
        revoked, two = await people.make_token("ann", "revoked")
        rotated, three = await people.make_token("ann", "rotated", ("read",), 600)
        _, four = await people.make_token("ann", "the last")
        clock.advance(59)
        assert all([await people.authenticate(secret) for secret in (one, two, three, four)])
        clock.advance(1)
        assert await people.authenticate(one) is None
        await people.revoke(revoked.id)
        assert await people.authenticate(two) is None
        again, fresh = await people.rotate(rotated.id)
        assert await people.authenticate(three) is None and again.id != rotated.id
        assert (again.scopes, again.expires_at) == (("read",), T0 + 60 + 600)
        renewed = await people.authenticate(fresh)
        assert renewed is not None and renewed.principal == Principal("ann", ("viewer",))
        await people.add_role("ann", "viewer")
        await people.remove_role("ann", "member")
        left = await people.authenticate(four)
        assert left is not None and left.scopes == ("read",), (
            "it gives no more than its user has now"
        )
        talks = (await people.make_token("owner", "only talks", ("chat",)))[1]
        await people.add_user("bob", "member")
        bobs = (await people.make_token("bob", "only talks", ("chat",)))[1]
        await people.add_role("bob", "viewer")
        await people.remove_role("bob", "member")
        assert (
            await people.authenticate(bobs) is None and await people.authenticate(talks) is not None
        )
        await people.remove_user("bob")
        await people.remove_role("ann", "viewer")
        assert await people.authenticate(four) is None
        await people.add_role("ann", "member")
        await people.remove_user("ann")
        assert await people.authenticate(four) is None and [
            row.user for row in await people.tokens()
        ] == ["owner"]
        with pytest.raises(Refused, match="no token 'tok_x'"):
            await people.revoke("tok_x")
        assert expires.id not in [row.id for row in await people.tokens()]


async def test_own_tokens_may_be_seen_and_revoked(tmp_path: Path) -> None:
    clock = SetClock(T0)
    async with people_in(tmp_path, clock) as owner:
        await owner.add_user("ann", "member")
        mine, secret = await owner.make_token("ann", "phone")
        await owner.make_token("owner", "desk")
        ann = owner.acting_as(Principal("ann", ("member",)))
        clock.advance(5)
        await owner.authenticate(secret)
        assert [(row.id, row.last_used_at) for row in await ann.tokens("ann")] == [
            (mine.id, T0 + 5)
        ]
        await ann.revoke(mine.id)
        assert await ann.tokens("ann") == [] and len(await owner.tokens()) == 1
        assert (await owner.list_audit_notes())[0].who == "ann"


async def test_a_link_lets_one_browser_in_once(tmp_path: Path) -> None:
    clock = SetClock(T0)
    async with people_in(tmp_path, clock) as people:
        await people.add_user("ann", "member")
        link, late = await people.make_login("ann"), await people.make_login("ann")
        got = []

        async def redeem() -> None:
            got.append(await people.redeem_login(link))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(redeem)
        (won,) = [each for each in got if each is not None]
        row, secret = won
        assert (row.user, row.kind, row.expires_at) == ("ann", "browser", T0 + BROWSER_TTL_S)
        grant = await people.authenticate(secret)
        assert (
            grant is not None and grant.browser and grant.principal == Principal("ann", ("member",))
        )
        clock.advance(LOGIN_TTL_S)
        assert await people.redeem_login(late) is None, "too late"
        assert await people.authenticate(link) is None, "a link is no credential"
        clock.advance(BROWSER_TTL_S)
        assert await people.authenticate(secret) is None
        assert "logged in" in [note.what for note in await people.list_audit_notes()]


async def test_what_cannot_be_made(tmp_path: Path) -> None:
    async with people_in(tmp_path, SetClock(T0)) as people:
        await people.add_user("ann", "viewer")
        with pytest.raises(Refused, match="give none of: chat"):
            await people.make_token("ann", "a", ("chat",))
        with pytest.raises(Refused, match="no scope at all"):
            await people.make_token("ann", "a", ())
        with pytest.raises(ConfigError, match="no scope 'all'"):
            await people.make_token("ann", "a", ("all",))  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="needs a name"):
            await people.make_token("ann", " \n")
        for nobody in (people.make_token("bob", "a"), people.make_login("bob")):
            with pytest.raises(Refused, match="no user 'bob'"):
                await nobody
        await people.remove_role("ann", "viewer")
        with pytest.raises(Refused, match="has no role"):
            await people.make_login("ann")


async def test_a_credential_speaks_with_no_more_than_its_scopes(tmp_path: Path) -> None:
    """What its surface hands in as sender comes to the same principal at the Door."""
    async with people_in(tmp_path, SetClock(T0)) as people:
        roles = []
        for scopes in (SCOPES, SCOPES[:3], SCOPES[:2], SCOPES[:1]):
            _, secret = await people.make_token("owner", "a", scopes)
            grant = await people.authenticate(secret)
            assert (
                grant is not None
                and people.authorize(wrote(grant.sender, "api")) == grant.principal
            )
            roles.append(grant.principal.roles)
        assert roles == [("owner",), ("approver",), ("member",), ("viewer",)]
        for made_up in ("owner/x", "owner/owner/x", "/owner", "owner/ "):
            assert people.authorize(wrote(made_up, "web")) is None, made_up
