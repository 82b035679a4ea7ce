"""Backups: what is in them, that they are verified, and what a restored home does not do again."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import apsw
import pyrage
import pytest
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.config.config import Home, Settings, read_settings
from deskhand.config.statements import load_statements
from deskhand.runtime.app import OWNER, App
from deskhand.store.blobs import Blobs
from deskhand.store.queries import enqueue
from deskhand.store.sqlite import SqliteStore
from deskhand.supervision.backup import make_backup, verify_archive
from deskhand.supervision.backup_places import FolderPlace, list_backups, prune_backups
from deskhand.supervision.lock import Holder, acquire_lock
from deskhand.supervision.restore import HELD_BACK, open_backup, restore_backup
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import say
from deskhand.tools.queries import list_file_labels, set_label
from deskhand.types.commit import Commit, Outgoing
from deskhand.types.errors import DeskhandError, NotLeading
from deskhand.types.events import MessageReceived, TurnEnded
from deskhand.types.identity import Address, Command, Inbound, Said
from deskhand.types.labels import LOCAL, Label
from deskhand.types.messages import Message, Text
from deskhand.types.turn import STOP_TURN_ONLY

T = TypeVar("T")
UNTRUSTED = Label("untrusted", source="a page")
NOW = 1_795_500_000.0
HERE = Address("terminal", chat="x")
SESSION = "default/terminal:x"


def settings_at(root: Path, text: str = "") -> Settings:
    root.mkdir(parents=True, exist_ok=True)
    (root / "deskhand.yaml").write_text(text)
    return read_settings(environment={"DESKHAND_HOME": str(root), "HOME": str(root.parent)})


@asynccontextmanager
async def opened(home: Home) -> AsyncIterator[SqliteStore]:
    home.make_folder(home.state)
    store = SqliteStore(home.database, load_statements())
    yield store
    await store.close()


async def in_thread(function: Callable[..., T], *args: object, **options: object) -> T:
    return await anyio.to_thread.run_sync(partial(function, *args, **options))


def said(text: str) -> Message:
    return Message("user", (Text(text),))


async def fill(settings: Settings) -> str:
    """A home with something of each kind. Returns the name of a blob."""
    home = settings.home
    async with opened(home) as store:
        events = (MessageReceived(1, OWNER, HERE, said("hello"), "one"), TurnEnded("done", (1,)))
        await store.commit(Commit(SESSION, 1, 1.0, events, close=True))
    digest = await Blobs(home.blobs).put(b"a picture")
    work = home.workspace("default")
    work.mkdir(parents=True)
    (work / "notes.txt").write_text("milk")
    (work / "tool.sh").write_text("#!/bin/sh\n")
    (work / "tool.sh").chmod(0o755)
    (work / "link").symlink_to("notes.txt")
    (work / "node_modules").mkdir()
    (work / "node_modules/x.js").write_text("x")
    (home.root / "logs").mkdir()
    (home.root / "logs/deskhand.log").write_text("log")
    home.secrets.write_text("{}")
    home.lock.write_text("")
    return digest


async def test_a_home_comes_back_as_it_was(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home", "timezone: Europe/Berlin\n")
    digest = await fill(settings)
    made, listed = await in_thread(
        make_backup, settings, FolderPlace(tmp_path / "backups"), now=NOW
    )
    assert made.path.name == f"deskhand-{made.home}-2026-11-24T06-00-00.tar.gz"
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert listed.events == 2 and list(settings.home.state.glob("backup-*")) == []
    fresh = settings_at(tmp_path / "fresh")
    (fresh.home.root / "deskhand.yaml").unlink()
    done = await in_thread(restore_backup, fresh, made.path, now=NOW)
    assert done.aside is None and (done.stopped, done.held_back) == (0, 0)
    home = fresh.home
    work = home.workspace("default")
    assert (home.root / "deskhand.yaml").read_text() == "timezone: Europe/Berlin\n"
    assert (work / "notes.txt").read_text() == "milk" and os.access(work / "tool.sh", os.X_OK)
    assert (work / "link").readlink() == Path("notes.txt")
    assert await Blobs(home.blobs).get(digest) == b"a picture"
    assert home.secrets.exists() and stat.S_IMODE(home.root.stat().st_mode) == 0o700
    for gone in (home.lock, home.root / "logs/deskhand.log", work / "node_modules"):
        assert not gone.exists(), gone
    async with opened(home) as store:
        assert (await store.audit())[1] == []
        assert [type(each.event) for each in await store.events(SESSION)] == [
            MessageReceived,
            TurnEnded,
        ]


async def test_what_was_acknowledged_before_it_began_is_in_it(tmp_path: Path) -> None:
    """While conversations go on, and files are written."""
    desk = JobDesk(tmp_path / "home", lambda request: say("Fine."))
    acknowledged: list[str] = []

    async def talk(app: App, chat: int) -> None:
        at = Address("terminal", chat=f"c{chat}")
        work = desk.settings.home.workspace("default")
        work.mkdir(parents=True, exist_ok=True)
        for number in range(100_000):
            name = f"{chat}-{number}"
            inbound = Inbound(name, at, "owner", 1.0, Said(said(name)))
            assert (await app.door.submit(inbound)).status == "accepted"
            acknowledged.append(name)
            with (work / "growing.txt").open("a") as file:
                file.write("x" * 1000)
            await anyio.sleep(0.001)

    async with desk.running() as app, anyio.create_task_group() as tasks:
        for chat in range(4):
            tasks.start_soon(talk, app, chat)
        for number in range(3):
            while len(acknowledged) < 40 * (number + 1):
                await anyio.sleep(0.01)
            before = set(acknowledged)
            made = await in_thread(
                make_backup, desk.settings, FolderPlace(tmp_path / "backups"), now=NOW
            )
            fresh = settings_at(tmp_path / f"fresh{number}")
            await in_thread(restore_backup, fresh, made[0].path, now=NOW, replace=True)
            async with opened(fresh.home) as store:
                assert (await store.audit())[1] == []
                there = {row.inbound.external_id for _, row in await store.accepted_since(0)}
            assert before <= there
        tasks.cancel_scope.cancel()


async def test_nothing_is_done_a_second_time(tmp_path: Path) -> None:
    """What was on its way may have arrived since, and a turn may have ended."""
    settings = settings_at(tmp_path / "home")
    async with opened(settings.home) as store:
        received = MessageReceived(1, OWNER, HERE, said("post it"), "one")
        await store.commit(Commit(SESSION, 1, 1.0, (received,)))
        letter = Outgoing("key", Address("telegram", "1", "2"), (Text("a letter"),))
        await store.change([enqueue(letter, 1.0)])
    made, _ = await in_thread(make_backup, settings, FolderPlace(tmp_path / "backups"), now=NOW)
    done = await in_thread(restore_backup, settings, made.path, now=NOW, replace=True)
    assert (done.stopped, done.held_back) == (1, 1)
    assert done.aside is not None and (done.aside / "state/deskhand.db").exists()
    async with opened(settings.home) as store:
        assert await store.outbox_due(NOW, 10) == []
        ((state, error),) = store._fetch_all("SELECT state, error FROM outbox")
        assert (state, error) == ("failed", HELD_BACK)
        (waiting,) = await store.list_waiting(SESSION)
        assert waiting.inbound.body == Command("stop", STOP_TURN_ONLY)


async def test_a_database_on_a_server_is_forgotten_when_it_is_restored(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home", "timezone: UTC\n")
    await fill(settings)
    config = settings.home.root / "deskhand.yaml"
    config.write_text("store: postgresql://there/desk\ntimezone: UTC\n")
    made, _ = await in_thread(make_backup, settings, FolderPlace(tmp_path / "backups"), now=NOW)
    await in_thread(restore_backup, settings, made.path, now=NOW, replace=True)
    assert config.read_text() == "timezone: UTC\n"


def rewrite(path: Path, change: Callable[[tarfile.TarFile, tarfile.TarInfo, bytes], None]) -> None:
    """Write an archive anew; `change` adds each entry as it wants."""
    out = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=out, mode="w:gz") as new:
        for entry in old:
            file = old.extractfile(entry) if entry.isfile() else None
            change(new, entry, file.read() if file else b"")
    path.write_bytes(out.getvalue())


def add(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def changed_file(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    add(tar, entry, b"melk" if entry.name.endswith("notes.txt") else data)


def without_list(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    if entry.name != "backup.json":
        add(tar, entry, data)


def without_a_file(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    if not entry.name.endswith("notes.txt"):
        add(tar, entry, data)


def outside(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    if entry.name.endswith("notes.txt"):
        entry.name = "home/../../escaped.txt"
    add(tar, entry, data)


def through_a_link(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    if entry.name.endswith("notes.txt"):
        link = tarfile.TarInfo("home/way")
        link.type = tarfile.SYMTYPE
        link.linkname = "/tmp"
        tar.addfile(link)
        entry.name = "home/way/escaped.txt"
    add(tar, entry, data)


def device(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    if entry.name.endswith("notes.txt"):
        entry.type = tarfile.FIFOTYPE
    add(tar, entry, b"" if entry.type == tarfile.FIFOTYPE else data)


def newer(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    add(tar, entry, data.replace(b'"format": 1', b'"format": 2'))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (changed_file, "is not as it was"),
        (without_list, "no list"),
        (without_a_file, "is missing"),
        (outside, "does not lie in the home"),
        (through_a_link, "lies behind a link"),
        (device, "is no file, folder or link"),
        (newer, "a newer Deskhand made it"),
    ],
)
async def test_an_archive_that_was_changed_is_refused(
    change: Callable[[tarfile.TarFile, tarfile.TarInfo, bytes], None], why: str, tmp_path: Path
) -> None:
    settings = settings_at(tmp_path / "home")
    await fill(settings)
    made, _ = await in_thread(make_backup, settings, FolderPlace(tmp_path / "backups"), now=NOW)
    rewrite(made.path, change)
    before = sorted(settings.home.root.rglob("*"))
    with pytest.raises(DeskhandError, match=why):
        await in_thread(restore_backup, settings, made.path, now=NOW, replace=True)
    assert sorted(settings.home.root.rglob("*")) == before
    assert not (tmp_path / "escaped.txt").exists() and not Path("/tmp/escaped.txt").exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["backups", "home"]


async def test_an_archive_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    await fill(settings)
    made, _ = await in_thread(make_backup, settings, FolderPlace(tmp_path / "backups"), now=NOW)
    whole = made.path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        made.path.write_bytes(whole[:length])
        with made.path.open("rb") as file, pytest.raises(DeskhandError, match=r"damaged|no list"):
            await in_thread(verify_archive, file, tmp_path / "tried")
    made.path.write_bytes(gzip.compress(b"no archive"))
    with made.path.open("rb") as file, pytest.raises(DeskhandError, match="damaged"):
        await in_thread(verify_archive, file, tmp_path / "tried")


async def test_a_damaged_log_is_not_backed_up_in_silence(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    await fill(settings)
    with apsw.Connection(str(settings.home.database)) as db:
        db.execute("UPDATE event SET body = x'7b7d' WHERE n = 1")
    with pytest.raises(DeskhandError, match="log is damaged"):
        await in_thread(make_backup, settings, FolderPlace(tmp_path / "backups"), now=NOW)
    assert not (tmp_path / "backups").exists()


async def test_only_who_has_the_key_can_read_it(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    await fill(settings)
    mine, other = (pyrage.x25519.Identity.generate() for _ in range(2))
    made, _ = await in_thread(
        make_backup,
        settings,
        FolderPlace(tmp_path / "backups"),
        now=NOW,
        recipient=str(mine.to_public()),
    )
    assert made.is_encrypted and b"milk" not in gzip.compress(made.path.read_bytes())
    for name, key in (("key", mine), ("other", other)):
        (tmp_path / name).write_text(f"# created: today\n{key}\n")
    with pytest.raises(DeskhandError, match="is encrypted"), open_backup(made.path):
        pass
    wrong = str(tmp_path / "other")
    with pytest.raises(DeskhandError, match="cannot be decrypted"), open_backup(made.path, wrong):
        pass
    key = str(tmp_path / "key")
    done = await in_thread(restore_backup, settings, made.path, now=NOW, identity=key, replace=True)
    assert done.listed.events == 2
    with pytest.raises(DeskhandError, match="no public key"):
        await in_thread(
            make_backup, settings, FolderPlace(tmp_path / "backups"), now=NOW, recipient="age1wrong"
        )


async def test_only_backups_are_deleted_and_the_newest_stay(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    await fill(settings)
    folder = tmp_path / "backups"
    for day in range(4):
        made, _ = await in_thread(
            make_backup, settings, FolderPlace(folder), now=NOW + day * 86_400
        )
    (folder / "deskhand-mine.tar.gz").write_text("mine")
    assert [each.at for each in list_backups(FolderPlace(folder))] == [
        NOW + day * 86_400 for day in (3, 2, 1, 0)
    ]
    gone = prune_backups(FolderPlace(folder), made, 2)
    assert [each.at for each in gone] == [NOW + 86_400, NOW]
    assert (
        len(list_backups(FolderPlace(folder))) == 2 and (folder / "deskhand-mine.tar.gz").exists()
    )
    assert prune_backups(FolderPlace(folder), made, 0) == []


async def test_a_folder_in_the_home_is_not_in_its_own_backups(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home", f"backup: {{folder: {tmp_path}/home/backups}}\n")
    await fill(settings)
    folder = settings.home.root / "backups"
    await in_thread(make_backup, settings, FolderPlace(folder), now=NOW)
    _, listed = await in_thread(make_backup, settings, FolderPlace(folder), now=NOW + 1)
    assert not [inner for inner in listed.files if inner.startswith("backups")]


async def test_it_is_made_by_itself(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    desk = JobDesk(
        tmp_path / "home", backup={"folder": str(folder), "schedule": "every 1h", "keep": 2}
    )
    async with desk.running() as app:
        for number in range(1, 4):
            await desk.pass_time(app, 3600)
            run = await desk.ended(app, "backup", number)
            assert run.state == "done", run
    assert len(list_backups(FolderPlace(folder))) == 2


async def test_there_is_no_such_job_without_a_folder(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path / "home")
    async with desk.running() as app:
        assert "backup" not in app.features.jobs.files.scan_with_builtins()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    for name, value in {"HOME": tmp_path, "DESKHAND_HOME": tmp_path / "home"}.items():
        monkeypatch.setenv(name, str(value))

    def command(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["backup", *words])
        return done.exit_code, done.output

    return command


def test_the_command(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home", "agents: {far: {workspace: /srv/far}}\n")
    code, out = run("make", str(tmp_path / "b"))
    assert code == 1 and "no database yet" in out
    anyio.run(fill, settings)
    code, out = run("make")
    assert code == 2 and "deskhand config set backup.folder FOLDER" in out
    code, out = run("make", str(tmp_path / "b"))
    assert (
        code == 0
        and "Verified." in out
        and "the workspace of far, /srv/far: it lies outside" in out
    )
    (made,) = list_backups(FolderPlace(tmp_path / "b"))
    code, out = run("list", str(tmp_path / "b"))
    assert code == 0 and made.path.name in out
    code, out = run("verify", str(made.path))
    assert code == 0 and "2 events, all as they were" in out
    code, out = run("restore", str(made.path))
    assert code == 1 and "--replace" in out
    held = acquire_lock(settings.home.serve_lock, Holder(4711, 1.0))
    assert held is not None
    code, out = run("restore", str(made.path), "--replace")
    assert code == 1 and "process 4711" in out and "stop it first" in out
    os.close(held)
    code, out = run("restore", str(made.path), "--replace")
    assert code == 0 and "is kept" in out


def test_who_erases_something_is_told_of_the_backups_that_hold_it(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    settings = settings_at(tmp_path / "home", f"backup: {{folder: {tmp_path}/b}}\n")
    anyio.run(fill, settings)
    assert run("make")[0] == 0
    done = CliRunner().invoke(cli, ["sessions", "erase", "x", "--yes"])
    assert done.exit_code == 0, done.output
    assert "1 backup holds it until deleted: deskhand backup list" in done.output


# ---------------------------------------------------------------------- what attacking it found


def test_only_one_is_made_at_a_time(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    held = acquire_lock(settings.home.state / "backup.lock", Holder(4711, 1.0))
    assert held is not None
    with pytest.raises(DeskhandError, match="process 4711 is making a backup"):
        make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    os.close(held)
    left = settings.home.state / "backup-killed"
    left.mkdir()
    make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    assert not left.exists(), "what one left behind that was killed is gone"


def test_what_was_just_made_stays_whatever_the_clock_said(tmp_path: Path) -> None:
    """Two came from a time to come; the clock is right again."""
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    folder = tmp_path / "b"
    for at in (NOW + 3e8, NOW + 3e8 + 1):
        make_backup(settings, FolderPlace(folder), now=at)
    for day in range(4):
        made, _ = make_backup(settings, FolderPlace(folder), now=NOW + day)
        prune_backups(FolderPlace(folder), made, 2)
        assert made.path.exists()
    assert [each.at - NOW for each in list_backups(FolderPlace(folder))] == [3e8 + 1, 3e8, 3, 2]


def test_homes_with_one_folder_leave_each_others_alone(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    for name in ("one", "other"):
        settings = settings_at(tmp_path / name)
        anyio.run(fill, settings)
        for day in range(3):
            made, _ = make_backup(settings, FolderPlace(folder), now=NOW + day)
            prune_backups(FolderPlace(folder), made, 2)
    assert len(list_backups(FolderPlace(folder))) == 4


def test_names_that_are_no_text_and_links_to_another_disk(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    home = settings.home
    work = os.fsencode(home.workspace("default"))
    with open(work + b"/caf\xe9.txt", "wb") as file:  # noqa: PTH123 -- no text
        file.write(b"coffee")
    os.mkfifo(home.workspace("default") / "pipe")
    elsewhere = tmp_path / "big"
    home.blobs.rename(elsewhere)
    home.blobs.symlink_to(elsewhere)
    made, listed = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    assert listed.left_out == ()
    restore_backup(settings, made.path, now=NOW, replace=True)
    assert os.listdir(work).count(b"caf\xe9.txt") == 1  # noqa: PTH208 -- bytes
    assert not home.blobs.is_symlink() and len(list(home.blobs.rglob("*"))) == 2
    assert not (home.workspace("default") / "pipe").exists()


def test_a_file_of_a_conversation_that_is_gone_is_said(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    digest = anyio.run(fill, settings)
    with apsw.Connection(str(settings.home.database)) as db:
        db.execute("INSERT INTO blob_use VALUES (?, 's', 1)", (digest,))
    Blobs(settings.home.blobs).path(digest).unlink()
    _, listed = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    assert listed.left_out == ("1 files of conversations: they are not in state/blobs",)


def database_as_link(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    if entry.name == "home/state/deskhand.db":
        entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, "/tmp/other.db", 0
        tar.addfile(entry)
    else:
        add(tar, entry, data)


def twice(tar: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> None:
    add(tar, entry, data)
    if entry.name.endswith("notes.txt"):
        add(tar, entry, b"again")


@pytest.mark.parametrize(
    ("change", "why"), [(database_as_link, "is a link"), (twice, "is in it twice")]
)
def test_an_archive_that_would_write_elsewhere_is_refused(
    change: Callable[[tarfile.TarFile, tarfile.TarInfo, bytes], None], why: str, tmp_path: Path
) -> None:
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    made, _ = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    rewrite(made.path, change)
    with made.path.open("rb") as file, pytest.raises(DeskhandError, match=why):
        verify_archive(file, tmp_path / "tried")


def test_a_configuration_of_another_folder_is_not_written(tmp_path: Path) -> None:
    """The file in the home is a link into the owner's own repository."""
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    own = tmp_path / "dotfiles.yaml"
    own.write_text("store: postgresql://x\n")
    config = settings.home.root / "deskhand.yaml"
    config.unlink()
    config.symlink_to(own)
    made, _ = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    restore_backup(settings, made.path, now=NOW, replace=True)
    assert own.read_text() == "store: postgresql://x\n"
    assert config.read_text() == "" and not config.is_symlink()


