"""Every command: its help, its empty state, what it prints and how it exits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from deskhand.cli.asks import resume_command, session_name
from deskhand.cli.root import ALIASES, COMMANDS, SECTIONS, cli
from deskhand.config.config import AgentConfig, Config, read_settings
from deskhand.types.limits import Limits

SOURCES = Path(__file__).parent.parent / "config" / "sources"


class Desk:
    """The command line on one home, in this process."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *args: str, code: int = 0, **env: str) -> str:
        """Run a command, check its exit code, and return what it printed."""
        variables = {"DESKHAND_HOME": str(self.home), "DESKHAND_AGENT": None, **env}
        result: Result = CliRunner().invoke(cli, args, env=variables, prog_name="deskhand")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.output


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


def commands(
    group: click.Command = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, with its path."""
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            inner = group.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*path, name))


ALL = dict(commands())


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "deskhand")
def test_help_has_an_example(path: tuple[str, ...], desk: Desk) -> None:
    text = desk(*path, "--help")
    assert "Example" in text
    assert f"deskhand {' '.join(path)}".strip() in text.split("Example")[1]
    assert max(map(len, text.splitlines())) <= 100


def test_every_command_takes_a_configuration() -> None:
    leaves = {path for path, command in ALL.items() if not isinstance(command, click.Group)}
    without = {path for path in leaves if not any(p.name == "config" for p in ALL[path].params)}
    assert without == {("version",), ("demo",), ("completion",)}


def test_the_first_page_lists_every_command(desk: Desk) -> None:
    text = desk("--help")
    assert sorted(name for _, names in SECTIONS for name in names) == sorted(COMMANDS)
    assert all(help_ in text for _, help_ in COMMANDS.values())


def test_help_imports_little() -> None:
    """Its time is measured in the bench; here is what keeps it short."""
    script = (
        "import sys; from deskhand.__main__ import main\ntry: main()\nexcept SystemExit: "
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", script, "--help"]
    loaded = (
        subprocess.run(command, capture_output=True, text=True, check=True)
        .stdout.splitlines()[-1]
        .split()
    )
    assert not {"aiohttp", "anyio", "apsw", "asyncio", "msgspec", "rich", "yaml"} & set(loaded)


def test_who_only_reads_the_settings_needs_no_http() -> None:
    """It would be half of the time that they take: in each command, and in the parent of the
    service."""
    script = "import sys, deskhand.cli.serve, deskhand.config.config; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "deskhand.net.client" in loaded and not {
        "aiohttp",
        "numpy",
        "starlette",
        "uvicorn",
    } & set(loaded)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("sessions", "list"), "No conversations yet. Start one: deskhand\n"),
        (("sessions", "list", "--json"), "[]\n"),
        (("approvals", "list"), "No approval requests.\n"),
        (("approvals", "list", "--json"), "[]\n"),
        (("approvals", "grants", "--json"), "[]\n"),
        (
            ("approvals", "grants"),
            (
                "No standing approvals or denials. To create one, answer a request with always "
                "or never.\n"
            ),
        ),
        (("failed", "list"), "No permanent failures.\n"),
        (("failed", "list", "--json"), "[]\n"),
        (("values", "list"), "{}\n"),
        (("logs",), "Nothing was logged yet. Only problems are logged, to "),
        (("sessions",), "No conversations yet. Start one: deskhand\n"),
        (("sessions", "--json"), "[]\n"),
        (("approvals",), "No approval requests.\n"),
        (("values", "-n", "mail"), "{}\n"),
        (("skills",), "api-design\tbundled\tDesign or judge an HTTP API"),
        (("agents",), "default\tno model\t*\t"),
        (("audit", "verify"), "0 events, 0 conversations anchored in "),
    ],
)
def test_empty_states(desk: Desk, args: tuple[str, ...], said: str) -> None:
    assert desk(*args).startswith(said)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("sesions",), 2, "there is no command 'sesions'; did you mean 'sessions'?"),
        (("ses",), 2, "there is no command 'ses'; did you mean 'sessions'?"),
        (("chat",), 2, "a chat needs a terminal."),
        (("chat", "--resume"), 2, "a chat needs a terminal."),
        (("run",), 2, "there is no command 'run'; to start a chat, run: deskhand"),
        (("gatway",), 2, "did you mean 'gateway'?"),
        (("help", "sesions"), 2, "did you mean 'sessions'?"),
        (("what is this",), 2, 'to ask something, run: deskhand ask "what is this …"'),
        (
            ("sessions", "show", "nope"),
            2,
            "there is no conversation 'nope'; list conversations with: deskhand sessions list",
        ),
        (
            ("approvals", "allow", "ask_1"),
            1,
            "is not an open request; list open requests",
        ),
        (
            ("failed", "retry", "d1"),
            2,
            "there is no failure 'd1'; list failures with: deskhand failed list",
        ),
        (
            ("skills", "reset", "brew"),
            2,
            "'brew' is not a bundled skill; choose one of: api-design, ",
        ),
        (("values", "delete", "x"), 1, "there is no key 'x'"),
        (("values", "get", "x", "-a", "who"), 2, "there is no agent 'who'; there are: default"),
        (("config", "get", "timezon"), 2, "there is no key 'timezon'; did you mean 'timezone'?"),
        (("config", "set", "defaults.step", "1"), 2, "did you mean 'defaults.steps'?"),
        (
            ("config", "set", "defaults.steps", "many"),
            2,
            "'defaults.steps': Expected `int | null`, got `str`",
        ),
        (("config", "unset", "timezone"), 1, "'timezone' is not set in "),
        (("model", "use", "gpt"), 1 + 1, "is not a model name: write provider/name"),
        (("model", "list", "nobody"), 2, "There is no model provider 'nobody'."),
        (("--config", "/nowhere.yaml", "agents"), 2, "there is no file '/nowhere.yaml'"),
        (("agents", "--config", "/nowhere.yaml"), 2, "there is no file '/nowhere.yaml'"),
        (("agents", "--config", "/nowhere.yaml", "list"), 2, "there is no file '/nowhere.yaml'"),
        (("sessions", "--config", "/nowhere.yaml", "list"), 2, "there is no file '/nowhere.yaml'"),
        (("config", "--config", "/nowhere.yaml", "path"), 2, "there is no file '/nowhere.yaml'"),
        (("skills", "--agent", "who", "reset", "--all"), 2, "there is no agent 'who'"),
    ],
)
def test_mistakes_end_in_a_sentence(
    desk: Desk, args: tuple[str, ...], code: int, said: str
) -> None:
    assert said in desk(*args, code=code)


def test_kv(desk: Desk) -> None:
    assert desk("values", "set", "seen/1", "yes\n no", "--ns", "mail") == ""
    assert desk("values", "get", "seen/1", "-n", "mail") == "yes\n no\n"
    assert desk("values", "get", "seen/1", code=1) == ""
    desk("values", "set", "seen/2", "2", "-n", "mail", "--ttl", "24")
    desk("values", "set", "s%en/3", "3", "-n", "mail")
    desk("values", "set", "gone", "x", "-n", "mail", "--ttl", "0.0000001")
    assert msgspec.json.decode(desk("values", "list", "-n", "mail", "-p", "seen/")) == {
        "seen/1": "yes\n no",
        "seen/2": "2",
    }
    assert msgspec.json.decode(desk("values", "list", "-n", "mail", "-p", "s%")) == {"s%en/3": "3"}
    assert "gone" not in desk("values", "list", "-n", "mail")
    desk("values", "delete", "seen/1", "-n", "mail")
    desk("values", "get", "seen/1", "-n", "mail", code=1)
    desk("values", "set", "k", "v", "--ttl", "0", code=2)


def test_init_makes_everything_once(desk: Desk) -> None:
    said = desk("init")
    assert "Next: choose a model" in said
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "RULES.md what must never be done; no tool can change it" in lines
    assert "agents/default/AGENT.md what this agent is for" in lines
    assert f"Created in {desk.home / 'agents/default/workspace'}" in said.splitlines()
    assert "memory/ knowledge/ skills/ tools/ shared/" in lines
    (desk.home / "deskhand.yaml").write_text("timezone: Asia/Tokyo")
    (desk.home / "skills").rmdir()
    again = desk("init")
    assert again.splitlines()[:2] == [f"Created in {desk.home}", "  skills/"]
    assert (desk.home / "deskhand.yaml").read_text() == "timezone: Asia/Tokyo"
    assert desk("init").startswith("Nothing to do: everything already exists")
    assert (desk.home / ".env").stat().st_mode & 0o777 == 0o600
    assert desk.home.stat().st_mode & 0o777 == 0o700
    assert (desk.home / "agents/default/workspace/shared").resolve() == (
        desk.home / "shared"
    ).resolve()
    desk("config", "get", "timezone")
    (desk.home / "agents/default/workspace/SOUL.md").unlink()
    (desk.home / "deskhand.yaml").write_text("agents: {default: {}, other: {}}")
    only = desk("init", "--agent", "default").splitlines()
    work = desk.home / "agents/default/workspace"
    assert (
        only[0] == f"Created in {work}"
        and only[1].split()[0] == "SOUL.md"
        and "other" not in "".join(only)
    )
    assert f"Created in {desk.home / 'agents/other/workspace'}" in desk("init").splitlines()
    (desk.home / "settings.yaml").write_text("{}")
    assert "already exists in" in desk("init", "--config", str(desk.home / "settings.yaml"))


def test_the_first_configuration_is_right_where_it_is_taken_up(desk: Desk) -> None:
    """Without the marks of its comments it is a configuration that holds, and it says what holds
    without it."""
    desk("init")
    file = desk.home / "deskhand.yaml"
    taken_up = [line.removeprefix("# ") for line in file.read_text().splitlines()[1:]]
    file.write_text("\n".join(taken_up))
    assert (
        desk("config", "get", "defaults.steps")
        == "50\n"
        == desk("config", "get", "agents.main.steps")
    )
    assert desk("config", "get", "defaults.preset") == "work\n"
    assert desk("config", "get", "memory.inject_top_k") == "3\n"
    assert desk("config", "get", "memory.inject_min_relevance") == "0.3\n"
    assert Limits().steps == 50


def test_config_is_read_changed_and_kept(desk: Desk) -> None:
    desk("init")
    desk("config", "set", "defaults.models", "a/b, c/d")
    desk("config", "set", "agents.main.thinking", "high")
    desk("config", "set", "timezone", "Asia/Tokyo")
    assert desk("config", "get", "defaults.models") == '["a/b","c/d"]\n'
    assert desk("config", "get", "agents.main.models") == '["a/b","c/d"]\n'
    assert desk("config", "get", "timezone") == "Asia/Tokyo\n"
    assert desk("config", "path") == f"{desk.home / 'deskhand.yaml'}\n"
    desk("config", "unset", "timezone")
    assert desk("config", "get", "timezone") == "UTC\n"
    whole = msgspec.json.decode(desk("config"))
    assert set(whole) == set(Config.__struct_fields__)
    assert "# Deskhand's configuration." in (desk.home / "deskhand.yaml").read_text()
    assert desk(
        "config", "get", "timezone", "--config", str(SOURCES / "operator-ai-0.7.yaml")
    ).endswith("Berlin\n")
    assert (
        desk("--config", str(SOURCES / "operator-ai-0.7.yaml"), "agents")
        .splitlines()[-1]
        .startswith("operator\t")
    )


def test_the_last_key_of_a_section_can_be_unset(desk: Desk) -> None:
    file = desk.home / "deskhand.yaml"
    desk("init")
    before = file.read_text()
    desk("config", "set", "defaults.steps", "7")
    desk("config", "set", "channels.telegram.token_env", "BOT")
    desk("config", "unset", "defaults.steps")
    assert desk("config", "get", "defaults.steps") == "null\n"
    desk("config", "unset", "channels.telegram.token_env")
    assert desk("config", "get", "channels.telegram.token_env") == "\n", (
        "the channel is still there"
    )
    desk("config", "unset", "channels.telegram")
    assert file.read_text() == before
    assert "is not set" in desk("config", "unset", "defaults.steps", code=1)


def test_a_key_that_exists_and_has_no_value_is_not_called_unknown(desk: Desk) -> None:
    said = desk("config", "get", "channels.telegram.token_env", code=1)
    assert said == "deskhand: 'channels.telegram.token_env' is not set\n"
    said = desk("config", "get", "channels.telegram.token", code=2)
    assert said == (
        "deskhand: there is no key 'channels.telegram.token'; did you mean "
        "'channels.telegram.token_env'?\n"
    )


def test_an_empty_list_of_models_is_said_at_once(desk: Desk) -> None:
    assert "'defaults.models' is empty: name at least one model" in desk(
        "config", "set", "defaults.models", "[]", code=2
    )
    desk.home.mkdir()
    (desk.home / "deskhand.yaml").write_text("agents: {main: {models: []}}")
    assert "'agents.main.models' is empty" in desk("config", code=2)
    assert "'agents.main.models' is empty" in desk("ask", "hello", code=2)


def test_an_import_keeps_the_first_agent(desk: Desk) -> None:
    """The first one answers where none is named, so a restricted one must not take its place."""
    theirs = desk.home.parent / "operator.yaml"
    theirs.write_text(
        "agents: {owner: {model: openai/x}, guest: {permissions: {tools: [read_file]}}, all: {}}"
    )
    listed = desk("agents", "--config", str(theirs))
    assert [line.split("\t")[0] for line in listed.splitlines()] == ["owner", "guest", "all"]
    desk("config", "import", str(theirs), "--write")
    assert [line.split("\t")[0] for line in desk("agents").splitlines()] == [
        "owner",
        "guest",
        "all",
    ]


@pytest.mark.parametrize("name", sorted(path.name for path in SOURCES.iterdir()))
def test_an_imported_file_means_the_same(desk: Desk, name: str) -> None:
    """What --write wrote is read as what the other system's file is read as."""
    printed = desk("config", "import", str(SOURCES / name))
    assert "telegram-secret" not in printed
    assert "sk-" not in printed
    direct = desk("config", "--config", str(SOURCES / name))
    desk("config", "import", str(SOURCES / name), "--write")
    assert desk("config").split("{", 1)[1] == direct.split("{", 1)[1]
    env = desk.home / ".env"
    if name == "operator-use.json":
        assert env.stat().st_mode & 0o777 == 0o600
        assert "OPENROUTER_API_KEY=sk-or-secret\n" in env.read_text()
        assert (
            "AGENTS_LIST_OPERATOR_CHANNELS_TELEGRAM_TOKEN=123:telegram-secret\n" in env.read_text()
        )
        assert "\nheartbeat:\n  enabled: true\n" in (desk.home / "deskhand.yaml").read_text()
    desk("config", "import", str(SOURCES / name), "--write")
    assert (desk.home / "deskhand.yaml.bak").exists()


def test_agents_come_and_go(desk: Desk) -> None:
    """Who is there without being named stays the first one; files stay."""
    desk("init")
    said = desk("agents", "add", "coder", "--model", "scripted/echo", "--model", "scripted/echo")
    assert "Talk to it: deskhand --agent coder" in said
    assert (desk.home / "agents" / "coder" / "workspace" / "shared").is_symlink()
    assert [line.split("\t")[:2] for line in desk("agents", "list").splitlines()] == [
        ["default", "no model"],
        ["coder", "scripted/echo, scripted/echo"],
    ]
    desk("agents", "add", "other")
    (desk.home / "agents" / "coder" / "workspace" / "note").write_text("mine")
    said = desk("agents", "remove", "default")
    assert "The default agent is now coder." in said
    said = desk("agents", "remove", "coder")
    assert f"Its files are kept in {desk.home}/agents/coder/workspace" in said
    assert (desk.home / "agents" / "coder" / "workspace" / "note").read_text() == "mine"
    assert [line.split("\t")[0] for line in desk("agents").splitlines()] == ["other"]
    assert "is the only agent" in desk("agents", "remove", "other", code=2)
    assert "# Deskhand's configuration." in (desk.home / "deskhand.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("default", "an agent named 'default' already exists"),
        ("list", "invalid agent name"),
        ("../x", "invalid agent name"),
        ("Big", "invalid agent name"),
    ],
)
def test_agents_that_cannot_be_made(desk: Desk, name: str, said: str) -> None:
    assert said in desk("agents", "add", name, code=2)
    assert "there is no agent 'who'; there are: default" in desk("agents", "remove", "who", code=2)


