"""The tokens of a Twitch that is only pretended: who may do what, validating, refreshing, revoking.

Facts: https://dev.twitch.tv/docs/authentication/refresh-tokens/ and /validate-tokens/. A refresh
token works once, as it does for a public client; a confidential client must expect the same, for
the documentation says of it only that the refresh token may change.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import msgspec

from .chat import Json, Refusal, User

LIFETIME_S = 14_400
SCOPES = (
    "user:read:chat",
    "user:write:chat",
    "user:bot",
    "user:read:whispers",
    "user:manage:whispers",
)


class Token(msgspec.Struct):
    """`user` is None in a token of the app alone. `expires_in_s` is only said; `Tokens.expire`
    makes it so."""

    access: str
    refresh: str
    user: User | None
    scopes: tuple[str, ...]
    expires_in_s: int = LIFETIME_S

    def allows(self, *scopes: str) -> bool:
        """Whether it has one of these."""
        return any(each in self.scopes for each in scopes)


class Tokens:
    """`refreshes` are the refresh tokens that were tried, in order."""

    def __init__(self, client_id: str, client_secret: str) -> None:
        self.client_id = client_id
        self.client_secret = client_secret
        self.refreshes: list[str] = []
        self._by_access: dict[str, Token] = {}
        self._by_refresh: dict[str, Token] = {}

    def grant(self, user: User | None, scopes: Sequence[str] = SCOPES) -> Token:
        """What somebody gets who goes through the consent page."""
        token = Token(secrets.token_hex(15), secrets.token_hex(25), user, tuple(scopes))
        self._by_access[token.access] = token
        if user is not None:
            self._by_refresh[token.refresh] = token
        return token

    def expire(self, user: User) -> None:
        """Their access tokens stop working; a refresh gives a new one."""
        self._by_access = {k: v for k, v in self._by_access.items() if v.user != user}

    def revoke(self, user: User) -> None:
        """They disconnect the app, or change their password: nothing works any more."""
        self.expire(user)
        self._by_refresh = {k: v for k, v in self._by_refresh.items() if v.user != user}

    def of_helix(self, headers: Mapping[str, str]) -> Token:
        """The token of a call; raises the 401 of Helix."""
        kind, _, value = headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer" or not value:
            raise Refusal(401, "OAuth token is missing")
        token = self._by_access.get(value)
        if token is None:
            raise Refusal(401, "Invalid OAuth token")
        if headers.get("Client-Id", "") != self.client_id:
            raise Refusal(401, "Client ID and OAuth token do not match")
        return token

    # ------------------------------------------------------------------ id.twitch.tv/oauth2

    def validate(self, headers: Mapping[str, str]) -> Json:
        value = headers.get("Authorization", "").partition(" ")[2]
        token = self._by_access.get(value)
        if not value:
            raise Refusal(401, "missing authorization token")
        if token is None:
            raise Refusal(401, "invalid access token")
        about: Json = {"client_id": self.client_id, "scopes": list(token.scopes)}
        if token.user is not None:
            about |= {"login": token.user.login, "user_id": token.user.id}
        return {**about, "expires_in": token.expires_in_s}

    def issue(self, params: Mapping[str, str]) -> Json:
        """POST oauth2/token."""
        self._check_client(params)
        match params.get("grant_type", ""):
            case "client_credentials":
                token = self.grant(None, ())
                return {
                    "access_token": token.access,
                    "expires_in": token.expires_in_s,
                    "token_type": "bearer",
                }
            case "refresh_token":
                return self._refreshed(params.get("refresh_token", ""))
            case "":
                raise Refusal(400, "missing grant type")
            case _:
                raise Refusal(400, "Invalid grant type")

    def _check_client(self, params: Mapping[str, str]) -> None:
        if params.get("client_id") != self.client_id:
            raise Refusal(400, "invalid client")
        if params.get("client_secret", self.client_secret) != self.client_secret:
            raise Refusal(403, "invalid client secret")

    def _refreshed(self, refresh: str) -> Json:
        if not refresh:
            raise Refusal(400, "missing refresh token")
        self.refreshes.append(refresh)
        old = self._by_refresh.pop(refresh, None)
        if old is None:
            raise Refusal(400, "Invalid refresh token")
        token = self.grant(old.user, old.scopes)
        return {
            "access_token": token.access,
            "expires_in": token.expires_in_s,
            "refresh_token": token.refresh,
            "scope": list(token.scopes),
            "token_type": "bearer",
        }

    def give_back(self, params: Mapping[str, str]) -> None:
        """POST oauth2/revoke."""
        self._check_client({"client_id": params.get("client_id", "")})
        if self._by_access.pop(params.get("token", ""), None) is None:
            raise Refusal(400, "Invalid token")
