"""The step that runs tools: what may run is run, what must be asked is asked, and every call gets its result."""

from __future__ import annotations

from difflib import get_close_matches

import anyio
import msgspec

from ..policy.approval import EXECUTE_WITHIN_S, Setting, binding
from ..policy.rules import Case
from ..tools.base import Ask, Context, Done, Tool
from ..types.door import Progress
from ..types.errors import ToolError
from ..types.events import ApprovalAsked, QuestionAsked, ToolFinished, ToolStarted
from ..types.labels import LOCAL
from ..types.messages import ResultStatus, Text, ToolResult, clean
from .journal import Journal
from .profile import Interrupt
from .state import OpenCall, Turn
from .step import RunTools

ASK_WAIT_S = 24 * 3600.0
SHOWN_ARGUMENT_CHARS = 20_000


class Ready(msgspec.Struct, frozen=True):
    """A call that may run now."""

    call: OpenCall
    tool: Tool


Verdict = Ready | ToolResult | ApprovalAsked


class Calls:
    """Runs the open calls of one session."""

    def __init__(self, journal: Journal, interrupt: Interrupt) -> None:
        self._journal, self._interrupt = journal, interrupt

    async def run(self, step: RunTools, turn: Turn) -> None:
        """Take the next calls that can be taken together: those at the front that may run side by side, or one.

        Afterwards each of them has a result or waits for a person, and the log says so.
        """
        group: list[Ready] = []
        for call in step.calls:
            verdict = self._judge(call, turn)
            if group and not (isinstance(verdict, Ready) and verdict.tool.spec.parallel):
                break
            match verdict:
                case ToolResult():
                    self._journal.record(ToolFinished(verdict))
                case ApprovalAsked():
                    self._journal.record(verdict)
                    return
                case Ready():
                    group.append(verdict)
                    if not verdict.tool.spec.parallel:
                        break
        if group:
            await self._run_group(group, turn)

    def _judge(self, call: OpenCall, turn: Turn) -> Verdict:
        """What is to become of a call, without running it."""
        agent, name = self._journal.agent, call.call.name
        tool = agent.tools.get(name)
        if tool is None:
            near = get_close_matches(name, agent.tools, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(agent.tools)}"
            return _failed(call, "error", f"there is no tool {name!r}; {hint}")
        if call.started and tool.spec.replay == "never":
            return _failed(call, "interrupted", "it may or may not have happened; check before you repeat it")
        if call.answer is not None:
            return ToolResult(call.call.id, tuple(p for p in call.answer.parts if isinstance(p, Text)))
        if call.ask is not None:
            return _failed(call, "denied", f"nobody answered in time: {call.ask.question}")
        if call.refusal:
            return _failed(call, "denied", f"not permitted: {call.refusal}")
        return self._ask_policy(call, tool, turn)

    def _ask_policy(self, call: OpenCall, tool: Tool, turn: Turn) -> Verdict:
        journal, agent = self._journal, self._journal.agent
        now = journal.ports.clock.now()
        if call.yes_at is not None:
            if now - call.yes_at <= EXECUTE_WITHIN_S:
                return Ready(call, tool)
            return _failed(call, "denied", "the approval came too long ago to be used; ask again if it is still wanted")
        spec = tool.spec
        arguments, said = bytes(call.call.arguments), "\n".join(turn.said)
        case = Case(agent.name, spec.name, spec.effect, turn.principal, journal.state.label, arguments, said)
        decision = agent.decide(case)
        if decision.verdict == "allow":
            return Ready(call, tool)
        if decision.verdict == "deny":
            return _failed(call, "denied", f"not permitted: {decision.reason}")
        setting = Setting(journal.session, agent.name, str(agent.workspace), agent.profile)
        shown = bytes(call.call.arguments).decode()
        if len(shown) > SHOWN_ARGUMENT_CHARS:
            return _failed(call, "denied", "too long for a person to approve: do it in smaller steps")
        ask_id = journal.ports.ids.new("ask")
        question = f"{spec.name} {shown}"
        binds = binding(call.call, setting, turn.principal)
        return ApprovalAsked(ask_id, call.call.id, binds, question, decision.reason, now + ASK_WAIT_S)

    async def _run_group(self, group: list[Ready], turn: Turn) -> None:
        journal = self._journal
        for ready in group:
            if ready.tool.spec.replay == "never":
                journal.record(ToolStarted(ready.call.call.id))
        await journal.flush()
        outcomes: list[Done | Ask | None] = [None] * len(group)

        async def run(i: int, ready: Ready) -> None:
            outcomes[i] = await self._run_one(ready, turn)

        with self._interrupt:
            if len(group) == 1:
                await run(0, group[0])
            else:
                async with anyio.create_task_group() as tasks:
                    for i, ready in enumerate(group):
                        tasks.start_soon(run, i, ready)
        for ready, outcome in zip(group, outcomes, strict=True):
            self._settle(ready, outcome)

    async def _run_one(self, ready: Ready, turn: Turn) -> Done | Ask:
        spec, call = ready.tool.spec, ready.call.call
        try:
            with anyio.fail_after(spec.timeout_s):
                return await ready.tool.run(call.arguments, self._context(ready.call, turn))
        except ToolError as error:
            return _text("error", str(error))
        except TimeoutError:
            return _text("error", f"{spec.name} took longer than {spec.timeout_s:.0f} s and was stopped")
        except Exception as error:  # noqa: BLE001 -- the model, not the operator, decides what a broken tool means
            return _text("error", f"{spec.name} broke: {type(error).__name__}: {error}")

    def _context(self, call: OpenCall, turn: Turn) -> Context:
        journal, ports, call_id = self._journal, self._journal.ports, call.call.id
        n = journal.state.n

        def emit(text: str) -> None:
            journal.show(Progress("tool_output", n, text=text, call_id=call_id))

        return Context(
            journal.session,
            turn.principal,
            turn.address,
            journal.agent.name,
            journal.agent.workspace,
            ports.clock,
            ports.ids,
            emit,
            f"{journal.session}#{call.n}.{call_id}",
        )

    def _settle(self, ready: Ready, outcome: Done | Ask | None) -> None:
        journal, call_id = self._journal, ready.call.call.id
        match outcome:
            case Done(parts=parts, status=status, changes=changes, outbox=outbox):
                journal.change(changes, outbox)
                journal.record(ToolFinished(ToolResult(call_id, parts, status)))
            case Ask(question=question, choices=choices, wait_s=wait_s):
                until = journal.ports.clock.now() + wait_s
                journal.record(QuestionAsked(journal.ports.ids.new("ask"), call_id, question, choices, until))
            case None:
                reason = "stopped by a person"
                if ready.tool.spec.replay == "never":
                    reason += "; it may or may not have happened"
                journal.record(ToolFinished(_failed(ready.call, "interrupted", reason)))


def _text(status: ResultStatus, text: str) -> Done:
    return Done((Text(clean(text), LOCAL),), status)


def _failed(call: OpenCall, status: ResultStatus, text: str) -> ToolResult:
    return ToolResult(call.call.id, (Text(clean(text), LOCAL),), status)
