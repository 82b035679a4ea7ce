"""The tool `cron`: a time, and what is said or done then, in the chat where it was asked for."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ..tools.base import Context, Done, Outcome, Spec, done
from ..tools.base import own as own_label
from ..tools.define import decode_arguments, schema
from ..types.effects import Effect
from ..types.errors import ConfigError, Refused, ToolError
from ..types.identity import OWN_SURFACES, Address
from ..types.jobs import CHAT, ISOLATED, Job, JobView
from ..types.labels import join_labels
from ..types.messages import clean_text
from .per_person import OwnJobs, next_run_times
from .text import check_zone, describe_job, describe_timing, format_time, label_of_jobs
from .triggers.spec import parse_duration
from .using import Using

NAME = "cron"
Mode = Literal["add", "list", "remove", "update"]


class CronArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the model says. What is not said stays as it is, or is as usual."""

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
    """One for all agents."""

    def __init__(self, using: Using | None) -> None:
        self._using = using
        self.effects: tuple[Effect, ...] = ("none", "local_write", "send_other")
        described = schema(CronArguments)
        for name, meaning in _DESCRIPTIONS.items():
            described["properties"][name]["description"] = meaning
        description = (
            "Say or do something later or on a schedule: reminders and recurring work. "
            "It acts in the name of the person who asks, and the answer comes to this chat."
        )
        self.spec = Spec(NAME, description, described, "local_write", "never")

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            given = decode_arguments(arguments, CronArguments, NAME)
        except ToolError:
            return "local_write"
        if given.mode == "list":
            return "none"
        elsewhere = given.mode != "remove" and _resolve_address(given, address) != address
        return "send_other" if elsewhere else "local_write"

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, CronArguments, NAME)
        if self._using is None:
            raise ToolError(
                "jobs are kept where Deskhand runs: start it with `deskhand serve` or `deskhand`"
            )
        try:
            return await self._run_mode(given, context, self._using)
        except (ConfigError, Refused) as error:
            raise ToolError(str(error)) from error

    async def _run_mode(self, given: CronArguments, context: Context, using: Using) -> Done:
        own = using.jobs
        who = context.principal
        zone = using.zone()
        match given.mode:
            case "list":
                found = [view for view in await own.list_jobs(who) if not view.builtin]
                said = "\n".join(describe_job(view, zone) for view in found) or "There are no jobs."
                return done(said, label_of_jobs(found, context))
            case "remove":
                name = _require_job_id(given)
                await own.remove(who, name)
                return done(
                    (
                        f"ok, {name} is removed; a person brings it back with `deskhand jobs "
                        f"undo {name}`"
                    ),
                    own_label(context),
                )
            case "add":
                view = await own.create(
                    who, await self._make_job(given, context, using), context.address
                )
            case "update":
                view = await own.change(
                    who, await self._edit_job(given, context, own, zone), context.address
                )
        return done(
            await self._render_confirmation(view, using),
            join_labels((own_label(context), view.label)),
        )

    async def _make_job(self, given: CronArguments, context: Context, using: Using) -> Job:
        message = clean_text(given.message).strip()
        if not message:
            raise ToolError("say in `message` what is to be said or done")
        if not given.schedule_expr.strip() and given.schedule_interval_ms is None:
            raise ToolError(
                f"say when: schedule_mode and schedule_expr ({_DESCRIPTIONS['schedule_expr']})"
            )
        zone = check_zone(given.schedule_tz.strip()) if given.schedule_tz.strip() else ""
        schedule = _format_schedule(given, context.clock.now())
        once = schedule.startswith("at ")
        to = _resolve_address(given, context.address)
        job = Job(
            await using.jobs.free_name(given.name or message),
            message,
            schedule=schedule,
            timezone=zone,
            agent=context.agent,
            kind="deliver" if given.deliver else "prompt",
            session=_session_mode(to),
            to=to,
            delete_after_run=once if given.delete_after_run is None else given.delete_after_run,
            enabled=given.enabled is not False,
        )
        return _require_upcoming(job, using.zone(), context.clock.now())

    async def _edit_job(
        self, given: CronArguments, context: Context, own: OwnJobs, zone: str
    ) -> Job:
        view = await own.get(context.principal, _require_job_id(given))
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
        return _require_upcoming(job, zone, context.clock.now()) if "schedule" in changes else job

    async def _render_confirmation(self, view: JobView, using: Using) -> str:
        job = view.job
        zone = using.zone()
        if job is None:
            return f"{view.name} is written, and cannot run: {view.problem}"
        come = (
            view.next_at
            if view.next_at is not None
            else next(iter(next_run_times(job, zone, using.now(), 1)), None)
        )
        local = job.timezone or zone
        following = f"next: {format_time(come, local)} ({local})" if job.enabled else "it is off"
        return (
            f"ok, {view.name}: {describe_timing(job, zone)}; {following}. "
            f"{(await using.forecast(job)).summary}"
        )


def _require_job_id(given: CronArguments) -> str:
    name = given.job_id.strip() or given.name.strip()
    if not name:
        raise ToolError("say in `job_id` which one; mode=list shows them")
    return name


def _resolve_address(given: CronArguments, here: Address) -> Address:
    """Where the answer goes. Raises ToolError where the chat is missing."""
    channel = given.channel.strip() or here.channel
    chat = given.chat_id.strip()
    if channel == here.channel and chat in ("", here.chat):
        return here
    if not chat:
        raise ToolError(f"say in `chat_id` to which chat of {channel!r}")
    return Address(channel, here.account if channel == here.channel else "", chat)


def _session_mode(to: Address) -> str:
    """Each run is a conversation of its own, whose answer is sent to that chat. Where people read
    answers from the log of their conversation nothing is sent, so there it is that conversation
    which goes on."""
    return CHAT if to.channel in OWN_SURFACES else ISOLATED


def _format_schedule(given: CronArguments, now: float) -> str:
    """In our words. Raises ToolError."""
    expr = given.schedule_expr.strip()
    ms = given.schedule_interval_ms
    mode = given.schedule_mode or (
        "every" if ms is not None else "at" if expr.lower().startswith("in ") else ""
    )
    after = parse_duration(
        re.sub(r"^(in|every)\s+", "", expr, flags=re.IGNORECASE).replace(" ", "")
    )
    match mode:
        case "every":
            seconds = ms / 1000 if ms is not None else after
            if seconds is None or not 1 <= seconds <= 366 * 86_400:
                raise ToolError(
                    "say how often: schedule_interval_ms, or schedule_expr such as 30m, 2h or 1d"
                )
            return f"every {seconds * 1000:.0f}ms from {_format_timestamp(now)}"
        case "at":
            if ms is not None or after is not None:
                return (
                    f"at {_format_timestamp(now + (ms / 1000 if ms is not None else after or 0.0))}"
                )
            return f"at {expr.removeprefix('at ')}"
        case _:
            return expr


def _format_timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _require_upcoming(job: Job, zone: str, now: float) -> Job:
    """Raises ToolError where it would never run."""
    if (
        job.resolve_schedule(zone) is not None
        and job.schedule != "startup"
        and not next_run_times(job, zone, now, 1)
    ):
        here = job.timezone or zone
        raise ToolError(
            f"that time has passed: {job.schedule!r}; it is {format_time(now, here)} ({here}) now"
        )
    return job
