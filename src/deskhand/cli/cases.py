"""`deskhand cases`: recorded turns as tests of the agent as it is now."""

from __future__ import annotations

from pathlib import Path

import click

from ..config.config import Settings
from ..config.parse import read_text
from ..evals.cases import Cases, SavedCase, Verdict, run_case
from ..evals.replay import REPLAY_TOKENS
from ..evals.runner import ReplayOptions
from ..runtime.app import App
from ..types.errors import ConfigError
from .plain import escape_control, shorten_line
from .run import (
    FAILED,
    USAGE,
    Listing,
    config_option,
    fail,
    json_option,
    limit_option,
    load_settings,
)
from .table import print_json_rows, print_table
from .temporary_app import with_app


@click.group(cls=Listing)
def cases() -> None:
    """Run, list and remove turns that are saved as tests. To save one: `deskhand replay SESSION
    --save NAME`.

    \b
    Examples:
      deskhand cases
      deskhand cases run
      deskhand cases run disk-check --model openai/gpt-5-mini
    """


@cases.command("list")
@limit_option()
@json_option
@config_option
def list_(limit: int | None, as_json: bool, config: str | None) -> None:
    """List the cases and their requests.

    \b
    Example:
      deskhand cases list
    """
    settings = load_settings(config)
    found = Cases(settings.home.cases)
    rows = []
    listed: list[tuple[str | int | None, ...]] = []
    for name in found.list_names()[:limit]:
        try:
            case = found.read(name)
            rows.append((name, case.session, str(case.turn), shorten_line(case.asked, 100)))
            listed.append((name, case.session, case.turn, case.asked, ""))
        except ConfigError as error:
            rows.append((name, "", "", str(error)))
            listed.append((name, "", None, "", str(error)))
    if as_json:
        print_json_rows(("case", "session", "turn", "request", "problem"), listed)
        return
    if not rows:
        click.echo("No cases yet. Save a turn as a case: deskhand replay SESSION --save NAME")
        return
    print_table(("case", "conversation", "turn", "request"), rows)


@cases.command()
@click.argument("names", nargs=-1)
@click.option("--model", "-m", default="", metavar="PROVIDER/NAME", help="Use this model.")
@click.option(
    "--system",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use this file as SYSTEM.md.",
)
@click.option("--again", is_flag=True, help="Call the model even if nothing has changed.")
@click.option(
    "--tokens",
    default=REPLAY_TOKENS,
    show_default=True,
    type=click.IntRange(1),
    help="Maximum number of tokens for each case.",
)
@config_option
def run(
    names: tuple[str, ...],
    model: str,
    system: Path | None,
    again: bool,
    tokens: int,
    config: str | None,
) -> None:
    """Run the named cases, or all of them. Exits with 1 if a result is not as expected.

    A request that is identical to the recorded one gets the recorded reply and costs nothing. No
    tool is run.

    \b
    Examples:
      deskhand cases run
      deskhand cases run disk-check --model openai/gpt-5-mini
    """
    settings = load_settings(config)
    found = Cases(settings.home.cases)
    wanted = list(names) or found.list_names()
    if not wanted:
        fail(
            "there are no cases; save a turn as a case: deskhand replay SESSION --save NAME", USAGE
        )
    read = dict[str, SavedCase]()
    broken = list[Verdict]()
    for name in wanted:
        try:
            read[name] = found.read(name)
        except ConfigError as error:
            # Of all that there are it is one; of those that were named it is a slip.
            if names:
                fail(str(error), USAGE)
            broken.append(Verdict(name, (str(error),)))
    try:
        trial = ReplayOptions(model, read_text(system) if system else "", tokens=tokens)
    except ConfigError as error:
        fail(str(error), USAGE)

    async def use(app: App) -> list[Verdict]:
        verdicts = list(broken)
        for verdict in verdicts:
            _print_verdict(verdict, settings)
        for name, case in read.items():
            verdict = await run_case(name, case, app.features.replaying, trial, again=again)
            _print_verdict(verdict, settings)
            verdicts.append(verdict)
        return verdicts

    verdicts = with_app(settings, use, drive=False)
    well = sum(not verdict.wrong for verdict in verdicts)
    spent = sum(verdict.spent.input_tokens + verdict.spent.output_tokens for verdict in verdicts)
    click.echo(f"{well} of {len(verdicts)} as expected; {spent:,} tokens used.", err=True)
    if well < len(verdicts):
        raise SystemExit(FAILED)


def _print_verdict(verdict: Verdict, settings: Settings) -> None:
    mark = click.style("fails", fg="red") if verdict.wrong else click.style("ok   ", fg="green")
    how = ""
    if (found := verdict.replayed) is not None:
        what = f"asked {', '.join(found.now.models)}" if found.asked else "from the log"
        how = (
            f"  {found.now.steps} steps, {len(found.now.calls)} calls, {found.now.tokens:,} "
            f"tokens, {what}"
        )
    click.echo(f"{mark}  {escape_control(verdict.name)}{escape_control(how)}")
    for wrong in verdict.wrong:
        click.echo(f"       {escape_control(wrong)}")


@cases.command()
@click.argument("name")
@config_option
def remove(name: str, config: str | None) -> None:
    """Remove a case. Its conversation is not changed.

    \b
    Example:
      deskhand cases remove disk-check
    """
    try:
        Cases(load_settings(config).home.cases).remove(name)
    except ConfigError as error:
        fail(str(error), USAGE)
    click.echo(f"Removed: {escape_control(name)}")