@pytest.mark.parametrize(
    "text", ["agents: [{id: a}, {id: b}]", '{"agents": {"list": [{"id": "a"}, {"id": "b"}]}}']
)
def test_agents_of_another_system_are_left_alone(desk: Desk, text: str) -> None:
    file = desk.home / "deskhand.yaml"
    file.parent.mkdir()
    file.write_text(text)
    for args in (("add", "c"), ("remove", "a")):
        assert "convert it first: deskhand config import" in desk("agents", *args, code=2)
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (("gateway", "--help"), ("serve", "--help")),
        (("onboard", "--help"), ("setup", "--help")),
        (("models", "anthropic"), ("model", "list", "anthropic")),
        (("config", "list"), ("config",)),
        (("sessions", "-n", "5"), ("sessions", "list", "-n", "5")),
        (("help",), ("--help",)),
        (("help", "values"), ("values", "--help")),
        (("help", "models"), ("model", "list", "--help")),
    ],
)
def test_what_others_call_our_commands(
    desk: Desk, theirs: tuple[str, ...], ours: tuple[str, ...]
) -> None:
    assert desk(*theirs) == desk(*ours)
    listed = [line.split()[0] for line in desk("--help").splitlines() if line.startswith("  ")]
    assert set(ALIASES) & set(listed) == set()


