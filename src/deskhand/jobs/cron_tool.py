"""The tool `cron`: reminders and recurring work, answered in the chat where it was asked for."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ..tools.base import Context, Done, Outcome, Spec, make_result
from ..tools.base import call_label as own_label
from ..tools.define import decode_arguments, make_schema
from ..types.effects import Effect
from ..types.errors import ConfigError, Refused, ToolError
from ..types.identity import OWN_SURFACES, Address
from ..types.jobs import CHAT, ISOLATED, Job, JobView
from ..types.labels import join_labels
from ..types.messages import clean_text
from .jobs_api import JobsApi
from .text import (
    check_zone,
    describe_job,
    describe_timing,
    format_time,
    label_of_jobs,
    next_run_times,
)
from .triggers.spec import parse_duration

NAME = "cron"
Mode = Literal["add", "list", "remove", "update"]


class CronArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a call. A field that is left out keeps its value, or its default."""

    mode: Mode
    job_id: str = ""
    name: str = ""
    schedule_mode: Literal["", "at", "every", "cron"] = ""
    schedule_expr: str = ""
    schedule_interval_ms: int | None = None
    schedule_tz: str = ""
    message: str = ""
    deliver: bool | None = None
    channel: str = ""
    chat_id: str = ""
    delete_after_run: bool | None = None
    enabled: bool | None = None


_DESCRIPTIONS = {
    "job_id": "which one, for remove and update: its name in the list",
    "name": "a short name for a new one",
    "schedule_expr": (
        "at: once, 2027-01-31T17:00 or `in 20m`; every: 30m, 2h or 1d; cron: five fields, as 0 "
        "9 * * 1-5"
    ),
    "schedule_interval_ms": "every: milliseconds, instead of schedule_expr",
    "schedule_tz": "time zone such as Europe/Berlin; the person's own where it is not said",
    "message": "what is said then, or what you are to do then, with all that you must know for it: you "  # noqa: E501
    "do not see this "
    "conversation then",
    "deliver": (
        "true: the message is said as it is, and nobody thinks; false: you are asked to do it, "
        "and answer here"
    ),
    "channel": "another channel for the answer, with chat_id",
    "chat_id": "another chat for the answer; it goes here where that is not said",
    "delete_after_run": "gone when it has run; usual for `at`",
    "enabled": "false: it is kept, and does not run",
}


class CronTool:
    """The tool for all agents. Without `jobs` it answers that no Deskhand runs."""

    def __init__(self, jobs: JobsApi | None) -> None:
        self._jobs = jobs
        self.effects: tuple[Effect, ...] = ("none", "local_write", "send_other")
        described = make_schema(CronArguments)
        for name, meaning in _DESCRIPTIONS.items():
            described["properties"][name]["description"] = meaning
        description = (
            "Say or do something later or on a schedule: reminders and recurring work. "
            "It acts in the name of the person who asks, and the answer comes to this chat."
        )
        self.spec = Spec(NAME, description, described, "local_write", "never", hint="reminders")

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            given = decode_arguments(arguments, CronArguments, NAME)
        except ToolError:
            return "local_write"
        if given.mode == "list":
            return "none"
        if given.mode != "remove" and _resolve_address(given, address) != address:
            return "send_other"
        return "local_write"

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, CronArguments, NAME)
        if self._jobs is None:
            raise ToolError(
                "jobs are kept where Deskhand runs: start it with `deskhand serve` or `deskhand`"
            )
        try:
            return await self._run_mode(given, context, self._jobs)
        except (ConfigError, Refused) as error:
            raise ToolError(str(error)) from error

    async def _run_mode(self, given: CronArguments, context: Context, jobs: JobsApi) -> Done:
        who = context.principal
        match given.mode:
            case "list":
                found = [view for view in await jobs.list_jobs(who) if not view.builtin]
                text = "\n".join(describe_job(view, jobs.zone) for view in found)
                return make_result(text or "There are no jobs.", label_of_jobs(found, context))
            case "remove":
                name = _require_job_id(given)
                await jobs.remove(who, name)
                text = (
                    f"ok, {name} is removed; a person brings it back with `deskhand jobs undo "
                    f"{name}`"
                )
                return make_result(text, own_label(context))
            case "add":
                job = await self._make_job(given, context, jobs)
                view = await jobs.create(who, job, context.address)
            case "update":
                job = await self._edit_job(given, context, jobs)
                view = await jobs.change(who, job, context.address)
        text = await self._render_confirmation(view, jobs)
        return make_result(text, join_labels((own_label(context), view.label)))

    async def _make_job(self, given: CronArguments, context: Context, jobs: JobsApi) -> Job:
        message = clean_text(given.message).strip()
        if not message:
            raise ToolError("say in `message` what is to be said or done")
        if not given.schedule_expr.strip() and given.schedule_interval_ms is None:
            raise ToolError(
                f"say when: schedule_mode and schedule_expr ({_DESCRIPTIONS['schedule_expr']})"
            )
        zone = given.schedule_tz.strip()
        if zone:
            check_zone(zone)
        schedule = _format_schedule(given, context.clock.now())
        delete_after_run = given.delete_after_run
        if delete_after_run is None:
            delete_after_run = schedule.startswith("at ")
        to = _resolve_address(given, context.address)
        job = Job(
            await jobs.free_name(given.name or message),
            message,
            schedule=schedule,
            timezone=zone,
            agent=context.agent,
            kind="deliver" if given.deliver else "prompt",
            session=_session_mode(to),
            to=to,
            delete_after_run=delete_after_run,
            enabled=given.enabled is not False,
        )
        return _require_upcoming(job, jobs.zone, context.clock.now())

    async def _edit_job(self, given: CronArguments, context: Context, jobs: JobsApi) -> Job:
        view = await jobs.get(context.principal, _require_job_id(given))
        if view.job is None:
            raise ToolError(f"{view.name!r} cannot be changed: {view.problem}", view.label)
        changes: dict[str, Any] = {}
        if given.schedule_expr.strip() or given.schedule_interval_ms is not None:
            changes["schedule"] = _format_schedule(given, context.clock.now())
        if given.schedule_tz.strip():
            changes["timezone"] = check_zone(given.schedule_tz.strip())
        if message := clean_text(given.message).strip():
            changes["prompt"] = message
        if given.deliver is not None:
            changes["kind"] = "deliver" if given.deliver else "prompt"
            changes["to"] = view.job.to or context.address
        if given.channel or given.chat_id:
            to = _resolve_address(given, context.address)
            changes["to"] = to
            changes["session"] = _session_mode(to)
        for key in ("delete_after_run", "enabled"):
            if (value := getattr(given, key)) is not None:
                changes[key] = value
        if not changes:
            raise ToolError(
                "say what is to be changed: the schedule, the message, deliver, or where it goes"
            )
        job = replace(view.job, **changes)
        if "schedule" in changes:
            _require_upcoming(job, jobs.zone, context.clock.now())
        return job

    async def _render_confirmation(self, view: JobView, jobs: JobsApi) -> str:
        job = view.job
        if job is None:
            return f"{view.name} is written, and cannot run: {view.problem}"
        zone = jobs.zone
        local = job.timezone or zone
        next_at = view.next_at
        if next_at is None:
            next_at = next(iter(next_run_times(job, zone, jobs.now(), 1)), None)
        when = f"next: {format_time(next_at, local)} ({local})" if job.enabled else "it is off"
        forecast = (await jobs.forecast(job)).summary
        return f"ok, {view.name}: {describe_timing(job, zone)}; {when}. {forecast}"


