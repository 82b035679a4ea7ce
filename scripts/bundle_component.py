"""Makes `vendor/component-tools.js` and its line in the manifest, from `requirements/component`.

    python scripts/bundle_component.py

A frame without origin and network can import no module, so what a component needs is one script.
"""

from __future__ import annotations

import json
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "requirements" / "component"
VENDOR = ROOT / "src" / "deskhand" / "web" / "static" / "vendor"
BUNDLE = VENDOR / "component-tools.js"
MANIFEST = VENDOR / "MANIFEST.json"
BUNDLER = "esbuild"
OPTIONS = ("--bundle", "--minify", "--format=iife", "--global-name=componentTools")
UNUSED = {"commander", "mz", "pirates", "tinyglobby"}
"""What sucrase needs for its command alone."""


def list_bundled() -> dict[str, dict[str, str]]:
    """The packages in the bundle, as the lock file has them: version and licence by name."""
    lock = json.loads((SOURCE / "package-lock.json").read_text())["packages"]
    wanted = ["@jridgewell/trace-mapping", "preact", "sucrase"]
    found = dict[str, dict[str, str]]()
    while wanted:
        name = wanted.pop()
        if name in found or name in UNUSED:
            continue
        entry = lock[f"node_modules/{name}"]
        found[name] = {"version": entry["version"], "licence": entry["license"]}
        wanted += entry.get("dependencies", {})
    return dict(sorted(found.items()))


def main() -> None:
    subprocess.run(["npm", "ci", "--silent"], cwd=SOURCE, check=True)
    bundled = list_bundled()
    parts = ", ".join(
        f"{name} {one['version']} ({one['licence']})" for name, one in bundled.items()
    )
    command = [
        SOURCE / "node_modules" / ".bin" / BUNDLER,
        "entry.js",
        *OPTIONS,
        "--target=es2022",
        f"--banner:js=/*! {parts} */",
        f"--outfile={BUNDLE}",
    ]
    subprocess.run(command, cwd=SOURCE, check=True)
    data = BUNDLE.read_bytes()
    lock = json.loads((SOURCE / "package-lock.json").read_text())["packages"]
    entry: dict[str, Any] = {
        "file": BUNDLE.name,
        "package": "sucrase",
        "version": bundled["sucrase"]["version"],
        "licence": " AND ".join(sorted({one["licence"] for one in bundled.values()})),
        "path": "requirements/component/entry.js",
        "sha256": sha256(data).hexdigest(),
        "size_bytes": len(data),
        "bundled_by": f"{BUNDLER} {lock[f'node_modules/{BUNDLER}']['version']}",
        "bundled": bundled,
    }
    listed = json.loads(MANIFEST.read_text())
    others = [one for one in listed if one["file"] != BUNDLE.name]
    MANIFEST.write_text(json.dumps([*others, entry], indent=1) + "\n")


if __name__ == "__main__":
    main()
