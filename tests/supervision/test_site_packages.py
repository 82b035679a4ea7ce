"""What Python runs at each start is what packages have brought."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from deskhand.supervision.doctor import PROBES, run_probes
from deskhand.supervision.site_packages import find_unexpected_pth
from deskhand.testing.temporary_home import TemporaryHome
from deskhand.web.agent_signatures import to_base64url

CODE = b"import os; os.system('true')\n"


def installed(folder: Path, name: str, data: bytes, *, recorded: bytes | None = None) -> Path:
    """A package that has brought this file, which is so now."""
    file = folder / name
    file.write_bytes(data)
    record = folder / f"{file.stem}-1.dist-info" / "RECORD"
    record.parent.mkdir()
    digest = to_base64url(sha256(data if recorded is None else recorded).digest())
    record.write_text(f"{name},sha256={digest},{len(data)}\n{file.stem}/__init__.py,,\n")
    return file


def test_what_packages_have_brought_is_expected(tmp_path: Path) -> None:
    installed(tmp_path, "good.pth", CODE)
    (tmp_path / "_virtualenv.pth").write_bytes(b"import _virtualenv")
    (tmp_path / "folders.pth").write_text("/somewhere/else\n")
    assert find_unexpected_pth([tmp_path]) == []


def test_what_none_has_brought_or_is_otherwise_now_is_not(tmp_path: Path) -> None:
    changed = installed(tmp_path, "changed.pth", CODE, recorded=b"/somewhere\n")
    own = tmp_path / "evil.pth"
    own.write_bytes(CODE)
    false = tmp_path / "_virtualenv.pth"
    false.write_bytes(CODE)
    assert find_unexpected_pth([tmp_path]) == [false, changed, own]


def test_a_record_that_cannot_be_read_vouches_for_nothing(tmp_path: Path) -> None:
    file = installed(tmp_path, "odd.pth", CODE)
    (tmp_path / "odd-1.dist-info" / "RECORD").write_bytes(b"\xff\xfe")
    assert find_unexpected_pth([tmp_path]) == [file]


async def test_the_doctor_says_so(tmp_path: Path) -> None:
    settings = TemporaryHome(tmp_path).settings
    probe = next(each for each in PROBES if each.name == "packages")
    [(_, finding)] = await run_probes(settings, [probe])
    assert finding.level == "good", finding.text
