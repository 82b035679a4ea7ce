"""What is configured, whoever wrote the file and however badly."""

from __future__ import annotations

import runpy
from itertools import product
from pathlib import Path

import msgspec
import pytest

from deskhand.agent.next_step import next_step
from deskhand.agent.state import State
from deskhand.assembly.judge import make_judge
from deskhand.assembly.models import Models
from deskhand.config import keys
from deskhand.config.config import AgentConfig, Config, ProviderConfig, Settings, read_settings
from deskhand.config.foreign_keys import KEY_TABLE, translate_keys
from deskhand.config.page_edits import list_writable_keys
from deskhand.config.parse import parse_data, parse_plain
from deskhand.config.routing import Binding
from deskhand.config.sections import DeepWorkConfig, HeartbeatConfig
from deskhand.memory.reflect import ReflectionConfig
from deskhand.memory.settings import GatherConfig, MemoryConfig
from deskhand.models.base import ContextMessage
from deskhand.models.sight import Sighted
from deskhand.policy.profiles import Offered
from deskhand.policy.roles import RoleConfig
from deskhand.policy.rules import Case, Rule
from deskhand.testing.effort import least_cpu_s
from deskhand.types.errors import ConfigError
from deskhand.types.events import Turn
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import OWNER
from deskhand.types.limits import Limits
from deskhand.types.messages import Message, Text, Usage
from deskhand.types.steps import AskModel, Compact

SOURCES = Path(__file__).parent / "sources"


