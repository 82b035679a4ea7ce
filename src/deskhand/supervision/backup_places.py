"""Where backups lie: in a folder, or in a bucket of a service that speaks S3."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Protocol

import msgspec
from yarl import URL

from ..config.config import Settings
from ..config.home import Home
from ..types.errors import ConfigError, DeskhandError
from ..types.folders import make_private_folder
from ..types.private_files import write_private_file
from .backup_archive import BackupBroken

TIME_IN_NAME = "%Y-%m-%dT%H-%M-%S"
S3_SCHEME = "s3://"
NO_OBSTORE = "backups in a bucket need the extra `bucket`: pip install 'deskhand[bucket]'"
_NAME = re.compile(
    r"deskhand-(?P<home>[0-9a-f]{6})-(?P<at>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)(-\d+)?\.tar\.gz(\.age)?"
)
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_OPTIONS = (
    *_KEYS,
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
)
"""The variables that say how a bucket is reached, as the AWS SDKs have them."""
_BLOCK = 1 << 20
_CONNECT_S = 10
_TRANSFER_S = 3_600
_RETRY = timedelta(seconds=60)
_MOST_LISTED = 100_000


class BackupFile(msgspec.Struct, frozen=True):
    """A backup. `place` is the folder or bucket, `home` tells homes apart, `at` is when it was
    begun, in seconds since the epoch."""

    place: str
    name: str
    home: str
    at: float
    size: int

    @property
    def is_encrypted(self) -> bool:
        return self.name.endswith(".age")

    @property
    def address(self) -> str:
        return f"{self.place.rstrip('/')}/{self.name}"

    @property
    def path(self) -> Path:
        """Of one in a folder."""
        return Path(self.place) / self.name


class BackupPlace(Protocol):
    """Where backups lie. Each call blocks, and raises DeskhandError or OSError."""

    @property
    def address(self) -> str: ...

    def check(self, home: Home, *, encrypted: bool) -> None:
        """Raises ConfigError where backups of this home must not lie here."""
        ...

    def add(self, file: Path, stem: str, suffix: str) -> str:
        """Store a copy of this file under a name that is free. Returns the name. When it returns,
        the copy was read back, and is the same."""
        ...

    def sizes(self) -> dict[str, int]:
        """Name and size of each file that lies here."""
        ...

    def fetch(self, name: str, target: Path) -> None:
        """Copy one to a local file."""
        ...

    def delete(self, name: str) -> None: ...

    def read_note(self, name: str) -> str:
        """A small file of text, or '' where there is none."""
        ...

    def write_note(self, name: str, text: str) -> None:
        """Write a small file, or replace it as a whole."""
        ...


class FolderPlace:
    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    @property
    def address(self) -> str:
        return str(self._folder)

    def check(self, home: Home, *, encrypted: bool) -> None:
        root = home.root.resolve()
        real = self._folder.resolve()
        if not real.is_relative_to(root):
            return
        first = real.relative_to(root).parts[:1]
        shown_to_agents = ("agents", "shared", "jobs", "skills", "prompts")
        if not first or first[0] in (home.state.name, *shown_to_agents):
            raise ConfigError(f"{self.address!r} belongs to the home itself; name another folder")

    def add(self, file: Path, stem: str, suffix: str) -> str:
        make_private_folder(self._folder)
        part = self._folder / f".{stem}.part"
        part.unlink(missing_ok=True)
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # keys are in it
            shutil.copyfile(file, part)
            if _digest_of(part) != _digest_of(file):
                raise BackupBroken(f"{part} is not what was written; is the disk well?")
            flush(part)
            return self._publish(part, stem, suffix)
        finally:
            part.unlink(missing_ok=True)

    def _publish(self, part: Path, stem: str, suffix: str) -> str:
        """Give it its name; nothing that is there is replaced."""
        for name in _iter_names(stem, suffix):
            path = self._folder / name
            if path.exists():
                continue
            try:
                os.link(part, path)
            except FileExistsError:
                continue
            except OSError:  # a disk without hard links
                part.rename(path)
            flush(self._folder)
            return name
        raise BackupBroken(f"there are a thousand backups called {stem} already")

    def sizes(self) -> dict[str, int]:
        if not self._folder.is_dir():
            return {}
        return {path.name: path.stat().st_size for path in self._folder.iterdir() if path.is_file()}

    def fetch(self, name: str, target: Path) -> None:
        shutil.copyfile(self._folder / name, target)

    def delete(self, name: str) -> None:
        (self._folder / name).unlink()

    def read_note(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def write_note(self, name: str, text: str) -> None:
        write_private_file(self._folder / name, text)
        flush(self._folder)


class BucketPlace:
    """`s3://bucket/folder`. Keys, region and address are those of AWS_ variables."""

    def __init__(self, address: str, environment: Mapping[str, str]) -> None:
        try:
            import obstore  # noqa: PLC0415 -- an extra
            from obstore.store import S3Store  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(NO_OBSTORE) from error
        bucket, _, prefix = address.removeprefix(S3_SCHEME).partition("/")
        if not bucket:
            raise ConfigError(f"{address!r} names no bucket: s3://BUCKET/FOLDER")
        # Without keys the library asks the cloud that this machine may run in, by an open address.
        missing = [name for name in _KEYS if not environment.get(name)]
        if missing:
            raise ConfigError(f"a bucket needs {' and '.join(missing)}: put them into .env")
        options = {name.lower(): environment[name] for name in _OPTIONS if environment.get(name)}
        self._address = address.rstrip("/")
        self._endpoint = URL(environment.get("AWS_ENDPOINT_URL", ""))
        self._calls = obstore
        with self._errors():
            self._bucket = S3Store(
                bucket,
                prefix=prefix.strip("/") or None,
                config=options,  # type: ignore[arg-type]  # names that are checked above
                client_options={
                    "allow_http": self._endpoint.scheme == "http",
                    "connect_timeout": f"{_CONNECT_S}s",
                    "timeout": f"{_TRANSFER_S}s",
                },
                retry_config={"max_retries": 4, "retry_timeout": _RETRY},
            )

    @property
    def address(self) -> str:
        return self._address

    def check(self, home: Home, *, encrypted: bool) -> None:
        here = ("localhost", "127.0.0.1", "::1")
        if self._endpoint.scheme == "http" and self._endpoint.host not in here and not encrypted:
            raise ConfigError(
                f"{self._endpoint} is not encrypted on its way, and a backup holds keys: use "
                "https, or encrypt the backups (backup.recipient)"
            )

    def add(self, file: Path, stem: str, suffix: str) -> str:
        taken = self.sizes()
        name = next((each for each in _iter_names(stem, suffix) if each not in taken), "")
        if not name:
            raise BackupBroken(f"there are a thousand backups called {stem} already")
        with self._errors():
            self._calls.put(self._bucket, name, file)
        try:
            if self._digest_of(name) != _digest_of(file):
                raise BackupBroken(f"{self._address}/{name} is not what was sent")
        except BaseException:
            self.delete(name)
            raise
        return name

    def _digest_of(self, name: str) -> str:
        digest = sha256()
        for block in self._stream(name):
            digest.update(block)
        return digest.hexdigest()

    def _stream(self, name: str) -> Iterator[bytes]:
        with self._errors():
            for block in self._calls.get(self._bucket, name).stream(min_chunk_size=_BLOCK):
                yield bytes(block)

    def sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._errors():
            for page in self._calls.list(self._bucket):
                found |= {each["path"]: each["size"] for each in page}
                if len(found) > _MOST_LISTED:
                    raise ConfigError(
                        f"{self._address} holds more than {_MOST_LISTED:,} files; name a folder "
                        "of its own for backups"
                    )
        return found

    def fetch(self, name: str, target: Path) -> None:
        with target.open("wb") as file:
            for block in self._stream(name):
                file.write(block)

    def delete(self, name: str) -> None:
        with self._errors():
            self._calls.delete(self._bucket, name)

    def read_note(self, name: str) -> str:
        try:
            return b"".join(self._stream(name)).decode(errors="replace")
        except FileNotFoundError:
            return ""

    def write_note(self, name: str, text: str) -> None:
        with self._errors():
            self._calls.put(self._bucket, name, text.encode())

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the service answers, as our error: its first line, with what it is about."""
        try:
            yield
        except self._calls.exceptions.BaseError as error:
            said = str(error).partition("\n\nDebug")[0].strip()
            code = re.search(r"<Code>(\w+)</Code>", said)
            why = code[1] if code else said.splitlines()[0][:300]
            raise DeskhandError(f"{self._address}: {why}") from error


