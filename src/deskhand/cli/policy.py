"""`deskhand policy`: why something is allowed, asked or refused."""

from __future__ import annotations

import click

from ..policy.rules import Case, decide
from ..runtime.app import OWNER
from ..runtime.toolbox import rules_of, skills_of, toolbox
from ..tools.aliases import TOOLS
from ..types.errors import DeskhandError
from ..types.identity import Principal
from ..types.labels import OWNER as OWNERS_WORD
from ..types.labels import UNTRUSTED
from .run import USAGE, fail, settings_of


@click.group(no_args_is_help=True)
def policy() -> None:
    """See what the rules say."""


@policy.command("why")
@click.argument("tool")
@click.option("--agent", "-a", default="", help="For this agent; without it, the first one.")
@click.option("--as", "who", default="owner", help="For this person, as name or name:role.")
@click.option("--untrusted", is_flag=True, help="As if something from outside had been read.")
@click.option("--config", help="Use this configuration file.")
def why(tool: str, agent: str, who: str, untrusted: bool, config: str | None) -> None:
    """Explain what happens when the agent calls TOOL: deskhand policy why shell --untrusted"""
    settings = settings_of(config)
    name = agent or settings.agents[0]
    try:
        settings.agent(name)
    except DeskhandError as error:
        fail(str(error), USAGE)
    tools = toolbox(settings, name, skills_of(settings, name))
    spec = tools.get(tool) or tools.get(TOOLS.get(tool, tool))
    if spec is None:
        fail(f"{name} has no tool {tool!r}; it has: {', '.join(tools)}", USAGE)
    person, _, role = who.partition(":")
    principal = Principal(person, (role,)) if role else OWNER if person == OWNER.id else Principal(person)
    label = UNTRUSTED if untrusted else OWNERS_WORD
    case = Case(name, spec.spec.name, spec.spec.effect, principal, label)
    decision = decide(rules_of(settings), case)
    click.echo(f"{decision.verdict}: {decision.reason}")
    click.echo(f"  agent {name}, tool {spec.spec.name}, effect {spec.spec.effect}, for {principal.id}")
    if decision.verdict != "allow":
        click.echo(f"To change it, add to `policy:` in {settings.home.config}:")
        click.echo(f"  - {{verdict: allow, agent: {name}, tool: {spec.spec.name}, who: {principal.id}}}")
