"""Which secrets a skill is given: those that it declares, after a person allowed them once.

They are never in the sandbox: the proxy puts them into requests, by the rules of each secret.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from ..store.base import StatementReader
from ..store.queries import StandingGrant, set_standing_grant
from ..tools.queries import USE_SECRET, secret_use_answers
from ..types.commit import Change
from .skill import Skill


class SecretUse(msgspec.Struct, frozen=True):
    """That the skill in this real folder uses this secret. Another folder is another skill,
    whatever it is called."""

    skill: str
    secret: str
    folder: str


def allow_secrets(
    skill: Skill, secrets: Iterable[str], *, agent: str, at: float, by: str
) -> tuple[Change, ...]:
    """Let this skill use these secrets with this agent ('' for all). `deskhand allow list` has
    each."""
    return tuple(_allow(_make_use(skill, secret), agent, at, by) for secret in secrets)


def _make_use(skill: Skill, secret: str) -> SecretUse:
    return SecretUse(skill.name, secret, os.path.realpath(skill.folder))


def _allow(use: SecretUse, agent: str, at: float, by: str) -> Change:
    said = msgspec.json.encode(use)
    hashed = sha256(f"{USE_SECRET}\0{agent}\0".encode() + said).hexdigest()
    return set_standing_grant(
        StandingGrant(
            id=hashed,
            verdict="always",
            agent=agent,
            tool=USE_SECRET,
            arguments=said.decode(),
            at=at,
            by=by,
        )
    )


async def list_allowed_secrets(
    reader: StatementReader, agent: str, skill: Skill
) -> tuple[str, ...]:
    """Those of the secrets that this skill declares which it may use with this agent."""
    if not skill.secrets:
        return ()
    answers = await secret_use_answers(reader, agent)
    allowed = {said for verdict, said in answers if verdict == "always"}
    return tuple(
        secret
        for secret in skill.secrets
        if msgspec.json.encode(_make_use(skill, secret)).decode() in allowed
    )
