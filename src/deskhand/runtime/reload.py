"""The configuration that holds now, and the agents and plugins that are made of it. It is followed
while we run."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
import anyio.to_thread
import msgspec

from ..agent.profile import Agent
from ..assembly.factory import AgentParts, make_agent
from ..assembly.overrides import Tried
from ..assembly.plugins import Plugins
from ..assembly.tools import load_configured_plugins
from ..config.config import Settings
from ..config.last_good import (
    changed_keys,
    keys_needing_restart,
    reread_settings,
    save_good_copy,
    stamp_settings,
)
from ..secrets.redaction import Redactor
from ..supervision.health_checks import ConfigProblem, configuration_fact
from ..tools.base import Tool
from ..types.clock import Clock
from ..types.errors import ConfigError
from ..types.health import HealthFact

log = logging.getLogger(__name__)

POLL_S = 0.5
"""How soon a change of the configuration is seen."""


class ReloadNeeds(msgspec.Struct, frozen=True):
    """What agents are made with beside the settings. `house` is what they reach, with these
    plugins; `tools` are ours that only the running house has; `own` asks whether an agent's own
    tools have changed; `taken_up` is called when other settings hold, `made_anew` when agents were
    made again and nothing else has changed."""

    make_parts: Callable[[Plugins], AgentParts]
    tools: Callable[[str], tuple[Tool, ...]]
    own_tools_changed: Callable[[Settings], bool]
    on_reload: Callable[[Settings], None]
    on_remade: Callable[[], None]


class Current:
    """What holds now. Until `open` there are settings alone."""

    def __init__(self, settings: Settings, clock: Clock, redact: Redactor) -> None:
        self.settings = settings
        self.plugins = Plugins()
        self.agents: dict[str, Agent] = {}
        self._clock = clock
        self._redact = redact
        self._needs: ReloadNeeds | None = None
        self._first, self._stamp = settings.config, stamp_settings(settings)
        self._problem = ConfigProblem(settings.problem, clock.now()) if settings.problem else None

    def open(self, needs: ReloadNeeds) -> None:
        """Make the agents. Raises ConfigError."""
        self._needs = needs
        self.plugins = self._load_plugins(needs, self.settings)
        self.agents = self._make_agents(needs, self.settings, self.plugins)

    def _load_plugins(self, needs: ReloadNeeds, settings: Settings) -> Plugins:
        return load_configured_plugins(settings, self.plugins, needs.tools(settings.agents[0]))

    @staticmethod
    def _make_agents(needs: ReloadNeeds, settings: Settings, plugins: Plugins) -> dict[str, Agent]:
        house = needs.make_parts(plugins)
        return {name: make_agent(settings, name, house) for name in settings.agents}

    def agent(self, name: str) -> Agent:
        """The agent as it is driven now. Raises ConfigError for an unknown name."""
        self.settings.agent(name)
        return self.agents[name]

    def agent_of(self, session: str) -> Agent:
        """Who drives this conversation: its own agent, or the first where that is gone."""
        return self.agents.get(session.partition("/")[0]) or self.agents[self.settings.agents[0]]

    def make_trial_agent(self, agent: str, tried: Tried) -> Agent:
        """This agent, with what is tried on it in a replay. Nobody is driven by it. Raises
        ConfigError."""
        return make_agent(self.settings, agent, self._opened_needs.make_parts(self.plugins), tried)

    @property
    def _opened_needs(self) -> ReloadNeeds:
        if self._needs is None:
            raise RuntimeError("the agents are not made yet")
        return self._needs

    async def watch(self) -> None:
        """Take up what the configuration says, for ever."""
        self._keep_copy()
        while True:
            await anyio.sleep(POLL_S)
            if self._stamp != (now := stamp_settings(self.settings)):
                self._stamp = now
                await self.try_reload()
            elif self._opened_needs.own_tools_changed(self.settings):
                self.agents = self._make_agents(self._opened_needs, self.settings, self.plugins)
                self._opened_needs.on_remade()
                log.info("the Python skills of agents were read again")

    async def try_reload(self) -> None:
        """Read the configuration again. One that cannot be used is told, and changes nothing."""
        try:
            await self.reload()
        except (ConfigError, OSError) as error:
            log.warning("the configuration stays as it was: %s", error)

    async def reload(self) -> None:
        """Take up what the configuration and `.env` say now: it holds from the next drive of each
        conversation on. Raises ConfigError, OSError, and then all stays as it is."""
        try:
            settings = await anyio.to_thread.run_sync(reread_settings, self.settings)
            plugins = self._load_plugins(self._opened_needs, settings)
            agents = self._make_agents(self._opened_needs, settings, plugins)
        except (ConfigError, OSError) as error:
            self._problem = ConfigProblem(self._redact(str(error)), self._clock.now())
            raise
        before = self.settings
        self._problem = None
        self.settings = settings
        self.plugins = plugins
        self.agents = agents
        self._opened_needs.on_reload(settings)
        self._keep_copy()
        names = ", ".join(changed_keys(before.config, settings.config)) or "nothing that was set"
        log.info("the configuration was read again; changed: %s", names)
        if before.config.plugins != settings.config.plugins:
            log.info(
                "the plugins are now: %s",
                ", ".join(plugin.name for plugin in plugins.loaded) or "none",
            )
        if restart := keys_needing_restart(self._first, settings.config):
            log.warning("these hold only after a restart: %s", ", ".join(restart))

    def _keep_copy(self) -> None:
        if self.settings.problem:
            return
        try:
            save_good_copy(self.settings)
        except (ConfigError, OSError) as error:
            log.warning("no copy of the configuration is kept: %s", error)

    def health_fact(self) -> HealthFact:
        """How it is with the configuration."""
        return configuration_fact(
            self.settings, self._problem, keys_needing_restart(self._first, self.settings.config)
        )
