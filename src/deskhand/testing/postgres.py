"""A PostgreSQL server for tests: the one that this machine has installed, on a socket in a folder
of its own. Each test gets a schema in it."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

from ..config.statements import load_statements
from ..store.dialect import to_postgres
from ..store.postgres import PostgresStore

DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian puts the programs of a server, by version, and not on the PATH."""
USER = "postgres"
"""The server refuses to run as root; then this user of Debian's package runs it."""


def find_program(name: str) -> str:
    """The path of a program of the server. Raises FileNotFoundError with what to install."""
    found = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    program = shutil.which(name) or (str(found[-1]) if found else None)
    if program is None:
        raise FileNotFoundError(f"{name!r} is not installed: apt-get install postgresql")
    return program


class PostgresServer:
    """A server whose files are in `folder`. `durable`: it waits for the disk, as a real one must;
    tests that kill nothing are quicker without."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._durable = durable

    @property
    def url(self) -> str:
        return address_of(self._folder)

    @property
    def socket(self) -> Path:
        """Where clients reach it."""
        return self._folder / ".s.PGSQL.5432"

    @property
    def process_id(self) -> int:
        """Of the process that starts all others, while it runs."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def create(self) -> None:
        """Make the files of a new server."""
        if os.geteuid() == 0:
            shutil.chown(self._folder, USER)
        self._run("initdb", "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "-N")

    def start(self) -> None:
        """Returns when it can be connected to."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "fsync": "on" if self._durable else "off",
            "max_connections": "200",
            "shared_buffers": "32MB",
            "log_min_messages": "fatal",
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def copy(self, folder: Path) -> PostgresServer:
        """A standby in this folder, not started yet. From then on each commit here waits until it
        has it on its disk, too."""
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        standby = PostgresServer(folder, durable=self._durable)
        source = ("-h", str(self._folder), "-U", USER, "-R", "-X", "stream")
        standby._run("pg_basebackup", *source)
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            db.execute("SELECT pg_reload_conf()")
        return standby

    def stop(self, mode: str = "fast") -> None:
        """`fast` ends in good order, `immediate` as a crash does."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command: Sequence[str] = [find_program(program), "-D", str(self._data), *arguments]
        if os.geteuid() == 0:
            command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", *command]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            cwd=self._folder,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout.decode(errors='replace')}")


def address_of(folder: Path) -> str:
    """The address of a server whose socket is in this folder."""
    return f"postgresql://{USER}@/postgres?host={quote(str(folder), safe='')}"


@contextmanager
def running_server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """A server that ends with the block."""
    with _folder() as folder:
        server = PostgresServer(folder, durable=durable)
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


@contextmanager
def running_standby(server: PostgresServer) -> Iterator[PostgresServer]:
    """A standby of this server, without which it commits nothing; it ends with the block."""
    with _folder() as folder:
        standby = server.copy(folder)
        standby.start()
        try:
            yield standby
        finally:
            standby.stop("immediate")


@contextmanager
def _folder() -> Iterator[Path]:
    """Not below pytest's: a socket's path may have 107 bytes, and the server's user must reach
    it."""
    with tempfile.TemporaryDirectory(prefix="deskhand-pg-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def database_at(url: str) -> Callable[[Path, Mapping[str, str]], PostgresStore]:
    """Opens this database in place of the SQLite file of a home."""

    def open_database(path: Path, statements: Mapping[str, str]) -> PostgresStore:
        translated = {name: to_postgres(statement) for name, statement in statements.items()}
        return PostgresStore(url, translated | dict(load_statements("postgresql")))

    return open_database


@contextmanager
def open_schema(server: PostgresServer) -> Iterator[str]:
    """The address of an empty schema, which is dropped afterwards."""
    name = f"t{secrets.token_hex(8)}"
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}")
    try:
        yield f"{server.url}&options={quote(f'-csearch_path={name}')}"
    finally:
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute(f"DROP SCHEMA {name} CASCADE")
