"""Follows the configuration while Deskhand runs, and makes the agents and plugins from it."""

from __future__ import annotations

import logging
import os
from typing import Protocol

import anyio
import anyio.to_thread

from ..agent.agent import Agent
from ..assembly.factory import AgentParts, make_agent
from ..assembly.overrides import Tried
from ..assembly.plugins import Plugins
from ..assembly.tools import load_configured_plugins
from ..config.config import Settings, workspace_path
from ..config.last_good import (
    changed_keys,
    keys_needing_restart,
    reread_settings,
    save_good_copy,
    stamp_settings,
)
from ..gateway.agent_share import AgentGroup, AgentGroups
from ..secrets.redaction import Redactor
from ..supervision.health_checks import ConfigProblem, configuration_fact
from ..tools.base import Tool
from ..types.clock import Clock
from ..types.errors import ConfigError
from ..types.health import HealthFact

log = logging.getLogger(__name__)

POLL_S = 0.5
"""How soon a change of the configuration is seen."""


class AgentSource(Protocol):
    """What agents are made of beside the settings, and who is told of changes. Implemented by
    `runtime.app.App`."""

    def make_agent_parts(self, plugins: Plugins, /) -> AgentParts:
        """What all agents share, with these plugins."""

    def feature_tools(self, agent: str, /) -> tuple[Tool, ...]:
        """The tools of this agent that only a running Deskhand has."""

    def own_tools_changed(self, settings: Settings, /) -> bool:
        """Whether the Python tools in the workspace of an agent, or the tools of MCP servers, have
        changed since they were read."""

    def on_settings_changed(self, settings: Settings, /) -> None:
        """Called when other settings hold, with new agents made of them."""

    def on_agents_remade(self) -> None:
        """Called when the agents were made again, and the settings are the same."""


class Current:
    """The settings that hold now. There are no agents before `open` was called."""

    def __init__(self, settings: Settings, clock: Clock, redact: Redactor) -> None:
        self.settings = settings
        self.plugins = Plugins()
        self.agents: dict[str, Agent] = {}
        self._clock = clock
        self._redact = redact
        self._source: AgentSource | None = None
        self._first = settings.config
        self._stamp = stamp_settings(settings)
        self._problem: ConfigProblem | None = None
        if settings.problem:
            self._problem = ConfigProblem(settings.problem, clock.now())

    def open(self, source: AgentSource) -> None:
        """Make the agents. Raises ConfigError."""
        self._source = source
        self.plugins = self._load_plugins(self.settings)
        self.agents = self._make_agents(self.settings, self.plugins)

    def _load_plugins(self, settings: Settings) -> Plugins:
        tools = self._opened_source.feature_tools(settings.agents[0])
        return load_configured_plugins(settings, self.plugins, tools)

    def _make_agents(self, settings: Settings, plugins: Plugins) -> dict[str, Agent]:
        parts = self._opened_source.make_agent_parts(plugins)
        return {name: make_agent(settings, name, parts) for name in settings.agents}

    def agent(self, name: str) -> Agent:
        """The agent of this name, as it is driven now. Raises ConfigError for an unknown name."""
        self.settings.agent(name)
        return self.agents[name]

    def agent_of(self, session: str) -> Agent:
        """The agent that drives this session: its own, or the first one when that is gone."""
        return self.agents[self.agent_name(session)]

    def agent_name(self, session: str) -> str:
        """The name of that agent."""
        name = session.partition("/")[0]
        return name if name in self.agents else self.settings.agents[0]

    def agent_groups(self) -> AgentGroups:
        """All agents, those together that work in one folder."""
        by_folder: dict[str, set[str]] = {}
        for name in self.settings.agents:
            folder = os.path.realpath(workspace_path(self.settings, name))
            by_folder.setdefault(folder, set()).add(name)
        groups = [
            AgentGroup(frozenset(names), any(self.settings.agent(name).on_server for name in names))
            for names in by_folder.values()
        ]
        return AgentGroups(groups, self.settings.config.server_drives)

    def make_trial_agent(self, agent: str, tried: Tried) -> Agent:
        """This agent with the changes that a replay tries. It drives no session. Raises
        ConfigError."""
        parts = self._opened_source.make_agent_parts(self.plugins)
        return make_agent(self.settings, agent, parts, tried)

    @property
    def _opened_source(self) -> AgentSource:
        if self._source is None:
            raise RuntimeError("call open() first: the agents are not made yet")
        return self._source

    async def watch(self) -> None:
        """Reload the configuration whenever it changes, for ever."""
        self._keep_copy()
        while True:
            await anyio.sleep(POLL_S)
            if self._stamp != (now := stamp_settings(self.settings)):
                self._stamp = now
                await self.try_reload()
            elif self._opened_source.own_tools_changed(self.settings):
                self.remake_agents()
                log.info("Reloaded the tools of the agents.")

    def remake_agents(self) -> None:
        """Make the agents again from the same settings: their tools are others now."""
        self.agents = self._make_agents(self.settings, self.plugins)
        self._opened_source.on_agents_remade()

    async def try_reload(self) -> None:
        """Reload the configuration. One that cannot be used is logged, and changes nothing."""
        try:
            await self.reload()
        except (ConfigError, OSError) as error:
            log.warning("The configuration was not reloaded: %s", error)

    async def reload(self) -> None:
        """Read the configuration and `.env` again. They hold from the next drive of each session
        on. Raises ConfigError or OSError, and then nothing has changed."""
        try:
            settings = await anyio.to_thread.run_sync(reread_settings, self.settings)
            plugins = self._load_plugins(settings)
            agents = self._make_agents(settings, plugins)
        except (ConfigError, OSError) as error:
            self._problem = ConfigProblem(self._redact(str(error)), self._clock.now())
            raise
        before = self.settings
        self._problem = None
        self.settings = settings
        self.plugins = plugins
        self.agents = agents
        self._opened_source.on_settings_changed(settings)
        self._keep_copy()
        self._log_changes(before, settings)

    def _log_changes(self, before: Settings, settings: Settings) -> None:
        changed = changed_keys(before.config, settings.config)
        log.info("Reloaded the configuration. Changed: %s", ", ".join(changed) or "nothing")
        if before.config.plugins != settings.config.plugins:
            names = [plugin.name for plugin in self.plugins.loaded]
            log.info("Plugins: %s", ", ".join(names) or "none")
        if keys := keys_needing_restart(self._first, settings.config):
            log.warning("Restart Deskhand to apply these settings: %s", ", ".join(keys))

    def _keep_copy(self) -> None:
        if self.settings.problem:
            return
        try:
            save_good_copy(self.settings)
        except (ConfigError, OSError) as error:
            log.warning("Could not save a copy of the configuration: %s", error)

    def health_fact(self) -> HealthFact:
        """The state of the configuration, for /health."""
        return configuration_fact(
            self.settings, self._problem, keys_needing_restart(self._first, self.settings.config)
        )
