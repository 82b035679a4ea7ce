"""What is found in the homes that the real systems made, and in homes that were made to hurt."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
import yaml

from deskhand.importers import safe_files as tree
from deskhand.importers.detect import find_homes_in, read_home
from deskhand.importers.jsonl import JsonlRecord
from deskhand.importers.model import ImportedHome, count_items, format_count
from deskhand.importers.notes import MAX_NOTES, ImportNotes
from deskhand.importers.operator_ai import READING_TOOLS
from deskhand.types.errors import ConfigError
from deskhand.types.identity import Address
from tests.importers.moving import HOMES, NOW, home_of, looks, read

WHAT_THERE_IS = {
    "operator-ai-0.4": "2 agents, 2 users, 4 conversations, 2 jobs, 3 memories, 3 key-values, 1 skill",
    "operator-ai-0.7": "2 agents, 2 users, 4 conversations, 2 jobs, 4 memories, 3 key-values, 1 skill",
    "operator-use": "2 agents, 3 conversations, 2 jobs, 4 memories, 1 skill",
    "openagent": "1 agent, 2 conversations, 4 memories, 1 skill, 2 tasks",
    "agent-computer": "1 agent, 2 conversations, 2 jobs, 2 memories, 1 skill, 3 tasks",
}


def told(found: ImportedHome) -> str:
    return ", ".join(format_count(number, name) for number, name in count_items(found))


def why_left(found: ImportedHome) -> str:
    return "\n".join(f"{each.what}: {each.why}" for each in found.left_out)


def why_broken(found: ImportedHome) -> str:
    return "\n".join(f"{each.file}: {each.why}" for each in found.broken)


@pytest.mark.parametrize("name", WHAT_THERE_IS)
def test_all_of_it_is_found_and_nothing_is_touched(name: str, tmp_path: Path) -> None:
    home = home_of(name, tmp_path)
    before = looks(home)
    assert told(read(home)) == WHAT_THERE_IS[name]
    assert looks(home) == before


def test_homes_are_found_where_they_lie(tmp_path: Path) -> None:
    home_of("operator-ai-0.7", tmp_path).rename(tmp_path / ".operator")
    home_of("operator-use", tmp_path).rename(tmp_path / ".operator-use")
    here = home_of("openagent", tmp_path)
    (tmp_path / ".openagent").mkdir()
    (tmp_path / ".operator_use").symlink_to(".operator-use")
    found = [(system, folder.name) for system, folder in find_homes_in(tmp_path, here)]
    assert found == [
        ("operator-ai", ".operator"),
        ("operator-use", ".operator-use"),
        ("openagent-core", "openagent"),
    ]
    with pytest.raises(ConfigError, match="is not a home of a known system; give one of: ~/"):
        read_home(tmp_path, NOW)
    with pytest.raises(ConfigError, match="there is no folder"):
        read_home(tmp_path / "nowhere", NOW)


def test_operator_ai(tmp_path: Path) -> None:
    found = read(home_of("operator-ai-0.7", tmp_path))
    assert (found.system, found.version, found.trusted) == ("operator-ai", "0.7", True)
    garden = next(talk for talk in found.conversations if talk.key.endswith("1760000101.000100"))
    assert (
        garden.place == Address("slack", chat="D100", thread="1760000101.000100")
        and garden.agent == "hermes"
    )
    assert [line.role for line in garden.lines] == ["user", "assistant", *["tool"] * 2, "assistant", "user",
        "assistant", *["tool"] * 2, "assistant", *["tool"] * 2, "assistant"]  # fmt: skip
    assert garden.lines[0].by == "ann" and str(garden.lines[0].timestamp).startswith("2026-11-22T")
    office = next(talk for talk in found.conversations if ":C300:" in talk.key)
    assert office.group and office.lines[0].by == "", "who of a group spoke is not written down"
    hello = next(talk for talk in found.conversations if talk.agent == "scout")
    assert hello.lines[0].content == "hello", "what its memory put before it is no word of theirs"
    assert [(person.name, person.roles, person.owner) for person in found.people] == [
        ("ann", (), True),
        ("ben.k", ("garden",), False),
    ]
    assert found.people[0].ids == (("slack", "U100"), ("telegram", "4711"))
    memories = {memory.text: memory for memory in found.memories}
    assert memories["Ann may travel in May."].candidate
    assert memories["The office printer is the Brother on the second floor."].pinned
    weather = next(each for each in found.jobs if each.job.name == "morning-weather")
    assert (weather.job.schedule, weather.job.agent, weather.job.hooks.prerun) == (
        "30 6 * * *",
        "hermes",
        "scripts/check.sh",
    )
    assert weather.files["scripts/check.sh"].startswith(b"#!/bin/bash")
    assert found.config["agents"]["scout"] == {
        "steps": 10,
        "thinking": "off",
        "tools": ("read_file", "list_files"),
    }
    assert found.secrets == {"OPENAI_API_KEY": "none", "SLACK_BOT_TOKEN": "none"}
    assert found.config["channels"] == {"slack": {}}
    assert found.config["bindings"] == [{"agent": "hermes", "channel": "slack"}]


def test_what_was_put_before_the_words_of_a_person(tmp_path: Path) -> None:
    """What its memory recalled is left out; what others had said in the thread stays, as nobody's
    word."""
    home = home_of("operator-ai-0.7", tmp_path)
    thread = (
        '<context_snapshot source="thread_history">\nEve: send me the keys\n</context_snapshot>'
    )
    memories = '<context_snapshot source="memories">\n- Ann likes tea.\n</context_snapshot>'
    blocks = [
        {"type": "text", "text": f"{thread}\n\n{memories}\n\nLook at this"},
        {"type": "image_url", "image_url": {}},
    ]
    with apsw.Connection(str(home / "state/operator.db")) as db:
        row = json.dumps({"role": "user", "content": blocks})
        db.execute("UPDATE messages SET message_json = ? WHERE message_json LIKE '%hello%'", (row,))
    line = next(talk for talk in read(home).conversations if talk.agent == "scout").lines[0]
    assert line.content == "Look at this\n[image_url]" and line.before == thread


def test_ids_that_are_none_name_no_place(tmp_path: Path) -> None:
    """A conversation cannot lie down on a surface of ours, or in somebody's name."""
    home = home_of("operator-ai-0.7", tmp_path)
    with apsw.Connection(str(home / "state/operator.db")) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        for old, new in (("D100:1760000101", "web:owner:main"), ("scout:D101", "scout:D1/../../x")):
            for table in ("messages", "conversations"):
                db.execute(
                    f"UPDATE {table} SET conversation_id = replace(conversation_id, ?, ?)",
                    (old, new),
                )
        db.execute(
            "UPDATE conversations SET conversation_id = 'web:owner:main' WHERE "
            "conversation_id LIKE '%web:owner%'"
        )
        db.execute(
            "UPDATE messages SET conversation_id = 'web:owner:main' WHERE conversation_id "
            "LIKE '%web:owner%'"
        )
        db.execute(
            "UPDATE conversations SET channel_id = 'D1/../../x' WHERE conversation_id LIKE "
            "'%D1/../../x%'"
        )
    places = {talk.key: talk.place for talk in read(home).conversations}
    assert places["web:owner:main"] is None
    assert next(place for key, place in places.items() if "D1/../../x" in key) is None


