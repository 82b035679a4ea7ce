"""Opens the models that the settings name, with the keys of the environment."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from importlib.util import find_spec

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..config.config import Settings
from ..config.foreign_keys import normalize_model_name
from ..memory.recall import Meaning
from ..memory.settings import LOCAL, WORDS_ALONE, MemoryConfig
from ..models.base import Closable, Model
from ..models.catalogue import (
    DEFAULT_FACTS,
    DEFAULT_LOCAL_FACTS,
    Catalogue,
    open_model,
    parse_model_name,
    read_catalogue,
)
from ..models.engine import Engine, EngineFiles, EngineModel, is_installed
from ..models.openai import OpenAIModel
from ..models.prefix import Prefixes
from ..models.settings import Catalogued, Facts
from ..models.shim import Shim
from ..models.sight import OPENROUTER, Sighted, detect_vision
from ..models.transport import Transport, TransportLimits
from ..models.weights import PROVIDER, WeightsFolder
from ..store.base import Store
from ..types.errors import ConfigError, ModelUnknown
from ..types.marked_texts import mark_text

MEMORY_INSTALLED = find_spec("numpy") is not None
LOCAL_LIMITS = TransportLimits(first_s=600, idle_s=120, total_s=1800)
"""A processor reads a prompt slowly, and one request waits for the other."""


class Models:
    """The models of this process, each opened once. Enter it inside the running loop; leaving it
    ends the engines. `demo` is what answers as long as no model is chosen."""

    def __init__(
        self,
        settings: Settings,
        limits: TransportLimits | None = None,
        shelf: WeightsFolder | None = None,
        *,
        demo: str = "",
    ) -> None:
        self._settings = settings
        self._demo = demo
        self._catalogue = build_catalogue(settings)
        self._transport, self._local = (
            Transport(limits),
            Transport(limits or LOCAL_LIMITS, keep=False),
        )
        self._shelf = shelf or WeightsFolder(settings.cache_folder / "models")
        self._opened: dict[str, Model] = {}
        self._retired: list[Model] = []
        self._engines: dict[str, Engine] = {}
        self._tasks: TaskGroup | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Models:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(self._tasks.cancel_scope.cancel)
        await self._stack.enter_async_context(self._transport)
        await self._stack.enter_async_context(self._local)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Whoever interrupts this interrupts one of them: the others are closed all the same."""
        for model in (*self._retired, *self._opened.values()):
            if isinstance(model, Closable):
                self._stack.push_async_callback(model.aclose)
        await self._stack.aclose()

    def renew(self, settings: Settings) -> None:
        """Open models by these settings from now on. Calls that are under way end as they began,
        and embedded models stay warm."""
        own = (self._settings.config.providers, self._settings.environment)
        if own != (settings.config.providers, settings.environment):
            stays = {
                name: model
                for name, model in self._opened.items()
                if name.startswith(f"{PROVIDER}/")
            }
            self._retired += [model for name, model in self._opened.items() if name not in stays]
            self._opened = stays
        self._settings, self._catalogue = settings, build_catalogue(settings)

    def open(self, name: str) -> Model:
        """The model `provider/name`. Raises ModelUnknown with the next step."""
        name = name or self._demo
        if not name:
            raise ModelUnknown(
                "no model is chosen. Choose one: `deskhand model use provider/name`."
            )
        if name not in self._opened:
            provider, _, model = name.partition("/")
            try:
                if provider == PROVIDER:
                    self._opened[name] = Sighted(self._open_embedded(model), name)
                else:
                    self._opened[name] = self._open_hosted(name)
            except ConfigError as error:
                raise ModelUnknown(f"{error} List models with: deskhand model list") from error
        return self._opened[name]

    def _open_hosted(self, name: str) -> Model:
        """A model at a provider. Where it is not known that it sees, its server is asked at the
        first picture."""
        provider, _, model = name.partition("/")
        facts = facts_of(self._settings, name)
        opened = self._open_with(self._catalogue, name)
        own = self._settings.config.providers.get(provider)
        if facts.vision or provider not in self._catalogue.providers or (own and own.via):
            return opened  # a library shows its models what it is given
        seeing = replace(
            self._catalogue,
            providers={
                **self._catalogue.providers,
                provider: _with_vision(self._catalogue.provider(provider), vision=True),
            },
        )
        spec = self._catalogue.spec(
            provider, model, self.key(provider), own.base_url if own else ""
        )
        tells = facts.vision is None and (
            provider == OPENROUTER or is_local(self._settings, name) or (own and own.base_url)
        )
        ask = partial(detect_vision, spec) if tells else None
        return Sighted(opened, name, ask, lambda: self._open_with(seeing, name))

    def _open_with(self, catalogue: Catalogue, name: str) -> Model:
        """The model as this catalogue knows it. Raises ConfigError."""
        provider = name.partition("/")[0]
        own = self._settings.config.providers.get(provider)
        through = f"{own.via}/{name}" if own and own.via else name
        opened = open_model(
            catalogue, self._transport, through, self.key(provider), own.base_url if own else ""
        )
        return (
            Shim(opened, own.tools)
            if own and own.tools != "native" and isinstance(opened, OpenAIModel)
            else opened
        )

    def check(self, name: str) -> str:
        """What is still to be done before this model can be used; '' for nothing. Raises
        ConfigError, ModelUnknown, with the next step, for one that could never be opened."""
        provider, _, model = name.partition("/")
        if provider != PROVIDER:
            self.open(name)
            return ""
        self._shelf.find(model)
        _require_engine()
        if self._shelf.has(model):
            return ""
        return mark_text("its weights are not downloaded yet: deskhand model pull {model}").format(
            model=model
        )

    def _open_embedded(self, name: str) -> Model:
        """An embedded model. Its engine starts with the first request, or when it is warmed."""
        _require_engine()
        if not self._shelf.has(name):
            raise ModelUnknown(
                f"the weights of {name!r} are not downloaded yet: deskhand model pull {name}"
            )
        if self._tasks is None:
            raise RuntimeError("the models are used outside of their `async with`")
        weights = self._shelf.path(name)
        slots = self._shelf.folder / "slots"
        files = EngineFiles(weights, self._settings.home.logs / "engine.log", slots)
        engine = Engine(files, lambda: prefixes.warm())
        prefixes = Prefixes(engine, self._local, slots, weights)
        shim = Shim(EngineModel(engine, self._local, name, self._catalogue.facts(PROVIDER, name)))
        self._tasks.start_soon(engine.run)
        self._engines[name] = engine
        return shim

    def warm(self, names: Iterable[str]) -> None:
        """Start the engines of those of these models that are embedded and here, so that they read
        their prompts before anyone asks."""
        for name in names:
            if (
                name.startswith(f"{PROVIDER}/")
                and is_installed()
                and self._shelf.has(name.partition("/")[2])
            ):
                self.open(name)
                self._engines[name.partition("/")[2]].request_start()

    def open_meaning(self, config: MemoryConfig, store: Store) -> Meaning | None:
        """What compares meanings for memory, by these settings; None where words alone are
        compared, or the extra is not installed. Raises ConfigError."""
        chosen = config.embed_model
        if not config.enabled or chosen in ("", WORDS_ALONE) or not MEMORY_INSTALLED:
            return None
        from ..memory.meaning import Meanings  # noqa: PLC0415 -- needs the extra [memory]
        from ..models.embeddings import ApiEmbedder, Embedder  # noqa: PLC0415
        from ..models.embeddings_local import open_local_embedders  # noqa: PLC0415

        provider, _, name = chosen.partition("/")
        if provider == LOCAL:
            found: tuple[Embedder, ...] = open_local_embedders(name)
        else:
            provider, name = parse_model_name(normalize_model_name(chosen))
            own = self._settings.config.providers.get(provider)
            spec = self._catalogue.spec(
                provider, name, self.key(provider), own.base_url if own else ""
            )
            found = (ApiEmbedder(self._transport, spec, config.embed_dimensions),)
        return Meanings(store, found) if found else None

    def key(self, provider: str) -> str:
        """The provider's key, from the environment variable that the settings or the catalogue
        name; '' for none."""
        own = self._settings.config.providers.get(provider)
        listed = self._catalogue.providers.get(provider)
        names = (own.key_env,) if own and own.key_env else listed.keys if listed else ()
        return next(
            (
                self._settings.environment[name]
                for name in names
                if self._settings.environment.get(name)
            ),
            "",
        )


