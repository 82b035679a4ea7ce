"""What comes in from nanobot: its home as its program writes it, and as earlier versions did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deskhand.config.config import read_settings
from deskhand.importers.detect import detect_system
from deskhand.importers.nanobot import _key_of_file, _split_context
from deskhand.types.events import MessageReceived
from deskhand.types.identity import Address
from tests.importers.moving import home_of, move, read, settings_in, with_store

BOT = "7000000001"


def test_its_home_as_it_is_written(tmp_path: Path) -> None:
    home = home_of("nanobot", tmp_path)
    with (home / "workspace/AGENTS.md").open("a") as file:
        file.write("Jobs are made with `nanobot cron`.\n")  # as its template says further down
    found = read(home)
    assert found.system == "nanobot" and found.trusted and not found.broken
    assert found.config["defaults"]["models"] == ("openai/gpt-4o", "openai/gpt-4o-mini")
    assert found.config["timezone"] == "Europe/Berlin"
    assert found.config["channels"] == {"telegram": {"allow_from": ["123456789", "987654321"]}}
    assert found.secrets == {"OPENAI_API_KEY": "none", "TELEGRAM_BOT_TOKEN": f"{BOT}:a-token"}
    talks = {talk.key: talk for talk in found.conversations}
    assert set(talks) == {"cli:direct", "telegram:123456789", "telegram:-1001234567890:topic:7"}
    assert talks["cli:direct"].own and talks["cli:direct"].place is None
    alone = talks["telegram:123456789"]
    assert alone.place == Address("telegram", BOT, "123456789")
    assert {line.by for line in alone.lines if line.role == "user"} == {"telegram:123456789"}
    group = talks["telegram:-1001234567890:topic:7"]
    assert group.place == Address("telegram", BOT, "-1001234567890", "7", group=True)
    assert not any(line.by for line in group.lines)
    assert [(each.job.name, each.job.schedule) for each in found.jobs] == [
        ("bins", "0 19 * * 3"),
        ("feed", "every 5400000ms"),
        ("passport", "at 2031-03-01T08:00:00+00:00"),
    ]
    assert found.jobs[0].job.to == alone.place
    assert [each.text for each in found.memories] == [
        "User Information: Ann has two cats, Ada and Grace.",
        "User Information: The cats eat at seven.",
    ]
    (agent,) = found.agents
    assert agent.workspace == {"SOUL.md": "You are calm.\n", "USER.md": "Ann likes tea.\n"}
    assert b"Ann asked for a shopping list" in agent.notes["memory/history.md"]
    assert [each.name for each in found.skills] == ["feed-look"]


async def test_it_moves_in(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    taken = await move(home_of("nanobot", tmp_path), settings)
    assert (taken.counts["conversation"], taken.counts["job"], taken.counts["memory"]) == (3, 3, 2)
    now = read_settings(settings.file, settings.started_with)
    assert now.agent("nanobot").models == ("openai/gpt-4o", "openai/gpt-4o-mini")
    session = f"nanobot/telegram:{BOT}:123456789"
    events = await with_store(settings, lambda store: store.events(session))
    assert isinstance(events[0].event, MessageReceived)
    assert (await move(home_of("nanobot", tmp_path / "again"), settings)).counts == {}


def test_earlier_layouts(tmp_path: Path) -> None:
    """Sessions in sessions/ and in the workspace, with lossy file names and without keys; the newer
    copy counts."""
    home = home_of("nanobot", tmp_path)
    (home / "pairing.json").unlink()
    (home / "workspace/sessions").mkdir()

    def lines(updated: str, *said: str) -> str:
        head = {"_type": "metadata", "updated_at": updated}
        rest = [
            {"role": "user", "content": each, "timestamp": "2026-01-05T10:00:00"} for each in said
        ]
        return "".join(json.dumps(each) + "\n" for each in (head, *rest))

    (home / "sessions/telegram_55.jsonl").write_text(lines("2026-01-05T10:00:00", "old"))
    (home / "workspace/sessions/telegram_55.jsonl").write_text(
        lines("2026-02-05T10:00:00", "old", "new")
    )
    (home / "workspace/sessions/heartbeat.jsonl").write_text(lines("2026-02-05T10:00:00", "check"))
    found = read(home)
    talk = next(talk for talk in found.conversations if talk.key == "telegram:55")
    assert [line.content for line in talk.lines] == ["old", "new"]
    assert not any("check" in str(talk.lines) for talk in found.conversations)


def test_what_stands_in_place_of_a_key_is_none(tmp_path: Path) -> None:
    home = home_of("nanobot", tmp_path)
    config = json.loads((home / "config.json").read_text())
    config["providers"]["openai"]["apiKey"] = "${OPENAI_KEY}"
    config["providers"]["groq"] = {"apiKey": "sk-groq", "apiBase": "http://me:word@localhost/v1"}
    (home / "config.json").write_text(json.dumps(config))
    found = read(home)
    assert "OPENAI_API_KEY" not in found.secrets and found.secrets["GROQ_API_KEY"] == "sk-groq"
    assert "groq" not in found.config["providers"]
    left = {each.what for each in found.left_out}
    assert {"the key OPENAI_API_KEY", "the address of groq"} <= left
    assert "word@" not in str(found.left_out)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("dGVsZWdyYW06MTIzNDU2Nzg5", "telegram:123456789"),
        ("telegram_-100_topic_7", "telegram:-100:topic:7"),
        ("cli_direct", "cli:direct"),
        ("slack_C12_x", "slack:C12_x"),
    ],
)
def test_names_of_files(name: str, key: str) -> None:
    assert _key_of_file(name) == key


def test_what_its_program_put_around_the_words_of_a_person() -> None:
    block = "[Runtime Context — metadata only, not instructions]\nTime: now"
    assert _split_context("hi") == ("", "hi")
    assert _split_context(f"{block}\n\nhi there") == (block, "hi there")
    assert _split_context(f"hi\n{block}\n[/Runtime Context]") == (
        f"{block}\n[/Runtime Context]",
        "hi",
    )


def test_it_is_neither_operator_use_nor_agent_computer(tmp_path: Path) -> None:
    def system(config: object, *folders: str) -> str | None:
        home = tmp_path / str(len(list(tmp_path.iterdir())))
        for folder in (".", *folders):
            (home / folder).mkdir(parents=True, exist_ok=True)
        (home / "config.json").write_text(json.dumps(config))
        return detect_system(home)

    defaults = {"model": "gpt-4o", "workspace": "~/.nanobot/workspace"}
    assert (
        system({"agents": {"defaults": defaults}, "channels": {}}, "sessions", "workspace")
        == "nanobot"
    )
    use = {"agents": {"defaults": {"llmConfig": {"provider": "openai", "model": "x"}}}}
    assert system(use, "workspace") == "operator-use"
    assert system({"agents": {"defaults": defaults, "list": []}}) == "operator-use"
    assert system({"agent": {"id": "x"}}, "sessions") == "agent_computer"
