"""Marks in every field and file of a home, to be found again in the new home or in the report of
the import."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner

from deskhand.cli.root import cli

SECRET = object()
"""In a template: a mark that is a secret."""
Also = Callable[[str], tuple[str, ...]]


class Mark(msgspec.Struct, frozen=True):
    """A mark, and the words that name its field or file: it counts as reported where one line has
    all of them."""

    text: str
    words: tuple[str, ...]
    secret: bool = False


class Marks:
    """Hands out marks, and finds those that were lost."""

    def __init__(self) -> None:
        self._marks: list[Mark] = []

    def text(self, *words: str) -> str:
        mark = Mark(f"mark{len(self._marks):04}x", words)
        self._marks.append(mark)
        return mark.text

    def number(self, *words: str) -> int:
        mark = Mark(str(918_000 + len(self._marks)), words)
        self._marks.append(mark)
        return int(mark.text)

    def secret(self, *words: str) -> str:
        mark = Mark(f"hush{len(self._marks):04}hush{len(self._marks):04}", words, secret=True)
        self._marks.append(mark)
        return mark.text

    def filled(self, template: Any, at: str = "", also: Also = lambda path: ()) -> Any:
        """The template with a mark for each `str`, `int` and `SECRET`, which is named by its path,
        or by `also`."""
        if isinstance(template, dict):
            return {
                name: self.filled(value, f"{at}.{name}" if at else name, also)
                for name, value in template.items()
            }
        words = also(at) or (at,)
        if template is str:
            return self.text(*words)
        if template is int:
            return self.number(*words)
        return self.secret(*words) if template is SECRET else template

    def file(self, path: Path, home: Path, before: str = "", after: str = "") -> None:
        """Write a file with a mark in it, that its path names, or the folder where it lies."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{before}{self.text('file', str(path.relative_to(home)))}{after}")

    def lost(self, desk: Path, report: dict[str, Any], said: str) -> list[Mark]:
        """The marks that are neither in the new home nor in the report; secrets that the report
        shows."""
        files = [path.read_bytes() for path in desk.rglob("*") if path.is_file()]
        secrets = (desk / ".env").read_bytes() if (desk / ".env").exists() else b""
        return [
            each for each in self._marks if not self._is_found(each, files, secrets, report, said)
        ]

    def _is_found(
        self, mark: Mark, files: list[bytes], secrets: bytes, report: dict[str, Any], said: str
    ) -> bool:
        lines = [
            *(each["what"] for part in ("changed", "left_out") for each in report[part]),
            *report["taken"]["files"],
        ]
        named = bool(mark.words) and any(all(word in line for word in mark.words) for line in lines)
        if mark.secret:
            where = [data for data in files if mark.text.encode() in data]
            return mark.text not in said and (named or where == [secrets])
        if mark.words[:1] == ("file",):
            named = any(
                mark.words[1] == line.rstrip("/") or _is_in(mark.words[1], line) for line in lines
            )
        return named or mark.text in said or any(mark.text.encode() in data for data in files)


def _is_in(path: str, folder: str) -> bool:
    return folder.endswith("/") and path.startswith(folder)


def imported(home: Path, tmp_path: Path, *args: str) -> tuple[dict[str, Any], str]:
    """Take the home over. Returns its report, and all that a person and a program read of it."""
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)
    env = {"DESKHAND_HOME": str(tmp_path / "desk"), "HOME": str(tmp_path)}
    preview = CliRunner().invoke(cli, ["import", str(home), *args], env=env, prog_name="deskhand")
    assert preview.exit_code == 0, preview.output
    done = CliRunner().invoke(
        cli, ["import", str(home), "--yes", "--json", *args], env=env, prog_name="deskhand"
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)[0]["report"]
    return {**report, "taken": {"files": [], **report["taken"]}}, preview.output + done.output
