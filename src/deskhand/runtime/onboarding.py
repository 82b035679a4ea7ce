"""The first five minutes behind the page: what `deskhand setup` does in a terminal, step by step."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import get_args

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..channels.settings import ChannelConfig
from ..models.base import Reply, Request, Shown, TextDelta, ToolSchema
from ..models.weights import PROVIDER, Shelf
from ..policy.postures import POSTURES, Posture
from ..types.errors import ChannelError, ConfigError, DeskhandError, ModelError
from ..types.labels import OWNER
from ..types.messages import Message, Text
from ..web.people import qr_svg
from ..web.steps import BotView, CheckView, OfferView, ProbeView, ProviderView, PullView, SetUp, SetupView
from .app import App
from .channels import introduction
from .doctor import examine
from .first_run import offers, usual_model
from .models import Models, catalogue_of
from .moving.offer import waiting
from .setting_up import checked_timezone, name_owner, owner_of, store_key, store_secret

DEMO = "scripted/tour"
"""What answers before a model is chosen."""
EXAMPLES = (
    "Write three ideas for a birthday present into ideas.txt",
    "What is in my folder?",
    "Ask me something",
)
PROBE_S, RESTART_IN_S = 120.0, 0.5
TELEGRAM = "telegram"
_TOOL = ToolSchema(
    "weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


class Onboarding:
    """It implements `web.setup.SetUp`. `reload` makes what was written hold; `tasks` runs downloads."""

    def __init__(self, app: App, models: Models, tasks: TaskGroup, reload: Callable[[], Awaitable[None]]) -> None:
        self._app, self._models, self._tasks, self._reload = app, models, tasks, reload
        self._pull: PullView | None = None
        self._bot: BotView | None = None

    async def view(self) -> SetupView:
        settings = self._app.settings
        model = next(iter(settings.agent(settings.agents[0]).models), "")
        found = [OfferView(o.kind, o.model, o.title, o.detail, o.todo, o.ready) for o in await offers(settings)]
        person = await anyio.to_thread.run_sync(owner_of, settings, settings.agents[0])
        return SetupView(
            model,
            model in ("", DEMO),
            found,
            self._providers(),
            self._pull,
            self._bot,
            settings.config.posture,
            {str(name): about for name, about in POSTURES.items()},
            settings.config.timezone,
            person,
            list(EXAMPLES),
            await waiting(settings, self._app.store),
        )

    def _providers(self) -> list[ProviderView]:
        listed = catalogue_of(self._app.settings).providers
        return [
            ProviderView(name, found.keys[0], bool(self._models.key(name)), f"{name}/{usual_model(found)}")
            for name, found in listed.items()
            if found.keys and usual_model(found)
        ]

    async def take(self, model: str) -> None:
        shelf = Shelf(self._app.settings.cache / "models")
        name = model.removeprefix(f"{PROVIDER}/")
        if model.startswith(f"{PROVIDER}/") and not shelf.has(name):
            size = shelf.find(name).size_bytes
            if self._pull is None or self._pull.problem or self._pull.done >= self._pull.size:
                self._pull = PullView(model, 0, size)
                self._tasks.start_soon(self._fetch, shelf, name)
            return
        self._models.check(model)
        await self._write(["defaults", "models"], [model])

    async def _fetch(self, shelf: Shelf, name: str) -> None:
        model = f"{PROVIDER}/{name}"

        def progress(done: int, size: int) -> None:
            self._pull = PullView(model, done, size)

        try:
            await shelf.pull(name, progress)
            await self._write(["defaults", "models"], [model])
        except (DeskhandError, OSError) as error:  # the page shows it, and must not fall with it
            self._pull = PullView(model, 0, 1, str(error))

    async def key(self, provider: str, key: str, model: str) -> str:
        listed = catalogue_of(self._app.settings).providers.get(provider)
        if listed is None or not listed.keys:
            raise ConfigError(f"no provider {provider!r} that takes a key is known; `deskhand model list` shows them")
        wanted = model or f"{provider}/{usual_model(listed)}"
        await anyio.to_thread.run_sync(store_secret, self._app.settings, listed.keys[0], key)
        await self._reload()
        self._models.check(wanted)
        await self._write(["defaults", "models"], [wanted])
        return wanted

    async def probe(self, model: str) -> ProbeView:
        began = time.perf_counter()
        first = 0.0
        said, tools = "", False
        text = "Say hello in one short sentence, then call the tool `weather` for Paris."
        asked = Message("user", (Text(text, OWNER),))
        request = Request(model.partition("/")[2], (), (Shown(4, asked),), (_TOOL,), max_output_tokens=300)
        try:
            with anyio.fail_after(PROBE_S):
                async for item in self._models.open(model).reply(request):
                    if isinstance(item, TextDelta) and not first:
                        first = time.perf_counter() - began
                    elif isinstance(item, Reply):
                        said, tools = item.message.text, bool(item.message.calls)
        except (ModelError, ConfigError) as error:
            return ProbeView(model, ok=False, problem=str(error))
        except TimeoutError:
            return ProbeView(model, ok=False, problem=f"it did not answer within {PROBE_S:.0f} s")
        whole = time.perf_counter() - began
        return ProbeView(model, bool(said or tools), said.strip(), tools, first or whole, whole)

    async def bot(self, token: str) -> BotView:
        settings = self._app.settings
        config = settings.config.channels.get(TELEGRAM, ChannelConfig())
        variable = config.token_env or "TELEGRAM_BOT_TOKEN"
        tried = replace(settings, environment={**settings.environment, variable: token.strip()})
        try:
            found = await introduction(TELEGRAM, config, tried, self._app.blobs)
        except ChannelError as error:
            raise ConfigError(f"Telegram does not take this token: {error}") from error
        await anyio.to_thread.run_sync(store_secret, settings, variable, token)
        self._bot = BotView(found.name, found.link, qr_svg(found.link))
        await self._write(["channels", TELEGRAM, "enabled"], True)
        self._tasks.start_soon(self._start_again)
        return self._bot

    async def _start_again(self) -> None:
        """Channels begin with the process. The page is told first, and comes back by itself."""
        await anyio.sleep(RESTART_IN_S)
        self._app.restart.ask()

    async def person(self, name: str, timezone: str) -> None:
        settings = self._app.settings
        if timezone:
            await self._write(["timezone"], checked_timezone(timezone))
        if name:
            await anyio.to_thread.run_sync(name_owner, settings, settings.agents[0], name)

    async def posture(self, posture: str) -> None:
        if posture not in get_args(Posture):
            raise ConfigError(f"there is no posture {posture!r}; there are: {', '.join(POSTURES)}")
        await self._write(["posture"], posture)

    async def examine(self) -> list[CheckView]:
        found = await examine(self._app.settings)
        return [CheckView(name, finding.level, finding.text, finding.remedy) for name, finding in found]

    async def _write(self, path: list[str], value: object) -> None:
        await anyio.to_thread.run_sync(store_key, self._app.settings, path, value)
        await self._reload()


_: type[SetUp] = Onboarding
