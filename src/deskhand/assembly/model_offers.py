"""What a person without a model can be offered: what is found here, the strongest first, in words
for people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec

from ..config.config import Settings
from ..models.catalogue import Catalogue
from ..models.engine import is_installed
from ..models.local_servers import LocalServer, find_servers
from ..models.settings import Catalogued
from ..models.weights import PROVIDER, WeightsFolder, read_free_memory
from ..net.download import OnProgress, ignore_progress
from ..types.errors import ConfigError
from .models import build_catalogue

LOOPBACK = {
    "ollama": "http://127.0.0.1:11434/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
}
"""Where the common local servers listen."""
MAX_PER_SERVER = 3
"""Models of one server that are offered; it may have dozens."""
MIN_MEMORY_BYTES = 1_000_000_000
"""With less free memory than this no embedded model runs well."""


class Offer(msgspec.Struct, frozen=True):
    """A way to get a model, in words for people.

    `take` does what is needed and gives the model to talk to, `provider/name`; it raises
    DeskhandError with the next step. `todo` is the command that does the same. `ready`: nothing has
    to be fetched or installed first.
    """

    kind: Literal["key", "server", "embedded", "download"]
    model: str
    title: str
    detail: str
    take: Callable[[], Awaitable[str]]
    todo: str
    ready: bool = True


class Machine(msgspec.Struct, frozen=True):
    """What was found of this machine. `engine`: the extra `[local]` is installed."""

    servers: tuple[LocalServer, ...] = ()
    free_bytes: int = 0
    engine: bool = False


async def detect_machine(limit_s: float = 1.0, addresses: dict[str, str] | None = None) -> Machine:
    """Look for servers on loopback, free memory and the engine; takes no longer than `limit_s`."""
    servers = await find_servers(LOOPBACK if addresses is None else addresses, limit_s)
    return Machine(servers, read_free_memory(), is_installed())


async def list_offers(settings: Settings, progress: OnProgress = ignore_progress) -> list[Offer]:
    """What can be offered on this machine now. `progress` is told of a download that an offer
    starts."""
    return make_offers(
        settings, await detect_machine(), WeightsFolder(settings.cache_folder / "models"), progress
    )


def make_offers(
    settings: Settings,
    machine: Machine,
    shelf: WeightsFolder,
    progress: OnProgress = ignore_progress,
) -> list[Offer]:
    """The offers, the strongest first; at the end always the embedded model, which needs
    nothing."""
    return [
        *_offers_by_key(settings, build_catalogue(settings)),
        *_offers_by_server(machine.servers),
        *_embedded_offers(machine, shelf, progress),
    ]


def _make_offer(kind: Literal["key", "server"], model: str, title: str, detail: str) -> Offer:
    async def take() -> str:
        return model

    return Offer(kind, model, title, detail, take, f"deskhand model use {model}")


def _offers_by_key(settings: Settings, catalogue: Catalogue) -> list[Offer]:
    found = []
    for name, provider in catalogue.providers.items():
        own = settings.config.providers.get(name)
        keys = (own.key_env,) if own and own.key_env else provider.keys
        key = next((key for key in keys if settings.environment.get(key)), "")
        model = default_model(provider)
        if key and model and (provider.base_url or (own and own.base_url)):
            detail = f"your key in {key} is used; {name} charges for it by its own prices"
            found.append(_make_offer("key", f"{name}/{model}", f"{model} of {name}", detail))
    return found


def default_model(provider: Catalogued) -> str:
    """The first model that the catalogue names; a family's name is that of its newest member. ''
    for none."""
    exact = [name for name in provider.models if not name.endswith("*")]
    families = [
        name[:-1] for name in provider.models if name.endswith("*") and not name.endswith("-*")
    ]
    return next(iter(exact + [name for name in families if name]), "")


def _offers_by_server(servers: Sequence[LocalServer]) -> list[Offer]:
    return [
        _make_offer(
            "server",
            f"{server.provider}/{name}",
            f"{name} on {server.provider}",
            "it runs on this machine already",
        )
        for server in servers
        for name in server.models[:MAX_PER_SERVER]
    ]


def _embedded_offers(machine: Machine, shelf: WeightsFolder, progress: OnProgress) -> list[Offer]:
    """Those that are here; else the one that fits into memory. The engine itself may still be
    missing."""
    names = shelf.list_present() or [shelf.choose(machine.free_bytes)]
    return [_embedded_offer(name, machine, shelf, progress) for name in names]


def _embedded_offer(
    name: str, machine: Machine, shelf: WeightsFolder, progress: OnProgress
) -> Offer:
    weights = shelf.find(name)
    here = shelf.has(name)
    model = f"{PROVIDER}/{name}"
    install = "" if machine.engine else "pip install 'deskhand[local]'"
    get = f"deskhand model {f'use {model}' if here else f'pull {name}'}"

    async def take() -> str:
        if install:
            raise ConfigError(f"the engine for embedded models is not installed: {install}")
        await shelf.pull(name, progress)
        return model

    cost = (
        "it is downloaded" if here else f"{format_gigabytes(weights.size_bytes)} to download once"
    )
    short = (
        f"; memory is low: {format_gigabytes(machine.free_bytes)} are free"
        if machine.free_bytes < MIN_MEMORY_BYTES
        else ""
    )
    detail = f"{weights.about}; {cost}; needs no key and no network{short}"
    title = f"Embedded model {name}"
    todo = " && ".join(part for part in (install, get) if part)
    return Offer(
        "embedded" if here else "download", model, title, detail, take, todo, here and not install
    )


def format_gigabytes(size_bytes: int) -> str:
    """A size in words."""
    return f"{size_bytes / 1e9:.1f} GB"
