"""`deskhand setup`: the few things that a person chooses at the beginning, asked or given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import click
import msgspec

from ..assembly.model_trial import try_key
from ..assembly.models import Models, build_catalogue
from ..config.config import Settings, read_settings
from ..config.first_settings import (
    check_secret,
    check_timezone,
    list_env_secrets,
    read_owner_name,
    store_secret,
    store_setting,
    system_timezone,
    write_owner_name,
)
from ..types.errors import ConfigError, DeskhandError
from .init import make_home
from .model import set_model as keep
from .plain import escape_control
from .run import USAGE, agent_option, config_option, fail, load_settings, resolve_agent, run
from .welcome import choose_model, list_offers

FLAGS = (
    "--model PROVIDER/NAME, --timezone ZONE, --key NAME (its value on standard input), --owner NAME"
)
T = TypeVar("T")


class SetupOptions(msgspec.Struct, frozen=True):
    """What was given on the command line; '' and () where it was not."""

    model: str = ""
    timezone: str = ""
    keys: tuple[str, ...] = ()
    owner: str = ""


@click.command()
@click.option("--model", "-m", default="", metavar="PROVIDER/NAME", help="Use this model.")
@click.option(
    "--timezone",
    default="",
    metavar="ZONE",
    help="Time zone, such as Europe/Berlin.",
)
@click.option(
    "--key",
    "-k",
    "names",
    multiple=True,
    metavar="NAME",
    help="Store this key; its value is read from standard input.",
)
@click.option("--owner", default="", metavar="NAME", help="Your name.")
@click.option("--run", "then_talk", is_flag=True, help="Start a chat afterwards.")
@agent_option
@config_option
def setup(  # noqa: PLR0913 -- one parameter for each option
    model: str,
    timezone: str,
    names: tuple[str, ...],
    owner: str,
    then_talk: bool,
    agent: str,
    config: str | None,
) -> None:
    """Choose a model, your time zone and your name, and store keys. Run it again at any time.

    It asks for each value in a terminal; Enter keeps the current one. With any option below, it
    does not ask.

    \b
    Examples:
      deskhand setup
      deskhand setup --run
      echo "$KEY" | deskhand setup --key OPENAI_API_KEY --model openai/gpt-5.4
    """
    root = click.get_current_context().find_root().params
    wanted = SetupOptions(model or str(root.get("model") or ""), timezone, names, owner)
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    ask = wanted == SetupOptions()
    if ask and not (sys.stdin.isatty() and sys.stdout.isatty()):
        fail(
            f"setup asks its questions in a terminal. Without one, use these options: {FLAGS}",
            USAGE,
        )
    try:
        make_home(settings, (name,))
        (_run_questions if ask else _apply_options)(settings, name, wanted)
    except OSError as error:
        advice = "set DESKHAND_HOME to a folder that you can write"
        fail(f"cannot write {error.filename}: {error.strerror}; {advice}")
    except DeskhandError as error:
        fail(str(error), USAGE)
    if then_talk:
        from .chat import Which, chat

        chat(Which(), agent=agent, model="", config=config)
    click.echo("Start a chat: deskhand")


def _apply_options(settings: Settings, agent: str, wanted: SetupOptions) -> None:
    """Set what was given; the keys first, since a model may need one. Raises DeskhandError,
    OSError."""
    for name in wanted.keys:
        if sys.stdin.isatty():
            value = click.prompt(name, hide_input=True, err=True)
        else:
            value = sys.stdin.readline()
        _store_checked_secret(settings, name, value)
        _print_done(f"{name} is stored in {settings.home.env}")

    settings = _reload_settings(settings)
    if wanted.timezone:
        store_setting(settings, ["timezone"], check_timezone(wanted.timezone))
        _print_done(f"Time zone: {wanted.timezone}")
    if wanted.owner:
        write_owner_name(settings, agent, wanted.owner)
        _print_done(f"Your name: {read_owner_name(settings, agent)}")
    if wanted.model:
        keep(settings, wanted.model)
        _print_done(f"Every agent uses {wanted.model}")


def _run_questions(settings: Settings, agent: str, wanted: SetupOptions) -> None:
    """One question after the other, with what is set as the answer. Raises DeskhandError,
    OSError."""
    from .importing import find_import_hint

    hint = find_import_hint(settings)
    if hint:
        click.echo(escape_control(hint))
    click.echo("Press Enter to keep a value, Ctrl+C to quit; your answers so far are saved.\n")
    _retry_until_valid(lambda: _ask_model(settings, agent))
    zone = settings.config.timezone
    here = system_timezone(settings.environment) if zone == "UTC" else zone
    _retry_until_valid(
        lambda: store_setting(
            settings, ["timezone"], check_timezone(click.prompt("Your time zone", default=here))
        )
    )
    called = read_owner_name(settings, agent)
    name = click.prompt("What should it call you?", default=called, show_default=bool(called))
    if name and name != called:
        _retry_until_valid(lambda: write_owner_name(settings, agent, name))
    _ask_keys(settings)


def _ask_model(settings: Settings, agent: str) -> None:
    now = next(iter(settings.agent(agent).models), "")

    async def pick() -> str:
        return await choose_model(await list_offers(settings), now)

    model = run(settings, pick)
    if model and model != now:
        _ask_provider_key(settings, model)
        keep(_reload_settings(settings), model)
        _print_done(f"Every agent uses {model}")


def _ask_provider_key(settings: Settings, model: str) -> None:
    """The key that the model's provider needs, where there is none yet."""
    provider = model.partition("/")[0]
    listed = build_catalogue(settings).providers.get(provider)
    if listed is None or listed.local or not listed.keys or Models(settings).key(provider):
        return
    _retry_until_valid(lambda: _prompt_key(settings, listed.keys[0]))


def _ask_keys(settings: Settings) -> None:
    stored = list_env_secrets(settings)
    click.echo(
        f"Keys in {escape_control(str(settings.home.env))}: "
        f"{', '.join(map(escape_control, stored)) or 'none'}"
    )
    while True:
        question = "Another key to store, by its name (Enter: none)"
        name = click.prompt(question, default="", show_default=False)
        if not name:
            return
        _retry_until_valid(partial(_prompt_key, settings, name))


def _prompt_key(settings: Settings, name: str) -> None:
    question = f"{name} (hidden; Enter: skip)"
    value = click.prompt(question, default="", show_default=False, hide_input=True)
    if value:
        _store_checked_secret(settings, name, value)
        _print_done(f"{name} is stored in {settings.home.env}")


def _store_checked_secret(settings: Settings, name: str, value: str) -> None:
    """Keep a secret. A provider's key that replaces another is tried before. Raises DeskhandError,
    OSError."""
    checked = check_secret(name, value)

    async def check_key() -> str:
        return await try_key(settings, name, checked)

    problem = run(settings, check_key)
    if problem:
        raise ConfigError(f"{name} was not changed: {problem}")
    store_secret(settings, name, checked)


def _retry_until_valid(act: Callable[[], T]) -> T:
    """Ask again where an answer cannot be used."""
    while True:
        try:
            return act()
        except DeskhandError as error:
            click.echo(f"  {escape_control(str(error))}", err=True)


def _reload_settings(settings: Settings) -> Settings:
    return read_settings(settings.file)


def _print_done(text: str) -> None:
    click.echo(f"{click.style('ok', fg='green', bold=True)}  {escape_control(text)}")
