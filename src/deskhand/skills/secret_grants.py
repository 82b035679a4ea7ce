"""Which secrets a skill is given: those that it declares, after a person allowed them once for what
the skill is.

They are never in the sandbox: the proxy puts them into requests, by the rules of each secret.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import anyio.to_thread
import msgspec

from ..store.base import StatementReader
from ..store.queries import StandingGrant, set_standing_grant
from ..tools.approved import MAX_BYTES, MAX_FILES, read_content
from ..tools.queries import USE_SECRET, secret_use_answers
from ..types.commit import Change
from ..types.errors import Refused
from .skill import Skill


class SkillVersion(msgspec.Struct, frozen=True):
    """A skill as it is in this folder: `digest` is the SHA-256 of all that it holds, in hex.
    Another folder is another skill, whatever it is called, and so are other bytes."""

    skill: str
    folder: str
    digest: str


class SecretUse(msgspec.Struct, frozen=True):
    """That this version of a skill uses this secret."""

    skill: str
    secret: str
    folder: str
    digest: str


def read_version(skill: Skill) -> SkillVersion:
    """The skill as it is now. It blocks. Raises Refused where it cannot be bound to that."""
    # By its own path, not by where a link leads: an agent may put one there at any time.
    folder = str(Path(os.path.realpath(skill.root), skill.inner))
    content = read_content(folder)
    if content is None:
        raise Refused(
            f"the skill {skill.name!r} cannot be given secrets: it contains links or special "
            f"files, or more than {MAX_FILES} files or {MAX_BYTES >> 20} MB, or it is being "
            "changed right now"
        )
    return SkillVersion(skill.name, folder, content.digest.hex())


def allow_secrets(
    version: SkillVersion, secrets: Iterable[str], *, agent: str, at: float, by: str
) -> tuple[Change, ...]:
    """Let this version of a skill use these secrets with this agent ('' for all). `deskhand allow
    list` has each."""
    return tuple(_allow(_make_use(version, secret), agent, at, by) for secret in secrets)


def _make_use(version: SkillVersion, secret: str) -> SecretUse:
    return SecretUse(version.skill, secret, version.folder, version.digest)


def _allow(use: SecretUse, agent: str, at: float, by: str) -> Change:
    # The same for all versions: what is said of one takes the place of what was said of the last.
    whose = msgspec.json.encode((USE_SECRET, agent, use.skill, use.secret, use.folder))
    said = msgspec.json.encode(use)
    return set_standing_grant(
        StandingGrant(
            id=sha256(whose).hexdigest(),
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
    """Those of the secrets that this skill declares which it may use with this agent, as it is
    now."""
    if not skill.secrets:
        return ()
    answers = await secret_use_answers(reader, agent)
    allowed = {said for verdict, said in answers if verdict == "always"}
    if not allowed:
        return ()
    try:
        version = await anyio.to_thread.run_sync(read_version, skill)
    except Refused:
        return ()
    return tuple(
        secret
        for secret in skill.secrets
        if msgspec.json.encode(_make_use(version, secret)).decode() in allowed
    )
