"""Where homes of other systems wait to be taken over, for who begins here."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread

from ..config.config import Settings
from ..store.base import Store
from .detect import find_homes_in
from .ledger import load_ledger
from .model import System


def find_homes(settings: Settings, here: Path | None = None) -> list[tuple[System, Path]]:
    """Those that lie where they usually do, and in the folder where one stands."""
    person = Path(settings.environment.get("HOME", "/"))
    found = find_homes_in(person, here)
    return [
        (system, home) for system, home in found if home.resolve() != settings.home.root.resolve()
    ]


def format_home(settings: Settings, home: Path) -> str:
    """A home as a person writes it."""
    person = settings.environment.get("HOME", "")
    return f"~/{home.relative_to(person)}" if person and home.is_relative_to(person) else str(home)


async def describe_offer(settings: Settings, store: Store | None, here: Path | None = None) -> str:
    """A sentence of what could be taken over; '' where nothing waits. Without a `store` nothing has
    been."""
    found = await anyio.to_thread.run_sync(find_homes, settings, here)
    left = [each for each in found if store is None or not await load_ledger(store, each[0])]
    if not left:
        return ""
    if len(left) == 1:
        return f"{left[0][0]} was used here ({format_home(settings, left[0][1])})."
    *some, last = (f"{system} ({format_home(settings, home)})" for system, home in left)
    return f"{', '.join(some)} and {last} were used here."
