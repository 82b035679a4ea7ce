"""What a provider's refusal means: every failure becomes one class of the error tree, with words a
person can use."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import msgspec

from ..types.errors import (
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelKeyRefused,
    ModelOverloaded,
    ModelRequestRefused,
    ModelTimeout,
    ModelUnavailable,
    ModelUnknown,
)
from ..types.messages import clean_text

QUOTE_CHARS = 300

# The same thing in the words of OpenAI and Azure, Anthropic, Google, Mistral, Groq and Cerebras,
# vLLM, llama.cpp, LM Studio, xAI, Together, OpenRouter, Ollama. A single request above a per-minute
# limit of tokens ("request too large") belongs here too: waiting does not make it smaller.
_OVERFLOW = re.compile(
    r"context_length_exceeded"
    r"|exceed_context_size"
    r"|maximum context length"
    r"|maximum prompt length"
    r"|prompt is too long"
    r"|max(imum)? model length"
    r"|max_model_len"
    r"|context (length|window|limit|size) (of|is|has been|was)? ?(only|exceeded)"
    r"|exceeds? (the |this )?(model'?s |available )?(maximum )?context"
    r"|exceeds the maximum number of tokens"
    r"|too large for model with \d+"
    r"|reduce the length of the (messages|prompt|input)"
    r"|request too large"
    r"|request_too_large"
    r"|`inputs` tokens \+ `max_new_tokens`"
    r"|context the overflows"
    r"|input is too long"
    r"|request exceeds the maximum size"
    r"|tokens to keep from the initial prompt",
    re.IGNORECASE,
)
_MONEY = re.compile(
    r"insufficient[_ ](quota|balance|funds|credits)"
    r"|credit balance"
    r"|payment required",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"invalid_api_key"
    r"|(incorrect|invalid) api key"
    r"|api key (not valid|expired|not found)",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found"
    r"|model .{0,80}(not found|does not exist|is not supported)"
    r"|not a valid model"
    r"|no such model"
    r"|unknown model"
    r"|invalid model",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"(?i)(bearer|basic|x-api-key:?|api-key:?)\s+\S+"
    r"|\b(sk|gsk|xai|nvapi|csk|AIza)[-_]?[\w-]{16,}"
)
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')

# https://docs.anthropic.com/en/api/errors and https://platform.openai.com/docs/guides/error-codes
_STATUS_OF_TYPE = {
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
    "engine_overloaded": 529,
}


class FailedCall(msgspec.Struct, frozen=True):
    """Where one call goes, and how failures speak of it. `secret` never appears in any message."""

    provider: str
    model: str
    url: str
    headers: Mapping[str, str]
    secret: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.provider}/{self.model}"

    def redact(self, text: str) -> str:
        """`text` cleaned, without the key or anything that looks like one, at most QUOTE_CHARS
        long, on one line."""
        if self.secret:
            text = text.replace(self.secret, "[key]")
        text = _SECRET.sub("[key]", clean_text(text))
        text = " ".join(text.split())
        return text if len(text) <= QUOTE_CHARS else text[: QUOTE_CHARS - 1] + "…"


def make_http_error(
    call: FailedCall, status: int, headers: Mapping[str, str], body: bytes
) -> ModelError:
    """The error for an HTTP answer that is not a success."""
    return _classify_error(call, status, _extract_message(body), parse_retry_after_s(headers, body))


def make_stream_error(call: FailedCall, error: object) -> ModelError:
    """The error for what the `error` field of an event inside the stream holds, as decoded JSON."""
    body = json.dumps(error).encode("utf-8", "replace")
    return _classify_error(
        call, _parse_status(body), _extract_message(body), parse_retry_after_s({}, body)
    )


def make_unreachable(call: FailedCall, why: str) -> ModelUnavailable:
    """The error for a connection that could not be made, or broke."""
    return ModelUnavailable(
        f"{call.full_name} could not be reached{_quote(call, why)}. Check the network and base_url."
    )


def make_broken_reply(call: FailedCall, why: str) -> ModelUnavailable:
    """The error for a reply that ended in the middle."""
    return ModelUnavailable(
        f"{call.full_name} stopped in the middle of a reply{_quote(call, why)}. Try again."
    )


def make_timeout(
    call: FailedCall, which: Literal["connect", "first", "idle", "total"], limit_s: float
) -> ModelTimeout:
    """The error for a limit that has passed."""
    what = {
        "connect": "did not accept a connection within",
        "first": "sent nothing within",
        "idle": "stopped sending in the middle of a reply for",
        "total": "did not finish within",
    }[which]
    return ModelTimeout(
        f"{call.full_name} {what} {limit_s:g} s. Try again, or choose a faster model."
    )


def make_malformed_reply(call: FailedCall, why: str, sample: bytes | str = b"") -> MalformedReply:
    """The error for an answer that is not what the protocol says. `sample` is the part that was not
    understood."""
    if isinstance(sample, bytes):
        sample = sample[: 4 * QUOTE_CHARS].decode("utf-8", "replace")
    return MalformedReply(
        f"{call.full_name} answered in a form that could not be read: {why}{_quote(call, sample)}. "
        "Check that base_url speaks this protocol, or try again."
    )


def parse_retry_after_s(headers: Mapping[str, str], body: bytes = b"") -> float | None:
    """Seconds that the provider asks us to wait, or None.

    Retry-After is seconds or a date (RFC 9110 section 10.2.3); a date counts from the answer's own
    Date, so that our clock does not matter. OpenAI and Azure also send retry-after-ms, Google a
    RetryInfo in the body.
    """
    millis = _parse_number(headers.get("retry-after-ms"))
    if millis is not None:
        return millis / 1000
    value = headers.get("retry-after")
    seconds = _parse_number(value)
    if seconds is not None:
        return seconds
    if value is not None and "date" in headers:
        try:
            wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers["date"])
        except (ValueError, TypeError):
            return None
        return max(0.0, wait.total_seconds())
    delay = _RETRY_DELAY.search(body.decode("utf-8", "replace"))
    return float(delay[1]) if delay else None


def _parse_number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def _classify_error(call: FailedCall, status: int, words: str, wait: float | None) -> ModelError:
    who = call.full_name
    quoted = _quote(call, words)
    # Google words an ordinary limit per minute as a matter of plan and billing; only the code
    # tells.
    if (_MONEY.search(words) and 400 <= status < 500) or status == 402:
        return ModelKeyRefused(
            f"{who} requires payment{quoted}. Add credit there, or choose another model."
        )
    if (status in (400, 413, 422, 429) and _OVERFLOW.search(words)) or status == 413:
        return ContextOverflow(
            f"The conversation is too long for {who}{quoted}. Shorten it with /compact, or start "
            "a new one with /start."
        )
    if status in (429, 529) or (status == 503 and wait is not None):
        asks = f"It asks to wait for {_format_span(wait)}; another" if wait else "Another"
        return ModelOverloaded(f"{who} is overloaded{quoted}. {asks} model may answer now.", wait)
    if status == 408 or status >= 500:
        return ModelUnavailable(f"{who} failed with status {status}{quoted}. Try again.", wait)
    if status in (401, 403) or (status == 400 and _KEY.search(words)):
        return ModelKeyRefused(
            f"{who} refused the key{quoted}. Check the key, or choose another model."
        )
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(words)):
        return ModelUnknown(
            f"{who} does not exist there{quoted}. Check the name with `deskhand model "
            "list`, and base_url."
        )
    if 300 <= status < 400:
        return ModelRequestRefused(f"{who} has moved{quoted}. Set base_url to the new address.")
    return ModelRequestRefused(
        f"{who} refused the request with status {status}{quoted}. Sending it again will not "
        "help: change the model or its settings."
    )


def _format_span(seconds: float) -> str:
    """90 -> 2 minutes."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            count = math.ceil(seconds / size)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "a moment"


