"""Channels on the command line: listed, and added by a token that the platform was asked about
first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from anyio.from_thread import start_blocking_portal
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.testing.telegram.server import TelegramServer

KEY = "DESKHAND_CHANNELS__{}__BASE_URL"


@pytest.fixture
def platform() -> Iterator[TelegramServer]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(TelegramServer()) as server,
    ):
        yield server


def desk(home: Path, *args: str, line: str = "", **env: str) -> Result:
    return CliRunner().invoke(
        cli, args, input=line, env={"DESKHAND_HOME": str(home), **env}, prog_name="deskhand"
    )


def test_a_bot_is_added_and_listed(tmp_path: Path, platform: TelegramServer) -> None:
    base = {KEY.format("TELEGRAM"): platform.base_url.removesuffix("/bot")}
    assert "No channels yet" in desk(tmp_path, "channels").output
    added = desk(tmp_path, "channel", "add", "telegram", line=f"{platform.token}\n", **base)
    assert (added.exit_code, added.output.splitlines()[0]) == (
        0,
        "Added desk_bot: https://t.me/desk_bot",
    )
    written = (tmp_path / "deskhand.yaml").read_text()
    assert (
        yaml.safe_load(written) == {"channels": {"telegram": {"enabled": True}}}
        and platform.token not in written
    )
    assert (tmp_path / ".env").read_text() == f"TELEGRAM_BOT_TOKEN={platform.token}\n"
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    assert desk(tmp_path, "channels").output == "telegram\ttelegram\tnot running\t\n"


def test_a_second_bot_has_a_name(tmp_path: Path, platform: TelegramServer) -> None:
    base = {KEY.format("FAMILY"): platform.base_url.removesuffix("/bot")}
    added = desk(
        tmp_path,
        "channels",
        "add",
        "telegram",
        "--name",
        "family",
        line=f"{platform.token}\n",
        **base,
    )
    assert added.exit_code == 0, added.output
    assert yaml.safe_load((tmp_path / "deskhand.yaml").read_text())["channels"] == {
        "family": {"type": "telegram", "token_env": "FAMILY_BOT_TOKEN", "enabled": True}
    }
    assert (tmp_path / ".env").read_text() == f"FAMILY_BOT_TOKEN={platform.token}\n"


def test_a_token_that_is_refused_changes_nothing(tmp_path: Path, platform: TelegramServer) -> None:
    base = {KEY.format("TELEGRAM"): platform.base_url.removesuffix("/bot")}
    for line in ("1:wrong\n", "\n"):
        refused = desk(tmp_path, "channels", "add", "telegram", line=line, **base)
        assert (
            refused.exit_code != 0
            and "Traceback" not in refused.output
            and len(refused.output.splitlines()) <= 2
        )
    assert not (tmp_path / "deskhand.yaml").exists() and not (tmp_path / ".env").exists()
    assert desk(tmp_path, "channels", "add", "pigeon").exit_code == 2


def test_only_what_is_asked_for_can_be_set(tmp_path: Path) -> None:
    """A secret is not among it: other programs see the arguments of a command."""
    for wrong in ("usr=foo", "token_env=secret", "user"):
        refused = desk(tmp_path, "channels", "add", "mail", "--set", wrong)
        assert refused.exit_code == 2 and "KEY is one of user, base_url" in refused.output
        assert "secret" not in refused.output
    refused = desk(tmp_path, "channels", "add", "telegram", "--set", "x=1", line="1:a\n")
    assert refused.exit_code == 2 and "there is nothing to set" in refused.output
    missing = desk(tmp_path, "channels", "add", "mqtt")
    assert missing.exit_code == 2 and "--set base_url=mqtts://" in missing.output
    assert not (tmp_path / "deskhand.yaml").exists()


def test_the_doctor_says_what_a_channel_lacks(tmp_path: Path) -> None:
    (tmp_path / "deskhand.yaml").write_text("channels: {slack: {}, telegram: {}}\n")
    said = desk(tmp_path, "doctor", TELEGRAM_BOT_TOKEN="123456:abcdef").output
    assert "SLACK_BOT_TOKEN is not set" in said and "deskhand channels add slack" in said
    assert "telegram has what it needs" in said


def test_one_is_switched_off_and_on(tmp_path: Path) -> None:
    (tmp_path / "deskhand.yaml").write_text("channels: {telegram: {}}  # mine\n")
    assert desk(tmp_path, "channels", "disable", "telegram").output == "telegram is off.\n"
    assert "off" in desk(tmp_path, "channels", "list").output
    assert desk(tmp_path, "channels", "enable", "telegram").output == "telegram is on.\n"
    settings = yaml.safe_load((tmp_path / "deskhand.yaml").read_text())
    assert settings["channels"]["telegram"]["enabled"] is True
    wrong = desk(tmp_path, "channels", "enable", "slack")
    assert wrong.exit_code == 2 and "there is no channel 'slack'" in wrong.output