def skill(desk: Desk, folder: Path, name: str, description: str) -> Path:
    path = desk.home / folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\nSteps.\n")
    return path


def test_bundled_skills_are_as_they_came(desk: Desk) -> None:
    """What the person put in their place is kept, and other skills are left alone."""
    desk("init")
    before = desk("skills")
    own = Path("agents/default/workspace/skills")
    assert "deskhand-help is unchanged\n" in desk("skills", "reset", "--all")
    shared = skill(desk, Path("skills"), "deskhand-help", "Mine.")
    skill(desk, own, "deskhand-help", "The agent's.")
    other = skill(desk, Path("skills"), "brew", "Makes tea.")
    assert "deskhand-help\tagent\tThe agent's." in desk("skills")
    said = desk("skills", "reset", "deskhand-help")
    assert said.count("Reset deskhand-help. Your version is now in ") == 2
    assert not shared.exists() and other.exists()
    kept = [
        Path(line.rpartition(" Your version is now in ")[2]) / "SKILL.md"
        for line in said.splitlines()
    ]
    assert ["Mine." in path.read_text() for path in kept] == [True, False]
    assert [
        line for line in desk("skills").splitlines() if not line.startswith("brew")
    ] == before.splitlines()
    skill(desk, Path("skills"), "deskhand-help", "Mine again.")
    assert "Your version is now in" in desk("skills", "reset", "--all")
    (desk.home / "skills" / "deskhand-help").symlink_to(kept[0].parent)
    assert "remove the link" in desk("skills", "reset", "--all", code=2)


