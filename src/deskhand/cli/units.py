"""`deskhand service`: have the system run `deskhand serve` for ever."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import msgspec

from ..config.config import Home, Settings
from ..supervision.lock import read_holder
from ..supervision.unit import Kind, Unit, get_unit_path, launchd_label, make_unit, render_unit
from ..types.private_files import write_private_file
from .plain import escape_control
from .run import Group, config_option, fail, load_service_settings

NO_SERVICE_MANAGER = (
    "no service manager was found: {why}. Run `deskhand serve` with another process supervisor, "
    "or in a container (docs/serve.md)."
)


class Keeper(msgspec.Struct, frozen=True):
    """What runs services for this user, and how it is told."""

    kind: Kind
    unit: Unit
    file: Path
    settings: Settings

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return _call(words, self.settings)

    def check_call(self, *words: str) -> None:
        """Ends the command with its own words where it fails."""
        done = self.call(*words)
        if done.returncode != 0:
            said = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
            fail(f"{' '.join(words)}: {said}")

    @property
    def domain(self) -> str:
        return f"gui/{os.getuid()}"

    @property
    def target(self) -> str:
        return f"{self.domain}/{launchd_label(self.unit)}"

    def is_running(self) -> bool:
        if self.kind == "systemd":
            return (
                self.call("systemctl", "--user", "is-active", "--quiet", self.unit.name).returncode
                == 0
            )
        found = self.call("launchctl", "print", self.target)
        return found.returncode == 0 and "state = running" in found.stdout

    def start(self) -> None:
        if self.kind == "systemd":
            self.check_call("systemctl", "--user", "start", self.unit.name)
        else:
            if self.call("launchctl", "print", self.target).returncode != 0:
                self.check_call("launchctl", "bootstrap", self.domain, str(self.file))
            self.check_call("launchctl", "kickstart", self.target)

    def stop(self) -> None:
        if self.kind == "systemd":
            self.check_call("systemctl", "--user", "stop", self.unit.name)
        elif self.call("launchctl", "print", self.target).returncode == 0:
            self.check_call("launchctl", "bootout", self.target)

    def restart(self) -> None:
        if self.kind == "systemd":
            self.check_call("systemctl", "--user", "restart", self.unit.name)
        else:
            self.stop()
            self.start()


def _call(words: Sequence[str], settings: Settings) -> subprocess.CompletedProcess[str]:
    env = dict(settings.started_with)
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env=env, stdin=subprocess.DEVNULL
    )


def _has_tool(tool: str, settings: Settings) -> bool:
    return shutil.which(tool, path=settings.started_with.get("PATH", "")) is not None


def _detect_kind(settings: Settings) -> Kind:
    """What this machine has."""
    if _has_tool("launchctl", settings) and not _has_tool("systemctl", settings):
        return "launchd"
    return "systemd"


def _make_unit(settings: Settings, config: str | None) -> Unit:
    command = (
        sys.executable,
        "-P",
        "-m",
        "deskhand",
        *(("--config", str(Path(config).absolute())) if config else ()),
    )
    home = settings.home
    env = settings.started_with
    usual = Path(env.get("HOME", "/")) / ".deskhand"
    return make_unit(
        (*command, "serve"), home.root, usual, env.get("PATH", ""), home.logs / "service.log"
    )


def _find_keeper(config: str | None) -> Keeper:
    """Ends the command, in words, where nothing keeps services running."""
    settings = load_service_settings(config, quiet=True)
    kind = _detect_kind(settings)
    env = settings.started_with
    if not _has_tool("launchctl" if kind == "launchd" else "systemctl", settings):
        fail(NO_SERVICE_MANAGER.format(why="neither systemd nor launchd is available"))
    if kind == "systemd":
        found = _call(("systemctl", "--user", "show-environment"), settings)
        if found.returncode != 0:
            said = " ".join(found.stderr.split()) or f"exit code {found.returncode}"
            fail(
                NO_SERVICE_MANAGER.format(
                    why=f"systemd is not available for this user (systemctl --user: {said})"
                )
            )
    unit = _make_unit(settings, config)
    return Keeper(kind, unit, get_unit_path(unit, kind, env), settings)


def _require_installed(config: str | None) -> Keeper:
    keeper = _find_keeper(config)
    if not keeper.file.exists():
        fail("the service is not installed; install it with: deskhand service install")
    return keeper


@click.group(cls=Group)
def service() -> None:
    """Install Deskhand as a system service that starts at login and restarts on failure.

    \b
    Examples:
      deskhand service install
      deskhand service install --print
      deskhand service restart
    """


@service.command()
@click.option(
    "--print",
    "show",
    is_flag=True,
    help="Print the files that would be written, and change nothing.",
)
@click.option(
    "--for",
    "kind",
    type=click.Choice(["systemd", "launchd"]),
    help="With --print: the system to print for.",
)
@config_option
def install(show: bool, kind: Kind | None, config: str | None) -> None:
    """Install the service for this user and start it.

    \b
    Examples:
      deskhand service install
      deskhand service install --print --for launchd
    """
    if show:
        settings = load_service_settings(config, quiet=True)
        click.echo(
            render_unit(_make_unit(settings, config), kind or _detect_kind(settings)), nl=False
        )
        return
    keeper = _find_keeper(config)
    _require_not_served(keeper)
    keeper.settings.home.make_folder(keeper.settings.home.logs)
    try:
        write_private_file(keeper.file, render_unit(keeper.unit, keeper.kind))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    if keeper.kind == "systemd":
        keeper.check_call("systemctl", "--user", "daemon-reload")
        keeper.check_call("systemctl", "--user", "enable", keeper.unit.name)
        keeper.restart()
    else:
        keeper.stop()
        keeper.start()
    click.echo(f"Installed and started: {escape_control(str(keeper.file))}")
    click.echo("Check its state: deskhand status. Follow its log: deskhand logs -f")
    if keeper.kind == "systemd" and not _has_linger(keeper):
        click.echo(
            "It runs while you are logged in. To keep it running after you log out: loginctl "
            "enable-linger"
        )


def _has_linger(keeper: Keeper) -> bool:
    """Whether services of this user run while nobody is logged in."""
    try:
        found = keeper.call(
            "loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"
        )
    except OSError:
        return False
    return found.stdout.strip() == "yes"


def _require_not_served(keeper: Keeper) -> None:
    """Ends the command where a process serves this home that the system did not start."""
    home: Home = keeper.settings.home
    holder = read_holder(home.serve_lock)
    if holder is not None and not keeper.is_running():
        fail(f"process {holder.pid} already serves {home.root}; stop it first: kill {holder.pid}")


@service.command()
@config_option
def uninstall(config: str | None) -> None:
    """Stop and uninstall the service. Your data is kept.

    \b
    Example:
      deskhand service uninstall
    """
    keeper = _require_installed(config)
    if keeper.kind == "systemd":
        keeper.check_call("systemctl", "--user", "disable", "--now", keeper.unit.name)
    else:
        keeper.stop()
    keeper.file.unlink(missing_ok=True)
    if keeper.kind == "systemd":
        keeper.check_call("systemctl", "--user", "daemon-reload")
    click.echo(
        f"Removed: {escape_control(str(keeper.file))}. Your conversations and files stay in "
        f"{keeper.settings.home.root}"
    )


def _add_command(name: str, does: str, said: str, act: Callable[[Keeper], None]) -> None:
    """A command that only gives an order."""

    @config_option
    def command(config: str | None) -> None:
        keeper = _require_installed(config)
        if name != "stop":
            _require_not_served(keeper)
        act(keeper)
        click.echo(said)

    command.__doc__ = f"{does}\n\n\b\nExample:\n  deskhand service {name}\n"
    service.command(name)(command)


_add_command(
    "start", "Start the service.", "Started. Check its state: deskhand status", Keeper.start
)
_add_command(
    "stop", "Stop the service until it is started or you log in again.", "Ended.", Keeper.stop
)
_add_command(
    "restart",
    "Restart the service; running work has 20 seconds to finish.",
    "Restarted.",
    Keeper.restart,
)


@service.command()
@config_option
def status(config: str | None) -> None:
    """Show whether the service runs; exit 1 if it does not.

    \b
    Example:
      deskhand service status
    """
    keeper = _require_installed(config)
    runs = keeper.is_running()
    file = escape_control(str(keeper.file))
    if runs:
        click.echo(f"It runs: {file}")
        click.echo("For details: deskhand status")
    else:
        click.echo(f"It does not run: {file}")
        click.echo("Start it: deskhand service start. See the log: deskhand logs")
    sys.exit(0 if runs else 1)
