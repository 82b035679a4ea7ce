"""`deskhand doctor`: what works, what does not, and what to type."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..config.config import Settings, find_home, read_settings
from ..supervision.doctor import DoctorFinding, run_probes
from ..types.errors import DeskhandError
from .encoded import to_json
from .init import make_home
from .plain import escape_control
from .run import FAILED, apply_color, config_option, fail, run

MARKS = {"good": ("ok", "green"), "note": ("!!", "yellow"), "bad": ("no", "red")}


@click.command()
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@config_option
def doctor(fix: bool, as_json: bool, config: str | None) -> None:
    """Check everything Deskhand needs; exit 1 if something is broken.

    \b
    Examples:
      deskhand doctor
      deskhand doctor --fix
    """
    settings = _load_settings(config)
    if fix:
        _repair(settings)
    found = run(settings, lambda: run_probes(settings), log=False)
    if as_json:
        rows = [
            {"probe": name, "level": f.level, "text": f.text, "remedy": f.remedy}
            for name, f in found
        ]
        click.echo(to_json(rows))
    else:
        for name, finding in found:
            _print_finding(name, finding)
    sys.exit(FAILED if any(finding.level == "bad" for _, finding in found) else 0)


def _load_settings(config: str | None) -> Settings:
    """The settings; a configuration that cannot be used is the first finding, and the last."""
    try:
        settings = read_settings(Path(config) if config else None)
    except DeskhandError as error:
        try:
            where = config or str(find_home().config)
        except DeskhandError:
            fail(str(error))
        _print_finding("configuration", DoctorFinding("bad", str(error), f"$EDITOR {where}"))
        sys.exit(FAILED)
    apply_color(settings)
    return settings


def _repair(settings: Settings) -> None:
    try:
        for path in make_home(settings, settings.agents):
            click.echo(f"created {escape_control(str(path))}")
        for _, finding in run(settings, lambda: run_probes(settings), log=False):
            if finding.fix is not None:
                finding.fix()
                click.echo(f"fixed   {escape_control(finding.remedy)}")
    except DeskhandError as error:
        fail(str(error))
    except OSError as error:  # what follows tells why
        click.echo(
            f"deskhand: some problems could not be repaired: {error.filename}: {error.strerror}",
            err=True,
        )


def _print_finding(name: str, finding: DoctorFinding) -> None:
    mark, colour = MARKS[finding.level]
    click.echo(
        f"{click.style(mark, fg=colour, bold=True)}  {name:<14} {escape_control(finding.text)}"
    )
    if finding.remedy:
        click.echo(f"{'':<19}{click.style('-> ' + escape_control(finding.remedy), bold=True)}")
