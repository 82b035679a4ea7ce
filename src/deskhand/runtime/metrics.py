"""What Prometheus reads: the state of the service in numbers.

Everything is read when it is asked for, so that a turn costs nothing more. Names follow
https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from ..store.base import ModelTotals
from ..store.queries import Counts
from ..supervision.queries import OwedMessages
from ..types.health import Health

TOKEN_KINDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cached_tokens",
    "cache_write": "cache_write_tokens",
}


class Measured(msgspec.Struct, frozen=True):
    """Everything at one moment."""

    health: Health
    counts: Counts
    owed: OwedMessages
    models: Sequence[ModelTotals]
    database_bytes: int


def render_metrics(measured: Measured) -> str:
    """The text format of Prometheus, with what is known of this process."""
    registry = CollectorRegistry()
    registry.register(_House(measured))
    ProcessCollector(registry=registry)
    return generate_latest(registry).decode()


class _House(Collector):
    def __init__(self, measured: Measured) -> None:
        self._measured = measured

    def collect(self) -> Iterator[Metric]:
        yield from _make_metrics(self._measured)
        yield from _model_metrics(self._measured.models)


def _make_metrics(measured: Measured) -> Iterator[Metric]:
    health, counts, owed = measured.health, measured.counts, measured.owed
    yield InfoMetricFamily("deskhand", "What runs.", {"version": health.version})
    parts = GaugeMetricFamily(
        "deskhand_part_up", "Whether a part is well: 1 or 0.", labels=["part"]
    )
    failures = CounterMetricFamily(
        "deskhand_part_restarts", "Restarts of a part since the process began.", labels=["part"]
    )
    for fact in health.facts:
        parts.add_metric([fact.name], float(fact.state == "ok"))
        failures.add_metric([fact.name], fact.restarts)
    yield parts
    yield failures
    yield CounterMetricFamily("deskhand_events", "Events in the log.", counts.events)
    yield GaugeMetricFamily("deskhand_sessions", "Conversations.", counts.sessions)
    yield GaugeMetricFamily(
        "deskhand_open_sessions", "Conversations in which something goes on.", counts.open_sessions
    )
    yield GaugeMetricFamily(
        "deskhand_open_questions", "Approvals and questions that wait for a person.", counts.asks
    )
    yield GaugeMetricFamily(
        "deskhand_given_up_sessions", "Conversations that were given up.", counts.given_up
    )
    yield GaugeMetricFamily("deskhand_outbox_waiting", "Messages to be sent.", owed.count)
    age = max(0.0, health.at - owed.oldest_at) if owed.oldest_at is not None else 0.0
    yield GaugeMetricFamily(
        "deskhand_outbox_oldest_seconds", "How long the oldest of them has waited.", age
    )
    yield GaugeMetricFamily(
        "deskhand_database_bytes", "The size of the SQLite database.", measured.database_bytes
    )


def _model_metrics(models: Sequence[ModelTotals]) -> Iterator[Metric]:
    calls = CounterMetricFamily("deskhand_model_calls", "Calls of models.", labels=["model"])
    tokens = CounterMetricFamily(
        "deskhand_model_tokens",
        "Tokens that models have read and written.",
        labels=["model", "kind"],
    )
    for each in models:
        calls.add_metric([each.model], each.calls)
        for kind, field in TOKEN_KINDS.items():
            tokens.add_metric([each.model, kind], getattr(each, field))
    yield calls
    yield tokens
