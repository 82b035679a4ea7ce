"""The first run: what to do when no model is chosen yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import click
import msgspec

from ..runtime.config import Settings
from .plain import plain


class Offer(Protocol):
    """A way to get a model. `take` does what is needed and returns the model to talk to now, `provider/name`."""

    @property
    def title(self) -> str: ...

    @property
    def detail(self) -> str: ...

    @property
    def take(self) -> Callable[[], Awaitable[str]]: ...


class Scripted(msgspec.Struct, frozen=True):
    """A look around without any model."""

    title: str = "Look around without a model"
    detail: str = "a script says back what you write; nothing is installed, nothing is sent"

    @property
    def take(self) -> Callable[[], Awaitable[str]]:
        async def take() -> str:
            return "scripted/echo"

        return take


async def offers(settings: Settings) -> Sequence[Offer]:
    """What can be done now, the best first; the look around is always the last."""
    from ..runtime.first_run import offers as found
    from .weights import Bar

    return (*await found(settings, Bar("weights")), Scripted())


async def choose(found: Sequence[Offer]) -> str:
    """Show the offers and take one. Returns the model, or '' when the person wants none of them."""
    click.echo("No model is chosen yet. What would you like?\n")
    for number, offer in enumerate(found, 1):
        click.echo(f"  {click.style(str(number), bold=True)}  {plain(offer.title)}")
        click.echo(click.style(f"     {plain(offer.detail)}", dim=True))
    click.echo(f"  {click.style('-', bold=True)}  Use a model with your own key, or one on this machine")
    click.echo(click.style("     deskhand model list, then: deskhand model use provider/name\n", dim=True))
    picked = click.prompt(
        "A number, or q to leave",
        default="1",
        type=click.Choice([*map(str, range(1, len(found) + 1)), "q"]),
        show_choices=False,
    )
    return "" if picked == "q" else await found[int(picked) - 1].take()
