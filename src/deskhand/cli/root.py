"""The top of the command line: names and help stand here, the rest is imported when it is
called."""

from __future__ import annotations

import importlib
from typing import Any

import click

COMMANDS = {
    "allow": ("deskhand.cli.allow:allow", "Allow folders beside the workspace; list and revoke."),
    "jobs": ("deskhand.cli.jobs:jobs", "Manage scheduled and triggered jobs."),
    "hosts": ("deskhand.cli.hosts:hosts", "Show and set which hosts commands may reach."),
    "secrets": ("deskhand.cli.secrets:secrets", "Manage keys that commands use and never see."),
    "ask": ("deskhand.cli.ask:ask", "Ask one question and print the answer."),
    "demo": ("deskhand.cli.demo:demo", "Watch it work, crash and recover: 60 seconds, no key."),
    "talk": ("deskhand.cli.talk:talk", "Speak with an agent at the terminal."),
    "policy": (
        "deskhand.cli.policy:policy",
        "Show, explain and test the rules for tool calls.",
    ),
    "approvals": (
        "deskhand.cli.approvals:approvals",
        "List and answer approval requests.",
    ),
    "sessions": (
        "deskhand.cli.back:sessions",
        "List, read, export, undo and branch conversations.",
    ),
    "undo": ("deskhand.cli.undo:undo", "Undo changes of agents to files and stored values."),
    "written": ("deskhand.cli.written:written", "Review what agents changed in your folders."),
    "setup": (
        "deskhand.cli.setup:setup",
        "Choose a model, your time zone and your name, and store keys.",
    ),
    "init": ("deskhand.cli.init:init", "Create the home folder and a first configuration."),
    "import": (
        "deskhand.cli.importing:import_",
        "Import settings and data from another system.",
    ),
    "config": (
        "deskhand.cli.config:config",
        "Show, change and import the configuration.",
    ),
    "model": ("deskhand.cli.model:model", "List, choose, download and test models."),
    "voice": (
        "deskhand.cli.voice:voice",
        "Set up and try what listens and speaks.",
    ),
    "agents": ("deskhand.cli.agents:agents", "List, create and remove agents."),
    "tools": ("deskhand.cli.tools:tools", "List tools, and add your own."),
    "skills": (
        "deskhand.cli.skills:skills",
        "List and install skills, and undo changes to bundled ones.",
    ),
    "plugins": ("deskhand.cli.plugins:plugins", "List, make, check and enable plugins."),
    "mcp": ("deskhand.cli.mcp:mcp", "Add, list and review MCP servers, which bring tools."),
    "acp": ("deskhand.cli.acp:acp", "Be an agent for an editor or another program."),
    "remote": (
        "deskhand.cli.remote:remote",
        "List, add and ask agents of other programs.",
    ),
    "desktop": (
        "deskhand.cli.desktop:desktop",
        "Let agents use the windows of this machine.",
    ),
    "browser": (
        "deskhand.cli.browser:browser",
        "Give agents sign-ins for web pages, and take them back.",
    ),
    "deep": ("deskhand.cli.deep:deep", "Show and follow long-running work."),
    "budget": ("deskhand.cli.budget:budget", "Show and set token and cost limits."),
    "memories": ("deskhand.cli.memories:memories", "List, search, explain and restore memories."),
    "values": ("deskhand.cli.values:values", "Read and write values that an agent has stored."),
    "users": ("deskhand.cli.users:users", "Manage users and their roles."),
    "channels": (
        "deskhand.cli.channels:channels",
        "List and add channels, such as a Telegram bot.",
    ),
    "pair": ("deskhand.cli.pair:pair", "Approve people who messaged your bot."),
    "tokens": ("deskhand.cli.tokens:tokens", "Create, list and revoke API tokens."),
    "login": ("deskhand.cli.tokens:login", "Print a link that signs in one browser."),
    "open": ("deskhand.cli.open:open_", "Open the page; start Deskhand if it is not running."),
    "serve": ("deskhand.cli.serve:serve", "Run the server; restart it if it fails."),
    "worker": (
        "deskhand.cli.worker:worker",
        "Drive conversations beside a server that uses the same database.",
    ),
    "service": ("deskhand.cli.units:service", "Install Deskhand as a service of this machine."),
    "status": (
        "deskhand.cli.status:status",
        "Show the state of Deskhand, open requests and problems.",
    ),
    "alerts": ("deskhand.cli.alerts:alerts", "Show alerts."),
    "doctor": ("deskhand.cli.doctor:doctor", "Check the installation, and repair it."),
    "logs": ("deskhand.cli.logs:logs", "Show the log."),
    "ps": ("deskhand.cli.ps:ps", "List and stop background processes."),
    "subagents": ("deskhand.cli.subagents:subagents", "List and stop sub-agents."),
    "held": ("deskhand.cli.held:held", "List and approve files that are held back from prompts."),
    "failed": ("deskhand.cli.failed:failed", "List and retry permanent failures."),
    "trace": (
        "deskhand.cli.trace:trace",
        "Show each call of a conversation: time, tokens, status.",
    ),
    "replay": (
        "deskhand.cli.replay:replay",
        "Run a turn again with another model, prompt or skill.",
    ),
    "cases": ("deskhand.cli.cases:cases", "Run turns that are saved as tests."),
    "audit": ("deskhand.cli.audit:audit", "Verify that the log was not changed."),
    "backup": ("deskhand.cli.backup:backup", "Make, list, verify and restore backups."),
    "store": ("deskhand.cli.store:store", "Show the database, or move it to another one."),
    "update": (
        "deskhand.cli.update:update",
        "Update Deskhand; go back if the new version does not work.",
    ),
    "uninstall": (
        "deskhand.cli.uninstall:uninstall",
        "Show or remove what Deskhand created on this machine.",
    ),
    "completion": (
        "deskhand.cli.completion:completion",
        "Print a script that completes commands by the Tab key.",
    ),
    "version": ("deskhand.cli.version:version", "Show the version."),
}
"""name -> (module:function, one line of help)"""