def read(home: Path, text: str | bytes = "", **environment: str) -> Settings:
    """The settings of a home with this configuration."""
    home.mkdir(exist_ok=True)
    if text:
        (home / "deskhand.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return read_settings(None, {"DESKHAND_HOME": str(home), **environment})


def source(name: str, home: Path, **environment: str) -> Settings:
    return read_settings(SOURCES / name, {"DESKHAND_HOME": str(home), **environment})


def test_nothing_at_all(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert settings.config == Config()
    assert settings.warnings == ()
    assert settings.agents == ("default",)


def test_operator_use(tmp_path: Path) -> None:
    settings = source("operator-use.json", tmp_path)
    assert settings.config == Config(
        defaults=AgentConfig(steps=40),
        agents={
            "operator": AgentConfig(
                ("openrouter/anthropic/claude-sonnet-4-6",), steps=60, workspace="/srv/operator"
            ),
            "coder": AgentConfig(("openai/gpt-5",), profile="coding", prompt="minimal"),
        },
        providers={"azure": ProviderConfig("https://example.openai.azure.com/openai/v1")},
        bindings=(Binding("coder", "discord"),),
        heartbeat=HeartbeatConfig(enabled=True),
    )
    assert settings.environment["OPENAI_API_KEY"] == "sk-openai-secret"
    assert settings.environment["OPENROUTER_API_KEY"] == "sk-or-secret"
    (warning,) = settings.warnings
    assert warning.startswith("not used here yet: agents.defaults.streaming, ")
    assert "telegram-secret" not in warning


def test_operator_ai_0_4(tmp_path: Path) -> None:
    settings = source("operator-ai-0.4.yaml", tmp_path)
    assert settings.config == Config(
        defaults=AgentConfig(
            ("anthropic/claude-opus-4-6", "google/gemini-3-pro"), steps=25, context_ratio=0.5
        ),
        agents={
            "operator": AgentConfig(("anthropic/claude-sonnet-4-6",), sandbox=False),
            "researcher": AgentConfig(
                steps=10, tools=("read_file", "shell"), skills=("summarize",)
            ),
        },
        roles={"team": RoleConfig(("operator", "researcher"))},
        timezone="America/Vancouver",
        env_file="keys.env",
        reject_response="ignore",
        memory=MemoryConfig(
            embed_model="openai/text-embedding-3-small",
            inject_top_k=3,
            harvester=GatherConfig(True, "*/30 * * * *", ("google/gemini-3-flash",)),
            cleaner=GatherConfig(False),
        ),
    )
    transport, env_file = settings.warnings
    assert transport == (
        "agents.operator.transport: set `channels` and `bindings` instead; until then "
        "'operator' answers in the"
        " terminal, and SLACK_BOT_TOKEN and SLACK_APP_TOKEN are not read"
    )
    assert "keys.env' does not exist" in env_file


def test_operator_ai_0_7(tmp_path: Path) -> None:
    settings = source("operator-ai-0.7.yaml", tmp_path)
    assert settings.config == Config(
        defaults=AgentConfig(("openai/gpt-5",), steps=50, thinking="medium"),
        agents={"operator": AgentConfig(("ollama/qwen3",), thinking="high")},
        timezone="Europe/Berlin",
        env_file=".env",
        show_usage=True,
        reject_response="ignore",
    )


def test_how_strangers_are_answered_stands_in_three_places(tmp_path: Path) -> None:
    assert read(tmp_path).config.reject_response == "auto"
    for text in (
        "settings: {reject_response: announce}",
        "runtime: {reject_response: announce}",
        "reject_response: announce",
    ):
        settings = read(tmp_path, text)
        assert (settings.config.reject_response, settings.warnings) == ("announce", ())


def test_agent_computer(tmp_path: Path) -> None:
    settings = source("agent_computer.json", tmp_path)
    assert settings.config == Config(
        defaults=AgentConfig(
            ("lmstudio/your-model-id",),
            steps=15,
            output_tokens=8192,
            workspace="./workspace",
            tools=("shell", "read_file", "list_files"),
        ),
        providers={"lmstudio": ProviderConfig("http://10.5.0.2:1234/v1")},
        policy=(Rule("ask", tool="shell"),),
        deep_work=DeepWorkConfig(tokens=1_500_000, warn_at=0.8),
        memory=MemoryConfig(),
        reflection=ReflectionConfig(output_tokens=2048, max_sessions=5),
    )


def test_the_port_of_agent_computer(tmp_path: Path) -> None:
    """Where it listens is not taken over: other machines would reach it in the clear."""
    settings = read(tmp_path, 'gateway: {host: "0.0.0.0", port: 8123}')
    assert (settings.config.web.port, settings.config.web.host) == (8123, "127.0.0.1")
    assert any("gateway.host" in warning for warning in settings.warnings)


def test_either_provider_of_agent_computer(tmp_path: Path) -> None:
    """LM Studio where none is named; OpenRouter with the key of its own variable."""
    for number, (model, chosen) in enumerate(
        (
            ({"model_id": "qwen"}, "lmstudio/qwen"),
            ({"provider": "openrouter", "model_id": "z-ai/glm-5"}, "openrouter/z-ai/glm-5"),
        )
    ):
        text = msgspec.json.encode({"agent": {"model": model}})
        settings = read(tmp_path / str(number), text, OPENROUTER_API_KEY="sk-or-12345678")
        assert settings.config.defaults.models == (chosen,), model
        assert isinstance(Models(settings).open(chosen), Sighted)


def test_what_agent_computer_knows_and_we_do_not(tmp_path: Path) -> None:
    """Nothing of it is lost or in force: above all, nothing approves by itself. A key goes where
    keys are."""
    theirs: dict[str, object] = {
        "non_interactive_approval_policy": "auto_approve",
        "shell_blocked_commands": ["rm"],
        "shell_allow_absolute_paths": True,
        "require_approval": ["shell"],
    }
    whole = {
        "agent": {"tools": theirs},
        "lmstudio": {"timeout": 5},
        "pinchtab": {"port": 9867},
        "openrouter_api_key": "sk-or-12345678",
    }
    settings = read(tmp_path, msgspec.json.encode(whole))
    assert settings.config == Config(policy=(Rule("ask", tool="shell"),))
    assert settings.environment["OPENROUTER_API_KEY"] == "sk-or-12345678"
    assert any(
        "agent.tools.non_interactive_approval_policy" in warning for warning in settings.warnings
    )
    left = [path for path, _ in translate_keys(whole).left]
    tools = [f"agent.tools.{name}" for name in theirs if name != "require_approval"]
    assert left == [*tools, "lmstudio.timeout", "pinchtab.port"]


def test_openagent_by_its_environment(tmp_path: Path) -> None:
    env = {
        "MODEL": "claude-opus-4-6",
        "MAX_TURNS": "30",
        "ANTHROPIC_BASE_URL": "https://proxy.example",
    }
    assert read(tmp_path, "timezone: Europe/Berlin", **env).config == Config(
        timezone="Europe/Berlin"
    )
    settings = read(tmp_path, "compat: openagent", **env)
    assert settings.config == Config(
        defaults=AgentConfig(
            ("anthropic/claude-opus-4-6",),
            30,
            200_000,
            16_384,
            context_ratio=0.7,
            shell_timeout_s=60.0,
            also_allow=("task_*", "todo_*"),
        ),
        providers={"anthropic": ProviderConfig("https://proxy.example/v1")},
        compat="openagent",
    )
    assert (
        read(tmp_path, "compat: openagent\ndefaults: {also_allow: []}").config.defaults.also_allow
        == ()
    )
    assert settings.warnings == ()


def test_all_of_openagents_variables(tmp_path: Path) -> None:
    """Each is used, or named in a warning; what could hold a password is not repeated."""
    used = {
        "COMPACT_THRESHOLD": "0.5",
        "BASH_TIMEOUT": "90",
        "ALLOWED_COMMANDS": '["ls", "git"]',
        "SKILLS_DIR": "my/skills",
        "WORKSPACE_DIR": "/srv/work",
        "ENABLE_MEMORY": "false",
    }
    unused = [
        "CONTEXT_WINDOW",
        "LLM_MAX_RETRIES",
        "LLM_RETRY_BASE_DELAY",
        "LLM_RETRY_MAX_DELAY",
        "PROMPTS_DIR",
    ]
    unused += ["WORKSPACE_CLEANUP_DELAY", "BACKGROUND_TIMEOUT", "MAX_TEAMMATES"]
    env = used | dict.fromkeys(unused, "1") | {"DATABASE_URL": "postgresql://u:secret@h/db"}
    settings = read(tmp_path, "compat: openagent", **env)
    defaults = settings.config.defaults
    assert not settings.config.memory.enabled
    assert (defaults.context_ratio, defaults.shell_timeout_s, defaults.commands) == (
        0.5,
        90.0,
        ("ls", "git"),
    )
    assert (settings.skills_folder, defaults.workspace) == (tmp_path / "my" / "skills", "/srv/work")
    database, others = settings.warnings
    assert database.startswith("DATABASE_URL is not used") and "secret" not in database
    assert others.startswith(
        f"not used here yet: {', '.join(unused[:4])} and {len(unused) - 4} more"
    )
    assert read(tmp_path, ALLOWED_COMMANDS="[]").config.defaults.commands == ()
    assert read(tmp_path, "compat: ''", **env).config.defaults == AgentConfig()


def test_openagent_by_its_env_file(tmp_path: Path) -> None:
    settings = source("openagent.env", tmp_path)
    assert settings.config == Config(
        defaults=AgentConfig(
            ("anthropic/claude-opus-4-6",), 30, workspace="work space", shell_timeout_s=90.0
        ),
        providers={"anthropic": ProviderConfig("https://proxy.example/v1")},
    )
    assert settings.environment["ANTHROPIC_API_KEY"] == "sk-ant-secret"
    assert settings.warnings == ()


def test_operator_use_by_its_environment(tmp_path: Path) -> None:
    env = {
        "OPERATOR_AGENTS__DEFAULTS__MAX_TOOL_ITERATIONS": "7",
        "OPERATOR_AGENT": "default",
        "OPERATOR_HOME": "/x",
    }
    settings = read(tmp_path, "compat: operator-use", **env)
    assert settings.config.defaults.steps == 7
    assert settings.resolve_agent() == "default"


def test_ours_wins_over_theirs_in_one_file(tmp_path: Path) -> None:
    settings = read(tmp_path, "defaults: {steps: 5, max_iterations: 9, maxOutputTokens: 100}")
    assert settings.config.defaults == AgentConfig(steps=5, output_tokens=100)
    assert settings.warnings == ()


def test_every_alias_leads_to_a_key() -> None:
    targets = {ours.replace("*", "NAME") for _, ours in KEY_TABLE if ours not in ("", "secret")}
    assert {target for target in targets if not keys.exists(target, Config)} == set()


def test_which_agent(tmp_path: Path) -> None:
    text = "agents: {a: {}, b: {}, c: {}}"
    assert read(tmp_path, text).resolve_agent() == "a"
    assert read(tmp_path, text, DESKHAND_AGENT="b", OPERATOR_AGENT="c").resolve_agent() == "b"
    assert read(tmp_path, text, OPERATOR_AGENT="c").resolve_agent() == "c"
    assert read(tmp_path, text, DESKHAND_AGENT="b").resolve_agent("a") == "a"
    with pytest.raises(ConfigError, match="there is no agent 'x'; there are: a, b, c"):
        read(tmp_path, text, DESKHAND_AGENT="x").resolve_agent()


def test_the_share_of_the_window(tmp_path: Path) -> None:
    """Where an agent says nothing, the defaults hold; where those say nothing, a conversation fills
    four fifths."""
    settings = read(
        tmp_path,
        (
            "defaults: {context_ratio: 0.5}\nagents: {a: {}, b: {context_ratio: 0.25}, c: "
            "{contextRatio: 1}}"
        ),
    )
    who = Principal("ann")
    turn = Turn(
        principal=who,
        address=Address("terminal"),
        answers=[1],
        opened_at=0.0,
        steps=0,
        usage=Usage(),
    )
    state = State("s", n=1, turn=turn)
    said = Message("user", (Text("w" * 100_000),)), Message("assistant", (Text("yes"),))
    state.messages = [ContextMessage(4 * n, message) for n, message in enumerate(said, 1)]
    for agent, share in (("a", 0.5), ("b", 0.25), ("c", 1.0)):
        limits = settings.limits(settings.agent(agent), 100_000)
        state.context_tokens = int(share * 100_000)
        assert isinstance(next_step(state, limits, 0.0), AskModel), agent
        state.context_tokens += 100
        assert next_step(state, limits, 0.0) == Compact(int(share * 50_000)), agent
    usual = read(tmp_path / "usual")
    assert usual.limits(usual.agent("default"), 100_000) == Limits(
        window=100_000, model_window=100_000
    )


def test_how_much_an_agent_may_write(tmp_path: Path) -> None:
    """As operator-ai writes it: an agent's own number, else the defaults', else as much as the
    model can."""
    settings = read(
        tmp_path,
        "defaults: {max_output_tokens: 900, max_iterations: 25}\n"
        "agents: {a: {}, b: {max_output_tokens: 70, max_iterations: 5}}",
    )
    found = {name: settings.limits(settings.agent(name), 100_000) for name in settings.agents}
    assert {name: (each.output_tokens, each.steps) for name, each in found.items()} == {
        "a": (900, 25),
        "b": (70, 5),
    }
    silent = read(tmp_path / "silent", "defaults: {max_output_tokens: null}")
    assert (
        silent.limits(silent.agent("default"), 100_000).output_tokens is None
        and silent.warnings == ()
    )


def test_permissions(tmp_path: Path) -> None:
    """No block and `*` are all, a list is only these."""
    settings = read(
        tmp_path,
        (
            "agents: {a: {permissions: {tools: '*', skills: '*'}}, b: {permissions: {skills: "
            "[x]}}, c: {}}"
        ),
    )
    found = [(settings.agent(name).tools, settings.agent(name).skills) for name in "abc"]
    assert found == [(("*",), ("*",)), (("*",), ("x",)), (("*",), ("*",))]
    assert read(tmp_path, DESKHAND_DEFAULTS__SKILLS="x, y").config.defaults.skills == ("x", "y")


def test_an_agent_may_widen_what_the_defaults_narrow(tmp_path: Path) -> None:
    text = """
defaults: {tools: [read_*, bash], skills: [x], commands: [ls], profile: coding, also_allow: [kv_*], deny: [shell]}
agents:
  a: {}
  b: {tools: ["*"], skills: ["*"], commands: [], profile: full, also_allow: [], deny: []}
  c: {tools: [], skills: []}
"""  # noqa: E501
    settings = read(tmp_path, text)
    assert settings.offered_tools("a") == Offered(
        "coding", ("read_*", "shell"), ("kv_*",), ("shell",)
    )
    assert (
        settings.offered_tools("b") == Offered()
        and settings.skill_patterns("b") == ("*",)
        and not settings.agent("b").commands
    )
    assert settings.offered_tools("c").tools == () and settings.skill_patterns("c") == (), (
        "a list is only these, and this is none"
    )
    assert read(tmp_path / "usual").offered_tools("default") == Offered()


THEIRS = {"profile": "coding", "alsoAllow": ["kv_get"], "deny": ["terminal"]}


@pytest.mark.parametrize(
    "agents",
    [
        {"list": [{"id": "a", "tools": THEIRS}]},
        {"defaults": {"tools": THEIRS}, "list": [{"id": "a"}]},
        {"a": {"tools": THEIRS}},
        {"a": {"profile": "coding", "also_allow": "kv_get", "deny": ["bash"]}},
    ],
)
def test_profiles_of_tools_as_others_write_them(tmp_path: Path, agents: object) -> None:
    settings = read(tmp_path, msgspec.json.encode({"agents": agents}))
    assert (
        settings.offered_tools("a") == Offered("coding", ("*",), ("kv_get",), ("shell",))
        and settings.warnings == ()
    )


@pytest.mark.parametrize("key", ["permission_mode", "posture"])
def test_permission_modes(tmp_path: Path, key: str) -> None:
    text = f"""
{key}: everything
agents: {{a: {{}}, b: {{{key}: read-only}}}}
roles: {{kids: {{agents: [a], {key}: ask-me}}}}
"""
    settings = read(tmp_path, text)
    assert (settings.permission_mode("a"), settings.permission_mode("b")) == (
        "everything",
        "read-only",
    )
    found = {}
    for agent, who in product("ab", ("owner", "kids")):
        case = Case(agent, "shell", "local_write", Principal("x", (who,)), OWNER)
        found[agent, who] = make_judge(settings, agent).judge(case).verdict
    assert found == {
        ("a", "owner"): "allow",
        ("a", "kids"): "ask",
        ("b", "owner"): "deny",
        ("b", "kids"): "deny",
    }


def test_agents_may_be_a_list(tmp_path: Path) -> None:
    settings = read(tmp_path, "agents: [{name: a, steps: 3}, {id: b}]")
    assert settings.config.agents == {"a": AgentConfig(steps=3), "b": AgentConfig()}
    theirs = read(
        tmp_path / "theirs",
        '{"agents": {"list": [{"id": "a"}, {"id": "b", "maxToolIterations": 3}]}}',
    )
    assert theirs.config.agents == {"a": AgentConfig(), "b": AgentConfig(steps=3)}


@pytest.mark.parametrize(
    "text",
    [
        "agents: {owner: {models: [x/y]}, guest: {permissions: {tools: [read_file]}}}",
        "agents: [{name: owner}, {name: guest, model: x/y}]",
        "agents: {list: [{id: owner}, {id: guest, maxToolIterations: 3}]}",
        "agents: {owner: {}, guest: {tools: {profile: minimal}}}",
    ],
)
def test_the_first_agent_of_a_file_stays_the_first(tmp_path: Path, text: str) -> None:
    """The first agent is the default: one with keys to translate must not become it."""
    settings = read(tmp_path, text)
    assert settings.agents == ("owner", "guest")
    assert settings.resolve_agent() == "owner"


def test_the_environment_does_not_change_which_agent_is_the_first(tmp_path: Path) -> None:
    text = "agents: {owner: {}, guest: {}}"
    ours = read(tmp_path, text, DESKHAND_AGENTS__GUEST__STEPS="3")
    assert ours.agents == ("owner", "guest")
    theirs = read(tmp_path, f"compat: operator-use\n{text}", OPERATOR_AGENTS__GUEST__STEPS="3")
    assert theirs.agents == ("owner", "guest")
    assert theirs.config.agents["guest"].steps == 3


def test_unknown_keys_are_named_and_never_fatal(tmp_path: Path) -> None:
    text = (
        "timezon: UTC\ndefaults: {model_s: [x/y]}\nproviders: {openai: {base_ur: x}}\nagents: "
        "{a: {stepz: 1}}\n1: 2"
    )
    settings = read(tmp_path, text, DESKHAND_TIMEZON="UTC")
    assert settings.warnings == (
        "unknown key 'timezon'; did you mean 'timezone'?",
        "unknown key 'defaults.model_s'; did you mean 'defaults.models'?",
        "unknown key 'providers.openai.base_ur'; did you mean 'providers.openai.base_url'?",
        "unknown key 'agents.a.stepz'; did you mean 'agents.a.steps'?",
        "unknown key '1'",
        "the variable DESKHAND_TIMEZON is ignored: there is no key timezon",
    )


def test_variables_override_the_file(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "defaults: {steps: 5, models: [a/b]}\ntimezone: Europe/Berlin",
        DESKHAND_STEPS="9",
        DESKHAND_MODELS="c/d, e/f",
        DESKHAND_DEFAULTS__TOKENS="77",
        DESKHAND_TIMEZONE="Asia/Tokyo",
        DESKHAND_SHOW_USAGE="true",
    )
    assert settings.config == Config(
        AgentConfig(("c/d", "e/f"), 9, 77), timezone="Asia/Tokyo", show_usage=True
    )


def test_a_traceback_shows_no_key(tmp_path: Path) -> None:
    assert "sk-secret" not in repr(read(tmp_path, OPENAI_API_KEY="sk-secret"))


def test_env_files(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A='from home'\nB=home # why\nC=home\n")
    (tmp_path / ".env").chmod(0o600)
    (tmp_path / "more.env").write_text('export B=more\nD="x # y"\nE=a#b\nnonsense\n# F=1\n')
    settings = read(tmp_path, "env_file: more.env", C="process")
    found = {name: settings.environment[name] for name in "ABCDE"}
    assert found == {"A": "from home", "B": "home", "C": "process", "D": "x # y", "E": "a#b"}
    assert "F" not in settings.environment
    (tmp_path / ".env").chmod(0o644)
    assert "chmod 600" in read(tmp_path).warnings[0]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
BAD: list[tuple[str | bytes, str]] = [
    (BOMB, "its aliases expand to more than"),
    ("a: &a [*a]", "an alias refers to itself"),
    ("a: !!python/object/apply:os.system ['id']", "could not determine a constructor"),
    ("defaults: [", "is not valid YAML"),
    ('{"defaults": ', "is not valid JSON"),
    ("[" * 3000 + "]" * 3000, "is nested too deeply"),
    ("a: " + "{a: " * 3000, "nested too deeply"),
    (b"defaults: \xff\xfe", "is not UTF-8 (line 1)"),
    ("- a\n- b", "must hold keys and values"),
    ("just words", "must hold keys and values"),
    ("defaults: {steps: many}", "'defaults.steps': Expected `int | null`, got `str`"),
    (
        "roles: {admin: {agents: [a]}}",
        "'roles.admin' is built in, with all agents: give this role another",
    ),
    ("bindings: [{agent: x}]", "'bindings[0].agent': there is no agent 'x'"),
    (
        "bindings: [{agent: default, guild: 1}]",
        "'bindings[0]': Object contains unknown field `guild`",
    ),
    ("roles: {approver: {agents: [a]}}", "'roles.approver' is built in"),
    ("settings: {reject_response: shout}", "'reject_response': Invalid enum value 'shout'"),
    ("defaults: {context_ratio: 1.5}", "'defaults.context_ratio': Expected `float` <= 1.0"),
    ("agents: {a: {context_ratio: 0}}", "Expected `float` > 0.0"),
    ("defaults: {shell_timeout_s: 601}", "'defaults.shell_timeout_s': Expected `float` <= 600.0"),
    ("agents: {a: {thinking: hard}}", "'agents[...].thinking': Invalid enum value 'hard'"),
    ("policy: [{verdict: maybe}]", "'policy[0].verdict': Invalid enum value 'maybe'"),
    ("timezone: Mars/Olympus", "unknown timezone 'Mars/Olympus'"),
    ("timezone: ../../etc/passwd", "unknown timezone"),
    ("a: 2026-99-99", "is not valid YAML"),
    ("#" * 600_000, "is larger than"),
]


@pytest.mark.parametrize(("text", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_bad_files_end_in_a_sentence_and_quickly(
    tmp_path: Path, text: str | bytes, sentence: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text)
    assert sentence in str(raised.value)
    assert str(tmp_path / "deskhand.yaml") in str(raised.value)

    def work() -> None:
        with pytest.raises(ConfigError):
            read(tmp_path, text)

    assert least_cpu_s(work) < 0.25


def test_half_surrogates_are_cleaned(tmp_path: Path) -> None:
    json = read(tmp_path, '{"defaults": {"workspace": "a\\ud800b"}}')
    yaml = read(tmp_path, 'defaults: {workspace: "a\\ud800b"}')
    for settings in (json, yaml):
        assert msgspec.json.decode(msgspec.json.encode(settings.config))["defaults"] == {
            "workspace": "a?b"
        }


def test_aliases_may_be_used_honestly(tmp_path: Path) -> None:
    text = "x-base: &base {steps: 3}\nagents: {a: {<<: *base}, b: *base}"
    assert read(tmp_path, text).config.agents == {
        "a": AgentConfig(steps=3),
        "b": AgentConfig(steps=3),
    }


def test_a_byte_order_mark_and_an_empty_file(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufefftimezone: Asia/Tokyo").config.timezone == "Asia/Tokyo"
    assert read(tmp_path, "# nothing\n").config == Config()


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        read_settings(tmp_path / "none.yaml", {"DESKHAND_HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match="cannot be read"):
        read_settings(tmp_path, {"DESKHAND_HOME": str(tmp_path)})


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    documented = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    existing = set(keys.iter_paths(Config))
    inherited = {key for key in existing if key.startswith("agents.NAME.")}
    assert existing - inherited <= documented
    assert documented - existing <= {theirs for theirs, _ in KEY_TABLE}, "these keys do not exist"
    assert {theirs for theirs, _ in KEY_TABLE} <= documented


def test_the_page_says_of_each_key_what_its_document_says() -> None:
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "settings_keys.py"))
    made = script["MADE"].read_text()
    docs, reference = script["DOCS"].read_text(), script["REFERENCE"].read_text()
    assert made == script["module"](docs, reference), "run scripts/settings_keys.py"
    shown = {key.replace("agents.NAME.", "defaults.") for key in list_writable_keys()}
    assert all(f'"{key}": [' in made for key in shown)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{harvester: {enabled: true, model: openai/x}}", "memory.harvester.schedule"),
        ("{harvester: {enabled: true, schedule: '0 3 * * *'}}", "memory.harvester.models"),
        (
            "{harvester: {enabled: true, schedule: '61 * * * *', model: openai/x}}",
            "memory.harvester.schedule",
        ),
        ("{cleaner: {schedule: whenever}}", "memory.cleaner.schedule"),
        (
            (
                "{cleaner: {enabled: true, schedule: '0 3 * * *', models: [openai/x]}, "
                "embed_model: none}"
            ),
            "embed_model",
        ),
        ("{embed_model: text-embedding-3-small}", "provider/name"),
        ("{max_memories: 0}", "memory.max_memories"),
        ("{inject_min_relevance: 2}", "memory.inject_min_relevance"),
    ],
)
def test_memory_that_cannot_work_stops_the_start(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, f"memory: {text}")


def test_what_holds_of_memory_where_nothing_is_said(tmp_path: Path) -> None:
    memory = read(tmp_path).config.memory
    assert (memory.embed_dimensions, memory.max_memories, memory.inject_top_k) == (1536, 10_000, 5)
    assert (
        memory.inject_min_relevance,
        memory.candidate_ttl_days,
        memory.keeping.candidate_days,
    ) == (0.1, 14, 14)
    chain = (
        "{harvester: {enabled: true, schedule: '0 * * * *', models: [gemini/a, openai/b]}, "
        "candidate_ttl_days: 3}"
    )
    memory = read(tmp_path, f"memory: {chain}").config.memory
    assert (
        memory.harvester.models == ("google/a", "openai/b") and memory.keeping.candidate_days == 3
    )


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 60, "a: [" + "{b: " * 60, "a: " + "[" * 51 + "]" * 51]
)
def test_brackets_nested_too_deeply_are_refused_before_they_are_parsed(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_data(text, tmp_path / "x.yaml")
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_plain(text)


def test_front_matter_has_a_limit() -> None:
    assert parse_plain("a: " + "b" * 7_000) == {"a": "b" * 7_000}
    with pytest.raises(ConfigError, match="more than"):
        parse_plain("a: b\n" * 2_000)


def test_a_key_that_has_a_new_name(tmp_path: Path) -> None:
    both = read(tmp_path, "posture: everything\npermission_mode: ask-me\n")
    assert (both.config.permission_mode, both.warnings) == ("ask-me", ())

    variables = {"DESKHAND_POSTURE": "everything", "DESKHAND_PERMISSION_MODE": "read-only"}
    assert read(tmp_path, "", **variables).config.permission_mode == "read-only"
    old = read(tmp_path, "", DESKHAND_DEFAULTS__POSTURE="ask-me")
    assert old.config.defaults.permission_mode == "ask-me"
