"""The OpenAI Chat Completions wire, spoken by OpenAI and by most other providers and local servers.

https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

from typing import Any

from ..types.client import ANY_OBJECT
from ..types.messages import Audio, File, Image, Message, Part, Text, Thinking, ToolCall, ToolResult
from . import encode
from .base import ContextMessage, Request, Start, ToolSchema
from .encode import encode_string, to_json
from .openai_reply import OpenAiReply
from .settings import Facts, ModelSpec
from .transport import Transport
from .wire import Wire, encode_extra

_IMAGES = "\0images"


class OpenAIModel(Wire):
    """One model behind a Chat Completions endpoint. It sends the name that it was opened with."""

    def __init__(self, transport: Transport, spec: ModelSpec) -> None:
        super().__init__(transport, spec, "chat/completions")
        quirks = spec.quirks
        # What a message looks like depends on these, so they are part of the name that its bytes
        # are kept under.
        self._plain = (
            f"openai:{bool(spec.facts.vision):d}{quirks.call_ids}{quirks.call_signatures:d}"
        )
        self._reasoned = f"{self._plain}:{quirks.reasoning_field}"

    def make_parser(self, request: Request) -> OpenAiReply:
        return OpenAiReply(self._call, request)

    def encode_tool(self, tool: ToolSchema) -> dict[str, Any]:
        function = {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        }
        return {"type": "function", "function": function}

    async def encode_request(self, request: Request) -> bytes:
        """The bytes that are posted for `request`."""
        pieces = [b'{"model":', to_json(self._spec.name), b',"stream":true,"messages":[']
        messages = await self._messages(request)
        if request.system:
            prompt = self.encode_prompt(request.system)
            messages.insert(0, b'{"role":"system","content":' + prompt + b"}")
        pieces.append(b",".join(messages))
        pieces.append(b"]")
        if request.tools:
            pieces += [b',"tools":[', self.encode_tools(request.tools), b"]"]
        rest = to_json(self._options(request))
        if len(rest) > 2:
            pieces += [b",", rest[1:-1]]
        pieces += encode_extra(request)
        pieces.append(b"}")
        return b"".join(pieces)

    def _options(self, request: Request) -> dict[str, Any]:
        quirks = self._spec.quirks
        facts = self._spec.facts
        options: dict[str, Any] = {}
        if quirks.stream_usage:
            options["stream_options"] = {"include_usage": True}
        if request.max_output_tokens is not None:
            options[quirks.max_tokens] = request.max_output_tokens
        if request.temperature is not None and facts.temperature:
            options["temperature"] = request.temperature
        if facts.thinking and quirks.effort:
            options.update(_effort_options(quirks.effort, request.thinking, facts))
        if facts.tools_effort and request.tools:
            options["reasoning_effort"] = facts.tools_effort
        return options | _sampling_options(request) | _answer_format(request, quirks.answer_schema)

    async def _messages(self, request: Request) -> list[bytes]:
        """The messages as JSON, ready to be joined. All up to the last message of a person will
        never look different, so the session remembers them in one piece."""
        messages = request.messages
        back = self._spec.quirks.reasoning_back
        early = self._reasoned if back == "all" else self._plain
        late = self._plain if back == "never" else self._reasoned
        turn = _turn_start(messages)
        start = request.encoded.find_prefix(early, messages[:turn])
        if len(start.messages) < turn:
            new = await self._encode(request, messages[len(start.messages) : turn], early)
            start = Start(messages[:turn], b",".join([start.data, *new] if start.data else new))
            request.encoded.prefixes[early] = start
        rest = await self._encode(request, messages[turn:], late)
        return [start.data, *rest] if start.data else rest

    async def _encode(
        self, request: Request, messages: tuple[ContextMessage, ...], form: str
    ) -> list[bytes]:
        """Each message as JSON, from the session's memory where it has been encoded before."""
        memory = request.encoded.messages
        found: list[bytes] = []
        held: list[bytes] = []
        for shown in messages:
            encoded = memory.get((form, shown.n, shown.variant))
            if encoded is None:
                encoded = await self._encode_message(request, shown, form)
            role = shown.message.role
            if held and role != "tool":
                # All results of a step must follow it before anything else, so their images wait
                # until then.
                found += held
                held.clear()
            if encoded:
                found.append(encoded)
            if role == "tool" and (images := memory.get((form + _IMAGES, shown.n, shown.variant))):
                held.append(images)
        return found + held

    async def _encode_message(self, request: Request, shown: ContextMessage, form: str) -> bytes:
        message = shown.message
        if message.role == "assistant":
            encoded = self._encode_assistant(message, reasoning=form == self._reasoned)
        elif message.role == "tool":
            results = [part for part in message.parts if isinstance(part, ToolResult)]
            encoded = b",".join([self._encode_result(result) for result in results])
            images: list[Image] = []
            for result in results:
                images += [part for part in result.parts if isinstance(part, Image)]
            if images and self._spec.facts.vision:
                about = Message("user", (Text("Images of the tool results above:"), *images))
                key = (form + _IMAGES, shown.n, shown.variant)
                request.encoded.messages[key] = await self._encode_user(about, request)
        else:
            encoded = await self._encode_user(message, request)
        request.encoded.messages[form, shown.n, shown.variant] = encoded
        return encoded

    async def _encode_user(self, message: Message, request: Request) -> bytes:
        parts: list[bytes] = []
        texts: list[str] = []
        pictured = False
        for part in message.parts:
            shown: Part | encode.Pixels = part
            if isinstance(part, Image) and self._spec.facts.vision:
                shown = await encode.load_pixels(part, request.blob)
            match shown:
                case encode.Pixels():
                    url = shown.data_url
                    parts.append(b'{"type":"image_url","image_url":{"url":"' + url + b'"}}')
                    pictured = True
                case Text() | Image() | Audio() | File():
                    text = encode.render_as_text(shown)
                    texts.append(text)
                    parts.append(b'{"type":"text","text":' + encode_string(text) + b"}")
                case _:
                    pass
        if pictured:
            return b'{"role":"user","content":[' + b",".join(parts) + b"]}"
        # The plain form, which the simplest servers understand too.
        return b'{"role":"user","content":' + encode_string("\n".join(texts)) + b"}"

    def _encode_assistant(self, message: Message, reasoning: bool) -> bytes:
        quirks = self._spec.quirks
        nine = quirks.call_ids == "nine"
        calls: list[bytes] = []
        thoughts: list[str] = []
        signature = ""
        for part in message.parts:
            if isinstance(part, Thinking) and part.wire == "openai":
                signature = part.signature
                thoughts.append(part.text)
            elif isinstance(part, ToolCall):
                calls.append(_encode_call(part, nine, signature if quirks.call_signatures else ""))
                signature = ""
        text = message.text
        if not (text or calls):
            return b""
        content = encode_string(text) if text or not calls else b"null"
        encoded = b'{"role":"assistant","content":' + content
        if reasoning and (thought := "".join(thoughts)):
            encoded += b',"' + quirks.reasoning_field.encode() + b'":' + encode_string(thought)
        if calls:
            encoded += b',"tool_calls":[' + b",".join(calls) + b"]"
        return encoded + b"}"

    def _encode_result(self, result: ToolResult) -> bytes:
        shown = self._spec.facts.vision
        texts = [
            encode.render_as_text(part)
            for part in result.parts
            if not (isinstance(part, Image) and shown)
        ]
        text = "\n".join(texts) or ("[see the image below]" if result.parts else "[no output]")
        if result.status != "ok":
            text = f"[{result.status}] {text}"
        given = to_json(encode.safe_call_id(result.call_id, self._spec.quirks.call_ids == "nine"))
        content = encode_string(text)
        return b'{"role":"tool","tool_call_id":' + given + b',"content":' + content + b"}"