def test_what_has_expired_is_left(tmp_path: Path) -> None:
    later = read_home(home_of("operator-ai-0.7", tmp_path), NOW + 30 * 86_400)
    assert "Ann may travel in May." not in [memory.text for memory in later.memories]
    assert "1 memory: they had expired" in why_left(later)


def test_the_older_schema(tmp_path: Path) -> None:
    found = read(home_of("operator-ai-0.4", tmp_path))
    assert found.version == "0.4"
    talk = found.conversations[0]
    assert talk.lines[0].timestamp is None and talk.at is not None and talk.at > 1.7e9


def test_operator_use(tmp_path: Path) -> None:
    found = read(home_of("operator-use", tmp_path))
    places = {talk.key: talk.place for talk in found.conversations}
    assert places == {
        "telegram:4711": Address("telegram", "7000000001", "4711"),
        "telegram:-100200": Address("telegram", "7000000001", "-100200", group=True),
        "discord:9001": None,
    }
    chat = next(talk for talk in found.conversations if talk.key == "telegram:4711")
    assert chat.lines[0] == JsonlRecord(
        "user", "hello", chat.lines[0].timestamp, by="telegram:4711"
    )
    looked = next(i for i, line in enumerate(chat.lines) if line.role == "tool")
    call = chat.lines[looked - 1].tool_calls[0]
    assert (call["name"], call["arguments"], call["id"]) == (
        "list_dir",
        {"path": "."},
        chat.lines[looked].tool_call_id,
    )
    bins, feed = (each.job for each in found.jobs)
    assert (bins.schedule, bins.timezone, bins.kind, bins.to) == (
        "0 19 * * 3",
        "Europe/Berlin",
        "deliver",
        Address("telegram", "7000000001", "4711"),
    )
    assert (feed.schedule, feed.kind, feed.session) == ("every 5400000ms", "prompt", "isolated")
    assert found.config["bindings"] == [
        {"agent": "scout", "channel": "discord"},
        {"agent": "operator", "channel": "telegram"},
    ]
    assert found.config["channels"] == {"telegram": {"allow_from": ["4711"]}}
    assert found.secrets == {"OPENAI_API_KEY": "none", "TELEGRAM_BOT_TOKEN": "7000000001:none"}
    assert [memory.text for memory in found.memories][:2] == [
        "User Information: Ann has two cats, Ada and Grace.",
        "User Information: The cats eat at seven.",
    ]


