"""The top of the command line: names and help stand here, the rest is imported when it is called."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "allow": ("deskhand.cli.allow:allow", "Allow folders beside the workspace; list and revoke."),
    "jobs": ("deskhand.cli.jobs:jobs", "What is done on a schedule, or when something happens."),
    "egress": ("deskhand.cli.egress:egress", "The hosts that commands may reach."),
    "secrets": ("deskhand.cli.secrets:secrets", "Keep keys that commands use and never see."),
    "ask": ("deskhand.cli.ask:ask", "Ask one thing and print the answer."),
    "demo": ("deskhand.cli.demo:demo", "See it work, be killed and come back: 60 seconds, no key."),
    "policy": ("deskhand.cli.policy:policy", "Why something is allowed, asked or refused."),
    "approvals": ("deskhand.cli.approvals:approvals", "See what waits for your yes, and answer it."),
    "sessions": ("deskhand.cli.back:sessions", "List, read, export, undo and branch conversations."),
    "undo": ("deskhand.cli.undo:undo", "Put back the files and key-values that agents changed."),
    "setup": ("deskhand.cli.setup:setup", "Choose a model, your time zone and your name, and store keys."),
    "init": ("deskhand.cli.init:init", "Make the home folder and a first configuration."),
    "import": ("deskhand.cli.importing:import_", "Move in from another system, with all that it knows."),
    "config": ("deskhand.cli.config:config", "Show and change the configuration, or import another's."),
    "model": ("deskhand.cli.model:model", "List, choose, fetch and try models."),
    "agents": ("deskhand.cli.agents:agents", "List, make and remove agents."),
    "tools": ("deskhand.cli.lists:tools", "List what agents can do."),
    "skills": ("deskhand.cli.skills:skills", "List the skills, and undo changes to bundled ones."),
    "plugins": ("deskhand.cli.plugins:plugins", "List plugins, switch them on and off."),
    "deep": ("deskhand.cli.deep:deep", "See the work that goes on by itself, and how far it is."),
    "budget": ("deskhand.cli.budget:budget", "What may be used, what was, and how to allow more."),
    "memories": ("deskhand.cli.memories:memories", "What is remembered: list, search, explain, put back."),
    "kv": ("deskhand.cli.kv:kv", "Read and write an agent's key-values."),
    "users": ("deskhand.cli.users:users", "Who may talk here, and what they may do."),
    "channels": ("deskhand.cli.channels:channels", "List the channels on which people reach it, and add one."),
    "pair": ("deskhand.cli.pair:pair", "Let in who wrote to a bot of yours."),
    "tokens": ("deskhand.cli.tokens:tokens", "Make, list and revoke tokens for the API."),
    "login": ("deskhand.cli.tokens:login", "Print a link that logs one browser in."),
    "open": ("deskhand.cli.open:open_", "Open the page, and start Deskhand where it does not run."),
    "serve": ("deskhand.cli.serve:serve", "Stay and work, and be started again."),
    "service": ("deskhand.cli.units:service", "Have the system run it for ever."),
    "status": ("deskhand.cli.status:status", "What runs, and how each part of it is."),
    "alerts": ("deskhand.cli.alerts:alerts", "Show what you were alerted to."),
    "doctor": ("deskhand.cli.doctor:doctor", "Check that everything works, and repair it."),
    "logs": ("deskhand.cli.logs:logs", "Show the log."),
    "ps": ("deskhand.cli.ps:ps", "See what runs beside conversations, and end it."),
    "dlq": ("deskhand.cli.dlq:dlq", "See what was given up, and try it again."),
    "trace": ("deskhand.cli.trace:trace", "Show each call of a conversation: time, tokens, status."),
    "replay": ("deskhand.cli.replay:replay", "Run a turn again with another model, prompt or skill."),
    "cases": ("deskhand.cli.cases:cases", "Turns that you made tests of: run, list, remove."),
    "audit": ("deskhand.cli.audit:audit", "Prove that nothing in the log was changed."),
    "uninstall": ("deskhand.cli.uninstall:uninstall", "Say what was made on this machine, and remove it."),
    "version": ("deskhand.cli.lists:version", "Show the version."),
}
"""name -> (module:function, one line of help)"""

ALIASES = {
    "channel": ("channels",),
    "cron": ("jobs",),
    "job": ("jobs",),
    "gateway": ("serve",),
    "memory": ("memories",),
    "models": ("model", "list"),
    "onboard": ("setup",),
    "user": ("users",),
}
"""What other systems call a command of ours -> ours. They work, and are not listed."""

SECTIONS = (
    ("Talk", ("open", "ask", "approvals", "sessions", "undo", "demo")),
    ("Without being asked", ("memories", "jobs", "deep")),
    ("Set up", ("setup", "init", "import", "config", "model", "agents", "tools", "skills", "plugins", "kv")),
    ("Let it reach more", ("allow", "egress", "secrets")),
    ("People", ("users", "channels", "pair", "tokens", "login")),
    (
        "Look after it",
        (
            "serve",
            "service",
            "status",
            "alerts",
            "policy",
            "budget",
            "doctor",
            "logs",
            "trace",
            "replay",
            "cases",
            "ps",
            "dlq",
            "audit",
            "uninstall",
            "version",
        ),
    ),
)

EXAMPLES = """\b
Examples:
  deskhand                              talk to it
  deskhand ask "what is in this folder?"
  git diff | deskhand ask "review this"
  deskhand doctor --fix
"""


class LazyGroup(click.Group):
    """A group whose commands are imported only when they run, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{name} is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] == "help":
            args = [*args[1:], "--help"]
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
        if args and args[0] in ALIASES:
            args = [*ALIASES[args[0]], *args[1:]]
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            known = [*COMMANDS, *ALIASES]
            begin = [name for name in COMMANDS if len(args[0]) > 1 and name.startswith(args[0])]
            near = begin or get_close_matches(args[0], known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f'to ask something, write: deskhand ask "{args[0]} …"'
            if args[0] in ("chat", "run", "talk"):
                hint = "to talk to it, write: deskhand"
            ctx.fail(f"there is no command '{args[0]}'; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in SECTIONS:
            with formatter.section(title):
                formatter.write_dl([(f"{name:<9}", COMMANDS[name][1]) for name in names])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
    subcommand_metavar="[COMMAND]",
)
@click.option("--session", "-s", default="", metavar="NAME", help="Go on with this conversation.")
@click.option("--continue", "-c", "latest", is_flag=True, help="Go on with the latest one.")
@click.option("--agent", "-a", default="", metavar="NAME", help="Talk to this agent.")
@click.option("--model", "-m", default="", metavar="PROVIDER/NAME", help="Use this model.")
@click.option("--config", metavar="FILE", help="Use this configuration file.")
@click.option("--verbose", "-v", is_flag=True, help="Show the log here too; `logs -f` shows it beside a chat.")
@click.version_option(package_name="deskhand", message="deskhand %(version)s")
@click.pass_context
def cli(  # noqa: PLR0913 -- one parameter for each option
    ctx: click.Context, session: str, latest: bool, agent: str, model: str, config: str | None, verbose: bool
) -> None:
    """A personal AI agent on your own machine.

    Without a command you talk to it here. It loses no message, repeats no effect, and asks before it does what
    matters.
    """
    if ctx.invoked_subcommand is None:
        from .chat import chat

        chat(session, latest=latest, agent=agent, model=model, config=config)