def build_catalogue(settings: Settings) -> Catalogue:
    """The catalogue that we ship, and the providers that the settings add."""
    shipped = read_catalogue()
    providers = dict(shipped.providers)
    for name, own in settings.config.providers.items():
        # Our protocol for small models is spoken over Chat Completions.
        wire = own.wire if own.tools == "native" else "openai"
        if name not in providers:
            local = not (own.key_env or own.via)
            providers[name] = Catalogued(wire or "openai", "", "", own.base_url, local=local)
        elif wire:
            models = {
                model: replace(facts, wire="") for model, facts in providers[name].models.items()
            }
            providers[name] = replace(providers[name], wire=wire, models=models)
        if own.vision is not None:
            providers[name] = _with_vision(providers[name], vision=own.vision)
    return replace(shipped, providers=providers)


def _with_vision(provider: Catalogued, *, vision: bool) -> Catalogued:
    """The provider with models that all see, or do not; those too that nobody described."""
    known = {"*": DEFAULT_LOCAL_FACTS if provider.local else DEFAULT_FACTS, **provider.models}
    return replace(
        provider, models={name: replace(facts, vision=vision) for name, facts in known.items()}
    )


def facts_of(settings: Settings, model: str) -> Facts:
    """What is known of `provider/name`; a careful guess for a provider that only an installed
    package knows."""
    try:
        return build_catalogue(settings).facts(*parse_model_name(model))
    except ConfigError:
        return DEFAULT_FACTS


def is_local(settings: Settings, model: str) -> bool:
    """Whether `provider/name` runs on a server of one's own."""
    known = build_catalogue(settings).providers.get(model.partition("/")[0])
    return known is not None and known.local


def is_small(settings: Settings, model: str) -> bool:
    """Whether `provider/name` needs our protocol for tools, and with it the guards for small
    models."""
    provider = model.partition("/")[0]
    own = settings.config.providers.get(provider)
    return provider == PROVIDER or (own is not None and own.tools != "native")


def _require_engine() -> None:
    """Raises ModelUnknown when the engine for embedded models is not installed."""
    if not is_installed():
        raise ModelUnknown(
            "the engine for embedded models is not installed: pip install 'deskhand[local]'."
        )
