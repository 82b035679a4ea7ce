"""The files for a container, as far as they can be checked without an engine."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import msgspec
import yaml
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.config import keys
from deskhand.config.config import Config
from deskhand.models.catalogue import read_catalogue
from deskhand.supervision.supervise import DRAIN_S

ROOT = Path(__file__).parent.parent
LINES = re.sub(r"\s*\\\n\s*", " ", (ROOT / "Dockerfile").read_text()).splitlines()
STEPS = [tuple(line.split(maxsplit=1)) for line in LINES if line and not line.startswith("#")]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICE: dict[str, Any] = COMPOSE["services"]["deskhand"]


def said(word: str) -> list[str]:
    return [rest for step, rest in STEPS if step == word]


def variables() -> dict[str, str]:
    return dict(each.split("=", 1) for line in said("ENV") for each in shlex.split(line))


def test_what_is_copied_is_there_and_reaches_the_engine() -> None:
    """And nothing else does: the ignore file forbids everything first."""
    first, *rules = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and line[0] != "#"
    ]
    assert first == "*"
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    copied = [
        path for line in said("COPY") if not line.startswith("--from") for path in line.split()[:-1]
    ]
    assert copied and all((ROOT / path).exists() for path in copied)
    assert set(copied) == set(allowed)
    assert any(fnmatch("src/x/.env", rule.replace("**", "*")) for rule in rules)


def test_nobody_is_root_and_the_dependencies_are_pinned() -> None:
    last = max(number for number, (step, _) in enumerate(STEPS) if step == "FROM")
    users = [rest for step, rest in STEPS[last:] if step == "USER"]
    assert users == ["deskhand"] and STEPS.index(("USER", "deskhand")) < STEPS.index(
        ("CMD", '["serve"]')
    )
    assert any("--require-hashes -r requirements/run.txt" in line for line in said("RUN"))
    assert any("bubblewrap" in line for line in said("RUN"))
    assert "privileged" not in SERVICE and SERVICE["cap_drop"] == ["ALL"]
    assert SERVICE["security_opt"] == ["no-new-privileges:true"]


def test_its_commands_are_ours() -> None:
    (entry,), (command,), (check,) = said("ENTRYPOINT"), said("CMD"), said("HEALTHCHECK")
    assert msgspec.json.decode(entry) == ["deskhand"] and msgspec.json.decode(command) == ["serve"]
    program, *words = msgspec.json.decode(check.partition("CMD ")[2])
    assert (program, words) == ("deskhand", ["status", "--quiet"])
    for args in (["serve", "--help"], [words[0], "--help"], ["login", "--help"]):
        result = CliRunner().invoke(cli, args)
        assert result.exit_code == 0
    assert "--quiet" in CliRunner().invoke(cli, ["status", "--help"]).output


def test_only_this_machine_reaches_it_and_the_keys_are_keys() -> None:
    (port,) = SERVICE["ports"]
    assert (
        port == "127.0.0.1:8000:8000" and said("EXPOSE") == ["8000"] and Config().web.port == 8000
    )
    ours = {
        name: value
        for name, value in SERVICE["environment"].items()
        if name.startswith("DESKHAND_")
    }
    assert ours == {"DESKHAND_WEB__HOST": "0.0.0.0", "DESKHAND_WEB__PLAIN_HTTP": "true"}
    assert all(
        keys.exists(name.removeprefix("DESKHAND_").lower().replace("__", "."), Config)
        for name in ours
    )
    assert not [name for name in variables() if name.startswith("DESKHAND_WEB")], (
        "the image alone opens nothing"
    )


def test_no_secret_stands_in_the_files() -> None:
    known = {name for provider in read_catalogue().providers.values() for name in provider.keys}
    passed = {
        name: value for name, value in SERVICE["environment"].items() if name.endswith("_KEY")
    }
    assert passed and set(passed) <= known and set(passed.values()) == {None}
    assert "env_file" not in SERVICE
    assert not [
        line
        for step, line in STEPS
        if step in ("ENV", "ARG") and re.search("KEY|TOKEN|SECRET", line)
    ]


def test_everything_of_the_person_is_in_the_volume() -> None:
    (mount,) = SERVICE["volumes"]
    volume, place = mount.split(":")
    assert volume in COMPOSE["volumes"] and said("VOLUME") == [place] == [
        variables()["DESKHAND_HOME"]
    ]
    assert variables()["DESKHAND_CACHE"].startswith(f"{place}/")


def test_there_is_time_to_end() -> None:
    assert int(SERVICE["stop_grace_period"].removesuffix("s")) >= DRAIN_S + 5
    assert SERVICE["restart"] == "unless-stopped" and SERVICE["init"] is True


def test_the_workers_beside_it_are_like_it() -> None:
    """They have its home and its limits, the database has a password, and no port is open."""
    more: dict[str, Any] = yaml.safe_load((ROOT / "compose.workers.yaml").read_text())
    services = more["services"]
    worker, server, database = services["worker"], services["deskhand"], services["postgres"]
    for key in ("init", "restart", "stop_grace_period", "volumes", "cap_drop", "security_opt"):
        assert worker[key] == SERVICE[key], key
    assert CliRunner().invoke(cli, [*worker["command"], "--help"]).exit_code == 0
    assert worker["environment"].items() >= server["environment"].items()
    keys_passed = {name for name in SERVICE["environment"] if name.endswith("_KEY")}
    assert keys_passed <= set(worker["environment"])
    assert keys.exists("store", Config)
    url = server["environment"]["DESKHAND_STORE"]
    assert url == "postgresql://deskhand@postgres/deskhand"
    assert database["environment"]["POSTGRES_USER"] == "deskhand"
    assert database["environment"]["POSTGRES_PASSWORD"] == server["environment"]["PGPASSWORD"]
    assert not [name for name, service in services.items() if "ports" in service]
    assert any("psycopg" in line for line in (ROOT / "requirements/run.txt").read_text().split())


def test_compose_takes_the_file() -> None:
    """Where it is here."""
    docker = shutil.which("docker")
    if (
        docker
        and subprocess.run(
            [docker, "compose", "version"], capture_output=True, check=False
        ).returncode
        == 0
    ):
        done = subprocess.run(
            [docker, "compose", "-f", str(ROOT / "compose.yaml"), "config", "-q"], check=False
        )
        assert done.returncode == 0
