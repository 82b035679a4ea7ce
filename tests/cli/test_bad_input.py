"""What users, strangers and bad luck do to the real process: each ends in a sentence, and the next
call works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from deskhand.store.schema import connect, load_migrations

pytestmark = pytest.mark.timeout(150)
DESKHAND = [sys.executable, "-m", "deskhand"]
ECHO = "defaults: {models: [scripted/echo]}\n"
SPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
Done = subprocess.CompletedProcess[bytes]


class Desk:
    """`deskhand` on one home with the scripted model."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.database = home / "state" / "deskhand.db"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home.parent),
            "DESKHAND_HOME": str(home),
        }
        home.mkdir(mode=0o700)
        self.config = home / "deskhand.yaml"
        self.config.write_text(ECHO)

    def __call__(self, *args: str | bytes, **env: str) -> Done:
        argv: Sequence[str | bytes] = [*DESKHAND, *args]
        return subprocess.run(
            argv,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )

    def shell(self, script: str, *before: str) -> Done:
        """A bash script in which `$D` is the command and `$H` the home."""
        env = self.env | {"D": " ".join(DESKHAND), "H": str(self.home)}
        argv = [*before, "bash", "-c", script]
        return subprocess.run(
            argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
        )

    def still_works(self) -> None:
        done = self("ask", "-s", "after", "still there?")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"You said: still there?\n", b"")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


def ends(done: Done, code: int, said: str) -> None:
    """With this code, with this in one line on standard error, and without a traceback."""
    lines = done.stderr.decode().splitlines()
    assert done.returncode == code, done
    assert len(lines) == 1 and said in lines[0], lines


def test_a_configuration_that_is_no_file(desk: Desk) -> None:
    desk.config.unlink()
    os.mkfifo(desk.config)
    ends(
        desk("ask", "hi"),
        2,
        "cannot be read: it is not a file; replace it with a file, or remove it",
    )
    desk.config.unlink()
    desk.config.mkdir()
    ends(
        desk("ask", "hi"),
        2,
        "cannot be read: it is not a file; replace it with a file, or remove it",
    )
    desk.config.rmdir()
    desk.config.symlink_to("/dev/zero")
    ends(desk("ask", "hi"), 2, "is larger than 512 kB, the limit for a configuration")
    desk.config.unlink()
    desk.config.write_bytes(b"\x7fELF\0\xff")
    ends(desk("ask", "hi"), 2, "is not UTF-8 (line 1)")
    with desk.config.open("wb") as file:
        file.truncate(100_000_000)
    ends(desk("ask", "hi"), 2, "is larger than 512 kB")
    desk.config.write_text(ECHO)
    desk.still_works()


def test_unknown_keys_are_named_and_stop_nothing(desk: Desk) -> None:
    desk.config.write_text(ECHO + "agents: {main: {stepps: 4}}\n")
    done = desk("ask", "hi")
    ends(done, 0, "unknown key 'agents.main.stepps'; did you mean 'agents.main.steps'?")
    assert done.stdout == b"You said: hi\n"


def test_an_address_that_is_none(desk: Desk) -> None:
    desk.config.write_text(f"{ECHO}providers: {{ollama: {{base_url: 'htp:/bad url'}}}}\n")
    ends(
        desk("ask", "-m", "ollama/x", "hi"),
        2,
        "The base_url 'htp:/bad url' of 'ollama' is not an address",
    )
    desk.still_works()


def test_bytes_that_are_no_text(desk: Desk) -> None:
    assert desk("ask", "-s", b"a\xff", b"x\xfe\x80y").stdout == b"You said: x??y\n"
    assert b"You said: x??y" in desk("sessions", "show", b"a\xff").stdout
    ends(desk("sessions", "show", b"b\xff"), 2, "there is no conversation 'b?'")
    assert desk("values", "set", b"\xff", b"\xff").returncode == 0
    desk.still_works()


@pytest.mark.parametrize("language", ["C", "de_DE.ISO-8859-1"])
def test_any_language(desk: Desk, language: str) -> None:
    done = desk("ask", "grüße 👩", LC_ALL=language, TERM="dumb", COLUMNS="20")
    assert (done.stdout.decode(), done.stderr) == ("You said: grüße 👩\n", b"")


def test_no_home_in_the_environment(desk: Desk, tmp_path: Path) -> None:
    """The one of the user database counts, and not the root or the folder in which we happen to
    be."""
    code = "import sys; from deskhand.config.config import find_home; print(find_home().root)"
    for env in ({}, {"HOME": ""}):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (
            done.stdout == f"{Path('~').expanduser()}/.deskhand\n"
            or os.environ.get("HOME") != done.stdout
        )
        assert done.stdout not in ("/.deskhand\n", f"{tmp_path}/.deskhand\n")
    ends(
        desk("ask", "hi", DESKHAND_HOME="~nobody-of-that-name/x"),
        2,
        "set DESKHAND_HOME to a folder of your own",
    )


def test_output_that_nobody_takes(desk: Desk) -> None:
    desk("ask", "-s", "talk", "hi")
    for script in ("$D tools | true", "$D ask hi | true", "$D sessions | true", "$D --help | true"):
        done = desk.shell(f"{script}; true")
        assert (done.returncode, done.stderr) == (0, b""), script
    for script in ("$D sessions >&-", "$D ask hi <&- >&- 2>&-", "$D kv list 2>&-"):
        assert desk.shell(script).returncode == 0, script
    for script in ("$D sessions > /dev/full", "$D ask hi > /dev/full", "$D --help > /dev/full"):
        ends(desk.shell(script), 1, "No space left on device")
    assert desk.shell("$D nonsense 2> /dev/full").returncode in (1, 2)
    assert b"all valid" in desk("audit", "verify").stdout