def _quote(call: FailedCall, words: str) -> str:
    said = call.redact(words)
    return f": {said!r}" if said else ""


def _extract_message(body: bytes) -> str:
    """What a provider says in an error body: `code: message` where the shape is known, else the
    text itself."""
    text = body.decode("utf-8", "replace")
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "" if "<html" in text[:500].lower() else text
    if isinstance(found, list) and found:
        found = found[0]  # Google wraps the object in a list
    if isinstance(found, dict) and "error" in found:
        found = found["error"]
    if not isinstance(found, dict):
        return str(found)
    message = found.get("message") or found.get("detail") or text
    if not isinstance(message, str):
        message = text
    values = [found.get(key) for key in ("code", "type", "status")]
    named = [value for value in values if isinstance(value, str)]
    return ": ".join([*named[:1], message])


def _parse_status(body: bytes) -> int:
    """The HTTP status that an error object inside a stream stands for; 500 where it does not
    say."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 500
    if isinstance(found, dict) and isinstance(found.get("error"), dict):
        found = found["error"]
    if not isinstance(found, dict):
        return 500
    for key in ("code", "status", "type"):
        value = found.get(key)
        if isinstance(value, str):
            value = int(value) if value.isdecimal() else _STATUS_OF_TYPE.get(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return 400 if _OVERFLOW.search(body.decode("utf-8", "replace")) else 500
