"""What comes in from Hermes Agent: its home as its program writes it, and what older ones held."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from deskhand.config.config import read_settings
from deskhand.types.identity import Address
from tests.importers.moving import home_of, move, read, settings_in

BOT = "7000000001"


def test_its_home_as_it_is_written(tmp_path: Path) -> None:
    found = read(home_of("hermes", tmp_path))
    assert found.system == "hermes" and found.trusted and not found.broken
    assert found.config["defaults"] == {
        "models": ("custom/gpt-4o",),
        "steps": 40,
        "thinking": "low",
    }
    assert found.config["providers"]["custom"]["base_url"].startswith("http://localhost")
    assert found.config["channels"] == {"telegram": {"allow_from": ["123456789", "987654321"]}}
    assert found.secrets["TELEGRAM_BOT_TOKEN"] == f"{BOT}:a-token"
    assert "TELEGRAM_ALLOWED_USERS" not in found.secrets
    places = [talk.place for talk in found.conversations]
    ann = Address("telegram", BOT, "123456789")
    assert places == [
        None,  # a later one of the same chat goes on
        Address("telegram", BOT, "987654321"),
        Address("telegram", BOT, "-1001234567890", "7", group=True),
        ann,
        None,
    ]
    assert [talk.own for talk in found.conversations] == [False, False, False, False, True]
    asked = [talk.lines[0].by for talk in found.conversations]
    assert asked == ["telegram:123456789", "telegram:987654321", "", "telegram:123456789", ""]
    assert [(each.job.name, each.job.schedule, each.job.timezone) for each in found.jobs] == [
        ("bins", "0 19 * * 3", "Europe/Berlin"),
        ("feed", "every 90m", ""),
        ("passport", "at 2031-03-01T08:00:00+00:00", ""),
    ]
    bins, feed, passport = (each.job for each in found.jobs)
    assert (bins.to, feed.to, passport.to) == (ann, None, places[2])
    assert passport.delete_after_run and not bins.delete_after_run
    assert [each.text for each in found.memories] == [
        "The office printer is the Brother on the second floor.",
        "Ann has two cats, Ada and Grace.",
        "Ann likes short answers.",
    ]
    assert [each.name for each in found.skills] == ["feed-look"]
    assert [each.name for each in found.presets] == ["pirate"]


async def test_it_moves_in(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    taken = await move(home_of("hermes", tmp_path), settings)
    assert (taken.counts["conversation"], taken.counts["job"], taken.counts["memory"]) == (5, 3, 3)
    now = read_settings(settings.file, settings.started_with)
    assert now.agent("hermes").models == ("custom/gpt-4o",)
    assert (await move(home_of("hermes", tmp_path / "again"), settings)).counts == {}


def change_database(home: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
    db = sqlite3.connect(home / "state.db")
    for statement, given in statements:
        db.execute(statement, given)
    db.commit()
    db.close()


def test_what_was_taken_back_or_summarised_is_there_once(tmp_path: Path) -> None:
    """A summary puts older messages aside, and writes those that it keeps a second time."""
    home = home_of("hermes", tmp_path)
    insert = (
        "INSERT INTO messages (session_id, role, content, timestamp, active, compacted)"
        " VALUES ('20261126_204730_6e84b6', ?, ?, ?, ?, ?)"
    )
    parts = '\0json:[{"type": "text", "text": "what is this?"}, {"type": "image_url"}]'
    change_database(
        home,
        ("UPDATE messages SET active = 0, compacted = 1 WHERE session_id LIKE '%6e84b6'", ()),
        (insert, ("user", "[CONTEXT COMPACTION — REFERENCE ONLY] apples", 9.0, 1, 0)),
        (insert, ("user", "taken back", 10.0, 0, 0)),
        (insert, ("user", "kept", 11.0, 0, 1)),
        (insert, ("user", "kept", 11.0, 1, 0)),
        (insert, ("user", parts, 12.0, 1, 0)),
    )
    talk = read(home).conversations[-1]
    said = [line.content for line in talk.lines if line.role == "user"]
    assert said == ["Please count the apples.", "kept", "what is this?"]


def test_keys_and_people_of_other_places(tmp_path: Path) -> None:
    home = home_of("hermes", tmp_path)
    given = {"auth_type": "api_key", "source": "manual", "access_token": "sk-groq"}
    pool = {"groq": [given], "openai": [given | {"source": "env:OPENAI_API_KEY"}]}
    auth = {"version": 1, "providers": {"nous": {"access": "x"}}, "credential_pool": pool}
    (home / "auth.json").write_text(json.dumps(auth))
    (home / "platforms/pairing/slack-approved.json").write_text('{"U1": {}}')
    found = read(home)
    assert (found.secrets["GROQ_API_KEY"], found.secrets["OPENAI_API_KEY"]) == ("sk-groq", "none")
    left = {each.what for each in found.left_out}
    assert {"the sign-in to nous", "that U1 may write on slack"} <= left


def test_jobs_that_do_not_fit_are_named(tmp_path: Path) -> None:
    home = home_of("hermes", tmp_path)
    jobs = json.loads((home / "cron/jobs.json").read_text())
    bins, feed, passport = jobs["jobs"]
    bins |= {"script": "check.py"}
    feed |= {"deliver": "discord:5, telegram", "state": "paused"}
    passport |= {"state": "completed"}
    (home / "cron/jobs.json").write_text(json.dumps(jobs))
    found = read(home)
    (job,) = (each.job for each in found.jobs)
    assert (job.name, job.enabled, job.to) == ("feed", False, Address("telegram", BOT, "123456789"))
    left = {each.what: each.why for each in found.left_out}
    assert left["job Bins"] == "it runs a script of Hermes"
    assert left["job Passport"] == "it is completed"
