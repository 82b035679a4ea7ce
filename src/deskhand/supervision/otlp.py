"""Spans as OpenTelemetry's protocol has them over HTTP, in JSON.

https://opentelemetry.io/docs/specs/otlp/ (JSON Protobuf Encoding). The conventions for generative
AI are those of https://opentelemetry.io/docs/specs/semconv/gen-ai/ (version 1.41).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..assembly.trace import TraceSpan

INTERNAL = 1
CLIENT = 3
ERROR = 2
PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""Providers that the conventions call otherwise."""
_FAILED_TURNS = frozenset({"failed", "dead"})


def encode_spans(spans: Sequence[TraceSpan], service: Mapping[str, str], *, content: bool) -> bytes:
    """The body of a request to `/v1/traces`. `service` are attributes of what sends them. What
    tools were called with and how answers begin is part of it with `content` alone."""
    resource = {"attributes": [_attribute(key, value) for key, value in service.items()]}
    scope = {"name": "deskhand", "version": service.get("service.version", "")}
    encoded = [_encode_span(each, content=content) for each in spans]
    scopes = [{"scope": scope, "spans": encoded}]
    return msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]})


def _encode_span(span: TraceSpan, *, content: bool) -> dict[str, Any]:
    describe = {"agent_run": _describe_run, "llm_call": _describe_llm, "tool_call": _describe_tool}
    name, attributes = describe[span.kind](span)
    attributes["gen_ai.conversation.id"] = span.session
    failure = _failure_of(span)
    if failure:
        attributes["error.type"] = failure
    if content:
        attributes.update(_content_of(span))
    encoded: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": name,
        "kind": CLIENT if span.kind == "llm_call" else INTERNAL,
        "startTimeUnixNano": str(round(span.began_at * 1e9)),
        "endTimeUnixNano": str(round(max(span.at, span.began_at) * 1e9)),
        "attributes": [_attribute(key, value) for key, value in attributes.items()],
    }
    if span.parent_id:
        encoded["parentSpanId"] = span.parent_id
    if failure:
        encoded["status"] = {"code": ERROR, "message": span.detail if content else failure}
    return encoded


def _describe_run(span: TraceSpan) -> tuple[str, dict[str, Any]]:
    return f"invoke_agent {span.name}", {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": span.name,
        "deskhand.turn.end": span.status,
        **_usage_of(span),
    }


def _describe_llm(span: TraceSpan) -> tuple[str, dict[str, Any]]:
    provider, _, model = span.name.partition("/")
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model,
        **_usage_of(span),
    }
    if span.status != "failed":
        attributes["gen_ai.response.finish_reasons"] = [span.status]
    return f"chat {model}", attributes


def _describe_tool(span: TraceSpan) -> tuple[str, dict[str, Any]]:
    return f"execute_tool {span.name}", {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": span.name,
        "gen_ai.tool.type": "function",
    }


def _usage_of(span: TraceSpan) -> dict[str, int]:
    return {
        "gen_ai.usage.input_tokens": span.input_tokens,
        "gen_ai.usage.output_tokens": span.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": span.cached_tokens,
    }


def _failure_of(span: TraceSpan) -> str:
    """What went wrong, as one word; '' for nothing."""
    match span.kind:
        case "agent_run":
            return span.status if span.status in _FAILED_TURNS else ""
        case "llm_call":
            return span.detail.partition(":")[0] if span.status == "failed" else ""
        case "tool_call":
            return "" if span.status == "ok" else span.status


def _content_of(span: TraceSpan) -> dict[str, str]:
    if span.kind == "tool_call":
        called = {"gen_ai.tool.call.arguments": span.detail} if span.status == "ok" else {}
        return {**called, "gen_ai.tool.call.result": span.preview}
    return {"deskhand.answer": span.preview} if span.preview else {}


def _attribute(key: str, value: str | int | list[str]) -> dict[str, Any]:
    return {"key": key, "value": _encode_value(value)}


def _encode_value(value: str | int | list[str]) -> dict[str, Any]:
    match value:
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case _:
            return {"arrayValue": {"values": [_encode_value(each) for each in value]}}
