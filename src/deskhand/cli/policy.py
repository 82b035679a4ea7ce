"""`deskhand policy`: why something is allowed, asked or refused, and what other rules would
change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click
import msgspec

from ..assembly.judge import rules_of
from ..assembly.policy_explain import (
    Expected,
    ExplainedCall,
    Why,
    check_expectation,
    explain_case,
    make_case,
    parse_principal,
)
from ..assembly.policy_what_if import (
    DAY_S,
    Could,
    Then,
    list_capabilities,
    replay_calls,
    with_rules,
)
from ..config.clock import SystemClock
from ..config.config import Settings
from ..config.database import has_database
from ..config.parse import read_any
from ..policy.explain import ExplainedRules
from ..policy.permission_modes import PERMISSION_MODES
from ..policy.roles import may_talk
from ..policy.rules import Verdict, summarize_rule
from ..runtime.inventory import load_inventory
from ..store.sql_store import SqlStore
from ..tools.base import Tools
from ..types.errors import ConfigError
from ..types.people import User
from ..users.users import open_people
from .encoded import to_json
from .plain import escape_control, shorten_line
from .run import (
    FAILED,
    ME,
    USAGE,
    Group,
    agent_option,
    config_option,
    fail,
    load_settings,
    resolve_agent,
    run,
    with_store,
)
from .sessions import format_local_time
from .table import print_table

C = TypeVar("C", bound=Callable[..., Any])
T = TypeVar("T")
COLORS = {"allow": "green", "ask": "yellow", "deny": "red"}
DEFAULT_DAYS = 30
MAX_EXAMPLES = 10


def place_options(command: C) -> C:
    """Where a call would be made."""
    command = click.option("--group", is_flag=True, help="As if in a group chat.")(command)
    return click.option(
        "--channel", default="terminal", help="As if on this channel.", show_default=True
    )(command)


@click.group(cls=Group, no_args_is_help=True)
def policy() -> None:
    """Show, explain and test the rules.

    \b
    Examples:
      deskhand policy show
      deskhand policy why shell "rm -r build" --as kids
      deskhand policy test policy-cases.yaml
      deskhand policy what-if other-rules.yaml
      deskhand policy what-if --who member --channel telegram
    """


@policy.command("why")
@click.argument("tool")
@click.argument("arguments", default="")
@agent_option
@click.option("--as", "who", default="owner", help="For this user or role, or as NAME:ROLE.")
@place_options
@click.option("--host", default="", help="As if the call went to this host.")
@click.option(
    "--untrusted", is_flag=True, help="As if the conversation had read untrusted content."
)
@click.option("--planning", is_flag=True, help="As if in plan mode.")
@config_option
def why_(
    tool: str,
    arguments: str,
    agent: str,
    config: str | None,
    **place: Any,
) -> None:
    """Explain what happens when the agent calls TOOL with these ARGUMENTS (JSON, or the text of the
    first one).

    Prints the verdict, the answer of each check, each rule that was considered and why it does not
    match, and standing answers to this exact call.

    \b
    Examples:
      deskhand policy why shell --untrusted
      deskhand policy why web_fetch https://example.org/ --as kids \\
        --channel telegram --group
    """
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    call = msgspec.convert(
        {"as": place.pop("who"), "tool": tool, "arguments": arguments, "agent": name, **place},
        ExplainedCall,
    )
    tools = _load_tools(settings, name)

    async def use(store: SqlStore | None, users: tuple[User, ...]) -> Why:
        return await explain_case(settings, make_case(settings, tools, call, users), store)

    _print_why(settings, _with_users(settings, use))


def _print_why(settings: Settings, found: Why) -> None:
    case = found.case
    decision = found.decision
    click.echo(f"{_coloured(decision.verdict)}: {escape_control(decision.reason)}")
    roles = f" ({', '.join(case.principal.roles)})" if case.principal.roles else ""
    place = f"on {case.channel}{' in a group' if case.group else ''}"
    click.echo(
        escape_control(
            f"  agent {case.agent}, tool {case.tool}, effect {case.effect}, for "
            f"{case.principal.id}{roles}, {place}"
        )
    )

    click.echo("Checks (the strictest answer wins; of equally strict answers, the first):")
    for result in found.checks:
        verdict = result.decision.verdict
        click.echo(
            f"  {_coloured(verdict, width=5)}  {result.check}: "
            f"{escape_control(result.decision.reason)}"
        )

    if found.rules:
        click.echo("Rules, in order:")
    for looked in found.rules:
        _print_rule(settings, looked)
    if not found.rules or found.rules[-1].misfit:
        click.echo(
            "No rule matches: calls that stay within the workspace and the conversation are "
            "allowed, all others need approval."
        )

    if found.grant is not None:
        click.echo(
            f"Standing answer: {escape_control(found.grant.reason)}. List standing answers with: "
            "deskhand approvals grants"
        )
    if found.opens is not None:
        rule = found.opens
        click.echo(f"To change it, add to the top of `policy:` in {settings.home.config}:")
        click.echo(
            escape_control(
                f"  - {{verdict: allow, agent: {rule.agent}, tool: {rule.tool}, who: {rule.who}}}"
            )
        )
    elif decision.verdict != "allow":
        click.echo("No rule can change this.")


def _coloured(verdict: Verdict, width: int = 0) -> str:
    return click.style(f"{verdict:<{width}}", fg=COLORS[verdict])


def _print_rule(settings: Settings, looked: ExplainedRules) -> None:
    own = looked.number <= len(settings.config.policy)
    told = summarize_rule(looked.rule) if own or not looked.rule.because else looked.rule.because
    sign = "  fits  " if not looked.misfit else "        "
    number = f"{looked.number:>3}" if own else "  -"
    click.echo(
        escape_control(f"{sign}{number}  {told}" + (f": {looked.misfit}" if looked.misfit else ""))
    )


@policy.command("show")
@agent_option
@config_option
def show(agent: str, config: str | None) -> None:
    """Print an agent's permission mode, rules and tools.

    \b
    Example:
      deskhand policy show --agent main
    """
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    mode = settings.permission_mode(name)
    tools = _load_tools(settings, name)
    click.echo(f"{name}: {mode}. {PERMISSION_MODES[mode]}")
    rules = rules_of(settings, name)
    for number, rule in enumerate(rules[: len(settings.config.policy)], 1):
        who = "" if rule.who == "*" else f" for {rule.who}"
        unknown = (
            ""
            if any(fnmatchcase(tool, rule.tool) for tool in tools)
            else f" ({name} has no such tool)"
        )
        click.echo(
            escape_control(
                f"{number:>3}  "
                f"{summarize_rule(rule)}{who}{f': {rule.because}' if rule.because else ''}{unknown}"
            )
        )
    for each, role in settings.config.roles.items():
        if role.permission_mode is not None:
            click.echo(
                escape_control(
                    f"  -  for the role {each}: {role.permission_mode}, if that is stricter"
                )
            )
    click.echo(escape_control(f"Tools: {', '.join(tools) or 'none'}"))


@policy.command("test")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@config_option
def test(file: Path, config: str | None) -> None:
    """Check a file of calls against the verdicts you expect. Exits with 1 if a verdict differs.

    \b
    FILE is YAML: a list of calls, each with `tool` and `expect`, and optionally
    `arguments`, `agent`, `as`, `channel`, `group`, `untrusted`, `host`,
    `planning` and `because` (a part of the reason):
      - {tool: shell, arguments: "rm -r build", as: kids, expect: deny}

    \b
    Example:
      deskhand policy test policy-cases.yaml
    """
    settings = load_settings(config)
    try:
        cases = msgspec.convert(_read_yaml(file), list[Expected], strict=False)
    except msgspec.ValidationError as error:
        fail(f"{str(file)!r}: {error}", USAGE)
    tools = {name: _load_tools(settings, name) for name in settings.agents}

    async def use(store: SqlStore | None, users: tuple[User, ...]) -> list[str]:
        found = []
        for number, case in enumerate(cases, 1):
            name = settings.resolve_agent(case.agent)
            if wrong := check_expectation(settings, tools[name], case, users):
                place = f"{case.channel}{' (group)' if case.group else ''}"
                found.append(
                    f"case {number}: {case.tool} {case.arguments or ''} as {case.as_} on "
                    f"{place}: {wrong}"
                )
        return found

    wrong = _with_users(settings, use)
    for line in wrong:
        click.echo(escape_control(line))
    click.echo(f"{len(cases) - len(wrong)} of {len(cases)} as expected.")
    if wrong or not cases:
        raise SystemExit(FAILED)


@policy.command("what-if")
@click.argument(
    "rules", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--days",
    default=DEFAULT_DAYS,
    show_default=True,
    type=click.IntRange(1),
    help="How many days of the log to replay.",
)
@click.option(
    "--who",
    default="",
    help="Test as this user or role; `stranger` for an unknown person.",
)
@place_options
@agent_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@config_option
def what_if(
    rules: Path | None,
    days: int,
    who: str,
    agent: str,
    config: str | None,
    **place: Any,
) -> None:
    """Replay recent calls under the rules in RULES, and show which decisions would change.

    RULES is YAML: a list of rules, or any of the keys policy, permission_mode, roles, agents and
    defaults. With --who, it shows instead what this user or role could make the agent do, under
    these rules or the current ones.

    \b
    Examples:
      deskhand policy what-if other-rules.yaml
      deskhand policy what-if --who member --channel telegram
    """
    settings = load_settings(config)
    other = settings
    as_json = place.pop("as_json")
    try:
        other = settings if rules is None else with_rules(settings, _read_yaml(rules), rules)
    except ConfigError as error:
        fail(str(error), USAGE)
    if who:
        _print_possible_calls(other, resolve_agent(other, agent), who, place, as_json=as_json)
    elif rules is None:
        fail("name a file of rules, or a user or role with --who", USAGE)
    else:
        _print_replay(settings, other, days, as_json=as_json)


def _print_replay(settings: Settings, other: Settings, days: int, *, as_json: bool) -> None:
    tools = {name: _load_tools(settings, name) for name in settings.agents}
    since = SystemClock().now() - days * DAY_S

    async def use(store: SqlStore | None, users: tuple[User, ...]) -> list[Then]:
        return (
            []
            if store is None
            else [each async for each in replay_calls(settings, other, tools, store, since)]
        )

    every = _with_users(settings, use)
    found = [each for each in every if each.now != each.then]
    if as_json:
        click.echo(to_json([_to_dict(each) for each in found]))
        return
    zone = ZoneInfo(settings.config.timezone)
    click.echo(
        f"{len(found)} of {len(every)} calls in the last {days} days would be decided differently."
    )
    if not every:
        return
    for verdict in ("allow", "ask", "deny"):
        now, then = (
            Counter(getattr(each, field) for each in every)[verdict] for field in ("now", "then")
        )
        click.echo(f"  {verdict:<5}  {now:>6} -> {then}")
    kinds = Counter((each.case.tool, each.case.effect, each.now, each.then) for each in found)
    rows = [
        (tool, effect, f"{now} -> {then}", str(times))
        for (tool, effect, now, then), times in kinds.most_common()
    ]
    if rows:
        print_table(("tool", "effect", "now -> then", "calls"), rows)
    for each in found[-MAX_EXAMPLES:]:
        words = shorten_line(each.case.arguments.decode(errors="replace"), 80)
        click.echo(
            escape_control(
                f"{format_local_time(each.at, zone)}  {each.session}  {each.case.principal.id}: "
                f"{each.case.tool} {words}"
            )
        )
        click.echo(escape_control(f"    {each.now} -> {each.then}: {each.because}"))


def _to_dict(each: Then) -> Mapping[str, object]:
    case = each.case
    return {
        "at": each.at,
        "session": each.session,
        "n": each.n,
        "agent": case.agent,
        "tool": case.tool,
        "effect": case.effect,
        "who": case.principal.id,
        "channel": case.channel,
        "now": each.now,
        "then": each.then,
        "because": each.because,
    }


def _print_possible_calls(
    settings: Settings, agent: str, who: str, place: Mapping[str, Any], *, as_json: bool
) -> None:
    tools = _load_tools(settings, agent)
    stranger = who == "stranger"

    async def use(store: SqlStore | None, users: tuple[User, ...]) -> list[Could]:
        principal = ME if stranger else parse_principal(settings, who, users)
        if not may_talk(
            principal, agent, {name: role.agents for name, role in settings.config.roles.items()}
        ):
            fail(f"{who} may not talk to {agent}, and so cannot make it do anything", FAILED)
        return list_capabilities(
            settings, agent, tools, principal, place["channel"], group=place["group"]
        )

    found = _with_users(settings, use)
    if as_json:
        click.echo(to_json(found))
        return
    if stranger:
        click.echo(
            "Messages from strangers are refused, so they cannot make the agent do anything. The "
            "agent may still read text that a stranger wrote, in a page, a mail or a file. After "
            "that, this applies to the owner who asked for it:"
        )
        print_table(
            ("tool", "effect", "verdict"), [(each.tool, each.effect, each.after) for each in found]
        )
        return
    rows = [(each.tool, each.effect, each.verdict, each.after) for each in found]
    print_table(("tool", "effect", "verdict", "after untrusted content"), rows)


def _load_tools(settings: Settings, name: str) -> Tools:
    return load_inventory(settings, name).tools


def _read_yaml(file: Path) -> Any:
    """What a file of YAML holds. Ends with exit code 2 where it cannot be read."""
    try:
        return read_any(file)
    except (ConfigError, OSError) as error:
        fail(str(error), USAGE)


def _with_users(
    settings: Settings, use: Callable[[SqlStore | None, tuple[User, ...]], Awaitable[T]]
) -> T:
    """Look with the log and its users, where there are any. Ends with exit code 2 for what cannot
    be."""

    async def use_or_fail(store: SqlStore | None, users: tuple[User, ...]) -> T:
        try:
            return await use(store, users)
        except ConfigError as error:
            fail(str(error), USAGE)

    async def use_without_store() -> T:
        return await use_or_fail(None, ())

    async def use_with_store(store: SqlStore) -> T:
        roles = {name: role.agents for name, role in settings.config.roles.items()}
        people = open_people(store, SystemClock(), lambda: roles, dict)
        return await use_or_fail(store, tuple(await people.users()))

    return (
        with_store(settings, use_with_store)
        if has_database(settings)
        else run(settings, use_without_store, log=False)
    )
