"""`deskhand skills install`: skills that somebody else has made."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from ..assembly.tools import skill_sources
from ..config.clock import SystemClock
from ..config.config import Settings
from ..skills.install import FoundSkill, compare, examine_installed, fetch_skills, place_skill
from ..skills.scan import has_bad_finding
from ..skills.skill import Skill, Skills, SkillSource
from ..store.sql_store import SqlStore
from ..tools.approved import read_content
from ..tools.queries import approve
from ..types.errors import Refused
from ..users.queries import audit_note
from .hosts import offer_hosts
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
from .skill_folders import move_away
from .skill_secrets import offer_secrets


@click.command()
@click.argument("source")
@click.option("--name", default="", help="Which one, where the source holds several.")
@click.option(
    "--yes", "-y", is_flag=True, help="Do not ask. What looks bad is refused all the same."
)
@agent_option
@config_option
def install(source: str, name: str, yes: bool, agent: str, config: str | None) -> None:
    """Install a skill from a folder, an archive or a git repository.

    It is scanned, and you see what it brings and what the scan says before anything is used. It is
    for all agents, or with --agent for one. When one of its files changes, it rests until you have
    approved it again. You are asked about the hosts and secrets that it declares.

    \b
    Examples:
      deskhand skills install ~/Downloads/letters.zip
      deskhand skills install https://github.com/you/skills --name letters
    """
    settings = load_settings(config)
    target = _find_target(settings, agent)
    with tempfile.TemporaryDirectory(prefix="deskhand-skill-") as staging:
        try:
            found = _choose(fetch_skills(source, Path(staging).resolve()), name, source)
            there = Skills((target,)).find().get(found.skill.name)
            _show(found, there)
        except (Refused, OSError) as error:
            fail(f"not installed: {error}", USAGE)
        question = "Replace it" if there is not None else "Install it"
        if not yes and not click.confirm(f"{question}?", default=False):
            fail("nothing was changed")
        if there is not None:
            moved = move_away(settings, target, there)
            click.echo(f"Your version is now in {escape_control(moved)}")
        place = place_skill(found, target.root / target.inner)
    _lock(settings, place, found, source)
    click.echo(f"Installed {escape_control(str(place))}. Agents can use it now.")
    installed = Skills((target,)).find().get(found.skill.name)
    if installed is not None:
        whose = resolve_agent(settings, agent) if agent else ""
        offer_hosts(settings, whose, installed.hosts, yes=yes)
        offer_secrets(settings, whose, installed, yes=yes)


def _find_target(settings: Settings, agent: str) -> SkillSource:
    """Where it goes: to the skills of this agent, or of all."""
    wanted = "agent" if agent else "shared"
    sources = skill_sources(settings, resolve_agent(settings, agent))
    return next(each for each in sources if each.name == wanted)


def _choose(found: Sequence[FoundSkill], name: str, source: str) -> FoundSkill:
    """Raises Refused."""
    names = ", ".join(each.skill.name for each in found)
    if name:
        for each in found:
            if each.skill.name == name:
                return each
        raise Refused(f"{source} holds no skill {name!r}; there are: {names}")
    if len(found) > 1:
        raise Refused(f"{source} holds several skills: choose one with --name: {names}")
    return found[0]


def _show(found: FoundSkill, there: Skill | None) -> None:
    """What it is, what it brings and what the scan says. Raises Refused for what is never taken."""
    skill = found.skill
    _echo(f"{skill.name}: {skill.description}")
    _echo(f"  files: {', '.join(found.files)}")
    for kind in _KINDS:
        values = getattr(found.capabilities, kind)
        if values:
            _echo(f"  {_KINDS[kind]}: {', '.join(values)}")
    for finding in found.findings:
        mark = "refused" if finding.severity == "bad" else "look at this"
        _echo(f"  {mark}: {finding.words} ({finding.excerpt})".removesuffix(" ()"))
    if skill.problem:
        raise Refused(f"{skill.name} is against the specification: {skill.problem}")
    if has_bad_finding(found.findings):
        raise Refused(f"the scan of {skill.name} found what no skill may have")
    if there is not None:
        changes = compare(examine_installed(there), found)
        _echo("  What changes:" if changes else "  It is installed already, and nothing changes.")
        for line in changes:
            _echo(f"    {line}")


_KINDS = {
    "programs": "programs that it brings",
    "hosts": "hosts that it names",
    "variables": "keys that it names",
    "secrets": "secrets that it wants for its requests",
}


def _echo(text: str) -> None:
    click.echo(escape_control(text))


def _lock(settings: Settings, place: Path, found: FoundSkill, source: str) -> None:
    """Bind it to what it is now: it is as if a person had approved it."""
    content = read_content(str(place))
    if content is None:
        fail(f"{place} was changed just now; review it: deskhand held show {place}")
    digest = content.digest
    where = f"{source} {found.commit}".strip()

    async def use(store: SqlStore) -> None:
        now = SystemClock().now()
        note = audit_note(now, ME.id, what="skill installed", subject=f"{place.name} from {where}")
        await store.change([approve(str(place), digest, ME.id, now), note])

    with_store(settings, use)