def _encode_call(call: ToolCall, nine: bool, signature: str) -> bytes:
    given = to_json(encode.safe_call_id(call.id, nine))
    name = to_json(encode.safe_tool_name(call.name))
    arguments = to_json(encode.encode_arguments(call).decode("utf-8", "replace"))
    function = b'{"name":' + name + b',"arguments":' + arguments + b"}"
    encoded = b'{"id":' + given + b',"type":"function","function":' + function
    if signature:
        encoded += b',"extra_content":{"google":{"thought_signature":' + to_json(signature) + b"}}"
    return encoded + b"}"


def _turn_start(messages: tuple[ContextMessage, ...]) -> int:
    """The position after the last message of a person: the current turn's own messages begin
    there."""
    for position in range(len(messages) - 1, -1, -1):
        if messages[position].message.role == "user":
            return position + 1
    return 0


def _sampling_options(request: Request) -> dict[str, Any]:
    """The fields that say how to choose words and tools."""
    options: dict[str, Any] = {}
    if request.top_p is not None:
        options["top_p"] = request.top_p
    if request.seed is not None:
        options["seed"] = request.seed
    if request.stop:
        options["stop"] = list(request.stop)
    if request.tools and request.must_call:
        named = {"type": "function", "function": {"name": encode.safe_tool_name(request.must_call)}}
        options["tool_choice"] = "required" if request.must_call == "*" else named
    if request.tools and request.one_call:
        options["parallel_tool_calls"] = False
    return options


def _answer_format(request: Request, known: str) -> dict[str, Any]:
    """The response_format, as far as the provider knows it."""
    if request.form is None or not known:
        return {}
    if known == "json_object" or request.form == ANY_OBJECT:
        return {"response_format": {"type": "json_object"}}
    schema = {"name": "answer", "schema": request.form, "strict": request.strict_form}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _effort_options(field: str, thinking: str, facts: Facts) -> dict[str, Any]:
    """The body's fields that ask for this much thinking."""
    on = thinking != "off"
    level = facts.nearest_effort(thinking) if on else facts.off_effort
    match field:
        case "reasoning_effort" if level:
            return {"reasoning_effort": level}
        case "reasoning":
            return {"reasoning": {"effort": level} if on else {"enabled": False}}
        case "thinking" if level and facts.thinking == "effort":
            return {"thinking": {"type": "enabled"}, "reasoning_effort": level}
        case "thinking":
            return {"thinking": {"type": "enabled" if on else "disabled"}}
        case "template":
            return {"chat_template_kwargs": {"enable_thinking": on}}
    return {}
