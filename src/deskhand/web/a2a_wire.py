"""The Agent2Agent protocol (https://a2a-protocol.org) in its versions 0.3 and 1.0, as JSON-RPC has
it: what is read from requests, and runs as its tasks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from .agent_runs import Run, RunState, decode_file

Version = Literal["0.3", "1.0"]
METHODS: Mapping[str, tuple[Version, str]] = {
    "message/send": ("0.3", "send"),
    "message/stream": ("0.3", "stream"),
    "tasks/get": ("0.3", "get"),
    "tasks/cancel": ("0.3", "cancel"),
    "tasks/resubscribe": ("0.3", "subscribe"),
    "SendMessage": ("1.0", "send"),
    "SendStreamingMessage": ("1.0", "stream"),
    "GetTask": ("1.0", "get"),
    "CancelTask": ("1.0", "cancel"),
    "SubscribeToTask": ("1.0", "subscribe"),
}
PUSH_METHODS = ("tasks/pushNotificationConfig/", "PushNotificationConfig")
ARTIFACT = "answer"
CARD_PATH = "/.well-known/agent-card.json"
MAX_PARTS = 50
NO_JSON = -32700
NO_REQUEST = -32600
NO_METHOD = -32601
BAD_PARAMS = -32602
INTERNAL = -32603
NO_TASK = -32001
NOT_CANCELABLE = -32002
NO_PUSH = -32003
UNSUPPORTED = -32004
BAD_VERSION = -32009
REASONS = {
    NO_TASK: "TASK_NOT_FOUND",
    NOT_CANCELABLE: "TASK_NOT_CANCELABLE",
    NO_PUSH: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    UNSUPPORTED: "UNSUPPORTED_OPERATION",
    BAD_VERSION: "VERSION_NOT_SUPPORTED",
}
_STATES: dict[RunState, str] = {
    "submitted": "submitted",
    "working": "working",
    "waiting": "input-required",
    "completed": "completed",
    "failed": "failed",
    "canceled": "canceled",
}


class WireError(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class RpcRequest(msgspec.Struct, frozen=True):
    """`is_answered`: whoever asked waits for an answer."""

    method: str
    params: dict[str, Any]
    id: str | int | float | None
    is_answered: bool = True


class AttachedFile(msgspec.Struct, frozen=True):
    data: bytes
    name: str
    mime: str


class SentMessage(msgspec.Struct, frozen=True):
    """A message to an agent. `waits`: the request is to be answered when the task rests."""

    parts: list[str | AttachedFile]
    message_id: str
    context_id: str
    task_id: str
    waits: bool


def read_request(body: bytes) -> RpcRequest:
    """Raises WireError."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(NO_JSON, f"This is no JSON: {error}.") from error
    if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
        raise WireError(NO_REQUEST, "This is no request of JSON-RPC 2.0.")
    method, params, id_ = data.get("method"), data.get("params", {}), data.get("id")
    is_id = id_ is None or (isinstance(id_, str | int | float) and not isinstance(id_, bool))
    if not isinstance(method, str) or not is_id:
        raise WireError(NO_REQUEST, "A request has a method, and an id that is a text or a number.")
    if not isinstance(params, dict):
        raise WireError(BAD_PARAMS, "The params are an object.")
    return RpcRequest(method, params, id_, "id" in data)


def find_method(request: RpcRequest, said: str) -> tuple[Version, str]:
    """The version and what is to be done. `said` is the header `A2A-Version`. Raises WireError."""
    if said and not said.startswith(("0.3", "1.0")) and said != "1":
        raise WireError(BAD_VERSION, "This agent speaks the versions 0.3 and 1.0.")
    found = METHODS.get(request.method)
    if found is not None:
        return found
    if any(each in request.method for each in PUSH_METHODS):
        raise WireError(NO_PUSH, "This agent sends no push notifications.")
    raise WireError(NO_METHOD, "This agent does not know this method.")


def read_message(params: Mapping[str, Any], version: Version) -> SentMessage:
    """Raises WireError."""
    message = params.get("message")
    if not isinstance(message, dict):
        raise WireError(BAD_PARAMS, "`message` is missing.")
    parts = message.get("parts")
    if not isinstance(parts, list) or not parts:
        raise WireError(BAD_PARAMS, "`message.parts` is missing.")
    if len(parts) > MAX_PARTS:
        raise WireError(BAD_PARAMS, f"A message has at most {MAX_PARTS} parts.")
    options = params.get("configuration")
    options = options if isinstance(options, dict) else {}
    waits = (
        not options.get("returnImmediately", False)
        if version == "1.0"
        else options.get("blocking", True) is not False
    )
    return SentMessage(
        parts=[_read_part(each) for each in parts],
        message_id=_text(message, "messageId"),
        context_id=_text(message, "contextId"),
        task_id=_text(message, "taskId"),
        waits=waits,
    )


def read_task_id(params: Mapping[str, Any]) -> str:
    """Raises WireError."""
    id_ = params.get("id")
    if not isinstance(id_, str) or not id_:
        raise WireError(BAD_PARAMS, "`id` is missing: the id of a task.")
    return id_


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise WireError(BAD_PARAMS, f"`{key}` is a text.")
    return value or ""


