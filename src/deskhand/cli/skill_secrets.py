"""`deskhand skills allow`: which secrets a skill may use."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..assembly.tools import skills_of
from ..config.clock import SystemClock
from ..config.config import Settings
from ..secrets.redaction import open_secrets
from ..skills.secret_grants import allow_secrets, list_allowed_secrets, read_version
from ..skills.skill import Skill
from ..store.sql_store import SqlStore
from ..types.errors import Refused
from ..users.queries import audit_note
from .plain import escape_control
from .run import (
    ME,
    USAGE,
    agent_option,
    config_option,
    fail,
    load_settings,
    resolve_agent,
    with_store,
)


@click.command()
@click.argument("name")
@click.argument("secrets", nargs=-1)
@agent_option
@config_option
def allow(name: str, secrets: tuple[str, ...], agent: str, config: str | None) -> None:
    """Let a skill use the secrets that it declares, or only those that you name.

    Its programs never see a value: the proxy adds it to requests, by the rules of each secret. This
    counts for the skill as it is now, with --agent for one agent. `deskhand allow revoke` takes it
    back.

    \b
    Examples:
      deskhand skills allow letters
      deskhand skills allow letters github --agent home
    """
    settings = load_settings(config)
    whose = resolve_agent(settings, agent)
    skill = skills_of(settings, whose).find().get(name)
    if skill is None:
        fail(f"there is no skill {name!r}; list them with: deskhand skills", USAGE)
    unknown = [each for each in secrets if each not in skill.secrets]
    if unknown or not skill.secrets:
        declared = ", ".join(skill.secrets) or "none"
        fail(f"{name} does not declare that; the secrets that it declares: {declared}", USAGE)
    of_agent = whose if agent or skill.source == "agent" else ""
    _allow(settings, of_agent, skill, secrets or skill.secrets)


def offer_secrets(settings: Settings, agent: str, skill: Skill, *, yes: bool) -> None:
    """Ask about each secret that this skill declares and may not use yet with this agent ('' for
    all). With `yes`, say only how to allow it."""

    async def find_allowed(store: SqlStore) -> tuple[str, ...]:
        return await list_allowed_secrets(store, agent, skill)

    allowed = with_store(settings, find_allowed) if skill.secrets else ()
    for secret in skill.secrets:
        if secret in allowed:
            continue
        if yes or not click.confirm(f"Let {skill.name} use the secret {secret}?", default=True):
            only = f" --agent {agent}" if agent else ""
            click.echo(f"To allow it later: deskhand skills allow {skill.name} {secret}{only}")
            continue
        _allow(settings, agent, skill, (secret,))


def _allow(settings: Settings, agent: str, skill: Skill, secrets: Sequence[str]) -> None:
    try:
        version = read_version(skill)
    except Refused as error:
        fail(str(error), USAGE)

    async def use(store: SqlStore) -> None:
        now = SystemClock().now()
        rows = allow_secrets(version, secrets, agent=agent, at=now, by=ME.id)
        subject = f"{skill.name} {', '.join(secrets)} {agent}".strip()
        note = audit_note(now, ME.id, what="secret of a skill allowed", subject=subject)
        await store.change([*rows, note])

    with_store(settings, use)
    known = {each.name: each for each in open_secrets(settings).list_secrets()}
    for secret in secrets:
        with_agent = f" with {agent}" if agent else ""
        said = f"{skill.name} may use the secret {secret} now{with_agent}: {version.folder}"
        click.echo(escape_control(said))
        if secret not in known:
            click.echo(f"It is not set yet: deskhand secrets set {secret}")
        ruled = {rule.host for rule in known[secret].rules} if secret in known else set()
        for host in skill.hosts:
            if host not in ruled:
                click.echo(f"To add it to requests: deskhand secrets rule {secret} {host}")
