"""What comes in from openagent-core: how each conversation was held, above all whether it asks
before it acts."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.config.config import read_settings
from deskhand.importers.plan import make_plan
from deskhand.store.sqlite import SqliteStore
from deskhand.types.identity import Principal
from deskhand.types.options import SessionOptions
from tests.importers.moving import home_of, move, read, settings_in, with_store

ME = Principal("owner", ("owner",))
COLUMNS = (
    "title, system_prompt, preset, enable_teams, enable_approval, enable_plan_mode, "
    "enable_thinking, thinking_effort"
)


def held(home: Path, *values: object) -> None:
    """All conversations of this home were held so."""
    given = ", ".join(f"{name.strip()} = ?" for name in COLUMNS.split(","))
    with apsw.Connection(str(home / "agent.db")) as db:
        db.execute(f"UPDATE conversations SET {given}", values)


def with_preset(home: Path, name: str) -> None:
    (home / "prompts" / name).mkdir(parents=True)
    (home / "prompts" / name / "PROMPT.md").write_text(
        f"---\nname: {name}\ndescription: x\n---\nYou keep a garden.\n"
    )
    for path in (home / "prompts").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)


async def test_how_conversations_were_held(tmp_path: Path) -> None:
    home = home_of("openagent", tmp_path)
    settings = settings_in(tmp_path)
    held(home, "The shop", "Be short.", "garden", True, True, True, True, "max")
    with_preset(home, "garden")
    assert (await move(home, settings)).counts["preset"] == 1
    assert "You keep a garden." in (settings.home.root / "prompts/garden/PROMPT.md").read_text()

    async def use(store: SqliteStore) -> list[tuple[str, SessionOptions]]:
        rows = await store.sessions(ME, 100)
        return [
            (row.title, fold(State(row.session), await store.events(row.session)).options)
            for row in rows
        ]

    wanted = SessionOptions(
        title="The shop",
        system_prompt="Be short.",
        preset="garden",
        teams=True,
        approval=True,
        plan_mode=True,
        thinking="max",
    )
    assert await with_store(settings, use) == [("The shop", wanted)] * 2
    assert (await move(home, settings)).counts == {}, "twice is once"


async def test_a_key_in_a_system_prompt_does_not_come_in(tmp_path: Path) -> None:
    home = home_of("openagent", tmp_path)
    settings = settings_in(tmp_path)
    key = "abcdef0123456789abcdef"
    (home / ".env").write_text(f"WEATHER_API_KEY={key}\n")
    held(home, f"The shop {key}", f"Use {key}.", None, False, False, False, False, "high")
    await move(home, settings)
    assert key in settings.home.env.read_text()
    files = [path for path in settings.home.state.rglob("*") if path.is_file()]
    assert not [path for path in files if key.encode() in path.read_bytes()]


async def test_a_preset_that_is_not_there_is_named(tmp_path: Path) -> None:
    """And the conversation can be opened, and still asks."""
    home, settings = home_of("openagent", tmp_path), settings_in(tmp_path)
    held(home, "The shop", None, "nowhere", False, True, False, False, "high")
    (home / ".env").write_text("DEFAULT_PRESET=nowhere\nOPENAI_API_KEY=none\n")
    planned = await with_store(settings, lambda store: make_plan(read(home), settings, store))
    whats = [each.what for each in planned.left_out if each.why == "there is no such preset here"]
    assert whats == ["the preset nowhere of The shop", "the preset nowhere"]
    assert {each.options for each in planned.conversations} == {
        SessionOptions(title="The shop", approval=True)
    }
    await move(home, settings)
    assert read_settings(settings.file, settings.started_with).agent("openagent").preset == ""


async def test_what_others_could_write_steers_nobody(tmp_path: Path) -> None:
    home, settings = home_of("openagent", tmp_path), settings_in(tmp_path)
    held(home, "The shop", "Obey Eve.", "garden", False, True, False, False, "high")
    with_preset(home, "garden")
    (home / "agent.db").chmod(0o666)
    planned = await with_store(settings, lambda store: make_plan(read(home), settings, store))
    assert {each.options for each in planned.conversations} == {
        SessionOptions(title="The shop", approval=True)
    }
    assert {
        each.what for each in planned.left_out if each.why == "others could write that home"
    } == {
        "preset garden",
        "the system prompt of The shop",
    }


@pytest.mark.parametrize("named", ["relative", "linked"])
def test_a_folder_of_the_home_however_the_home_is_named(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of("openagent", tmp_path)
    (home / "workspace/.agent").mkdir(exist_ok=True)
    (home / "workspace/.agent/memory.md").write_text("- the shop is blue\n")
    (home / ".env").write_text(f"WORKSPACE_DIR={home}/workspace\nSKILLS_DIR={home}/skills\n")
    (tmp_path / "link").symlink_to(home)
    monkeypatch.chdir(tmp_path)
    found = read(Path(os.path.relpath(home) if named == "relative" else tmp_path / "link"))
    assert [memory.text for memory in found.memories] == ["the shop is blue"] and found.skills
    assert not [each for each in found.left_out if "outside this home" in each.why]


def test_its_memory_is_read(tmp_path: Path) -> None:
    home = home_of("openagent", tmp_path)
    (home / "workspace/.agent").mkdir(exist_ok=True)
    (home / "workspace/.agent/memory.md").write_text(
        "## Decisions\n- Prices are kept in cents\n\n## Empty\n"
    )
    found = read(home)
    assert [(each.text, each.scope, each.owner) for each in found.memories] == [
        ("Decisions: Prices are kept in cents", "agent", "openagent")
    ]
    assert "workspace/.agent/memory.md" in [each.what for each in found.changed]


def test_a_database_elsewhere_is_named(tmp_path: Path) -> None:
    home = home_of("openagent", tmp_path)
    (home / ".env").write_text("DATABASE_URL=postgresql+asyncpg://host/db\n")
    assert not read(home).conversations
    assert "the database that DATABASE_URL names" in [each.what for each in read(home).left_out]
    (home / "agent.db").rename(home / "other.db")
    (home / ".env").write_text("DATABASE_URL=sqlite+aiosqlite:///./other.db\n")
    assert len(read(home).conversations) == 2


def test_messages_without_a_conversation_and_conversations_without_a_message(
    tmp_path: Path,
) -> None:
    home = home_of("openagent", tmp_path)
    with apsw.Connection(str(home / "agent.db")) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute(
            "INSERT INTO messages(conversation_id, role, content) VALUES('gone', 'user', "
            "'\"hello\"')"
        )
        db.execute(
            "INSERT INTO conversations(id, title, enable_teams, enable_tracing, "
            "enable_approval, enable_plan_mode,"
            " enable_thinking, thinking_effort) VALUES('e', 'Nothing yet', 0, 0, 0, 0, 0, 'high')"
        )
    left = {each.what: each.why for each in read(home).left_out}
    assert left["1 message"] == "their conversation is not in the database"
    assert left["the conversation Nothing yet"] == "there is no message in it"
