"""Makes the agents of the configuration, ready to be driven."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio.to_thread
import msgspec

from ..agent.profile import Agent
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
from ..workspace.quarantine import NOTHING_HELD, Held, is_held_back
from ..workspace.scope import ToolScopes, folders_without_secrets, shared_folder
from .chat_commands import OptionsCheck, run_command, why_owner_only, why_unusable
from .features import Features
from .judge import make_judge
from .models import facts_of, is_local
from .overrides import Tried
from .plugins import Plugins
from .prompt import Prompt, PromptRenderer, Sources, describe_machine
from .tools import make_tools, reserved_tool_names, skill_folders, skills_of, with_tool_search
from .workspace_templates import create_agent_files

log = logging.getLogger(__name__)


class AgentParts(msgspec.Struct, frozen=True):
    """What agents have in common. Without `tools` each has those that its settings allow. `told` is
    what a channel has to say about a place, by the channel's name. `model` opens `provider/name`.
    `beside` says what runs beside a session, `works` what goes on when nobody writes."""

    scopes: ToolScopes
    plugins: Plugins
    clock: Clock
    tools: Tools | None
    channel_instructions: Mapping[str, Callable[[Address], str]]
    model: Callable[[str], Model]
    features: Features
    people: People | None = None
    describe_processes: Callable[[str], str] = lambda session: ""

    def describe_activity(self, session: str) -> str:
        """What goes on in a session beside its turns, for people; '' for nothing."""
        return "\n".join(
            filter(
                None, (self.features.describe_progress(session), self.describe_processes(session))
            )
        )


def make_agent(
    settings: Settings, name: str, house: AgentParts, tried: Tried | None = None
) -> Agent:
    """The agent of this name. Raises ConfigError."""
    config = settings.agent(name)
    try:
        create_agent_files(settings, name)
    except OSError as error:
        log.warning("the files of agent %r are not made: %s", name, error)
    workspace = workspace_of(settings, name)
    skills = skills_of(settings, name, tried.skills if tried else None)
    prompt = _make_prompt(settings, name, house, (skills, tried.system if tried else ""))

    home = Path(settings.environment.get("HOME", "/"))

    async def list_implicit_folders() -> tuple[Allowed, ...]:
        allowed = (*skill_folders(settings, name, skills), *shared_folder(settings, name))
        if config.sandbox is not False:
            return allowed
        return *allowed, *await anyio.to_thread.run_sync(
            folders_without_secrets, home, settings.home.root
        )

    async def open_scope() -> ToolScope:
        return await house.scopes.open_scope(name, workspace, list_implicit_folders)

    tools = (
        house.tools if house.tools is not None else _make_agent_tools(settings, name, house, skills)
    )
    return Agent(
        name,
        config.models,
        prompt,
        tools,
        make_judge(settings, name),
        open_scope,
        str(workspace),
        limits_of(settings, config, next(iter(config.models), "")),
        config.thinking or "off",
        config.temperature,
        ZoneInfo(settings.config.timezone),
        hooks=house.plugins.hooks(name),
        commands=partial(
            run_command,
            make_options_check(settings, house.model),
            beside=house.describe_activity,
            live=house.features.command_handlers(),
        ),
        cheap_model=config.cheap_model,
        recall=partial(house.features.recall, name),
        summarize=partial(house.features.summarize, name),
        limits_for=partial(limits_of, settings, config),
    )


def _make_agent_tools(settings: Settings, name: str, house: AgentParts, skills: Skills) -> Tools:
    beside = house.features.tools(name)
    plugins = house.plugins.tools
    own = house.features.own_tools.tools(
        settings, name, reserved_tool_names(settings, name, skills, (*beside, *plugins))
    )
    tools = make_tools(settings, name, skills, beside, house.people, plugins) | own
    return with_tool_search(settings, name, tools, {*own, *(tool.spec.name for tool in plugins)})


def limits_of(settings: Settings, config: AgentConfig, model: str) -> Limits:
    """What a turn of this agent may use with this model. How much room there is on a server of
    one's own only that server knows."""
    limits = settings.limits(config, facts_of(settings, model).window)
    return msgspec.structs.replace(limits, guessed=is_local(settings, model))


def make_options_check(settings: Settings, model: Callable[[str], Model]) -> OptionsCheck:
    """What speaks against setting options, by these settings."""
    named = {each for agent in settings.agents for each in settings.agent(agent).models}

    def check(principal: Principal, session: str, options: SessionOptions) -> str:
        refused = why_owner_only(principal, session, options, named)
        return refused or why_unusable(options, model, settings.home.root / "prompts")

    return check


def _make_prompt(
    settings: Settings, name: str, house: AgentParts, given: tuple[Skills, str]
) -> PromptRenderer:
    config = settings.agent(name)
    home = settings.home
    (skills, system) = given
    sources = Sources(
        home.root,
        home.agent(name),
        workspace_of(settings, name),
        config.prompt or "full",
        config.preset,
        config.voice,
        ZoneInfo(settings.config.timezone),
        describe_machine(home.root, settings.environment.get("HOME", ""), config.sandbox is False),
        house.scopes.quarantine,
        system,
        partial(house.scopes.pending_labels, workspace_of(settings, name)),
    )
    told = house.channel_instructions
    learned = house.plugins.prompt

    def extras(address: Address) -> str:
        return told[address.channel](address) if address.channel in told else ""

    can = Able(skills, learned)
    return Prompt(
        sources, can, house.clock, extras, partial(house.features.render_pinned_facts, name)
    )


class Able:
    """What an agent is told that it can do: its skills that are not held back, and what plugins
    teach it. The same text for as long as nothing of that changes."""

    def __init__(self, skills: Skills, learned: str) -> None:
        self._skills = skills
        self._learned = learned
        self._found: dict[str, Skill] | None = None
        self._held = NOTHING_HELD
        self._text = ""

    def __call__(self, held: Held) -> str:
        found = self._skills.find()
        if found is not self._found or held != self._held:
            self._found = found
            self._held = held
            free = {name: skill for name, skill in found.items() if not _is_held(skill, held)}
            self._text = "\n\n".join(filter(None, (render_skill_index(free), self._learned)))
        return self._text


def _is_held(skill: Skill, held: Held) -> bool:
    file = str(skill.folder / FILE_NAME)
    inode = skill.place.inode
    return (
        is_held_back(held, str(skill.folder), inode)
        or not held.allows(file, skill.digest)
        or not skill.place.still(file)
    )
