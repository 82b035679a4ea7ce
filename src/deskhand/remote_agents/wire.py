"""What is sent to agents elsewhere, and what they answer, as one kind of run: by A2A
(https://a2a-protocol.org, versions 0.3 and 1.0) and by operator-use's agent server. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urljoin

import msgspec

from ..net.url import parse_url
from ..tools.documents.invisible_characters import escape_invisible
from ..types.errors import AddressRefused, ToolError
from ..types.messages import clean_text
from ..web.a2a_wire import Version

RunState = Literal["working", "waiting", "completed", "failed", "canceled"]
MAX_ID = 500
MAX_SAID = 300
"""Of what it says of itself or of an error, so many characters are repeated."""
_A2A_STATES: Mapping[str, RunState] = {
    "submitted": "working",
    "working": "working",
    "input-required": "waiting",
    "auth-required": "waiting",
    "completed": "completed",
    "failed": "failed",
    "rejected": "failed",
    "canceled": "canceled",
}
_ACP_STATES: Mapping[str, RunState] = {
    "created": "working",
    "in_progress": "working",
    "awaiting": "waiting",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "canceled",
}


class RemoteRun(msgspec.Struct, frozen=True):
    """A task elsewhere. `text` is what the agent has said: the answer, or what it asks. `id` is ''
    where it answered at once."""

    id: str
    session: str
    state: RunState
    text: str = ""
    problem: str = ""

    @property
    def rests(self) -> bool:
        """Nothing more comes by itself."""
        return self.state != "working"


class AgentInterface(msgspec.Struct, frozen=True):
    """Where an agent takes requests of A2A, and in which version."""

    url: str
    version: Version


# A2A


def read_card(card: Any, base: str) -> AgentInterface:
    """The way of JSON-RPC that an agent card names, the newest that we speak. Its address must be
    of the same host as `base`, since the token goes there. Raises ToolError."""
    if not isinstance(card, dict):
        raise ToolError("its agent card is none")
    found: list[AgentInterface] = []
    for each in _objects(card.get("supportedInterfaces")):
        if each.get("protocolBinding") == "JSONRPC":
            version = str(each.get("protocolVersion", "1.0"))
            found += [
                AgentInterface(str(each.get("url", "")), v)
                for v in ("1.0", "0.3")
                if _is(version, v)
            ]
    if not found and card.get("preferredTransport", "JSONRPC") == "JSONRPC":
        found.append(AgentInterface(str(card.get("url") or ""), "0.3"))
    found = [way for way in found if way.url]
    found.sort(key=lambda way: way.version, reverse=True)
    for way in found:
        if url := _same_host(way.url, base):
            return AgentInterface(url, way.version)
    if found:
        raise ToolError("its agent card leads to another host than the settings name")
    raise ToolError("its agent card names no way of JSON-RPC")


def _same_host(url: str, base: str) -> str:
    """The whole address, where it is of the host of `base`; else ''."""
    try:
        wanted, known = parse_url(urljoin(base, url)), parse_url(base)
    except (ValueError, AddressRefused):
        return ""
    return str(wanted) if wanted.origin == known.origin else ""


def quote_remote(text: str) -> str:
    """What somebody else says, on one line: nothing in it looks like a line of ours."""
    return escape_invisible(" ".join(clean_text(text).split()))[:MAX_SAID]


def _is(version: str, wanted: Version) -> bool:
    return version == wanted or version.startswith(f"{wanted}.")


def make_a2a_request(method: str, params: Mapping[str, Any], id_: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})


def make_a2a_message(
    text: str, version: Version, *, message_id: str, session: str, run_id: str
) -> tuple[str, dict[str, Any]]:
    """The method and the params that send a message and do not wait for its answer."""
    message: dict[str, Any] = {"messageId": message_id}
    if run_id:  # the task has its context
        message["taskId"] = run_id
    elif session:
        message["contextId"] = session
    if version == "1.0":
        message |= {"role": "ROLE_USER", "parts": [{"text": text}]}
        return "SendMessage", {"message": message, "configuration": {"returnImmediately": True}}
    message |= {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": text}]}
    return "message/send", {"message": message, "configuration": {"blocking": False}}


def read_a2a_run(answer: Any) -> RemoteRun:
    """The task or the message of an answer. Raises ToolError with the agent's own reason."""
    if not isinstance(answer, dict):
        raise ToolError("it answered something that is no JSON-RPC")
    error = answer.get("error")
    if isinstance(error, dict):
        raise ToolError(f"it refused: {quote_remote(str(error.get('message', 'no reason')))}")
    found = answer.get("result")
    if not isinstance(found, dict):
        raise ToolError("it answered without a result")
    if isinstance(found.get("task"), dict):
        found = found["task"]
    elif isinstance(found.get("message"), dict) and "status" not in found:
        found = found["message"]
    if "status" not in found:
        return RemoteRun("", _id(found, "contextId"), "completed", _join(found.get("parts")))
    return _read_task(found)


def _read_task(task: Mapping[str, Any]) -> RemoteRun:
    status = task.get("status")
    status = status if isinstance(status, dict) else {}
    name = str(status.get("state", "")).removeprefix("TASK_STATE_").lower().replace("_", "-")
    state = _A2A_STATES.get(name)
    if state is None:
        raise ToolError(f"it is in a state that nobody knows: {quote_remote(name)[:50]}")
    message = status.get("message")
    said = _join(message.get("parts")) if isinstance(message, dict) else ""
    texts = [_join(each.get("parts")) for each in _objects(task.get("artifacts"))]
    text = "\n\n".join(each for each in texts if each)
    if state in ("failed", "canceled"):
        return RemoteRun(_id(task, "id"), _id(task, "contextId"), state, text, quote_remote(said))
    whole = "\n\n".join(each for each in (text, said) if each)
    return RemoteRun(_id(task, "id"), _id(task, "contextId"), state, whole)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _join(parts: Any) -> str:
    """The texts of parts, in both versions; data as JSON, and of a file what it is called."""
    found = []
    for part in _objects(parts):
        file = part["file"] if isinstance(part.get("file"), dict) else part
        name = file.get("name") or file.get("filename") or file.get("uri") or file.get("url")
        if isinstance(part.get("text"), str):
            found.append(part["text"])
        elif "data" in part:
            found.append(msgspec.json.encode(part["data"]).decode())
        elif isinstance(name, str):
            found.append(f"[file: {name}]")
    return "\n".join(found)


def _id(given: Mapping[str, Any], key: str) -> str:
    """An id that somebody else has made. Raises ToolError for one that is none."""
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_ID or not value.isprintable():
        raise ToolError(f"its {key} is none")
    return value


# operator-use's agent server


def make_acp_run(text: str, *, agent_id: str, session: str) -> bytes:
    """The body of `POST /runs`, which is not waited for."""
    return msgspec.json.encode(
        {
            "agent_id": agent_id or "operator",
            "session_id": session or None,
            "mode": "async",
            "input": [{"type": "text", "text": text}],
        }
    )


def read_acp_run(answer: Any) -> RemoteRun:
    """Raises ToolError."""
    state = _ACP_STATES.get(str(answer.get("status"))) if isinstance(answer, dict) else None
    if state is None or not isinstance(answer, dict):
        raise ToolError("it answered something that is no run")
    parts = _objects(answer.get("output"))
    text = "\n\n".join(each["text"] for each in parts if isinstance(each.get("text"), str))
    problem = quote_remote(str(answer.get("error") or ""))
    return RemoteRun(_id(answer, "id"), _id(answer, "session_id"), state, text, problem)