def open_place(settings: Settings, address: str) -> BackupPlace:
    """The folder or bucket at this address. Raises ConfigError."""
    if address.startswith(S3_SCHEME):
        return BucketPlace(address, settings.environment)
    if "://" in address:
        scheme = address.partition("://")[0]
        raise ConfigError(f"{scheme}:// is not known: name a folder, or a bucket as s3://…")
    return FolderPlace(Path(address).expanduser())


def split_address(address: str) -> tuple[str, str]:
    """(the place, the name) of a backup."""
    if address.startswith(S3_SCHEME):
        place, _, name = address.rpartition("/")
        return place, name
    path = Path(address).expanduser().absolute()
    return str(path.parent), path.name


def list_backups(place: BackupPlace) -> list[BackupFile]:
    """The backups in a place, the newest first."""
    found = []
    for name, size in place.sizes().items():
        match = _NAME.fullmatch(name)
        if match:
            at = datetime.strptime(match["at"], TIME_IN_NAME).replace(tzinfo=UTC).timestamp()
            found.append(BackupFile(place.address, name, match["home"], at, size))
    return sorted(found, key=lambda each: (each.at, each.name), reverse=True)


def prune_backups(place: BackupPlace, made: BackupFile, keep: int) -> list[BackupFile]:
    """Delete all but so many of the newest backups of the home of which this one was just made,
    never this one, and none from a time to come; 0 keeps all. Returns those that were deleted.
    Raises DeskhandError, OSError."""
    own = [
        each
        for each in list_backups(place)
        if each.home == made.home and each.at <= made.at and each.name != made.name
    ]
    gone = own[keep - 1 :] if keep else []
    for each in gone:
        place.delete(each.name)
    return gone


def home_id(home: Home) -> str:
    """What tells the backups of this home from those of others."""
    return sha256(os.fsencode(home.root.resolve())).hexdigest()[:6]


def backup_stem(home: Home, now: float) -> str:
    """How the name of a backup begins that is made now."""
    return f"deskhand-{home_id(home)}-{datetime.fromtimestamp(now, UTC).strftime(TIME_IN_NAME)}"


def flush(path: Path) -> None:
    """See to it that it is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _iter_names(stem: str, suffix: str) -> Iterator[str]:
    yield f"{stem}{suffix}"
    for number in range(2, 1000):
        yield f"{stem}-{number}{suffix}"


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
