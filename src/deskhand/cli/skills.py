"""`deskhand skills`: what agents may read, and bundled ones as they came."""

from __future__ import annotations

import click

from ..assembly.tools import skill_sources, skills_of
from ..config.config import Settings
from ..skills.skill import BUNDLED, Skill, Skills, SkillSource
from .plain import escape_control, shorten_line
from .proposals import accept, proposals, reject, revert, show, try_
from .run import (
    USAGE,
    Group,
    agent_option,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
    resolve_agent,
)
from .skill_folders import move_away
from .skill_install import install
from .skill_secrets import allow
from .table import print_json_rows, print_table


@click.group(cls=Group, invoke_without_command=True)
@agent_option
@limit_option()
@json_option
@config_option
@click.pass_context
def skills(
    ctx: click.Context, agent: str, limit: int | None, as_json: bool, config: str | None
) -> None:
    """List an agent's skills and where they come from: bundled, shared or its own.

    \b
    Examples:
      deskhand skills
      deskhand skills install ~/Downloads/letters.zip
      deskhand skills proposals
      deskhand skills reset deskhand-help
    """
    if ctx.invoked_subcommand is not None:
        return
    settings = load_settings(config)
    found = skills_of(settings, resolve_agent(settings, agent)).find().values()
    if as_json:
        listed = [(s.name, s.source, s.description, s.problem, str(s.folder)) for s in found]
        print_json_rows(("skill", "from", "description", "problem", "where"), listed[:limit])
        return
    if not found:
        click.echo(f"No skills. A skill is a folder with a SKILL.md in {settings.skills_folder}")
        return
    rows = [
        (
            s.name,
            s.source,
            shorten_line(s.problem or s.description, 70),
            escape_control(str(s.folder)),
        )
        for s in found
    ]
    print_table(("skill", "from", "what it is for", "where"), rows[:limit])


@skills.command()
@click.argument("name", default="")
@click.option("--all", "every", is_flag=True, help="Reset all bundled skills.")
@agent_option
@config_option
def reset(name: str, every: bool, agent: str, config: str | None) -> None:
    """Reset a bundled skill to its original version. A changed version is not deleted, but moved to
    a folder that is printed.

    \b
    Examples:
      deskhand skills reset deskhand-help
      deskhand skills reset --all
    """
    settings = load_settings(config)
    bundled = Skills((SkillSource("bundled", BUNDLED),)).find()
    if bool(name) == every:
        fail("name a skill, or use --all", USAGE)
    if name and name not in bundled:
        fail(f"{name!r} is not a bundled skill; choose one of: {', '.join(bundled)}", USAGE)
    for each in [name] if name else bundled:
        changed = _find_replacements(settings, resolve_agent(settings, agent), each)
        for source, skill in changed:
            click.echo(
                f"Reset {each}. Your version is now in "
                f"{escape_control(str(move_away(settings, source, skill)))}"
            )
        if not changed:
            click.echo(f"{each} is unchanged")


for each in (install, allow, proposals, show, try_, accept, reject, revert):
    skills.add_command(each)


def _find_replacements(
    settings: Settings, agent: str, name: str
) -> list[tuple[SkillSource, Skill]]:
    """What stands in place of the bundled skill of this name."""
    sources = [source for source in skill_sources(settings, agent) if source.name != "bundled"]
    found = ((source, Skills((source,)).find().get(name)) for source in sources)
    return [(source, skill) for source, skill in found if skill is not None]
