"""The files of the folder, as a program sees them. What is harmless is forgiven, what would lose or
invent is refused.

A path that is not there, a pattern without a match, a text that does not occur and a target that
exists stop the program with a plain sentence: a small model is wrong about these, and says that all
went well.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from datetime import date
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any

from .packing import pack_files
from .tables import (
    Record,
    Rows,
    detect_delimiter,
    parse_markdown_rows,
    parse_rows,
    replace_table,
    table,
    to_cell,
    to_csv_line,
    to_json_value,
)
from .texts import (
    HEADING,
    Line,
    find_lines,
    find_section_end,
    insert_lines,
    match_list_style,
    replace_text,
    split_lines,
    tick_entries,
    to_text,
)
from .values import Cell, Stop, TextValue

NOTHING_FOUND_TEXT = "nothing was found for"
RUN_TIMEOUT_S = 10
PATH = "/usr/local/bin:/usr/bin:/bin"
HEAD_BYTES = 4000
_GLOB_CHARS = "*?["
_MARKUP = re.compile(r"^[-*+ \t]+|[*_`]")


class Folder:
    """The working folder. `read` and `blind` name files: those that were read, and those that were
    there, were not read and were written over. `ran`: a command was run."""

    def __init__(self) -> None:
        self.read_paths: list[str] = []
        self.blind: list[str] = []
        self.ran = False
        self._missed: dict[tuple[str, str], str] = {}
        self._hit: set[tuple[str, str]] = set()
        self._made: set[str] = set()
        self._rows: dict[str, Rows] = {}
        self._tables: set[str] = set()

    # Reading

    def read(self, path: str) -> str:
        """The text of a file."""
        found = self._there(path)
        self.read_paths.append(str(found))
        try:
            return TextValue(found.read_text("utf-8-sig"))
        except UnicodeDecodeError:
            raise Stop(f"{found} is no text") from None

    def lines(self, path: str) -> list[str]:
        """The lines of a file."""
        return [Line(line) for line in split_lines(self.read(path))]

    def rows(self, path: str, column: str = "", value: object = None) -> list[Any]:
        """The rows of a CSV, or of the table in a Markdown file, each a dict by the names of its
        columns; with a column only its values, and with a value too the rows that have it. The same
        rows each time, until they are saved."""
        known = str(self._there(path))
        if known not in self._rows:
            self._rows[known] = Rows(parse_rows(known, self.read(path)))
            self._tables.add(known)
        found: list[Any] = self._rows[known]
        if not column:
            return found
        if found and column not in found[0]:
            raise ValueError(f"{path} has no column {column!r}; there are {', '.join(found[0])}")
        if value is None:
            return [row[column] for row in found]
        return [row for row in found if row[column] == str(value)]

    def cells(self, path: str) -> list[list[Any]]:
        """The lines of a table without a header, each as the list of its cells; all as long as the
        longest."""
        text = self.read(path)
        lines = csv.reader(
            io.StringIO(text), delimiter=detect_delimiter(text), skipinitialspace=True
        )
        stripped = [[cell.strip() for cell in line] for line in lines]
        filled = [line for line in stripped if any(line)]
        width = max(map(len, filled), default=0)
        for line in filled:
            line += [""] * (width - len(line))
        self._tables.add(str(self._there(path)))
        return [[Cell(cell) for cell in line] for line in filled]

    def load_json(self, path: str) -> Any:
        """What a JSON file holds."""
        try:
            return json.loads(self.read(path), object_hook=Record)
        except (ValueError, RecursionError) as error:
            raise Stop(f"{path} is no JSON that can be read: {error}") from None

    def files(self, pattern: str = "*", folder: str = ".") -> list[str]:
        """The paths of files, in all folders: by a pattern, or by a part of the name."""
        pattern = str(pattern)
        base = Path(folder)
        if not base.is_dir():
            raise Stop(f"there is no folder {folder}")
        pattern = pattern.removeprefix("./").removeprefix(f"{str(folder).strip('./')}/") or "*"
        if Path(pattern).is_dir():
            base = base / pattern
            pattern = "*"
        if not any(sign in pattern for sign in _GLOB_CHARS) and not Path(pattern).suffix:
            pattern = f"*{pattern}*"
        found = sorted(
            str(path) for path in _glob(base, pattern) if path.is_file() and not _is_hidden(path)
        )
        if not found:
            raise Stop(f"there are no files {pattern}" + ("" if folder == "." else f" in {folder}"))
        return found

    def folders(self, folder: str = ".") -> list[str]:
        """The paths of all folders."""
        return sorted(
            str(path) for path in Path(folder).rglob("*") if path.is_dir() and not _is_hidden(path)
        )

    def search(self, text: str, *where: str) -> list[tuple[str, str]]:
        """(path, line) for each line in which a text occurs, whatever its case; of all files, or
        those `where`. Where it occurs as a whole word, only those lines."""
        found = []
        wanted = str(text).lower()
        places = self._below(where) if where else Path().rglob("*")
        for path in sorted(places):
            if not path.is_file() or _is_hidden(path):
                continue
            try:
                lines = path.read_text("utf-8-sig").splitlines()
            except UnicodeDecodeError:
                continue
            hits = [(str(path), line) for line in lines if wanted in line.lower()]
            if hits:
                self.read_paths.append(str(path))
                found += hits
        if not found:
            raise Stop(f"no file contains {text!r}")
        whole = set(find_lines([line for _, line in found], str(text)))
        return [hit for hit in found if hit[1] in whole]

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder at this path."""
        return Path(str(path)).exists()

    def size(self, path: str) -> int:
        """The bytes of a file."""
        return self._there(path).stat().st_size

    def modified(self, path: str) -> date:
        """The day on which a file was last changed."""
        return date.fromtimestamp(self._there(path).stat().st_mtime)

    def value(self, path: str, label: str) -> Cell:
        """What stands behind a label in a file: `Start: 3 May`, `port = 80`."""
        wanted = str(label).strip().rstrip(":=").casefold()
        for line in self.lines(path):
            bare = _MARKUP.sub("", line)
            name, sign, rest = bare.partition("=" if "=" in line else ":")
            if sign and name.strip().casefold() == wanted:
                return Cell(rest.strip())
        raise Stop(f"{self._there(path)} has no line '{label}: ...'")

    # Writing

    def write(self, path: str, text: Any) -> None:
        """Make a file, or give it a new text."""
        if isinstance(text, list | tuple) and text and isinstance(text[0], dict):
            self.save_rows(path, text)
            return
        target = self._target(path)
        new = to_text(text)
        if target.is_dir():
            raise Stop(f"{target} is a folder")
        if not isinstance(text, str) and not new.strip():
            raise LookupError(f"{NOTHING_FOUND_TEXT} {target}")

        if target.is_file() and not self._has_seen(target) and target.stat().st_size:
            self.blind.append(str(target))
        self._save(target, _end_line(new))

    def append(self, path: str, text: Any, under: str = "") -> None:
        """Add lines at the end of a file, or of its part `under` a heading, as entries where it is
        a list; the file is made where it is not there."""
        found = self._maybe(path, elsewhere=False)
        before = self.read(str(found)) if found is not None else ""
        if under:
            self._put_in(path, to_text(text), find_section_end(before, str(under)), under)
            return
        if isinstance(text, list | tuple) and str(found).lower().endswith((".csv", ".tsv")):
            text = to_csv_line(before, text)
        new = match_list_style(before, to_text(text)) or "\n"  # an empty text is an empty line
        self._save(found or self._target(path), _end_line(before) + _end_line(new))

    def prepend(self, path: str, text: Any) -> None:
        """Add lines at the beginning of a file, beneath its heading, as entries where it is a
        list."""
        path = str(self._own(path))
        before = self.read(path)
        new = match_list_style(before, to_text(text), top=True)
        head = HEADING.match(before)
        heading = head[0] if head else ""
        rest = before[len(heading) :]
        self._save(self._there(path), heading + _end_line(new or "\n") + rest)

    def insert(self, path: str, text: Any, after: str = "", before: str = "") -> None:
        """Add lines after, or before, the first line in which a text occurs."""
        wanted = str(after or before).casefold()
        if not wanted.strip():
            raise Stop("say after which line, or before which, it is to be put")
        path = str(self._own(path))
        at = None
        for number, line in enumerate(self.lines(path)):
            if wanted in line.casefold():
                at = number + 1 if after else number
                break
        self._put_in(path, to_text(text), at, after or before)

    def _put_in(self, path: str, new: str, at: int | None, beside: str) -> None:
        if at is None:
            raise Stop(f"{self._there(path)} has no line with {beside!r}")
        self._save(self._there(path), insert_lines(self.read(path), new, at))

    def tick(self, path: str, text: str, done: bool = True) -> None:
        """Tick the box of the entries in which a text occurs, or with done=False take the tick
        away."""
        if not str(text).strip():
            raise Stop("say which entry is meant")
        path = str(self._own(path))
        after = tick_entries(self.read(path), str(text), done)
        if after is None:
            raise Stop(f"{self._there(path)} has no box with {text!r}")
        self._save(self._there(path), after)

    def replace(self, path: str | Iterable[str], old: str, new: str) -> None:
        """Put one text in the place of another, wherever it stands in a file, or in several: `9:00`
        is not in `19:00`, unless it stands nowhere else."""
        if not isinstance(path, str | os.PathLike):
            for each in path:
                self.replace(each, old, new)
            return
        path = str(self._own(path))
        before = self.read(path)
        old = str(old)
        new = str(new)
        if not old:
            raise Stop("the text that is to be replaced is empty")
        after = replace_text(before, old, new)
        if after is None:
            self._missed.setdefault((old, new), str(self._there(path)))
            return
        self._hit.add((old, new))
        self._save(self._there(path), after)

    def remove_lines(self, path: str, *texts: Any) -> None:
        """Take the lines out of a file in which one of the texts occurs, whatever its case; or
        these rows."""
        given = list[Any]()
        for text in texts:
            given += text if isinstance(text, list | tuple | set) else [text]

        if given and all(isinstance(each, dict) for each in given):
            self.save_rows(path, [row for row in self.rows(path) if row not in given])
            return
        path = str(self._own(path))
        lines = self.lines(path)
        for text in given:
            found = find_lines(lines, str(text))
            kept = [line for line in lines if line not in found]
            if len(kept) == len(lines):
                raise Stop(f"{self._there(path)} has no line with {text!r}")
            lines = kept
        self._save(self._there(path), "".join(f"{line}\n" for line in lines))

    def remove_rows(self, path: str, *which: Any) -> None:
        """Take these rows out of a table, or those with a value in a column."""
        if len(which) > 1 and isinstance(which[0], str):
            which = (self.rows(path, which[0], which[1]),)
        self.remove_lines(path, *which)

    def add_row(self, path: str, row: dict[str, Any]) -> None:
        """Add a row at the end of a table."""
        self.save_rows(path, [*self.rows(path), row])

    def save_rows(
        self, path: str, rows: Iterable[Any], columns: list[str] | None = None, delimiter: str = ""
    ) -> None:
        """Write a CSV: rows are dicts, or lists with `columns` in front. The delimiter is else that
        of the file."""
        found = parse_markdown_rows(rows) if isinstance(rows, str) else list(rows)
        target = self._target(path)
        if not found:
            raise Stop(f"no rows are left for {target}")
        before = target.read_text("utf-8-sig") if target.is_file() else ""
        ending = target.suffix.lower()
        holds_text = before.strip() and ending not in ("", ".csv", ".tsv")
        if holds_text and not isinstance(found[0], str):
            if isinstance(found[0], dict):
                with_table = replace_table(before, table(found, columns))
                if with_table:
                    self._save(target, with_table)
                    return
            if str(target) not in (*self._tables, *self._made):
                why = "holds a text that would be lost; save the rows in a .csv file"
                raise Stop(f"{target} {why}")

        if before.strip() and not self._has_seen(target):
            self.blind.append(str(target))
        if not delimiter:
            usual = "\t" if ending == ".tsv" else ","
            delimiter = detect_delimiter(before) if before else usual
        self._save(target, _render_csv(found, columns, delimiter))

    def save_json(self, path: str, data: Any) -> None:
        """Write a JSON file."""
        self.write(path, json.dumps(to_json_value(data), indent=2, ensure_ascii=False, default=str))

    def move(self, old: str, new: str) -> None:
        """Move or rename a file or a folder."""
        source = self._own(old, folders=True)
        if self._inside(new) == source:
            return
        target = self._free(source, new)
        shutil.move(source, target)
        self._made.add(str(target))

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; it keeps its ending where the new name has none."""
        source = self._own(old, folders=True)
        target = str(new).rstrip("/")
        if source.is_file() and not Path(target).suffix and not Path(target).is_dir():
            target += source.suffix
        if "/" not in target and source.parent != Path():
            target = str(source.parent / target)
        self.move(str(source), target)

    def copy(self, old: str, new: str) -> None:
        """Copy a file or a folder."""
        source = self._own(old, folders=True)
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
        found = self._own(path, folders=True)
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
        found = [self._own(name, folders=True) for name in names]
        target = self._target(archive)
        inside = list[Path]()
        for each in found:
            inside += [each] if each.is_file() else sorted(each.rglob("*"))
        if target.exists():
            raise Stop(f"{target} exists already and would be lost")
        target.parent.mkdir(parents=True, exist_ok=True)

        # The same bytes each time, as it is rehearsed and then done: what the program has made
        # itself has no time.
        times = dict[Path, int]()
        for path in inside:
            if path.is_file():
                is_made = str(path) in self._made
                times[path] = 0 if is_made else int(path.stat().st_mtime)
        pack_files(target, times)

    def run(self, command: str) -> str:
        """Run a command, and give what it prints. One that fails stops the program."""
        self.ran = True
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{PATH}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": "/tmp",
        }
        try:
            ended = subprocess.run(
                ["/bin/bash", "-c", str(command)],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=RUN_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Stop(f"{command!r} ran longer than {RUN_TIMEOUT_S} s and was stopped") from None
        said = (ended.stdout + ended.stderr).strip()
        if ended.returncode:
            last = said.splitlines()[-1][:200] if said else "it printed nothing"
            why = f"{command!r} failed with exit code {ended.returncode}: {last}"
            if any(name in str(command) for name in self._made):
                raise RuntimeError(why)
            raise Stop(why)
        return said

    def owed(self) -> str:
        """What is to be said of texts that were to be replaced and occur in no file; '' for
        nothing."""
        for (old, _), path in self._missed.items():
            if not any(hit[0] == old for hit in self._hit):
                return f"{path} does not contain {old!r}"
        return ""

    # Paths

    def _below(self, place: Any) -> list[Path]:
        """The files that are meant by a path, a pattern, a folder, or a list of them."""
        if isinstance(place, list | tuple | set):
            below = list[Path]()
            for each in place:
                below += self._below(each)
            return below

        found = self._maybe(place) if not Path(str(place)).is_dir() else None
        return [found] if found else [Path(path) for path in self.files(place)]

    def _there(self, path: str | os.PathLike[str]) -> Path:
        """The file that is to be read."""
        return self._known(path, self._maybe(path))

    def _own(self, path: str | os.PathLike[str], *, folders: bool = False) -> Path:
        """The file that is to be changed: in no other folder than the one that is named."""
        return self._known(path, self._maybe(path, folders=folders, elsewhere=False))

    @staticmethod
    def _known(path: str | os.PathLike[str], found: Path | None) -> Path:
        if found is None:
            raise Stop(f"there is no file {os.fspath(path)}")
        return found

    def _maybe(
        self, path: str | os.PathLike[str], *, folders: bool = False, elsewhere: bool = True
    ) -> Path | None:
        """The file that is meant: at this path, or the only one of that name, whatever its case;
        with any ending where none is given. Without `elsewhere` a path with a folder is looked for
        in that folder alone."""
        asked = self._inside(path)
        if asked.is_file() or (folders and asked.is_dir()):
            return asked
        if asked.is_dir():
            raise Stop(f"{asked} is a folder")
        here = [path for path in Path().rglob("*") if not _is_hidden(path)]
        if not folders:
            here = [path for path in here if path.is_file()]
        folder = str(asked.parent).casefold()
        if not elsewhere and folder != ".":
            here = [path for path in here if str(path.parent).casefold() == folder]

        whole = str(asked).casefold()
        name = asked.name.casefold()
        candidates = [
            [path for path in here if str(path).casefold() == whole],
            [path for path in here if path.name.casefold() == name],
        ]
        if not asked.suffix:
            candidates.append([path for path in here if path.stem.casefold() == name])
        for found in candidates:
            if len(found) == 1:
                return found[0]
        return None

    def _target(self, path: str | os.PathLike[str]) -> Path:
        target = self._inside(path)
        if str(target) in ("", "."):
            raise Stop("a file needs a name")
        return target

    def _free(self, source: Path, new: str) -> Path:
        """Where something is to come to lie; nothing may be there. A name without an ending is that
        of a folder."""
        target = self._target(new)
        lacks_ending = source.is_file() and source.suffix and not target.suffix
        if str(new).endswith("/") or target.is_dir() or lacks_ending:
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
        before = target.read_bytes()[:HEAD_BYTES] if target.is_file() else b""
        target.parent.mkdir(parents=True, exist_ok=True)
        self._made.add(str(target))
        encoding = "utf-8-sig" if before.startswith(codecs.BOM_UTF8) else "utf-8"
        line_end = "\r\n" if b"\r\n" in before else "\n"
        with target.open("w", encoding=encoding, newline=line_end) as file:
            file.write(text.replace("\r\n", "\n"))

    def _has_seen(self, target: Path) -> bool:
        """Whether the program has read this file, or made it."""
        return str(target) in (*self.read_paths, *self._made)


def _end_line(text: str) -> str:
    """The text with a line end behind its last line."""
    return text if not text or text.endswith("\n") else f"{text}\n"


def _render_csv(rows: list[Any], columns: list[str] | None, delimiter: str) -> str:
    """Rows, of which there is one at least, as a CSV: dicts, lists or lines."""
    text = io.StringIO()
    if isinstance(rows[0], dict):
        names = list(columns or dict.fromkeys(chain.from_iterable(rows)))
        writer = csv.writer(text, lineterminator="\n", delimiter=delimiter)
        writer.writerow(names)
        writer.writerows([to_cell(row.get(name, "")) for name in names] for row in rows)
    elif isinstance(rows[0], list | tuple):
        writer = csv.writer(text, lineterminator="\n", delimiter=delimiter)
        if columns:
            writer.writerow(columns)
        writer.writerows([to_cell(value) for value in row] for row in rows)
    else:
        text.writelines(f"{row}\n" for row in rows)
    return text.getvalue()


def _glob(base: Path, pattern: str) -> Iterable[Path]:
    """The paths that a pattern means, whatever their case."""
    if "/" in pattern:
        return base.glob(pattern)
    return (path for path in base.rglob("*") if fnmatchcase(path.name.lower(), pattern.lower()))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts if part not in (".", ".."))
