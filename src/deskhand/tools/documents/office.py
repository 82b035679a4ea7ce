"""The program that makes a PDF of an Office document with LibreOffice: a line of JSON and the bytes
come in, a PDF goes out."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Read stdin, write stdout: `{"soffice": path, "ending": ".docx"}` says what is run and how the
    file is called. What cannot be converted is an answer too: `{"unreadable": "Error: …"}`."""
    asked = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.buffer.write(_convert(asked["soffice"], asked["ending"], data, Path(folder)))


def _convert(soffice: str, ending: str, data: bytes, folder: Path) -> bytes:
    document = folder / f"document{ending}"
    document.write_bytes(data)
    command = [
        soffice,
        f"-env:UserInstallation=file://{folder}/profile",
        "--headless",
        "--norestore",
        "--convert-to",
        "pdf",
        "--outdir",
        str(folder),
        str(document),
    ]
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    ended = subprocess.run(command, capture_output=True, env=environment, check=False)
    made = document.with_suffix(".pdf")
    if made.exists():
        return made.read_bytes()
    said = (ended.stderr or ended.stdout).decode(errors="replace").strip()
    return json.dumps({"unreadable": said.partition("\n")[0][:200]}).encode()