@pytest.mark.parametrize("args", [(), ("deskhand-help", "--all")])
def test_which_skill_is_meant(desk: Desk, args: tuple[str, ...]) -> None:
    assert "name a skill, or use --all" in desk("skills", "reset", *args, code=2)


def test_skills_that_are_not_permitted_do_not_exist(desk: Desk) -> None:
    desk("init")
    skill(desk, Path("skills"), "brew", "Makes tea.")
    desk("config", "set", "agents.main.skills", "deskhand-*, pour")
    assert [line.split("\t")[0] for line in desk("skills").splitlines()] == ["deskhand-help"]
    desk("config", "set", "agents.main.skills", "none")
    assert desk("skills").startswith("No skills. A skill is a folder with a SKILL.md in ")


def test_a_model_is_chosen(desk: Desk) -> None:
    assert desk("model", "use", "scripted/echo") == "Every agent now uses scripted/echo.\n"
    assert desk("agents").startswith("default\tscripted/echo\t")
    assert (
        "There is no key for 'openai': set OPENAI_API_KEY in the environment or in the .env file "
        "of the home folder."
    ) in desk("model", "use", "openai/gpt-5", code=2, OPENAI_API_KEY="")
    assert "anthropic/claude-" in desk("model", "list", "anthropic")
    assert "ollama\truns on this machine" in desk("model", "list")


