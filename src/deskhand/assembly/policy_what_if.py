"""What other rules would have decided about the calls in the log, and what somebody could make an
agent do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from ..agent.fold import fold
from ..agent.state import State
from ..config import keys
from ..config.config import Config, Settings, parse_config
from ..policy.information_flow import apply_trust, collect_known_texts, downgrade_label
from ..policy.rules import Case, Decision, Verdict
from ..store.base import Store
from ..tools.aliases import TOOL_ALIASES
from ..tools.base import Tool, Tools, get_effect_function
from ..types.effects import Effect
from ..types.errors import ConfigError
from ..types.events import AnyEvent, ApprovalAsked, CallClosed, Recorded, ToolFinished
from ..types.identity import Address, Principal
from ..types.labels import OWNER, UNTRUSTED, Label
from ..types.messages import ToolCall
from ..types.turn import OpenCall
from ..users.tool import NAME as USERS
from ..users.tool import REFUSED
from .judge import make_judge

DAY_S = 86_400.0
MOST_SESSIONS = 10_000
UNKNOWN_URL_ARGUMENTS = b'{"url":"https://nobody-named.example/"}'
"""Arguments with an address that no person wrote."""
RULE_KEYS = ("policy", "permission_mode", "agents", "defaults", "roles")
"""What a file of other rules may set."""


class Then(msgspec.Struct, frozen=True):
    """A call of the log, and what is decided about it now and under the other rules."""

    at: float
    session: str
    n: int
    case: Case
    now: Verdict
    then: Verdict
    because: str


class Could(msgspec.Struct, frozen=True):
    """What somebody could make an agent do with a tool: at once, and after the agent has read
    something from outside."""

    tool: str
    effect: Effect
    verdict: Verdict
    after: Verdict
    because: str = ""


def with_rules(settings: Settings, other: Any, file: Path) -> Settings:
    """The settings with other rules, from this file: a list of them, or keys of the configuration
    that decide what is allowed. Raises ConfigError."""
    wanted = {"policy": other} if isinstance(other, list) else other
    if not isinstance(wanted, Mapping) or not wanted:
        raise ConfigError(f"{str(file)!r} is neither a list of rules nor part of a configuration")
    strange = next((key for key in wanted if keys.current_path(str(key)) not in RULE_KEYS), "")
    if strange:
        raise ConfigError(
            f"{str(file)!r}: {strange!r} has no effect on calls; allowed keys: "
            f"{', '.join(RULE_KEYS)}"
        )
    now: dict[str, Any] = msgspec.to_builtins(settings.config)
    known, _ = keys.split_known(wanted, Config)
    data = keys.overlay(now, known)
    keys.normalize(data)
    config: Config = parse_config(data, file)
    return replace(settings, config=config)


async def replay_calls(
    settings: Settings, other: Settings, tools: Mapping[str, Tools], store: Store, since: float
) -> AsyncIterator[Then]:
    """Each call since then that the log holds, judged as it was made: what had been read, by whom
    and where. `tools` are those of each agent; calls of agents and tools that are gone are left
    out."""
    judges = {
        name: (make_judge(settings, name).judge, make_judge(other, name).judge)
        for name in settings.agents
    }
    for row in await store.sessions(Principal("owner", ("owner",)), MOST_SESSIONS):
        agent = row.session.partition("/")[0]
        if row.last_at < since or agent not in judges:
            continue
        now, then = judges[agent]
        for recorded, case in _cases(
            row.session, agent, await store.events(row.session), tools[agent]
        ):
            if recorded.at >= since:
                decision = then(case)
                was = now(case)
                yield Then(
                    recorded.at,
                    row.session,
                    recorded.n,
                    case,
                    was.verdict,
                    decision.verdict,
                    decision.reason,
                )


def _cases(
    session: str, agent: str, log: Iterable[Recorded], tools: Tools
) -> Iterable[tuple[Recorded, Case]]:
    """Each call of a session once, where it was first decided about."""
    state = State(session)
    known = set[tuple[int, str]]()
    for recorded in log:
        for call_id in _decided_calls(recorded.event):
            if (open_ := state.calls.get(call_id)) is not None and (open_.n, call_id) not in known:
                known.add((open_.n, call_id))
                tool = tools.get(open_.call.name) or tools.get(
                    TOOL_ALIASES.get(open_.call.name, "")
                )
                if tool is not None and state.turn is not None:
                    yield recorded, _make_case(agent, state, open_, tool, tools)
        fold(state, (recorded,))


def _decided_calls(event: AnyEvent) -> list[str]:
    """The calls about which this event tells that something was decided."""
    match event:
        case ToolFinished(result=result):
            return [result.call_id]
        case ApprovalAsked(calls=calls):
            return [call.call_id for call in calls]
        case CallClosed(call_id=call_id):
            return [call_id]
        case _:
            return []


def _make_case(agent: str, state: State, open_: OpenCall, tool: Tool, tools: Tools) -> Case:
    turn = state.turn
    call = open_.call
    options = state.options
    assert turn is not None
    effect = effect_of(tool, call, turn.address)
    label = apply_trust(downgrade_label(state.label, turn.principal), options.trust or ())
    case = Case(
        agent,
        tool.spec.name,
        effect,
        turn.principal,
        label,
        bytes(call.arguments),
        "\n".join(turn.said),
    )
    if effect == "fetch" and label.integrity == "untrusted":
        reads = {name for name, each in tools.items() if each.spec.effect == "fetch"}
        case = replace(
            case,
            known=collect_known_texts(
                (each.message for each in state.messages), lambda name: name in reads
            ),
        )
    how = {"strict": bool(options.approval), "planning": bool(options.plan_mode)}
    return replace(case, channel=turn.address.channel, group=turn.address.group, **how)


def effect_of(tool: Tool, call: ToolCall, address: Address) -> Effect:
    """What this call would do to the world."""
    judged = get_effect_function(tool)
    return tool.spec.effect if judged is None else judged(call.arguments, address)


def list_capabilities(
    settings: Settings, agent: str, tools: Tools, who: Principal, channel: str, *, group: bool
) -> list[Could]:
    """What this person could make the agent do there, tool by tool and effect by effect."""
    judge = make_judge(settings, agent).judge
    word = OWNER if "owner" in who.roles else Label("member")
    found = []
    for name, tool in tools.items():
        for effect in effects_of(tool):
            place = Case(agent, name, effect, who, word, channel=channel, group=group)
            after = judge(replace(place, context=UNTRUSTED, arguments=UNKNOWN_URL_ARGUMENTS))
            first = judge(place)
            if name == USERS and "owner" not in who.roles:
                first = after = Decision("deny", REFUSED)  # by the tool itself, which all are shown
            found.append(Could(name, effect, first.verdict, after.verdict, first.reason))
    return found


def effects_of(tool: Tool) -> tuple[Effect, ...]:
    """All that a tool may do, by its arguments, weakest first."""
    more: Sequence[Effect] = getattr(tool, "effects", ())
    every = {tool.spec.effect, *more}
    return tuple(effect for effect in get_args(Effect) if effect in every)
