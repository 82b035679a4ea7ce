"""What an agent or a person does to a job is taken back by one command, step by step, and made
again."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from deskhand.jobs.files import JobFiles
from deskhand.jobs.history import MAX_STEPS, JobHistory
from deskhand.jobs.ledger import list_runs, set_plan
from deskhand.models.base import Request
from deskhand.runtime.app import App
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import say
from deskhand.types.errors import JobInvalid, NoSuchJob
from deskhand.types.identity import Principal
from deskhand.types.jobs import Job
from deskhand.types.messages import Message, ToolCall

OWNER = Principal("owner", ("owner",))
ANN = Principal("ann", ("member",))
BOB = Principal("bob", ("member",))


def all_of(root: Path) -> dict[str, str]:
    """Each job's file and what lies beside it."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.glob("[!.]*/**/*"))
        if path.is_file() and not path.is_symlink()
    }


def test_each_step_goes_back_and_forth(tmp_path: Path) -> None:
    folder = JobFiles(tmp_path, lambda: "UTC")
    seen = list[dict[str, str]]()
    kept = folder.history
    seen.append(all_of(tmp_path))
    folder.write(Job("j", "One.", schedule="daily 09:00"))
    seen.append(all_of(tmp_path))
    (tmp_path / "j" / "JOB.md").write_text("---\nschedule: hourly  # by hand\n---\n\nTwo.\n")
    (tmp_path / "j" / "check.sh").write_text("#!/bin/sh\n")
    seen.append(all_of(tmp_path))
    folder.set_enabled("j", False)
    seen.append(all_of(tmp_path))
    folder.remove("j")
    assert all_of(tmp_path) == {} and kept.last_changed_job() == "j"
    for earlier in (seen[3], seen[2]):
        kept.restore("j")
        assert all_of(tmp_path) == earlier
    kept.restore("j")
    assert all_of(tmp_path) == {}, "what was written by hand is no step of its own"
    with pytest.raises(JobInvalid, match="there is no change of the job 'j' to take back"):
        kept.restore("j")
    with pytest.raises(NoSuchJob, match="nothing to undo"):
        kept.last_changed_job()
    for later in (seen[2], seen[3], {}):
        kept.restore("j", "again")
        assert all_of(tmp_path) == later
    kept.restore("j")
    folder.write(Job("j", "Three.", schedule="daily 10:00"))
    with pytest.raises(JobInvalid, match="there is no undo of the job 'j' to take back"):
        kept.restore("j", "again")
    assert set(folder.scan()) == {"j"}, "what is kept is no job"


def test_what_is_kept_has_an_end_and_nothing_is_written_over(tmp_path: Path) -> None:
    folder = JobFiles(tmp_path, lambda: "UTC")
    for number in range(MAX_STEPS + 15):
        folder.write(Job("j", f"{number}", schedule="hourly"))
    assert len(list((tmp_path / ".kept/j/back").iterdir())) == MAX_STEPS
    folder.remove("j")
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "JOB.md").write_text("by hand")
    with pytest.raises(JobInvalid, match="there is a job 'j' already: move"):
        folder.history.restore("j")
    assert (tmp_path / "j" / "JOB.md").read_text() == "by hand"
    for name in ("../x", "", ".kept"):
        with pytest.raises(JobInvalid, match="cannot name a job"):
            JobHistory(tmp_path).restore(name)


