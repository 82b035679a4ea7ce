"""What a fake language model is told to do, and the faults that have a name."""

from __future__ import annotations

from typing import Literal

import msgspec

Fault = Literal[
    "",
    "reset",
    "hang",
    "hang_mid",
    "drip",
    "garbage",
    "huge_line",
    "cut",
    "error_event",
    "comments",
    "html",
    "linger",
    "headers_only",
]
CallStyle = Literal[
    "fragments", "whole", "object", "no_index", "no_id", "same_index", "repeat_name"
]


class FakeCall(msgspec.Struct, frozen=True):
    """A tool call as the model writes it: `arguments` is text, which need not be JSON."""

    name: str
    arguments: str = "{}"
    id: str | None = None


NOW = "<------ now ----->"
"""In a text it becomes the time on this machine's monotonic clock, in seconds, at which the piece
is sent."""


class Behaviour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one call is answered.

    It holds for calls whose last user text contains `match` and whose model is `model` (empty:
    any), `times` times (0: for ever). The text goes out in `chunks` pieces, `gap_s` seconds apart,
    the first after `latency_s`. A `status` other than 200 answers with `error` as its body. `raw`
    is sent as it is, with `raw_type` as its content type. `named` takes a fault from NAMED instead
    of all this.
    """

    match: str = ""
    model: str = ""
    times: int = 0
    named: str = ""
    text: str = "This is the answer of a fake model."
    chunks: int = 8
    gap_s: float = 0
    latency_s: float = 0
    thinking: str = ""
    signature: str = "c2lnbmF0dXJl"
    redacted: str = ""
    calls: tuple[FakeCall, ...] = ()
    call_style: CallStyle = "fragments"
    finish: str = ""
    input_tokens: int = 100
    output_tokens: int = 12
    cached_tokens: int = 0
    status: int = 200
    headers: dict[str, str] = {}
    error: str = ""
    fault: Fault = ""
    raw: str = ""
    raw_type: str = "text/event-stream"


def _refusal(status: int, message: str, code: str | None = None, **headers: str) -> Behaviour:
    body = {"error": {"message": message, "type": "error", "code": code}}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Behaviour(status=status, error=msgspec.json.encode(body).decode(), headers=sent)


def _anthropic(status: int, kind: str, message: str) -> Behaviour:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return Behaviour(status=status, error=msgspec.json.encode(body).decode())


def _plain(status: int, body: str) -> Behaviour:
    return Behaviour(status=status, error=body)


# How providers say that the conversation is too long, each in its own words and shape. The
# addresses are theirs.
OVERFLOWS: dict[str, Behaviour] = {
    # https://platform.openai.com/docs/guides/error-codes
    "openai": _refusal(
        400,
        (
            "This model's maximum context length is 8192 tokens. However, your messages "
            "resulted in 9000 tokens."
        ),
        "context_length_exceeded",
    ),
    # https://docs.anthropic.com/en/docs/build-with-claude/context-windows
    "anthropic": _anthropic(
        400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"
    ),
    "anthropic_max_tokens": _anthropic(
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    ),
    "anthropic_413": _anthropic(413, "request_too_large", "Request exceeds the maximum size"),
    # https://ai.google.dev/gemini-api/docs/troubleshooting
    "google": _plain(
        400,
        '[{"error": {"code": 400, "message": "The input token count (1048580) exceeds the '
        "maximum number of tokens "
        'allowed (1048576).", "status": "INVALID_ARGUMENT"}}]',
    ),
    # https://docs.mistral.ai/api/
    "mistral": _plain(
        400,
        '{"object": "error", "message": "Prompt contains 40000 tokens and 0 draft tokens, '
        "too large for model with "
        '32768 maximum context length", "type": "invalid_request_error", "code": "3051"}',
    ),
    # https://console.groq.com/docs/errors
    "groq": _refusal(
        400, "Please reduce the length of the messages or completion.", "context_length_exceeded"
    ),
    "groq_413": _refusal(
        413,
        "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000",
        "rate_limit_exceeded",
    ),
    "openai_429": _refusal(
        429,
        "Request too large for gpt on tokens per min (TPM): Limit 30000, Requested 40000.",
        "rate_limit_exceeded",
    ),
    # https://docs.vllm.ai/
    "vllm": _plain(
        400,
        '{"object": "error", "message": "The decoder prompt (length 5000) is longer than '
        "the maximum model length of "
        '4096.", "type": "BadRequestError", "code": 400}',
    ),
    # https://github.com/ggml-org/llama.cpp/tree/master/tools/server
    "llamacpp": _plain(
        400,
        '{"error": {"code": 400, "message": "request (9000 tokens) exceeds the available '
        "context size (4096 tokens), "
        'try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9000, '
        '"n_ctx": 4096}}',
    ),
    # https://lmstudio.ai/docs
    "lmstudio": _plain(
        400,
        '{"error": "Trying to keep the first 5000 tokens when context the overflows. '
        "However, the model is loaded with "
        'context length of only 4096 tokens"}',
    ),
    # https://docs.x.ai/docs/key-information/debugging
    "xai": _plain(
        400,
        '{"code": "Client specified an invalid argument", "error": "This model\'s maximum '
        "prompt length is 131072 but "
        'the request contains 537812 tokens."}',
    ),
    # https://docs.together.ai/docs/error-codes
    "together": _refusal(
        422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097."
    ),
    # https://openrouter.ai/docs/api-reference/errors
    "openrouter": _plain(
        400,
        '{"error": {"message": "This endpoint\'s maximum context length is 8192 tokens. '
        "However, you requested about "
        '10000 tokens", "code": 400}}',
    ),
}

NAMED: dict[str, Behaviour] = {
    "429": _refusal(429, "Rate limit reached", "rate_limit_exceeded"),
    "429_2": _refusal(429, "Rate limit reached", "rate_limit_exceeded", retry_after="2"),
    "429_ms": _refusal(429, "Rate limit reached", "rate_limit_exceeded", retry_after_ms="1500"),
    "429_9999": _refusal(429, "Rate limit reached", "rate_limit_exceeded", retry_after="9999"),
    "429_date": _refusal(
        429,
        "Rate limit reached",
        "rate_limit_exceeded",
        date="Sat, 21 Nov 2026 10:00:00 GMT",
        retry_after="Sat, 21 Nov 2026 10:00:07 GMT",
    ),
    # https://ai.google.dev/gemini-api/docs/rate-limits
    "429_google": _plain(
        429,
        '[{"error": {"code": 429, "message": "You exceeded your current quota, please check '
        "your plan and billing "
        'details.", "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "37s"}]}}]',
    ),
    "429_quota": _refusal(
        429, "You exceeded your current quota, please check your plan.", "insufficient_quota"
    ),
    "402": _refusal(402, "Insufficient Balance"),
    "401": _refusal(401, "Incorrect API key provided: {key}", "invalid_api_key"),
    "403": _refusal(403, "Country not supported"),
    "400_key": _plain(
        400,
        '[{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}]',
    ),
    "404": _refusal(404, "The model `m` does not exist", "model_not_found"),
    "400_model": _refusal(400, "m is not a valid model ID"),
    "400": _refusal(400, "Unknown parameter: 'colour'", "unknown_parameter"),
    "301": _plain(301, ""),
    "408": _refusal(408, "Request timeout"),
    "500": _refusal(500, "The server had an error"),
    "502": _plain(502, "<html><body>Bad gateway</body></html>"),
    "503": _refusal(503, "Service unavailable"),
    "529": _anthropic(529, "overloaded_error", "Overloaded"),
    "reset": Behaviour(fault="reset"),
    "hang": Behaviour(fault="hang"),
    "hang_mid": Behaviour(fault="hang_mid"),
    "drip": Behaviour(fault="drip", gap_s=10),
    "garbage": Behaviour(fault="garbage"),
    "huge_line": Behaviour(fault="huge_line"),
    "cut": Behaviour(fault="cut"),
    "html": Behaviour(fault="html"),
    "error_event": Behaviour(fault="error_event"),
    "comments": Behaviour(fault="comments", gap_s=0.05),
    "linger": Behaviour(fault="linger"),
    "headers_only": Behaviour(fault="headers_only"),
    "bad_json": Behaviour(calls=(FakeCall("read_file", "{path: 'a.txt'}"),)),
    "cut_json": Behaviour(calls=(FakeCall("read_file", '{"path": "a.t'),), finish="length"),
    "wrong_types": Behaviour(calls=(FakeCall("read_file", '{"path": [1, null]}'),)),
    "no_arguments": Behaviour(calls=(FakeCall("read_file", ""),)),
    "unknown_tool": Behaviour(calls=(FakeCall("no such tool!", "{}"),)),
    "many_calls": Behaviour(
        calls=tuple(FakeCall("read_file", f'{{"path": "{n}"}}') for n in range(200))
    ),
    "empty": Behaviour(text=""),
    "blank": Behaviour(text=" \n\t ", chunks=1),
    "length": Behaviour(text="It goes on and", finish="length"),
    **{f"overflow_{name}": behaviour for name, behaviour in OVERFLOWS.items()},
}


def resolve(behaviour: Behaviour) -> Behaviour:
    """The behaviour itself, or the fault that it names. Raises KeyError for a name that is not in
    NAMED."""
    return NAMED[behaviour.named] if behaviour.named else behaviour


def cut(text: str, pieces: int) -> list[str]:
    """`text` in at most `pieces` pieces of about the same length; nothing for no text."""
    if not text:
        return []
    pieces = max(1, min(pieces, len(text)))
    return [text[len(text) * n // pieces : len(text) * (n + 1) // pieces] for n in range(pieces)]
