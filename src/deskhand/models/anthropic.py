"""The Anthropic Messages wire: https://docs.anthropic.com/en/api/messages"""

from __future__ import annotations

from typing import Any

from ..types.messages import Audio, File, Image, Message, Text, Thinking, ToolCall, ToolResult
from . import encode
from .anthropic_reply import AnthropicReply, reasoning_wire
from .base import ContextMessage, Request, Start, ToolSchema
from .encode import encode_string, to_json
from .settings import ModelSpec
from .transport import Transport
from .wire import Wire, encode_extra

_VERSION = "2023-06-01"
_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'
_BEGIN = {True: b'{"role":"user","content":[', False: b'{"role":"assistant","content":['}
_NEXT = {side: b"]}," + begin for side, begin in _BEGIN.items()}
_BUDGET = {"low": 2048, "medium": 8192, "high": 24576, "max": 49152}
_MIN_BUDGET = 1024
_DEFAULT_MAX_OUTPUT = 8192
_MAX_TEMPERATURE = 1.0
"""OpenAI's scale goes to 2."""


class AnthropicModel(Wire):
    """One model behind a Messages endpoint. It sends the name that it was opened with."""

    def __init__(self, transport: Transport, spec: ModelSpec) -> None:
        super().__init__(transport, spec, "messages", {"anthropic-version": _VERSION})
        self._wire = reasoning_wire(spec.name)
        # What a message looks like depends on these, so they are part of the name that its bytes
        # are kept under.
        self._form = f"{self._wire}:{bool(spec.facts.vision):d}"

    def make_parser(self, request: Request) -> AnthropicReply:
        return AnthropicReply(self._call, request)

    def encode_tool(self, tool: ToolSchema) -> dict[str, Any]:
        return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}

    async def encode_request(self, request: Request) -> bytes:
        """The bytes that are posted for `request`."""
        pieces = [b'{"model":', to_json(self._spec.name), b',"stream":true,"messages":[']
        pieces += await self._messages(request)
        pieces.append(b"]")
        system = self.encode_blocks([text for text in request.system if text.strip()])
        blocks = [b'{"type":"text","text":' + block + b"}" for block in system]
        if blocks:
            # Only the last block may change from call to call; what is before it stays in the
            # cache.
            stable = max(0, len(blocks) - 2)
            blocks[stable] = blocks[stable][:-1] + _CACHE_MARK
            pieces += [b',"system":[', b",".join(blocks), b"]"]
        if request.tools:
            tools = self.encode_tools(request.tools)
            pieces += [b',"tools":[', tools if blocks else tools[:-1] + _CACHE_MARK, b"]"]
        pieces += [b",", to_json(self._options(request))[1:-1]]
        pieces += encode_extra(request)
        pieces.append(b"}")
        return b"".join(pieces)

    def _options(self, request: Request) -> dict[str, Any]:
        facts = self._spec.facts
        largest = facts.max_output or _DEFAULT_MAX_OUTPUT
        limit = max(1, min(request.max_output_tokens or largest, largest))
        # A call cannot be forced while it thinks.
        thinks = request.thinking != "off" and facts.thinking != "" and not request.must_call
        if facts.thinking == "budget" and limit < 2 * _MIN_BUDGET:
            thinks = False  # nothing would be left for the answer

        options: dict[str, Any] = {"max_tokens": limit}
        options |= self._thinking_options(request, limit, thinks=thinks)
        if request.temperature is not None and facts.temperature and not thinks:
            options["temperature"] = min(request.temperature, _MAX_TEMPERATURE)
        return options | _sampling_options(request)

    def _thinking_options(self, request: Request, limit: int, *, thinks: bool) -> dict[str, Any]:
        """The fields that ask for thinking, or for less of it. `limit` are the tokens of the
        output."""
        facts = self._spec.facts
        match facts.thinking:
            case "adaptive" if thinks:
                # By default the newest models keep their thoughts, and what they say between two
                # calls, to themselves.
                return {
                    "thinking": {"type": "adaptive", "display": "summarized"},
                    "output_config": {"effort": facts.nearest_effort(request.thinking)},
                }
            case "adaptive" if facts.off_effort:
                return {"output_config": {"effort": facts.off_effort}}
            case "budget" if thinks and not _called_without_thinking(request, self._wire):
                # The budget is a part of max_tokens: the answer needs its own share.
                wanted = _BUDGET[facts.nearest_effort(request.thinking)]
                budget = max(_MIN_BUDGET, min(wanted, limit // 2))
                return {"thinking": {"type": "enabled", "budget_tokens": budget}}
        return {}

    async def _messages(self, request: Request) -> list[bytes]:
        """The messages, ready to be joined. Neighbours of one side become one message, so that the
        results of parallel calls and what a person adds arrive together. The last two messages of
        the user's side get a cache mark: the last writes the cache, the one before it finds what
        the call before wrote. What is before both is remembered by the session in one piece."""
        messages = request.messages
        settled = _find_cache_boundary(request.messages)
        start = request.encoded.find_prefix(self._form, messages[:settled])
        if len(start.messages) < settled:
            new, _, side = await self._encode(
                request, messages[len(start.messages) : settled], start.tail
            )
            start = Start(messages[:settled], b"".join([start.data, *new]), side)
            request.encoded.prefixes[self._form] = start
        pieces, ends, _ = await self._encode(request, messages[settled:], start.tail)
        for end in ends[-2:]:
            pieces[end] = pieces[end][:-1] + _CACHE_MARK
        pieces.insert(0, start.data)
        if start.data or len(pieces) > 1:
            pieces.append(b"]}")
        return pieces

    async def _encode(
        self, request: Request, messages: tuple[ContextMessage, ...], side: bool | None
    ) -> tuple[list[bytes], list[int], bool | None]:
        """The pieces after a message of `side`, at which of them a message of the user's side ends,
        and the side of the last."""
        memory = request.encoded.messages
        form = self._form
        pieces: list[bytes] = []
        ends: list[int] = []
        for shown in messages:
            encoded = memory.get((form, shown.n, shown.variant))
            if encoded is None:
                encoded = await self._encode_message(request, shown)
            if not encoded:
                continue
            user = shown.message.role != "assistant"
            if user is side:
                pieces.append(b",")
            else:
                pieces.append(_BEGIN[user] if side is None else _NEXT[user])
            if user and (user is not side or not ends):
                ends.append(0)
            side = user
            if user:
                ends[-1] = len(pieces)
            pieces.append(encoded)
        return pieces, ends, side

    async def _encode_message(self, request: Request, shown: ContextMessage) -> bytes:
        message = shown.message
        if message.role == "assistant":
            blocks = _encode_assistant(message, self._wire)
        else:
            blocks = await self._encode_user(message, request)
        encoded = b",".join(blocks)
        request.encoded.messages[self._form, shown.n, shown.variant] = encoded
        return encoded

    async def _encode_user(self, message: Message, request: Request) -> list[bytes]:
        blocks: list[bytes] = []
        for part in message.parts:
            match part:
                case Text() | Image() | Audio() | File():
                    blocks += await self._encode_part(part, request)
                case ToolResult():
                    blocks.append(await self._encode_result(part, request))
                case _:
                    pass
        return blocks

    async def _encode_part(
        self, part: Text | Image | Audio | File, request: Request, pictures: bool = True
    ) -> list[bytes]:
        if isinstance(part, Image) and pictures and self._spec.facts.vision:
            found = await encode.load_pixels(part, request.blob)
            if isinstance(found, encode.Pixels):
                source = (
                    b'{"type":"base64","media_type":'
                    + to_json(found.mime)
                    + b',"data":"'
                    + found.base64
                    + b'"}'
                )
                return [b'{"type":"image","source":' + source + b"}"]
            part = found
        text = encode.render_as_text(part)
        # A blank block of text is refused.
        return [b'{"type":"text","text":' + encode_string(text) + b"}"] if text.strip() else []

    async def _encode_result(self, result: ToolResult, request: Request) -> bytes:
        # A result that is an error may hold nothing but text.
        ok = result.status == "ok"
        blocks: list[bytes] = []
        for part in result.parts:
            blocks += await self._encode_part(part, request, pictures=ok)
        if not blocks:
            blocks = [b'{"type":"text","text":"[no output]"}']
        if result.status not in ("ok", "error"):
            blocks.insert(0, b'{"type":"text","text":' + to_json(f"[{result.status}]") + b"}")
        given = to_json(encode.safe_call_id(result.call_id))
        encoded = b'{"type":"tool_result","tool_use_id":' + given
        if not ok:
            encoded += b',"is_error":true'
        return encoded + b',"content":[' + b",".join(blocks) + b"]}"


def _sampling_options(request: Request) -> dict[str, Any]:
    """How words and tools are chosen. There is neither `seed` nor a format of the answer here."""
    options: dict[str, Any] = {}
    if request.top_p is not None:
        options["top_p"] = request.top_p
    if request.stop:
        options["stop_sequences"] = list(request.stop)
    if request.tools and (request.must_call or request.one_call):
        options["tool_choice"] = _tool_choice(request)
    return options


def _tool_choice(request: Request) -> dict[str, Any]:
    choice: dict[str, Any] = {"type": "auto"}
    if request.must_call == "*":
        choice = {"type": "any"}
    elif request.must_call:
        choice = {"type": "tool", "name": encode.safe_tool_name(request.must_call)}
    if request.one_call:
        choice["disable_parallel_tool_use"] = True
    return choice


def _encode_assistant(message: Message, wire: str) -> list[bytes]:
    """The blocks of an assistant message, reasoning in its place: the provider checks that it is
    unchanged."""
    blocks: list[bytes] = []
    said = False
    for part in message.parts:
        match part:
            case Text() if part.text.strip():
                blocks.append(b'{"type":"text","text":' + encode_string(part.text) + b"}")
                said = True
            case Thinking() if part.redacted and part.wire == wire:
                blocks.append(
                    b'{"type":"redacted_thinking","data":' + to_json(part.redacted) + b"}"
                )
            case Thinking() if part.signature and part.wire == wire:
                seal = b',"signature":' + to_json(part.signature) + b"}"
                blocks.append(b'{"type":"thinking","thinking":' + encode_string(part.text) + seal)
            case ToolCall():
                head = b'{"type":"tool_use","id":' + to_json(encode.safe_call_id(part.id))
                name = to_json(encode.safe_tool_name(part.name))
                blocks.append(
                    head + b',"name":' + name + b',"input":' + encode.encode_arguments(part) + b"}"
                )
                said = True
            case _:
                pass
    return blocks if said else []


def _find_cache_boundary(messages: tuple[ContextMessage, ...]) -> int:
    """Where the second last message of the user's side begins: no cache mark will ever stand before
    it again."""
    sides = 0
    for position in range(len(messages) - 1, 0, -1):
        follows_reply = messages[position - 1].message.role == "assistant"
        if follows_reply and messages[position].message.role != "assistant":
            sides += 1
            if sides == 2:
                return position
    return 0


def _called_without_thinking(request: Request, wire: str) -> bool:
    """Whether the current turn has already called tools without thinking: the provider refuses to
    begin in between."""
    for shown in reversed(request.messages):
        message = shown.message
        if message.role == "user":
            return False
        if message.calls:
            thoughts = [part for part in message.parts if isinstance(part, Thinking)]
            return all(part.wire != wire for part in thoughts)
    return False
