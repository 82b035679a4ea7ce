"""Every command: its help, its empty state, what it prints and how it exits."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from deskhand.agent.step import Limits
from deskhand.cli.asks import back_to, name_of
from deskhand.cli.root import COMMANDS, SECTIONS, cli
from deskhand.runtime.config import AgentConfig, Config, read_settings

SOURCES = Path(__file__).parent.parent / "runtime" / "sources"


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


def commands(group: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
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
    assert without == {("version",), ("demo",)}


def test_the_first_page_lists_every_command(desk: Desk) -> None:
    text = desk("--help")
    assert sorted(name for _, names in SECTIONS for name in names) == sorted(COMMANDS)
    assert all(help_ in text for _, help_ in COMMANDS.values())


def test_help_imports_little() -> None:
    """Its time is measured in the bench; here is what keeps it short."""
    script = "import sys; from deskhand.__main__ import main\ntry: main()\nexcept SystemExit: print(*sys.modules)"
    command = [sys.executable, "-c", script, "--help"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    assert not {"aiohttp", "anyio", "apsw", "asyncio", "msgspec", "rich", "yaml"} & set(loaded)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("sessions", "list"), "No conversations yet. Start one: deskhand\n"),
        (("sessions", "list", "--json"), "[]\n"),
        (("approvals", "list"), "Nothing waits for you.\n"),
        (("approvals", "list", "--json"), "[]\n"),
        (("dlq", "list"), "Nothing was given up.\n"),
        (("dlq", "list", "--json"), "[]\n"),
        (("kv", "list"), "{}\n"),
        (("skills",), "No skills yet. A skill is a folder with a SKILL.md in "),
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
        (("what is this",), 2, 'to ask something, write: deskhand ask "what is this …"'),
        (("sessions", "show", "nope"), 2, "there is no conversation 'nope'; `deskhand sessions list` shows them"),
        (("approvals", "allow", "ask_1"), 1, "is not open any more, or never was; `deskhand approvals list`"),
        (("dlq", "retry", "d1"), 2, "there is no 'd1'; `deskhand dlq list` shows what there is"),
        (("kv", "delete", "x"), 1, "there is no key 'x'"),
        (("kv", "get", "x", "-a", "who"), 2, "there is no agent 'who'; there are: default"),
        (("config", "get", "timezon"), 2, "there is no key 'timezon'; did you mean 'timezone'?"),
        (("config", "set", "defaults.step", "1"), 2, "did you mean 'defaults.steps'?"),
        (("config", "set", "defaults.steps", "many"), 2, "'defaults.steps': Expected `int | null`, got `str`"),
        (("config", "unset", "timezone"), 1, "'timezone' is not set in "),
        (("model", "use", "gpt"), 1 + 1, "names no model: write provider/name"),
        (("model", "list", "nobody"), 2, "There is no model provider 'nobody'."),
        (("--config", "/nowhere.yaml", "agents"), 2, "there is no file '/nowhere.yaml'"),
        (("agents", "--config", "/nowhere.yaml"), 2, "there is no file '/nowhere.yaml'"),
    ],
)
def test_mistakes_end_in_a_sentence(desk: Desk, args: tuple[str, ...], code: int, said: str) -> None:
    assert said in desk(*args, code=code)


def test_kv(desk: Desk) -> None:
    assert desk("kv", "set", "seen/1", "yes\n no", "--ns", "mail") == ""
    assert desk("kv", "get", "seen/1", "-n", "mail") == "yes\n no\n"
    assert desk("kv", "get", "seen/1", code=1) == ""
    desk("kv", "set", "seen/2", "2", "-n", "mail", "--ttl", "24")
    desk("kv", "set", "s%en/3", "3", "-n", "mail")
    desk("kv", "set", "gone", "x", "-n", "mail", "--ttl", "0.0000001")
    assert msgspec.json.decode(desk("kv", "list", "-n", "mail", "-p", "seen/")) == {"seen/1": "yes\n no", "seen/2": "2"}
    assert msgspec.json.decode(desk("kv", "list", "-n", "mail", "-p", "s%")) == {"s%en/3": "3"}
    assert "gone" not in desk("kv", "list", "-n", "mail")
    desk("kv", "delete", "seen/1", "-n", "mail")
    desk("kv", "get", "seen/1", "-n", "mail", code=1)
    desk("kv", "set", "k", "v", "--ttl", "0", code=2)


def test_init_makes_everything_once(desk: Desk) -> None:
    said = desk("init")
    assert "Next: choose a model" in said
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "RULES.md what must never be done; no tool can change it" in lines
    assert "agents/default/AGENT.md what this agent is for" in lines
    assert f"Made in {desk.home / 'agents/default/workspace'}" in said.splitlines()
    assert "memory/ knowledge/ skills/ tools/ shared/" in lines
    (desk.home / "deskhand.yaml").write_text("timezone: Asia/Tokyo")
    (desk.home / "skills").rmdir()
    again = desk("init")
    assert again.splitlines()[:2] == [f"Made in {desk.home}", "  skills/"]
    assert (desk.home / "deskhand.yaml").read_text() == "timezone: Asia/Tokyo"
    assert desk("init").startswith("Everything is there already")
    assert (desk.home / ".env").stat().st_mode & 0o777 == 0o600
    assert desk.home.stat().st_mode & 0o777 == 0o700
    assert (desk.home / "agents/default/workspace/shared").resolve() == (desk.home / "shared").resolve()
    desk("config", "get", "timezone")
    (desk.home / "agents/default/workspace/SOUL.md").unlink()
    (desk.home / "deskhand.yaml").write_text("agents: {default: {}, other: {}}")
    only = desk("init", "--agent", "default").splitlines()
    work = desk.home / "agents/default/workspace"
    assert only[0] == f"Made in {work}" and only[1].split()[0] == "SOUL.md" and "other" not in "".join(only)
    assert f"Made in {desk.home / 'agents/other/workspace'}" in desk("init").splitlines()
    (desk.home / "settings.yaml").write_text("{}")
    assert "is there already" in desk("init", "--config", str(desk.home / "settings.yaml"))


def test_the_first_configuration_is_right_where_it_is_taken_up(desk: Desk) -> None:
    """Without the marks of its comments it is a configuration that holds, and it says what holds without it."""
    desk("init")
    file = desk.home / "deskhand.yaml"
    taken_up = [line.removeprefix("# ") for line in file.read_text().splitlines()[1:]]
    file.write_text("\n".join(taken_up))
    assert desk("config", "get", "defaults.steps") == "50\n" == desk("config", "get", "agents.main.steps")
    assert desk("config", "get", "defaults.preset") == "work\n"
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
    assert desk("config", "get", "timezone", "--config", str(SOURCES / "operator-ai-0.7.yaml")).endswith("Berlin\n")
    assert desk("--config", str(SOURCES / "operator-ai-0.7.yaml"), "agents").splitlines()[-1].startswith("operator\t")


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
        assert "AGENTS_LIST_OPERATOR_CHANNELS_TELEGRAM_TOKEN=123:telegram-secret\n" in env.read_text()
        assert "#   heartbeat.enabled: true" in (desk.home / "deskhand.yaml").read_text()
    desk("config", "import", str(SOURCES / name), "--write")
    assert (desk.home / "deskhand.yaml.bak").exists()


def test_a_model_is_chosen(desk: Desk) -> None:
    assert desk("model", "use", "scripted/echo") == "Every agent now uses scripted/echo.\n"
    assert desk("agents").startswith("default\tscripted/echo\t")
    assert "There is no key for 'openai': set OPENAI_API_KEY." in desk(
        "model", "use", "openai/gpt-5", code=2, OPENAI_API_KEY=""
    )
    assert "anthropic/claude-" in desk("model", "list", "anthropic")
    assert "ollama\truns on this machine" in desk("model", "list")


def test_logs(desk: Desk) -> None:
    assert desk("logs").startswith("No log yet")
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
    settings = msgspec.structs.replace(settings, config=Config(agents={"main": AgentConfig(), "other": AgentConfig()}))
    assert back_to("main/terminal:a b", settings) == "deskhand --session 'a b'"
    assert back_to("other/terminal:talk", settings) == "deskhand --agent other --session talk"
    assert back_to("main/telegram:1", settings) == "deskhand --session main/telegram:1"
    assert name_of("main/terminal:talk", settings) == "talk"
    assert name_of("other/terminal:talk", settings) == "other/terminal:talk"


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null"])
def test_a_home_that_cannot_be_made(home: str) -> None:
    desk = Desk(Path(home))
    for args in (("kv", "list"), ("init",), ("doctor",), ("sessions", "list")):
        said = desk(*args, code=1 if home == "/proc/nowhere" or args == ("doctor",) else 2)
        assert home in said
        assert "Traceback" not in said
