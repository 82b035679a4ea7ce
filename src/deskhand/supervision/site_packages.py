"""Files of the environment that hold code which Python runs at each start without being asked
(`*.pth`), and that no package has brought: whoever can write one runs code in every program of this
environment. The records of packages:
https://packaging.python.org/en/latest/specifications/recording-installed-packages/
"""

from __future__ import annotations

import base64
import csv
import re
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from ..types.marked_texts import mark_text

OF_ENVIRONMENTS = {"_virtualenv.pth": b"import _virtualenv"}
"""What makes an environment writes these beside the packages, so."""
MAX_BYTES = 1 << 20
_CODE = re.compile(rb"^import[ \t]", re.MULTILINE)
"""A line that is run; any other one is a folder to look for packages in."""


def find_unexpected_pth(folders: Iterable[Path] = ()) -> list[Path]:
    """Those in these folders, which without any are where packages are installed for this Python:
    of no package, or not as their package has brought them."""
    usual = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    found = []
    for folder in sorted(folders or usual):
        codes = [each for each in sorted(folder.glob("*.pth")) if _holds_code(each)]
        recorded = dict(_read_records(folder)) if codes else {}
        found += [each for each in codes if not _is_as_recorded(each, recorded.get(each.name))]
    return found


def _holds_code(file: Path) -> bool:
    data = _read(file)
    return bool(_CODE.search(data)) and data.strip() != OF_ENVIRONMENTS.get(file.name)


def _read(file: Path) -> bytes:
    with suppress(OSError), file.open("rb") as opened:
        return opened.read(MAX_BYTES)
    return b""


def _read_records(folder: Path) -> Iterator[tuple[str, str]]:
    """The `.pth` files of all packages, each with its hash as the record writes it."""
    for record in folder.glob("*.dist-info/RECORD"):
        data = _read(record)
        if b".pth" not in data:
            continue
        with suppress(UnicodeDecodeError, csv.Error):
            for row in csv.reader(data.decode().splitlines()):
                if row and row[0].endswith(".pth"):
                    yield row[0], row[1] if len(row) > 1 else ""


def _is_as_recorded(file: Path, recorded: str | None) -> bool:
    if recorded is None:
        return False
    kind, _, digest = recorded.partition("=")
    if kind != "sha256":
        return True  # its package says no more of it
    made = base64.urlsafe_b64encode(sha256(_read(file)).digest()).rstrip(b"=").decode()
    return made == digest


def describe_unexpected_pth(file: Path) -> str:
    """What is wrong with one of these."""
    return mark_text(
        "{file} holds code that is run whenever this Python starts, and no package "
        "has brought it so: look at it, and remove it if it is not yours"
    ).format(file=file)
