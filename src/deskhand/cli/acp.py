"""`deskhand acp`: an agent in an editor, and for programs that start it themselves."""

from __future__ import annotations

from copy import copy

import click

from .remote import discover_, list_, run
from .run import ME, Group, agent_option, config_option, fail, load_settings, resolve_agent
from .sessions import list_ as list_sessions
from .temporary_app import with_app

NO_EXTRA = "support for editors is not installed: pip install 'deskhand[acp]'"


@click.group(cls=Group, invoke_without_command=True)
@agent_option
@config_option
@click.pass_context
def acp(context: click.Context, agent: str, config: str | None) -> None:
    """Be an agent for an editor, by the Agent Client Protocol, over standard input and output.

    Editors start it themselves: Zed, JetBrains, Neovim and others.

    \b
    Example:
      deskhand acp --agent coder
    """
    if context.invoked_subcommand is not None:
        return
    try:
        from ..editor.agent import serve_editor
    except ModuleNotFoundError:
        fail(NO_EXTRA)
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    with_app(settings, lambda app: serve_editor(app, name, ME))


@acp.command()
@agent_option
@config_option
def stdio(agent: str, config: str | None) -> None:
    """Answer JSON-RPC of another program, a line each, over standard input and output.

    Methods: initialize, agent/run and agent/stream with text and session_id.

    \b
    Example:
      deskhand acp stdio --agent coder
    """
    from ..editor.json_rpc import serve_json_rpc

    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    with_app(settings, lambda app: serve_json_rpc(app, name, ME))


def _add_as(name: str, command: click.Command, usual: str) -> None:
    """What operator-use calls `acp NAME`, and is `deskhand usual` here: the same, whose examples
    are written so."""
    same = copy(command)
    same.help = (command.help or "").replace(f"deskhand {usual}", f"deskhand acp {name}")
    acp.add_command(same, name)


_add_as("sessions", list_sessions, "sessions list")
_add_as("list", list_, "remote list")
_add_as("run", run, "remote run")
_add_as("discover", discover_, "remote discover")
