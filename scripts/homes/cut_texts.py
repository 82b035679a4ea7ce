"""Cuts the long texts that come with the systems after 200 characters: `cut_texts.py HOME`."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

LONG = 400
KEPT = 200
TEMPLATES = ("AGENTS.md", "IDENTITY.md", "TOOLS.md", "BOOTSTRAP.md", "HEARTBEAT.md", "README.md")


def main(home: Path) -> None:
    for name in TEMPLATES:
        for path in home.rglob(name):
            text = path.read_text()
            if len(text) > LONG:
                path.write_text(text[:KEPT] + "\n")
    state = home / "state/openclaw.sqlite"
    if state.exists():
        cut_jobs(state)


def cut_jobs(path: Path) -> None:
    with sqlite3.connect(path) as db:
        for key, body in db.execute("SELECT job_id, job_json FROM cron_jobs").fetchall():
            job = json.loads(body)
            said = job.get("payload", {}).get("message", "")
            if len(said) > LONG:
                job["payload"]["message"] = said[:KEPT]
                db.execute(
                    "UPDATE cron_jobs SET job_json = ? WHERE job_id = ?", (json.dumps(job), key)
                )
    db.execute("VACUUM")
    db.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
