"""`deskhand jobs`: what is done without anybody asking, to look at, to make and to change."""

from __future__ import annotations

import secrets
import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import click
import msgspec

from ..runtime.app import App
from ..runtime.automation import Automation
from ..runtime.config import Settings
from ..runtime.jobs.blueprints import BLUEPRINTS, blueprint, command, told
from ..runtime.jobs.told import became, moment
from ..runtime.triggers.triggering import secret_name
from ..types.jobs import OPEN, Job
from ..web.job_views import JobDetail, JobDraft, JobView, Preview
from .asks import somebody_drives
from .live import with_app
from .plain import one_line, plain
from .run import ME, USAGE, Listing, config_option, fail, settings_of
from .table import table

T = TypeVar("T")
OTHER_NAMES = {"info": "show", "delete": "remove", "rm": "remove", "create": "add", "new": "add"}
FILE = "---\nschedule: daily 09:00\ndescription: \n---\n\nWhat is to be done.\n"
WAIT_S = 0.2


class Jobs(Listing):
    """Knows what others call its commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, [OTHER_NAMES.get(args[0], args[0]), *args[1:]] if args else args)


def _with(settings: Settings, use: Callable[[Automation], Awaitable[T]]) -> T:
    async def main(app: App) -> T:
        return await use(app.works.automation)

    return with_app(settings, main, drive=False)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=Jobs)
def jobs() -> None:
    """What is done on a schedule, or when something happens, without anybody asking.

    Each job is a folder in ~/.deskhand/jobs with a JOB.md: what is to be done, and above it when, and for whom.

    \b
    Examples:
      deskhand jobs
      deskhand jobs blueprints
      deskhand jobs add brief -s "30 7 * * 1-5" -p "What is on today?" --to telegram:12345
      deskhand jobs run brief
    """


@jobs.command("list")
@json_option
@config_option
def list_(as_json: bool, config: str | None) -> None:
    """List all jobs: when they come, and how the last time went.

    \b
    Example:
      deskhand jobs list --json
    """
    settings = settings_of(config)
    found = _with(settings, lambda here: here.desk.listed(ME))
    if as_json:
        click.echo(msgspec.json.encode(found))
    elif not found:
        click.echo("There are no jobs yet. Six are ready but for a few blanks: deskhand jobs blueprints")
    else:
        zone = settings.config.timezone
        rows = [
            (each.name, _short_state(each), moment(each.next_at, zone), each.when, each.last_result) for each in found
        ]
        table(("job", "", "next", "when", "last time"), rows)


def _short_state(job: JobView) -> str:
    return job.state.partition(":")[0]


@jobs.command()
@click.argument("name")
@json_option
@config_option
def show(name: str, as_json: bool, config: str | None) -> None:
    """Show a job: its file, what became of it, and what it will come to.

    \b
    Example:
      deskhand jobs show brief
    """
    settings = settings_of(config)
    found = _with(settings, lambda here: here.desk.shown(ME, name))
    if as_json:
        click.echo(msgspec.json.encode(found))
        return
    _show(found, settings.config.timezone)


def _show(found: JobDetail, zone: str) -> None:
    job = found.job
    facts = {
        "when": job.when,
        "state": job.state,
        "next": moment(job.next_at, zone) if job.next_at else "",
        "last": f"{moment(job.last_at, zone)}: {job.last_result}" if job.last_at else job.last_result,
        "for": job.person or ME.id,
        "answers": f"go to {job.to}" if job.to else "go nowhere; they stand in the log",
        "hook": found.hook,
        "counted": f"{job.runs} runs, {job.errors} of them with an error",
    }
    click.echo(click.style(plain(job.name), bold=True))
    for key, value in facts.items():
        if value:
            click.echo(f"  {key:8} {one_line(value, 400)}")
    for each in found.trouble:
        click.echo(click.style(f"  ! {one_line(each, 400)}", fg="yellow"))
    if found.forecast:
        click.echo(f"  {plain(found.forecast)}")
    click.echo(f"\n{plain(found.text.strip())}")


@jobs.command()
@click.argument("name", default="")
@click.option("--schedule", "-s", default="", metavar="WHEN", help='Such as "30 7 * * 1-5", "every 2h", "daily 09:00".')
@click.option("--on", multiple=True, metavar="EVENT", help='Such as "file inbox", "page URL 1h", webhook. Repeatable.')
@click.option("--prompt", "-p", default="", help="What is to be done.")
@click.option("--deliver", is_flag=True, help="Say the prompt as it is, and ask no model.")
@click.option("--to", default="", metavar="CHANNEL:CHAT", help="Where its answers go; nowhere without it.")
@click.option("--agent", "-a", default="", metavar="NAME", help="Which agent does it.")
@click.option("--file", "-f", type=click.File(), help="A whole JOB.md; - is what is piped in.")
@click.option("--blueprint", "-b", default="", metavar="NAME", help="One of `deskhand jobs blueprints`.")
@click.option("--slot", multiple=True, metavar="BLANK=VALUE", help="A blank of the blueprint. Repeatable.")
@click.option("--dry-run", "-n", is_flag=True, help="Say what it would come to, and make nothing.")
@config_option
def add(name: str, dry_run: bool, config: str | None, **given: Any) -> None:
    """Make a job; it says when it comes and what it will cost.

    \b
    Examples:
      deskhand jobs add brief -s "30 7 * * 1-5" -p "What is on today?" --to telegram:12345
      deskhand jobs add -b watch-page --slot url=https://example.org/news --to telegram:12345
      deskhand jobs add nightly --file JOB.md --dry-run
    """
    settings, draft = settings_of(config), _draft(name, given)
    if dry_run:
        _preview(_with(settings, lambda here: here.desk.preview(ME, draft)), settings.config.timezone)
        return
    made = _with(settings, lambda here: here.desk.make(ME, draft))
    click.echo(f"Made {plain(made.job.name)}: {plain(made.job.when)}.")
    if made.job.next_at:
        click.echo(f"Next: {moment(made.job.next_at, settings.config.timezone)}.")
    click.echo(plain(made.forecast))
    for each in made.trouble:
        click.echo(f"deskhand: {one_line(each, 400)}", err=True)
    _nobody(settings)


def _draft(name: str, given: dict[str, Any]) -> JobDraft:
    ways = [key for key in ("file", "blueprint", "prompt") if given[key]]
    if len(ways) != 1:
        fail(
            "say what it is by one of --prompt, --file and --blueprint; `deskhand jobs add --help` has examples", USAGE
        )
    if given["blueprint"]:
        return JobDraft(name, "", given["blueprint"], _slots(given["slot"], given["blueprint"]), given["to"])
    if not name:
        fail('give it a name, as in: deskhand jobs add brief --schedule "daily 09:00" --prompt "…"', USAGE)
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


def _slots(given: tuple[str, ...], of: str) -> dict[str, str]:
    """The blanks; a person at a terminal is asked for those that are missing."""
    slots = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals:
            fail(f"--slot {each!r}: write BLANK=VALUE, as in --slot time=07:30", USAGE)
        slots[key.strip()] = value
    found = next((each for each in BLUEPRINTS if each.name == of), None)
    if found is not None and sys.stdin.isatty():
        for slot in found.slots:
            if slot.name not in slots and (slot.required or not given):
                example = f" (such as {slot.example})" if slot.example else ""
                default = slot.default or None
                slots[slot.name] = click.prompt(f"{slot.asks}{'' if default else example}", default=default)
    return slots


def _preview(found: Preview, zone: str) -> None:
    click.echo(f"{plain(found.name)}: {plain(found.when)}")
    for at in found.next_at:
        click.echo(f"  {moment(at, zone)}")
    click.echo(f"{plain(found.forecast)}\n\n{plain(found.text.strip())}")


@jobs.command()
@click.argument("name")
@click.option(
    "--file", "-f", type=click.File(), help="The new JOB.md; - is what is piped in. Without it your editor opens."
)
@config_option
def edit(name: str, file: Any, config: str | None) -> None:
    """Change a job's file. What cannot be is refused, and then nothing is changed.

    \b
    Example:
      deskhand jobs edit brief
    """
    settings = settings_of(config)
    before = _with(settings, lambda here: here.desk.shown(ME, name))
    text = file.read() if file else click.edit(before.text or FILE, extension=".md")
    if text is None or text == before.text:
        click.echo("Nothing was changed.")
        return
    made = _with(settings, lambda here: here.desk.change(ME, name, text))
    click.echo(f"Changed {plain(name)}: {plain(made.job.when)}. {plain(made.forecast)}")


@jobs.command()
@click.argument("name")
@click.option("--wait", "-w", is_flag=True, help="Stay until it is over, and say how it went.")
@config_option
def run(name: str, wait: bool, config: str | None) -> None:
    """Run a job now, once.

    \b
    Example:
      deskhand jobs run brief --wait
    """
    settings = settings_of(config)

    async def use(here: Automation) -> str:
        slot = await here.desk.run(ME, name)
        while wait and somebody_drives(settings):
            ran = next((each for each in await here.using.own.runs(ME, name, 20) if each.slot == slot), None)
            if ran is not None and ran.state not in OPEN:
                return became(ran)
            await anyio.sleep(WAIT_S)
        return ""

    ended = _with(settings, use)
    click.echo(
        f"{plain(name)}: {plain(ended)}" if ended else f"{plain(name)} runs now; see: deskhand jobs runs {plain(name)}"
    )
    _nobody(settings)


@jobs.command()
@click.argument("name")
@config_option
def enable(name: str, config: str | None) -> None:
    """Switch a job on.

    \b
    Example:
      deskhand jobs enable brief
    """
    _switch(name, True, config)


@jobs.command()
@click.argument("name")
@config_option
def disable(name: str, config: str | None) -> None:
    """Switch a job off; it stays.

    \b
    Example:
      deskhand jobs disable brief
    """
    _switch(name, False, config)


def _switch(name: str, on: bool, config: str | None) -> None:
    settings = settings_of(config)
    view = _with(settings, lambda here: here.desk.switch(ME, name, on))
    coming = f"; next: {moment(view.next_at, settings.config.timezone)}" if view.next_at else ""
    click.echo(f"{plain(name)} is {'on' if on else 'off'} now{coming}.")


@jobs.command()
@click.argument("name")
@config_option
def remove(name: str, config: str | None) -> None:
    """Remove a job, with its folder. What it did stays in the log.

    \b
    Example:
      deskhand jobs remove brief
    """
    settings = settings_of(config)
    _with(settings, lambda here: here.desk.remove(ME, name))
    click.echo(f"Removed {plain(name)}.")


@jobs.command()
@click.argument("name")
@click.option("-n", "limit", type=click.IntRange(1, 200), default=20, show_default=True, help="So many.")
@json_option
@config_option
def runs(name: str, limit: int, as_json: bool, config: str | None) -> None:
    """What became of a job, the latest first.

    \b
    Example:
      deskhand jobs runs brief -n 5
    """
    settings = settings_of(config)
    found = _with(settings, lambda here: here.desk.runs(ME, name, limit))
    if as_json:
        click.echo(msgspec.json.encode(found))
    elif not found:
        click.echo(f"{plain(name)} has not run yet.")
    else:
        zone = settings.config.timezone
        table(
            ("when", "what became of it", "conversation"), [(moment(r.due_at, zone), r.result, r.name) for r in found]
        )


@jobs.command()
@click.argument("name", default="")
@config_option
def blueprints(name: str, config: str | None) -> None:
    """Jobs that are ready but for a few blanks, and how they are made.

    \b
    Example:
      deskhand jobs blueprints reminder
    """
    for each in [blueprint(name)] if name in {known.name for known in BLUEPRINTS} else BLUEPRINTS:
        click.echo(told(each))
        click.echo(click.style(f"  {command(each)}\n", dim=True))


@jobs.command()
@click.argument("name")
@config_option
def forecast(name: str, config: str | None) -> None:
    """What a job will come to: how often it runs, and what that takes.

    \b
    Example:
      deskhand jobs forecast brief
    """
    settings = settings_of(config)

    async def use(here: Automation) -> str:
        view = await here.using.own.found(ME, name)
        return (await here.using.forecast(view.job or Job(name))).said

    click.echo(_with(settings, use))


@jobs.command()
@click.argument("name")
@config_option
def hook(name: str, config: str | None) -> None:
    """Open the webhook of a job: make a new secret, and print it this once. An older one is void.

    \b
    Example:
      deskhand jobs hook door
    """
    settings, secret = settings_of(config), "whsec_" + b64encode(secrets.token_bytes(24)).decode()

    async def use(app: App) -> str:
        found = await app.works.automation.desk.shown(ME, name)
        if not found.hook:
            fail(f"{name!r} takes no webhooks; add the line `on: webhook` first: deskhand jobs edit {name}", USAGE)
        app.secrets.set(secret_name(name), secret, "file")
        return found.hook

    path = with_app(settings, use, drive=False)
    click.echo(f"Address: {path}   (behind the name under which others reach this Deskhand: see web.hosts)")
    click.echo(f"Secret:  {secret}")
    click.echo("Copy it now: it is not shown again. Sign as Standard Webhooks say, or as GitHub does.")


@jobs.command()
@click.argument("why", default="paused by hand")
@config_option
def pause(why: str, config: str | None) -> None:
    """Run no job any more, until `deskhand jobs resume`. What goes on is not stopped.

    \b
    Example:
      deskhand jobs pause "on holiday"
    """

    async def use(app: App) -> None:
        await app.works.jobs.pause(why)

    with_app(settings_of(config), use, drive=False)
    click.echo("No job runs now. Let them go on with: deskhand jobs resume")


@jobs.command()
@config_option
def resume(config: str | None) -> None:
    """Let jobs run again after a pause, or after too many starts in a short time.

    \b
    Example:
      deskhand jobs resume
    """

    async def use(app: App) -> str:
        return await app.works.jobs.resume()

    why = with_app(settings_of(config), use, drive=False)
    click.echo(f"They go on. They were paused: {plain(why)}" if why else "They were not paused.")


def _nobody(settings: Settings) -> None:
    if not somebody_drives(settings):
        click.echo("deskhand: nobody runs jobs now; start Deskhand with `deskhand serve`", err=True)
