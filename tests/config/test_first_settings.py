"""Keys, the time zone and the name of the owner: where they are read, and what of a file stays when
they are set."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.config.config import Settings, read_settings
from deskhand.config.first_settings import (
    check_timezone,
    list_env_secrets,
    read_owner_name,
    store_secret,
    store_setting,
    system_timezone,
    write_owner_name,
)
from deskhand.config.parse import read_env_file
from deskhand.types.errors import ConfigError, ToolError


def settings(home: Path) -> Settings:
    return read_settings(None, {"DESKHAND_HOME": str(home)})


def test_the_zone_of_the_machine(tmp_path: Path) -> None:
    assert system_timezone({}, tmp_path) == "UTC"
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert system_timezone({}, tmp_path) == "Asia/Tokyo"
    (tmp_path / "localtime").symlink_to(tmp_path / "zoneinfo" / "Europe" / "Berlin")
    assert system_timezone({}, tmp_path) == "Europe/Berlin"
    assert system_timezone({"TZ": ":America/Vancouver"}, tmp_path) == "America/Vancouver"
    assert system_timezone({"TZ": "nonsense"}, tmp_path) == "Europe/Berlin"


def test_a_zone_that_does_not_exist() -> None:
    assert check_timezone("Europe/Berlin") == "Europe/Berlin"
    for wrong, hint in (
        ("europe berlin", "did you mean 'Europe/Berlin'"),
        ("../../etc/passwd", "there is no timezone"),
        ("", "such as"),
    ):
        with pytest.raises(ConfigError, match=hint):
            check_timezone(wrong)


@pytest.mark.parametrize("value", ["sk-1", "two words", "a#b", "it's", 'say "hi"', "a=b", "x # y"])
def test_a_secret_is_read_back(tmp_path: Path, value: str) -> None:
    here = settings(tmp_path)
    store_secret(here, "SOME_KEY", value)
    assert here.home.env.stat().st_mode & 0o777 == 0o600
    assert read_env_file(here.home.env) == {"SOME_KEY": value}


def test_a_secret_is_replaced_where_it_stood(tmp_path: Path) -> None:
    here = settings(tmp_path)
    here.home.env.write_text("# mine\nexport A_KEY=old # why\nANOTHER_A_KEY=1\nEMPTY=")
    store_secret(here, "A_KEY", "new")
    store_secret(here, "B_KEY", "\\1")
    assert here.home.env.read_text() == "# mine\nA_KEY=new\nANOTHER_A_KEY=1\nEMPTY=\nB_KEY=\\1\n"
    assert list_env_secrets(here) == ["A_KEY", "ANOTHER_A_KEY", "B_KEY"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("a key", "x"), ("KEY", ""), ("KEY", "a\nB=c"), ("KEY", "'\""), ("", "x"), ("K\nB", "x")],
)
def test_what_would_be_read_otherwise_is_refused(tmp_path: Path, name: str, value: str) -> None:
    here = settings(tmp_path)
    with pytest.raises(ConfigError):
        store_secret(here, name, value)
    assert not here.home.env.exists()


def test_what_the_owner_is_called(tmp_path: Path) -> None:
    here = settings(tmp_path)
    file = tmp_path / "agents/default/workspace/USER.md"
    assert read_owner_name(here, "default") == ""
    write_owner_name(here, "default", "  Ann   Lee ")
    assert file.read_text() == "- Name: Ann Lee\n"
    file.write_text("# The user\n- Name: Ann\n- Likes: \\1\n- Name: not this\n")
    write_owner_name(here, "default", "B\\1b")
    assert file.read_text() == "# The user\n- Name: B\\1b\n- Likes: \\1\n- Name: not this\n"
    assert read_owner_name(here, "default") == "B\\1b"
    for wrong in ("", "x" * 81, "a\x1bb"):
        with pytest.raises(ConfigError):
            write_owner_name(here, "default", wrong)


def test_a_link_in_the_workspace_leads_nowhere(tmp_path: Path) -> None:
    """The agent may have made it."""
    here = settings(tmp_path)
    here.home.env.write_text("A_KEY=secret\n- Name: of a secret\n")
    workspace = tmp_path / "agents/default/workspace"
    workspace.mkdir(parents=True)
    (workspace / "USER.md").symlink_to(here.home.env)
    with pytest.raises(ToolError):
        read_owner_name(here, "default")
    with pytest.raises(ToolError):
        write_owner_name(here, "default", "Ann")
    assert "Ann" not in here.home.env.read_text()


def test_a_key_keeps_what_stands_beside_it(tmp_path: Path) -> None:
    here = settings(tmp_path)
    here.file.write_text("# mine\ntimezone: UTC # now\n")
    store_setting(here, ["timezone"], "Asia/Tokyo")
    assert here.file.read_text() == "# mine\ntimezone: Asia/Tokyo # now\n"
