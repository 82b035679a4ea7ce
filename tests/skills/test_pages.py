"""The commands that the page on skills tells people to write work as they stand there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from .test_install import SKILL, install, skill_folder, zip_of

PAGE = (Path(__file__).parents[2] / "docs" / "skills.md").read_text()


def test_each_way_to_install(tmp_path: Path) -> None:
    written = re.findall(r"^deskhand skills install (.+)$", PAGE, re.MULTILINE)
    zip_of(tmp_path / "letters.zip", ("letters/SKILL.md", SKILL.encode()))
    folder = skill_folder(tmp_path)
    for args in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, "-C", str(folder.parent), *args], check=True)
    here = {
        "~/Downloads/letters.zip": str(tmp_path / "letters.zip"),
        "https://github.com/you/skills": folder.parent.as_uri(),
        "./letters": str(folder),
    }
    for line in written:
        source, *options = line.split()
        options = ["default" if each == "home" else each for each in options]
        assert install(tmp_path, here.pop(source), *options).exit_code == 0, line
    assert here == {}
