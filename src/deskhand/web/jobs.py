"""Jobs: what there is, what became of it, and making, changing and running them. And the way in for
webhooks."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..types.errors import Refused
from .errors import HttpProblem
from .job_views import (
    BlueprintView,
    JobDetail,
    JobDraft,
    JobRowView,
    JobText,
    JobUndone,
    Preview,
    RunView,
    Scheduler,
    Started,
    Taken,
)
from .routing import Call, Endpoint, read_limited

log = logging.getLogger(__name__)

HOOK_BYTES = 256_000
HOOK_S = 10.0
WEBHOOK_REFUSED = (
    "This webhook is closed to this request: there is none of that name, it has no secret, "
    "or the signature does not "
    "fit. Whoever owns it finds out which with: deskhand jobs show NAME"
)


class LimitQuery(msgspec.Struct, frozen=True):
    """The latest `limit` of them."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 20


async def list_jobs(call: Call) -> list[JobRowView]:
    return await call.web.jobs.list_jobs(call.principal)


async def list_blueprints(call: Call) -> list[BlueprintView]:
    return call.web.jobs.blueprints()


async def preview(call: Call) -> Preview:
    return await call.web.jobs.preview(call.principal, call.body)


async def create_job(call: Call) -> JobDetail:
    return await call.web.jobs.create(call.principal, call.body)


async def get_job(call: Call) -> JobDetail:
    return await call.web.jobs.get_job(call.principal, call.path("name"))


async def change(call: Call) -> JobDetail:
    return await call.web.jobs.change(call.principal, call.path("name"), call.body.text)


async def remove(call: Call) -> None:
    await call.web.jobs.remove(call.principal, call.path("name"))


async def undo(call: Call) -> JobUndone:
    return await call.web.jobs.undo(call.principal, call.path("name"))


async def redo(call: Call) -> JobUndone:
    return await call.web.jobs.undo(call.principal, call.path("name"), again=True)


async def run(call: Call) -> Started:
    return Started(await call.web.jobs.run(call.principal, call.path("name")))


async def enable(call: Call) -> JobRowView:
    return await call.web.jobs.set_enabled(call.principal, call.path("name"), True)


async def disable(call: Call) -> JobRowView:
    return await call.web.jobs.set_enabled(call.principal, call.path("name"), False)


async def list_runs(call: Call) -> list[RunView]:
    return await call.web.jobs.runs(call.principal, call.path("name"), call.query.limit)


async def get_scheduler(call: Call) -> Scheduler:
    return await call.web.jobs.scheduler_status()


async def resume(call: Call) -> Scheduler:
    return await call.web.jobs.resume(call.principal)


async def handle_webhook(call: Call) -> Taken:
    """What was sent, signed by its sender. A stranger learns nothing of which jobs there are."""
    body = await read_limited(call.request, HOOK_BYTES, HOOK_S)
    headers = {name.lower(): value for name, value in call.request.headers.items()}
    try:
        return Taken(new=await call.web.jobs.handle_webhook(call.path("name"), headers, body))
    except Refused as error:
        log.info("a webhook was refused: %s", error)
        raise HttpProblem(401, "not_signed", WEBHOOK_REFUSED) from error


_T = "jobs"
_ONE = "/api/jobs/{name}"


def _job_endpoint(
    method: Any, rest: str, needs: Any, handler: Any, summary: str, **more: Any
) -> Endpoint:
    return Endpoint(method, f"{_ONE}{rest}", needs, handler, summary, tag=_T, **more)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/jobs",
        "read",
        list_jobs,
        "List your jobs; owners see all",
        returns=list[JobRowView],
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/api/jobs",
        "chat",
        create_job,
        "Create a job",
        body=JobDraft,
        returns=JobDetail,
        status=201,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/blueprints",
        "read",
        list_blueprints,
        "List job blueprints",
        returns=list[BlueprintView],
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/api/blueprints/preview",
        "chat",
        preview,
        "Preview the job of a filled-in blueprint",
        body=JobDraft,
        returns=Preview,
        tag=_T,
    ),
    _job_endpoint(
        "GET", "", "read", get_job, "Get a job, its file and its forecast", returns=JobDetail
    ),
    _job_endpoint(
        "PUT", "", "chat", change, "Replace the file of a job", body=JobText, returns=JobDetail
    ),
    _job_endpoint("DELETE", "", "chat", remove, "Remove a job"),
    _job_endpoint(
        "POST",
        "/undo",
        "chat",
        undo,
        "Undo the last change of a job",
        returns=JobUndone,
    ),
    _job_endpoint("POST", "/redo", "chat", redo, "Undo the last undo of a job", returns=JobUndone),
    _job_endpoint("POST", "/run", "chat", run, "Run a job now", returns=Started, status=202),
    _job_endpoint("POST", "/enable", "chat", enable, "Enable a job", returns=JobRowView),
    _job_endpoint("POST", "/disable", "chat", disable, "Disable a job", returns=JobRowView),
    _job_endpoint(
        "GET",
        "/runs",
        "read",
        list_runs,
        "List the runs of a job, the latest first",
        query=LimitQuery,
        returns=list[RunView],
    ),
    Endpoint(
        "GET",
        "/api/scheduler",
        "read",
        get_scheduler,
        "Get whether jobs are paused, and why",
        returns=Scheduler,
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/api/scheduler/resume",
        "admin",
        resume,
        "Let jobs run again",
        returns=Scheduler,
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/api/hooks/{name}",
        "public",
        handle_webhook,
        "Start a job by a webhook, signed as Standard Webhooks or GitHub do",
        returns=Taken,
        status=202,
        body=bytes,
        raw=True,
        tag=_T,
    ),
)
