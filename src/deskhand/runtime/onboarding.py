"""The first setup in the page: the steps of `deskhand setup`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import get_args

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..assembly.model_offers import default_model, list_offers
from ..assembly.model_trial import try_model, try_provider
from ..assembly.models import Models, build_catalogue
from ..channels.guides import GUIDES
from ..config.config import ProviderConfig
from ..config.first_settings import (
    check_secret,
    check_timezone,
    has_setting,
    key_variable,
    read_owner_name,
    store_secret,
    store_setting,
    write_owner_name,
)
from ..gateway.channel_setup import add_channel, list_needs
from ..importers.offer import describe_offer
from ..models.weights import PROVIDER, WeightsFolder
from ..policy.permission_modes import PERMISSION_MODES, PermissionMode
from ..supervision.doctor import run_probes
from ..types.errors import ChannelError, ConfigError, DeskhandError
from ..types.marked_texts import mark_text
from ..web.people import render_qr
from ..web.protocols import SetupBackend
from ..web.setup_views import (
    ChannelGuideView,
    CheckView,
    ConnectedView,
    Key,
    NeedView,
    NewChannel,
    OfferView,
    ProbeView,
    ProviderView,
    PullView,
    SetupStep,
    SetupView,
)
from .app import App

DEMO_MODEL = "scripted/tour"
"""The model before one was chosen."""
EXAMPLE_REQUESTS = (
    "Write three ideas for a birthday present into ideas.txt",
    "What is in my folder?",
    "Ask me something",
)
RESTART_DELAY_S = 0.5


class Onboarding:
    """It implements `web.ports.SetupBackend`. `reload` makes what was written hold; `tasks` runs
    downloads."""

    def __init__(
        self, app: App, models: Models, tasks: TaskGroup, reload: Callable[[], Awaitable[None]]
    ) -> None:
        self._app = app
        self._models = models
        self._tasks = tasks
        self._reload = reload
        self._pull: PullView | None = None
        self._connected: ConnectedView | None = None

    async def view(self) -> SetupView:
        settings = self._app.settings
        model = next(iter(settings.agent(settings.agents[0]).models), "")
        found = [
            OfferView(o.kind, o.model, o.title, o.detail, o.todo, o.ready)
            for o in await list_offers(settings)
        ]
        person = await anyio.to_thread.run_sync(read_owner_name, settings, settings.agents[0])
        return SetupView(
            model,
            model in ("", DEMO_MODEL),
            found,
            self._providers(),
            self._pull,
            self._guides(),
            self._connected,
            settings.config.permission_mode,
            {str(name): about for name, about in PERMISSION_MODES.items()},
            settings.config.timezone,
            person,
            list(EXAMPLE_REQUESTS),
            await describe_offer(settings, self._app.store),
            await anyio.to_thread.run_sync(self._list_done, model, person),
        )

    def _list_done(self, model: str, person: str) -> list[SetupStep]:
        settings = self._app.settings
        steps: dict[SetupStep, bool] = {
            "model": model not in ("", DEMO_MODEL),
            "person": bool(person),
            "permissions": has_setting(settings, "permission_mode"),
            "channel": bool(self._app.parts.channels or self._connected),
            "job": bool(self._app.features.jobs.files.scan()),
        }
        return [step for step, is_done in steps.items() if is_done]

    def _providers(self) -> list[ProviderView]:
        listed = build_catalogue(self._app.settings).providers
        return [
            ProviderView(
                name, found.keys[0], bool(self._models.key(name)), f"{name}/{default_model(found)}"
            )
            for name, found in listed.items()
            if found.keys and default_model(found)
        ]

    async def choose_model(self, model: str) -> None:
        shelf = WeightsFolder(self._app.settings.cache_folder / "models")
        name = model.removeprefix(f"{PROVIDER}/")
        if model.startswith(f"{PROVIDER}/") and not shelf.has(name):
            size = shelf.find(name).size_bytes
            if self._pull is None or self._pull.problem or self._pull.done >= self._pull.size:
                self._pull = PullView(model, 0, size)
                self._tasks.start_soon(self._download, shelf, name)
            return
        self._models.check(model)
        await self._store_setting(["defaults", "models"], [model])

    async def _download(self, shelf: WeightsFolder, name: str) -> None:
        model = f"{PROVIDER}/{name}"

        def progress(done: int, size: int) -> None:
            self._pull = PullView(model, done, size)

        try:
            await shelf.pull(name, progress)
            await self._store_setting(["defaults", "models"], [model])
        except (DeskhandError, OSError) as error:  # the page shows it, and must not fall with it
            self._pull = PullView(model, 0, 1, str(error))

    async def add_provider(self, given: Key) -> ProbeView:
        settings = self._app.settings
        provider = given.provider.strip()
        listed = build_catalogue(settings).providers.get(provider)
        if listed is None and not given.base_url:
            raise ConfigError(
                mark_text(
                    "there is no provider {provider}; give its address, or see `deskhand model "
                    "list`"
                ).format(provider=repr(provider))
            )
        own = settings.config.providers.get(provider, ProviderConfig())
        usual = default_model(listed) if listed else ""
        model = given.model or usual
        if not model:
            raise ConfigError(
                mark_text("name a model of {provider}: its server does not list its models").format(
                    provider=repr(provider)
                )
            )
        variable = own.key_env or (
            listed.keys[0] if listed and listed.keys else key_variable(provider)
        )
        own = replace(own, base_url=given.base_url.strip() or own.base_url)
        own = own if given.vision is None else replace(own, vision=given.vision)
        if given.key:
            check_secret(variable, given.key)
        wanted = f"{provider}/{model.removeprefix(f'{provider}/')}"
        keyed = replace(own, key_env=variable) if given.key else own
        probe = await try_provider(settings, provider, keyed, given.key.strip(), wanted)
        if probe.ok:
            await self._store_provider(
                provider, keyed if listed is None or not listed.keys else own, variable, given.key
            )
            await self._store_setting(["defaults", "models"], [wanted])
        return probe

    async def _store_provider(
        self, provider: str, own: ProviderConfig, variable: str, key: str
    ) -> None:
        """Store the model that was tried."""
        settings = self._app.settings
        if key:
            await anyio.to_thread.run_sync(store_secret, settings, variable, key)
        if own != settings.config.providers.get(provider, ProviderConfig()):
            path = ["providers", provider]
            await anyio.to_thread.run_sync(store_setting, settings, path, msgspec.to_builtins(own))

    async def probe_model(self, model: str) -> ProbeView:
        return await try_model(self._models, model)

    async def connect_channel(self, wanted: NewChannel) -> ConnectedView:
        settings = self._app.settings
        kind = wanted.kind
        try:
            found = await add_channel(settings, self._app.blobs, kind, kind, wanted.answers)
        except ChannelError as error:
            raise ConfigError(str(error)) from error
        guide = GUIDES[kind]
        qr = render_qr(found.link)
        self._connected = ConnectedView(kind, found.name, found.link, qr, guide.after)
        await self._reload()
        self._tasks.start_soon(self._restart_soon)
        return self._connected

    def _guides(self) -> list[ChannelGuideView]:
        settings = self._app.settings
        return [
            ChannelGuideView(
                kind,
                guide.title,
                guide.link,
                [
                    NeedView(
                        need.setting,
                        need.label,
                        need.where,
                        bool(need.variable),
                        need.example,
                        need.optional,
                    )
                    for need in list_needs(settings, kind, kind)
                ],
                kind in settings.config.channels,
            )
            for kind, guide in GUIDES.items()
        ]

    async def _restart_soon(self) -> None:
        """Restart, as channels are opened at the start. The page is told first, and reconnects."""
        await anyio.sleep(RESTART_DELAY_S)
        self._app.restart.request()

    async def set_owner(self, name: str, timezone: str) -> None:
        settings = self._app.settings
        if timezone:
            await self._store_setting(["timezone"], check_timezone(timezone))
        if name:
            await anyio.to_thread.run_sync(write_owner_name, settings, settings.agents[0], name)

    async def set_permission_mode(self, mode: str) -> None:
        if mode not in get_args(PermissionMode):
            known = ", ".join(PERMISSION_MODES)
            raise ConfigError(
                mark_text("there is no permission mode {mode}; there are: {modes}").format(
                    mode=repr(mode), modes=known
                )
            )
        await self._store_setting(["permission_mode"], mode)

    async def run_checks(self) -> list[CheckView]:
        found = await run_probes(self._app.settings)
        return [
            CheckView(name, finding.level, finding.text, finding.remedy) for name, finding in found
        ]

    async def _store_setting(self, path: list[str], value: object) -> None:
        await anyio.to_thread.run_sync(store_setting, self._app.settings, path, value)
        await self._reload()


_: type[SetupBackend] = Onboarding
