"""The tool `manage_job`: jobs as their files describe them, and jobs made from blueprints."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread
import msgspec
import yaml
from msgspec.structs import replace

from ..tools.base import Context, Done, Outcome, Spec, make_result
from ..tools.base import call_label as own_label
from ..tools.define import decode_arguments, make_schema
from ..types.effects import Effect
from ..types.errors import ConfigError, JobInvalid, Refused, ToolError
from ..types.identity import Address
from ..types.jobs import CHAT, Job, JobView, is_contained_path
from ..types.labels import join_labels
from .blueprints import BLUEPRINTS, Blueprint, describe_blueprint, fill_blueprint, get_blueprint
from .job_file import parse_job
from .jobs_api import JobsApi
from .text import describe_job, describe_timing, format_time, label_of_jobs, next_run_times

NAME = "manage_job"
Action = Literal["list", "create", "update", "delete", "enable", "disable", "blueprints"]
READ_ONLY_ACTIONS = frozenset({"list", "blueprints"})
MAX_LISTED = 200


class ManageJobArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a call. `config` is the whole JOB.md."""

    action: Action
    name: str = ""
    config: str | dict[str, Any] = ""
    blueprint: str = ""
    slots: dict[str, str] = {}


_DESCRIPTIONS = {
    "action": "blueprints: lists those that are ready but for a few blanks",
    "name": "the job: letters, digits, - and _",
    "config": (
        "for create and update: the whole JOB.md. Front matter between lines of ---: "
        "schedule (a cron line, `every "
        "30m`, `daily 09:00`, `at 2027-01-31 17:00`), on (events: `file inbox`, `page URL "
        "1h`, `webhook`, `mqtt "
        "TOPIC`, `session-end`), description, agent, model, hooks (prerun, postrun), to "
        "(channel:chat), tokens, "
        "enabled. Below it: what is to be done. Without `to` the answer goes nowhere, "
        "unless you send it"
    ),
    "blueprint": "for create, instead of config: the name of a blueprint",
    "slots": "its blanks: name and value",
}


class ManageJob:
    """The tool for all agents. `folder` holds the folders of jobs. Without `jobs` it answers that
    no Deskhand runs."""

    def __init__(self, jobs: JobsApi | None, folder: Path) -> None:
        self._jobs = jobs
        self._folder = folder
        self.effects: tuple[Effect, ...] = ("none", "local_write", "send_other")
        described = make_schema(ManageJobArguments)
        for name, meaning in _DESCRIPTIONS.items():
            described["properties"][name]["description"] = meaning
        description = (
            "Manage jobs: what is done on a schedule, or when something happens, without "
            "anybody asking. A job acts in "
            "the name of the person who asks for it. For a plain reminder use `cron`."
        )
        self.spec = Spec(NAME, description, described, "local_write", "never", hint="triggers")

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            given = decode_arguments(arguments, ManageJobArguments, NAME)
            if given.action in READ_ONLY_ACTIONS:
                return "none"
            to = None
            if given.action in ("create", "update") and given.config:
                to = _parse_config(given, "UTC").to
        except (ToolError, ConfigError):
            return "local_write"
        return "local_write" if to is None or to == address else "send_other"

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, ManageJobArguments, NAME)
        if self._jobs is None:
            raise ToolError(
                "jobs are kept where Deskhand runs: start it with `deskhand serve` or `deskhand`"
            )
        try:
            return await self._run_action(given, context, self._jobs)
        except (ConfigError, Refused) as error:
            raise ToolError(str(error)) from error

    async def _run_action(self, given: ManageJobArguments, context: Context, jobs: JobsApi) -> Done:
        who = context.principal
        name = given.name.strip()
        match given.action:
            case "list":
                return _list(await jobs.list_jobs(who), context, jobs.zone)
            case "blueprints":
                return make_result(
                    "\n".join(map(describe_blueprint, BLUEPRINTS)), own_label(context)
                )
            case "create":
                job = await self._new_job(given, context, jobs)
                view = await jobs.create(who, job, context.address)
            case "update":
                view = await jobs.change(who, _parse_config(given, jobs.zone), context.address)
            case "delete":
                await jobs.remove(who, _require_name(name))
                text = (
                    f"ok, {name} is removed; a person brings it back with `deskhand jobs undo "
                    f"{name}`"
                )
                return make_result(text, own_label(context))
            case "enable" | "disable":
                view = await jobs.set_enabled(who, _require_name(name), given.action == "enable")
        text = await render_confirmation(view, jobs)
        if given.action in ("create", "update") and view.job is not None:
            text += await anyio.to_thread.run_sync(
                write_hook_stubs, self._folder / view.name, view.job
            )
        return make_result(text, join_labels((own_label(context), view.label)))

    async def _new_job(self, given: ManageJobArguments, context: Context, jobs: JobsApi) -> Job:
        if given.blueprint:
            job = job_from_arguments(given, context)
        else:
            job = _parse_config(given, jobs.zone)
        name = job.name or await jobs.free_name(given.blueprint)
        return replace(job, name=name, agent=job.agent or context.agent)


