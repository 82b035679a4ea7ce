"""The WebSockets of agent_computer and openagent-core: what their frames do here."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import asdict
from starlette.websockets import WebSocket

from ..agent.fold import fold
from ..agent.state import State as Session
from ..models.base import ToolSchema
from ..policy.plan import EXIT_PLAN_MODE
from ..store.queries import count_calls, processes_of, subagents_of, teammates_of
from ..types.door import Progress
from ..types.errors import Refused
from ..types.events import Recorded
from ..types.identity import Answer
from ..types.messages import Usage
from ..types.people import Grant
from ..types.teams import Teammate
from . import dialect_computer, dialect_openagent
from .compat_openagent import files_for
from .conversation_socket import (
    ClientFrame,
    DialectActions,
    run_until_disconnect,
    run_while_valid,
    serve_conversation,
)
from .dialect_openagent import WITH_FILES, Lookups, SubagentWork, notice_of
from .names import format_session_name
from .protocols import Web
from .sockets import Socket
from .tasks import Board, limits_of
from .watch import ActivityLines

MAX_PROCESSES = 50
MAX_SUBAGENTS = 200
"""So many of the latest commands in the background are looked through."""
UNKNOWN_FRAME = "a frame of type {0!r} is not known here; there are: {1}"


class Computer:
    """agent_computer's. It implements `conversation_socket.Dialect`."""

    def __init__(self, web: Web, session: str) -> None:
        self.state = dialect_computer.ComputerDialectState(web.redact)
        self._long = limits_of(web, session)

    def translate(self, item: Recorded | Progress) -> list[dict[str, Any]]:
        return dialect_computer.translate(self.state, item)

    def replay(self, log: list[Recorded]) -> None:
        for recorded in log:
            self.translate(recorded)
        self.state.long = self._long  # of what is past, nobody is told again

    def parse_text(self, text: str) -> ClientFrame:
        raise Refused('a frame is a JSON object with a "type"')

    async def add_details(self, message: dict[str, Any], talk: DialectActions) -> dict[str, Any]:
        return message

    async def handle_frame(self, frame: ClientFrame, talk: DialectActions) -> None:
        match frame.type:
            case "message":
                await talk.say(frame.text("content"))
            case "ping":
                await talk.send({"type": "pong"})
            case "clear":
                await talk.command("start")
            case "set_mode":
                mode = frame.text("mode")
                if mode not in ("bounded", "deep_work"):
                    raise Refused(f"there is no mode {mode!r}; there are: bounded, deep_work")
                await talk.configure(**asdict(dialect_computer.options_of(mode)))
            case "approval_response":
                call = self.state.calls.get(frame.text("tool_call_id"))
                if call is None or not call.ask_id:
                    raise Refused("nothing is asked about this tool_call_id")
                await talk.submit(
                    Answer(call.ask_id, "once" if frame.body.get("approved") is True else "no")
                )
            case "approve_plan" | "revise_plan":
                await self._answer_plan(frame, talk)
            case other:
                known = (
                    "message, set_mode, clear, ping, approval_response, approve_plan, revise_plan"
                )
                raise Refused(UNKNOWN_FRAME.format(other, known))

    async def _answer_plan(self, frame: ClientFrame, talk: DialectActions) -> None:
        """An answer to the plan that is shown, with what is to be heeded or changed."""
        ask_id = next(
            (
                call.ask_id
                for call in self.state.calls.values()
                if call.ask_id and call.tool == EXIT_PLAN_MODE
            ),
            "",
        )
        if not ask_id:
            raise Refused("no plan waits for an answer at the moment")
        feedback = frame.text("feedback")
        if frame.type == "revise_plan":
            if not feedback.strip():
                raise Refused("say what is to change in the plan: send `feedback`")
            await talk.say(
                feedback
            )  # it overtakes the question, so that the model reads it with the refusal
            return
        await talk.submit(Answer(ask_id, "once"))
        if feedback.strip():
            await talk.say(feedback)


class SessionLookups:
    """Implements `dialect_openagent.Lookups` for one session."""

    def __init__(self, web: Web, session: str) -> None:
        self._web = web
        self._session = session
        self._board = Board(web, session)

    def task_update(self, tool: str) -> dict[str, Any]:
        return self._board.openagent_update(tool)

    def process_notice(self, id_: str) -> dict[str, Any] | None:
        for process in processes_of(self._web.store, self._session, MAX_PROCESSES):
            if process.id == id_:
                return notice_of(process, self._web.redact)
        return None

    def team(self) -> list[Teammate]:
        return teammates_of(self._web.store, self._session)

    def subagent_work(self, name: str) -> SubagentWork | None:
        store = self._web.store
        for task in subagents_of(store, self._session, MAX_SUBAGENTS):
            if task.name == name:
                usage = Usage(task.input_tokens, task.output_tokens)
                calls = count_calls(store, task.session, task.at)
                elapsed_s = max(0.0, (task.ended_at or self._web.clock.now()) - task.at)
                return SubagentWork(task.request.kind, usage, calls, elapsed_s)
        return None