def _read_part(part: Any) -> str | AttachedFile:
    """Both versions: 0.3 has a `kind`, 1.0 the one field that is there."""
    if not isinstance(part, dict):
        raise WireError(BAD_PARAMS, "A part of a message is an object.")
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if "data" in part:
        return msgspec.json.encode(part["data"]).decode()
    file = part["file"] if isinstance(part.get("file"), dict) else part
    raw = file.get("bytes", file.get("raw"))
    name = _text(file, "name") or _text(file, "filename")
    if isinstance(raw, str):
        mime = _text(file, "mimeType") or _text(file, "mediaType")
        try:
            return AttachedFile(decode_file(raw), name, mime)
        except ValueError as error:
            raise WireError(BAD_PARAMS, "A file is no base64.") from error
    address = _text(file, "uri") or _text(file, "url")
    if address:
        return f"[file: {address}]"
    raise WireError(BAD_PARAMS, "A part of a message has a text, data or a file.")


# What is answered


def make_task(run: Run, version: Version) -> dict[str, Any]:
    """A run as a task."""
    task: dict[str, Any] = {
        "id": str(run.id),
        "contextId": run.id.name,
        "status": make_status(run, version),
    }
    if run.state == "completed":
        task["artifacts"] = [make_artifact(run.answer, version)]
    return {"kind": "task", **task} if version == "0.3" else task


def make_status(run: Run, version: Version) -> dict[str, Any]:
    """Its state, and what there is to be said about that."""
    name = _STATES[run.state]
    at = run.ended_at or run.began_at
    status: dict[str, Any] = {
        "state": name if version == "0.3" else f"TASK_STATE_{name.upper().replace('-', '_')}",
        "timestamp": _format_time(at),
    }
    question = run.asked.question if run.state == "waiting" and run.asked is not None else ""
    words = "\n".join(each for each in (run.problem, question) if each)
    if words:
        status["message"] = _make_agent_message(run, words, version)
    return status


def _format_time(at: float) -> str:
    """RFC 3339 in UTC, as the JSON of protocol buffers writes it."""
    made = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return made.replace("+00:00", "Z")


def _make_agent_message(run: Run, text: str, version: Version) -> dict[str, Any]:
    message: dict[str, Any] = {
        "messageId": f"{run.id}~{run.seen}",
        "contextId": run.id.name,
        "taskId": str(run.id),
        "role": "agent" if version == "0.3" else "ROLE_AGENT",
        "parts": [_make_part(text, version)],
    }
    return {"kind": "message", **message} if version == "0.3" else message


def make_artifact(text: str, version: Version) -> dict[str, Any]:
    """The answer."""
    return {"artifactId": ARTIFACT, "name": ARTIFACT, "parts": [_make_part(text, version)]}


def _make_part(text: str, version: Version) -> dict[str, Any]:
    return {"kind": "text", "text": text} if version == "0.3" else {"text": text}


def make_sent(run: Run, version: Version) -> dict[str, Any]:
    """What sending a message gives, and the first thing of a stream."""
    task = make_task(run, version)
    return task if version == "0.3" else {"task": task}


def make_status_update(run: Run, version: Version) -> dict[str, Any]:
    update: dict[str, Any] = {
        "taskId": str(run.id),
        "contextId": run.id.name,
        "status": make_status(run, version),
    }
    if version == "0.3":
        return {"kind": "status-update", **update, "final": run.rests}
    return {"statusUpdate": update}


def make_artifact_update(
    run: Run, text: str, version: Version, *, append: bool, last: bool
) -> dict[str, Any]:
    """A piece of the answer. Without `append` it takes the place of what was there."""
    update: dict[str, Any] = {
        "taskId": str(run.id),
        "contextId": run.id.name,
        "artifact": make_artifact(text, version),
        "append": append,
        "lastChunk": last,
    }
    return {"kind": "artifact-update", **update} if version == "0.3" else {"artifactUpdate": update}


def make_answer(id_: Any, result: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "result": result})


def make_error(id_: Any, error: WireError) -> bytes:
    said: dict[str, Any] = {"code": error.code, "message": str(error)}
    reason = REASONS.get(error.code)
    if reason:
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        said["data"] = [{"@type": kind, "reason": reason, "domain": "a2a-protocol.org"}]
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "error": said})


def make_card(agent: str, url: str, version: str) -> dict[str, Any]:
    """The agent card: how other agents find and reach this one. It has the fields of both
    versions."""
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "name": agent,
        "description": f"The agent {agent} of a Deskhand: a personal assistant with tools.",
        "version": version,
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": "JSONRPC",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": each}
            for each in ("1.0", "0.3")
        ],
        "capabilities": {"streaming": True, "pushNotifications": False},
        "defaultInputModes": ["text/plain", "image/png", "image/jpeg", "application/pdf"],
        "defaultOutputModes": ["text/plain"],
        "securitySchemes": {
            "bearer": {**bearer, "httpAuthSecurityScheme": {"scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "skills": [
            {
                "id": "ask",
                "name": "Ask",
                "description": "Takes a task or a question in words, and answers in words.",
                "tags": ["assistant", "tasks"],
                "examples": ["Summarize the report in my workspace."],
            }
        ],
    }
