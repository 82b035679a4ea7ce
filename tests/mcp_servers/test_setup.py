"""`deskhand mcp`, and the files of other programs that name servers."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.config.config import read_settings
from deskhand.config.mcp_servers import McpServerConfig, check_mcp_servers, fill_variables
from deskhand.mcp.setup import (
    ForeignServer,
    find_project_folder,
    make_foreign_config,
    make_program_config,
    read_foreign_servers,
)
from deskhand.types.errors import ConfigError

from .working import SERVER

LOCAL = ("--", sys.executable, "-P", str(SERVER))


def run(home: Path, *args: str) -> Result:
    env = {"DESKHAND_HOME": str(home), "HOME": str(home)}
    return CliRunner().invoke(cli, ("mcp", *args), env=env, prog_name="deskhand")


def config_of(home: Path) -> dict[str, McpServerConfig]:
    return read_settings(None, {"DESKHAND_HOME": str(home), "HOME": str(home)}).config.mcp


def test_one_is_added_tested_and_removed(tmp_path: Path) -> None:
    assert "No MCP servers yet" in run(tmp_path).output
    added = run(tmp_path, "add", "test", "--yes", *LOCAL)
    assert added.exit_code == 0, added.output
    assert "add: Add two numbers." in added.output and "reaches no hosts" in added.output
    server = config_of(tmp_path)["test"]
    assert server.command == sys.executable
    assert any(SERVER.is_relative_to(each) for each in server.folders)
    assert run(tmp_path).output.startswith("test\ton\t10 tools\t")
    assert "add: Add two numbers." in run(tmp_path, "test", "test").output
    assert "Nothing to review" in run(tmp_path, "review", "test").output
    assert run(tmp_path, "remove", "test").output == "Removed test.\n"
    assert config_of(tmp_path) == {}


def test_nothing_is_kept_without_a_yes(tmp_path: Path) -> None:
    refused = run(tmp_path, "add", "test", *LOCAL)
    assert "Use these tools?" in refused.output and config_of(tmp_path) == {}


def test_a_change_is_reviewed(tmp_path: Path) -> None:
    run(tmp_path, "add", "test", "--yes", *LOCAL)
    file = read_settings(None, {"DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path)}).file
    file.write_text(file.read_text().replace(f"- {SERVER}", f"- {SERVER}\n    - poison"))
    assert "add: [changed]" in run(tmp_path, "test", "test").output
    assert "9 tools, 1 to review" in run(tmp_path).output
    shown = run(tmp_path, "review", "test", "--yes").output
    assert "-description: Add two numbers." in shown and "<IMPORTANT>" in shown
    assert "Accepted: add" in shown and "10 tools\t" in run(tmp_path).output


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("bad name", "https://example.org/"), "the name of a server begins with a letter"),
        (("a__b", "https://example.org/"), "the name of a server begins with a letter"),
        (("x", "no-such-program"), "there is no program 'no-such-program'"),
        (("x", "docker", "run", "y"), "docker cannot be run in the sandbox"),
        (("x", "-e", "KEY", "--", sys.executable), "'KEY' must be written as NAME=VALUE"),
    ],
)
def test_what_cannot_be_added_is_said(tmp_path: Path, args: tuple[str, ...], told: str) -> None:
    result = run(tmp_path, "add", *args)
    assert result.exit_code == 2 and told in result.output and config_of(tmp_path) == {}


def test_one_that_does_not_start_is_not_added(tmp_path: Path) -> None:
    result = run(tmp_path, "add", "x", "--", sys.executable, "-c", "import no_such_module")
    assert result.exit_code == 1 and "it ended with code 1" in result.output
    assert "No module named 'no_such_module'" in result.output and config_of(tmp_path) == {}


OPENAGENT = {
    "servers": {
        "local": {
            "transport": "stdio",
            "mode": "client",
            "command": sys.executable,
            "args": ["-V"],
        },
        "web": {
            "transport": "http",
            "mode": "remote",
            "url": "https://mcp.example.org/${PLACE}",
            "authorization_token": "${TOKEN}",
        },
    }
}
CLAUDE = {
    "mcpServers": {
        "web": {"type": "http", "url": "https://mcp.example.org/", "headers": {"X-Key": "${KEY}"}},
        "off": {"command": sys.executable, "args": [], "env": {"A": "1"}, "disabled": True},
    }
}


def read_text(tmp_path: Path, text: str) -> dict[str, ForeignServer]:
    file = tmp_path / "servers.json"
    file.write_text(text)
    return read_foreign_servers(file)


def test_files_of_others(tmp_path: Path) -> None:
    servers = read_text(tmp_path, json.dumps(OPENAGENT))
    web = make_foreign_config(servers["web"])
    assert web.url == "https://mcp.example.org/${PLACE}"
    assert web.headers == {"Authorization": "Bearer ${TOKEN}"}
    assert make_foreign_config(servers["local"]).args == ("-V",)
    servers = read_text(tmp_path, json.dumps(CLAUDE))
    assert make_foreign_config(servers["web"]).headers == {"X-Key": "${KEY}"}
    off = make_foreign_config(servers["off"])
    assert off.env == {"A": "1"} and not off.enabled
    for inside in ("tools", "mcp"):
        assert set(read_text(tmp_path, json.dumps({inside: CLAUDE}))) == {"web", "off"}
    assert set(read_text(tmp_path, "mcp_servers:\n  a: {url: https://a.example}\n")) == {"a"}
    with pytest.raises(ConfigError, match="it does not list MCP servers"):
        read_text(tmp_path, '{"mcpServers": {"a": 1}}')
    with pytest.raises(ConfigError, match="must hold keys and values"):
        read_text(tmp_path, "[]")
    with pytest.raises(ConfigError, match="neither a command nor a url"):
        make_foreign_config(read_text(tmp_path, '{"mcpServers": {"a": {}}}')["a"])


def test_a_file_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    good = {"command": sys.executable, "args": ["-P", str(SERVER)]}
    bad = {"command": "no-such-program"}
    file.write_text(json.dumps({"mcpServers": {"good": good, "bad": bad}}))
    result = run(tmp_path / "home", "import", "--yes", str(file))
    assert result.exit_code == 1
    assert "good: added, with 10 tools" in result.output
    assert "bad: left out: there is no program 'no-such-program'" in result.output
    assert set(config_of(tmp_path / "home")) == {"good"}


def test_folders_that_a_program_needs(tmp_path: Path) -> None:
    installed = tmp_path / "opt" / "tool" / "bin"
    installed.mkdir(parents=True)
    script = installed / "serve"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    project = tmp_path / "project"
    inner = project / "node_modules" / "server" / "dist"
    inner.mkdir(parents=True)
    (inner / "index.js").write_text("")
    config = make_program_config([str(script), str(inner / "index.js"), "--port", "8"])
    assert str(tmp_path / "opt" / "tool") in config.folders
    assert str(Path(sys.executable).resolve().parents[1]) in config.folders
    assert str(project / "node_modules") in config.folders
    assert config.args[1:] == ("--port", "8")
    (project / "pyproject.toml").write_text("")
    (project / "src").mkdir()
    assert find_project_folder(project / "src" / "main.py") == project
    assert make_program_config(["npx", "x"]).hosts == ("registry.npmjs.org",)
    assert os.path.isabs(make_program_config(["npx", "x"]).command)  # noqa: PTH117 -- as it stands


def test_variables() -> None:
    assert fill_variables("a ${B} ${C}", {"B": "1", "C": "2"}) == "a 1 2"
    with pytest.raises(ConfigError, match="B is not set"):
        fill_variables("${B}", {})
    for server in (McpServerConfig(), McpServerConfig(command="x", url="https://y.org")):
        with pytest.raises(ConfigError, match="needs a command, or a url, and not both"):
            check_mcp_servers({"x": server})
    with pytest.raises(ConfigError, match="must begin with https"):
        check_mcp_servers({"x": McpServerConfig(url="ftp://y.org")})