def test_jobs_that_ran_are_not_run_again(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    with apsw.Connection(str(settings.home.database)) as db:
        db.execute(
            "INSERT INTO job_run(job, slot, state, due_at, body)"
            " VALUES ('a', 's', 'running', 1, x'')"
        )
        db.execute("INSERT INTO job_state(job, seen_at, plan) VALUES ('a', 1, '')")
    made, _ = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    restore_backup(settings, made.path, now=NOW + 5, replace=True)
    with apsw.Connection(str(settings.home.database)) as db:
        assert db.execute("SELECT state, said FROM job_run").fetchall() == [
            ("interrupted", "restored from a backup")
        ]
        assert db.execute("SELECT seen_at FROM job_state").fetchall() == [(NOW + 5,)]


def test_a_home_that_is_a_disk_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_at(tmp_path / "home", "timezone: Europe/Berlin\n")
    anyio.run(fill, settings)
    made, _ = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    (settings.home.root / "deskhand.yaml").write_text("timezone: UTC\n")
    monkeypatch.setattr(os.path, "ismount", lambda path: path == settings.home.root)
    done = restore_backup(settings, made.path, now=NOW, replace=True)
    assert done.aside is not None and done.aside.parent == settings.home.root
    assert (done.aside / "deskhand.yaml").read_text() == "timezone: UTC\n"
    assert (settings.home.root / "deskhand.yaml").read_text() == "timezone: Europe/Berlin\n"
    _, listed = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW + 1)
    assert not [inner for inner in listed.files if ".before-" in inner]


