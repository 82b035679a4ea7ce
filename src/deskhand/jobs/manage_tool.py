"""The tool `manage_job`: jobs as their files describe them, and those that are ready but for a few
blanks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread
import msgspec
import yaml
from msgspec.structs import replace

from ..tools.base import Context, Done, Outcome, Spec, done
from ..tools.base import own as own_label
from ..tools.define import decode_arguments, schema
from ..types.effects import Effect
from ..types.errors import ConfigError, JobInvalid, Refused, ToolError
from ..types.identity import Address
from ..types.jobs import CHAT, Job, JobView, is_contained_path
from ..types.labels import join_labels
from .blueprints import BLUEPRINTS, Blueprint, describe_blueprint, fill_blueprint, get_blueprint
from .job_file import parse_job
from .per_person import next_run_times
from .text import describe_job, describe_timing, format_time, label_of_jobs
from .using import Using

NAME = "manage_job"
Action = Literal["list", "create", "update", "delete", "enable", "disable", "blueprints"]
READ_ONLY_ACTIONS = frozenset({"list", "blueprints"})
MAX_LISTED = 200


class ManageJobArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the model says. `config` is the whole of JOB.md."""

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
    """One for all agents. `folder` is where the folders of jobs lie."""

    def __init__(self, using: Using | None, folder: Path) -> None:
        self._using = using
        self._folder = folder
        self.effects: tuple[Effect, ...] = ("none", "local_write", "send_other")
        described = schema(ManageJobArguments)
        for name, meaning in _DESCRIPTIONS.items():
            described["properties"][name]["description"] = meaning
        description = (
            "Manage jobs: what is done on a schedule, or when something happens, without "
            "anybody asking. A job acts in "
            "the name of the person who asks for it. For a plain reminder use `cron`."
        )
        self.spec = Spec(NAME, description, described, "local_write", "never")

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            given = decode_arguments(arguments, ManageJobArguments, NAME)
            if given.action in READ_ONLY_ACTIONS:
                return "none"
            to = (
                _parse_config(given, "UTC").to
                if given.action in ("create", "update") and given.config
                else None
            )
        except (ToolError, ConfigError):
            return "local_write"
        return "local_write" if to is None or to == address else "send_other"

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, ManageJobArguments, NAME)
        if self._using is None:
            raise ToolError(
                "jobs are kept where Deskhand runs: start it with `deskhand serve` or `deskhand`"
            )
        try:
            return await self._run_action(given, context, self._using)
        except (ConfigError, Refused) as error:
            raise ToolError(str(error)) from error

    async def _run_action(self, given: ManageJobArguments, context: Context, using: Using) -> Done:
        own = using.jobs
        who = context.principal
        name = given.name.strip()
        match given.action:
            case "list":
                found = await own.list_jobs(who)
                more = f"\n… and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
                shown = "\n".join(describe_job(view, using.zone()) for view in found[:MAX_LISTED])
                return done(
                    f"{shown}{more}" or "There are no jobs.",
                    label_of_jobs(found[:MAX_LISTED], context),
                )
            case "blueprints":
                return done("\n".join(map(describe_blueprint, BLUEPRINTS)), own_label(context))
            case "create":
                job = (
                    job_from_arguments(given, context)
                    if given.blueprint
                    else _parse_config(given, using.zone())
                )
                free = job.name or await own.free_name(given.blueprint)
                view = await own.create(
                    who, replace(job, name=free, agent=job.agent or context.agent), context.address
                )
            case "update":
                view = await own.change(who, _parse_config(given, using.zone()), context.address)
            case "delete":
                await own.remove(who, _require_name(name))
                return done(
                    (
                        f"ok, {name} is removed; a person brings it back with `deskhand jobs "
                        f"undo {name}`"
                    ),
                    own_label(context),
                )
            case "enable" | "disable":
                view = await own.set_enabled(who, _require_name(name), given.action == "enable")
        if given.action in ("create", "update") and view.job is not None:
            scripts = await anyio.to_thread.run_sync(
                write_hook_stubs, self._folder / view.name, view.job
            )
            return done(
                f"{await render_confirmation(view, using)}{scripts}",
                join_labels((own_label(context), view.label)),
            )
        return done(
            await render_confirmation(view, using), join_labels((own_label(context), view.label))
        )


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
    """Its answers come to this chat. Raises JobInvalid."""
    return job_from_blueprint(
        get_blueprint(given.blueprint), given.slots, given.name.strip(), context.address
    )


def job_from_blueprint(
    of: Blueprint, slots: Mapping[str, str], name: str, to: Address | None
) -> Job:
    """The job that a blueprint with these blanks makes; it still needs a name where none is given.
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


async def render_confirmation(view: JobView, using: Using) -> str:
    """What became of it, when it comes next, and what it will cost."""
    job = view.job
    zone = using.zone()
    if job is None:
        return f"{view.name} is written, and cannot run: {view.problem}"
    local = job.timezone or zone
    come = (
        view.next_at
        if view.next_at is not None
        else next(iter(next_run_times(job, zone, using.now(), 1)), None)
    )
    following = (
        "it is off"
        if not job.enabled
        else f"next: {format_time(come, local)} ({local})"
        if come is not None
        else ""
    )
    said = "; ".join(filter(None, (f"{view.name}: {describe_timing(job, zone)}", following)))
    return f"ok, {said}. {(await using.forecast(job)).summary}"


def write_hook_stubs(folder: Path, job: Job) -> str:
    """Write a script that says yes for each hook that has none yet. Never over a file, and never
    through a link."""
    hooks = (job.hooks.prerun, job.hooks.postrun)
    made = [
        path for path in hooks if path and is_contained_path(path) and _write_stub(folder, path)
    ]
    return (
        f" Made {' and '.join(made)}, which does nothing so far: a person fills it in."
        if made
        else ""
    )


def _write_stub(folder: Path, path: str) -> bool:
    """Raises JobInvalid where it cannot be written."""
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
