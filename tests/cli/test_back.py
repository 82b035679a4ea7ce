"""Going back in a conversation from the shell: real processes on one home."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ECHO = "defaults: {models: [scripted/echo]}\n"


def run(home: Path, *args: str) -> tuple[int, str]:
    home.mkdir(exist_ok=True)
    (home / "deskhand.yaml").write_text(ECHO)
    environment = {"DESKHAND_HOME": str(home), "PATH": "/usr/bin:/bin", "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "deskhand", *args],
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=50,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_undo_retry_and_branch(tmp_path: Path) -> None:
    home = tmp_path / "h"
    for text in ("one", "two"):
        assert run(home, "ask", "-s", "talk", text)[0] == 0
    code, said = run(home, "sessions", "undo", "talk")
    assert code == 0 and "as it was before “two”" in said
    code, said = run(home, "sessions", "undo", "talk", "5")
    assert code == 1 and "there is 1 to undo" in said
    code, said = run(home, "sessions", "retry", "talk")
    assert (code, said.strip()) == (0, "You said: one")
    code, said = run(home, "sessions", "branch", "talk")
    assert code == 0 and "default/terminal:talk.b" in said
    name = said.partition("terminal:")[2].partition("”")[0]
    code, said = run(home, "sessions", "list")
    assert code == 0 and name in said
    code, said = run(home, "sessions", "show", name)
    assert code == 0 and "continued from default/terminal:talk" in said
    assert run(home, "audit", "verify")[0] == 0
    code, said = run(home, "sessions", "search", "ON")
    assert code == 0 and "talk" in said and "you: one" in said and "it: You said: one" in said
    code, said = run(home, "sessions", "search", '"', "AND", "(")
    assert code == 0 and said.startswith("No messages found.")
    code, said = run(home, "sessions", "undo", "nobody")
    assert code == 2 and "no conversation 'nobody'" in said
