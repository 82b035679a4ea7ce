"""What the page and the API may know and change of the running Deskhand: `web.ports.House`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio.to_thread
import msgspec

from ..models.weights import PROVIDER, Shelf
from ..skills.skill import Skills
from ..tools.base import Reach
from ..types.errors import Refused
from ..types.health import Health
from ..web.ports import House
from ..web.views import (
    AgentView,
    ModelsView,
    ModelView,
    PresetView,
    SkillDraft,
    SkillView,
    StatusView,
    ToolView,
)
from .app import App
from .models import Models, catalogue_of, facts_of
from .presets import presets
from .setting_up import store_key
from .toolbox import skills_of


class RunningHouse:
    """It implements `web.ports.House`."""

    def __init__(self, app: App, models: Models) -> None:
        self._app, self._models = app, models
        self._began = app.parts.clock.now()

    @property
    def agents(self) -> Sequence[str]:
        return self._app.settings.agents

    async def status(self) -> StatusView:
        settings, name = self._app.settings, self.agents[0]
        model = next(iter(settings.agent(name).models), "")
        provider, _, short = model.partition("/")
        listed = catalogue_of(settings).providers.get(provider)
        own = settings.config.providers.get(provider)
        url = own.base_url if own and own.base_url else listed.base_url if listed else ""
        count = (await self._app.store.rows("session_count", ()))[0][0]
        tools = [tool.name for tool in self.tools(name)]
        return StatusView(
            "running", name, short, provider, url, tools, count, 0, {}, "", list(self.agents), self._began
        )

    async def health(self) -> Health:
        return await self._app.health()

    def about(self, agent: str) -> AgentView:
        config = self._app.settings.agent(agent)
        return AgentView(
            agent, list(config.models), str(self._app.agent(agent).folder), config.preset, config.thinking or "off"
        )

    def tools(self, agent: str) -> list[ToolView]:
        specs = [tool.spec for tool in self._app.agent(agent).tools.values()]
        return [ToolView(spec.name, spec.description, spec.effect, spec.parameters) for spec in specs]

    def _skills(self, agent: str) -> Skills:
        return skills_of(self._app.settings, agent)

    def skills(self, agent: str) -> list[SkillView]:
        found = self._skills(agent).find()
        return [SkillView(name, skill.description, skill.source) for name, skill in found.items()]

    async def add_skill(self, agent: str, draft: SkillDraft) -> SkillView:
        raise Refused("not yet")

    def presets(self) -> list[PresetView]:
        return [PresetView(each.name, each.description) for each in presets(self._app.settings.home.root / "prompts")]

    async def models(self) -> ModelsView:
        return await anyio.to_thread.run_sync(self._list_models)

    def _list_models(self) -> ModelsView:
        settings = self._app.settings
        chosen = list(settings.agent(self.agents[0]).models)
        found = {name: self._model(name) for name in chosen}
        for provider, listed in catalogue_of(settings).providers.items():
            if provider != PROVIDER and (self._models.key(provider) or listed.local):
                for name in listed.models:
                    found.setdefault(f"{provider}/{name}", self._model(f"{provider}/{name}"))
        shelf = Shelf(settings.cache / "models")
        for name in shelf.known:
            why = "" if shelf.has(name) else f"its weights are not here yet: deskhand model pull {name}"
            found[f"{PROVIDER}/{name}"] = ModelView(f"{PROVIDER}/{name}", PROVIDER, not why, why)
        current = next(iter(chosen), "")
        return ModelsView(current, current, list(found.values()))

    def _model(self, name: str) -> ModelView:
        return ModelView(name, name.partition("/")[0], window=facts_of(self._app.settings, name).window)

    async def select_model(self, agent: str, model: str) -> None:
        self._models.check(model)
        path = ["agents", agent, "models"] if agent else ["defaults", "models"]
        if agent:
            self._app.settings.agent(agent)
        await anyio.to_thread.run_sync(store_key, self._app.settings, path, [model])

    async def reach(self, agent: str) -> Reach:
        return await self._app.agent(agent).reach()

    def settings(self) -> dict[str, Any]:
        return dict(msgspec.to_builtins(self._app.settings.config))

    async def set(self, key: str, value: Any) -> None:
        raise Refused("not yet")


_: type[House] = RunningHouse
