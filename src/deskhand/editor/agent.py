"""An agent of Deskhand as editors know one, by the Agent Client Protocol
(https://agentclientprotocol.com): the official SDK speaks it, over standard input and output."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from contextlib import aclosing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import acp
import anyio
import msgspec
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    ClientCapabilities,
    CloseSessionResponse,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptCapabilities,
    PromptResponse,
    ResourceContentBlock,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    StopReason,
    TextContentBlock,
    TextResourceContents,
)

from ..models.pictures import detect_media_type
from ..runtime.app import App
from ..runtime.folder_grants import allow_folder
from ..store.queries import PathGrant
from ..tools.aliases import TOOL_ALIASES
from ..tools.queries import load_tasks, read_file_marks
from ..types.diffs import CallDiff
from ..types.errors import DeskhandError
from ..types.events import (
    ApprovalAsked,
    CommandRun,
    ModelReplied,
    QuestionAsked,
    Recorded,
    ToolFinished,
    TurnEnded,
)
from ..types.identity import Address, Answer, Body, Inbound, Principal, Said, session_key
from ..types.labels import OWNER, Label
from ..types.messages import Image, Message, Part, Text
from .file_server import EditorFileServer, OpenFolder
from .updates import APPROVALS, Updates, make_plan

CHANNEL = "terminal"
EDIT_TOOLS = ("write_file", "edit_file")
PLAN_TOOLS = ("manage_tasks", "task_create", "task_update", "todo_write", "todo_complete")
MAX_LISTED = 50
FOLDER_OPTIONS = (
    PermissionOption(option_id="write", name="Read and change files there", kind="allow_always"),
    PermissionOption(option_id="read", name="Only read files there", kind="allow_once"),
    PermissionOption(option_id="no", name="Not this folder", kind="reject_once"),
)
_REASONS: dict[str, StopReason] = {
    "stopped": "cancelled",
    "steps": "max_turn_requests",
    "tokens": "max_tokens",
}


class EditorSession(msgspec.Struct):
    """A conversation that an editor has open. `key` is its session; `wants_folder` until the person
    was asked for the folder `cwd`. `question` is one that waits for words."""

    name: str
    key: str
    cwd: str
    wants_folder: bool = True
    has_told_folder: bool = False
    question: str = ""


class EditorAgent:
    """Implements `acp.Agent` for one agent of a Deskhand. The person is its owner."""

    def __init__(self, app: App, agent: str, owner: Principal) -> None:
        self._app = app
        self._agent = agent
        self._owner = owner
        self._sessions: dict[str, EditorSession] = {}
        self._client: Any = None
        self.files = EditorFileServer(app.settings.home)

    def on_connect(self, conn: Any) -> None:
        """Called by the SDK with what speaks to the editor."""
        self._client = conn
        self.files.set_client(conn)

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        **_: Any,
    ) -> InitializeResponse:
        self.files.set_capabilities(client_capabilities)
        return InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_info=Implementation(
                name="deskhand", title="Deskhand", version=version("deskhand")
            ),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
        )

    # Sessions

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        name = self._app.parts.ids.new("editor")
        await self._open(name, cwd)
        return NewSessionResponse(session_id=name)

    async def _open(self, name: str, cwd: str) -> EditorSession:
        key = session_key(self._agent, Address(CHANNEL, chat=name))
        opened = EditorSession(name, key, cwd, wants_folder=not await self._reaches(cwd))
        self._sessions[name] = opened
        folder = await anyio.Path(cwd.replace("\0", "")).resolve()
        await self.files.open(OpenFolder(name, key, str(folder)))
        return opened

    async def _reaches(self, cwd: str) -> bool:
        """Whether the agent may write in this folder, and so need not ask."""
        scope = await self._app.current.agent(self._agent).workspace.open_scope()
        folder = Path(cwd)
        return any(write and folder.is_relative_to(root) for root, _, write in scope.files.roots)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        opened = await self._open(session_id, cwd)
        updates = Updates(self._folder)
        events = await self._app.store.events(opened.key)
        if not events:
            raise acp.RequestError.invalid_params({"sessionId": "there is no such conversation"})
        for recorded in events:
            for update in updates.of_earlier(recorded):
                await self._client.session_update(session_id, update)
        await self._send_plan(opened)
        return LoadSessionResponse()

    async def list_sessions(self, **_: Any) -> ListSessionsResponse:
        """Those of this agent from terminals and editors, the latest first."""
        rows = await self._app.store.sessions(self._owner, MAX_LISTED)
        return ListSessionsResponse(
            sessions=[
                SessionInfo(session_id=row.chat, cwd=self._folder, title=row.title)
                for row in rows
                if row.agent == self._agent and row.channel == CHANNEL
            ]
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        self._sessions.pop(session_id, None)
        self.files.close(session_id)
        return CloseSessionResponse()

    @property
    def _folder(self) -> str:
        return str(self._app.settings.home.workspace(self._agent))

    # Turns

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        opened = self._sessions.get(session_id)
        if opened is None:
            opened = await self._open(session_id, self._folder)
        if opened.wants_folder:
            await self._ask_for_folder(opened)
        body = await self._make_body(opened, prompt)
        receipt = await self._app.door.submit(self._inbound(opened, body))
        if receipt.status == "refused":
            await self._say(opened, receipt.reason)
            return PromptResponse(stop_reason="refusal")
        reason = await self._follow(opened, receipt.after, receipt.inbox_id)
        return PromptResponse(stop_reason=reason)

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._sessions:
            self.files.stop(session_id)
            await self._app.door.stop(self._sessions[session_id].key, self._owner)

    def _inbound(self, opened: EditorSession, body: Body) -> Inbound:
        parts = self._app.parts
        address = Address(CHANNEL, chat=opened.name)
        made = parts.ids.new("editor")
        return Inbound(made, address, self._owner.id, parts.clock.now(), body, opened.key)

    async def _make_body(self, opened: EditorSession, prompt: Sequence[Any]) -> Body:
        parts: list[Part] = []
        if not opened.has_told_folder:
            opened.has_told_folder = True
            parts.append(Text(f"[The editor has this folder open: {opened.cwd}]"))
        for block in prompt:
            parts += await self._read_block(block)
        if opened.question:
            ask_id, opened.question = opened.question, ""
            return Answer(ask_id, Message("user", tuple(parts)).text)
        words = [part for part in parts if isinstance(part, Text)]
        own = "\n".join(part.text for part in words if not part.label.source)
        others = [part for part in parts if not isinstance(part, Text) or part.label.source]
        return Said(Message("user", (Text(own), *others)))

    async def _read_block(self, block: Any) -> list[Part]:
        match block:
            case TextContentBlock(text=text):
                return [Text(text)]
            case ResourceContentBlock(uri=uri):
                return [Text(f"[file: {uri.removeprefix('file://')}]")]
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                path = uri.removeprefix("file://")
                return [Text(f"[file: {path}]\n{text}", await self._label_of(path))]
            case ImageContentBlock(data=data):
                return await self._read_image(data)
            case _:
                return [Text("[something that cannot be read here]")]

    async def _label_of(self, path: str) -> Label:
        """What is known of a file that the editor gives with its text: else it is the person's."""
        real = str(await anyio.Path(path).resolve()) if path.startswith("/") else path
        stored = read_file_marks(self._app.store).labels.get(real)
        return msgspec.json.decode(stored, type=Label) if stored is not None else OWNER

    async def _read_image(self, data: str) -> list[Part]:
        try:
            content = base64.b64decode(data, validate=True)
        except (ValueError, binascii.Error):
            content = b""
        kind = detect_media_type(content)
        if not kind:
            return [Text("[a picture that cannot be read]")]
        blob = await self._app.blobs.put(content)
        return [Image(blob, kind, f"picture.{kind.removeprefix('image/')}")]

    async def _follow(self, opened: EditorSession, after: int, inbox_id: int) -> StopReason:
        """Tell the editor what happens, until the message with this id was answered."""
        updates = Updates(self._folder)
        edits: dict[str, int] = {}
        plans: set[str] = set()
        async with aclosing(self._app.door.follow(opened.key, self._owner, after)) as items:
            async for item in items:
                event = item.event if isinstance(item, Recorded) else None
                diff = None
                match event:
                    case ModelReplied(message=message):
                        names = {c.id: TOOL_ALIASES.get(c.name, c.name) for c in message.calls}
                        edits = {id_: item.n for id_ in names if names[id_] in EDIT_TOOLS}
                        plans = {id_ for id_ in names if names[id_] in PLAN_TOOLS}
                    case ToolFinished(result=result) if result.call_id in edits:
                        diff = await self._find_diff(opened, edits[result.call_id], result.call_id)
                    case _:
                        pass
                for update in updates.of(item, diff):
                    await self._client.session_update(opened.name, update)
                match event:
                    case ToolFinished(result=result) if result.call_id in plans:
                        await self._send_plan(opened)
                    case ApprovalAsked() | QuestionAsked():
                        await self._ask(opened, updates, event)
                        if opened.question:
                            return "end_turn"
                    case TurnEnded(reason=reason, answers=answers) if inbox_id in answers:
                        if event.is_unanswered or event.note:
                            await self._say(opened, event.said or event.note)
                        return _REASONS.get(reason, "end_turn")
                    case CommandRun(inbox_id=answered, reply=reply) if answered == inbox_id:
                        await self._say(opened, reply)
                        return "end_turn"
                    case _:
                        pass
        return "end_turn"

    async def _find_diff(self, opened: EditorSession, n: int, call_id: str) -> CallDiff | None:
        try:
            found = await self._app.diffs.diff_call(self._owner, opened.key, n, call_id)
        except DeskhandError:
            return None
        return found if found.files else None

    async def _say(self, opened: EditorSession, text: str) -> None:
        if text:
            await self._client.session_update(opened.name, acp.update_agent_message_text(text))

    async def _send_plan(self, opened: EditorSession) -> None:
        tasks = await load_tasks(self._app.store, opened.key)
        if tasks:
            await self._client.session_update(opened.name, make_plan(tasks))

    # What a person is asked

    async def _ask(
        self, opened: EditorSession, updates: Updates, event: ApprovalAsked | QuestionAsked
    ) -> None:
        """Have the person answer. A question for words is answered by the next message."""
        options = list(APPROVALS)
        if isinstance(event, QuestionAsked):
            if not event.choices:
                await self._say(opened, event.question)
                opened.question = event.ask_id
                return
            options = [
                PermissionOption(option_id=each, name=each, kind="allow_once")
                for each in event.choices
            ]
        call_id = updates.id_of(event.call_id)
        choice = await self._request(opened, call_id, event.question, options)
        if not choice:
            await self._app.door.stop(opened.key, self._owner)
            return
        await self._app.door.submit(self._inbound(opened, Answer(event.ask_id, choice)))

    async def _request(
        self, opened: EditorSession, call_id: str, title: str, options: list[PermissionOption]
    ) -> str:
        """The option that the person has chosen, '' where they have not."""
        shown = acp.update_tool_call(call_id, title=title)
        answer = await self._client.request_permission(
            session_id=opened.name, tool_call=shown, options=options
        )
        outcome = answer.outcome
        return outcome.option_id if isinstance(outcome, AllowedOutcome) else ""

    async def _ask_for_folder(self, opened: EditorSession) -> None:
        """Let the agent work in the editor's folder, as `deskhand allow path` does, where the
        person says so. Asked once for each session."""
        opened.wants_folder = False
        folder = await anyio.Path(opened.cwd.replace("\0", "")).resolve()
        is_protected = self._app.settings.home.is_protected(Path(folder), True)
        if not await folder.is_dir() or is_protected:
            return
        title = f"May {self._agent} work in {folder}?"
        started = acp.start_tool_call("folder", title, kind="other", status="pending")
        await self._client.session_update(opened.name, started)
        choice = await self._request(opened, "folder", title, list(FOLDER_OPTIONS))
        is_allowed = choice in ("write", "read")
        if is_allowed:
            now = self._app.parts.clock.now()
            grant = PathGrant(str(folder), choice == "write", now, self._owner.id, False)
            await self._app.store.change(allow_folder(self._agent, grant))
        done = acp.update_tool_call("folder", status="completed" if is_allowed else "failed")
        await self._client.session_update(opened.name, done)


async def serve_editor(app: App, agent: str, owner: Principal) -> None:
    """Speak with the editor over standard input and output, until it has gone."""
    served = EditorAgent(app, agent, owner)
    async with anyio.create_task_group() as tasks:
        await tasks.start(served.files.run)
        await acp.run_agent(served)  # type: ignore[arg-type]
        tasks.cancel_scope.cancel()
