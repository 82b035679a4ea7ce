"""`deskhand jobs`: made, looked at, changed and removed in a terminal, beside a Deskhand that runs
or none."""

from __future__ import annotations

import hmac
import json
import os
import shlex
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.config.clock import SystemClock
from deskhand.config.config import read_settings
from deskhand.config.statements import load_statements
from deskhand.jobs.blueprints import BLUEPRINTS, render_command
from deskhand.jobs.triggers.signatures import sign_webhook, verify_webhook
from deskhand.secrets.keyring import Keyring
from deskhand.secrets.secrets import Secrets
from deskhand.store.sqlite import SqliteStore
from deskhand.supervision.lock import Holder, acquire_lock
from deskhand.types.commit import Change
from deskhand.users.owner_alerts import Alerts

DAILY = "---\nschedule: daily 09:00\n---\n\nLook around.\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "deskhand.yaml").write_text("memory: {enabled: false}\n")
    return tmp_path


def run(home: Path, *words: str, stdin: str | None = None, editor: str = "") -> Result:
    env = {"DESKHAND_HOME": str(home), "HOME": str(home), "EDITOR": editor, "VISUAL": editor}
    return CliRunner().invoke(cli, words, env=env, prog_name="deskhand", input=stdin)


def test_from_the_first_to_the_last(home: Path) -> None:
    said = run(
        home,
        "jobs",
        "add",
        "brief",
        "-s",
        "30 7 * * 1-5",
        "-p",
        "What is on?",
        "--to",
        "telegram:1",
    )
    assert said.exit_code == 0, said.output
    assert "Created brief: at 07:30 on Monday through Friday (UTC)." in said.output
    assert "Forecast: 2" in said.output and "jobs are not running" in said.output
    text = (home / "jobs/brief/JOB.md").read_text()
    assert (
        "schedule: 30 7 * * 1-5" in text
        and "channel: telegram" in text
        and text.endswith("What is on?\n")
    )
    assert (
        "brief\ton\t" in run(home, "jobs").output
        and "brief\ton\t" in run(home, "cron", "list").output
    )
    assert "sent to telegram:1" in run(home, "job", "info", "brief").output
    found = json.loads(run(home, "jobs", "list", "--json").output)
    assert next(each for each in found if each["name"] == "brief")["to"] == "telegram:1"
    assert "now disabled" in run(home, "jobs", "disable", "brief").output
    assert "brief is now enabled; next: 20" in run(home, "jobs", "enable", "brief").output
    assert run(home, "jobs", "forecast", "brief").output.startswith("Forecast: 2")
    assert "has not run yet" in run(home, "jobs", "runs", "brief").output
    removed = run(home, "jobs", "remove", "brief").output
    assert removed == "Removed brief. Restore it with: deskhand jobs undo brief\n"
    assert not (home / "jobs/brief").exists()
    back = run(home, "jobs", "undo").output
    assert back.startswith(
        "Restored brief: at 07:30 on Monday through Friday (UTC) (on).\nTo reverse this: "
    )
    assert (home / "jobs/brief/JOB.md").read_text() == text
    assert run(home, "jobs", "undo", "--redo").exit_code != 0
    assert run(home, "jobs", "undo", "brief", "--redo").output.startswith(
        "Undid the creation of brief"
    )
    nothing = run(home, "jobs", "undo", "other")
    assert (
        nothing.exit_code != 0
        and "there is no change of the job 'other' to take back" in nothing.output
    )
    refused = run(home, "jobs", "show", "brief")
    assert refused.exit_code != 0 and "there is no job 'brief'" in refused.output


def test_without_a_service_it_is_run_right_here(home: Path) -> None:
    (home / "deskhand.yaml").write_text(
        "memory: {enabled: false}\ndefaults: {models: [scripted/echo]}\n"
    )
    run(home, "jobs", "add", "brief", "-p", "What is on?", "--to", "telegram:1")
    run(home, "jobs", "add", "other", "-p", "x", "-s", "startup")
    ran = run(home, "jobs", "run", "brief")
    assert ran.exit_code == 0, ran.output
    assert (
        "You said: [The job 'brief' was started by owner." in ran.stdout
        and "What is on?" in ran.stdout
    )
    assert ran.stdout.endswith("brief: done\n")
    assert "Its messages to telegram are sent when Deskhand is running" in ran.stderr
    assert json.loads(run(home, "jobs", "runs", "brief", "--json").output)[0]["state"] == "done"
    assert "has not run yet" in run(home, "jobs", "runs", "other").output, "nothing else is run"
    assert _rows(home, "SELECT count(*) FROM job_boot") == [(0,)], (
        "and it is no start of the service"
    )
    assert _rows(home, "SELECT state FROM outbox") == [("pending",)]