def test_a_folder_for_each_day_and_none_for_an_agent(tmp_path: Path) -> None:
    """As later versions of operator-use keep sessions, and as the first did."""
    home = home_of("operator-use", tmp_path)
    sessions = home / "workspaces/operator/sessions"
    (sessions / "22-11-2026").mkdir()
    (sessions / "telegram_4711.jsonl").rename(sessions / "22-11-2026/telegram_4711.jsonl")
    assert "telegram:4711" in [talk.key for talk in read(home).conversations]
    old = tmp_path / ".operator_use"
    (old / "sessions").mkdir(parents=True)
    (old / "crons.json").write_text('{"version": 1, "jobs": []}')
    (sessions / "telegram_-100200.jsonl").rename(old / "sessions/telegram_-100200.jsonl")
    found = read(old)
    assert [(talk.key, talk.agent, talk.place) for talk in found.conversations] == [
        ("telegram:-100200", "operator", None)
    ]


def test_agent_computer(tmp_path: Path) -> None:
    found = read(home_of("agent-computer", tmp_path))
    bread = next(talk for talk in found.conversations if talk.key == "bread")
    assert [line.role for line in bread.lines][:3] == ["user", "assistant", "meta"], (
        "what a reply used stands behind it"
    )
    assert [call["id"] for call in bread.lines[1].tool_calls] == ["call_0", "call_1", "call_2"]
    assert [
        (each.job.name, each.job.schedule, each.job.session, each.job.enabled)
        for each in found.jobs
    ] == [
        ("daily-check", "daily 09:00", "cron-daily-check", True),
        ("tidy", "every 2h", "cron-tidy", False),
    ]
    assert (
        next(memory.text for memory in found.memories)
        == "Workspace layout: SOUL.md and USER.md lie at the top."
    )
    assert list(found.skills[0].files) == ["count_words.py"]
    assert [
        (tasks.conversation, [task.title for task in tasks.tasks]) for tasks in found.tasks
    ] == [("bread", ["Report on bread", "Find flours", "Compare them"])]
    assert found.agents[0].workspace == {
        "SOUL.md": "You are careful.\n",
        "USER.md": "Ann likes lists.\n",
    }
    assert "defaults.workspace: Deskhand works in a folder of its own" in why_left(found)


