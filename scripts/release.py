"""Builds a release into a folder: `release.py [FOLDER]`.

The wheel and the source archive are built twice and must be alike. The wheel is tried in an empty
environment of each Python that is on this machine. What is installed with it is listed, as a bill
of materials (CycloneDX, sbom.json) and with the licences (licences.txt).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
UV = os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".boot/bin/uv")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="deskhand-release-") as work:
        built = build(Path(work))
        for path in built:
            shutil.copy(path, folder)
            print(f"{path.name}: {digest(path)}")
        wheel = next(path for path in built if path.suffix == ".whl")
        tried = [version for version in PYTHONS if try_wheel(wheel, version, Path(work))]
        if not tried:
            raise SystemExit(f"none of Python {', '.join(PYTHONS)} is here")
        bill = make_bill(Path(work) / tried[0], folder / "sbom.json")
        licences = sorted(f"{each['name']} {each['version']}: {licence_of(each)}" for each in bill)
        (folder / "licences.txt").write_text("\n".join(licences) + "\n")
        print(f"{len(licences)} packages are installed with it: sbom.json, licences.txt")


def build(work: Path) -> list[Path]:
    """The wheel and the source archive. They say when the commit was made, not when they were."""
    when = run("git", "-C", str(ROOT), "log", "-1", "--format=%ct").strip()
    for name in ("first", "second"):
        run(UV, "build", "-q", "-o", str(work / name), str(ROOT), SOURCE_DATE_EPOCH=when)
    built = sorted(path for path in (work / "first").iterdir() if path.suffix in (".whl", ".gz"))
    for path in built:
        if digest(path) != digest(work / "second" / path.name):
            raise SystemExit(f"{path.name} is another one when it is built again")
    return built


def try_wheel(wheel: Path, version: str, work: Path) -> bool:
    """Install it in an empty environment and let it run with an empty home. False where this Python
    is not here."""
    python = find_python(version)
    if not python:
        print(f"Python {version} is not here, so it was not tried")
        return False
    place = work / version
    run(UV, "venv", "-q", "--python", python, str(place))
    run(UV, "pip", "install", "-q", "--python", str(place / "bin/python"), str(wheel))
    home = work / f"home of {version}"
    home.mkdir()
    program = str(place / "bin/deskhand")
    said = run(program, "--version", HOME=str(home))
    shown = run(program, "demo", HOME=str(home))
    if wheel.name.split("-")[1] not in said or "the hash chain is intact" not in shown:
        raise SystemExit(f"with Python {version} it says: {said}{shown}")
    print(f"Python {version}: {said.strip()} runs")
    return True


def find_python(version: str) -> str:
    """Where it is, also if pyenv has it and does not offer it here; '' for nowhere."""
    found = subprocess.run(
        [UV, "python", "find", "--no-project", version], capture_output=True, text=True, check=False
    )
    own = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return found.stdout.strip() if found.returncode == 0 else str(own[-1]) if own else ""


def make_bill(place: Path, target: Path) -> list[dict[str, Any]]:
    """Write what is installed in this environment, and return its components."""
    tool = (UV, "tool", "run", "-q", "--from", "cyclonedx-bom", "cyclonedx-py", "environment")
    project = str(ROOT / "pyproject.toml")
    options = ("--pyproject", project, "--output-reproducible", "-o", str(target))
    run(*tool, str(place / "bin/python"), *options)
    components: list[dict[str, Any]] = json.loads(target.read_text())["components"]
    return components


def licence_of(component: dict[str, Any]) -> str:
    found = [
        each.get("expression") or each.get("license", {}).get("id") or each["license"].get("name")
        for each in component.get("licenses", ())
    ]
    return ", ".join(dict.fromkeys(filter(None, found))) or "not said"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(*command: str, **variables: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
