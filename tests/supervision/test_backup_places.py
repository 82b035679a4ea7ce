"""Where backups lie: a folder, and a bucket of a real server that speaks S3; and that a restore
erases again what was erased after a backup."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.config.config import Settings, read_settings
from deskhand.config.home import Home
from deskhand.memory.facts import NewFact, add_fact, add_fact_source
from deskhand.runtime.app import OWNER
from deskhand.supervision.backup_places import (
    BackupPlace,
    BucketPlace,
    FolderPlace,
    list_backups,
    open_place,
)
from deskhand.supervision.erased_index import Erasure, read_erased, tell_backups
from deskhand.types.errors import ConfigError, DeskhandError
from deskhand.types.labels import LOCAL
from deskhand.workspace.erase import erase_session

from .test_backup import NOW, SESSION, fill, opened, settings_at

ROOT = Path(__file__).parent.parent.parent
SERVER = ROOT / ".venv-clients" / "bin" / "moto_server"
"""Of the environment of other programs; `make .venv-clients/.ready` builds it."""
START_S = 30
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a server with the bucket `backups`."""
    assert SERVER.exists(), "the environment of the server is missing: make .venv-clients/.ready"
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [SERVER, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        create_bucket(f"{address}/backups", time.monotonic() + START_S)
        yield address
    finally:
        server.terminate()
        server.wait()


def create_bucket(address: str, until: float) -> None:
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="PUT")).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def variables(s3: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3,
    }


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> BackupPlace:
    if request.param == "folder":
        return FolderPlace(tmp_path / "backups")
    name = request.node.name.replace("[", "-").replace("]", "")
    return BucketPlace(f"s3://backups/{name}", variables(request.getfixturevalue("s3")))


def test_a_place_keeps_what_it_was_given(place: BackupPlace, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"0123456789" * 1_200_000)  # more than one part of an upload
    stem = "deskhand-00ff00-2026-11-24T06-00-00"
    assert place.sizes() == {}
    assert place.add(file, stem, ".tar.gz") == f"{stem}.tar.gz"
    assert place.add(file, stem, ".tar.gz") == f"{stem}-2.tar.gz", "nothing is replaced"
    assert place.sizes() == {f"{stem}.tar.gz": 12_000_000, f"{stem}-2.tar.gz": 12_000_000}

    place.fetch(f"{stem}.tar.gz", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == file.read_bytes()
    place.delete(f"{stem}.tar.gz")
    assert [each.name for each in list_backups(place)] == [f"{stem}-2.tar.gz"]
    with pytest.raises(FileNotFoundError):
        place.fetch(f"{stem}.tar.gz", tmp_path / "gone")

    assert place.read_note("note.json") == ""
    place.write_note("note.json", "one")
    place.write_note("note.json", "two")
    assert place.read_note("note.json") == "two"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: str) -> Run:
    own = {"HOME": str(tmp_path), "DESKHAND_HOME": str(tmp_path / "home")}
    for name, value in (own | variables(s3)).items():
        monkeypatch.setenv(name, value)

    def command(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, [*words])
        return done.exit_code, done.output

    return command


def make_home(tmp_path: Path, text: str = "") -> Settings:
    settings = settings_at(tmp_path / "home", text)
    anyio.run(fill, settings)
    return settings


def test_from_a_home_to_a_bucket_and_back(run: Run, tmp_path: Path) -> None:
    bucket = "s3://backups/back-and-forth"
    settings = make_home(tmp_path, f"backup: {{folder: '{bucket}', keep: 1}}\n")
    first = run("backup", "make")
    assert first[0] == 0 and "Verified." in first[1], first[1]
    second = run("backup", "make")
    assert second[0] == 0 and "Deleted deskhand-" in second[1], second[1]

    code, listed = run("backup", "list")
    assert code == 0 and len(listed.splitlines()) == 1
    address = f"{bucket}/{listed.split()[-1]}"
    code, said = run("backup", "verify", address)
    assert code == 0 and "2 events, all as they were" in said, said

    (settings.home.root / "agents" / "default" / "workspace" / "notes.txt").unlink()
    code, said = run("backup", "restore", address, "--replace")
    assert code == 0 and "Restored" in said, said
    assert (settings.home.root / "agents" / "default" / "workspace" / "notes.txt").exists()
    left = list(settings.home.root.parent.glob(".restoring*"))
    assert left == list(settings.home.state.glob("backup-*")) == []


@pytest.mark.parametrize("where", ["folder", "bucket"])
def test_what_was_erased_stays_erased_when_an_older_backup_is_restored(
    where: str, run: Run, tmp_path: Path
) -> None:
    backups = str(tmp_path / "b") if where == "folder" else "s3://backups/erased"
    settings = make_home(tmp_path, f"backup: {{folder: '{backups}'}}\n")
    assert run("backup", "make")[0] == 0
    code, said = run("sessions", "erase", "x", "--yes")
    assert code == 0 and "A restore erases it again." in said, said

    (made,) = list_backups(open_place(read_settings(settings.file), backups))
    code, said = run("backup", "restore", made.address, "--replace")
    assert code == 0 and "Erased again: 1 conversation and 0 memories" in said, said
    assert b"hello" not in settings.home.database.read_bytes()

    # One that is newer knows of the erasure already.
    time.sleep(1.1)  # the home that is moved aside has the second in its name
    assert run("backup", "make")[0] == 0
    newest, oldest = list_backups(open_place(read_settings(settings.file), backups))
    assert oldest == made
    code, said = run("backup", "restore", newest.address, "--replace")
    assert code == 0 and "Erased again" not in said, said