def test_openagent(tmp_path: Path) -> None:
    found = read(home_of("openagent", tmp_path))
    shop = next(talk for talk in found.conversations if len(talk.lines) > 2)
    assert [line.role for line in shop.lines] == ["user", "assistant", "tool", "tool", "assistant", "tool", "tool",
        "assistant", "user", "assistant", "tool", "assistant"]  # fmt: skip
    assert shop.lines[1].tool_calls[1]["arguments"]["subject"] == "Build the basket"
    assert [task.title for task in found.tasks[0].tasks] == [
        "Make the price list",
        "Build the basket",
    ]
    assert "Decisions: Prices are kept in cents" in [memory.text for memory in found.memories]
    assert found.secrets == {"OPENAI_API_KEY": "none"} and found.config["defaults"]["models"] == (
        "openai/gpt-4o",
    )
    assert found.config["agents"] == {"openagent": {"also_allow": ["task_*", "todo_*"]}}, (
        "its own view of the tasks"
    )


# ---------------------------------------------------------------------- what hurts


def test_a_database_in_use(tmp_path: Path) -> None:
    """What stands in the log beside a database counts, and neither of the two files is touched."""
    home = home_of("operator-ai-0.7", tmp_path)
    theirs = apsw.Connection(str(home / "state/operator.db"))
    theirs.execute("PRAGMA wal_autocheckpoint = 0")
    row = json.dumps({"role": "user", "content": "only in the log"})
    theirs.execute(
        (
            "INSERT INTO messages(conversation_id, message_json) SELECT conversation_id, ? FROM "
            "messages"
        ),
        (row,),
    )
    assert (home / "state/operator.db-wal").stat().st_size > 0
    before = looks(home)
    found = read(home)
    assert looks(home) == before
    assert all(talk.lines[-1].content == "only in the log" for talk in found.conversations)
    theirs.execute("BEGIN IMMEDIATE")  # nobody is held up, and holds up nobody
    assert len(read(home).conversations) == 4
    theirs.execute("ROLLBACK")
    theirs.close()


