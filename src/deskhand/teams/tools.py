"""Tools with which a conversation leads a team, and teammates work in one."""

from __future__ import annotations

from typing import Literal

from ..tools.base import Context, Done, Tool
from ..tools.define import FunctionTool, tool
from .calls import TeamCalls

MessageType = Literal["message", "shutdown_response", "plan_approval_request"]


def make_team_tools(calls: TeamCalls) -> tuple[Tool, ...]:
    """The tools of teams; none where the settings allow no teammates."""
    if not calls.most_teammates:
        return ()
    return tuple(each.with_mode("teams") for each in (*_lead_tools(calls), *_common_tools(calls)))


def _lead_tools(calls: TeamCalls) -> tuple[FunctionTool, ...]:
    @tool(replay="commit")
    async def spawn_teammate(
        name: str,
        role: str,
        prompt: str,
        context: Context,
        agent: str = "",
        plan_first: bool = False,
    ) -> Done:
        """Take a teammate into the team, and have it begin. It works beside you, hears from you
        and the others, and takes tasks that nobody has from the task list.

        role: what it is for, in a few words
        prompt: what it is to do now, with all that it needs
        agent: another agent by name
        plan_first: it shows you a plan before it changes anything
        """
        return await calls.spawn(
            name, role, prompt, agent=agent, plan_first=plan_first, context=context
        )

    @tool(replay="commit")
    async def shutdown_request(teammate: str, context: Context, reason: str = "") -> Done:
        """Ask a teammate to shut down. It answers, and may say no."""
        return await calls.ask_to_shut_down(teammate, reason, context)

    @tool(replay="commit")
    async def plan_review(
        request_id: str, approve: bool, context: Context, feedback: str = ""
    ) -> Done:
        """Say yes or no to the plan of a teammate."""
        return await calls.review_plan(request_id, approve, feedback, context)

    return spawn_teammate, shutdown_request, plan_review


def _common_tools(calls: TeamCalls) -> tuple[FunctionTool, ...]:
    @tool(replay="commit")
    async def message_teammate(
        to: str,
        content: str,
        context: Context,
        msg_type: MessageType = "message",
        request_id: str = "",
        approve: bool | None = None,
    ) -> Done:
        """Write to a teammate, to `lead`, or to `all`. It is read at once, or begins a turn there.

        msg_type: plan_approval_request shows the lead your plan; shutdown_response answers whether
            you shut down, with request_id and approve
        """
        if msg_type == "shutdown_response":
            return await calls.answer_shutdown(request_id, approve, content, context)
        if msg_type == "plan_approval_request":
            return await calls.show_plan(content, context)
        return await calls.write(to, content, context)

    @tool
    async def read_inbox(context: Context) -> Done:
        """What was written to you last. It has come as messages, too."""
        return await calls.read_inbox(context)

    @tool
    async def list_teammates(context: Context) -> Done:
        """Who is in the team, and what each does."""
        return await calls.list_team(context)

    @tool(replay="commit")
    async def broadcast(content: str, context: Context) -> Done:
        """Write to everybody in the team."""
        return await calls.write("all", content, context)

    @tool
    async def check_protocol(request_id: str, context: Context) -> Done:
        """How a request stands: to shut down, or of a plan."""
        return await calls.check_request(request_id, context)

    return message_teammate, read_inbox, list_teammates, broadcast, check_protocol


@tool
async def idle(context: Context, summary: str = "") -> Done:
    """End your turn, as there is nothing to do. A message or a task of the list wakes you.

    summary: what the lead is to know
    """
    return TeamCalls.go_idle(summary, context)


FOR_TEAMMATES: dict[str, Tool] = {idle.spec.name: idle}
"""What a teammate has beside the tools of its agent."""
