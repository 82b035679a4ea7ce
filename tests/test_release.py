"""A release is built alike each time, and runs where nothing else is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.timeout(300)
def test_a_release(tmp_path: Path) -> None:
    uv = ROOT / ".boot/bin/uv"
    done = subprocess.run(
        [sys.executable, "scripts/release.py", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"UV": str(uv)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs" in done.stdout
    names = {path.name.partition("-")[0] for path in tmp_path.iterdir()}
    assert names == {"deskhand", "licences.txt", "sbom.json"}
    bill = json.loads((tmp_path / "sbom.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    listed = (tmp_path / "licences.txt").read_text()
    assert "msgspec" in listed and "GPL" not in listed