def _list(views: Sequence[JobView], context: Context, zone: str) -> Done:
    shown = views[:MAX_LISTED]
    text = "\n".join(describe_job(view, zone) for view in shown)
    if len(views) > MAX_LISTED:
        text += f"\n… and {len(views) - MAX_LISTED} more"
    return make_result(text or "There are no jobs.", label_of_jobs(shown, context))


def _require_name(name: str) -> str:
    if not name:
        raise ToolError("say in `name` which one; action=list shows them")
    return name


def _parse_config(given: ManageJobArguments, zone: str) -> Job:
    """Raises ToolError, JobInvalid."""
    name = _require_name(given.name.strip())
    if not given.config:
        raise ToolError(f"say in `config` what the job is: {_DESCRIPTIONS['config']}")
    if isinstance(given.config, dict):
        front = dict(given.config)
        body = str(front.pop("prompt", front.pop("body", "")))
        text = f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n\n{body}"
        return parse_job(text, name, zone).job
    return parse_job(given.config, name, zone).job


def job_from_arguments(given: ManageJobArguments, context: Context) -> Job:
    """The job whose answers come to this chat. Raises JobInvalid."""
    return job_from_blueprint(
        get_blueprint(given.blueprint), given.slots, given.name.strip(), context.address
    )


def job_from_blueprint(
    of: Blueprint, slots: Mapping[str, str], name: str, to: Address | None
) -> Job:
    """The job that this blueprint makes with these slots. Without a `name` it still needs one.
    Raises JobInvalid."""
    filled = fill_blueprint(of, slots)
    if filled.deliver and to is None:
        raise JobInvalid(
            "say where it is said: `--to telegram:12345`, or make it on the page or in the "
            "chat itself"
        )
    return Job(
        name,
        filled.prompt,
        filled.description,
        filled.schedule,
        on=filled.on,
        overlap="queue_one" if filled.on else "skip",
        kind="deliver" if filled.deliver else "prompt",
        session=CHAT if to is not None else "isolated",
        to=to,
        delete_after_run=filled.once,
    )


async def render_confirmation(view: JobView, jobs: JobsApi) -> str:
    """What became of the job, when it runs next, and what it will use."""
    job = view.job
    if job is None:
        return f"{view.name} is written, and cannot run: {view.problem}"
    zone = jobs.zone
    local = job.timezone or zone
    next_at = view.next_at
    if next_at is None:
        next_at = next(iter(next_run_times(job, zone, jobs.now(), 1)), None)

    words = [f"{view.name}: {describe_timing(job, zone)}"]
    if not job.enabled:
        words.append("it is off")
    elif next_at is not None:
        words.append(f"next: {format_time(next_at, local)} ({local})")
    return f"ok, {'; '.join(words)}. {(await jobs.forecast(job)).summary}"


def write_hook_stubs(folder: Path, job: Job) -> str:
    """Write a script that always succeeds for each hook that has none. Never overwrites a file, and
    never follows a link. Returns a sentence for the model."""
    scripts = (job.hooks.prerun, job.hooks.postrun)
    wanted = [path for path in scripts if path and is_contained_path(path)]
    made = [path for path in wanted if _write_stub(folder, path)]
    if not made:
        return ""
    return f" Made {' and '.join(made)}, which does nothing so far: a person fills it in."


def _write_stub(folder: Path, path: str) -> bool:
    """True when it was written, False when there is a file already. Raises JobInvalid."""
    *above, name = [part for part in path.split("/") if part not in ("", ".")]
    at = os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for part in above:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=at)
            at, before = os.open(part, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at), at
            os.close(before)
        try:
            file = os.open(
                name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o700, dir_fd=at
            )
        except FileExistsError:
            return False
        with os.fdopen(file, "w") as script:
            script.write("#!/bin/sh\nexit 0\n")
        return True
    except OSError as error:
        raise JobInvalid(f"the script {path!r} cannot be made: {error.strerror}") from error
    finally:
        os.close(at)
