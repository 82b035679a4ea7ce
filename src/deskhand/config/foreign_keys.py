"""One table from the configuration keys of the systems that Deskhand unites to its own.

Keys may be written in snake_case or camelCase. What has no counterpart yet is reported with its
path, never dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .parse import parse_value

KeyPath = tuple[str, ...]

SECRET = "secret"
"""Where a key itself goes: into `.env`, never into the configuration."""

KEY_TABLE: tuple[tuple[str, str], ...] = (
    # operator-use, config.json
    ("agents.defaults.max_tool_iterations", "defaults.steps"),
    ("agents.defaults.llm_config", "defaults.models"),
    ("agents.list.*.max_tool_iterations", "agents.*.steps"),
    ("agents.list.*.llm_config", "agents.*.models"),
    ("agents.list.*.workspace", "agents.*.workspace"),
    ("agents.list.*.prompt_mode", "agents.*.prompt"),
    ("agents.list.*.id", ""),
    ("agents.defaults.tools.profile", "defaults.profile"),
    ("agents.defaults.tools.allow", "defaults.tools"),
    ("agents.defaults.tools.also_allow", "defaults.also_allow"),
    ("agents.defaults.tools.deny", "defaults.deny"),
    ("agents.list.*.tools.profile", "agents.*.profile"),
    ("agents.list.*.tools.allow", "agents.*.tools"),
    ("agents.list.*.tools.also_allow", "agents.*.also_allow"),
    ("agents.list.*.tools.deny", "agents.*.deny"),
    ("agents.*.tools.profile", "agents.*.profile"),
    ("agents.*.tools.allow", "agents.*.tools"),
    ("agents.*.tools.also_allow", "agents.*.also_allow"),
    ("agents.*.tools.deny", "agents.*.deny"),
    ("providers.*.api_key", SECRET),
    ("providers.*.api_base", "providers.*.base_url"),
    # operator-ai, operator.yaml of 0.4 and 0.7
    ("defaults.model", "defaults.models"),
    ("defaults.max_iterations", "defaults.steps"),
    ("defaults.max_output_tokens", "defaults.output_tokens"),
    ("defaults.timezone", "timezone"),
    ("defaults.env_file", "env_file"),
    ("runtime.timezone", "timezone"),
    ("runtime.env_file", "env_file"),
    ("runtime.show_usage", "show_usage"),
    ("runtime.reject_response", "reject_response"),
    ("settings.reject_response", "reject_response"),
    ("agents.*.model", "agents.*.models"),
    ("agents.*.max_iterations", "agents.*.steps"),
    ("agents.*.max_output_tokens", "agents.*.output_tokens"),
    ("agents.*.permissions.tools", "agents.*.tools"),
    ("agents.*.permissions.skills", "agents.*.skills"),
    ("memory.harvester.model", "memory.harvester.models"),
    ("memory.cleaner.model", "memory.cleaner.models"),
    # agent_computer, config.json
    ("memory.top_k", "memory.inject_top_k"),
    ("reflection.model_id", "reflection.models"),
    ("reflection.max_tokens", "reflection.output_tokens"),
    ("reflection.max_sessions_per_startup", "reflection.max_sessions"),
    ("agent.model", "defaults.models"),
    ("agent.model.max_tokens", "defaults.output_tokens"),
    ("agent.model.base_url", "providers.*.base_url"),
    ("agent.workspace", "defaults.workspace"),
    ("agent.max_loop_iterations", "defaults.steps"),
    ("agent.deep_work.token_budget", "deep_work.tokens"),
    ("agent.deep_work.warning_threshold", "deep_work.warn_at"),
    ("agent.tools.allow", "defaults.tools"),
    ("agent.tools.require_approval", "policy"),
    ("openrouter_api_key", SECRET),
    # openagent-core, environment or .env, with `compat: openagent`
    ("MODEL", "defaults.models"),
    ("MAX_TURNS", "defaults.steps"),
    ("gateway.port", "web.port"),
    ("MAX_TOKEN_BUDGET", "defaults.tokens"),
    ("MAX_OUTPUT_TOKENS", "defaults.output_tokens"),
    ("COMPACT_THRESHOLD", "defaults.context_ratio"),
    ("WORKSPACE_DIR", "defaults.workspace"),
    ("SKILLS_DIR", "skills_folder"),
    ("BASH_TIMEOUT", "defaults.shell_timeout_s"),
    ("ALLOWED_COMMANDS", "defaults.commands"),
    ("ANTHROPIC_BASE_URL", "providers.anthropic.base_url"),
    ("ANTHROPIC_API_KEY", SECRET),
    ("ENABLE_MEMORY", "memory.enabled"),
)
"""theirs -> ours. `*` stands for one name, the same on both sides; '' has nothing left to say."""

OPENAGENT_DEFAULTS = {
    "MODEL": "claude-sonnet-4-5-20250929",
    "MAX_TURNS": "50",
    "MAX_TOKEN_BUDGET": "200000",
    "MAX_OUTPUT_TOKENS": "16384",
    "COMPACT_THRESHOLD": "0.7",
    "BASH_TIMEOUT": "60",
}
"""What openagent-core takes where nothing is set, but for places: ours lie in the home."""
OPENAGENT_TASKS: dict[str, Any] = {"defaults": {"also_allow": ["task_*", "todo_*"]}}
"""Its own view of the tasks, which its users and their prompts know."""
OPENAGENT_VARIABLES = re.compile(
    "ANTHROPIC_(API_KEY|BASE_URL)|MODEL|MAX_(TURNS|TOKEN_BUDGET|OUTPUT_TOKENS|TEAMMATES)|CONTEXT_WINDOW"
    "|COMPACT_THRESHOLD|LLM_(MAX_RETRIES|RETRY_BASE_DELAY|RETRY_MAX_DELAY)|(SKILLS|PROMPTS|WORKSPACE)_DIR"
    "|WORKSPACE_CLEANUP_DELAY|(BASH|BACKGROUND)_TIMEOUT|ALLOWED_COMMANDS|ENABLE_MEMORY|DATABASE_URL"
)
"""All of its variables."""

FOREIGN_PROVIDER_NAMES = {
    "gemini": "google",
    "open_router": "openrouter",
    "azure_openai": "azure",
    "together_ai": "together",
    "hosted_vllm": "vllm",
    "lm_studio": "lmstudio",
    "ollama_chat": "ollama",
}
"""Names of providers elsewhere -> ours."""
_FAMILIES = (
    ("claude", "anthropic"),
    ("gemini", "google"),
    ("gpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
)

FOREIGN_TOOL_NAMES = {
    "bash": "shell",
    "run_shell": "shell",
    "terminal": "shell",
    "list_directory": "list_files",
    "list_dir": "list_files",
    "patch_file": "edit_file",
    "skill": "read_skill",
}
"""Names of tools elsewhere -> ours."""

_SECRET_NAME = re.compile(r"(^|_)(key|token|secret|password)$")


class Translation(msgspec.Struct):
    """What became of foreign keys. `config` are ours; `left` is (path, value) of what has no
    counterpart yet; `secrets` are environment variables that must go into `.env`."""

    config: dict[str, Any]
    left: list[tuple[str, Any]] = []
    secrets: dict[str, str] = {}


SECRET_NOTE = "(a secret: it goes to .env as "
"""What stands in `Translation.left` in place of a secret, with the name of its variable and a
bracket behind it."""


def to_snake_case(name: str) -> str:
    """maxToolIterations -> max_tool_iterations; names in capitals stay."""
    return name if name.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def normalize_model_name(name: str) -> str:
    """A model as LiteLLM and the others write it, as ours: `provider/name`."""
    provider, slash, rest = name.partition("/")
    if slash:
        return f"{FOREIGN_PROVIDER_NAMES.get(provider, provider)}/{rest}"
    return next((f"{known}/{name}" for start, known in _FAMILIES if name.startswith(start)), name)


def translate_keys(data: Mapping[str, Any]) -> Translation:
    """Every key that the table knows, as ours; the others are in `left`."""
    done = Translation({}, [], {})
    rows = [(tuple(theirs.split(".")), ours) for theirs, ours in KEY_TABLE]
    prepared = _index_agents(data)
    agents = prepared.get("agents")
    listed = agents.get("list") if isinstance(agents, Mapping) else None
    if isinstance(listed, Mapping):  # also those of which nothing but the name is said
        done.config["agents"] = {name: {} for name in listed}
    for path, value in _leaves(prepared, rows):
        found = next(((row, ours) for row, ours in rows if _matches(row, path)), None)
        if found is None:
            _report_left(done, path, value)
        else:
            _set_target(done, path, _target_path(found[0], found[1], path), value)
    return done


def _index_agents(data: Mapping[str, Any]) -> dict[str, Any]:
    """A list of agents as a map by their id: ours is a map."""
    whole = dict(data)
    agents = whole.get("agents")
    if isinstance(agents, Mapping) and isinstance(agents.get("list"), list):
        whole["agents"] = dict(agents) | {"list": index_by_name(agents["list"])}
    return whole


def translate_binding(binding: Mapping[str, Any]) -> dict[str, Any]:
    """A binding as we have it, also of one with `agentId` and a `match` by channel, account and
    peer."""
    flat = {to_snake_case(str(key)): value for key, value in binding.items()}
    match = flat.pop("match", None)
    flat |= (
        {to_snake_case(str(key)): value for key, value in match.items()}
        if isinstance(match, Mapping)
        else {}
    )
    peer = flat.pop("peer", None)
    renamed = {"agent_id": "agent", "account_id": "account"}
    found = {renamed.get(key, key): value for key, value in flat.items() if value is not None}
    if isinstance(peer, Mapping):
        found["chat"] = peer.get("id", "")
    return {key: str(value) if isinstance(value, int) else value for key, value in found.items()}


def index_by_name(agents: list[Any]) -> dict[str, Any]:
    """A list of agents, each with an `id` or a `name`, as a map."""
    named: dict[str, Any] = {}
    for number, agent in enumerate(agents, 1):
        rest = dict(agent) if isinstance(agent, Mapping) else {}
        name = rest.pop("id", None) or rest.pop("name", None) or f"agent{number}"
        named[str(name)] = rest
    return named


def _leaves(
    data: Mapping[str, Any], rows: list[tuple[KeyPath, str]], at: KeyPath = ()
) -> Iterator[tuple[KeyPath, Any]]:
    """(path, value) of everything that is no map, and of a map that a row names as a whole."""
    for key, value in data.items():
        path = (*at, str(key))
        if not isinstance(value, Mapping) or not value:
            yield path, value
            continue
        pair = _join_provider_model(value)
        if pair and any(_matches(row, path) for row, _ in rows):
            yield path, pair
            base_url = value.get("base_url")
            if base_url:
                yield (*path, "base_url"), (pair.partition("/")[0], base_url)
            value = {
                k: v
                for k, v in value.items()
                if to_snake_case(k) not in ("provider", "model", "model_id", "base_url")
            }
        yield from _leaves(value, rows, path)


def _join_provider_model(value: Mapping[str, Any]) -> str:
    """`provider/name` of a map that has the two apart, or ''. Of agent_computer, which alone says
    `model_id`, LM Studio is what holds where no provider is named."""
    model = value.get("model_id") or value.get("modelId") or value.get("model")
    provider = value.get("provider") or ("lmstudio" if value.get("model_id") else None)
    if not isinstance(model, str) or not isinstance(provider, str):
        return ""
    return f"{FOREIGN_PROVIDER_NAMES.get(to_snake_case(provider), provider)}/{model}"


def _matches(row: KeyPath, path: KeyPath) -> bool:
    if len(row) != len(path):
        return False
    return all(
        want in ("*", key) or want == to_snake_case(key)
        for want, key in zip(row, path, strict=True)
    )


def _target_path(row: KeyPath, ours: str, path: KeyPath) -> KeyPath:
    names = [key for want, key in zip(row, path, strict=True) if want == "*"]
    return tuple(names.pop(0) if part == "*" and names else part for part in ours.split("."))


def _set_target(done: Translation, path: KeyPath, target: KeyPath, value: Any) -> None:
    if value is None or target == ("",):
        return
    if target == (SECRET,):
        if value:
            done.secrets[_secret_variable(path)] = str(value)
        return
    if isinstance(value, tuple):  # the address of a provider that stands beside it
        target = ("providers", value[0], "base_url")
        value = value[1]
    elif target[0] == "providers":
        target = (
            "providers",
            FOREIGN_PROVIDER_NAMES.get(to_snake_case(target[1]), target[1]),
            *target[2:],
        )
        if path == ("ANTHROPIC_BASE_URL",) and not str(value).rstrip("/").endswith("/v1"):
            value = f"{str(value).rstrip('/')}/v1"
    place = done.config
    for part in target[:-1]:
        place = place.setdefault(part, {})
    place[target[-1]] = _convert_value(target[-1], value)


def _convert_value(key: str, value: Any) -> Any:
    """The value as ours: one model becomes a chain, tools get our names, a list of names becomes
    rules."""
    if key == "commands" and isinstance(value, str):
        value = parse_value(value)  # as it stands in an environment: ["ls", "cat"], or a word
        return [value] if isinstance(value, str) else value
    if key in ("models", "tools", "also_allow", "deny"):
        names = [value] if isinstance(value, str) else value
        if isinstance(names, list):
            return [
                normalize_model_name(str(n))
                if key == "models"
                else FOREIGN_TOOL_NAMES.get(str(n), n)
                for n in names
            ]
    if key == "policy" and isinstance(value, list):
        return [
            {"verdict": "ask", "tool": FOREIGN_TOOL_NAMES.get(str(name), name)} for name in value
        ]
    return value


def _secret_variable(path: KeyPath) -> str:
    """The environment variable for a secret that stood at this path."""
    if path[0] == "providers":
        provider = FOREIGN_PROVIDER_NAMES.get(to_snake_case(path[1]), to_snake_case(path[1]))
        return "AZURE_OPENAI_API_KEY" if provider == "azure" else f"{provider.upper()}_API_KEY"
    if len(path) == 1:
        return path[0].upper()
    return "_".join(to_snake_case(part) for part in path).upper().replace("-", "_")


def _report_left(done: Translation, path: KeyPath, value: Any) -> None:
    if value in (None, "", [], {}):
        return
    if _SECRET_NAME.search(to_snake_case(path[-1])) and isinstance(value, str):
        done.secrets[_secret_variable(path)] = value
        value = f"{SECRET_NOTE}{_secret_variable(path)})"
    done.left.append((".".join(path), value))
