"""The jobs of other systems, as they stand in their files and as ours."""

from __future__ import annotations

import json
from pathlib import Path

from deskhand.types.identity import Address
from tests.importers.moving import home_of, read


def test_each_field_of_a_job_of_operator_use(tmp_path: Path) -> None:
    """Once at a time, switched off, gone when it has run: each as it stands in crons.json; and no
    run of the model has the history of the chat that it writes to."""
    home = home_of("operator-use", tmp_path)
    payload = {"message": "Look.", "deliver": False, "channel": "telegram", "chat_id": "4711"}
    at = {"mode": "at", "expr": "0 9 24 12 *", "tz": "Europe/Berlin"}
    cron = {"mode": "cron", "expr": "0 9 * * *"}
    jobs = [
        {
            "id": "1",
            "name": "once",
            "schedule": at,
            "payload": payload,
            "state": {"next_run_at_ms": 1798099200000},
        },
        {"id": "2", "name": "off", "schedule": cron, "payload": payload, "enabled": False},
        {"id": "3", "schedule": cron, "payload": {"message": "Nowhere."}, "delete_after_run": True},
    ]
    (home / "crons.json").write_text(json.dumps({"version": 1, "jobs": jobs}))
    once, off, nowhere = (each.job for each in read(home).jobs)
    assert (once.schedule, once.delete_after_run, once.enabled) == (
        "at 2026-12-24T08:00:00+00:00",
        True,
        True,
    )
    assert (off.schedule, off.timezone, off.delete_after_run, off.enabled) == (
        "0 9 * * *",
        "UTC",
        False,
        False,
    )
    assert (nowhere.name, nowhere.to, nowhere.delete_after_run) == ("3", None, True)
    chat = Address("telegram", "7000000001", "4711")
    assert [(each.session, each.to) for each in (once, off, nowhere)] == [
        ("isolated", chat),
        ("isolated", chat),
        ("isolated", None),
    ]


def test_each_field_of_a_job_of_agent_computer(tmp_path: Path) -> None:
    """In either form of the file; its times are those of UTC, and what approves by itself is not
    taken over unseen."""
    home = home_of("agent-computer", tmp_path)
    jobs = [
        {
            "id": "look",
            "name": "Look",
            "schedule": "daily 09:00",
            "prompt": "Look.",
            "approval_policy": "auto_approve",
        },
        {
            "id": "own",
            "schedule": "hourly :15",
            "prompt": "Tidy.",
            "session_id": "main",
            "enabled": False,
        },
    ]
    for form in (jobs, {"jobs": jobs}):
        (home / "workspace/cron.json").write_text(json.dumps(form))
        found = read(home)
        look, own = (each.job for each in found.jobs)
        assert (look.name, look.schedule, look.timezone, look.prompt) == (
            "look",
            "daily 09:00",
            "UTC",
            "Look.",
        )
        assert (look.session, look.enabled, own.session, own.enabled) == (
            "cron-look",
            True,
            "main",
            False,
        )
        assert [each.what for each in found.left_out if "cron" in each.what] == [
            "jobs in workspace/cron.json: the field approval_policy (1)"
        ]