ALIASES = {
    "channel": ("channels",),
    "cron": ("jobs",),
    "job": ("jobs",),
    "kv": ("values",),
    "gateway": ("serve",),
    "memory": ("memories",),
    "models": ("model", "list"),
    "onboard": ("setup",),
    "user": ("users",),
}
"""What other systems call a command of ours -> ours. They work, and are not listed."""

SECTIONS = (
    ("Talk", ("open", "ask", "talk", "acp", "approvals", "sessions", "undo", "written", "demo")),
    ("Jobs and memory", ("memories", "jobs", "deep")),
    (
        "Set up",
        (
            "setup",
            "init",
            "import",
            "config",
            "model",
            "voice",
            "agents",
            "tools",
            "skills",
            "plugins",
            "mcp",
            "remote",
            "desktop",
            "values",
        ),
    ),
    ("Access", ("allow", "hosts", "secrets", "browser", "held")),
    ("People", ("users", "channels", "pair", "tokens", "login")),
    (
        "Maintenance",
        (
            "serve",
            "worker",
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
            "subagents",
            "failed",
            "audit",
            "backup",
            "store",
            "update",
            "uninstall",
            "completion",
            "version",
        ),
    ),
)

EXAMPLES = """\b
Examples:
  deskhand                              start a chat
  deskhand --resume                     go on with an earlier one
  deskhand ask "what is in this folder?"
  git diff | deskhand ask "review this"
  deskhand doctor --fix
"""


class LazyGroup(click.Group):
    """A group whose commands are imported only when they run, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`deskhand chat` is `deskhand`, which other systems call so."""
        return super().parse_args(ctx, args[1:] if args[:1] == ["chat"] else args)

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
            hint = f'to ask something, run: deskhand ask "{args[0]} …"'
            if near:
                hint = f"did you mean '{near[0]}'?"
            if args[0] == "run":
                hint = "to start a chat, run: deskhand"
            ctx.fail(f"there is no command '{args[0]}'; {hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """The commands with their lines of help, without loading any of them."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=line)
            for name, (_, line) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

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
@click.option("--session", "-s", default="", metavar="NAME", help="Continue this conversation.")
@click.option("--continue", "-c", "latest", is_flag=True, help="Continue the latest conversation.")
@click.option(
    "--resume", "-r", is_flag=True, help="Choose from recent conversations; type to search them."
)
@click.option("--agent", "-a", default="", metavar="NAME", help="Agent to talk to.")
@click.option(
    "--model",
    "-m",
    default="",
    metavar="PROVIDER/NAME",
    help="Use this model in this conversation.",
)
@click.option("--config", metavar="FILE", help="Use this configuration file.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Print the log here, too; during a chat, use `logs -f`."
)
@click.version_option(package_name="deskhand", message="deskhand %(version)s")
@click.pass_context
def cli(  # noqa: PLR0913 -- one parameter for each option
    ctx: click.Context,
    session: str,
    latest: bool,
    resume: bool,
    agent: str,
    model: str,
    config: str | None,
    verbose: bool,
) -> None:
    """A personal AI agent on your own machine.

    Run it without a command to start a chat. It loses no message, repeats no action, and asks
    before it does anything important.
    """
    if ctx.invoked_subcommand is None:
        from .chat import Which, chat

        which = Which(session, latest=latest, resume=resume)
        chat(which, agent=agent, model=model, config=config)
