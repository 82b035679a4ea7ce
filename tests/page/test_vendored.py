"""What others wrote is exactly what they published, and all of it together stays small."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256

from deskhand.web.page import STATIC

VENDOR = STATIC / "vendor"


def test_the_vendored_files_are_the_published_ones() -> None:
    listed = json.loads((VENDOR / "MANIFEST.json").read_text())
    assert {entry["file"] for entry in listed} == {file.name for file in VENDOR.glob("*.js")}
    for entry in listed:
        data = (VENDOR / entry["file"]).read_bytes()
        assert sha256(data).hexdigest() == entry["sha256"], entry["file"]
        assert entry["licence"] and entry["version"]
        for published, ours in entry.get("rewritten", {}).items():
            data = data.replace(ours.encode(), published.encode())
        assert sha256(data).hexdigest() == entry.get("upstream_sha256", entry["sha256"]), entry["file"]


def test_the_page_stays_small_and_its_files_readable() -> None:
    """Its size is that of all its files as they are sent."""
    files = [file for file in STATIC.rglob("*") if file.is_file() and file.suffix != ".json"]
    assert sum(len(gzip.compress(file.read_bytes(), mtime=0)) for file in files) < 130_000
    for file in (STATIC / "js").rglob("*.js"):
        assert file.read_text().count("\n") <= 400, f"{file.name}: split it"
    own = "".join(file.read_text() for file in files if "vendor" not in file.parts and file.suffix != ".svg")
    assert "https://" not in own and "http://" not in own, "everything comes from this machine"
