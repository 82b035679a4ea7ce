"""Packs files into an archive, with the same bytes each time."""

from __future__ import annotations

import gzip
import io
import tarfile
import time
import zipfile
from pathlib import Path

from .values import Stop


def pack_files(target: Path, times: dict[Path, int]) -> None:
    """A .zip, .tar or .tar.gz of these files, each with its time."""
    if not target.name.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz")):
        raise Stop(f"{target.name}: I can pack .zip, .tar and .tar.gz")
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zipped:
            for path, at in times.items():
                stamp = time.gmtime(max(at, _MIN_ZIP_TIME))[:6]
                info = zipfile.ZipInfo(str(path), stamp)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                zipped.writestr(info, path.read_bytes())
        return
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, at in times.items():
            member = tarfile.TarInfo(str(path))
            member.size = path.stat().st_size
            member.mtime = at
            member.mode = 0o644
            with path.open("rb") as file:
                tar.addfile(member, file)
    whole = packed.getvalue()
    target.write_bytes(gzip.compress(whole, mtime=0) if target.name.endswith("gz") else whole)


_MIN_ZIP_TIME = 315_532_800
"""1980: a zip knows no time before it."""
