"""The OpenAI Responses wire, for models that reason while they call tools: Chat Completions refuses
them that.

https://developers.openai.com/api/reference/resources/responses/methods/create and, for what is kept
and given back, https://developers.openai.com/api/docs/guides/reasoning. Nothing is stored there
(`store: false`): reasoning comes back encrypted, and is sent again exactly as it came, since newer
models drop it where what was before it has changed
(https://developers.openai.com/api/docs/guides/latest-model).
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from ..types.client import ANY_OBJECT
from ..types.messages import Audio, File, Image, Message, Text, Thinking, ToolCall, ToolResult
from . import encode
from .base import ContextMessage, Request, Start, ToolSchema
from .encode import encode_string, to_json
from .responses_reply import ResponsesReply, reasoning_wire
from .settings import ModelSpec
from .transport import Transport
from .wire import Wire, encode_extra

_MIN_OUTPUT_TOKENS = 16
"""Less is refused."""


class ResponsesModel(Wire):
    """One model behind a Responses endpoint. It sends the name that it was opened with."""

    def __init__(self, transport: Transport, spec: ModelSpec) -> None:
        super().__init__(transport, spec, "responses")
        self._wire = reasoning_wire(self._call)
        # What a message looks like depends on these, so they are part of the name that its bytes
        # are kept under.
        self._form = f"{self._wire}:{bool(spec.facts.vision):d}"

    def make_parser(self, request: Request) -> ResponsesReply:
        return ResponsesReply(self._call, request)

    def encode_tool(self, tool: ToolSchema) -> dict[str, Any]:
        # Without `strict` our schemas would be held to rules that they do not follow.
        found = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        return {"type": "function", **found, "strict": False}

    async def encode_request(self, request: Request) -> bytes:
        """The bytes that are posted for `request`."""
        items = await self._encode_items(request)
        pieces = [b'{"model":', to_json(self._spec.name), b',"stream":true,"store":false']
        if any(request.system):
            pieces += [b',"instructions":', self.encode_prompt(request.system)]
        pieces += [b',"input":[', b",".join(items), b"]"]
        if request.tools:
            pieces += [b',"tools":[', self.encode_tools(request.tools), b"]"]
        options = self._options(request)
        options["prompt_cache_key"] = self._cache_key(request)
        pieces += [b",", to_json(options)[1:-1]]
        pieces += encode_extra(request)
        pieces.append(b"}")
        return b"".join(pieces)

    def _options(self, request: Request) -> dict[str, Any]:
        facts = self._spec.facts
        options: dict[str, Any] = {}
        if request.max_output_tokens is not None:
            options["max_output_tokens"] = max(_MIN_OUTPUT_TOKENS, request.max_output_tokens)
        if request.temperature is not None and facts.temperature:
            options["temperature"] = request.temperature
        if facts.thinking:
            options["include"] = ["reasoning.encrypted_content"]
            if request.thinking != "off":
                options["reasoning"] = {
                    "effort": facts.nearest_effort(request.thinking),
                    "summary": "auto",
                }
            elif facts.off_effort:
                options["reasoning"] = {"effort": facts.off_effort}
        return options | _sampling_options(request)

    async def _encode_items(self, request: Request) -> list[bytes]:
        """The input items, ready to be joined; those that the session remembers are one piece."""
        messages = request.messages
        memory = request.encoded
        start = memory.find_prefix(self._form, messages)
        found = [start.data] if start.data else []
        for shown in messages[len(start.messages) :]:
            encoded = memory.messages.get((self._form, shown.n, shown.variant))
            if encoded is None:
                encoded = await self._encode_message(request, shown)
            if encoded:
                found.append(encoded)
        memory.prefixes[self._form] = Start(messages, b",".join(found))
        return found

    def _cache_key(self, request: Request) -> str:
        """The same for all requests of a conversation, so that they meet the same cache:
        https://developers.openai.com/api/docs/guides/prompt-caching"""
        first = b""
        if request.messages:
            shown = request.messages[0]
            first = request.encoded.messages.get((self._form, shown.n, shown.variant), b"")
        begin = request.system[0] if request.system else ""
        return sha256(begin.encode("utf-8", "replace") + first).hexdigest()[:32]

    async def _encode_message(self, request: Request, shown: ContextMessage) -> bytes:
        message = shown.message
        if message.role == "assistant":
            encoded = b",".join(_encode_assistant(message, self._wire))
        elif message.role == "tool":
            results = [part for part in message.parts if isinstance(part, ToolResult)]
            encoded = b",".join([await self._encode_result(result, request) for result in results])
        else:
            content = await self._encode_content(message.parts, request)
            encoded = b'{"type":"message","role":"user","content":' + content + b"}"
        request.encoded.messages[self._form, shown.n, shown.variant] = encoded
        return encoded

    async def _encode_content(
        self, parts: tuple[Any, ...], request: Request, status: str = ""
    ) -> bytes:
        """What a person said, or a tool gave: a string where there is no picture, else a list."""
        texts: list[str] = []
        blocks: list[bytes] = []
        pictured = False
        for part in (Text(status), *parts) if status else parts:
            shown = part
            if isinstance(part, Image) and self._spec.facts.vision:
                shown = await encode.load_pixels(part, request.blob)
            match shown:
                case encode.Pixels():
                    url = shown.data_url
                    blocks.append(
                        b'{"type":"input_image","detail":"auto","image_url":"' + url + b'"}'
                    )
                    pictured = True
                case Text() | Image() | Audio() | File():
                    text = encode.render_as_text(shown)
                    texts.append(text)
                    blocks.append(b'{"type":"input_text","text":' + encode_string(text) + b"}")
        if pictured:
            return b"[" + b",".join(blocks) + b"]"
        return encode_string("\n".join(texts))

    async def _encode_result(self, result: ToolResult, request: Request) -> bytes:
        status = "" if result.status == "ok" else f"[{result.status}]"
        output = await self._encode_content(result.parts or (Text("[no output]"),), request, status)
        given = to_json(encode.safe_call_id(result.call_id))
        return b'{"type":"function_call_output","call_id":' + given + b',"output":' + output + b"}"


