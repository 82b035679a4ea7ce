"""`deskhand jobs`: what is done without anybody asking, to look at, to make and to change."""

from __future__ import annotations

import secrets
import sys
from base64 import b64encode
from typing import Any

import click
import msgspec

from ..jobs.blueprints import BLUEPRINTS, describe_blueprint, get_blueprint, render_command
from ..jobs.text import format_time
from ..jobs.triggers.signatures import SECRET_PREFIX
from ..jobs.triggers.triggers import webhook_secret_name
from ..runtime.app import App
from ..web.job_views import JobDetail, JobDraft, JobRowView, Preview
from .encoded import to_json
from .jobs_running import COMMANDS, warn_if_no_driver, with_jobs
from .plain import escape_control, shorten_line
from .run import ME, USAGE, Listing, config_option, fail, json_option, limit_option, load_settings
from .table import print_table
from .temporary_app import with_app

COMMAND_ALIASES = {
    "info": "show",
    "delete": "remove",
    "rm": "remove",
    "create": "add",
    "new": "add",
}
JOB_TEMPLATE = "---\nschedule: daily 09:00\ndescription: \n---\n\nWhat the agent should do.\n"


class JobsGroup(Listing):
    """Knows what others call its commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(
            ctx, [COMMAND_ALIASES.get(args[0], args[0]), *args[1:]] if args else args
        )


@click.group(cls=JobsGroup)
def jobs() -> None:
    """Manage scheduled and triggered jobs.

    Each job is a folder in ~/.deskhand/jobs with a JOB.md: its schedule and other settings at the
    top, and the prompt below.

    \b
    Examples:
      deskhand jobs
      deskhand jobs blueprints
      deskhand jobs add brief -s "30 7 * * 1-5" -p "What is on today?"
      deskhand jobs run brief
    """


@jobs.command("list")
@json_option
@limit_option()
@config_option
def list_(as_json: bool, limit: int | None, config: str | None) -> None:
    """List all jobs with their next run and last result.

    \b
    Example:
      deskhand jobs list --json
    """
    settings = load_settings(config)
    found = with_jobs(settings, lambda here: here.pages.list_jobs(ME))[:limit]
    if as_json:
        click.echo(to_json(found))
    elif not found:
        click.echo("No jobs yet. Create one from a template: deskhand jobs blueprints")
    else:
        zone = settings.config.timezone
        rows = [
            (
                each.name,
                _short_state(each),
                format_time(each.next_at, zone),
                each.when,
                describe_counts(each),
                each.last_result,
            )
            for each in found
        ]
        print_table(("job", "", "next", "when", "counts", "last run"), rows)


def describe_counts(job: JobRowView) -> str:
    """How often it ran, failed, was not needed and was skipped; what never happened is left out."""
    counted = [
        (job.runs, "run" if job.runs == 1 else "runs"),
        (job.errors, "failed"),
        (job.gates, "stopped by its prerun"),
        (job.skips, "skipped"),
    ]
    return ", ".join(f"{number} {what}" for number, what in counted if number) or "no runs"


def _short_state(job: JobRowView) -> str:
    return job.state.partition(":")[0]


@jobs.command()
@click.argument("name")
@json_option
@config_option
def show(name: str, as_json: bool, config: str | None) -> None:
    """Show a job: its file, its runs and its forecast.

    \b
    Example:
      deskhand jobs show brief
    """
    settings = load_settings(config)
    found = with_jobs(settings, lambda here: here.pages.get_job(ME, name))
    if as_json:
        click.echo(to_json(found))
        return
    _print_job(found, settings.config.timezone)


def _print_job(found: JobDetail, zone: str) -> None:
    job = found.job
    last = job.last_result
    if job.last_at:
        last = f"{format_time(job.last_at, zone)}: {last}"
    facts = {
        "when": job.when,
        "state": job.state,
        "next": format_time(job.next_at, zone) if job.next_at else "",
        "last": last,
        "for": job.person or ME.id,
        "answers": f"sent to {job.to}" if job.to else "logged only",
        "hook": found.hook,
        "counts": describe_counts(job),
    }
    click.echo(click.style(escape_control(job.name), bold=True))
    for key, value in facts.items():
        if value:
            click.echo(f"  {key:8} {shorten_line(value, 400)}")
    for each in found.trouble:
        click.echo(click.style(f"  ! {shorten_line(each, 400)}", fg="yellow"))
    if found.forecast:
        click.echo(f"  {escape_control(found.forecast)}")
    click.echo(f"\n{escape_control(found.text.strip())}")


@jobs.command()
@click.argument("name", default="")
@click.option(
    "--schedule",
    "-s",
    default="",
    metavar="WHEN",
    help='Such as "30 7 * * 1-5", "every 2h", "daily 09:00".',
)
@click.option(
    "--on",
    multiple=True,
    metavar="EVENT",
    help='Such as "file inbox", "page URL 1h", webhook. Repeatable.',
)
@click.option("--prompt", "-p", default="", help="What the agent is asked to do.")
@click.option(
    "--deliver", is_flag=True, help="Send the prompt as a message, without asking a model."
)
@click.option(
    "--to",
    default="",
    metavar="CHANNEL:CHAT",
    help="Where to send the answers. Without it they are only logged.",
)
@click.option("--agent", "-a", default="", metavar="NAME", help="Agent that runs it.")
@click.option(
    "--file",
    "-f",
    type=click.File(),
    help="Read the whole JOB.md from this file; - for standard input.",
)
@click.option(
    "--blueprint",
    "-b",
    default="",
    metavar="NAME",
    help="Start from a blueprint: see `deskhand jobs blueprints`.",
)
@click.option(
    "--slot",
    multiple=True,
    metavar="SLOT=VALUE",
    help="Value for a slot of the blueprint. Repeatable.",
)
@click.option("--dry-run", "-n", is_flag=True, help="Show the forecast, and create nothing.")
@config_option
def add(name: str, dry_run: bool, config: str | None, **given: Any) -> None:
    """Create a job, and show its schedule and expected cost.

    \b
    Examples:
      deskhand jobs add brief -s "30 7 * * 1-5" -p "What is on today?"
      deskhand jobs add -b watch-page --slot url=https://example.org/ \\
        --to telegram:12345
      deskhand jobs add nightly --file JOB.md --dry-run
    """
    settings = load_settings(config)
    draft = _make_draft(name, given)
    if dry_run:
        _print_preview(
            with_jobs(settings, lambda here: here.pages.preview(ME, draft)),
            settings.config.timezone,
        )
        return
    made = with_jobs(settings, lambda here: here.pages.create(ME, draft))
    click.echo(f"Created {escape_control(made.job.name)}: {escape_control(made.job.when)}.")
    if made.job.next_at:
        click.echo(f"Next: {format_time(made.job.next_at, settings.config.timezone)}.")
    click.echo(escape_control(made.forecast))
    for each in made.trouble:
        click.echo(f"deskhand: {shorten_line(each, 400)}", err=True)
    warn_if_no_driver(settings)


def _make_draft(name: str, given: dict[str, Any]) -> JobDraft:
    ways = [key for key in ("file", "blueprint", "prompt") if given[key]]
    if len(ways) != 1:
        fail(
            "add one of --prompt, --file or --blueprint; `deskhand jobs add --help` has examples",
            USAGE,
        )
    if given["blueprint"]:
        return JobDraft(
            name,
            "",
            given["blueprint"],
            _collect_slots(given["slot"], given["blueprint"]),
            given["to"],
        )
    if not name:
        fail(
            'the job needs a name, as in: deskhand jobs add brief --schedule "daily 09:00" '
            '--prompt "…"',
            USAGE,
        )
    if given["file"]:
        return JobDraft(name, given["file"].read(), to=given["to"])
    front = {
        "schedule": given["schedule"],
        "on": list(given["on"]),
        "agent": given["agent"],
        "kind": "deliver" if given["deliver"] else "",
        "to": given["to"],
    }
    kept = {key: value for key, value in front.items() if value}
    head = "".join(f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in kept.items())
    return JobDraft(name, f"---\n{head}---\n\n{given['prompt']}\n")


def _collect_slots(given: tuple[str, ...], of: str) -> dict[str, str]:
    """The blanks; a person at a terminal is asked for those that are missing."""
    slots = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals:
            fail(f"--slot {each!r}: write SLOT=VALUE, as in --slot time=07:30", USAGE)
        slots[key.strip()] = value
    found = next((each for each in BLUEPRINTS if each.name == of), None)
    if found is not None and sys.stdin.isatty():
        for slot in found.slots:
            if slot.name not in slots and (slot.required or not given):
                example = f" (such as {slot.example})" if slot.example else ""
                default = slot.default or None
                slots[slot.name] = click.prompt(
                    f"{slot.question}{'' if default else example}", default=default
                )
    return slots


def _print_preview(found: Preview, zone: str) -> None:
    click.echo(f"{escape_control(found.name)}: {escape_control(found.when)}")
    for at in found.next_at:
        click.echo(f"  {format_time(at, zone)}")
    click.echo(f"{escape_control(found.forecast)}\n\n{escape_control(found.text.strip())}")


@jobs.command()
@click.argument("name")
@click.option(
    "--file",
    "-f",
    type=click.File(),
    help="Read the new JOB.md from this file; - for standard input. Without it, open your editor.",
)
@config_option
def edit(name: str, file: Any, config: str | None) -> None:
    """Change a job's file. If the new version is not valid, nothing is changed.

    \b
    Example:
      deskhand jobs edit brief
    """
    settings = load_settings(config)
    before = with_jobs(settings, lambda here: here.pages.get_job(ME, name))
    text = file.read() if file else click.edit(before.text or JOB_TEMPLATE, extension=".md")
    if text is None or text == before.text:
        click.echo("Nothing was changed.")
        return
    made = with_jobs(settings, lambda here: here.pages.change(ME, name, text))
    click.echo(
        f"Changed {escape_control(name)}: {escape_control(made.job.when)}. "
        f"{escape_control(made.forecast)}"
    )


@jobs.command()
@click.argument("name")
@config_option
def enable(name: str, config: str | None) -> None:
    """Enable a job.

    \b
    Example:
      deskhand jobs enable brief
    """
    _set_enabled(name, True, config)


@jobs.command()
@click.argument("name")
@config_option
def disable(name: str, config: str | None) -> None:
    """Disable a job without removing it.

    \b
    Example:
      deskhand jobs disable brief
    """
    _set_enabled(name, False, config)


def _set_enabled(name: str, on: bool, config: str | None) -> None:
    settings = load_settings(config)
    view = with_jobs(settings, lambda here: here.pages.set_enabled(ME, name, on))
    coming = (
        f"; next: {format_time(view.next_at, settings.config.timezone)}" if view.next_at else ""
    )
    click.echo(f"{escape_control(name)} is now {'enabled' if on else 'disabled'}{coming}.")


@jobs.command()
@click.argument("name")
@config_option
def remove(name: str, config: str | None) -> None:
    """Remove a job and its folder. `deskhand jobs undo` restores it. Its past runs stay in
    the log.

    \b
    Example:
      deskhand jobs remove brief
    """
    settings = load_settings(config)
    with_jobs(settings, lambda here: here.pages.remove(ME, name))
    click.echo(
        f"Removed {escape_control(name)}. Restore it with: deskhand jobs undo "
        f"{escape_control(name)}"
    )


@jobs.command()
@click.argument("name", default="")
@click.option("--redo", is_flag=True, help="Redo the latest undone change of this job.")
@config_option
def undo(name: str, redo: bool, config: str | None) -> None:
    """Undo the last change or removal of a job; without a name, the latest change of any job.

    A version that you edited by hand can be restored only if a command overwrote it. Run this again
    to go further back.

    \b
    Examples:
      deskhand jobs undo
      deskhand jobs undo brief
      deskhand jobs undo brief --redo
    """
    if redo and not name:
        fail("name the job, as in: deskhand jobs undo brief --redo", USAGE)
    settings = load_settings(config)
    found = with_jobs(settings, lambda here: here.pages.undo(ME, name, again=redo))
    if found.job is None:
        click.echo(f"Undid the creation of {escape_control(found.name)}. The job no longer exists.")
    else:
        click.echo(
            f"Restored {escape_control(found.name)}: {escape_control(found.job.when)} "
            f"({escape_control(found.job.state)})."
        )
    click.echo(
        "To reverse this: deskhand jobs undo "
        f"{escape_control(found.name)}{'' if redo else ' --redo'}"
    )


@jobs.command()
@click.argument("name", default="")
@limit_option()
@json_option
@config_option
def blueprints(name: str, limit: int | None, as_json: bool, config: str | None) -> None:
    """List job templates and the values they need.

    \b
    Example:
      deskhand jobs blueprints reminder
    """
    shown = BLUEPRINTS[:limit]
    if name in {known.name for known in BLUEPRINTS}:
        shown = (get_blueprint(name),)
    if as_json:
        click.echo(to_json(shown))
        return
    for each in shown:
        click.echo(describe_blueprint(each))
        click.echo(click.style(f"  {render_command(each)}\n", dim=True))


@jobs.command()
@click.argument("name")
@click.option(
    "--github",
    is_flag=True,
    help="Accept only requests signed as GitHub does (X-Hub-Signature-256).",
)
@config_option
def hook(name: str, github: bool, config: str | None) -> None:
    """Create a new webhook secret for a job, and print it once. An older one
    stops working. Requests are signed as in Standard Webhooks, or as GitHub signs them.

    \b
    Examples:
      deskhand jobs hook door
      deskhand jobs hook pushes --github
    """
    settings = load_settings(config)
    secret = SECRET_PREFIX + b64encode(secrets.token_bytes(24)).decode()
    if github:
        secret = secrets.token_urlsafe(24)

    async def use(app: App) -> str:
        found = await app.features.jobs.pages.get_job(ME, name)
        if not found.hook:
            fail(
                (
                    f"the job {name!r} has no webhook trigger; add the line `on: webhook` first: "
                    f"deskhand jobs edit {name}"
                ),
                USAGE,
            )
        app.secrets.set(webhook_secret_name(name), secret, "file")
        return found.hook

    path = with_app(settings, use, drive=False)
    click.echo(
        f"Address: {path}   (on the host name under which this Deskhand is reachable: see "
        "web.hosts)"
    )
    click.echo(f"Secret:  {secret}")
    form = "as GitHub does (X-Hub-Signature-256)" if github else "as in Standard Webhooks"
    click.echo(f"Copy it now: it is not shown again. Sign requests {form}.")


for each in COMMANDS:
    jobs.add_command(each)
