"""What tools, the API and commands are given of jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from ..types.jobs import Job
from .per_person import OwnJobs
from .text import JobForecast


class Using(msgspec.Struct, frozen=True):
    """`own` is the way to them, `zone` that of the configuration, `agent` the one that answers
    where none is named, `forecast` what a job will come to."""

    jobs: OwnJobs
    zone: Callable[[], str]
    now: Callable[[], float]
    agent: Callable[[], str]
    forecast: Callable[[Job], Awaitable[JobForecast]]