def _sampling_options(request: Request) -> dict[str, Any]:
    """What the answer is to be, and which tools are called. There is neither `seed` nor `stop`
    here."""
    options: dict[str, Any] = {}
    if request.top_p is not None:
        options["top_p"] = request.top_p
    if request.tools and request.must_call:
        named = {"type": "function", "name": encode.safe_tool_name(request.must_call)}
        options["tool_choice"] = "required" if request.must_call == "*" else named
    if request.tools and request.one_call:
        options["parallel_tool_calls"] = False
    if request.form == ANY_OBJECT:
        options["text"] = {"format": {"type": "json_object"}}
    elif request.form is not None:
        schema = {"name": "answer", "schema": request.form, "strict": request.strict_form}
        options["text"] = {"format": {"type": "json_schema", **schema}}
    return options


def _encode_assistant(message: Message, wire: str) -> list[bytes]:
    """The items of a reply, in their order. Reasoning goes with what followed it: without that it
    is refused."""
    items: list[bytes] = []
    held: list[bytes] = []
    phase = ""
    for part in message.parts:
        match part:
            case Thinking() if part.wire == wire and part.redacted:
                held.append(part.redacted.encode())
            case Thinking() if part.wire == wire:
                phase = part.signature
            case Text() if part.text.strip():
                item = b'{"type":"message","role":"assistant","content":' + encode_string(part.text)
                if phase:
                    item += b',"phase":' + to_json(phase)
                items += [*held, item + b"}"]
                held = []
                phase = ""
            case ToolCall():
                given = to_json(encode.safe_call_id(part.id))
                name = to_json(encode.safe_tool_name(part.name))
                arguments = to_json(encode.encode_arguments(part).decode("utf-8", "replace"))
                item = b'{"type":"function_call","call_id":' + given + b',"name":' + name
                items += [*held, item + b',"arguments":' + arguments + b"}"]
                held = []
            case _:
                pass
    return items