class OpenAgent:
    """openagent-core's. It implements `conversation_socket.Dialect`."""

    def __init__(self, web: Web, session: str) -> None:
        agent = session.partition("/")[0]
        self._web = web
        self._agent = agent if agent in web.admin.agents else web.admin.agents[0]
        tools = web.admin.tools(self._agent)
        schemas = tuple(
            ToolSchema(tool.name, tool.description, tool.parameters)
            for tool in tools
            if not tool.deferred
        )
        self.state = dialect_openagent.OpenAgentDialectState(web.redact, schemas)
        self._session = Session(session)
        self._lookups = SessionLookups(web, session)

    def translate(self, item: Recorded | Progress) -> list[dict[str, Any]]:
        return self._translate(item, self._lookups)

    def replay(self, log: list[Recorded]) -> None:
        for recorded in log:
            self._translate(recorded, None)

    def _translate(
        self, item: Recorded | Progress, lookups: Lookups | None
    ) -> list[dict[str, Any]]:
        out = dialect_openagent.translate(self.state, item, lookups)
        if isinstance(item, Recorded):
            self._update_trace(item)
        return out

    async def add_details(self, message: dict[str, Any], talk: DialectActions) -> dict[str, Any]:
        if message["type"] in WITH_FILES:
            return {**message, "files": await files_for(self._web, talk.principal, self._agent)}
        return message

    def _update_trace(self, item: Recorded) -> None:
        """Calls of the model are shown while the conversation is to be traced."""
        if self.state.traced is None:
            fold(self._session, (item,))
        self.state.traced = self._session if self._session.options.tracing else None

    def parse_text(self, text: str) -> ClientFrame:
        """Words that are no frame are a message, and so is a frame without a type."""
        try:
            found = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return ClientFrame("message", {"content": text})
        if not isinstance(found, dict):
            return ClientFrame("message", {"content": text})
        if "type" in found:
            raise Refused("the type of a frame is a text")
        return ClientFrame("message", found)

    async def handle_frame(self, frame: ClientFrame, talk: DialectActions) -> None:
        on = frame.body.get("enabled", False) is True
        match frame.type:
            case "message":
                await talk.say(frame.text("content"))
            case "interrupt":
                await talk.say(frame.text("content"), "interrupt")
            case "cancel":
                await talk.stop()
            case "tool_approval_response":
                await self._decide(frame.text("decision"), talk)
            case "toggle_plan_mode":
                await talk.configure(plan_mode=on)
            case "toggle_teams":
                await talk.configure(teams=on)
            case "toggle_approval":
                await talk.configure(approval=on)
            case "plan_approval":
                await self._answer_plan(frame.text("decision"), frame.text("feedback"), talk)
            case other:
                raise Refused(
                    UNKNOWN_FRAME.format(
                        other, "message, interrupt, cancel, tool_approval_response"
                    )
                )

    async def _answer_plan(self, decision: str, feedback: str, talk: DialectActions) -> None:
        """An answer to the plan that is shown; with a no, what is to be changed."""
        if not any(
            call.ask_id and call.tool == EXIT_PLAN_MODE for call in self.state.calls.values()
        ):
            raise Refused("no plan waits for an answer at the moment")
        yes = decision in ("approve", "approved")
        self.state.feedback = "" if yes else feedback
        await self._decide("approve" if yes else "deny", talk)
        if not yes and feedback.strip():
            await talk.say(feedback)

    async def _decide(self, decision: str, talk: DialectActions) -> None:
        if decision not in ("approve", "deny", "auto_approve"):
            raise Refused(
                f"there is no decision {decision!r}; there are: approve, deny, auto_approve"
            )
        ask_id = next((call.ask_id for call in self.state.calls.values() if call.ask_id), "")
        if not ask_id:
            raise Refused("nothing is asked at the moment")
        if decision == "auto_approve":
            await talk.configure(approval=False)
        await talk.submit(Answer(ask_id, "no" if decision == "deny" else "once"))


async def serve_computer(web: Web, socket: WebSocket, grant: Grant) -> None:
    await serve_conversation(web, socket, grant, Computer)


async def serve_openagent(web: Web, socket: WebSocket, grant: Grant) -> None:
    await serve_conversation(web, socket, grant, OpenAgent, begins=False)


async def serve_activity(web: Web, socket: WebSocket, grant: Grant) -> None:
    """The calls of tools in all conversations of this person, and what came of them."""
    await socket.accept()
    talk, calls = DialectActions(web, socket, grant, ""), ActivityLines(web.redact, web.store)
    who = grant.principal
    agent = web.admin.agents[0]

    async def send_activity() -> None:
        async with aclosing(web.door.watch(who, web.store.last_seq())) as items:
            async for item in items:
                for line in calls.add(item, format_session_name(item.session, who, agent)):
                    await talk.send(line)

    await run_while_valid(web, socket, talk, lambda: run_until_disconnect(socket, send_activity))


SOCKETS = (
    Socket(
        "/ws/activity",
        "read",
        serve_activity,
        "Calls of tools and their results, as agent_computer tells them",
    ),
    Socket("/ws/{name}", "chat", serve_computer, "Talk as agent_computer's clients do"),
    Socket("/api/chat/{name}/ws", "chat", serve_openagent, "Talk as openagent-core's clients do"),
)
