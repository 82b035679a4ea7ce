"""`deskhand held`: what is held back from prompts, and the word of the owner on it."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import msgspec
import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.config.statements import load_statements
from deskhand.store.sqlite import SqliteStore
from deskhand.types.commit import Change
from deskhand.types.labels import Label

OUTSIDE = Label("untrusted", source="https://evil.test/\u202e")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    found = {
        "DESKHAND_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "DESKHAND_MODELS": "scripted/tour",
    }
    assert deskhand(found, "ask", "one", "--session", "talk").exit_code == 0
    return found


def deskhand(env: dict[str, str], *args: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, args, env=env, prog_name="deskhand", input=given)


def work(home: Path) -> Path:
    return (home / "agents" / "default" / "workspace").resolve()


def mark(home: Path, path: Path, label: Label = OUTSIDE) -> None:
    async def write() -> None:
        store = SqliteStore(home / "state" / "deskhand.db", load_statements())
        await store.change(
            (Change("file_label_set", (str(path), msgspec.json.encode(label), "s", 1.0)),)
        )
        await store.close()

    anyio.run(write)


def test_from_held_back_to_approved_and_back(env: dict[str, str], tmp_path: Path) -> None:
    assert deskhand(env, "held").stdout == "No files are held back.\n"
    assert "held back" not in deskhand(env, "status").stdout
    soul = work(tmp_path) / "SOUL.md"
    soul.write_text("Be kind.\u202e\n")
    mark(tmp_path, soul)
    listed = deskhand(env, "held").stdout
    assert listed == f"default\tcontent from outside: https://evil.test/\\u202e\t{soul}\n"
    assert json.loads(deskhand(env, "held", "--json").stdout)[0]["path"] == str(soul)
    assert "1 file held back from prompts: deskhand held" in deskhand(env, "status").stdout
    shown = deskhand(env, "held", "show", "SOUL.md").stdout
    assert "Be kind.\\u202e" in shown and f"Approve it: deskhand held approve {soul}" in shown
    assert "Held back: content from outside" in shown
    left = deskhand(env, "held", "approve", "SOUL.md", given="n\n")
    assert (
        left.exit_code == 1
        and "nothing was changed" in left.stderr
        and deskhand(env, "held").stdout == listed
    )
    taken = deskhand(env, "held", "approve", "SOUL.md", given="y\n")
    digest = next(line for line in shown.splitlines() if line.startswith("SHA-256 "))
    assert taken.exit_code == 0 and f"Approved: {soul}\n{digest}\n" in taken.stdout
    assert deskhand(env, "held").stdout == "No files are held back.\n"
    soul.write_text("Be bold.\n")
    assert "changed since owner approved it on " in deskhand(env, "held").stdout
    assert "1 file held back from prompts: deskhand held" in deskhand(env, "status").stdout
    assert deskhand(env, "held", "approve", str(soul), "--yes").exit_code == 0
    assert deskhand(env, "held").stdout == "No files are held back.\n"
    soul.write_text("Be kind.\n")
    kept = deskhand(env, "held", "forget", "SOUL.md", given="n\n")
    assert kept.exit_code == 1 and "changed since" in deskhand(env, "held").stdout
    assert (
        "Revoked the approval of SOUL.md"
        in deskhand(env, "held", "forget", "SOUL.md", "--yes").stdout
    )
    assert deskhand(env, "held").stdout == "No files are held back.\n"
    assert deskhand(env, "held", "forget", "SOUL.md", "--yes").exit_code == 1


def test_a_skill_is_shown_and_approved_with_all_its_files(
    env: dict[str, str], tmp_path: Path
) -> None:
    folder = work(tmp_path) / "skills" / "helper"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: helper\ndescription: Helps.\n---\nHelp.\n")
    (folder / "scripts" / "run.sh").write_text("echo hello\n")
    (folder / "picture").write_bytes(b"\xff\x00")
    mark(tmp_path, folder / "scripts" / "run.sh")
    shown = deskhand(env, "held", "show", "skills/helper/SKILL.md").stdout
    assert str(folder) in shown.splitlines()[0] and "--- scripts/run.sh\necho hello" in shown
    assert "--- picture\n[no text: 2 bytes, SHA-256 " in shown
    assert deskhand(env, "held", "approve", "skills/helper", "--yes").exit_code == 0
    assert deskhand(env, "held").stdout == "No files are held back.\n"
    Path(folder / "scripts" / "run.sh").chmod(0o755)
    assert deskhand(env, "held").stdout == "No files are held back.\n", "what it says is the same"
    (folder / "scripts" / "more.sh").write_text("")
    assert deskhand(env, "held").stdout.startswith("default\tchanged since owner approved it")
    (folder / "link").symlink_to("SKILL.md")
    refused = deskhand(env, "held", "approve", "skills/helper", "--yes")
    assert refused.exit_code == 1 and "it contains links" in refused.stderr


def test_what_is_elsewhere_is_refused(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("x")
    for path, why in (
        (str(tmp_path / "outside.md"), "is not in a workspace"),
        ("none.md", "there is no file 'none.md'"),
    ):
        refused = deskhand(env, "held", "approve", path, "--yes")
        assert refused.exit_code == 1 and why in refused.stderr, refused.output
