"""`deskhand desktop`: whether agents may use the windows of this machine."""

from __future__ import annotations

import shutil
from contextlib import AsyncExitStack
from importlib import import_module

import click

from ..computer.desktop.clipboard import Clipboard
from ..computer.desktop.host import INSTALL_COMMAND, is_installed
from ..computer.desktop.picture_text import INSTALL_COMMAND as OCR_COMMAND
from ..computer.desktop.picture_text import is_installed as is_ocr_installed
from ..computer.desktop.screen import find_missing
from ..config.config import Settings
from ..config.first_settings import store_setting
from ..types.errors import ConfigError, ToolError
from .plain import escape_control
from .run import FAILED, Listing, agent_option, config_option, fail, load_settings, run

_A11Y = {"/usr/libexec/at-spi-bus-launcher": "at-spi2-core"}


@click.group(cls=Listing)
def desktop() -> None:
    """Let agents use the windows of this machine, and check what that needs.

    \b
    Examples:
      deskhand desktop status
      deskhand desktop start
    """


@desktop.command("status")
@config_option
def status(config: str | None) -> None:
    """Show which desktop agents may use, what is missing, and the windows that can be read.

    \b
    Example:
      deskhand desktop status
    """
    settings = load_settings(config)
    names = [name for name in settings.agents if settings.agent(name).desktop]
    click.echo(f"agents that may use it: {', '.join(names) or 'none (deskhand desktop on)'}")
    if not is_installed():
        fail(f"libraries that read desktops are missing: {INSTALL_COMMAND}", FAILED)
    if not is_ocr_installed():
        click.echo(f"windows of programs that tell nothing of them are not read: {OCR_COMMAND}")
    is_virtual = settings.config.desktop.screen == "virtual"
    there = dict(settings.started_with)
    if is_virtual:
        there.pop("WAYLAND_DISPLAY", None)  # the screen of its own is one of X11
    if package := Clipboard(there).find_missing():
        click.echo(f"the clipboard cannot be used: sudo apt-get install {package}")
    if is_virtual:
        missing = find_missing()
        click.echo("screen: one of its own, without a monitor")
        if missing:
            fail(f"it needs: sudo apt-get install {' '.join(missing)}", FAILED)
        click.echo("it is started when it is first used")
        return
    _show_own_desktop(settings)


def _show_own_desktop(settings: Settings) -> None:
    screen = settings.started_with.get("DISPLAY", "")
    click.echo(f"screen: {escape_control(screen) or 'none; there are no keys, clicks or pictures'}")

    async def list_names() -> list[str]:
        module = import_module("deskhand.computer.desktop.linux")
        async with AsyncExitStack() as stack:
            opened, _ = await module.open_desktop(stack, settings.started_with, None, "")
            return [each.shown_name for each in await opened.list_windows()]

    try:
        names = run(settings, list_names)
    except ToolError as error:
        missing = sorted({package for name, package in _A11Y.items() if not shutil.which(name)})
        hint = f" (needed: sudo apt-get install {' '.join(missing)})" if missing else ""
        fail(f"{error}{hint}\nFor a screen without a monitor: deskhand desktop start", FAILED)
    click.echo("windows:" if names else "no program shows a window that can be read")
    for name in names:
        click.echo(f"  {escape_control(name)}")


@desktop.command("on")
@agent_option
@config_option
def turn_on(agent: str, config: str | None) -> None:
    """Let agents use the desktop that Deskhand is started from. Each program is asked about.

    \b
    Examples:
      deskhand desktop on
      deskhand desktop on --agent helper
    """
    _switch(load_settings(config), agent, on=True, screen="")
    click.echo("Agents may use this desktop. They ask before they act in a program.")


@desktop.command("start")
@agent_option
@config_option
def start(agent: str, config: str | None) -> None:
    """Let agents use a screen of their own, for machines without a monitor.

    It is started when it is first used, and ends with Deskhand.

    \b
    Example:
      deskhand desktop start
    """
    if missing := find_missing():
        fail(f"a screen of its own needs: sudo apt-get install {' '.join(missing)}", FAILED)
    _switch(load_settings(config), agent, on=True, screen="virtual")
    click.echo("Agents may use a screen of their own. It is started when it is first used.")


@desktop.command("off")
@agent_option
@config_option
def turn_off(agent: str, config: str | None) -> None:
    """Take the desktop away from agents.

    \b
    Example:
      deskhand desktop off
    """
    settings = load_settings(config)
    own = [name for name, each in settings.config.agents.items() if each.desktop]
    for name in [agent] if agent else ["", *own]:
        _switch(load_settings(config), name, on=False, screen=None)
    click.echo(f"{agent or 'Agents'} may not use the desktop any more.")


def _switch(settings: Settings, agent: str, *, on: bool, screen: str | None) -> None:
    where = ("agents", agent) if agent else ("defaults",)
    if agent and agent not in settings.config.agents:
        fail(f"there is no agent {agent!r}; there are: {', '.join(settings.agents)}", FAILED)
    try:
        store_setting(settings, (*where, "desktop"), on)
        if screen is not None:
            store_setting(load_settings(str(settings.file)), ("desktop", "screen"), screen)
    except (OSError, ConfigError) as error:
        fail(f"the configuration was not changed: {error}", FAILED)
