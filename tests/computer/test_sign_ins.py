"""Sign-ins as they are given and kept: files of others, what belongs to a site, the window."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from deskhand.cli.root import cli
from deskhand.computer.browser.sign_in_window import take_sign_in
from deskhand.computer.browser.sign_ins import (
    Cookie,
    SignIns,
    SiteSignIn,
    StoredItem,
    StoredOrigin,
    make_sign_in,
    merge_sign_ins,
    parse_site,
    read_exported,
)
from deskhand.testing.site import PUBLIC, LocalSite
from deskhand.tools.render import find_browser
from deskhand.types.errors import ConfigError

from .desk import open_desk

STATE = {
    "cookies": [
        {
            "name": "sid",
            "value": "a1b2",
            "domain": ".example.org",
            "path": "/",
            "expires": 1893456000.5,
            "httpOnly": True,
            "secure": True,
            "sameSite": "Lax",
        },
        {"name": "host", "value": "x", "domain": "shop.example.org", "path": "/", "expires": -1},
        {"name": "ad", "value": "y", "domain": ".tracker.test", "path": "/", "expires": -1},
    ],
    "origins": [
        {
            "origin": "https://shop.example.org",
            "localStorage": [{"name": "token", "value": "t-1"}],
        },
        {"origin": "https://tracker.test", "localStorage": [{"name": "id", "value": "9"}]},
    ],
}
LINES = (
    "# Netscape HTTP Cookie File\n\n"
    "#HttpOnly_.example.org\tTRUE\t/\tTRUE\t1893456000\tsid\ta1b2\r\n"
    "shop.example.org\tFALSE\t/\tFALSE\t0\thost\tx\n"
    ".tracker.test\tTRUE\t/\tFALSE\t0\tad\ty\n"
)


def test_a_storage_state_is_read() -> None:
    found = read_exported(json.dumps(STATE).encode(), "shop.example.org", 5.0)
    assert found == SiteSignIn(
        (
            Cookie("sid", "a1b2", ".example.org", "/", 1893456000.5, True, True, "Lax"),
            Cookie("host", "x", "shop.example.org"),
        ),
        (StoredOrigin("https://shop.example.org", (StoredItem("token", "t-1"),)),),
        "shop.example.org",
        5.0,
    )


def test_a_cookies_txt_is_read() -> None:
    found = read_exported(LINES.encode(), "example.org", 5.0)
    assert found.cookies == (
        Cookie("sid", "a1b2", ".example.org", "/", 1893456000, True, True),
        Cookie("host", "x", "shop.example.org"),
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff\xfe", "no text"),
        (b"{", "no storage state"),
        (b'{"cookies": [{"name": "x"}]}', "no storage state"),
        (b"[" * 100_000, "neither"),
        (b'{"cookies":' + b"[" * 100_000, "no storage state"),
        (b"hello", "neither"),
        (LINES.replace("0\thost", "soon\thost").encode(), "neither"),
        (b"", "nothing of example.org"),
        (b'{"cookies": []}', "nothing of example.org"),
        (b" " * (5 << 20), "larger than 4 MB"),
    ],
)
def test_what_is_no_sign_in_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_exported(data, "example.org", 5.0)


@pytest.mark.parametrize(
    ("domain", "belongs"),
    [
        ("shop.example.org", True),
        (".shop.example.org", True),
        ("www.shop.example.org", True),
        (".pay.shop.example.org", True),
        (".example.org", True),
        ("example.org", False),  # it is sent to that host alone
        (".org", False),
        ("org", False),
        ("other.example.org", False),
        ("notshop.example.org", False),
        ("shop.example.org.evil.test", False),
        ("", False),
    ],
)
def test_what_belongs_to_a_site(domain: str, belongs: bool) -> None:
    cookies = (Cookie("mine", "1", "shop.example.org"), Cookie("that", "2", domain))
    found = make_sign_in("shop.example.org", cookies, (), 1.0)
    assert ("that" in {each.name for each in found.cookies}) is belongs


@pytest.mark.parametrize(
    ("text", "site"),
    [
        ("example.org", "example.org"),
        ("WWW.Example.org", "example.org"),
        ("https://shop.example.org/login?x=1", "shop.example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
    ],
)
def test_a_site_by_its_name_or_address(text: str, site: str) -> None:
    assert parse_site(text) == site


@pytest.mark.parametrize(
    "text", ["", "localhost", "com", "10.0.0.1", "https://[::1]/", "a b", "/x"]
)
def test_what_is_no_site(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_site(text)


def test_where_it_holds() -> None:
    encrypted = SiteSignIn((Cookie("s", "v", "example.org", secure=True),), (), "example.org")
    assert encrypted.holds_at("https://shop.example.org/x")
    for url in ("http://example.org/", "https://example.org.evil.test/", "https://org/", "about:"):
        assert not encrypted.holds_at(url)
    plain = SiteSignIn((Cookie("s", "v", "example.org"),), (), "example.org")
    assert plain.holds_at("http://example.org/") and not plain.holds_at("ftp://example.org/")


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
COOKIES = st.builds(
    Cookie,
    TEXT,
    TEXT,
    st.just("example.org"),
    st.just("/"),
    st.just(-1.0) | st.floats(0, 1e12),
    st.booleans(),
    st.booleans(),
    st.sampled_from(("", "Strict", "Lax", "None")),
)
ORIGINS = st.builds(
    StoredOrigin,
    st.just("https://example.org"),
    st.lists(st.builds(StoredItem, TEXT, TEXT), max_size=3).map(tuple),
)


@given(st.lists(COOKIES, max_size=4), st.lists(ORIGINS, max_size=2), st.floats(0, 1e12))
def test_what_is_kept_is_what_was_given(
    tmp_path_factory: pytest.TempPathFactory,
    cookies: list[Cookie],
    origins: list[StoredOrigin],
    at: float,
) -> None:
    kept = SignIns(tmp_path_factory.getbasetemp() / "sign_ins")
    given = SiteSignIn(tuple(cookies), tuple(origins), "example.org", at)
    kept.save(given)
    assert kept.load("example.org") == given


def test_others_never_read_it(tmp_path: Path) -> None:
    kept = SignIns(tmp_path / "sign_ins")
    kept.save(SiteSignIn((Cookie("s", "secret-value", "example.org"),), (), "example.org", 1.0))
    (path,) = (tmp_path / "sign_ins").glob("*.json")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "secret-value" not in repr(kept.load("example.org"))
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="others can read"):
        kept.load("example.org")


def test_the_nearest_one_is_found(tmp_path: Path) -> None:
    kept = SignIns(tmp_path)
    assert kept.find_site("https://example.org/") == ""
    for site in ("example.org", "shop.example.org"):
        kept.save(SiteSignIn((), (), site, 1.0))
    assert kept.find_site("https://example.org/x") == "example.org"
    assert kept.find_site("https://www.shop.example.org/x") == "shop.example.org"
    assert kept.find_site("https://example.org.evil.test/") == ""


def test_what_two_browsers_renew_is_kept_of_both() -> None:
    def make(a: str, b: str, c: str = "") -> SiteSignIn:
        cookies = [Cookie(n, v, "x.test") for n, v in (("a", a), ("b", b), ("c", c)) if v]
        return SiteSignIn(tuple(cookies), (), "x.test", 1.0)

    before = make("1", "1", "1")
    stored = merge_sign_ins(before, before, make("2", "1", "1"))
    assert stored == make("2", "1", "1")
    assert merge_sign_ins(stored, before, make("1", "2")) == make("2", "2"), "c was deleted"
    origin = StoredOrigin("https://x.test", (StoredItem("k", "v"),))
    merged = merge_sign_ins(stored, before, SiteSignIn(before.cookies, (origin,), "x.test", 1.0))
    assert merged.origins == (origin,) and merged.cookies == stored.cookies


def test_what_was_taken_back_is_not_renewed(tmp_path: Path) -> None:
    kept = SignIns(tmp_path)
    given = SiteSignIn((Cookie("s", "1", "x.test"),), (), "x.test", 1.0)
    kept.renew(given, given)
    assert kept.list_sites() == []
    kept.save(SiteSignIn((), (), "x.test", 2.0))
    kept.renew(given, SiteSignIn((Cookie("s", "2", "x.test"),), (), "x.test", 1.0))
    assert kept.load("x.test").cookies == ()


def test_what_is_too_large_is_refused_before_it_is_kept(tmp_path: Path) -> None:
    kept = SignIns(tmp_path)
    large = StoredOrigin("https://x.test", (StoredItem("k", "x" * (5 << 20)),))
    with pytest.raises(ConfigError, match="larger than 4 MB"):
        kept.save(SiteSignIn((), (large,), "x.test", 1.0))
    assert kept.list_sites() == []


@pytest.mark.parametrize(
    ("value", "is_key"),
    [
        ("a7f3a9c1e8b2d4f605c2", True),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x", True),
        ("short1", False),
        ("accepted-all-of-them-please", False),
        ("12345678901234567890123", False),
        ("Meeting at 10 with the whole team", False),
        ("https://shop.example.org/cart?x=1", False),
        ('{"theme":"dark","size":12345}', False),
        ("a1" * 300, False),
    ],
)
def test_what_looks_like_a_key(value: str, is_key: bool) -> None:
    found = SiteSignIn((Cookie("c", value, "x.test"),), (), "x.test").list_keys()
    assert (found == [value]) is is_key


def deskhand(home: Path, *args: str) -> Result:
    return CliRunner().invoke(cli, args, env={"DESKHAND_HOME": str(home)}, prog_name="deskhand")


def test_given_listed_and_taken_back(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text(json.dumps(STATE))
    home = tmp_path / "home"
    said = deskhand(home, "browser", "sign-in", "shop.example.org", "--file", str(state))
    assert "Agents may ask to use your sign-in at shop.example.org" in said.stdout
    listed = deskhand(home, "browser", "list")
    assert listed.stdout.startswith("shop.example.org  given 2") and "a1b2" not in listed.stdout
    assert json.loads(deskhand(home, "browser", "list", "--json").stdout)[0]["site"] == (
        "shop.example.org"
    )
    audit = deskhand(home, "users", "log").stdout
    assert "sign-in given" in audit
    assert deskhand(home, "browser", "sign-out", "shop.example.org").exit_code == 0
    again = deskhand(home, "browser", "sign-out", "shop.example.org")
    assert again.exit_code == 2 and "there is no sign-in" in again.stderr
    assert "There are none" in deskhand(home, "browser", "list").stdout


def test_what_cannot_be_taken_says_why(tmp_path: Path) -> None:
    home = tmp_path / "home"
    missing = deskhand(home, "browser", "sign-in", "example.org", "--file", str(tmp_path / "no"))
    assert missing.exit_code == 2 and "cannot be read" in missing.stderr
    (tmp_path / "other.json").write_text(json.dumps(STATE))
    other = deskhand(
        home, "browser", "sign-in", "bank.example", "--file", str(tmp_path / "other.json")
    )
    assert other.exit_code == 2 and "nothing of bank.example is in it" in other.stderr
    assert not (home / "state" / "sign_ins").exists()


async def test_without_a_screen_it_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="--save-storage"):
        await take_sign_in(find_browser(), "https://example.org/", "example.org", 1.0, {})


@pytest.mark.timeout(240)
async def test_a_person_signs_in_in_a_window() -> None:
    """The page signs in by itself; the window is closed as a person does it."""
    html = """<title>Welcome</title><script>document.cookie = 'sid=abc; path=/; max-age=9999'
      localStorage.setItem('theme', 'dark')</script>"""
    flags = ["--disable-gpu", f"--host-resolver-rules=MAP site.test {PUBLIC}"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    found: list[SiteSignIn] = []
    async with LocalSite() as site, open_desk() as desk, anyio.create_task_group() as tasks:
        site.page("/login", html)
        url, program = site.url("/login"), find_browser()

        async def take() -> None:
            now = time.time()
            taken = take_sign_in(program, url, "site.test", now, desk.environment, flags)
            found.append(await taken)

        tasks.start_soon(take)
        with anyio.fail_after(120):
            while True:
                await desk.desktop.list_windows()
                windows = [each for each in desk.desktop.windows if "Welcome" in each.shown_name]
                if windows:
                    break
                await anyio.sleep(0.2)
            await anyio.sleep(6)  # it is looked at twice a second
            await desk.desktop.close_window(windows[0])
            while not found:
                await anyio.sleep(0.1)
    (taken,) = found
    assert [(each.name, each.value) for each in taken.cookies] == [("sid", "abc")]
    assert taken.origins[0].local_storage == (StoredItem("theme", "dark"),)
