"""`deskhand tools` and the Python files of a workspace."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from deskhand.cli.root import cli


def test_tools_of_own_files_are_listed(tmp_path: Path) -> None:
    env = {"DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path), "DESKHAND_MODELS": "scripted/echo"}
    folder = tmp_path / "agents" / "default" / "workspace" / "skills"
    folder.mkdir(parents=True)
    (folder / "money.py").write_text(
        "async def convert(amount: float):\n    'Converts euros.'\nasync def shell(): ...\n"
    )
    found = CliRunner().invoke(cli, ("tools",), env=env)
    assert "convert\tlocal_write\t[skill] Converts euros.\n" in found.stdout
    assert "deskhand: skills/money.py: shell is no tool: another one has this name" in found.stderr
