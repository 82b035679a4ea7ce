"""The files of the folder, as a program sees them. What is harmless is forgiven, what would lose or invent is refused.

A path that is not there, a pattern without a match, a text that does not occur and a target that exists stop the
program with a plain sentence: a small model is wrong about these, and says that all went well.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterable
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .values import Cell, Stop, read_number, tidy

RUN_S = 10
PATH = "/usr/local/bin:/usr/bin:/bin"
SHOWN_CHARS = 4000
_SIGNS = "*?["


class Folder:
    """The working folder. `read` and `blind` name files: those that were read, and those that were there, were not read
    and were written over. `ran`: a command was run."""

    def __init__(self) -> None:
        self.read_paths: list[str] = []
        self.blind: list[str] = []
        self.ran = False
        self._missed: dict[tuple[str, str], str] = {}
        self._hit: set[tuple[str, str]] = set()
        self._made: set[str] = set()
        self._rows: dict[str, list[dict[str, Any]]] = {}

    # Reading

    def read(self, path: str) -> str:
        """The text of a file."""
        found = self._there(path)
        self.read_paths.append(str(found))
        try:
            return found.read_text("utf-8-sig")
        except UnicodeDecodeError:
            raise Stop(f"{found} is no text") from None

    def lines(self, path: str) -> list[str]:
        """The lines of a file."""
        return self.read(path).splitlines()

    def rows(self, path: str, column: str = "", value: object = None) -> list[Any]:
        """The rows of a CSV, or of the table in a Markdown file, each a dict by the names of its columns; with a column
        only its values, and with a value too the rows that have it. The same rows each time, until they are saved."""
        known = str(self._there(path))
        if known not in self._rows:
            self._rows[known] = _rows_of(known, self.read(path))
        found: list[Any] = self._rows[known]
        if not column:
            return found
        if found and column not in found[0]:
            raise ValueError(f"{path} has no column {column!r}; there are {', '.join(found[0])}")
        return [row[column] for row in found] if value is None else [row for row in found if row[column] == str(value)]

    def cells(self, path: str) -> list[list[Any]]:
        """The lines of a table without a header, each as the list of its cells."""
        text = self.read(path)
        found = csv.reader(io.StringIO(text), delimiter=separator(text), skipinitialspace=True)
        return [[Cell(cell.strip()) for cell in line] for line in found if any(cell.strip() for cell in line)]

    def load_json(self, path: str) -> Any:
        """What a JSON file holds."""
        try:
            return json.loads(self.read(path))
        except ValueError as error:
            raise Stop(f"{path} is no JSON that can be read: {error}") from None

    def files(self, pattern: str = "*", folder: str = ".") -> list[str]:
        """The paths of files, in all folders: by a pattern, or by a part of the name."""
        pattern, base = str(pattern), Path(folder)
        if not base.is_dir():
            raise Stop(f"there is no folder {folder}")
        pattern = pattern.removeprefix("./") or "*"
        if Path(pattern).is_dir():
            base, pattern = base / pattern, "*"
        if not any(sign in pattern for sign in _SIGNS):
            pattern = f"*{pattern}*"
        found = sorted(str(path) for path in _glob(base, pattern) if path.is_file() and not _hidden(path))
        if not found:
            raise Stop(f"there are no files {pattern}" + ("" if folder == "." else f" in {folder}"))
        return found

    def folders(self, folder: str = ".") -> list[str]:
        """The paths of all folders."""
        return sorted(str(path) for path in Path(folder).rglob("*") if path.is_dir() and not _hidden(path))

    def search(self, text: str) -> list[tuple[str, str]]:
        """(path, line) for each line of a file in which a text occurs, whatever its case."""
        found = []
        for path in sorted(Path().rglob("*")):
            if path.is_file() and not _hidden(path):
                try:
                    lines = path.read_text("utf-8-sig").splitlines()
                except UnicodeDecodeError:
                    continue
                hits = [(str(path), line) for line in lines if str(text).lower() in line.lower()]
                self.read_paths += [str(path)] * bool(hits)
                found += hits
        if not found:
            raise Stop(f"no file contains {text!r}")
        return found

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder at this path."""
        return Path(str(path)).exists()

    def size(self, path: str) -> int:
        """The bytes of a file."""
        return self._there(path).stat().st_size

    def modified(self, path: str) -> date:
        """The day on which a file was last changed."""
        return date.fromtimestamp(self._there(path).stat().st_mtime)

    # Writing

    def write(self, path: str, text: Any) -> None:
        """Make a file, or give it a new text."""
        if isinstance(text, list | tuple) and text and isinstance(text[0], dict):
            self.save_rows(path, text)
            return
        target, new = self._target(path), as_text(text)
        if target.is_dir():
            raise Stop(f"{target} is a folder")
        known = str(target)
        if target.is_file() and known not in (*self.read_paths, *self._made) and target.stat().st_size:
            self.blind.append(known)
        end = "" if not new or new.endswith("\n") else "\n"
        self._save(target, new + end)

    def append(self, path: str, text: Any) -> None:
        """Add lines at the end of a file, as entries where it is a list; it is made where it is not there."""
        found = self._maybe(path)
        before = self.read(str(found)) if found is not None else ""
        between = "\n" if before and not before.endswith("\n") else ""
        new = in_style(before, as_text(text))
        self._save(found or self._target(path), before + between + new + ("" if new.endswith("\n") else "\n"))

    def prepend(self, path: str, text: Any) -> None:
        """Add lines at the beginning of a file, beneath its heading, as entries where it is a list."""
        before = self.read(path)
        new, head = in_style(before, as_text(text), top=True), _HEADING.match(before)
        heading = head[0] if head else ""
        end = "" if new.endswith("\n") else "\n"
        self._save(self._there(path), heading + new + end + before[len(heading) :])

    def replace(self, path: str | Iterable[str], old: str, new: str) -> None:
        """Put one text in the place of another, wherever it stands in a file, or in several."""
        if not isinstance(path, str | os.PathLike):
            for each in path:
                self.replace(each, old, new)
            return
        before, old, new = self.read(path), str(old), str(new)
        if not old:
            raise Stop("the text that is to be replaced is empty")
        key, exact = (old, new), before.count(old)
        loose = _loosely(old)
        if not exact and not (loose and re.search(loose, before, re.IGNORECASE)):
            self._missed.setdefault(key, str(self._there(path)))
            return
        self._hit.add(key)
        after = before.replace(old, new) if exact else re.sub(loose, lambda _: new, before, flags=re.IGNORECASE)
        self._save(self._there(path), after)

    def remove_lines(self, path: str, text: str) -> None:
        """Take the lines out of a file in which a text occurs, whatever its case."""
        before = self.lines(path)
        kept = [line for line in before if str(text).lower() not in line.lower()]
        if len(kept) == len(before):
            raise Stop(f"{self._there(path)} has no line with {text!r}")
        self._save(self._there(path), "\n".join(kept) + "\n" * bool(kept))

    def save_rows(self, path: str, rows: Iterable[Any], columns: list[str] | None = None) -> None:
        """Write a CSV: rows are dicts, or lists with `columns` in front."""
        found, target = markdown_rows(rows) if isinstance(rows, str) else list(rows), self._target(path)
        if not found:
            raise Stop(f"no rows are left for {target}")
        before = target.read_text("utf-8-sig") if target.is_file() else ""
        if target.is_file() and str(target) not in (*self.read_paths, *self._made) and before.strip():
            self.blind.append(str(target))
        text, sign = io.StringIO(), separator(before) if before else ","
        if isinstance(found[0], dict):
            names = list(columns or found[0])
            writer = csv.DictWriter(text, names, lineterminator="\n", extrasaction="ignore", delimiter=sign)
            writer.writeheader()
            writer.writerows({name: _cell(row.get(name, "")) for name in names} for row in found)
        elif isinstance(found[0], list | tuple):
            plain = csv.writer(text, lineterminator="\n", delimiter=sign)
            plain.writerows(([columns] if columns else []) + [[_cell(value) for value in row] for row in found])
        else:
            text.write("\n".join(map(str, found)) + "\n")
        self._save(target, text.getvalue())

    def save_json(self, path: str, data: Any) -> None:
        """Write a JSON file."""
        self.write(path, json.dumps(plain_numbers(data), indent=2, ensure_ascii=False, default=str))

    def move(self, old: str, new: str) -> None:
        """Move or rename a file or a folder."""
        source = self._there(old, folders=True)
        target = self._free(source, new)
        shutil.move(source, target)
        self._made.add(str(target))

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; it keeps its ending where the new name has none."""
        source, target = self._there(old, folders=True), str(new).rstrip("/")
        if source.is_file() and not Path(target).suffix and not Path(target).is_dir():
            target += source.suffix
        if "/" not in target and source.parent != Path():
            target = str(source.parent / target)
        self.move(str(source), target)

    def copy(self, old: str, new: str) -> None:
        """Copy a file or a folder."""
        source = self._there(old, folders=True)
        target = self._free(source, new)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
        self._made.add(str(target))

    def delete(self, path: str | Iterable[str]) -> None:
        """Delete a file, or a folder with all that lies in it."""
        if not isinstance(path, str | os.PathLike):
            for each in list(path):
                self.delete(each)
            return
        found = self._there(path, folders=True)
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()

    def make_folder(self, path: str) -> None:
        """Make a folder."""
        target = self._target(path)
        if target.is_file():
            raise Stop(f"{target} is a file already")
        target.mkdir(parents=True, exist_ok=True)

    def pack(self, archive: str, paths: str | Iterable[str]) -> None:
        """Pack files into a .zip or .tar.gz."""
        names = [paths] if isinstance(paths, str) else list(paths)
        found, target = [self._there(name, folders=True) for name in names], self._target(archive)
        inside = [path for each in found for path in ([each] if each.is_file() else sorted(each.rglob("*")))]
        if target.exists():
            raise Stop(f"{target} exists already and would be lost")
        target.parent.mkdir(parents=True, exist_ok=True)
        # The same bytes each time, as it is rehearsed and then done: what the program has made itself has no time.
        times = {path: 0 if str(path) in self._made else int(path.stat().st_mtime) for path in inside if path.is_file()}
        pack_into(target, times)

    def run(self, command: str) -> str:
        """Run a command, and give what it prints. One that fails stops the program."""
        self.ran = True
        environment = {"PATH": f"{Path(sys.executable).parent}:{PATH}", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp"}
        try:
            ended = subprocess.run(
                ["/bin/bash", "-c", str(command)],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=RUN_S,
                stdin=subprocess.DEVNULL,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Stop(f"{command!r} ran longer than {RUN_S} s and was stopped") from None
        said = (ended.stdout + ended.stderr).strip()
        if ended.returncode:
            last = said.splitlines()[-1][:200] if said else "it printed nothing"
            why = f"{command!r} failed with exit code {ended.returncode}: {last}"
            raise RuntimeError(why) if any(name in str(command) for name in self._made) else Stop(why)
        return said

    def owed(self) -> str:
        """What is to be said of texts that were to be replaced and occur in no file; '' for nothing."""
        for (old, _), path in self._missed.items():
            if not any(hit[0] == old for hit in self._hit):
                return f"{path} does not contain {old!r}"
        return ""

    # Paths

    def _there(self, path: str | os.PathLike[str], *, folders: bool = False) -> Path:
        found = self._maybe(path, folders=folders)
        if found is None:
            raise Stop(f"there is no file {os.fspath(path)}")
        return found

    def _maybe(self, path: str | os.PathLike[str], *, folders: bool = False) -> Path | None:
        """The file that is meant: at this path, or the only one of that name, whatever its case and its ending."""
        asked = self._inside(path)
        if asked.is_file() or (folders and asked.is_dir()):
            return asked
        if asked.is_dir():
            raise Stop(f"{asked} is a folder")
        name = asked.name.casefold()
        here = [each for each in Path().rglob("*") if (each.is_file() or folders) and not _hidden(each)]
        for same in (
            lambda each: str(each).casefold() == str(asked).casefold(),
            lambda each: each.name.casefold() == name,
            lambda each: each.stem.casefold() == name,
        ):
            if len(found := [each for each in here if same(each)]) == 1:
                return found[0]
        return None

    def _target(self, path: str | os.PathLike[str]) -> Path:
        target = self._inside(path)
        if str(target) in ("", "."):
            raise Stop("a file needs a name")
        return target

    def _free(self, source: Path, new: str) -> Path:
        """Where something is to come to lie; nothing may be there. A name without an ending is that of a folder."""
        target = self._target(new)
        bare = source.is_file() and source.suffix and not target.suffix
        if str(new).endswith("/") or target.is_dir() or bare:
            target = target / source.name
        if target.exists():
            raise Stop(f"{target} exists already and would be lost")
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    @staticmethod
    def _inside(path: str | os.PathLike[str]) -> Path:
        given = Path(os.path.normpath(str(path).strip() or "."))
        if given.is_absolute() and given.is_relative_to(Path.cwd()):
            given = given.relative_to(Path.cwd())
        if given.is_absolute() or ".." in given.parts:
            raise Stop(f"{path} is outside of the folder")
        return given

    def _save(self, target: Path, text: str) -> None:
        self._rows.pop(str(target), None)
        before = target.read_bytes()[:SHOWN_CHARS] if target.is_file() else b""
        target.parent.mkdir(parents=True, exist_ok=True)
        self._made.add(str(target))
        marked = "utf-8-sig" if before.startswith(b"\xef\xbb\xbf") else "utf-8"
        with target.open("w", encoding=marked, newline="\r\n" if b"\r\n" in before else "\n") as file:
            file.write(text.replace("\r\n", "\n"))


_HEADING = re.compile(r"(?:#+ .*\n(?:[ \t]*\n)*)?")
_ENTRY = re.compile(r"([ \t]*)(?:([-*+\u2022]) (\[[ xX]\] )?|(\d+)([.)]) )")


def in_style(before: str, new: str, *, top: bool = False) -> str:
    """New lines in the style of the list that a file ends with, or with `top` begins with: bullets, boxes, numbers."""
    entries = [line for line in before.splitlines() if line.strip() and not line.startswith("#")]
    matches = [match for line in entries if (match := _ENTRY.match(line))]
    if not matches or len(matches) < len(entries) or _ENTRY.match(new):
        return new
    like = matches[0 if top else -1]
    lines = [line for line in new.splitlines() if line.strip()]
    if like[4]:
        return (
            new if top else "\n".join(f"{like[1]}{int(like[4]) + n}{like[5]} {line}" for n, line in enumerate(lines, 1))
        )
    box = "[ ] " if like[3] else ""
    return "\n".join(f"{like[1]}{like[2]} {box}{line}" for line in lines)


def pack_into(target: Path, times: dict[Path, int]) -> None:
    """A .zip, .tar or .tar.gz of these files, each with its time."""
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zipped:
            for path, at in times.items():
                stamp = time.gmtime(max(at, _FIRST_ZIP))[:6]
                info = zipfile.ZipInfo(str(path), stamp)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                zipped.writestr(info, path.read_bytes())
        return
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, at in times.items():
            member = tarfile.TarInfo(str(path))
            member.size, member.mtime, member.mode = path.stat().st_size, at, 0o644
            with path.open("rb") as file:
                tar.addfile(member, file)
    whole = packed.getvalue()
    target.write_bytes(gzip.compress(whole, mtime=0) if target.name.endswith("gz") else whole)


_FIRST_ZIP = 315_532_800
"""1980: a zip knows no time before it."""


def separator(text: str) -> str:
    """What separates the cells of a CSV: what its first line has most of."""
    first = text.split("\n", 1)[0]
    return max(",;\t|", key=first.count) if first else ","


def as_text(value: Any) -> str:
    """A value as the text of a file: the lines of a list, JSON for a dict."""
    if isinstance(value, dict):
        return json.dumps(plain_numbers(value), indent=2, ensure_ascii=False, default=str)
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        return "\n".join(as_text(each) if isinstance(each, dict) else str(each).rstrip("\n") for each in value)
    return str(value)


def plain_numbers(value: Any) -> Any:
    """The same for JSON: cells that are numbers become numbers."""
    if isinstance(value, Cell):
        found = read_number(value) if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", value) else None
        return str(value) if found is None else int(found) if found == int(found) and "." not in value else found
    if isinstance(value, float) and math.isfinite(value):
        return tidy(value)
    if isinstance(value, dict):
        return {str(key): plain_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(each) for each in value]
    return value


def _rows_of(path: str, text: str) -> list[dict[str, Any]]:
    if marked := markdown_rows(text):
        return [{name: Cell(value) for name, value in row.items()} for row in marked]
    first, sign = text.split("\n", 1)[0], separator(text)
    if first and sign not in first:
        raise ValueError(f"{path} is no table; use lines({path!r})")
    reader = csv.DictReader(io.StringIO(text), delimiter=sign, skipinitialspace=True, restkey="")
    found = list(reader)
    if odd := next((row for row in found if row.get("")), None):
        raise Stop(f"{path} has a row with more cells than columns: {next(iter(odd.values()))!r} ...")
    return [
        {name.strip(): Cell((value or "").strip()) for name, value in row.items() if name is not None}
        for row in found
        if any(isinstance(value, str) and value.strip() for value in row.values())
    ]


_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")


def markdown_rows(text: str) -> list[dict[str, str]]:
    """The rows of the first table in a Markdown text, by the names of its columns; none where there is none."""
    lines = text.splitlines()
    at = next((n for n, line in enumerate(lines) if n and "|" in line and _RULE.fullmatch(line)), 0)
    if not at or "|" not in lines[at - 1]:
        return []
    names, found = _marked_cells(lines[at - 1]), list[dict[str, str]]()
    for line in lines[at + 1 :]:
        if "|" not in line:
            break
        cells = _marked_cells(line)
        found.append(dict(zip(names, cells + [""] * len(names), strict=False)))
    return found


def _marked_cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def table(rows: Iterable[Any], columns: list[str] | None = None) -> str:
    """Rows as a Markdown table."""
    found = list(rows)
    if not found:
        raise Stop("there are no rows for the table")
    names = list(columns or (found[0] if isinstance(found[0], dict) else found.pop(0)))
    body = [[row.get(name, "") for name in names] if isinstance(row, dict) else list(row) for row in found]
    lines = [names, ["---"] * len(names), *body]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _cell(value: Any) -> Any:
    return str(tidy(value)) if isinstance(value, float) and math.isfinite(value) else value


def _loosely(text: str) -> str:
    """The text whatever its case and its blanks, as whole words; '' where it is nothing but blanks."""
    parts = [part for part in re.split(r"\s*([=:])\s*", text) if part.strip()]
    inner = r"\s*".join(r"\s+".join(map(re.escape, part.split())) for part in parts)
    return rf"(?<!\w){inner}(?!\w)" if inner else ""


def _glob(base: Path, pattern: str) -> Iterable[Path]:
    """The paths that a pattern means, whatever their case."""
    if "/" in pattern:
        return base.glob(pattern)
    return (path for path in base.rglob("*") if fnmatchcase(path.name.lower(), pattern.lower()))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts if part not in (".", ".."))
