"""How often a host is asked: with a pause in between, and not at all while it has asked us to
wait."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from ..types.clock import Clock
from ..types.errors import NetError

MAX_HOSTS = 1000
"""So many hosts are remembered, those that were asked last."""
LONGEST_WAIT_S = 600.0
"""A host that asks for more than this is asked again after it: nobody is locked out by a header."""
QUEUE_S = 10.0


class HostRateLimiter:
    """What each host may be asked, and when, by the clock that nobody sets."""

    def __init__(self) -> None:
        self._free: OrderedDict[str, float] = OrderedDict()
        self._asked_to_wait: OrderedDict[str, float] = OrderedDict()

    def reserve_delay_s(self, host: str, clock: Clock, pause_s: float) -> float:
        """How long to wait before `host` is asked; the place in the queue is taken with that.
        Raises NetError."""
        self.check(host, clock)
        now = clock.monotonic()
        at = max(now, self._free.get(host, now))
        if at - now > QUEUE_S:
            raise NetError(
                f"too many requests to {host} at once: fetch fewer of its pages, or try again "
                "later."
            )
        _put_time(self._free, host, at + pause_s)
        return at - now

    def check(self, host: str, clock: Clock) -> None:
        """Raise NetError while the host wants to be left alone."""
        left_s = self._asked_to_wait.get(host, -math.inf) - clock.monotonic()
        if left_s > 0:
            raise NetError(
                f"{host} asked to wait: try again in {left_s:.0f} s, or use another address."
            )

    def record_retry_after(self, host: str, clock: Clock, headers: Mapping[str, str]) -> float:
        """Keep what a host said in `Retry-After`, which may be seconds or a date; returns the
        seconds. A date counts from the answer's own, so that our clock does not matter."""
        asked_s = _parse_retry_after(headers, clock.now())
        wait = min(max(asked_s, 0.0), LONGEST_WAIT_S)
        if wait:
            _put_time(self._asked_to_wait, host, clock.monotonic() + wait)
        return wait


def _parse_retry_after(headers: Mapping[str, str], now: float) -> float:
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:12])
    until = _parse_http_date(text)
    if until is None:
        return 0.0
    theirs = _parse_http_date(headers.get("date", "").strip())
    return until - (now if theirs is None else theirs)


def _parse_http_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text[:100]).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _put_time(times: OrderedDict[str, float], host: str, at: float) -> None:
    times[host] = at
    times.move_to_end(host)
    if len(times) > MAX_HOSTS:
        times.popitem(last=False)
