"""Jobs with everything that is known of them: file, schedule, last run, counters, and labels."""

from __future__ import annotations

import anyio.to_thread
from msgspec.structs import replace

from ..assembly.host import Host
from ..gateway.name_labels import label_of_person
from ..types.jobs import Counters, Job, JobView
from ..types.labels import LOCAL, Label
from ..types.marked_texts import mark_text
from ..types.schedules import next_due_after
from .files import JobFile, JobFiles
from .ledger import JobRecord, job_records, last_result, last_runs, result_labels
from .pause import pause_reason
from .principals import find_agent_problem


async def load_views(host: Host, files: JobFiles) -> list[JobView]:
    """All jobs: builtin ones, those with a file, and those whose file cannot be used."""
    found = await anyio.to_thread.run_sync(files.scan_with_builtins)
    records = await job_records(host.store)
    last = await last_runs(host.store)
    paused = await pause_reason(host)
    results = await result_labels(host.store)
    labels: dict[str, Label] = {}

    views = []
    for file in found.values():
        view = _make_view(host, file, records.get(file.name), files.zone)
        run = last.get(file.name)
        if view.job is None:
            label = Label(source=mark_text("the job {name}").format(name=view.name))
        else:
            person = view.job.person
            if person not in labels:
                labels[person] = await label_of_person(host.store, person)
            label = labels[person]
        views.append(
            replace(
                view,
                paused=paused,
                last=run,
                last_result=last_result(run),
                label=label,
                said=results.get(view.name, LOCAL),
            )
        )
    return views


def _make_view(host: Host, file: JobFile, record: JobRecord | None, zone: str) -> JobView:
    job = file.job
    problem = file.problem
    if job is not None and not problem:
        problem = find_agent_problem(host.settings(), job)
    seen_at = record.seen_at if record is not None else 0.0
    return JobView(
        name=file.name,
        job=job,
        problem=problem,
        notes=file.notes,
        builtin=file.builtin,
        next_at=_next_at(job, zone, max(host.clock.now(), seen_at)),
        counters=record.counters if record is not None else Counters(),
    )


def _next_at(job: Job | None, zone: str, after: float) -> float | None:
    if job is None or not job.enabled:
        return None
    schedule = job.resolve_schedule(zone)
    return next_due_after(schedule, after) if schedule is not None else None
