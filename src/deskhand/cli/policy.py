"""`deskhand policy`: why something is allowed, asked or refused."""

from __future__ import annotations

import click

from ..policy.rules import Case, decide
from ..runtime.judging import rules_of
from ..runtime.toolbox import plugins_of, skills_of, toolbox
from ..tools.aliases import TOOLS
from ..types.identity import Principal
from ..types.labels import OWNER as OWNERS_WORD
from ..types.labels import UNTRUSTED
from .run import ME, USAGE, agent_of, agent_option, config_option, fail, settings_of


@click.group(no_args_is_help=True)
def policy() -> None:
    """See what the rules say.

    \b
    Example:
      deskhand policy why shell
    """


@policy.command("why")
@click.argument("tool")
@agent_option
@click.option("--as", "who", default="owner", help="For this person, as name or name:role.")
@click.option("--untrusted", is_flag=True, help="As if something from outside had been read.")
@config_option
def why(tool: str, agent: str, who: str, untrusted: bool, config: str | None) -> None:
    """Explain what happens when the agent calls TOOL.

    \b
    Example:
      deskhand policy why shell --untrusted
    """
    settings = settings_of(config)
    name = agent_of(settings, agent)
    tools = toolbox(settings, name, skills_of(settings, name), plugins_of(settings).tools)
    spec = tools.get(tool) or tools.get(TOOLS.get(tool, tool))
    if spec is None:
        fail(f"{name} has no tool {tool!r}; it has: {', '.join(tools)}", USAGE)
    person, _, role = who.partition(":")
    principal = Principal(person, (role,)) if role else ME if person == ME.id else Principal(person)
    label = UNTRUSTED if untrusted else OWNERS_WORD
    case = Case(name, spec.spec.name, spec.spec.effect, principal, label)
    decision = decide(rules_of(settings, name), case)
    click.echo(f"{decision.verdict}: {decision.reason}")
    click.echo(f"  agent {name}, tool {spec.spec.name}, effect {spec.spec.effect}, for {principal.id}")
    if decision.verdict != "allow":
        click.echo(f"To change it, add to `policy:` in {settings.home.config}:")
        click.echo(f"  - {{verdict: allow, agent: {name}, tool: {spec.spec.name}, who: {principal.id}}}")