def test_ctrl_c_while_a_class_is_made(desk: Desk, tmp_path: Path) -> None:
    """Python 3.11 wraps it then."""
    interrupted = (
        "class Name:\n    def __set_name__(self, *_): raise KeyboardInterrupt\nclass Option:\n  "
        "  name = Name()\n"
    )
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "click.py").write_text(interrupted)
    env = {**desk.env, "PYTHONPATH": str(tmp_path / "early")}
    ended = subprocess.run(
        [sys.executable, "-m", "deskhand"], env=env, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


@pytest.mark.parametrize(
    "command", [("ask", "-s", "talk", "hi"), ("sessions",)], ids=lambda command: str(command[0])
)
def test_ctrl_c_at_any_moment(desk: Desk, command: tuple[str, ...]) -> None:
    began = time.monotonic()
    desk(*command)
    whole_s = time.monotonic() - began
    codes = set()
    for moment in range(7):
        argv = [*DESKHAND, *command]
        with subprocess.Popen(
            argv,
            env=desk.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            time.sleep(0.05 + whole_s * moment / 7)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
        if b"Traceback" in said and b"deskhand/__main__.py" not in said:
            continue  # it was the interpreter that ended, before our first line
        assert said.strip() == b"", said.decode()
        codes.add(process.returncode)
    assert codes <= {0, 130, -signal.SIGINT} and 130 in codes
    assert b"all valid" in desk("audit", "verify").stdout
    desk.still_works()


def _damage_the_middle(database: Path) -> None:
    """The table of sessions, which every message changes."""
    db = connect(database, write=False)
    (page,) = db.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'session'"
    ).fetchone() or (0,)
    (size,) = db.execute("PRAGMA page_size").fetchone() or (0,)
    db.close()
    with database.open("r+b") as file:
        file.seek((int(page) - 1) * int(size))
        file.write(b"\xa5" * int(size))


def test_a_database_that_is_damaged(desk: Desk) -> None:
    """Whatever is damaged is said, and nobody waits for ever for an answer that cannot be
    written."""
    desk("ask", "-s", "talk", "one")
    whole = desk.database.read_bytes()
    _damage_the_middle(desk.database)
    ends(
        desk("ask", "-s", "talk", "two"),
        1,
        "is damaged (database disk image is malformed): restore a backup",
    )
    for broken in (whole[: len(whole) // 2], b"this is no database"):
        desk.database.write_bytes(broken)
        ends(
            desk("ask", "-s", "talk", "two"),
            1,
            "restore a backup, or move the file away to start afresh",
        )
        assert b"database" in desk("doctor").stdout
    desk.database.rename(desk.home / "away")
    desk.still_works()
    said = desk("audit", "verify")
    assert said.returncode == 1 and b"default/terminal:talk, event 3: it is gone" in said.stdout
    assert b"If you started over on purpose" in said.stdout


def test_a_database_from_a_newer_version(desk: Desk) -> None:
    desk("ask", "hi")
    db = connect(desk.database, write=True)
    db.execute("INSERT INTO schema_version VALUES(999)").fetchall()
    db.close()
    known = load_migrations()[-1][0]
    said = (
        f"has schema 999, this Deskhand knows {known}: update Deskhand, or use another "
        "DESKHAND_HOME"
    )
    ends(desk("ask", "hi"), 1, said)


def test_a_lock_that_nobody_holds_and_two_at_once(desk: Desk) -> None:
    (desk.home / "state").mkdir()
    (desk.home / "state" / "driver.lock").write_text("12345\n")
    desk.still_works()
    done = desk.shell("$D ask -s talk one & $D ask -s talk two & wait")
    assert (
        sorted(done.stdout.splitlines()) == [b"You said: one", b"You said: two"]
        and done.stderr == b""
    )
    assert desk("sessions", "list").stdout.count(b"talk\t") == 1


def test_a_disk_that_is_full(desk: Desk) -> None:
    script = """
mount -t tmpfs -o size=2000k tmpfs $H; echo 'defaults: {models: [scripted/echo]}' > $H/deskhand.yaml
$D ask -s talk one || exit 90
dd if=/dev/zero of=$H/ballast bs=1k 2> /dev/null
for what in "ask -s talk two" "kv set a b" "config set defaults.steps 3" "init"; do
  $D $what > /dev/null && exit 91
done
cmp -s <(echo 'defaults: {models: [scripted/echo]}') $H/deskhand.yaml || exit 92
rm $H/ballast
$D ask -s talk three || exit 93
"""
    done = desk.shell(script, *SPACE)
    said = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (0, b"You said: one\nYou said: three\n"), said
    assert len(said) == 4 and all(line.startswith("deskhand: ") for line in said), said
    assert all("no space left for" in line and "free some space" in line for line in said[:2]), said
    assert all("No space left on device; " in line for line in said[2:]), said


def test_a_home_that_cannot_be_written(desk: Desk) -> None:
    desk("ask", "-s", "talk", "one")
    script = """
mount --bind $H $H; mount -o remount,ro,bind $H
for what in "ask -s talk two" "kv set a b" "config set defaults.steps 3" "init"; do
  $D $what > /dev/null && exit 91
done
$D doctor --fix
umount $H
$D ask -s talk three
"""
    done = desk.shell(script, *SPACE)
    said = done.stderr.decode().splitlines()
    assert done.returncode == 0 and done.stdout.endswith(b"You said: three\n"), done
    assert len(said) == 5 and all(line.startswith("deskhand: ") for line in said), said
    assert (
        b"cannot be written: Read-only file system" in done.stdout and b"findmnt -T" in done.stdout
    )