@pytest.mark.parametrize("own_disk", [False, True])
def test_no_home_that_was_moved_aside_is_replaced(
    own_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two restores within a second give the same name."""
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    made, _ = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    if own_disk:
        monkeypatch.setattr(os.path, "ismount", lambda path: path == settings.home.root)
    asides = []
    for number in range(3):
        (settings.home.root / "mark").write_text(str(number))
        asides.append(restore_backup(settings, made.path, now=NOW, replace=True).aside)
    assert [(each / "mark").read_text() for each in asides if each] == ["0", "1", "2"]


def test_a_home_that_cannot_be_moved_aside_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    made, _ = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    (settings.home.root / "mark").write_text("mine")
    rename = Path.rename

    def refuse_aside(path: Path, target: Path) -> Path:
        if ".before-" in str(target):
            raise OSError(errno.EIO, "the disk failed", str(target))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse_aside)
    with pytest.raises(OSError, match="the disk failed"):
        restore_backup(settings, made.path, now=NOW, replace=True)
    assert (settings.home.root / "mark").read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b", "home"]


async def test_who_waited_while_the_home_was_replaced_does_not_drive(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    await fill(settings)
    made, _ = await in_thread(make_backup, settings, FolderPlace(tmp_path / "b"), now=NOW)
    async with opened(settings.home) as waiting:
        await in_thread(restore_backup, settings, made.path, now=NOW, replace=True)
        with pytest.raises(NotLeading, match="was replaced"):
            async with waiting.lead():
                pass


def test_a_broken_configuration_is_no_obstacle(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    """Neither one that is there, nor one that is in the backup."""
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    config = settings.home.root / "deskhand.yaml"
    config.write_bytes(b"timezone: [\xe9\n")
    made, _ = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    for words in (("list", str(tmp_path / "b")), ("verify", str(made.path))):
        assert run(*words)[0] == 0
    code, out = run("restore", str(made.path), "--replace")
    assert code == 0, out
    assert config.read_bytes() == b"timezone: [\xe9\n"


def test_a_secret_key_in_the_wrong_place_is_not_said(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    key = str(pyrage.x25519.Identity.generate())
    with pytest.raises(DeskhandError, match="this is the secret key") as error:
        make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW, recipient=key)
    assert key not in str(error.value)


@pytest.mark.parametrize("inner", ["", "state/b", "agents/default/workspace/b"])
def test_a_folder_that_agents_could_read_is_refused(inner: str, tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    with pytest.raises(DeskhandError, match="belongs to the home itself"):
        make_backup(settings, FolderPlace(settings.home.root / inner), now=NOW)


def test_what_came_from_outside_is_known_wherever_it_is_restored(tmp_path: Path) -> None:
    """Labels are of real paths: of the home, and of a workspace on another disk."""
    settings = settings_at(tmp_path / "home")
    anyio.run(fill, settings)
    home = settings.home
    disk = tmp_path / "disk"
    home.workspace("default").rename(disk)
    home.workspace("default").symlink_to(disk)
    marked = {str(disk / "notes.txt"): UNTRUSTED, str(home.root / "shared/page.txt"): UNTRUSTED}

    async def mark() -> None:
        async with opened(home) as store:
            await store.change([set_label(path, label, "s", 1.0) for path, label in marked.items()])

    async def labels(where: Home) -> dict[str, Label]:
        async with opened(where) as store:
            return await list_file_labels(store)

    anyio.run(mark)
    made, _ = make_backup(settings, FolderPlace(tmp_path / "b"), now=NOW)
    fresh = settings_at(tmp_path / "elsewhere")
    restore_backup(fresh, made.path, now=NOW, replace=True)
    root = fresh.home.root
    assert set(anyio.run(labels, fresh.home)) == {
        str(root / "agents/default/workspace/notes.txt"),
        str(root / "shared/page.txt"),
    }


async def test_a_label_that_comes_while_files_are_copied_is_kept(tmp_path: Path) -> None:
    """And so is the one that was there before."""
    settings = settings_at(tmp_path / "home")
    await fill(settings)
    folder = settings.home.workspace("default")
    before, later = str(folder / "notes.txt"), str(folder / "page.txt")

    async def change(path: str, label: Label) -> None:
        async with opened(settings.home) as store:
            await store.change([set_label(path, label, "s", 1.0)])

    await change(before, UNTRUSTED)

    def progress(text: str) -> None:
        if text == "copying files":
            Path(later).write_text("from a page")
            anyio.run(change, later, UNTRUSTED)
            anyio.run(change, before, LOCAL)

    made, _ = await in_thread(
        make_backup, settings, FolderPlace(tmp_path / "b"), now=NOW, progress=progress
    )
    await in_thread(restore_backup, settings, made.path, now=NOW, replace=True)
    async with opened(settings.home) as store:
        found = await list_file_labels(store)
    assert {path: label.integrity for path, label in found.items()} == {
        before: "untrusted",
        later: "untrusted",
    }