def _require_job_id(given: CronArguments) -> str:
    name = given.job_id.strip() or given.name.strip()
    if not name:
        raise ToolError("say in `job_id` which one; mode=list shows them")
    return name


def _resolve_address(given: CronArguments, here: Address) -> Address:
    """Where the answer goes. Raises ToolError when the chat is missing."""
    channel = given.channel.strip() or here.channel
    chat = given.chat_id.strip()
    if channel == here.channel and chat in ("", here.chat):
        return here
    if not chat:
        raise ToolError(f"say in `chat_id` to which chat of {channel!r}")
    return Address(channel, here.account if channel == here.channel else "", chat)


def _session_mode(to: Address) -> str:
    """Each run has a conversation of its own, and its answer is sent to the chat. On the page and
    in the terminal nothing is sent: there the run continues the conversation that people read."""
    return CHAT if to.channel in OWN_SURFACES else ISOLATED


def _format_schedule(given: CronArguments, now: float) -> str:
    """The schedule as JOB.md has it. Raises ToolError."""
    expr = given.schedule_expr.strip()
    seconds = parse_duration(
        re.sub(r"^(in|every)\s+", "", expr, flags=re.IGNORECASE).replace(" ", "")
    )
    if given.schedule_interval_ms is not None:
        seconds = given.schedule_interval_ms / 1000
    match _schedule_mode(given):
        case "every":
            if seconds is None or not 1 <= seconds <= 366 * 86_400:
                raise ToolError(
                    "say how often: schedule_interval_ms, or schedule_expr such as 30m, 2h or 1d"
                )
            return f"every {seconds * 1000:.0f}ms from {_format_timestamp(now)}"
        case "at" if seconds is not None:
            return f"at {_format_timestamp(now + seconds)}"
        case "at":
            return f"at {expr.removeprefix('at ')}"
        case _:
            return expr


def _schedule_mode(given: CronArguments) -> str:
    """The mode that is named, or the one that the other arguments imply."""
    if given.schedule_mode:
        return given.schedule_mode
    if given.schedule_interval_ms is not None:
        return "every"
    return "at" if given.schedule_expr.strip().lower().startswith("in ") else ""


def _format_timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _require_upcoming(job: Job, zone: str, now: float) -> Job:
    """The same job. Raises ToolError when its time has passed."""
    is_timed = job.resolve_schedule(zone) is not None and job.schedule != "startup"
    if is_timed and not next_run_times(job, zone, now, 1):
        local = job.timezone or zone
        raise ToolError(
            f"that time has passed: {job.schedule!r}; it is {format_time(now, local)} ({local}) now"
        )
    return job
