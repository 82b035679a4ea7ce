"""The step that runs tools: what may run is run, what must be asked is asked, and every call gets
its result."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial

import anyio
from msgspec.structs import replace

from ..models.side_completion import Aside, Billing, ask_aside, cheapest_first
from ..policy import approval
from ..policy.approval import CallSetting, render_arguments
from ..policy.consent import find_grant, save_grant
from ..policy.gate import (
    Given,
    apply_trust,
    collect_known_texts,
    downgrade_label,
    withhold_private_parts,
)
from ..policy.rules import Case
from ..policy.together import JointAsk, join_reasons, render_joint_context, select_joint_asks
from ..tools.aliases import TOOL_ALIASES, find_tool
from ..tools.attempt import ReadyCall, run_tool
from ..tools.base import Context, Done, PersonQuestion, Tool, get_effect_function
from ..types.budget import make_charge
from ..types.commit import Change
from ..types.door import PREVIEW_CHARS, Progress
from ..types.errors import ModelError, ToolError
from ..types.events import (
    ApprovalAnswered,
    ApprovalAsked,
    AskedAside,
    BoundCall,
    CallClosed,
    OptionsSet,
    QuestionAsked,
    ToolFinished,
    ToolStarted,
    Turn,
)
from ..types.interrupt import Interrupt, run_if_slow
from ..types.labels import Label
from ..types.messages import ResultPart, Text, ToolCall, ToolResult, clean_text
from ..types.steps import RunTools
from ..types.turn import OpenCall, make_failed_result
from .client_calls import hand_over_calls, split_calls
from .journal import Journal

NAME_CHARS = 64
"""Of a name that a model made up, so much is compared with those that there are."""
FLUSH_DELAY_S = 0.02
"""A tool that may run again and is done sooner has its call and its result written in one
commit."""


Verdict = ReadyCall | ToolResult | JointAsk | CallClosed


class Calls:
    """Runs the open calls of one session."""

    def __init__(self, journal: Journal, interrupt: Interrupt) -> None:
        self._journal = journal
        self._interrupt = interrupt

    async def run(self, step: RunTools, turn: Turn) -> None:
        """Take the next calls that can be taken together: those at the front that may run side by
        side, or one. When ours are done, those of the program's own tools are handed over to it.

        Afterwards each of them has a result or waits for a person, and the log says so.
        """
        await self._journal.flush_changes()
        group: list[ReadyCall] = []
        ours, theirs = split_calls(step.calls, turn.request)
        if turn.request is not None and theirs and not ours:
            ports = self._journal.ports
            now = self._journal.ports.clock.now()
            self._journal.record(*hand_over_calls(theirs, turn.request, now, ports.ids.new), at=now)
            return
        for i, call in enumerate(ours):
            verdict = await self._judge(call, turn)
            if group and not (isinstance(verdict, ReadyCall) and verdict.tool.spec.is_parallel):
                break
            match verdict:
                case ToolResult():
                    self._journal.record(ToolFinished(verdict))
                case JointAsk():
                    asked = await self._make_ask(verdict, ours[i + 1 :], turn)
                    self._journal.record(asked, at=asked.until - approval.ASK_WAIT_S)
                    return
                case CallClosed():
                    if turn.asked == approval.ASKS_PER_TURN:
                        self._journal.enqueue_message(turn.address, (Text(verdict.reason),))
                    self._journal.record(verdict)
                case ReadyCall():
                    group.append(verdict)
                    if not verdict.tool.spec.is_parallel:
                        break
        if group:
            await self._run_group(group, turn)

    async def _judge(self, call: OpenCall, turn: Turn) -> Verdict:
        """What is to become of a call, without running it."""
        agent = self._journal.agent
        name = call.call.name
        tool = find_tool(name, agent.tools)
        if tool is None:
            near = get_close_matches(name[:NAME_CHARS], agent.tools, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(agent.tools)}"
            return make_failed_result(call, "error", f"there is no tool {name!r}; {hint}")
        if call.answer is not None:
            return ToolResult(
                call.call.id, tuple(p for p in call.answer.parts if isinstance(p, ResultPart))
            )
        if call.ask is not None:
            return make_failed_result(call, *approval.explain_unanswered(call.ask))
        if call.started and tool.spec.replay == "never":
            return make_failed_result(
                call, "interrupted", "it may or may not have happened; check before you repeat it"
            )
        if call.refusal:
            return make_failed_result(call, "denied", f"not permitted: {call.refusal}")
        return await self._ask_policy(call, tool, turn)

    async def _ask_policy(self, call: OpenCall, tool: Tool, turn: Turn) -> Verdict:
        journal = self._journal
        agent = self._journal.agent
        spec = tool.spec
        now = journal.ports.clock.now()
        setting = self.make_setting()
        case = self._make_case(call, tool, turn)
        decision = agent.decide(case)
        if decision.verdict == "ask" and call.yes_at is None:
            decision = (
                await find_grant(journal.ports.store, call.call, setting, turn.principal)
                or decision
            )
        if decision.verdict == "deny":
            return make_failed_result(call, "denied", f"not permitted: {decision.reason}")
        binds = approval.hash_call(call.call, setting, turn.principal)
        allowed = call.yes_at is not None
        if call.yes_at is not None and (
            void := approval.find_lapse(call.yes_binds == binds, now - call.yes_at)
        ):
            if not call.together:
                return make_failed_result(call, "denied", void)
            allowed = (
                False  # those before it took long, or have read something: it is asked about again
            )
        if decision.verdict == "allow" or allowed:
            return ReadyCall(call, tool, "" if allowed else decision.reason)
        question = f"{spec.name} {render_arguments(call.call)}"
        if len(question) > approval.SHOWN_ARGUMENT_CHARS:
            return make_failed_result(
                call, "denied", "too long for a person to approve: do it in smaller steps"
            )
        if turn.asked >= approval.ASKS_PER_TURN and not call.counted:
            return CallClosed(call.call.id, "denied", approval.TOO_MANY_ASKS)
        return JointAsk(BoundCall(call.call.id, binds), question, decision.reason, case, call.alone)

    async def _make_ask(
        self, first: JointAsk, behind: Sequence[OpenCall], turn: Turn
    ) -> ApprovalAsked:
        """The question about this call, and about those behind it that may be asked about with
        it."""
        journal = self._journal
        wanted = [first]
        for call in behind:
            verdict = await self._judge(call, turn) if first.can_share else None
            if not isinstance(verdict, JointAsk):
                break
            wanted.append(verdict)
        wanted = select_joint_asks(wanted, approval.ASKS_PER_TURN - turn.asked)
        shut_out = not approval.may_approve(turn.principal)
        elsewhere = (
            await journal.ports.find_approvers(journal.session)
            if shut_out and journal.ports.find_approvers
            else ()
        )
        return ApprovalAsked(
            ask_id=journal.ports.ids.new("ask"),
            call_id=first.call.call_id,
            binds=first.call.binds,
            question="\n".join(each.question for each in wanted),
            reason=join_reasons(wanted),
            until=approval.compute_ask_expiry(journal.ports.clock.now()),
            source=self._turn_label.source,
            elsewhere=elsewhere,
            about=render_joint_context(wanted),
            others=tuple(each.call for each in wanted[1:]),
        )

    def _make_case(self, call: OpenCall, tool: Tool, turn: Turn) -> Case:
        effect = tool.spec.effect
        if (judged := get_effect_function(tool)) is not None:
            effect = judged(call.call.arguments, turn.address)
        agent = self._journal.agent
        state = self._journal.state
        label = self._gate_label
        known = tuple[Given, ...]()
        if effect == "fetch" and (label.integrity == "untrusted" or label.readers is not None):
            reads = {name for name, each in agent.tools.items() if each.spec.effect == "fetch"}
            known = collect_known_texts(
                (each.message for each in state.messages),
                lambda name: TOOL_ALIASES.get(name, name) in reads,
            )
        said = "\n".join(turn.said)
        arguments = bytes(call.call.arguments)
        case = Case(
            agent.name, tool.spec.name, effect, turn.principal, label, arguments, said, known=known
        )
        return case.with_conversation(turn.address, state.options)

    @property
    def _gate_label(self) -> Label:
        """What has been read, as the gate sees it."""
        return apply_trust(self._turn_label, self._journal.state.options.trust or ())

    @property
    def _turn_label(self) -> Label:
        """The label of all that was read, as it counts for who opened this turn."""
        state = self._journal.state
        return (
            downgrade_label(state.label, state.turn.principal)
            if state.turn is not None
            else state.label
        )

    def make_setting(self) -> CallSetting:
        """What an approval binds beside the call."""
        agent = self._journal.agent
        untrusted = self._gate_label.integrity == "untrusted"
        return CallSetting(
            self._journal.session, agent.name, agent.folder, agent.profile, untrusted
        )

    def make_grant(self, answered: ApprovalAnswered, call: ToolCall, turn: Turn) -> Change:
        """The row that remembers `always` or `never` for exactly this call."""
        return save_grant(
            answered, call, self.make_setting(), turn.principal, self._journal.ports.clock.now()
        )

    async def _run_group(self, group: list[ReadyCall], turn: Turn) -> None:
        never = [
            ToolStarted(ready.call.call.id) for ready in group if ready.tool.spec.replay == "never"
        ]
        if never:
            self._journal.record(*never)
            await self._journal.flush()
        outcomes: list[Done | PersonQuestion | None] = [None] * len(group)
        clock = self._journal.ports.clock
        began = clock.monotonic()
        ended: list[float | None] = [None] * len(group)

        async def run(i: int, ready: ReadyCall) -> None:
            journal = self._journal
            call = ready.call.call
            one = partial(self._run_one, ready, turn)
            if (hooks := journal.agent.hooks) is None:
                outcomes[i] = await one()
            else:
                outcomes[i] = await hooks.around_tool(
                    journal.session, turn, ready.tool.spec, call, one
                )
            ended[i] = clock.monotonic()
            if len(group) > 1 and isinstance(over := outcomes[i], Done):
                text = clean_text(ToolResult(call.id, over.parts).text[:PREVIEW_CHARS])
                journal.publish_progress(
                    Progress(
                        "tool_result",
                        journal.state.n,
                        text=text,
                        call_id=call.id,
                        status=over.status,
                    )
                )

        with self._interrupt:
            async with run_if_slow(FLUSH_DELAY_S, self._journal.flush):
                if len(group) == 1:
                    await run(0, group[0])
                else:
                    async with anyio.create_task_group() as tasks:
                        for i, ready in enumerate(group):
                            tasks.start_soon(run, i, ready)
        over = clock.monotonic()
        for ready, outcome, at in zip(group, outcomes, ended, strict=True):
            self._record_outcome(ready, outcome, round((over if at is None else at) - began, 3))

    async def _run_one(self, ready: ReadyCall, turn: Turn) -> Done | PersonQuestion:
        return await run_tool(
            ready.tool, ready.call.call.arguments, partial(self._make_context, ready.call, turn)
        )

    async def _make_context(self, call: OpenCall, turn: Turn) -> Context:
        journal = self._journal
        ports = self._journal.ports
        call_id = call.call.id
        n = journal.state.n

        stream = ports.secrets.stream()

        def emit(text: str) -> None:
            text = text if stream is None else stream.feed(text)
            journal.publish_progress(Progress("tool_output", n, text=text, call_id=call_id))

        async def ask(aside: Aside) -> str:
            agent = journal.agent
            charge = make_charge(turn.principal, journal.session, journal.agent.name, "")
            billing = Billing(
                ports.budgets, charge, ids=ports.ids, kind="aside", record=journal.add_changes
            )
            began = ports.clock.monotonic()
            try:
                models = cheapest_first(agent.cheap_model, agent.models)
                aired = await ask_aside(aside, models, ports.open_model, billing)
            except ModelError as error:
                raise ToolError(f"no model answered: {error}") from error
            took_s = round(ports.clock.monotonic() - began, 3)
            journal.record(AskedAside(call_id, aired.model, aired.usage, took_s))
            return clean_text(aired.text)

        place = (
            journal.session,
            turn.principal,
            turn.address,
            journal.agent.name,
            await journal.agent.open_scope(),
        )
        key = f"{journal.session}#{call.n}.{call_id}"
        state = journal.state
        who = (self._turn_label, ask, state.audience, call.yes_at is not None, state.person)
        return Context(*place, ports.clock, ports.ids, emit, key, *who, state.options)

    def _record_outcome(
        self, ready: ReadyCall, outcome: Done | PersonQuestion | None, took_s: float
    ) -> None:
        journal = self._journal
        call_id = ready.call.call.id
        match outcome:
            case Done(parts=parts, status=status, end_turn=end_turn):
                journal.add_changes(outcome.changes, outcome.outbox)
                kept = withhold_private_parts(journal.state.audience, parts)
                parts, status = (
                    kept,
                    status if kept == parts else "ok",
                )  # how it ended would be told as well
                cleaned = (
                    replace(part, text=clean_text(part.text)) if isinstance(part, Text) else part
                    for part in parts
                )
                result = ToolResult(call_id, tuple(cleaned), status)
                journal.record(ToolFinished(result, end_turn, ready.why, took_s))
                if outcome.options is not None and (turn := journal.state.turn) is not None:
                    journal.record(OptionsSet(0, turn.principal, outcome.options))
            case PersonQuestion(question=question, choices=choices, wait_s=wait_s):
                now = journal.ports.clock.now()
                ask_id = journal.ports.ids.new("ask")
                journal.record(
                    QuestionAsked(ask_id, call_id, clean_text(question), choices, now + wait_s),
                    at=now,
                )
            case None:
                reason = "stopped by a person"
                if ready.tool.spec.replay == "never":
                    reason += "; it may or may not have happened"
                journal.record(
                    ToolFinished(
                        make_failed_result(ready.call, "interrupted", reason), took_s=took_s
                    )
                )
