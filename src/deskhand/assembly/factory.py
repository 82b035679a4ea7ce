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
from ..skills.skill import FILE_NAME, Skill, Skills, index
from ..tools.base import Tools, ToolScope
from ..tools.paths import Allowed
from ..types.clock import Clock
from ..types.identity import Address, Principal
from ..types.limits import Limits
from ..types.options import SessionOptions
from ..types.people import People
from ..workspace.quarantine import NOTHING, Held, holds
from ..workspace.scope import ToolScopes, shared_folder, without_secrets
from .chat_commands import Check, beyond, run, unusable
from .features import Features
from .judge import judge_of
from .models import facts_of, is_local
from .overrides import Tried
from .plugins import Plugins
from .prompt import Prompt, Prompting, Sources, machine_of
from .tools import skill_folders, skills_of, taken, toolbox, with_search
from .workspace_templates import lay_out

log = logging.getLogger(__name__)


class AgentParts(msgspec.Struct, frozen=True):
    """What agents have in common. Without `tools` each has those that its settings allow. `told` is
    what a channel has to say about a place, by the channel's name. `model` opens `provider/name`.
    `beside` says what runs beside a session, `works` what goes on when nobody writes."""

    reaches: ToolScopes
    plugins: Plugins
    clock: Clock
    tools: Tools | None
    told: Mapping[str, Callable[[Address], str]]
    model: Callable[[str], Model]
    works: Features
    people: People | None = None
    beside: Callable[[str], str] = lambda session: ""

    def shown(self, session: str) -> str:
        """What goes on in a session beside its turns, for people; '' for nothing."""
        return "\n".join(filter(None, (self.works.shown(session), self.beside(session))))


def make_agent(
    settings: Settings, name: str, house: AgentParts, tried: Tried | None = None
) -> Agent:
    """The agent of this name. Raises ConfigError."""
    config = settings.agent(name)
    try:
        lay_out(settings, name)
    except OSError as error:
        log.warning("the files of agent %r are not made: %s", name, error)
    workspace = workspace_of(settings, name)
    skills = skills_of(settings, name, tried.skills if tried else None)
    prompt = _prompt(settings, name, house, (skills, tried.system if tried else ""))

    home = Path(settings.environment.get("HOME", "/"))

    async def beside() -> tuple[Allowed, ...]:
        allowed = (*skill_folders(settings, name, skills), *shared_folder(settings, name))
        if config.sandbox is not False:
            return allowed
        return *allowed, *await anyio.to_thread.run_sync(without_secrets, home, settings.home.root)

    async def reach() -> ToolScope:
        return await house.reaches.of(name, workspace, beside)

    tools = house.tools if house.tools is not None else _tools(settings, name, house, skills)
    return Agent(
        name,
        config.models,
        prompt,
        tools,
        judge_of(settings, name),
        reach,
        str(workspace),
        limits_of(settings, config, next(iter(config.models), "")),
        config.thinking or "off",
        config.temperature,
        ZoneInfo(settings.config.timezone),
        hooks=house.plugins.hooks(name),
        commands=partial(
            run, check_of(settings, house.model), beside=house.shown, live=house.works.answers()
        ),
        cheap_model=config.cheap_model,
        recall=partial(house.works.recall, name),
        condense=partial(house.works.condense, name),
        fit=partial(limits_of, settings, config),
    )


def _tools(settings: Settings, name: str, house: AgentParts, skills: Skills) -> Tools:
    beside = house.works.tools(name)
    plugins = house.plugins.tools
    own = house.works.own.tools(settings, name, taken(settings, name, skills, (*beside, *plugins)))
    tools = toolbox(settings, name, skills, beside, house.people, plugins) | own
    return with_search(settings, name, tools, {*own, *(tool.spec.name for tool in plugins)})


def limits_of(settings: Settings, config: AgentConfig, model: str) -> Limits:
    """What a turn of this agent may use with this model. How much room there is on a server of
    one's own only that server knows."""
    limits = settings.limits(config, facts_of(settings, model).window)
    return msgspec.structs.replace(limits, guessed=is_local(settings, model))


def check_of(settings: Settings, model: Callable[[str], Model]) -> Check:
    """What speaks against setting options, by these settings."""
    named = {each for agent in settings.agents for each in settings.agent(agent).models}

    def check(principal: Principal, session: str, options: SessionOptions) -> str:
        refused = beyond(principal, session, options, named)
        return refused or unusable(options, model, settings.home.root / "prompts")

    return check


def _prompt(
    settings: Settings, name: str, house: AgentParts, given: tuple[Skills, str]
) -> Prompting:
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
        machine_of(home.root, settings.environment.get("HOME", ""), config.sandbox is False),
        house.reaches.quarantine,
        system,
        partial(house.reaches.words, workspace_of(settings, name)),
    )
    told = house.told
    learned = house.plugins.prompt

    def extras(address: Address) -> str:
        return told[address.channel](address) if address.channel in told else ""

    can = Able(skills, learned)
    return Prompt(sources, can, house.clock, extras, partial(house.works.pinned, name))


class Able:
    """What an agent is told that it can do: its skills that are not held back, and what plugins
    teach it. The same text for as long as nothing of that changes."""

    def __init__(self, skills: Skills, learned: str) -> None:
        self._skills = skills
        self._learned = learned
        self._found: dict[str, Skill] | None = None
        self._held = NOTHING
        self._text = ""

    def __call__(self, held: Held) -> str:
        found = self._skills.find()
        if found is not self._found or held != self._held:
            self._found = found
            self._held = held
            free = {name: skill for name, skill in found.items() if not _is_held(skill, held)}
            self._text = "\n\n".join(filter(None, (index(free), self._learned)))
        return self._text


def _is_held(skill: Skill, held: Held) -> bool:
    file = str(skill.folder / FILE_NAME)
    inode = skill.place.inode
    return (
        holds(held, str(skill.folder), inode)
        or not held.allows(file, skill.digest)
        or not skill.place.still(file)
    )
