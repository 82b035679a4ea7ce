"""The first run: what to do when no model is chosen yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import click
import msgspec

from ..config.config import Settings
from .plain import escape_control


class WelcomeOffer(Protocol):
    """A way to get a model. `take` does what is needed and returns the model to talk to now,
    `provider/name`."""

    @property
    def title(self) -> str: ...

    @property
    def detail(self) -> str: ...

    @property
    def take(self) -> Callable[[], Awaitable[str]]: ...


class Scripted(msgspec.Struct, frozen=True):
    """A look around without any model."""

    title: str = "Try Deskhand without a model"
    detail: str = "a script repeats what you write; nothing is installed or sent"

    @property
    def take(self) -> Callable[[], Awaitable[str]]:
        async def take() -> str:
            return "scripted/echo"

        return take


async def list_offers(settings: Settings) -> Sequence[WelcomeOffer]:
    """What can be done now, the best first; the look around is always the last."""
    from ..assembly.model_offers import list_offers as found
    from .weights import Bar

    return (*await found(settings, Bar("weights")), Scripted())


async def choose_model(found: Sequence[WelcomeOffer], now: str = "") -> str:
    """Show the offers and take one. Returns the model, `now` where the person keeps that, or ''
    when they want none of them."""
    click.echo(
        f"The current model is {escape_control(now)}. Choose another one:\n"
        if now
        else "No model is chosen yet. Choose one:\n"
    )
    for number, offer in enumerate(found, 1):
        click.echo(f"  {click.style(str(number), bold=True)}  {escape_control(offer.title)}")
        click.echo(click.style(f"     {escape_control(offer.detail)}", dim=True))
    click.echo(
        f"  {click.style('-', bold=True)}  Another one: write provider/name, such as openai/gpt-5.4"
    )
    click.echo(
        click.style(
            "     List models: deskhand model list\n"
            "     Change it later: deskhand model use provider/name\n",
            dim=True,
        )
    )

    def parse_choice(text: str) -> str:
        text = text.strip()
        if not (text == "q" or "/" in text or (text.isdecimal() and 0 < int(text) <= len(found))):
            raise click.BadParameter(f"write a number from 1 to {len(found)}, provider/name, or q")
        return text

    picked = click.prompt(
        "A number, provider/name, or q to leave", default=now or "1", value_proc=parse_choice
    )
    if picked == "q":
        return ""
    return picked if "/" in picked else await found[int(picked) - 1].take()
