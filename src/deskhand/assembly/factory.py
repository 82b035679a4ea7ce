"""Makes the agents of the configuration, ready to be driven."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio.to_thread
import msgspec

from ..agent.agent import Agent
from ..channels.base import Instructing
from ..config.config import AgentConfig, Settings, workspace_of
from ..models.base import Model
from ..skills.skill import FILE_NAME, Skill, Skills, render_skill_index
from ..tools.base import Tools, ToolScope
from ..tools.paths import Allowed
from ..types.clock import Clock
from ..types.identity import Address, Principal
from ..types.limits import Limits
from ..types.options import SessionOptions
from ..types.people import People
from ..workspace.processes import Background
from ..workspace.quarantine import NOTHING_HELD, HeldBack, is_held_back
from ..workspace.scope import ToolScopes, folders_without_secrets, shared_folder
from .agent_context import AgentContext
from .agent_list import render_agents
from .chat_commands import ChatCommands, OptionsCheck, why_owner_only, why_unusable
from .features import Features
from .judge import make_judge
from .models import facts_of, is_local, is_small
from .overrides import Tried
from .plugins import Plugins
from .prompt import Prompt, Sources, describe_machine
from .tools import make_tools, reserved_tool_names, skill_folders, skills_of, with_tool_search
from .workspace_templates import create_agent_files

log = logging.getLogger(__name__)


class AgentParts(msgspec.Struct, frozen=True, kw_only=True):
    """What all agents share. Without `tools` each has those that its settings allow. What
    `channels` instruct is added to the prompt. `model` opens `provider/name`; `background` has the
    processes beside sessions."""

    scopes: ToolScopes
    plugins: Plugins
    clock: Clock
    tools: Tools | None
    channels: Mapping[str, Instructing]
    model: Callable[[str], Model]
    features: Features
    people: People
    background: Background

    def describe_activity(self, session: str) -> str:
        """What goes on in a session beside its turns, for people; '' for nothing."""
        progress = self.features.describe_progress(session)
        processes = self.background.describe_running(session)
        return "\n".join(line for line in (progress, processes) if line)


def make_agent(
    settings: Settings, name: str, parts: AgentParts, tried: Tried | None = None
) -> Agent:
    """Make the agent of this name. `tried` are the changes of a replay. Raises ConfigError."""
    config = settings.agent(name)
    try:
        create_agent_files(settings, name)
    except OSError as error:
        log.warning("Could not create the files of agent %r: %s", name, error)
    tried = tried or Tried()
    skills = skills_of(settings, name, tried.skills)
    sources = _prompt_sources(settings, name, parts.scopes, tried.system)
    workspace = AgentWorkspace(settings, name, parts.scopes, skills)
    if parts.tools is not None:
        tools = parts.tools
    else:
        tools = _make_agent_tools(settings, name, parts, skills)
    features = parts.features
    return Agent(
        name=name,
        models=config.models,
        tools=tools,
        context=AgentContext(name, _make_prompt(sources, settings, name, parts, skills), features),
        judge=make_judge(settings, name),
        workspace=workspace,
        commands=ChatCommands(
            make_options_check(settings, parts.model),
            parts.describe_activity,
            features.command_handlers(),
        ),
        folder=str(workspace.folder),
        limits=limits_of(settings, config, next(iter(config.models), "")),
        thinking=config.thinking or "off",
        temperature=config.temperature,
        zone=ZoneInfo(settings.config.timezone),
        hooks=parts.plugins.hooks(name),
        cheap_model=config.cheap_model,
        compact_model=config.compact_model,
        compact_temperature=config.compact_temperature,
        model_limits=ConfiguredLimits(settings, config),
    )


class AgentWorkspace:
    """Implements `agent.protocols.ScopeSource`: the workspace at `folder`, with the folders that
    its skills and its sandbox let it read."""

    def __init__(self, settings: Settings, name: str, scopes: ToolScopes, skills: Skills) -> None:
        self.folder = workspace_of(settings, name)
        self._settings = settings
        self._name = name
        self._scopes = scopes
        self._skills = skills

    async def open_scope(self) -> ToolScope:
        return await self._scopes.open_scope(self._name, self.folder, self._list_implicit_folders)

    async def _list_implicit_folders(self) -> tuple[Allowed, ...]:
        settings = self._settings
        skills = skill_folders(settings, self._name, self._skills)
        allowed = (*skills, *shared_folder(settings, self._name))
        if settings.agent(self._name).sandbox is not False:
            return allowed
        home = Path(settings.environment.get("HOME", "/"))
        everything = await anyio.to_thread.run_sync(
            folders_without_secrets, home, settings.home.root
        )
        return (*allowed, *everything)


class ConfiguredLimits:
    """Implements `agent.protocols.ModelLimits`."""

    def __init__(self, settings: Settings, config: AgentConfig) -> None:
        self._settings = settings
        self._config = config

    def of(self, model: str) -> Limits:
        return limits_of(self._settings, self._config, model)


def _make_agent_tools(settings: Settings, name: str, parts: AgentParts, skills: Skills) -> Tools:
    """The tools that its settings allow: ours, those of plugins, and those in its workspace."""
    ours = parts.features.tools(name)
    plugins = parts.plugins.tools
    reserved = reserved_tool_names(settings, name, skills, (*ours, *plugins))
    own = parts.features.own_tools.tools(settings, name, reserved)
    tools = make_tools(settings, name, skills, ours, parts.people, plugins) | own
    deferrable = {*own, *(tool.spec.name for tool in plugins)}
    return with_tool_search(settings, name, tools, deferrable)


def limits_of(settings: Settings, config: AgentConfig, model: str) -> Limits:
    """What a turn of this agent may use with this model. For a local model the context window is a
    guess: only its server knows."""
    limits = settings.limits(config, facts_of(settings, model).window)
    return msgspec.structs.replace(limits, guessed=is_local(settings, model))


def make_options_check(settings: Settings, model: Callable[[str], Model]) -> OptionsCheck:
    """Make the check that says why somebody may not set options, by these settings."""
    named = {each for agent in settings.agents for each in settings.agent(agent).models}

    def check(principal: Principal, session: str, options: SessionOptions) -> str:
        refused = why_owner_only(principal, session, options, named)
        return refused or why_unusable(options, model, settings.home.root / "prompts")

    return check


def _prompt_sources(settings: Settings, name: str, scopes: ToolScopes, system: str) -> Sources:
    """Where the prompt of this agent comes from. `system` replaces SYSTEM.md unless it is ''."""
    config = settings.agent(name)
    home = settings.home
    workspace = workspace_of(settings, name)
    unsandboxed = config.sandbox is False
    return Sources(
        home=home.root,
        own=home.agent(name),
        workspace=workspace,
        mode=config.prompt or "full",
        preset=config.preset,
        voice=config.voice,
        zone=ZoneInfo(settings.config.timezone),
        machine=describe_machine(home.root, settings.environment.get("HOME", ""), unsandboxed),
        quarantine=scopes.quarantine,
        system=system,
        agents=render_agents(settings, name),
        pending_labels=partial(scopes.pending_labels, workspace),
    )


def _make_prompt(
    sources: Sources, settings: Settings, name: str, parts: AgentParts, skills: Skills
) -> Prompt:
    small = any(is_small(settings, model) for model in settings.agent(name).models)

    def channel_instructions(address: Address) -> str:
        if small and address.channel == "web":
            return ""  # it has few words to spare
        channel = parts.channels.get(address.channel)
        return channel.instructions(address) if channel is not None else ""

    return Prompt(
        sources,
        Abilities(skills, parts.plugins.prompt),
        parts.clock,
        extras=channel_instructions,
        pinned=partial(parts.features.render_pinned_facts, name),
    )


class Abilities:
    """The part of the prompt that says what an agent can do: its skills that are not held back, and
    what plugins add. Gives the same text until something of that changes."""

    def __init__(self, skills: Skills, plugins: str) -> None:
        self._skills = skills
        self._plugins = plugins
        self._found: dict[str, Skill] | None = None
        self._held = NOTHING_HELD
        self._text = ""

    def __call__(self, held: HeldBack) -> str:
        found = self._skills.find()
        if found is not self._found or held != self._held:
            self._found = found
            self._held = held
            free = {name: skill for name, skill in found.items() if not _is_held(skill, held)}
            pieces = (render_skill_index(free), self._plugins)
            self._text = "\n\n".join(piece for piece in pieces if piece)
        return self._text


def _is_held(skill: Skill, held: HeldBack) -> bool:
    file = str(skill.folder / FILE_NAME)
    inode = skill.place.inode
    return (
        is_held_back(held, str(skill.folder), inode)
        or not held.allows(file, skill.digest)
        or not skill.place.is_at(file)
    )