def test_logs(desk: Desk) -> None:
    log = desk.home / "logs" / "deskhand.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {n}\n" for n in range(100)) + "\x1b[31mred\n")
    assert desk("logs", "-n", "2") == "line 99\n␛[31mred\n"
    assert desk("logs").count("\n") == 50


def test_logs_are_followed_across_rotation(desk: Desk) -> None:
    log = desk.home / "logs" / "deskhand.log"
    log.parent.mkdir(parents=True)
    log.write_text("old\n")
    env = {**os.environ, "DESKHAND_HOME": str(desk.home), "PYTHONUNBUFFERED": "1"}
    argv = [sys.executable, "-m", "deskhand", "logs", "-f", "-n", "1"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "old\n"
        time.sleep(0.5)
        with log.open("a") as file:
            file.write("half")
            file.flush()
            time.sleep(0.3)
            file.write(" a line\n")
        assert process.stdout.readline() == "half a line\n"
        log.rename(log.with_suffix(".1"))
        log.write_text("new\n")
        assert process.stdout.readline() == "new\n"
        process.send_signal(2)
        assert process.wait(5) == 130


def test_tools_are_listed_as_json_lines_or_said_to_be_none(desk: Desk) -> None:
    assert desk("tools") != ""


def test_version(desk: Desk) -> None:
    assert desk("version") == desk("--version")


def test_how_to_come_back(tmp_path: Path) -> None:
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)})
    settings = msgspec.structs.replace(
        settings, config=Config(agents={"main": AgentConfig(), "other": AgentConfig()})
    )
    assert resume_command("main/terminal:a b", settings) == "deskhand --session 'a b'"
    assert (
        resume_command("other/terminal:talk", settings) == "deskhand --agent other --session talk"
    )
    assert resume_command("main/telegram:1", settings) == "deskhand --session main/telegram:1"
    assert session_name("main/terminal:talk", settings) == "talk"
    assert session_name("other/terminal:talk", settings) == "other/terminal:talk"


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null"])
def test_a_home_that_cannot_be_made(home: str) -> None:
    desk = Desk(Path(home))
    for args in (("values", "list"), ("init",), ("doctor",), ("sessions", "list")):
        said = desk(*args, code=1 if home == "/proc/nowhere" or args == ("doctor",) else 2)
        assert home in said
        assert "Traceback" not in said


