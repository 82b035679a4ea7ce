"""Who somebody is here who has signed in at the provider.

The list of users says who may enter: those who have the verified email address of the sign-in as
an identity of theirs.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

import msgspec

from ..types.errors import Refused
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.people import SIGN_IN_CHANNEL, Grant, Identity, People

MAX_TOKEN_CHARS = 8_000


class Claims(msgspec.Struct, frozen=True):
    """Who somebody is, by the word of the provider. `email` is verified and in lower case."""

    subject: str
    email: str
    expires_at: float


class IdentityProvider(Protocol):
    """Where people sign in. What it says is checked before it is believed; what does not hold
    raises Refused with the reason."""

    @property
    def issuer(self) -> str:
        """Its address."""
        ...

    async def sign_in_url(self, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
        """Where a browser is sent, to come back at `redirect_uri` with `state` and a code. The
        `verifier` is for PKCE."""
        ...

    async def redeem(self, code: str, redirect_uri: str, nonce: str, verifier: str) -> Claims:
        """Who has signed in, for the code that came back."""
        ...

    async def verify(self, id_token: str, nonce: str | None = None) -> Claims:
        """Who the ID token is of; with a `nonce`, only that of this sign-in. Refused is what is not
        of this provider for this Deskhand, not valid now, or without a verified email address."""
        ...


class SignIn:
    """How people sign in here. `name` is what the provider is called on the button."""

    def __init__(
        self, provider: IdentityProvider, name: str, client_id: str, people: People
    ) -> None:
        self.provider = provider
        self.name = name
        self.client_id = client_id
        self._people = people

    async def admit(self, claims: Claims) -> str:
        """The user who this is. Raises Refused for somebody who is not on the list."""
        user = self._people.find_user(Identity(SIGN_IN_CHANNEL, claims.email))
        if user is None:
            who = Principal(f"{SIGN_IN_CHANNEL}:{claims.email}"[:200])
            await self._people.add_audit_note(who, "sign-in refused", claims.subject)
            raise Refused(
                mark_text(
                    "nobody here has the address {address}. The owner of this Deskhand can let "
                    "you in: deskhand users link NAME {channel} {address}"
                ).format(address=claims.email, channel=SIGN_IN_CHANNEL)
            )
        return user.name

    async def find_grant(self, credential: str) -> Grant | None:
        """What an ID token of the provider is worth as a credential; None for one that is none, or
        of nobody who is known here."""
        if credential.count(".") != 2 or len(credential) > MAX_TOKEN_CHARS:
            return None
        try:
            claims = await self.provider.verify(credential)
            user = await self.admit(claims)
        except Refused:
            return None
        token_id = f"{SIGN_IN_CHANNEL}:{sha256(credential.encode()).hexdigest()[:12]}"
        return self._people.make_grant(user, token_id, claims.expires_at)
