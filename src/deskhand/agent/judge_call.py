"""Decides what becomes of a call, without running it: first what a crash or a person has decided
already, then what the policy says."""

from __future__ import annotations

from difflib import get_close_matches

from ..policy import approval
from ..policy.approval import CallSetting, render_arguments
from ..policy.consent import find_grant
from ..policy.information_flow import Given, collect_known_texts
from ..policy.joint_asks import JointAsk
from ..policy.rules import Case, Decision
from ..policy.visible import escape_invisible
from ..tools.aliases import TOOL_ALIASES, find_tool
from ..tools.base import CallPreview, PreviewFunction, Tool, Tools, get_effect_function
from ..tools.execute_tool import ReadyCall
from ..types.events import BoundCall, CallClosed
from ..types.messages import ResultPart, ToolResult
from ..types.subagents import SESSION_MARK
from ..types.turn import MAY_HAVE_HAPPENED, OpenCall, make_failed_result
from .session import Session

NAME_CHARS = 64
"""Of a name that a model made up, so much is compared with those that there are."""
UNCERTAIN = f"{MAY_HAVE_HAPPENED}; check before you repeat it"
TOO_LONG = "too long for a person to approve: do it in smaller steps"

Verdict = ReadyCall | ToolResult | JointAsk | CallClosed
"""It may run; it has its result; a person must be asked; it is closed unasked."""


async def judge_call(session: Session, call: OpenCall) -> Verdict:
    """What becomes of this call. Raises StoreError."""
    # What happened before comes first: the tool may be gone since then. `answer` is to a question
    # of the tool; a yes to the call itself is `yes_at`, which is looked at with the policy.
    if call.answer is not None and not call.resumes:
        parts = tuple(part for part in call.answer.parts if isinstance(part, ResultPart))
        return ToolResult(call.call.id, parts)
    if call.ask is not None:  # its time is over: open questions are not judged
        status, reason = approval.explain_unanswered(call.ask)
        began = f"; {UNCERTAIN}" if call.started and call.resumes else ""
        return make_failed_result(call, status, reason + began)
    tools = session.agent.tools
    tool = find_tool(call.call.name, tools, call.call.arguments)
    may_resume = call.answer is not None and not call.resumed
    if may_resume and tool is not None:
        return ReadyCall(call, tool, "")  # it was judged when it began
    if call.started and (tool is None or tool.spec.replay == "never"):
        return make_failed_result(call, "interrupted", UNCERTAIN)  # nobody saw its end
    if tool is None:
        return make_failed_result(call, "error", _describe_missing_tool(call.call.name, tools))
    if call.refusal:
        return make_failed_result(call, "denied", f"not permitted: {call.refusal}")
    return await _ask_policy(session, call, tool)


def _describe_missing_tool(name: str, tools: Tools) -> str:
    near = get_close_matches(name[:NAME_CHARS], tools, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(tools)}"
    return f"there is no tool {name!r}; {hint}"


async def _ask_policy(session: Session, call: OpenCall, tool: Tool) -> Verdict:
    turn = session.turn
    looks = getattr(tool, "preview", None)
    preview = None if looks is None else _preview(session, call, looks)
    setting = _make_setting(session, preview)
    case = _make_case(session, call, tool, preview)
    decision = await _decide(session, call, case, setting)
    if decision.verdict == "deny":
        return make_failed_result(call, "denied", f"not permitted: {decision.reason}")

    binds = approval.hash_call(call.call, setting, turn.principal)
    approved = call.yes_at is not None
    if call.yes_at is not None:
        age_s = session.runtime.clock.now() - call.yes_at
        lapse = approval.find_lapse(call.yes_binds == binds, age_s)
        if lapse and not call.together:
            return make_failed_result(call, "denied", lapse)
        if lapse:
            # The calls that were approved with it took long, or have read something.
            approved = False
    if approved:
        return ReadyCall(call, tool, "")
    if decision.verdict == "allow":
        return ReadyCall(call, tool, decision.reason)

    question = f"{tool.spec.name} {render_arguments(call.call)}"
    if setting.shown:
        question += f"\n{escape_invisible(setting.shown)}"
    if len(question) > approval.SHOWN_ARGUMENT_CHARS:
        return make_failed_result(call, "denied", TOO_LONG)
    if turn.asked >= approval.ASKS_PER_TURN and not call.counted:
        return CallClosed(call.call.id, "denied", approval.TOO_MANY_ASKS)
    return JointAsk(BoundCall(call.call.id, binds), question, decision.reason, case, call.alone)


async def _decide(session: Session, call: OpenCall, case: Case, setting: CallSetting) -> Decision:
    """What the judge says, or what a person said for always."""
    decision = session.agent.judge.judge(case)
    if decision.verdict != "ask" or call.yes_at is not None:
        return decision
    store = session.runtime.store
    grant = await find_grant(store, call.call, setting, session.turn.principal)
    return grant or decision


def _make_case(session: Session, call: OpenCall, tool: Tool, preview: CallPreview | None) -> Case:
    turn = session.turn
    effect = tool.spec.effect
    effect_function = get_effect_function(tool)
    if preview is not None:
        effect = preview.effect
    elif effect_function is not None:
        effect = effect_function(call.call.arguments, turn.address)

    label = session.journal.trusted_label
    known: tuple[Given, ...] = ()
    if effect == "fetch" and (label.integrity == "untrusted" or label.readers is not None):
        known = _texts_from_pages(session)
    case = Case(
        session.agent.name,
        tool.spec.name,
        effect,
        turn.principal,
        label,
        bytes(call.call.arguments),
        "\n".join(turn.said),
        known=known,
    )
    address = turn.address
    if SESSION_MARK in session.name:  # what holds where its people are holds for it too
        address = session.runtime.approvers.place(session.name, turn).address
    return case.with_conversation(address, session.state.options)


def _texts_from_pages(session: Session) -> tuple[Given, ...]:
    """What people said and pages contained: an address that stands in it tells nobody anything
    new."""
    fetching = {name for name, tool in session.agent.tools.items() if tool.spec.effect == "fetch"}
    messages = (shown.message for shown in session.state.messages)
    return collect_known_texts(messages, lambda name: TOOL_ALIASES.get(name, name) in fetching)


def _preview(session: Session, call: OpenCall, looks: PreviewFunction) -> CallPreview | None:
    label = session.journal.trusted_label
    return looks(call.call.arguments, session.name, session.state.options, label)


def make_setting(session: Session, call: OpenCall) -> CallSetting:
    """What an approval of this call binds beside it."""
    tool = find_tool(call.call.name, session.agent.tools, call.call.arguments)
    looks = getattr(tool, "preview", None)
    return _make_setting(session, None if looks is None else _preview(session, call, looks))


def _make_setting(session: Session, preview: CallPreview | None) -> CallSetting:
    shown = preview.shown if preview is not None else ""
    agent = session.agent
    untrusted = session.journal.trusted_label.integrity == "untrusted"
    return CallSetting(session.name, agent.name, agent.folder, agent.profile, shown, untrusted)
