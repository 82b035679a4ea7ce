"""What others wrote is exactly what they published, and what the page loads stays small."""

from __future__ import annotations

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path

from deskhand.web.page import STATIC

VENDOR = STATIC / "vendor"
LOCKED = Path(__file__).parents[2] / "requirements" / "component"


def test_the_vendored_files_are_the_published_ones() -> None:
    listed = json.loads((VENDOR / "MANIFEST.json").read_text())
    vendored = {file.name for file in VENDOR.iterdir()} - {"MANIFEST.json"}
    assert {entry["file"] for entry in listed} == vendored
    for entry in listed:
        data = (VENDOR / entry["file"]).read_bytes()
        assert sha256(data).hexdigest() == entry["sha256"], entry["file"]
        assert entry["licence"] and entry["version"]
        for published, ours in entry.get("rewritten", {}).items():
            data = data.replace(ours.encode(), published.encode())
        assert sha256(data).hexdigest() == entry.get("upstream_sha256", entry["sha256"]), entry[
            "file"
        ]


def test_the_bundle_has_the_locked_packages() -> None:
    listed = json.loads((VENDOR / "MANIFEST.json").read_text())
    (bundled,) = (entry["bundled"] for entry in listed if "bundled" in entry)
    lock = json.loads((LOCKED / "package-lock.json").read_text())["packages"]
    locked = {name: lock[f"node_modules/{name}"] for name in bundled}
    assert {name: one["version"] for name, one in locked.items()} == {
        name: one["version"] for name, one in bundled.items()
    }
    assert {"preact", "sucrase"} <= set(bundled)


FIRST_BYTES = 180_000
LATER_BYTES = 260_000
DIAGRAM_BYTES = 800_000
FONT_BYTES = 410_000
COMPONENT_BYTES = 65_000
"""What the first screen loads, what is loaded on its first use, and what draws diagrams, the font
of formulas and what compiles components, which are loaded with the first of them: compressed, as it
is sent."""


def imported(start: Path) -> set[Path]:
    """The modules that come with this one: it, and what it and they import at their head."""
    found: set[Path] = set()
    left = [start]
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            named = re.findall(
                r"""(?:^|[;}\n])\s*(?:import|export)\b[^"'()]*["'](\.[^"']+)["']""",
                module.read_text(),
            )
            left += [(module.parent / name).resolve() for name in named]
    return found


def test_the_page_stays_small_and_its_files_readable() -> None:
    index = (STATIC / "index.html").read_text()
    linked = {
        (STATIC / path.lstrip("/")).resolve()
        for path in re.findall(r'(?:href|src)="(/[^"]+)"', index)
    }
    first = {STATIC / "index.html"}.union(
        linked, *(imported(file) for file in linked if file.suffix == ".js")
    )
    unused = {".json", ".txt"}  # lists and licences, which the page does not load
    later = {file for file in STATIC.rglob("*.*") if file.suffix not in unused} - first
    assert {"main.js", "marked.js", "talk.css"} <= {file.name for file in first}
    assert {"highlight.js", "temml.js", "preview-pane.js"} <= {file.name for file in later}
    diagrams = {VENDOR / "mermaid.js"}
    fonts = {VENDOR / "stix-two-math.woff2"}
    components = {VENDOR / "component-tools.js", STATIC / "js" / "frame" / "component.js"}
    apart = diagrams | fonts | components
    assert apart <= later
    assert size_bytes(first) < FIRST_BYTES
    assert size_bytes(later - apart) < LATER_BYTES
    assert size_bytes(diagrams) < DIAGRAM_BYTES
    assert size_bytes(fonts) < FONT_BYTES
    assert size_bytes(components) < COMPONENT_BYTES
    for file in (STATIC / "js").rglob("*.js"):
        assert file.read_text().count("\n") <= 400, f"{file.name}: split it"
    words = STATIC / "js" / "panels" / "keys.js"  # what settings do: its addresses are examples
    written = [
        file
        for file in first | later
        if "vendor" not in file.parts and file.suffix not in (".svg", ".png") and file != words
    ]
    own = "".join(file.read_text() for file in written)
    own = own.replace("http://www.w3.org/2000/svg", "")  # a name, which nothing loads
    assert "https://" not in own and "http://" not in own, "everything comes from this machine"


def size_bytes(files: set[Path]) -> int:
    return sum(len(gzip.compress(file.read_bytes(), mtime=0)) for file in files)