PLUGIN = """
from deskhand.tools.define import tool
from deskhand.tools.plugin import Plugin
from deskhand.types.labels import LOCAL

@tool(reads=LOCAL)
async def dice() -> str:
    "Throws a die."
    return "4"

class Games(Plugin):
    def get_tools(self):
        return [dice]
    def get_system_prompt(self):
        return "You like games."

plugin = Games
"""


def test_plugins(desk: Desk) -> None:
    folder = desk.home / "plugins"
    assert desk("plugins", "list") == (
        f"No plugins yet. A plugin is a Python file in {folder}, or an installed package.\n"
    )
    assert "there is no file games.py" in desk("plugins", "enable", "games", code=2)
    folder.mkdir(parents=True, mode=0o700)
    (folder / "games.py").write_text(PLUGIN)
    (folder / "games.py").chmod(0o600)
    (desk.home / "deskhand.yaml").write_text("# mine\ntimezone: UTC  # for now\n")
    assert desk("plugins", "list") == f"games\toff\t\t{folder}/games.py\n"
    assert "dice" not in desk("tools")
    assert desk("plugins", "enable", "games").startswith("Enabled games: dice, a prompt. ")
    written = (desk.home / "deskhand.yaml").read_text()
    assert written == "# mine\ntimezone: UTC  # for now\nplugins: [games]\n"
    assert desk("plugins", "list") == f"games\ton\tdice, a prompt\t{folder}/games.py\n"
    assert re.search(r"^dice\tnone\t\d+\t\tThrows a die.$", desk("tools"), re.M)
    assert desk("policy", "why", "dice").startswith("allow: ")
    (folder / "games.py").write_text("1 / 0")
    left_out = (
        f"deskhand: the plugin 'games' is not loaded: {folder}/games.py: ZeroDivisionError: "
        "division by zero (line 1 of games.py)\n"
    )
    assert desk("plugins", "list") == left_out and left_out in desk("tools")
    assert desk("plugins", "disable", "games").startswith("Disabled games. ")
    assert "is not enabled; list plugins with: deskhand plugins list" in desk(
        "plugins", "disable", "games", code=1
    )
    assert desk("config", "get", "plugins") == "[]\n"
    refused = desk("plugins", "enable", "games", code=2)
    assert refused.startswith("deskhand: 'games' is not enabled: ") and refused.endswith(
        ". Available plugins: games\n"
    )
    assert desk("config", "get", "plugins") == "[]\n"


def test_plugins_by_config_and_environment(desk: Desk) -> None:
    desk("config", "set", "plugins", "a, b")
    assert desk("config", "get", "plugins") == '["a","b"]\n'
    assert "the plugin 'c' is not loaded" in desk("plugins", "list", DESKHAND_PLUGINS="c")


def test_a_plugin_that_fails_is_said_and_the_answer_comes(desk: Desk) -> None:
    told = desk("ask", "hello", DESKHAND_MODELS="scripted/echo", DESKHAND_PLUGINS="c")
    assert "deskhand: the plugin 'c' is not loaded: " in told and "You said: hello" in told
