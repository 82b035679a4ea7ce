"""Opens the models that the settings name, with the keys of the environment."""

from __future__ import annotations

from msgspec.structs import replace

from ..models.base import Model
from ..models.catalogue import UNKNOWN, Catalogue, open_model, parse, read_catalogue
from ..models.settings import Catalogued, Facts
from ..models.transport import Limits, Transport
from ..types.errors import ConfigError, ModelUnknown
from .config import Settings


class Models:
    """The models of this process, each opened once. Enter it inside the running loop."""

    def __init__(self, settings: Settings, limits: Limits | None = None) -> None:
        self._settings = settings
        self._catalogue = catalogue_of(settings)
        self._transport = Transport(limits)
        self._opened: dict[str, Model] = {}

    async def __aenter__(self) -> Models:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._transport.__aexit__(*raised)

    def open(self, name: str) -> Model:
        """The model `provider/name`. Raises ModelUnknown with the next step."""
        if not name:
            raise ModelUnknown("no model is chosen. Choose one: `deskhand model use provider/name`.")
        if name not in self._opened:
            provider = name.partition("/")[0]
            own = self._settings.config.providers.get(provider)
            try:
                key, url = self.key(provider), own.base_url if own else ""
                self._opened[name] = open_model(self._catalogue, self._transport, name, key, url)
            except ConfigError as error:
                raise ModelUnknown(f"{error} `deskhand model list` shows what there is.") from error
        return self._opened[name]

    def key(self, provider: str) -> str:
        """The provider's key, from the environment variable that the settings or the catalogue name; '' for none."""
        own = self._settings.config.providers.get(provider)
        listed = self._catalogue.providers.get(provider)
        names = (own.key_env,) if own and own.key_env else listed.keys if listed else ()
        return next((self._settings.environment[name] for name in names if self._settings.environment.get(name)), "")


def catalogue_of(settings: Settings) -> Catalogue:
    """The catalogue that we ship, and the providers that the settings add."""
    shipped = read_catalogue()
    providers = dict(shipped.providers)
    for name, own in settings.config.providers.items():
        if name not in providers:
            providers[name] = Catalogued(own.wire, source="", as_of="", base_url=own.base_url, local=not own.key_env)
        elif own.wire != "openai":
            providers[name] = replace(providers[name], wire=own.wire)
    return replace(shipped, providers=providers)


def facts_of(settings: Settings, model: str) -> Facts:
    """What is known of `provider/name`; a careful guess for a provider that only an installed package knows."""
    try:
        return catalogue_of(settings).facts(*parse(model))
    except ConfigError:
        return UNKNOWN
