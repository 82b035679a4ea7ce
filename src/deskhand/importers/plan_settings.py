"""Which keys and secrets of a home are set here: nothing that is set here is changed, and nothing
is opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ..channels.guides import GUIDES, find_variable
from ..config.config import Settings
from ..config.parse import read_env_file
from ..config.sections import DeepWorkConfig
from ..customtools.functions import parse_functions
from ..memory.reflect import ReflectionConfig
from ..memory.settings import MemoryConfig
from ..policy.profiles import is_offered
from ..policy.roles import RoleConfig
from ..policy.rule_validation import check_rules
from ..policy.rules import Rule
from ..speech.settings import SpeechConfig
from ..types.errors import ConfigError
from ..types.people import ROLE_SCOPES
from .model import ImportedFolder, ImportedHome
from .notes import ImportNotes

Keys = list[tuple[tuple[str, ...], Any]]
"""(path, value) of each key that is set, in order."""
REFLECTION = ReflectionConfig()
ALREADY_SET = "it is set here already, and is kept"


def plan_secrets(found: ImportedHome, settings: Settings, notes: ImportNotes) -> dict[str, str]:
    """The keys that are not here yet. What only this process was started with is not: the service
    has none of it."""
    theirs = {name: value for name, value in found.secrets.items() if value}
    ours = {
        name: value
        for name, value in settings.environment.items()
        if name not in settings.started_with
    }
    with suppress(FileNotFoundError):
        ours |= read_env_file(settings.home.env)
    for name, value in theirs.items():
        if ours.get(name, value) != value:
            todo = f"to take theirs, change {name} in {settings.home.env}"
            notes.leave_out(f"the key {name}", "there is another one here, which is kept", todo)
    return {name: value for name, value in theirs.items() if name not in ours}


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """What comes in, as far as settings depend on it. `agents` are the agents' names there -> here,
    `new` those that were not taken before; `presets` are the names of all that there will be."""

    found: ImportedHome
    agents: Mapping[str, str]
    new: Collection[str]
    skills: Sequence[ImportedFolder]
    presets: Collection[str]


class SettingsPlan:
    """Plans the keys that a home sets."""

    def __init__(self, incoming: Incoming, settings: Settings, notes: ImportNotes) -> None:
        self._settings = settings
        self._notes = notes
        self._found = incoming.found
        self._agents = incoming.agents
        self._new = incoming.new
        self._skills = incoming.skills
        self._presets = incoming.presets

    def keys(self) -> Keys:
        """The keys that are set, in order: nothing that is set here is changed."""
        keys = [*self._agent_keys(), *self._section_keys()]
        return [*keys, *self._policy_keys(), *self._general_keys()] if self._new else keys

    # ------------------------------------------------------------------ agents

    def _agent_keys(self) -> Keys:
        keys: Keys = []
        base = self._found.config.get("defaults", {})
        own = self._found.config.get("agents", {})
        for key in base:
            if self._new and all(key in own.get(theirs, {}) for theirs in self._new):
                self._notes.change(
                    f"defaults.{key}", "every agent sets its own, so it is not needed"
                )
        for theirs, here in self._agents.items():
            if theirs not in self._new:
                self._note_unoffered_tools(theirs, here)
            elif here in self._settings.config.agents:
                why = f"there is an agent {here} already: its settings are kept"
                self._notes.leave_out(
                    f"the settings of {theirs}", why, f"deskhand config set agents.{here}.KEY VALUE"
                )
                self._note_unoffered_tools(theirs, here)
            else:
                keys.append(
                    (("agents", here), self._agent_settings(theirs, base | own.get(theirs, {})))
                )
        return keys

    def _agent_settings(self, theirs: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Its settings. Skills in Python are its tools there whatever its list of tools says, so
        they are here."""
        told = dict(settings)
        names = self._tools_of(theirs)
        if names and "*" not in told.get("tools", ("*",)):
            told["also_allow"] = [*told.get("also_allow", ()), *names]
        preset = told.get("preset")
        if preset and preset not in self._presets:
            told.pop("preset")
            self._notes.leave_out(
                f"the preset {preset}", "there is no such preset here", how_to_add_a_preset(preset)
            )
        return told

    def _tools_of(self, theirs: str) -> list[str]:
        """The tools that the skills in Python make which come in for this agent."""
        own = [skill for skill in self._skills if skill.agent == theirs]
        found = [parse_functions(data, name) for skill in own for name, data in skill.files.items()]
        return [tool.name for each in found for tool in each.tools]

    def _note_unoffered_tools(self, theirs: str, here: str) -> None:
        """Note the tools that come in for an agent whose settings stay, and do not name them."""
        if here not in self._settings.agents:
            return
        offered = self._settings.offered_tools(here)
        for name in self._tools_of(theirs):
            if not is_offered(offered, name):
                todo = f"add {name} to agents.{here}.also_allow"
                self._notes.leave_out(
                    f"that {here} is offered {name}", "its settings are kept", todo
                )

    # ------------------------------------------------------------------ sections

    def _section_keys(self) -> Keys:
        keys: Keys = []
        config = self._settings.config
        for section in ("roles", "channels", "providers"):
            for name, value in self._found.config.get(section, {}).items():
                if section == "providers" and (why := self._why_provider_stays(name)):
                    if self._new:
                        todo = f"deskhand config set providers.{name}.base_url URL"
                        self._notes.leave_out(
                            f"the address {value['base_url']} of {name}", why, todo
                        )
                elif section == "channels" and (why := self._why_channel_stays(name, value)):
                    if self._new:
                        todo = f"deskhand channels add {value.get('type') or name}"
                        self._notes.leave_out(f"channels.{name}", why, todo)
                elif name not in getattr(config, section):
                    keys.append(
                        (
                            (section, name),
                            convert_role(value, self._agents) if section == "roles" else value,
                        )
                    )
                elif self._new:
                    self._notes.leave_out(f"{section}.{name}", ALREADY_SET)
        return keys

    def _why_provider_stays(self, provider: str) -> str:
        """Why a file must not say where this provider is: keys and words of others would go
        there."""
        settings = self._settings
        if provider in settings.config.providers:
            return ALREADY_SET
        models = [model for agent in settings.agents for model in settings.agent(agent).models]
        if any(model.startswith(f"{provider}/") for model in models):
            return "existing agents use this provider already"
        start = f"{provider.upper()}_"
        keys = [
            name
            for name in settings.environment
            if name.startswith(start) and name.endswith("_KEY")
        ]
        return (
            f"the key in {keys[0]} exists here already, and would be sent to that address"
            if keys
            else ""
        )

    def _why_channel_stays(self, name: str, channel: Mapping[str, Any]) -> str:
        """Why a file must not say where this channel is: a secret that is here would go there."""
        if name in self._settings.config.channels:
            return ALREADY_SET
        if not (channel.get("base_url") or channel.get("send_url")):
            return ""
        kind = str(channel.get("type") or name)
        for need in GUIDES[kind].needs if kind in GUIDES else ():
            variable = channel.get(need.setting) or find_variable(need, kind, name)
            ours = self._settings.environment.get(variable) if need.variable else None
            if ours and ours != self._found.secrets.get(variable):
                return f"{variable} exists here already, and would be sent to that server"
        return ""

    def _policy_keys(self) -> Keys:
        """Its rules, for its own agents alone. They stand behind the last rule here that denies, so
        that they weaken none; what stands before them counts first."""
        config = self._settings.config
        ours = list(config.policy)
        place = max(
            (number for number, rule in enumerate(ours, 1) if rule.verdict == "deny"), default=0
        )
        told: list[Rule] = []
        for each in self._found.config.get("policy", ()):
            theirs = str(each["agent"])
            here = self._agents.get(theirs, "")
            rule = msgspec.convert(each | {"agent": here}, Rule)
            what = (
                f"that {here} has the rule: {rule.verdict} {' '.join((rule.tool, *rule.commands))}"
            )
            if theirs not in self._new or here in config.agents:
                self._notes.leave_out(
                    what, f"there is an agent {here} already", "add the rule to `policy`"
                )
                continue
            try:
                check_rules([*ours[:place], rule])
            except ConfigError as error:
                self._notes.leave_out(
                    what,
                    f"existing rules come first: {error}",
                    "change your rules in `policy`",
                )
                continue
            told.append(rule)
        if not told:
            return []
        return [(("policy",), msgspec.to_builtins([*ours[:place], *told, *ours[place:]]))]

    def _general_keys(self) -> Keys:
        """Keys that are no agent's: where nobody has set them here."""
        config = self._settings.config
        theirs = self._found.config
        keys: Keys = []
        ours = msgspec.to_builtins(config.bindings)
        bindings = []
        for each in theirs.get("bindings", ()):
            channel = str(each.get("channel", ""))
            found = theirs.get("channels", {}).get(channel)
            if found is not None and not self._why_channel_stays(channel, found):
                bindings.append(self._convert_binding(each))
            else:
                where = " ".join(
                    str(each[key]) for key in ("channel", "account", "chat") if each.get(key)
                )
                what = (
                    f"that {each.get('agent')} answers {f'on {where}' if where else 'everywhere'}"
                )
                self._notes.leave_out(
                    what,
                    "only bindings of imported channels are imported",
                    "add it to `bindings`",
                )
        if bindings:
            keys.append((("bindings",), [*ours, *(each for each in bindings if each not in ours)]))
        for section, usual in (
            ("memory", MemoryConfig()),
            ("deep_work", DeepWorkConfig()),
            ("reflection", REFLECTION),
            ("speech", SpeechConfig()),
        ):
            given = theirs.get(section)
            here = getattr(config, section)
            if given and here == usual:
                keys.append(((section,), given))
            elif given and msgspec.convert(given, type(usual)) != here:
                self._notes.leave_out(f"{section} ({', '.join(given)})", ALREADY_SET)
        for key, default in (
            ("timezone", "UTC"),
            ("reject_response", "auto"),
            ("show_usage", False),
        ):
            if key not in theirs or theirs[key] in (default, getattr(config, key)):
                continue
            if getattr(config, key) == default:
                keys.append(((key,), theirs[key]))
            else:
                self._notes.leave_out(key, ALREADY_SET)
        return keys

    def _convert_binding(self, binding: Mapping[str, Any]) -> dict[str, Any]:
        agent = str(binding.get("agent"))
        return dict(binding) | {"agent": self._agents.get(agent, agent)}


def how_to_add_a_preset(name: str) -> str:
    """What to do where a preset is missing."""
    return f"write prompts/{name}/PROMPT.md in Deskhand's home"


def find_imported_roles(
    found: ImportedHome, settings: Settings, agents: Mapping[str, str]
) -> set[str]:
    """The roles that come in with this home, or did before: none that means something here
    already."""
    ours = settings.config.roles
    return {
        name
        for name, value in found.config.get("roles", {}).items()
        if name not in ROLE_SCOPES
        and (
            name not in ours
            or ours[name] == msgspec.convert(convert_role(value, agents), RoleConfig)
        )
    }


def convert_role(role: Mapping[str, Any], agents: Mapping[str, str]) -> dict[str, Any]:
    """A role as it is here: of the agents that come with it, and of no others."""
    named = role.get("agents", ())
    return {
        "agents": [*agents.values()]
        if "*" in named
        else [agents[name] for name in named if name in agents]
    }
