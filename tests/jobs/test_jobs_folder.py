"""The folder of jobs as people, programs and accidents leave it: nothing in it keeps the others
from running."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from deskhand.jobs.files import JobFiles
from deskhand.store.base import Accepted, FirstCommit
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.jobs import JobDesk
from deskhand.testing.temporary_home import wait_for
from deskhand.types.commit import Change
from deskhand.types.errors import StoreUnavailable
from deskhand.types.identity import Inbound, Principal
from deskhand.types.jobs import Job

OWNER = Principal("owner", ("owner",))
TEXT = "---\nschedule: every 1m\n---\n\nDo it.\n"


def test_a_link_in_a_circle_and_a_name_of_any_bytes_stop_nothing(tmp_path: Path) -> None:
    odd = os.path.join(os.fsencode(tmp_path), b"caf\xe9")  # noqa: PTH118 -- bytes
    os.mkdir(odd)  # noqa: PTH102 -- bytes
    Path(os.fsdecode(odd), "JOB.md").write_text(TEXT)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "JOB.md").write_text(TEXT)
    folder = JobFiles(tmp_path, lambda: "UTC")
    for _ in range(2):
        found = folder.scan()
        assert {name: one.job is not None for name, one in found.items()} == {
            "caf\ufffd": False,
            "good": True,
        }
        assert "cannot name a job" in found["caf\ufffd"].problem
        assert msgspec.json.encode([(one.name, one.problem) for one in found.values()])


@pytest.mark.parametrize(
    "front",
    [
        "schedule: daily 09:00",
        "Enabled: true\nschedule: daily 09:00",
        "  enabled: yes\n  schedule: daily 09:00",
    ],
)
def test_it_is_switched_however_its_file_is_written(tmp_path: Path, front: str) -> None:
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "JOB.md").write_text(f"---\n{front}\n---\n\nDo it.\n")
    folder = JobFiles(tmp_path, lambda: "UTC")
    for on in (False, True):
        folder.set_enabled("j", on)
        job = folder.scan()["j"].job
        assert job == Job("j", "Do it.", schedule="daily 09:00", enabled=on)


async def test_a_folder_that_cannot_be_read_stops_no_clock(tmp_path: Path) -> None:
    """What is known goes on, and what is no file of anybody too; it is read again when it can
    be."""
    desk = JobDesk(tmp_path)
    did = list[str]()
    desk.write("j", "every 1m")

    async def sweep(job: Job) -> str:
        did.append(job.name)
        return ""

    async with desk.running() as app:
        app.features.jobs.runs.chores["sweep"] = sweep
        app.features.jobs.files.builtins.append(
            lambda: [Job("sweeper", kind="chore", chore="sweep", schedule="every 1m")]
        )
        await desk.look(app)
        aside = desk.jobs.rename(tmp_path / "aside")
        desk.jobs.write_text("no folder")
        desk.clock.advance(60)
        await desk.look(app)
        await desk.ended(app, "j")
        await desk.ended(app, "sweeper")
        desk.jobs.unlink()
        aside.rename(desk.jobs)
        await desk.pass_time(app, 60)
        await desk.ended(app, "j", 2)


class FullOnce(SqliteStore):
    """The disk is full when the first message is handed in, and has room again."""

    full = True

    async def accept(
        self,
        inbound: Inbound,
        principal: Principal,
        session: str,
        first: FirstCommit | None = None,
        changes: Sequence[Change] = (),
    ) -> Accepted:
        if self.full:
            self.full = False
            raise StoreUnavailable("the disk is full")
        return await super().accept(inbound, principal, session, first, changes)


async def test_what_waits_is_not_forgotten_when_the_disk_was_full(tmp_path: Path) -> None:
    """A look that broke off had seen that something was written, and had not done it."""
    desk = JobDesk(tmp_path)
    desk.store = FullOnce
    desk.write("j", "daily 09:00")
    async with desk.running() as app:
        await desk.look(app)
        assert isinstance(app.store, FullOnce)
        await app.features.jobs.api.run(OWNER, "j")
        await wait_for(partial(_was_full, app.store))
        app.features.jobs.scheduler.wake()
        assert (await desk.ended(app, "j")).state == "done"


async def _was_full(store: FullOnce) -> bool:
    return not store.full
