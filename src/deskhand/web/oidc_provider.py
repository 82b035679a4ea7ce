"""An OpenID Connect provider: where it sends people to, and what its word is worth.

OpenID Connect Core 1.0, sections 3.1.2 (the code flow) and 3.1.3.7 (what to check of an ID token);
RFC 7636 (PKCE); RFC 9207 (the `iss` parameter).
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlencode

import jwt
import msgspec

from ..net.client import Fetched, Net, OutboundRequest
from ..net.url import parse_url
from ..types.clock import Clock
from ..types.errors import NetError, Refused
from ..types.marked_texts import mark_text
from .settings import GOOGLE, SignInConfig
from .sign_in import Claims, IdentityProvider

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures that only the provider can make. `none` and those by a shared secret are no such."""
LEEWAY_S = 60.0
"""So far may the clocks be apart."""
FRESH_S = 3600.0
"""How long what the provider says of itself is believed."""
KEYS_AGAIN_S = 60.0
"""A key that is not known yet is asked for, so often at most."""
_ISSUERS = {GOOGLE: (GOOGLE, "accounts.google.com")}
"""https://developers.google.com/identity/openid-connect/openid-connect (validating an ID token)"""
VOID = mark_text("the provider's word could not be checked: {why_text}")


class Metadata(msgspec.Struct, frozen=True):
    """What the provider says of itself (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class _TokenResponse(msgspec.Struct, frozen=True):
    id_token: str


class Provider:
    """Implements `IdentityProvider` for the one of the settings. `secret` is that of the client; ''
    for a public one."""

    def __init__(self, config: SignInConfig, secret: str, net: Net, clock: Clock) -> None:
        self._config = config
        self._secret = secret
        address = parse_url(config.issuer)  # checked with the settings
        self._net = net.with_allowed_host(address.host, address.port)
        self._clock = clock
        self._metadata: Metadata | None = None
        self._metadata_at = 0.0
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._keys_at = float("-inf")

    @property
    def issuer(self) -> str:
        return self._config.issuer

    async def sign_in_url(self, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
        challenge = base64.urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=")
        parameters = {
            "response_type": "code",
            "client_id": self._config.client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid email",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge.decode(),
            "code_challenge_method": "S256",
        }
        endpoint = (await self._describe()).authorization_endpoint
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"

    async def redeem(self, code: str, redirect_uri: str, nonce: str, verifier: str) -> Claims:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if self._secret:
            pair = f"{quote(self._config.client_id, safe='')}:{quote(self._secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = self._config.client_id
        url = (await self._describe()).token_endpoint
        answer = await self._ask(url, headers, urlencode(form).encode())
        if answer.status != 200:
            raise Refused(
                mark_text(
                    "the provider did not accept the sign-in (status {status_number})"
                ).format(status_number=answer.status)
            )
        try:
            token = msgspec.json.decode(answer.body, type=_TokenResponse).id_token
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Refused(VOID.format(why_text=mark_text("it sent no ID token"))) from error
        return await self.verify(token, nonce)

    async def verify(self, id_token: str, nonce: str | None = None) -> Claims:
        claims = await self._decode(id_token)
        if nonce is not None and not _is_equal(claims.get("nonce"), nonce):
            raise Refused(VOID.format(why_text=mark_text("it belongs to another sign-in")))
        if claims.get("iss") not in _ISSUERS.get(self._config.issuer, (self._config.issuer,)):
            raise Refused(VOID.format(why_text=mark_text("it is of another provider")))

        client = self._config.client_id
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        party = claims.get("azp", client if len(audiences) == 1 else None)
        if client not in audiences or party != client:
            raise Refused(VOID.format(why_text=mark_text("it is meant for another program")))

        now = self._clock.now()
        expires_at = claims.get("exp")
        issued_at = claims.get("iat")
        if not isinstance(expires_at, int | float) or not isinstance(issued_at, int | float):
            raise Refused(VOID.format(why_text=mark_text("it does not say how long it holds")))
        if not issued_at - LEEWAY_S <= now < expires_at + LEEWAY_S:
            raise Refused(
                VOID.format(why_text=mark_text("it does not hold now; is the clock right?"))
            )

        subject = claims.get("sub")
        email = claims.get("email")
        if not (isinstance(subject, str) and subject):
            raise Refused(VOID.format(why_text=mark_text("it names nobody")))
        if not (isinstance(email, str) and email and claims.get("email_verified") is True):
            raise Refused(VOID.format(why_text=mark_text("it has no verified email address")))
        return Claims(subject, email.lower(), float(expires_at))

    async def _decode(self, id_token: str) -> Mapping[str, Any]:
        """The claims, with the signature verified and nothing else. Raises Refused."""
        try:
            header = jwt.get_unverified_header(id_token)
            if header.get("alg") not in ALGORITHMS:
                raise Refused(
                    VOID.format(
                        why_text=mark_text("its signature is of a kind that is not accepted")
                    )
                )
            key = await self._key(header.get("kid"))
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key,
                algorithms=[str(header["alg"])],
                options={  # checked here, by our clock
                    "verify_aud": False,
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_iss": False,
                    "verify_nbf": False,
                },
            )
        except jwt.PyJWTError as error:
            raise Refused(VOID.format(why_text=mark_text("its signature is wrong"))) from error
        return claims

    async def _key(self, id_: str | None) -> jwt.PyJWK:
        """The provider's key of that id, or its only one where none is named (OpenID Connect Core
        1.0, section 10.1). Raises Refused."""
        now = self._clock.monotonic()
        age_s = now - self._keys_at
        is_known = id_ in self._keys or (id_ is None and self._keys)
        # Once an hour in any case: what the provider has taken back is not believed any more.
        if age_s >= FRESH_S or (not is_known and age_s >= KEYS_AGAIN_S):
            self._keys_at = now
            self._keys = await self._load_keys()
        if id_ is None and len(self._keys) == 1:
            (only,) = self._keys.values()
            return only
        if id_ not in self._keys:
            raise Refused(
                VOID.format(
                    why_text=mark_text("it is signed by a key that the provider does not have")
                )
            )
        return self._keys[id_]

    async def _load_keys(self) -> dict[str | None, jwt.PyJWK]:
        answer = await self._ask((await self._describe()).jwks_uri)
        try:
            found = jwt.PyJWKSet.from_dict(msgspec.json.decode(answer.body, type=dict[str, Any]))
        except (msgspec.MsgspecError, RecursionError, jwt.PyJWTError) as error:
            raise Refused(VOID.format(why_text=mark_text("its keys could not be read"))) from error
        return {key.key_id: key for key in found.keys}

    async def _describe(self) -> Metadata:
        """What the provider says of itself. Raises Refused."""
        now = self._clock.monotonic()
        if self._metadata is not None and now - self._metadata_at < FRESH_S:
            return self._metadata
        issuer = self._config.issuer
        answer = await self._ask(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            found = msgspec.json.decode(answer.body, type=Metadata)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Refused(
                mark_text("{issuer} does not describe itself as an OpenID provider").format(
                    issuer=issuer
                )
            ) from error
        if found.issuer != issuer:
            raise Refused(
                f"{issuer} says that it is {found.issuer[:200]!r}: set web.sign_in.issuer to that"
            )
        secure = issuer.startswith("https:")
        endpoints = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri)
        if secure and not all(each.startswith("https:") for each in endpoints):
            raise Refused(mark_text("{issuer} names an address without TLS").format(issuer=issuer))
        self._metadata = found
        self._metadata_at = now
        return found

    async def _ask(
        self, url: str, headers: Mapping[str, str] | None = None, form: bytes | None = None
    ) -> Fetched:
        """With a `form` it is posted. Raises Refused."""
        method = "GET" if form is None else "POST"
        try:
            return await self._net.send(
                OutboundRequest(parse_url(url), headers or {}, method, form)
            )
        except NetError as error:
            raise Refused(
                mark_text("the provider of sign-ins is not reached: {problem_text}").format(
                    problem_text=error
                )
            ) from error


def _is_equal(given: object, wanted: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(
        given.encode(errors="replace"), wanted.encode()
    )


_: type[IdentityProvider] = Provider