def test_the_list_of_what_was_erased_names_nobody(run: Run, tmp_path: Path) -> None:
    settings = make_home(tmp_path, f"backup: {{folder: '{tmp_path}/b'}}\n")
    assert run("backup", "make")[0] == 0
    assert run("sessions", "erase", "x", "--yes")[0] == 0
    (index,) = (tmp_path / "b").glob("*-erased.json")
    assert "terminal" not in index.read_text() and len(index.read_text()) > 60

    index.write_text("{")
    (made,) = list_backups(FolderPlace(tmp_path / "b"))
    code, said = run("backup", "restore", str(made.path), "--replace")
    assert code == 1 and "is damaged: remove it" in said and "nothing was restored" in said
    assert settings.home.database.exists()


def test_an_erasure_is_told_with_the_next_backup_too(run: Run, tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    assert run("backup", "make", str(tmp_path / "b"))[0] == 0

    async def erase() -> None:
        async with opened(settings.home) as store:
            await erase_session(store, OWNER, SESSION, NOW * 2)

    anyio.run(erase)
    assert run("backup", "make", str(tmp_path / "b"))[0] == 0
    oldest = list_backups(FolderPlace(tmp_path / "b"))[-1]
    code, said = run("backup", "restore", str(oldest.path), "--replace")
    assert code == 0 and "Erased again: 1 conversation and 0 memories" in said, said


def remember(settings: Settings, text: str, session: str = SESSION) -> None:
    fact = NewFact(
        key=text,
        text=text,
        scope="user",
        owner="owner",
        session=session,
        n=1,
        writer="person",
        label=LOCAL,
    )

    async def store_fact() -> None:
        async with opened(settings.home) as store:
            await store.change(add_fact(fact, NOW))

    anyio.run(store_fact)


def also_said(settings: Settings, fact: int, session: str) -> None:
    async def add_source() -> None:
        async with opened(settings.home) as store:
            await store.change([add_fact_source(fact, session, 1)])

    anyio.run(add_source)


@pytest.mark.parametrize("keeps", [False, True])
def test_memories_that_were_erased_stay_erased(keeps: bool, run: Run, tmp_path: Path) -> None:
    """One alone, and those of a conversation unless they were to be kept. One that was also said
    elsewhere stays in any case."""
    settings = make_home(tmp_path, f"backup: {{folder: '{tmp_path}/b'}}\n")
    remember(settings, "the code is 1234", "default/terminal:elsewhere")
    remember(settings, "a dog called Rex")
    remember(settings, "a cat called Tom")
    also_said(settings, 3, "default/terminal:elsewhere")
    assert run("backup", "make")[0] == 0
    (made,) = list_backups(FolderPlace(tmp_path / "b"))
    code, said = run("memories", "forget", "1", "--erase")
    assert code == 0 and "A restore erases it again." in said, said
    option = ["--keep-memories"] if keeps else []
    assert run("sessions", "erase", "x", "--yes", *option)[0] == 0
    left = run("memories", "list")[1]

    code, said = run("backup", "restore", str(made.path), "--replace")
    assert code == 0 and f"1 conversation and {1 if keeps else 2} " in said, said
    assert run("memories", "list")[1] == left
    assert ("Rex" in left) == keeps and "Tom" in left and "1234" not in left
    assert b"1234" not in settings.home.database.read_bytes()


def test_what_is_erased_twice_is_erased_since_the_second_time(tmp_path: Path) -> None:
    place = FolderPlace(tmp_path / "b")
    home = Home(tmp_path / "home")
    tell_backups(place, home, {"one": Erasure(2.0, memories=False)})
    tell_backups(place, home, {"one": Erasure(1.0), "two": Erasure(1.0)})
    assert read_erased(place) == {"one": Erasure(2.0, memories=False), "two": Erasure(1.0)}
    tell_backups(place, home, {"one": Erasure(3.0)})
    assert read_erased(place)["one"] == Erasure(3.0)


def test_what_a_bucket_answers_is_told(s3: str, tmp_path: Path) -> None:
    with pytest.raises(DeskhandError, match="s3://nowhere/x: NoSuchBucket"):
        list_backups(BucketPlace("s3://nowhere/x", variables(s3)))
    with pytest.raises(ConfigError, match="names no bucket"):
        BucketPlace("s3://", variables(s3))
    with pytest.raises(ConfigError, match="needs AWS_SECRET_ACCESS_KEY: put"):
        BucketPlace("s3://b/x", {"AWS_ACCESS_KEY_ID": "testing"})
    with pytest.raises(ConfigError, match="gs:// is not known"):
        open_place(settings_at(tmp_path / "home"), "gs://somewhere")


def test_keys_do_not_travel_unencrypted(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    plain = variables("http://192.0.2.7:9000")
    with pytest.raises(ConfigError, match="use https, or encrypt"):
        BucketPlace("s3://b/x", plain).check(home, encrypted=False)
    BucketPlace("s3://b/x", plain).check(home, encrypted=True)
    BucketPlace("s3://b/x", variables("http://127.0.0.1:1")).check(home, encrypted=False)
    BucketPlace("s3://b/x", variables("https://s3.example.org")).check(home, encrypted=False)
