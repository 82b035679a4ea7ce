"""What a system is told, so that it runs Deskhand for ever: a unit of systemd, or a plist of
launchd."""

from __future__ import annotations

import hashlib
import plistlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from .supervise import DRAIN_S, RESTART

Kind = Literal["systemd", "launchd"]
STOP_S = int(DRAIN_S) + 10
"""How long the system waits after the order to end, before it kills."""
RESTART_DELAY_S = 5


class Unit(msgspec.Struct, frozen=True):
    """What is to be run: `command` with nothing but these variables added, and where its words go
    that are not in the log. `name` is the same for the same home."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    output: Path


def make_unit(
    command: tuple[str, ...], home: Path, usual_home: Path, path: str, output: Path
) -> Unit:
    """The unit of a home. `path` is the PATH of whoever installs it: a service is started with
    nearly none, and would find none of their programs."""
    folders = [folder for folder in dict.fromkeys(path.split(":")) if folder.startswith("/")]
    environment = {"PATH": ":".join(folders)}
    if home == usual_home:
        return Unit("deskhand", command, environment, output)
    digest = hashlib.sha256(str(home).encode()).hexdigest()[:8]
    return Unit(f"deskhand-{digest}", command, environment | {"DESKHAND_HOME": str(home)}, output)


def get_unit_path(unit: Unit, kind: Kind, environment: Mapping[str, str]) -> Path:
    """Where it is installed for this user."""
    user = Path(environment.get("HOME") or Path.home())
    if kind == "launchd":
        return user / "Library" / "LaunchAgents" / f"{launchd_label(unit)}.plist"
    config = environment.get("XDG_CONFIG_HOME") or user / ".config"
    return Path(config) / "systemd" / "user" / f"{unit.name}.service"


def launchd_label(unit: Unit) -> str:
    """What launchd calls it."""
    return f"org.{unit.name}"


def render_unit(unit: Unit, kind: Kind) -> str:
    return render_systemd(unit) if kind == "systemd" else render_launchd(unit)


def render_systemd(unit: Unit) -> str:
    """Only the parent is told to end (`mixed`): it hands the order on, and a second one would cut
    off what is under way. Exit code 75 is a restart, not a failure."""
    variables = "\n".join(
        f"Environment={_quote(f'{name}={value}')}" for name, value in unit.environment.items()
    )
    command = " ".join(_quote(word).replace("$", "$$") for word in unit.command)
    return f"""[Unit]
Description=Deskhand, a personal AI agent

[Service]
Type=exec
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec={RESTART_DELAY_S}
RestartForceExitStatus={RESTART}
KillMode=mixed
TimeoutStopSec={STOP_S}
UMask=0077
{variables}

[Install]
WantedBy=default.target
"""


def _quote(word: str) -> str:
    """A word as systemd.syntax(7) has it; `%` begins a specifier."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"'


def render_launchd(unit: Unit) -> str:
    """Started at login, and again whenever it does not end by itself with 0."""
    found = {
        "Label": launchd_label(unit),
        "ProgramArguments": list(unit.command),
        "EnvironmentVariables": dict(unit.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": RESTART_DELAY_S,
        "ExitTimeOut": STOP_S,
        "Umask": 0o077,
        "StandardOutPath": str(unit.output),
        "StandardErrorPath": str(unit.output),
    }
    return plistlib.dumps(found, sort_keys=False).decode()
