"""The parts that the settings name: models, tools and channels, imported only when they are named."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from ..models.base import Model
from ..types.errors import ModelUnknown
from .app import Parts
from .config import Settings


def default_parts(settings: Settings) -> Parts:
    """What the settings ask for."""
    return Parts(Models().open, {})


class Models:
    """Opens `provider/name`, each once."""

    def __init__(self) -> None:
        self._opened: dict[str, Model] = {}

    def open(self, name: str) -> Model:
        """Raises ModelUnknown, with the next step, for a provider that does not exist."""
        if name not in self._opened:
            provider, _, rest = name.partition("/")
            for entry in entry_points(group="deskhand.models", name=provider):
                make: Callable[[str], Model] = entry.load()
                self._opened[name] = make(rest)
        if name not in self._opened:
            raise ModelUnknown(f"there is no model {name!r}: `deskhand model list` shows those that there are")
        return self._opened[name]
