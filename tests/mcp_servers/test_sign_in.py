"""Signing in at MCP servers: what it gives is kept as secrets, and nobody is sent to sign in where
no person is."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx2
import pytest
from click.testing import CliRunner
from mcp.shared.auth import OAuthToken

from deskhand.cli.root import cli
from deskhand.config.config import read_settings
from deskhand.mcp.sign_in import (
    NoPerson,
    StoredTokens,
    make_auth,
    make_client,
    open_local_page,
    read_callback,
)
from deskhand.mcp.sign_in_secrets import ServerLogin
from deskhand.secrets.redaction import Redactor, open_secrets
from deskhand.types.errors import ToolError

URL = "https://mcp.example.org/mcp"
METADATA = (
    '{"issuer": "https://id.example.org", "authorization_endpoint": "https://id.example.org/a", '
    '"token_endpoint": "https://id.example.org/t", "response_types_supported": ["code"]}'
)


@pytest.fixture
def login(tmp_path: Path) -> ServerLogin:
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path)})
    return ServerLogin(open_secrets(settings), "docs", URL)


async def test_what_is_kept_comes_back_and_is_hidden(login: ServerLogin, tmp_path: Path) -> None:
    storage = StoredTokens(login)
    assert await storage.get_tokens() is None and storage.expires_at is None
    given = OAuthToken(
        access_token="access-0123456789", refresh_token="refresh-0123456789", expires_in=3600
    )
    await storage.set_tokens(given)
    kept = await storage.get_tokens()
    assert kept is not None and kept.access_token == given.access_token
    assert kept.refresh_token is None, "it is not known where to renew it"
    login.set("metadata", METADATA)
    kept = await storage.get_tokens()
    assert kept is not None and kept.refresh_token == given.refresh_token and storage.expires_at
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path)})
    redact = Redactor(settings)
    assert "0123456789" not in redact("access-0123456789 and refresh-0123456789")
    # A server that gives no new one for renewing has taken the old one back.
    await storage.set_tokens(OAuthToken(access_token="access-9876543210"))
    kept = await storage.get_tokens()
    assert kept is not None and kept.refresh_token is None and storage.expires_at is None
    login.forget()
    assert await storage.get_tokens() is None


async def test_a_client_that_was_registered_by_hand(login: ServerLogin) -> None:
    storage = StoredTokens(login)
    assert await storage.get_client_info() is None
    login.set("client", make_client("desk", "secret-0123456789"))
    known = await storage.get_client_info()
    assert known is not None and known.client_id == "desk"
    assert known.token_endpoint_auth_method == "client_secret_basic"


async def test_nobody_is_sent_to_sign_in_where_no_person_is(login: ServerLogin) -> None:
    auth = make_auth(URL, login, NoPerson("docs"))
    assert auth.context.redirect_handler is not None
    with pytest.raises(ToolError, match="sign in first: deskhand mcp login docs"):
        await auth.context.redirect_handler("https://id.example.org/authorize")


async def _show(address: str) -> None:
    await anyio.lowlevel.checkpoint()


async def test_a_person_comes_back_to_a_page_on_this_machine() -> None:
    async with open_local_page(_show) as browser, httpx2.AsyncClient(trust_env=False) as http:
        other = await http.get(browser.redirect_uri.replace("callback", "favicon.ico"))
        assert other.status_code == 404
        page = await http.get(f"{browser.redirect_uri}?code=abc&state=s&iss=https%3A%2F%2Fid.org")
        assert page.status_code == 200 and "Signed in" in page.text
        brought = await browser.wait()
        assert (brought.code, brought.state, brought.iss) == ("abc", "s", "https://id.org")


@pytest.mark.parametrize(
    "head",
    [b"", b"GET", b"GET / HTTP/1.1", b"GET /callback HTTP/1.1", b"GET /callback?error=x HTTP/1.1"],
)
def test_what_is_no_callback(head: bytes) -> None:
    assert read_callback(head) is None


def test_signing_out(tmp_path: Path) -> None:
    env = {"DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path)}
    (tmp_path / "deskhand.yaml").write_text(f"mcp:\n  docs: {{url: {URL}}}\n")
    settings = read_settings(None, env)
    ServerLogin(open_secrets(settings), "docs", URL).set("access_token", "access-0123456789")

    def run(*args: str) -> str:
        return CliRunner().invoke(cli, args, env=env, prog_name="deskhand").output

    assert "access_token" in run("secrets", "list")
    assert run("mcp", "login", "docs", "--out") == "Signed out of docs.\n"
    assert "access_token" not in run("secrets", "list")


async def test_a_sign_in_counts_for_its_address_alone(tmp_path: Path) -> None:
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path)})
    secrets = open_secrets(settings)
    await StoredTokens(ServerLogin(secrets, "docs", URL)).set_tokens(
        OAuthToken(access_token="access-0123456789")
    )
    other = ServerLogin(secrets, "docs", "https://evil.example/mcp")
    assert await StoredTokens(other).get_tokens() is None
