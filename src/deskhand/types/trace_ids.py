"""The ids of traces and spans, computed from the log alone: the same each time that it is read. As
OpenTelemetry has them, a trace has 32 hexadecimal digits and a span 16."""

from __future__ import annotations

from hashlib import blake2b

import msgspec


class SpanParent(msgspec.Struct, frozen=True):
    """Under which span something happens, and in which trace."""

    trace_id: str
    span_id: str


def make_trace_id(session: str, inbox_id: int) -> str:
    """The trace of the turn that this message opened."""
    return blake2b(f"{session}\0{inbox_id}".encode(), digest_size=16).hexdigest()


def make_span_id(session: str, n: int, what: str = "") -> str:
    """The span of `what` began with event `n`: a call of a tool by its id, the model, or the turn
    itself."""
    return blake2b(f"{session}\0{n}\0{what}".encode(), digest_size=8).hexdigest()