def test_a_linked_folder_is_left_where_it_is(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    root = tmp_path / "jobs"
    theirs.mkdir()
    (theirs / "JOB.md").write_text("---\nschedule: hourly\n---\n\nx\n")
    (theirs / "data").write_text("1")
    root.mkdir()
    Path(root / "j").symlink_to(theirs)
    folder = JobFiles(root, lambda: "UTC")
    folder.remove("j")
    assert folder.scan() == {} and sorted(each.name for each in theirs.iterdir()) == [
        "JOB.md",
        "data",
    ]
    folder.history.restore("j")
    assert (root / "j").is_symlink()
    job = folder.scan()["j"].job
    assert job is not None and job.schedule == "hourly"


def test_a_linked_folder_comes_back_however_it_is_linked(tmp_path: Path) -> None:
    """A relative link leads nowhere from where it is kept."""
    theirs = tmp_path / "theirs"
    root = tmp_path / "jobs"
    theirs.mkdir()
    (theirs / "JOB.md").write_text("---\nschedule: hourly\n---\n\nx\n")
    root.mkdir()
    Path(root / "j").symlink_to("../theirs")
    folder = JobFiles(root, lambda: "UTC")
    folder.remove("j")
    assert "hourly" in (folder.history.read_next("j") or "")
    folder.history.restore("j")
    assert (root / "j").is_symlink() and folder.scan()["j"].job is not None
    folder.remove("j")
    (theirs / "JOB.md").unlink()
    assert folder.history.read_next("j") == "", (
        "what cannot be read is not taken for a job that would be gone"
    )


def test_a_step_that_was_cut_off_is_none(tmp_path: Path) -> None:
    folder = JobFiles(tmp_path, lambda: "UTC")
    folder.write(Job("j", "One.", schedule="hourly"))
    folder.write(Job("j", "Two.", schedule="hourly"))
    cut_off = tmp_path / ".kept/j/back/000000003"
    cut_off.mkdir()
    (cut_off / ".part").write_text("hal")
    assert "One." in (folder.history.read_next("j") or "")
    folder.history.restore("j")
    assert "One." in (tmp_path / "j/JOB.md").read_text(), "and the job is not taken away"
    folder.write(Job("j", "Three.", schedule="hourly"))
    folder.history.restore("j")
    assert "One." in (tmp_path / "j/JOB.md").read_text()


def test_a_step_that_cannot_be_kept_leaves_nothing(tmp_path: Path) -> None:
    folder = JobFiles(tmp_path, lambda: "UTC")
    (tmp_path / "j/JOB.md").mkdir(parents=True)
    with pytest.raises(OSError, match="Is a directory"):
        folder.write(Job("j", "One.", schedule="hourly"))
    assert list((tmp_path / ".kept/j/back").iterdir()) == []


def test_what_comes_back_counts_from_then_on(tmp_path: Path) -> None:
    """What was due while it was removed is not due at once."""
    folder = JobFiles(tmp_path, lambda: "UTC")
    path = folder.write(Job("j", "One.", schedule="hourly"))
    os.utime(path, (1_000.0, 1_000.0))
    folder.remove("j")
    folder.history.restore("j")
    assert path.stat().st_mtime > 1_000_000_000


async def test_a_job_that_an_undo_takes_away_is_forgotten_too(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    async with desk.opened() as app:
        own = app.features.jobs.api
        await own.create(OWNER, Job("j", "One.", schedule="daily 09:00"))
        await own.run(OWNER, "j")
        await app.store.change([set_plan("j", 5.0, "daily 09:00 UTC")])
        assert await own.undo(OWNER, "j") == ("j", None)
        assert [(run.state, run.said) for run in await list_runs(app.store, "j", 20)] == [
            ("skipped", "the job was removed")
        ]
        assert await app.store.query("job_state_all", ()) == []


async def test_what_an_agent_did_to_a_job_a_person_takes_back(tmp_path: Path) -> None:
    """It removes one, changes another and makes a third; one command each, and the clock goes by it
    at once."""

    def script(request: Request) -> Message:
        done = sum(each.message.role == "tool" for each in request.messages)
        changes = (
            {"action": "delete", "name": "brief"},
            {
                "action": "update",
                "name": "review",
                "config": "---\nschedule: '0 3 * * *'\n---\n\nOther.",
            },
            {"action": "create", "name": "spy", "config": "---\nschedule: hourly\n---\n\nSpy."},
        )
        if done >= len(changes):
            return say("done")
        return say(
            "", ToolCall(f"c{done}", "manage_job", msgspec.Raw(msgspec.json.encode(changes[done])))
        )

    desk = JobDesk(tmp_path, script, memory={"enabled": False})
    desk.write("brief", "daily 09:00", "Brief me.")
    desk.hook("brief", "check.sh", "#!/bin/sh\n")
    desk.write("review", "daily 10:00", "Look back.")
    desk.write("go", "daily 22:14", "Tidy my jobs.")
    before = all_of(desk.jobs)
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        await desk.ended(app, "go")
        assert sorted(await _names(app)) == ["go", "review", "spy"]
        said = [
            each.message.text
            for each in desk.model.requests[-1].messages
            if each.message.role == "tool"
        ]
        own = app.features.jobs.api
        assert await own.undo(OWNER, "") == ("spy", None)
        name, view = await own.undo(OWNER, "")
        assert (
            name == "review"
            and view is not None
            and view.job is not None
            and view.job.schedule == "daily 10:00"
        )
        assert (await own.undo(OWNER, "brief"))[1] is not None
        assert all_of(desk.jobs) == before, said
        assert (await app.features.jobs.api.get(OWNER, "brief")).next_at is not None


async def _names(app: App) -> list[str]:
    return [view.name for view in await app.features.jobs.api.list_jobs(OWNER) if not view.builtin]


async def test_everybody_undoes_their_own(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    async with desk.opened() as app:
        await app.people.add_user("ann", "member")
        await app.people.add_user("bob", "member")
        own = app.features.jobs.api
        await own.create(ANN, Job("hers", "Secret.", schedule="daily 09:00"))
        await own.create(OWNER, Job("mine", "Own.", schedule="daily 09:00"))
        for name in ("hers", "mine", "", "nobodys", "no name"):
            with pytest.raises(NoSuchJob):
                await own.undo(BOB, name)
        with pytest.raises(NoSuchJob):
            await own.undo(ANN, "mine")
        await own.remove(ANN, "hers")
        with pytest.raises(NoSuchJob, match="there is no job 'hers' of yours"):
            await own.undo(BOB, "hers")
        name, view = await own.undo(ANN, "hers")
        assert (
            view is not None and view.job is not None and (name, view.job.person) == ("hers", "ann")
        )
        await own.remove(OWNER, "mine")
        with pytest.raises(NoSuchJob):
            await own.undo(ANN, "mine")
