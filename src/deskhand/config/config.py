"""The configuration: one YAML file, read once, with overrides from the environment, which is read
nowhere else."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from ..agent.next_step import COMPACT_AT
from ..channels.settings import ChannelConfig
from ..computer.desktop.host import DesktopConfig
from ..languages.catalogue import all_languages, find_language
from ..memory.reflect import ReflectionConfig, check_reflection
from ..memory.settings import MemoryConfig, check_memory
from ..models.base import ThinkingLevel
from ..models.settings import WireName
from ..net.egress import EgressConfig, check_egress
from ..policy.permission_modes import PermissionMode
from ..policy.profiles import Offered, Profile
from ..policy.roles import ROLE_ALIASES, RoleConfig, check_roles
from ..policy.rule_validation import KnownNames, check_rules
from ..policy.rules import Rule
from ..skills.settings import SkillsReview
from ..speech.settings import SpeechConfig
from ..tools.aliases import TOOL_ALIASES
from ..tools.file_snapshots import UndoConfig
from ..tools.image_gen import ImageGenConfig
from ..tools.process import ProcessesConfig
from ..tools.search_web import WebSearchConfig
from ..tools.shell import MAX_TIMEOUT_S
from ..tools.web import WebFetchConfig
from ..types.errors import ConfigError
from ..types.folders import make_private_folder
from ..types.identity import OWN_SURFACES
from ..types.limits import Limits
from ..types.people import ROLE_SCOPES
from ..web.settings import AgentServerConfig, WebConfig, check_push, check_sign_in
from . import keys
from .foreign_keys import (
    OPENAGENT_DEFAULTS,
    OPENAGENT_TASKS,
    OPENAGENT_VARIABLES,
    Translation,
    translate_keys,
)
from .home import FILE_NAME
from .home import Home as Home
from .mcp_servers import McpServerConfig, check_mcp_servers
from .parse import parse_value, read_data, read_env_file
from .remote_agents import RemoteAgentConfig, check_remote_agents
from .routing import Binding, check_bindings
from .sections import (
    BackupConfig,
    Budget,
    DeepWorkConfig,
    HeartbeatConfig,
    JobsConfig,
    SubagentsConfig,
    TerminalConfig,
    TracesConfig,
    check_budgets,
    check_traces,
)

ENV_PREFIX = "DESKHAND_"
SHORT_VARIABLES = {
    "MODELS": "defaults.models",
    "STEPS": "defaults.steps",
    "TOKENS": "defaults.tokens",
}
"""Variables with a name of their own; every other key is DESKHAND_ and its path, `__` for each
dot."""
LIST_KEYS = frozenset(
    {"models", "tools", "skills", "also_allow", "deny", "deferred_tools", "commands", "agents"}
)
"""Keys that take several names; in a variable they stand with commas between them."""
WORKER_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
OTHER_VARIABLES = frozenset({"HOME", "AGENT", "CACHE", "VERBOSE", "WORKER", "WORKER_NAME", "READY"})


class AgentConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent. What is not set comes from `defaults`.

    `models` is the fallback chain, each `provider/name`. `steps` and `tokens` limit one turn.
    `context_ratio` is the share of the model's window that a conversation may fill before its
    oldest parts are shortened. `tools` and `skills` are patterns of those that it is offered;
    `profile` is a list of tools that is ready, `also_allow` are those beside it, `deny` those that
    it never has. `deferred_tools` are patterns of those that wait for `tool_search`.
    `permission_mode` is how free it is. `sandbox: false` lets it reach all of the owner's folders,
    those with secrets excluded; commands then ask first. `commands`, where it has any, are the
    programs that run without a question. `shell_timeout_s` is how long a command may take that says
    nothing else. `prompt` is how much it is told, `preset` a prompt that is ready; `voice`: its
    answers are spoken, or never are. `cheap_model` answers what tools ask aside, a page or a
    document; '' is the agent's own. It also names new conversations, unless `titles` is false.
    `compact_model` writes the summaries of what no longer fits; '' is `cheap_model`. `on_server`:
    its conversations are driven by the server, and never by a worker beside it. `browser`: it may
    use web pages in Chromium; without a word of yours it may where that is installed. `desktop`: it
    may use the windows of this machine."""

    models: tuple[str, ...] = ()
    steps: int | None = None
    tokens: int | None = None
    output_tokens: int | None = None
    context_ratio: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    thinking: ThinkingLevel | None = None
    temperature: float | None = None
    workspace: str = ""
    tools: tuple[str, ...] | None = None
    skills: tuple[str, ...] | None = None
    profile: Profile | None = None
    also_allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] | None = None
    deferred_tools: tuple[str, ...] | None = None
    permission_mode: PermissionMode | None = None
    commands: tuple[str, ...] | None = None
    shell_timeout_s: Annotated[float, msgspec.Meta(ge=1, le=MAX_TIMEOUT_S)] | None = None
    sandbox: bool | None = None
    prompt: Literal["full", "minimal", "none"] | None = None
    preset: str = ""
    voice: bool | None = None
    cheap_model: str = ""
    titles: bool | None = None
    compact_model: str = ""
    compact_temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    on_server: bool | None = None
    browser: bool | None = None
    desktop: bool | None = None


class ProviderConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a provider is reached, if not where the catalogue says. `key_env` names the environment
    variable that holds its key; the key itself never stands in the configuration. `wire` is what
    all of its models are spoken to in: OpenAI's Chat Completions or Responses, or Anthropic's
    Messages; '' is what the catalogue says, `openai` for a new provider. `tools`: its models call
    tools by themselves, or need our small-model protocol, on a server with llama.cpp's grammars or
    on any (`fenced`). `via: pydantic-ai`: it is not we who speak to it, but that library. `vision`:
    its models see pictures, or do not, whatever the catalogue knows."""

    base_url: str = ""
    key_env: str = ""
    wire: WireName | Literal[""] = ""
    tools: Literal["native", "grammar", "fenced"] = "native"
    via: Literal["", "pydantic-ai"] = ""
    vision: bool | None = None


class Config(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that can be set, with what holds when it is not. `timezone` is an IANA name.
    `language` is the code of the one in which Deskhand itself writes to people whose language it
    does not know.
    `env_file` holds KEY=VALUE lines, relative to the folder of this file. `show_usage`: what each
    turn used is said after it. `skills_folder` holds the skills of all agents, relative to the
    folder of this file. `reject_response`: what those hear who are not known here; `auto` gives
    pairing codes while nobody is, and then says nothing. `log_level` is what `logs/deskhand.log`
    begins with. `start_s` is how long a start may take after an agent changed what the service
    runs. `compat` also reads another system's environment names. `permission_mode` is how free
    agents are where no rule of `policy` says otherwise. `store` is the address of a PostgreSQL
    database (`postgresql://user@host/name`); '' is a SQLite file in the home. Without
    `server_drives` the server leaves its agents to the workers, where there are any. `undo` is what
    is kept to undo changes, `skills_review` how proposed skills are looked at. `machine_rounds`: so
    many turns within an hour may programs begin (bots, events that set jobs off, commands in the
    background) before a person says something; 0 for any number. `budgets` are by whom they hold
    for: all, person, agent, job or session, or one of them as `person:anna`. `plugins` and
    `channels` are the only ones that are imported. `mcp` are servers that bring tools, by name,
    `remote_agents` agents of other programs. `agent_server` is how such agents find ours."""

    defaults: AgentConfig = AgentConfig()
    agents: dict[str, AgentConfig] = {}
    providers: dict[str, ProviderConfig] = {}
    roles: dict[str, RoleConfig] = {}
    bindings: tuple[Binding, ...] = ()
    policy: tuple[Rule, ...] = ()
    permission_mode: PermissionMode = "workspace-free"
    store: str = ""
    server_drives: bool = True
    undo: UndoConfig = UndoConfig()
    skills_review: SkillsReview = SkillsReview()
    plugins: tuple[str, ...] = ()
    machine_rounds: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 60
    timezone: str = "UTC"
    language: str = "en"
    env_file: str = ""
    show_usage: bool = False
    skills_folder: str = ""
    reject_response: Literal["auto", "pair", "announce", "ignore"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    start_s: Annotated[float, msgspec.Meta(ge=1, le=3600)] = 60.0
    compat: Literal["", "openagent", "operator-use"] = ""
    web: WebConfig = WebConfig()
    agent_server: AgentServerConfig = AgentServerConfig()
    processes: ProcessesConfig = ProcessesConfig()
    deep_work: DeepWorkConfig = DeepWorkConfig()
    subagents: SubagentsConfig = SubagentsConfig()
    web_fetch: WebFetchConfig = WebFetchConfig()
    web_search: WebSearchConfig = WebSearchConfig()
    image_gen: ImageGenConfig = ImageGenConfig()
    desktop: DesktopConfig = DesktopConfig()
    speech: SpeechConfig = SpeechConfig()
    egress: EgressConfig = EgressConfig()
    budgets: dict[str, Budget] = {}
    memory: MemoryConfig = MemoryConfig()
    reflection: ReflectionConfig = ReflectionConfig()
    jobs: JobsConfig = JobsConfig()
    heartbeat: HeartbeatConfig = HeartbeatConfig()
    backup: BackupConfig = BackupConfig()
    traces: TracesConfig = TracesConfig()
    terminal: TerminalConfig = TerminalConfig()
    channels: dict[str, ChannelConfig] = {}
    mcp: dict[str, McpServerConfig] = {}
    remote_agents: dict[str, RemoteAgentConfig] = {}


class Settings(msgspec.Struct, frozen=True, dict=True):
    """The configuration as read. `warnings` are sentences about keys that mean nothing.
    `environment` is what the process was started with and the `.env` files: keys of providers are
    looked up in it. `file` is where the configuration was read, or would be; `chosen` the agent
    that the environment asks for, `model` the one model of a command. `problem` says why these are
    not what the file holds. `started_with` is the environment alone."""

    home: Home
    config: Config
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    file: Path = Path(FILE_NAME)
    chosen: str = ""
    model: str = ""
    problem: str = ""
    started_with: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"Settings({str(self.file)!r})"  # never the environment: it holds keys

    def agent(self, name: str) -> AgentConfig:
        """An agent's own settings over the defaults; `tools` and `skills` are then never None.
        Raises ConfigError for an unknown name."""
        found = self._agent_configs.get(name)
        if found is None:
            raise ConfigError(f"there is no agent {name!r}; there are: {', '.join(self.agents)}")
        return found

    @cached_property
    def _agent_configs(self) -> dict[str, AgentConfig]:
        return {name: self._merge_defaults(name) for name in self.agents}

    def _merge_defaults(self, name: str) -> AgentConfig:
        own = self.config.agents.get(name, AgentConfig())
        base = self.config.defaults
        chosen = {}
        for field in AgentConfig.__struct_fields__:
            value = getattr(own, field)
            chosen[field] = value if _is_set(field, value) else getattr(base, field)
        every = {field: ("*",) for field in ("tools", "skills") if chosen[field] is None}
        return AgentConfig(**chosen | every)

    def offered_tools(self, name: str) -> Offered:
        """Which tools this agent is offered; names from elsewhere count as ours."""
        agent = self.agent(name)
        tools, also, deny = (
            tuple(TOOL_ALIASES.get(each, each) for each in names or ())
            for names in (agent.tools, agent.also_allow, agent.deny)
        )
        return Offered(agent.profile or "full", tools, also, deny)

    def skill_patterns(self, name: str) -> tuple[str, ...]:
        """The patterns of the skills that this agent may read."""
        return self.agent(name).skills or ()

    def permission_mode(self, name: str) -> PermissionMode:
        """How free this agent is where no rule says otherwise."""
        return self.agent(name).permission_mode or self.config.permission_mode

    def resolve_agent(self, agent: str = "") -> str:
        """The agent for a command: the one that was named, else that of the environment, else the
        first. Raises ConfigError for one that does not exist."""
        name = agent or self.chosen or self.agents[0]
        self.agent(name)
        return name

    def with_model(self, model: str) -> Settings:
        """These settings with every agent on this one model."""
        agents = {name: replace(agent, models=()) for name, agent in self.config.agents.items()}
        defaults = replace(self.config.defaults, models=(model,))
        return replace(
            self, config=replace(self.config, defaults=defaults, agents=agents), model=model
        )

    @property
    def verbose(self) -> bool:
        """The environment wants the log on the console too."""
        wanted = self.environment.get(f"{ENV_PREFIX}VERBOSE") or self.environment.get(
            "OPERATOR_VERBOSE", ""
        )
        return wanted.lower() not in ("", "0", "false", "no")

    @property
    def cache_folder(self) -> Path:
        """Where large files lie that can be fetched again; shared by every home of this user."""
        env = self.environment
        given = env.get(f"{ENV_PREFIX}CACHE")
        usual = env.get("XDG_CACHE_HOME") or f"{env.get('HOME', '')}/.cache"
        return Path(given or f"{usual}/deskhand").expanduser()

    @property
    def skills_folder(self) -> Path:
        """Where the skills of all agents lie. Raises ConfigError where they would show an agent our
        own files."""
        written = self.config.skills_folder
        root = self.home.root.resolve()
        if not written:
            return self.home.skills
        folder = (self.file.parent / Path(written).expanduser()).resolve()
        if root.is_relative_to(folder) or folder.is_relative_to(self.home.state.resolve()):
            raise ConfigError(
                f"the skills_folder {str(folder)!r} contains Deskhand's own files; choose a "
                "different folder"
            )
        return folder

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(self.config.agents) or ("default",)

    def limits(self, agent: AgentConfig, window: int) -> Limits:
        """What one turn of this agent may use, on a model with this window."""
        usual = Limits()
        own = window
        if (
            agent.context_ratio is not None
        ):  # the agent shortens at COMPACT_AT of what it takes for the window
            window = max(1, int(window * agent.context_ratio / COMPACT_AT))
        return Limits(
            agent.steps or usual.steps,
            agent.tokens or usual.tokens,
            agent.output_tokens,
            window,
            own,
        )


def read_settings(
    file: Path | None = None, environment: Mapping[str, str] | None = None, copy: Path | None = None
) -> Settings:
    """Read the configuration from `file`, or from the home, or what stands in a `copy` of it.
    Raises ConfigError naming the file, the place in it and what would be right; unknown keys are
    only warned about."""
    started_with = environment_of(environment)
    home = find_home(started_with)
    path = file or home.config
    found = translate_config(_read_file(copy or path, required=(copy or file) is not None), path)
    warnings = list(found.warnings)
    env = found.secrets | _read_env_files(home, path, found.config, warnings) | started_with
    data = keys.with_defaults(found.config, _compat_config(found.config, env, warnings))
    data = keys.overlay(data, _environment_config(env, warnings))
    keys.normalize(data)
    config = parse_config(data, path)
    chosen = env.get(f"{ENV_PREFIX}AGENT") or env.get("OPERATOR_AGENT", "")
    return Settings(home, config, tuple(warnings), env, path, chosen, started_with=started_with)


def find_home(environment: Mapping[str, str] | None = None) -> Home:
    """Where this person's Deskhand lies."""
    env = environment_of(environment)
    try:
        given = (
            env.get(f"{ENV_PREFIX}HOME")
            or Path(env.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir) / ".deskhand"
        )
        worker = env.get(f"{ENV_PREFIX}WORKER_NAME", "")
        if worker and not WORKER_NAME.fullmatch(worker):
            raise ConfigError(
                f"a worker cannot be called {worker[:80]!r}: use up to 40 letters, digits, - and _"
            )
        return Home(Path(given).expanduser().absolute(), worker)
    except (KeyError, RuntimeError) as error:
        raise ConfigError(
            "this user has no home folder: set DESKHAND_HOME to a folder of your own"
        ) from error


def environment_of(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """What this process was started with, where nothing else is given."""
    return dict(os.environ if given is None else given)


def name_worker(name: str) -> None:
    """Let this process, and those that it starts, be the worker of that name of the home."""
    os.environ[f"{ENV_PREFIX}WORKER_NAME"] = name


def worker_environment() -> dict[str, str]:
    """What a worker process is started with: our own environment, and that it is one."""
    return {**os.environ, "IS_WORKER": "1", f"{ENV_PREFIX}WORKER": "1"}


def check_store(address: str) -> None:
    """Raises ConfigError for what is no address of a PostgreSQL database."""
    if address and not address.startswith(("postgresql://", "postgres://")):
        raise ConfigError(
            f"store: {address.partition('://')[0][:40]!r} is no database that Deskhand knows: "
            "write postgresql://user@host/name, or leave it out for a SQLite file"
        )


def parse_config(data: Mapping[str, Any], path: Path) -> Config:
    """The keys as a Config. Raises ConfigError that names the file and the place."""
    try:
        keys.check_lists(data)
        config = msgspec.convert(data, Config, strict=False)
        check_store(config.store)
        check_roles(config.roles)
        check_rules(normalize_rules(config.policy), _known_names(config))
        check_egress(config.egress)
        check_budgets(config.budgets)
        check_memory(config.memory)
        check_reflection(config.reflection)
        check_bindings(config.bindings, config.agents or ("default",))
        check_sign_in(config.web.sign_in)
        check_push(config.web.push)
        check_traces(config.traces)
        check_mcp_servers(config.mcp)
        check_remote_agents(config.remote_agents)
    except ConfigError as error:
        raise ConfigError(f"{str(path)!r}: {error}") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{str(path)!r}: {keys.describe_error(error)}") from error
    try:
        ZoneInfo(config.timezone)
    except (KeyError, ValueError, OSError) as error:
        zone = config.timezone
        raise ConfigError(
            f"{str(path)!r}: unknown timezone {zone!r}; use a name such as 'Europe/Berlin'"
        ) from error
    if find_language(config.language) is None:
        codes = ", ".join(language.code for language in all_languages())
        raise ConfigError(
            f"{str(path)!r}: there is no language {config.language!r}; there are: {codes}"
        )
    return config


def _is_set(field: str, value: Any) -> bool:
    """Whether this stands in the configuration of an agent. A list of tools or skills counts also
    when it is empty."""
    return value is not None and (value not in ("", ()) or field in LIST_KEYS - {"models"})


def normalize_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules under our names of tools: one for `bash` is one for `shell`."""
    return tuple(replace(rule, tool=TOOL_ALIASES.get(rule.tool, rule.tool)) for rule in rules)


def _known_names(config: Config) -> KnownNames:
    channels = (*sorted(OWN_SURFACES), *config.channels)
    roles = (*ROLE_SCOPES, *config.roles)
    return KnownNames(tuple(config.agents) or ("default",), channels, roles, ROLE_ALIASES)


class FoundConfig(msgspec.Struct):
    """The keys of a file, all of them ours; what was left over; and secrets that stood in it."""

    config: dict[str, Any]
    translation: Translation
    warnings: list[str]
    secrets: dict[str, str]


def translate_config(data: Mapping[str, Any], path: Path) -> FoundConfig:
    """Whoever wrote this file, as our own keys. Raises ConfigError for what must not be said."""
    known, foreign = keys.split_known(data, Config)
    translation = translate_keys(foreign)
    warnings = keys.describe_unknown(translation.left, Config)
    return FoundConfig(
        keys.with_defaults(known, translation.config), translation, warnings, translation.secrets
    )


def _read_file(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        if path.suffix == ".env" or path.name == ".env":
            return dict(read_env_file(path))
        return read_data(path)
    except FileNotFoundError:
        if required:
            raise ConfigError(f"there is no file {str(path)!r}") from None
        return {}


def _read_env_files(
    home: Home, path: Path, data: Mapping[str, Any], warnings: list[str]
) -> dict[str, str]:
    """What the home's `.env` and the `env_file` say; the first wins."""
    found: dict[str, str] = {}
    named = str(data.get("env_file") or "")
    files = [home.env, *([path.parent / Path(named).expanduser()] if named else [])]
    for file in reversed(files):
        try:
            found |= read_env_file(file)
        except FileNotFoundError:
            if file != home.env:
                warnings.append(f"the env_file {str(file)!r} does not exist")
            continue
        if file == home.env and file.stat().st_mode & 0o077:
            warnings.append(f"others can read the keys in {str(file)!r}; run: chmod 600 {file}")
    return found


def _compat_config(
    data: Mapping[str, Any], env: Mapping[str, str], warnings: list[str]
) -> dict[str, Any]:
    """What another system's variables say, where the configuration asks for them; beneath our own
    keys are only its defaults."""
    compat = env.get(f"{ENV_PREFIX}COMPAT") or data.get("compat")
    if compat == "openagent":
        named = {name: value for name, value in env.items() if OPENAGENT_VARIABLES.fullmatch(name)}
        theirs = translate_keys(named)
        warnings += keys.describe_unknown(theirs.left, Config)
        return keys.overlay(
            keys.overlay(translate_keys(OPENAGENT_DEFAULTS).config, OPENAGENT_TASKS), theirs.config
        )
    if compat == "operator-use":
        nested: dict[str, Any] = {}
        for name, value in env.items():
            if name.startswith("OPERATOR_") and "__" in name:
                keys.set_value(
                    nested, name.removeprefix("OPERATOR_").lower().split("__"), parse_value(value)
                )
        return translate_config(nested, Path("OPERATOR_")).config
    return {}


def _environment_config(env: Mapping[str, str], warnings: list[str]) -> dict[str, Any]:
    """The keys that DESKHAND_ variables set."""
    data: dict[str, Any] = {}
    for name, value in env.items():
        short = name.removeprefix(ENV_PREFIX)
        if not name.startswith(ENV_PREFIX) or short in OTHER_VARIABLES:
            continue
        written = short.lower().replace("__", ".")
        path = SHORT_VARIABLES.get(short) or keys.current_path(written)
        if path != written and f"{ENV_PREFIX}{path.replace('.', '__').upper()}" in env:
            continue  # the variable with the new name holds
        if not keys.exists(path, Config):
            warnings.append(f"the variable {name} is ignored: there is no key {path}")
            continue
        if (
            path.endswith(".models") and not value.strip()
        ):  # as a compose file passes on what is not set
            continue
        listed = path.rpartition(".")[2] in LIST_KEYS or path == "plugins"
        keys.set_value(data, path.split("."), value.split(",") if listed else value)
    return data


def workspace_path(settings: Settings, agent: str) -> Path:
    """Where the agent's workspace lies, or would lie."""
    written = settings.agent(agent).workspace
    if written.startswith("~/"):
        written = str(Path(settings.environment.get("HOME", "/")) / written[2:])
    return Path(written) if written else settings.home.workspace(agent)


def workspace_of(settings: Settings, agent: str) -> Path:
    """The agent's workspace, made where it is missing, as a path without links.

    Raises ConfigError where it would show the agent our own files and keys.
    """
    home = settings.home
    folder = workspace_path(settings, agent)
    make_private_folder(folder)
    folder = folder.resolve()
    if home.is_protected(folder, write=True):
        raise ConfigError(
            f"the workspace {str(folder)!r} contains Deskhand's own files and keys; choose a "
            "different folder"
        )
    return folder