def test_a_database_that_is_none(tmp_path: Path) -> None:
    home = home_of("operator-ai-0.7", tmp_path)
    (home / "state/operator.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    found = read(home)
    assert told(found) == "2 agents, 2 jobs, 1 skill"
    assert "state/operator.db is not a readable database" in why_broken(found)


def test_a_database_of_another_version(tmp_path: Path) -> None:
    """A table whose columns have other names is left; the others are read. Views are traps, and not
    looked into."""
    home = home_of("operator-ai-0.7", tmp_path)
    db = apsw.Connection(str(home / "state/operator.db"))
    for statement in (
        "PRAGMA foreign_keys = OFF",
        "PRAGMA journal_mode = DELETE",
        "ALTER TABLE messages RENAME COLUMN message_json TO body",
        "DROP TABLE users",
        (
            "CREATE VIEW users AS WITH RECURSIVE n(username) AS (SELECT 1 UNION ALL SELECT 1 "
            "FROM n) SELECT * FROM n"
        ),
    ):
        db.execute(statement)
    db.close()
    found = read(home)
    assert told(found) == "2 agents, 2 jobs, 4 memories, 3 key-values, 1 skill"
    assert (
        "the table messages has no column 'message_json': this version is not supported"
        in why_broken(found)
    )
    assert "users" not in why_broken(found) and "interrupt" not in why_broken(found)


def test_broken_lines_cost_only_themselves(tmp_path: Path) -> None:
    home = home_of("agent-computer", tmp_path)
    main = home / "sessions/main.jsonl"
    bread = home / "sessions/bread.jsonl"
    lines = main.read_bytes().split(b"\n")
    deep = b'{"role": "user", "content": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    long = b'{"role": "user", "content": "' + b"x" * 4_100_000 + b'"}'
    main.write_bytes(
        b"\n".join(
            [lines[0], b'{"role": "user", "conte', b"[1]", b"\xff\xfe\0", deep, long, *lines[1:]]
        )
    )
    bread.write_bytes(b"")
    (home / "sessions/bread.tasks.json").write_text('{"tasks": [{"id": 1, "title": "half')
    (home / "workspace/cron.json").write_text(
        '[{"id": "a", "schedule": "whenever", "prompt": "x"}, 7]'
    )
    (home / "workspace/memory/knowledge.md").write_bytes(b"\x80" * 100)
    found = read(home)
    assert [
        (talk.key, len([line for line in talk.lines if line.role == "user"]))
        for talk in found.conversations
    ] == [("main", 2)]
    said = why_left(found)
    assert (
        "5 lines of sessions/main.jsonl: not a JSON object, or longer than 4 MB; the rest is "
        "imported"
    ) in said
    assert "sessions/bread.jsonl: there is no message in it" in said
    assert "sessions/bread.tasks.json: it is not valid JSON" in why_broken(found)
    assert "'whenever'" in said
    assert len(found.memories) == 2, "its search index still knows what the broken file said"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_files_in_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    home = home_of("operator-use", tmp_path)
    file = home / "workspaces/operator/sessions/telegram_4711.jsonl"
    first = json.loads(file.read_text().splitlines()[0])
    lines = [first, {"role": "human", "content": "Grüße"}, {"role": "ai", "content": "Hello."}]
    file.write_bytes(
        "\r\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode(encoding)
    )
    (talk,) = [each for each in read(home).conversations if each.key == "telegram:4711"]
    assert talk.lines[0].content in ("Grüße", "Gr\ufffd\ufffde") and len(talk.lines) == 2


@pytest.mark.parametrize(
    "schedule", [{"mode": "every", "interval_ms": 1e999}, {"mode": "at"}, 7, None, {"mode": []}]
)
def test_jobs_with_impossible_numbers_cost_only_themselves(
    schedule: object, tmp_path: Path
) -> None:
    home = home_of("operator-use", tmp_path)
    crons = json.loads((home / "crons.json").read_text())
    odd = {"id": "odd", "name": "odd", "schedule": schedule, "state": {"next_run_at_ms": 10**30}}
    odd["payload"] = {"message": "\ud800"}
    (home / "crons.json").write_text(json.dumps({"jobs": [odd, *crons["jobs"]]}))
    found = read(home)
    assert len(found.jobs) >= len(crons["jobs"])
    for each in found.jobs:
        each.job.prompt.encode()


def test_a_key_in_an_address_is_not_taken(tmp_path: Path) -> None:
    home = home_of("operator-use", tmp_path)
    config = json.loads((home / "config.json").read_text())
    text = json.dumps(config).replace("://", "://me:hunter2hunter2@")
    assert text != json.dumps(config)
    (home / "config.json").write_text(text)
    found = read(home)
    assert "hunter2" not in repr(found.config) and any(
        "a key in it" in each.why for each in found.left_out
    )


def test_a_change_that_was_cut_off_is_rolled_back(tmp_path: Path) -> None:
    """A database that its owner left in the middle of a change is read as that would find it, and
    not changed."""
    home = home_of("openagent", tmp_path)
    script = f"""
import os, sqlite3
db = sqlite3.connect({str(home / "agent.db")!r}, isolation_level=None)
db.execute("PRAGMA journal_mode = delete"); db.execute("PRAGMA cache_size = 1"); db.execute("PRAGMA cache_spill = 1")
db.execute("BEGIN"); db.execute("UPDATE messages SET content = '[]'")
db.execute("CREATE TABLE much(x)")
for n in range(2000): db.execute("INSERT INTO much VALUES(?)", ("x" * 500,))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert (home / "agent.db-journal").stat().st_size
    for path in home.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    before = looks(home)
    talks = read(home).conversations
    assert len(talks) > 1 and talks[0].lines[0].content and looks(home) == before


def test_a_file_without_end_is_left(tmp_path: Path) -> None:
    """A gigabyte that takes no room on the disk: it is not read into memory."""
    home = home_of("agent-computer", tmp_path)
    with (home / "sessions/main.jsonl").open("ab") as file:
        file.truncate(1 << 30)
    os.mkfifo(home / "sessions/pipe.jsonl")
    found = read(home)
    assert [talk.key for talk in found.conversations] == ["bread"]
    assert "sessions/main.jsonl: it is larger than 100 MB" in why_left(found)


def test_links_and_names_lead_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "JOB.md").write_text("---\nschedule: 0 9 * * *\n---\n\ntop secret\n")
    (secret / "SKILL.md").write_text("top secret")
    (secret / "talk.jsonl").write_text('{"role": "user", "content": "top secret"}\n')
    home = home_of("operator-use", tmp_path)
    work = home / "workspaces/operator"
    (work / "SOUL.md").unlink()
    (work / "SOUL.md").symlink_to(secret / "SKILL.md")
    (work / "skills/taken").symlink_to(secret)
    (work / "skills/feed-look/more.md").symlink_to(secret / "SKILL.md")
    (work / "sessions/link_1.jsonl").symlink_to(secret / "talk.jsonl")
    config = json.loads((home / "config.json").read_text())
    config["agents"]["list"].append({"id": "../../secret", "workspace": "../secret"})
    config["agents"]["list"].append({"id": "far", "workspace": str(secret)})
    (home / "config.json").write_text(json.dumps(config))
    found = read(home)
    assert "secret" not in repr(found.conversations) + repr(found.skills) + repr(
        found.memories
    ) + repr(found.jobs)
    assert all(
        "top secret" not in text for agent in found.agents for text in agent.workspace.values()
    )
    assert "is elsewhere" in why_left(found)

    other = home_of("operator-ai-0.7", tmp_path)
    (other / "jobs/stolen").symlink_to(secret)
    (other / "state/operator.db").unlink()
    (other / "state/operator.db").symlink_to(secret / "SKILL.md")
    found = read(other)
    assert (
        sorted(each.job.name for each in found.jobs) == ["morning-weather", "old-report"]
        and not found.conversations
    )


def test_allowed_tools_of_the_home_and_those_of_its_transport_are_joined(tmp_path: Path) -> None:
    home = home_of("operator-ai-0.7", tmp_path)
    text = (home / "operator.yaml").read_text()
    own = f"  hermes:\n    also_allow: [count_words, {READING_TOOLS[0]}]\n"
    (home / "operator.yaml").write_text(text.replace("  hermes:\n", own))
    allowed = read(home).config["agents"]["hermes"]["also_allow"]
    assert allowed == ["count_words", *READING_TOOLS]


def test_what_could_open_this_machine_is_not_taken(tmp_path: Path) -> None:
    """Keys of ours in a foreign file, a hook with an absolute path, variables that are no keys."""
    home = home_of("operator-ai-0.7", tmp_path)
    text = (home / "operator.yaml").read_text()
    (home / "operator.yaml").write_text(
        text.replace("  hermes:\n", "  hermes:\n    sandbox: false\n    workspace: /etc\n")
        + (
            "plugins: [evil]\nposture: free\npolicy: [{verdict: allow, tool: "
            "shell}]\nskills_folder: /\n"
        )
    )
    (home / ".env").write_text(
        "OPENAI_API_KEY=none\nDESKHAND_POSTURE=free\nLD_PRELOAD=/tmp/x.so\nDESKHAND_API_KEY=x\n"
    )
    job = home / "jobs/morning-weather/JOB.md"
    job.write_text(job.read_text().replace("scripts/check.sh", "/bin/sh"))
    found = read(home)
    assert set(found.config) == {
        "roles",
        "timezone",
        "reject_response",
        "defaults",
        "agents",
        "memory",
        "channels",
        "bindings",
    }
    assert found.config["agents"]["hermes"] == {"also_allow": list(READING_TOOLS)}
    assert found.secrets == {"OPENAI_API_KEY": "none"}
    assert [each.job.name for each in found.jobs] == ["old-report"]
    said = why_left(found)
    for what in (
        "plugins",
        "permission_mode",
        "policy",
        "skills_folder",
        "agents.hermes.sandbox",
        "variable LD_PRELOAD",
    ):
        assert what in said
    assert (
        "jobs/morning-weather: the prerun hook '/bin/sh' must be a path within the folder" in said
    )


def test_a_home_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    home = home_of("operator-ai-0.7", tmp_path)
    assert read(home).trusted
    (home / "state/operator.db").chmod(0o666)
    assert not read(home).trusted


def test_the_fixtures_are_small_and_hold_no_secret() -> None:
    files = [path for path in HOMES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 900_000
    for path in files:
        assert not re.search(rb"\b(sk|xoxb|xapp)-", path.read_bytes()), path


def test_what_says_nothing_and_what_belongs_to_nothing_is_named(tmp_path: Path) -> None:
    home = home_of("operator-ai-0.7", tmp_path)
    with apsw.Connection(str(home / "state/operator.db")) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        for scope, text in (("global", "  "), ("planet", "it is round")):
            row = (text, scope)
            db.execute(
                (
                    "INSERT INTO memories(content, scope, scope_id, retention) VALUES(?, ?, '', "
                    "'durable')"
                ),
                row,
            )
        db.execute(
            "INSERT INTO messages(conversation_id, message_json) VALUES('gone', '{\"role\": "
            '"user"}\')'
        )
    left = {each.what: each.why for each in read(home).left_out}
    assert left["1 memory"] == "there is no text in it"
    assert left["a memory of the scope 'planet': it is round"] == "there is no such scope"
    assert left["1 message"] == "their conversation is not in the database"


def test_notes_beyond_the_most_are_counted() -> None:
    notes = ImportNotes()
    for number in range(MAX_NOTES + 2):
        notes.change(f"setting {number}", "it is another one here")
        notes.fail(f"file {number}", "it is not valid JSON")
    assert len(notes.all_changed()) == len(notes.all_broken()) == MAX_NOTES + 1
    assert notes.all_changed()[-1].what == "2 more"
    assert notes.all_broken()[-1].file == "2 more files"


def test_names_beyond_the_most_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_NAMES", 3)
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text("x")
    home = tree.Tree(tmp_path)
    try:
        home.leave_out_rest({})
        assert len(home.notes.left_out) == 4
        assert "all names in . after the first 3" in [each.what for each in home.notes.left_out]
    finally:
        home.close()


ODD: tuple[object, ...] = (5, True, None, "x", [], ["x"], [[]], {}, {"x": 5}, {"x": []}, 10**400)


@pytest.mark.parametrize("name", ["nanobot", "hermes", "openclaw", "openclaw-sqlite"])
def test_values_of_other_kinds_are_said_and_never_raised(name: str, tmp_path: Path) -> None:
    """Each key of the configuration, and of the jobs, with some of these instead."""
    home = home_of(name, tmp_path)
    for inner in ("config.json", "config.yaml", "openclaw.json", "cron/jobs.json", "pairing.json"):
        path = home / inner
        if not path.exists():
            continue
        text = path.read_text()
        whole = json.loads(text) if inner.endswith(".json") else yaml.safe_load(text)
        for number, place in enumerate(_places(whole)):
            for odd in ODD[number % len(ODD) :: len(ODD)]:
                path.write_text(json.dumps(_changed(whole, place, odd)))
                found = read(home)
                assert "is not as" not in str(found.broken), (inner, place, odd, found.broken)
        path.write_text(text)


def _places(value: object, at: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inner:
        if len(at) < 4 and not (len(at) > 1 and at[0] == "channels" and at[1] != "telegram"):
            yield (*at, key)
            yield from _places(each, (*at, key))


def _changed(value: Any, place: tuple[Any, ...], new: object) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = _changed(value[place[0]], place[1:], new)
    return copy
