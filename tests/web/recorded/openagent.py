"""What is asked of openagent-core's server and of ours: the same requests, conversations and
replies of the model.

The steps are those of `compare.py`, and three more: `model` says what the model replies from now
on, `workspace` puts files of every kind into the workspace, `files` are sent as multipart/form-data
(name, bytes).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp

from .compare import shape_of
from .play import SENT, Player

Step = dict[str, Any]

LITERALS = ("type", "role", "status", "decision", "language")
MORE = ("model", "workspace", "files")
UNKNOWN = "0123456789ab"
IN_PIECES = ("text_delta", "thinking_delta")
"""Events of which there are as many as the text has pieces: a row of them counts as one."""
OPAQUE = ("input", "input_schema", "metadata")
"""Keys below which stands what a tool takes: that differs with the tool."""


def ask(method: str, path: str, **more: Any) -> Step:
    return {"http": method, "path": path, **more}


def begin(flags: Any) -> Step:
    return ask("POST", "/api/chat", json=flags, keep={"conversation": "conversation_id"})


def uploads(path: str, *files: tuple[str, int]) -> Step:
    return ask("POST", path, files=files)


def reply(text: str = "", *calls: tuple[str, dict[str, Any]], **more: Any) -> Step:
    """What the model says once: `slow` so slowly that it can be interrupted; `fails` refuses
    instead."""
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"text": text, "calls": made, **more}


def message(text: Any, until: str = "done") -> Step:
    return {"send": {"type": "message", "content": text}, "until": until}


def send(frame: Any, until: str = "done") -> Step:
    return {"send": frame, "until": until}


def decide(decision: str) -> Step:
    return send({"type": "tool_approval_response", "decision": decision})


def talk(flags: dict[str, Any], replies: Iterable[Step], *steps: Step) -> list[Step]:
    """A conversation that begins with these flags, over its WebSocket."""
    return [begin(flags), {"model": list(replies)}, {"open": "/api/chat/{conversation}/ws"}, *steps]


DONE = reply("That is all.")
READ_CALL = ("read_file", {"path": "a.txt"})
READ = reply("", READ_CALL)
RUN = reply("", ("bash", {"command": "echo hi"}))
WAIT = reply("", ("bash", {"command": "sleep 3"}))
BESIDE = reply("", ("background_run", {"command": "echo beside"}))
TODO = reply(
    "",
    ("todo_write", {"items": [{"content": "read", "activeForm": "Reading", "status": "pending"}]}),
)
TASK = reply("", ("task_create", {"subject": "read", "description": "a file"}))
PLAN = reply("", ("exit_plan_mode", {"plan": "1. read"}))
LONG = reply("on and on " * 40, slow=True)
ALL_FLAGS = {
    "system_prompt": "Be brief.",
    "preset": "coding",
    "enable_teams": True,
    "enable_tracing": True,
    "enable_approval": True,
    "enable_plan_mode": True,
    "enable_thinking": True,
    "thinking_effort": "high",
}
TRACED = {"enable_tracing": True}
ASKED = {"enable_approval": True}
PLANNED = {"enable_plan_mode": True}
ONE = "/api/conversations/{conversation}"
SKILL = {"name": "my-skill", "description": "Use it for reading", "body": "# Reading\n\nRead it."}

CASES: dict[str, list[Step]] = {
    "health": [ask("GET", "/health")],
    "nothing there": [
        ask("GET", "/api/conversations"),
        ask("GET", "/api/workspace/files"),
    ],
    "sign-in": [ask("GET", "/api/auth/config")],
    "who one is": [ask("GET", "/api/auth/me")],
    "tools": [ask("GET", "/api/tools")],
    "presets": [ask("GET", "/api/presets")],
    "begin": [begin({})],
    "begin without a body": [ask("POST", "/api/chat")],
    "begin with no JSON": [ask("POST", "/api/chat", text="{no json")],
    "begin with a list": [ask("POST", "/api/chat", json=[])],
    "begin with null": [ask("POST", "/api/chat", text="null")],
    "begin with a word for a flag": [ask("POST", "/api/chat", json={"enable_teams": "perhaps"})],
    "begin with a number for a text": [ask("POST", "/api/chat", json={"system_prompt": 5})],
    "begin with a list for a text": [ask("POST", "/api/chat", json={"preset": ["coding"]})],
    "begin with null for a flag": [ask("POST", "/api/chat", json={"enable_approval": None})],
    "begin with null for the thinking": [ask("POST", "/api/chat", json={"enable_thinking": None})],
    "begin with two faults": [ask("POST", "/api/chat", json={"enable_tracing": [], "preset": 1})],
    "begin with an unknown key": [ask("POST", "/api/chat", json={"colour": "red"})],
    "begin with the effort xhigh": [ask("POST", "/api/chat", json={"thinking_effort": "xhigh"})],
    "begin with an effort that is none": [
        ask("POST", "/api/chat", json={"thinking_effort": "enormous"})
    ],
    "a conversation with all flags": [begin(ALL_FLAGS), ask("GET", ONE)],
    "a conversation without a message": [
        begin({"preset": "coding"}),
        ask("GET", ONE),
        ask("GET", "/api/conversations"),
    ],
    "a conversation": [
        {"workspace": True},
        *talk({}, (READ, DONE), message("read it")),
        ask("GET", ONE),
        ask("GET", "/api/conversations"),
    ],
    "an unknown conversation": [
        ask("GET", f"/api/conversations/{UNKNOWN}"),
        ask("DELETE", f"/api/conversations/{UNKNOWN}"),
    ],
    "a conversation is deleted": [
        begin({}),
        ask("DELETE", ONE),
        ask("GET", ONE),
        ask("DELETE", ONE),
    ],
    "a file to keep": [begin({}), ask("GET", "/api/files/{conversation}/a.txt")],
    "an unknown file to keep": [ask("GET", "/api/files/{conversation}/none.txt")],
    "a hidden file to keep": [ask("GET", "/api/files/{conversation}/.agent/x.txt")],
    "a file outside to keep": [ask("GET", "/api/files/{conversation}/%2e%2e%2fagent.db")],
    "a file of an unknown conversation": [ask("GET", f"/api/files/{UNKNOWN}/a.txt")],
    "a skill": [ask("POST", "/api/skills", json=SKILL), ask("GET", "/api/skills")],
    "a skill without a body": [ask("POST", "/api/skills", json={"name": "x", "description": "y"})],
    "a skill without anything": [ask("POST", "/api/skills", json={})],
    "a skill with a number for a name": [ask("POST", "/api/skills", json={**SKILL, "name": 5})],
    "a skill with no JSON": [ask("POST", "/api/skills", text="# Reading")],
    "files": [ask("GET", "/api/workspace/files")],
    "a text file": [ask("GET", "/api/workspace/file/a.txt")],
    "a Python file": [ask("GET", "/api/workspace/file/sub/b.py")],
    "a file of no known kind": [ask("GET", "/api/workspace/file/c.unknown")],
    "a binary file": [ask("GET", "/api/workspace/file/d.bin")],
    "a picture": [ask("GET", "/api/workspace/file/e.png")],
    "a long file": [ask("GET", "/api/workspace/file/long.txt")],
    "an unknown file": [ask("GET", "/api/workspace/file/none.txt")],
    "a folder as a file": [ask("GET", "/api/workspace/file/sub")],
    "a hidden file": [ask("GET", "/api/workspace/file/.agent/x.txt")],
    "a file outside": [ask("GET", "/api/workspace/file/%2e%2e%2fagent.db")],
    "one upload": [uploads("/api/workspace/upload", ("up.txt", 5))],
    "two uploads": [uploads("/api/workspace/upload", ("up1.txt", 5), ("up2.txt", 0))],
    "an upload into a folder": [uploads("/api/workspace/upload?subdir=in/to", ("f.txt", 1))],
    "an upload of nothing": [ask("POST", "/api/workspace/upload")],
    "an upload of JSON": [ask("POST", "/api/workspace/upload", json={"files": []})],
    "an upload that is too large": [uploads("/api/workspace/upload", ("big.bin", 10_500_000))],
    "an upload outside": [uploads("/api/workspace/upload?subdir=..", ("f.txt", 1))],
    "an upload into a hidden folder": [
        uploads("/api/workspace/upload?subdir=.agent", ("f.txt", 1))
    ],
    "an upload with a hidden name": [uploads("/api/workspace/upload", (".env", 1))],
    "an unknown address": [ask("GET", "/api/nothing")],
    "another method": [ask("PUT", "/api/conversations")],
    "a message": talk({}, (DONE,), message("hello")),
    "text that is no JSON": talk({}, (DONE,), send("just words")),
    "two turns": talk({}, (DONE, DONE), message("hello"), message("again")),
    "a tool": talk({}, (READ, DONE), message("read it")),
    "two tools at once": talk(
        {}, (reply("", READ_CALL, ("read_file", {"path": "sub/b.py"})), DONE), message("read both")
    ),
    "a tool that fails": talk(
        {}, (reply("", ("read_file", {"path": "none"})), DONE), message("read it")
    ),
    "an unknown tool": talk({}, (reply("", ("no_such_tool", {})), DONE), message("do it")),
    "a file is written": talk(
        {},
        (reply("", ("write_file", {"path": "new.txt", "content": "new"})), DONE),
        message("write it"),
    ),
    "a traced turn": talk(TRACED, (DONE,), message("hello")),
    "a traced tool": talk(TRACED, (READ, DONE), message("read it")),
    "approved": talk(
        ASKED, (RUN, DONE), message("run it", "tool_approval_request"), decide("approve")
    ),
    "denied": talk(
        ASKED,
        (reply("", ("write_file", {"path": "denied.txt", "content": "x"})), DONE),
        message("write it", "tool_approval_request"),
        decide("deny"),
    ),
    "approved from now on": talk(
        ASKED, (RUN, RUN, DONE), message("run it", "tool_approval_request"), decide("auto_approve")
    ),
    "a safe tool": talk(ASKED, (READ, DONE), message("read it")),
    "cancelled while it asks": talk(
        ASKED, (RUN, DONE), message("run it", "tool_approval_request"), send({"type": "cancel"})
    ),
    "a command in the background": talk({}, (BESIDE, WAIT, DONE), message("run it beside")),
    "a list of things to do": talk({}, (TODO, DONE), message("plan it")),
    "a task": talk({}, (TASK, DONE), message("plan it")),
    "tasks are listed": talk({}, (TASK, reply("", ("task_list", {})), DONE), message("list")),
    "skills are listed": talk({}, (reply("", ("list_skills", {})), DONE), message("list")),
    "summed up": talk({}, (reply("", ("compact", {})), DONE, DONE), message("sum up")),
    "interrupted": talk(
        {},
        (LONG, DONE),
        message("go", "text_delta"),
        send({"type": "interrupt", "content": "stop that"}),
    ),
    "cancelled": talk({}, (LONG,), message("go", "text_delta"), send({"type": "cancel"})),
    "plan mode on": talk(
        {}, (), send({"type": "toggle_plan_mode", "enabled": True}, "plan_mode_changed")
    ),
    "plan mode without a value": talk(
        {}, (), send({"type": "toggle_plan_mode"}, "plan_mode_changed")
    ),
    "teams on": talk({}, (), send({"type": "toggle_teams", "enabled": True}, "teams_changed")),
    "approval on": talk(
        {}, (), send({"type": "toggle_approval", "enabled": True}, "approval_changed")
    ),
    "a plan is approved": talk(
        PLANNED,
        (PLAN, DONE),
        message("tidy up"),
        send({"type": "plan_approval", "decision": "approve"}),
    ),
    "a plan is rejected": talk(
        PLANNED,
        (PLAN, PLAN),
        message("tidy up"),
        send({"type": "plan_approval", "decision": "reject", "feedback": "shorter"}),
    ),
    "the agent plans": talk({}, (reply("", ("enter_plan_mode", {})), PLAN), message("tidy up")),
    "an empty message": talk({}, (), message("", "error")),
    "a message without content": talk({}, (), send({"type": "message"}, "error")),
    "a frame of no known type": talk({}, (), send({"type": "dance"}, "error")),
    "a frame that is a list": talk({}, (DONE,), send("[]", "error|done")),
    "content that is a number": talk({}, (DONE,), message(5, "error|done")),
    "a WebSocket of an unknown conversation": [
        {"open": f"/api/chat/{UNKNOWN}/ws"},
        {"send": None, "until": "closed"},
    ],
    "the model refuses": talk({}, (reply(fails=True),), message("hello")),
    "a sub-agent": talk(
        {},
        (
            reply("", ("task", {"description": "read", "prompt": "read", "agent_type": "explore"})),
            DONE,
            DONE,
        ),
        message("have it done"),
    ),
    "a teammate": talk(
        {"enable_teams": True},
        (
            reply("", ("spawn_teammate", {"name": "bo", "role": "reader", "prompt": "read"})),
            DONE,
            DONE,
        ),
        message("have it done"),
    ),
    "it thinks": [
        {"workspace": True},
        *talk(
            {"enable_thinking": True},
            (reply("That is all.", thinking="Let me see."),),
            message("hello"),
        ),
    ],
}
THINKING = ("it thinks",)
"""Cases that need a model which shows its thinking: openagent-core has that of Anthropic's wire
alone."""


def prepare_workspace(folder: Path) -> None:
    """Files of every kind."""
    (folder / "sub").mkdir(parents=True, exist_ok=True)
    (folder / ".agent").mkdir(exist_ok=True)
    (folder / ".agent" / "x.txt").write_text("hidden\n")
    (folder / "a.txt").write_text("hello\n")
    (folder / "sub" / "b.py").write_text("print()\n")
    (folder / "c.unknown").write_text("what\n")
    (folder / "d.bin").write_bytes(b"\0\1\2")
    (folder / "e.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (folder / "long.txt").write_text("0123456789" * 12_000)


Script = Callable[[list[Step]], None]
"""Has the model say these replies from now on, each once."""


class OpenAgentPlayer(Player):
    """A player that also knows the three steps of this module."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        url: str,
        headers: Mapping[str, str],
        script: Script,
        workspace: Path,
    ) -> None:
        super().__init__(http, url, headers, LITERALS)
        self._script = script
        self._workspace = workspace
        self._last = ""

    async def play(self, steps: Iterable[Step]) -> list[Step]:
        found: list[Step] = []
        self._last = ""
        try:
            for step in steps:
                sent = {key: step[key] for key in (*SENT, *MORE) if key in step}
                if "model" in step:
                    self._script(step["model"])
                    found.append(sent)
                elif "workspace" in step:
                    prepare_workspace(self._workspace)
                    found.append(sent)
                else:
                    found.append({**sent, **await self._played(self._filled(sent))})
        finally:
            await self.close()
        return found

    async def close(self) -> None:
        """Leave all conversations."""
        for socket in self._sockets.values():
            await socket.close()
        self._sockets.clear()
        self._socket = None

    async def _played(self, step: Step) -> Step:
        return await self._upload(step) if "files" in step else await self._one(step)

    async def _upload(self, step: Step) -> Step:
        form = aiohttp.FormData(quote_fields=False)
        for name, size in step["files"]:
            form.add_field("files", BytesIO(b"x" * size), filename=name)
        async with self._http.post(
            self._url + step["path"], data=form, headers=self._headers
        ) as answer:
            body = json.loads(await answer.text())
        return {"status": answer.status, "body": shape_of(body, LITERALS)}

    async def _receive(
        self, socket: aiohttp.ClientWebSocketResponse, last: Sequence[str], events: list[Any]
    ) -> None:
        """A row of pieces is one event, and what a tool takes is left out."""
        await super()._receive(socket, last, events)
        found: list[Any] = []
        for event in events:
            kind = event["type"]
            if not (kind in IN_PIECES and kind == self._last):
                found.append(bare(event))
            self._last = kind
        events[:] = found


def bare(value: Any) -> Any:
    """Without what is below an opaque key."""
    if isinstance(value, list):
        return [bare(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {} if key in OPAQUE and isinstance(each, dict) else bare(each)
        for key, each in value.items()
    }
