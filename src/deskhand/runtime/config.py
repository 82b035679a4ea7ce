"""The configuration: one YAML file, read once, with overrides from the environment, which is read nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

import msgspec
import yaml
from msgspec.structs import replace

from ..agent.step import Limits
from ..models.base import Thinking
from ..policy.rules import Rule
from ..types.errors import ConfigError

PREFIX = "DESKHAND_"
FILE_NAME = "deskhand.yaml"


class AgentConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent. What is not set comes from `defaults`.

    `models` is the fallback chain, each `provider/name`. `steps` and `tokens` limit one turn.
    """

    models: tuple[str, ...] = ()
    steps: int | None = None
    tokens: int | None = None
    output_tokens: int | None = None
    thinking: Thinking | None = None
    temperature: float | None = None
    workspace: str = ""
    tools: tuple[str, ...] = ("*",)


class ProviderConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a provider is reached, if not where the catalogue says. `key_env` names the environment variable that
    holds its key; the key itself never stands in the configuration. `tools`: its models call tools by themselves, or
    need our small-model protocol, on a server with llama.cpp's grammars or on any (`fenced`)."""

    base_url: str = ""
    key_env: str = ""
    wire: Literal["openai", "anthropic"] = "openai"
    tools: Literal["native", "grammar", "fenced"] = "native"


class Config(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that can be set, with what holds when it is not. `timezone` is an IANA name."""

    defaults: AgentConfig = AgentConfig()
    agents: dict[str, AgentConfig] = {}
    providers: dict[str, ProviderConfig] = {}
    policy: tuple[Rule, ...] = ()
    timezone: str = "UTC"


class Home(msgspec.Struct, frozen=True):
    """Where everything of one Deskhand lies."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / FILE_NAME

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def database(self) -> Path:
        return self.state / "deskhand.db"

    @property
    def blobs(self) -> Path:
        return self.state / "blobs"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def lock(self) -> Path:
        return self.state / "driver.lock"

    def workspace(self, agent: str) -> Path:
        return self.root / "agents" / agent / "workspace"


class Settings(msgspec.Struct, frozen=True):
    """The configuration as read. `warnings` are sentences about keys that mean nothing. `environment` is what the
    process was started with: keys of providers are looked up in it."""

    home: Home
    config: Config
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}

    def agent(self, name: str) -> AgentConfig:
        """An agent's own settings over the defaults. Raises ConfigError for an unknown name."""
        agents = self.config.agents
        if name not in agents and (agents or name != "default"):
            raise ConfigError(f"there is no agent {name!r}; there are: {', '.join(agents) or 'default'}")
        own, base = agents.get(name, AgentConfig()), self.config.defaults
        chosen = {
            field: getattr(own, field) if getattr(own, field) not in (None, "", (), ("*",)) else getattr(base, field)
            for field in AgentConfig.__struct_fields__
        }
        return AgentConfig(**chosen)

    def with_model(self, model: str) -> Settings:
        """These settings with every agent on this one model."""
        agents = {name: replace(agent, models=()) for name, agent in self.config.agents.items()}
        defaults = replace(self.config.defaults, models=(model,))
        return replace(self, config=replace(self.config, defaults=defaults, agents=agents))

    @property
    def cache(self) -> Path:
        """Where large files lie that can be fetched again; shared by every home of this user."""
        env = self.environment
        given, usual = env.get(f"{PREFIX}CACHE"), env.get("XDG_CACHE_HOME") or f"{env.get('HOME', '')}/.cache"
        return Path(given or f"{usual}/deskhand").expanduser()

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(self.config.agents) or ("default",)

    def limits(self, agent: AgentConfig, window: int) -> Limits:
        usual = Limits()
        return Limits(agent.steps or usual.steps, agent.tokens or usual.tokens, agent.output_tokens, window)


def read_settings(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the configuration from `file`, or from the home. Raises ConfigError naming the file, the place in it and
    what would be right; unknown keys are only warned about."""
    env = dict(os.environ if environment is None else environment)
    home = Home(Path(env.get(f"{PREFIX}HOME") or Path(env.get("HOME", "/")) / ".deskhand").expanduser())
    path = file or home.config
    data = _load(path, required=file is not None)
    warnings = unknown_keys(data, Config)
    for name, place in (("MODELS", "models"), ("STEPS", "steps"), ("TOKENS", "tokens")):
        if value := env.get(PREFIX + name):
            defaults = data.setdefault("defaults", {})
            defaults[place] = value.split(",") if place == "models" else value
    try:
        config = msgspec.convert(data, Config, strict=False)
        ZoneInfo(config.timezone)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{str(path)!r}: {error}") from error
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{str(path)!r}: unknown timezone; use a name such as 'Europe/Berlin'") from error
    return Settings(home, config, tuple(warnings), env)


def _load(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        if required:
            raise ConfigError(f"there is no file {str(path)!r}") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{str(path)!r} is not valid YAML: {' '.join(str(error).split())}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{str(path)!r} must hold keys and values, such as `timezone: Europe/Berlin`")
    return data


_BY_NAME: dict[str, type[msgspec.Struct]] = {"agents": AgentConfig, "providers": ProviderConfig}


def unknown_keys(data: Mapping[str, Any], into: type[msgspec.Struct], place: str = "") -> list[str]:
    """A sentence for each key that means nothing, with its path and the nearest name that does."""
    found = []
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(into)}
    for key, value in data.items():
        path = f"{place}{key}"
        if key not in fields:
            near = get_close_matches(str(key), fields, 1)
            found.append(f"unknown key {path!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        elif isinstance(value, dict):
            kind = fields[key]
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                found += unknown_keys(value, kind, f"{path}.")
            elif key in _BY_NAME:
                for name, inner in value.items():
                    if isinstance(inner, dict):
                        found += unknown_keys(inner, _BY_NAME[key], f"{path}.{name}.")
    return found
