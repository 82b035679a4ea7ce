"""The wizard in a real terminal, and the same by its options."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deskhand.config.config import read_settings
from deskhand.config.first_settings import read_owner_name

from .terminal import Terminal
from .test_commands import Desk

DESKHAND = [sys.executable, "-m", "deskhand"]
Open = Callable[..., Terminal]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    terminals: list[Terminal] = []

    def open_one(*args: str) -> Terminal:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "DESKHAND_HOME": str(tmp_path / "home"),
        }
        terminals.append(Terminal([*DESKHAND, *args], env | {"TZ": "Asia/Tokyo"}, 110, 50))
        return terminals[-1]

    yield open_one
    for terminal in terminals:
        terminal.close()


def test_everything_is_asked_and_kept_the_next_time(opened: Open, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = opened("setup")
    first.wait_for("or q to leave")
    first.type("nonsense\r")
    first.wait_for("write a number from 1 to")
    first.type("openai/gpt-5.4\r")
    first.wait_for("OPENAI_API_KEY (hidden")
    first.type("sk-test-secret\r")
    first.wait_for("Every agent uses openai/gpt-5.4")
    first.wait_for("Your time zone [Asia/Tokyo]")
    first.type("berlin\r")
    first.wait_for("there is no timezone 'berlin'")
    first.type("Europe/Berlin\r")
    first.wait_for("What should it call you?")
    first.type("Ann\r")
    first.wait_for("Keys in")
    first.wait_for("OPENAI_API_KEY\n")
    first.type("GROQ_API_KEY\r")
    first.wait_for("GROQ_API_KEY (hidden")
    first.type("gsk-test\r")
    first.wait_for("GROQ_API_KEY is stored in")
    first.type("\r")
    assert first.wait() == 0
    assert "sk-test-secret" not in first.all
    before = {name: (home / name).read_text() for name in ("deskhand.yaml", ".env")}
    settings = read_settings(None, {"DESKHAND_HOME": str(home)})
    assert (settings.config.defaults.models, settings.config.timezone) == (
        ("openai/gpt-5.4",),
        "Europe/Berlin",
    )
    assert (
        settings.environment["OPENAI_API_KEY"] == "sk-test-secret"
        and "GROQ_API_KEY=gsk-test" in before[".env"]
    )
    assert home.joinpath(".env").stat().st_mode & 0o777 == 0o600
    assert read_owner_name(settings, "default") == "Ann"
    again = opened("setup", "--run")
    for shown in (
        "The current model is openai/gpt-5.4",
        "[openai/gpt-5.4]",
        "[Europe/Berlin]",
        "call you? [Ann]",
        "to store",
    ):
        again.wait_for(shown)
        if shown.startswith(("[", "call", "to")):
            again.type("\r")
    again.wait_ready()
    assert {name: (home / name).read_text() for name in before} == before
    again.type("\x04")
    assert again.wait() == 0


def test_by_options_nothing_is_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DESKHAND_HOME": str(desk.home)}
    args = [
        "--key",
        "OPENAI_API_KEY",
        "--model",
        "openai/gpt-5.4",
        "--timezone",
        "Asia/Tokyo",
        "--owner",
        "Ann",
    ]
    command = [*DESKHAND, "setup", *args]
    done = subprocess.run(
        command, input=b"sk-secret\nnot this\n", env=env, capture_output=True, check=True
    )
    assert b"sk-secret" not in done.stdout + done.stderr
    assert (desk.home / ".env").read_text().endswith("OPENAI_API_KEY=sk-secret\n")
    assert desk("config", "get", "defaults.models") == '["openai/gpt-5.4"]\n'
    assert desk("config", "get", "timezone") == "Asia/Tokyo\n"
    assert "# Deskhand's configuration." in (desk.home / "deskhand.yaml").read_text()
    assert "Your name: Bob" in desk("setup", "--owner", "Bob")
    assert desk("config", "get", "timezone") == "Asia/Tokyo\n", "what was not named stays"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            (),
            (
                "setup asks its questions in a terminal. Without one, use these options: --model "
                "PROVIDER/NAME, --timezone ZONE"
            ),
        ),
        (("--timezone", "Mars/Olympus"), "there is no timezone 'Mars/Olympus'"),
        (("--model", "gpt"), "is not a model name: write provider/name"),
        (("--key", "a b"), "'a b' is not a variable name"),
        (("--key", "A_KEY"), "invalid value for A_KEY"),
    ],
)
def test_mistakes_end_in_a_sentence(tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    assert said in Desk(tmp_path / "home")("setup", *args, code=2)


def test_a_key_that_replaces_another_is_tried_before(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "deskhand.yaml").write_text("providers: {groq: {base_url: 'http://127.0.0.1:9/v1'}}\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DESKHAND_HOME": str(home)}

    def keep(key: str) -> subprocess.CompletedProcess[str]:
        command = [*DESKHAND, "setup", "--key", "GROQ_API_KEY"]
        return subprocess.run(
            command, input=f"{key}\n", env=env, capture_output=True, text=True, check=False
        )

    assert keep("gsk-first").returncode == 0, "nothing is lost by the first one"
    refused = keep("gsk-second")
    assert refused.returncode == 2 and "GROQ_API_KEY was not changed" in refused.stderr
    assert "gsk-first" in (home / ".env").read_text()
    assert keep("gsk-first").returncode == 0