def test_what_fails_here_says_why_and_ends_with_1(home: Path) -> None:
    run(home, "jobs", "add", "brief", "-p", "What is on?")
    failed = run(home, "jobs", "run", "brief")
    assert failed.exit_code == 1 and "brief: went wrong: " in failed.stderr
    assert run(home, "alerts").output == "No alerts.\n", "whoever started it has seen it"
    run(home, "jobs", "pause", "on holiday")
    paused = run(home, "jobs", "run", "brief")
    assert paused.exit_code == 1 and "`deskhand jobs resume` lets them go on" in paused.stderr


def test_beside_a_terminal_that_drives_it_is_not_promised(home: Path) -> None:
    run(home, "jobs", "add", "brief", "-p", "What is on?")
    lock = acquire_lock(home / "state" / "driver.lock", Holder(1, 0.0))
    assert lock is not None
    refused = run(home, "jobs", "run", "brief")
    assert refused.exit_code == 1 and "another terminal is using Deskhand" in refused.stderr
    os.close(lock)


def _rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(home / "state" / "deskhand.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def test_a_file_is_taken_changed_and_refused(home: Path) -> None:
    assert run(home, "jobs", "add", "look", "--file", "-", stdin=DAILY).exit_code == 0
    changed = run(
        home, "jobs", "edit", "look", "--file", "-", stdin=DAILY.replace("09:00", "10:00")
    )
    assert "Changed look: at 10:00 every day" in changed.output
    refused = run(
        home, "jobs", "edit", "look", "--file", "-", stdin=DAILY.replace("09:00", "25:00")
    )
    assert refused.exit_code != 0 and "10:00" in (home / "jobs/look/JOB.md").read_text()
    assert "Nothing was changed" in run(home, "jobs", "edit", "look", editor="true").output
    typed = run(home, "jobs", "edit", "look", editor="sed -i s/10:00/11:00/")
    assert "Changed look: at 11:00" in typed.output, typed.output
    (home / "jobs/bad").mkdir()
    (home / "jobs/bad/JOB.md").write_text("---\nschedule: never\n---\n\nx")
    shown = run(home, "jobs", "show", "bad")
    assert (
        shown.exit_code == 0 and "cannot run:" in shown.output and "schedule: never" in shown.output
    )
    assert "cannot run" in run(home, "jobs").output
    assert run(home, "jobs", "edit", "bad", "--file", "-", stdin=DAILY).exit_code == 0, (
        "what is broken can be mended"
    )


def test_each_blueprint_is_made_by_the_command_that_it_names(home: Path) -> None:
    given = {
        "inbox": "inbox",
        "url": "https://example.org/",
        "folder": "b",
        "text": "call Ann",
        "when": "daily 17:00",
    }
    listed = run(home, "jobs", "blueprints").output
    for each in BLUEPRINTS:
        slots = {slot.name: given[slot.name] for slot in each.slots if slot.required}
        assert render_command(each) in listed
        words = shlex.split(render_command(each, slots, "telegram:1"))[1:]
        tried = run(home, *words, "--dry-run")
        assert (
            tried.exit_code == 0 and "Forecast" in tried.output
        ) or "when an event starts it" in tried.output
        assert not (home / "jobs" / each.name).exists()
        made = run(home, *words)
        assert made.exit_code == 0 and (home / "jobs" / each.name / "JOB.md").exists(), made.output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add",), "one of --prompt, --file or --blueprint"),
        (("add", "-p", "x"), "the job needs a name"),
        (("add", "x", "-p", "x", "-b", "reminder"), "one of --prompt"),
        (("add", "../x", "-p", "x", "-s", "hourly"), "cannot name a job"),
        (("add", "x", "-p", "x", "-s", "often"), "no schedule"),
        (("add", "x", "-p", "x", "--on", "rain"), "is not a trigger"),
        (("add", "x", "-p", "x", "-s", "hourly", "--deliver"), "needs `to:`"),
        (("add", "-b", "none"), "there are: morning-brief"),
        (("add", "-b", "reminder", "--slot", "text"), "SLOT=VALUE"),
        (("add", "-b", "reminder", "--slot", "text=x"), "'when' is missing"),
        (("hook", "none"), "no job 'none'"),
        (("remove", "heartbeat"), "part of Deskhand"),
        (("run", "none"), "no job 'none'"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(home: Path, words: tuple[str, ...], why: str) -> None:
    said = run(home, "jobs", *words)
    assert said.exit_code != 0 and why in said.output, said.output
    assert "Traceback" not in said.output


def test_a_hook_is_opened_with_a_secret_that_is_shown_once(home: Path) -> None:
    run(home, "jobs", "add", "plain", "-p", "x", "-s", "hourly")
    assert "has no webhook trigger" in run(home, "jobs", "hook", "plain").output
    made = run(home, "jobs", "add", "door", "-p", "See who is there.", "--on", "webhook")
    assert "the webhook is closed: it has no secret" in made.output
    said = run(home, "jobs", "hook", "door").output
    secret = said.split("Secret:")[1].split()[0]
    assert "/api/hooks/door" in said and secret.startswith("whsec_")
    settings = read_settings(None, {"DESKHAND_HOME": str(home), "HOME": str(home)})
    held = Secrets(settings.home, dict, lambda: Keyring("x")).list_secrets()
    assert [(each.name, each.value) for each in held] == [("webhook.door", secret)]
    assert verify_webhook(secret, sign_webhook(secret, "1", 1e9, b"x"), b"x", 1e9) == "1"
    shown = run(home, "jobs", "show", "door").output
    assert secret not in shown and "no secret" not in shown
    github = run(home, "jobs", "hook", "door", "--github").output.split("Secret:")[1].split()[0]
    code = hmac.digest(github.encode(), b"x", "sha256").hex()
    assert verify_webhook(github, {"x-hub-signature-256": f"sha256={code}"}, b"x", 1e9)


def test_a_pause_stops_all(home: Path) -> None:
    assert "Jobs were not paused" in run(home, "jobs", "resume").output
    assert run(home, "jobs", "pause", "on holiday").exit_code == 0
    run(home, "jobs", "add", "look", "-p", "x", "-s", "hourly")
    assert "paused: on holiday" in run(home, "jobs", "show", "look").output
    assert "The reason for the pause was: on holiday" in run(home, "job", "resume").output


def test_what_was_counted_is_shown(home: Path) -> None:
    run(home, "jobs", "add", "mail", "-p", "x", "-s", "hourly")
    run(home, "jobs", "add", "new", "-p", "x", "-s", "hourly")
    _count(home, "mail", runs=12, errors=2, gates=24, skips=1)
    counted = "12 runs, 2 failed, 24 stopped by its prerun, 1 skipped"
    assert counted in run(home, "jobs", "show", "mail").output
    assert f"\t{counted}\t" in run(home, "jobs", "list").output
    assert "no runs" in run(home, "jobs", "show", "new").output
    shown = json.loads(run(home, "jobs", "show", "mail", "--json").output)["job"]
    assert (shown["gates"], shown["skips"]) == (24, 1)


def _count(home: Path, job: str, *, runs: int, errors: int, gates: int, skips: int) -> None:
    """As if it had come so often."""

    async def main() -> None:
        store = SqliteStore(home / "state" / "deskhand.db", load_statements())
        await store.change([Change("job_state_count", (job, runs, errors, gates, skips))])
        await store.close()

    anyio.run(main)


def test_alerts_are_listed_and_seen(home: Path) -> None:
    assert run(home, "alerts").output == "No alerts.\n"

    async def main() -> None:
        store = SqliteStore(home / "state" / "deskhand.db", load_statements())
        await store.change(await Alerts(store, SystemClock()).alert_owners("k", "It burns."))
        await store.close()

    anyio.run(main)
    assert "\tnot delivered\tIt burns." in run(home, "alerts").output
    (alert,) = json.loads(run(home, "alerts", "--json", "-n", "1").output)
    assert (alert["text"], alert["state"]) == ("It burns.", "seen")
