"""What lies in the workspace, and how each file is read: untold, a small model takes a table apart
wrongly."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ...types.intended_loss import is_file_mentioned
from ...types.programs import Purpose
from ..paths import Place
from .inside.tables import detect_delimiter, parse_markdown_rows
from .source import Source

MAX_NAMES = 40
MAX_HEADS = 6
MAX_HEAD_LINES = 6
MAX_HEAD_CHARS = 90
MAX_WHOLE_LINES = 14
"""A text that is named is shown whole where it has no more lines."""
MAX_HITS = 4
"""So many lines are shown besides because words of the request stand in them."""
MIN_TABLE_LINES = 3
"""So many lines make a table."""
MAX_VALUES = 5
MAX_VALUE_CHARS = 20
PEEK_BYTES = 256 << 10
MAX_WHOLE_BYTES = 6_000
"""Of a file that is to be understood so much is shown."""


class SurveyedFile:
    """The files of a source, and where each lay whenever it was read. It blocks. Raises OSError."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._named = {each.path: each for each in source.iter_entries()}
        self._places: dict[str, list[Place]] = {
            path: [each.place] for path, each in self._named.items()
        }

    @property
    def files(self) -> list[str]:
        return [path for path, each in self._named.items() if not each.folder]

    @property
    def folders(self) -> list[str]:
        return [path for path, each in self._named.items() if each.folder]

    def size(self, path: str) -> int:
        return self._named[path].size

    def read_head(self, path: str) -> str | None:
        """The beginning of a text; None for what is none."""
        try:
            found = self._source.read(path, PEEK_BYTES)
        except OSError:
            return None
        self._places[path].append(found.place)
        data = found.data
        if b"\0" in data:
            return None

        # Of a longer file the last character may be cut in two.
        is_whole = len(data) < PEEK_BYTES
        try:
            return data.decode("utf-8-sig", "strict" if is_whole else "ignore")
        except UnicodeDecodeError:
            return None

    def places(self, paths: Iterable[str]) -> list[Place]:
        """Where these lay when they were listed, and when they were read."""
        found = list[Place]()
        for path in paths:
            found += dict.fromkeys(self._places[path])
        return found


def survey_source(source: Source, request: str, purpose: Purpose) -> tuple[str, list[Place]]:
    """The listing, with the files that the request names first; and the places of those whose words
    or names are in it."""
    seen = SurveyedFile(source)
    said, shown = _render_survey(seen, request, purpose)
    return said, seen.places(shown)


def _render_survey(seen: SurveyedFile, request: str, purpose: Purpose) -> tuple[str, list[str]]:
    paths = seen.files
    called = [path for path in paths if is_file_mentioned(path, request)]
    if purpose == "read":
        texts = _select_to_read(seen, paths, called, request)
        if texts:
            return _render_texts(seen, texts)

    heads = called[:MAX_HEADS] if called else _select_likely(paths, request)[:MAX_HEADS]
    lines = [_render_head(seen, path, request) for path in heads]

    rest = [path for path in paths if path not in heads]
    if heads and all(_is_name_said(path, request) for path in heads):
        # A small model works on whatever it is shown: other files are told where the request may
        # mean them.
        rest = rest[:MAX_NAMES] if _MENTIONS_OTHERS.search(request) else []
        if rest:
            lines.append("- also here: " + ", ".join(rest))
    else:
        lines += [_render_head(seen, path) for path in rest]

    said = lines[:MAX_NAMES]
    more = len(lines) - MAX_NAMES
    if more > 0:
        said.append(f"- and {more} more files")

    empty = _find_empty_folders(seen)
    said += [f"- {path}/ is an empty folder" for path in empty]

    shown = [*heads, *rest, *empty]
    if not said:
        return "Files here: none", shown
    return "Files here:\n" + "\n".join(said), shown


def _is_name_said(path: str, request: str) -> bool:
    """Whether the request has the name of the file with its ending, whatever its case."""
    return Path(path).name.lower() in request.lower()


def _find_empty_folders(seen: SurveyedFile) -> list[str]:
    files = seen.files
    return [
        folder
        for folder in seen.folders
        if not any(path.startswith(f"{folder}/") for path in files)
    ]


_OTHERS_WORDS = (
    "files?",
    "folders?",
    "others?",
    "rest",
    "everything",
    "anything",
    "documents?",
    "pictures",
    "photos",
    "same name",
    "both",
)
_MENTIONS_OTHERS = re.compile(rf"\b({'|'.join(_OTHERS_WORDS)})\b", re.IGNORECASE)


def _select_to_read(
    seen: SurveyedFile, paths: Sequence[str], called: list[str], request: str
) -> list[str]:
    """The files that are to be read: those that are named, with their endings or else before all
    others."""
    if any(_is_name_said(path, request) for path in called):
        return called

    others = [path for path in _find_small_texts(seen, paths) if path not in called]
    if not called:
        return others

    both = [*called, *others]
    fits = len(both) <= MAX_HEADS and sum(map(seen.size, both)) <= MAX_WHOLE_BYTES
    return both if fits else called


def _find_small_texts(seen: SurveyedFile, paths: Sequence[str]) -> list[str]:
    """The texts that there are, where there is room for all of them."""
    sizes = {path: seen.size(path) for path in paths}
    small = [path for path, size in sizes.items() if 0 < size <= MAX_WHOLE_BYTES]
    if len(small) > 2 * MAX_HEADS:
        return []
    texts = [path for path in small if seen.read_head(path)]
    fits = len(texts) <= MAX_HEADS and sum(sizes[path] for path in texts) <= MAX_WHOLE_BYTES
    return texts if fits else []


def _render_texts(seen: SurveyedFile, paths: Sequence[str]) -> tuple[str, list[str]]:
    """The words of these files, as many as there is room for."""
    said = list[str]()
    room = MAX_WHOLE_BYTES
    for path in paths[:MAX_HEADS]:
        text = seen.read_head(path)
        if text is None:
            said.append(f"--- {path} is no text")
            continue
        cut = text[:room]
        room -= len(cut)
        end = "" if cut == text else f"\n… ({len(text) - len(cut):,} more characters)"
        said.append(f"--- {path}\n{cut.rstrip()}{end}\n--- end of {path}")
    return "\n".join(said), list(paths[:MAX_HEADS])


def _select_likely(paths: Sequence[str], request: str) -> list[str]:
    """The few files that there are, or those whose names share a word with the request."""
    if len(paths) <= MAX_HEADS // 2:
        return list(paths)

    words = _word_beginnings(request)
    found = [path for path in paths if words & _word_beginnings(path)]
    if found:
        return found

    top = [path for path in paths if "/" not in path]
    return top[: MAX_HEADS // 2]


def _word_beginnings(text: str) -> set[str]:
    """The first four letters of each word."""
    return {word[:4] for word in re.findall(r"[a-z]{4,}", text.lower())}


def _render_head(seen: SurveyedFile, path: str, request: str | None = None) -> str:
    """A line about the file, and with a request how it begins and where it speaks of that: its
    words, which have the label of the file."""
    text = seen.read_head(path)
    if text is None:
        return f"- {path}: {seen.size(path):,} bytes"
    lines = text.splitlines()
    count = f"{len(lines)} line{'' if len(lines) == 1 else 's'}"
    if request is None or not lines:
        return f"- {path}: {count}"

    with suppress(csv.Error, ValueError, RecursionError):
        if path.lower().endswith((".csv", ".tsv")):
            return _render_table_head(path, lines, request)
        if path.lower().endswith(".json"):
            return _render_json_head(path, json.loads(text))
        rows = parse_markdown_rows(text)
        if rows:
            table = f"a table of {len(rows)} rows; rows({path!r})[0] is {rows[0]}"
            return f"- {path}: {count} with {table}"
        cells = _first_cells(lines)
        if cells:
            return f"- {path}: {count} of a table without a header; cells({path!r})[0] is {cells}"

    is_shown_whole = len(lines) <= MAX_WHOLE_LINES and is_file_mentioned(path, request)
    most = MAX_WHOLE_LINES if is_shown_whole else MAX_HEAD_LINES
    begins = "".join(f"\n    {line[:MAX_HEAD_CHARS]}" for line in lines[:most])
    said = f"- {path}: {count}, begins{begins}"

    hits = _find_matching_lines(lines[most:], request)
    if hits:
        said += "\n  and has the lines"
        said += "".join(f"\n    {line[:MAX_HEAD_CHARS]}" for line in hits)
    return said


def _find_matching_lines(lines: Sequence[str], request: str) -> list[str]:
    """The lines that have most of the telling words of a request, in their order."""
    words = sorted(_extract_keywords(request))[:MAX_WORDS]
    low = [line[:MAX_LINE_CHARS].lower() for line in lines]
    scores = [sum(word in line for word in words) for line in low]
    matching = [number for number, score in enumerate(scores) if score]
    best_first = sorted(matching, key=lambda number: -scores[number])
    return [lines[number] for number in sorted(best_first[:MAX_HITS])]


def _extract_keywords(request: str) -> set[str]:
    """The words of a request that can stand in a file: long ones, those with capitals and those
    with digits."""
    found = set[str]()
    for number, word in enumerate(re.findall(r"[^\W_][\w.:-]*\w", request)):
        is_long = len(word) >= MIN_WORD_CHARS
        has_digit = any(map(str.isdigit, word))
        is_name = number > 0 and word[0].isupper()  # the first word always has a capital
        if is_long or has_digit or is_name:
            found.add(word.lower())
    return found - _STOP_WORDS


MIN_WORD_CHARS = 5
MAX_WORDS = 40
MAX_LINE_CHARS = 400
_STOP_WORDS_TEXT = """
please could would should their there these those which where write every about after again before
because file files folder lines column columns instead called named number always first second
third other others thing things something everything nothing want wants need needs make makes
change changes replace remove delete rename sort sorted list lists save keep copy move moved
convert count total still today tomorrow
"""
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
"""Words of requests that say nothing of what stands in a file."""


def _first_cells(lines: Sequence[str]) -> dict[int, str]:
    """The cells of the first line by their places, where all lines have as many, with a sign
    between that is no part of a sentence."""
    filled = [line for line in lines if line.strip()]
    if len(filled) < MIN_TABLE_LINES:
        return {}

    sign = detect_delimiter(lines[0])
    count = filled[0].count(sign)
    if any(line.count(sign) != count for line in filled):
        return {}
    if count == 0 or (sign == "," and count == 1):
        return {}

    cells = filled[0].split(sign)
    return {place: cell.strip()[:MAX_HEAD_CHARS] for place, cell in enumerate(cells)}


def _render_table_head(path: str, lines: Sequence[str], request: str) -> str:
    sign = detect_delimiter(lines[0])
    rows = list(csv.DictReader(lines, delimiter=sign, skipinitialspace=True, restkey=""))
    columns = [name for name in rows[0] if name] if rows else lines[0].split(sign)
    line = f"- {path}: a CSV with {len(rows)} rows and the columns {', '.join(columns)}"
    if not rows:
        return line
    first = _cut_cells(rows[0], columns)
    line += f"; rows({path!r})[0] is {first}"

    kinds = list[str]()
    for name in first:
        values = _list_few_values(name, rows)
        if values:
            kinds.append(f"{name} is {' or '.join(values)}")

    known = f"{first} {kinds}".lower()
    words = {word for word in _extract_keywords(request) if word not in known}
    hit = _find_row(rows[1:], words)
    if hit is not None:
        line += f"; another row is {_cut_cells(hit, columns)}"

    return "; ".join([line, *kinds])


def _cut_cells(row: dict[str, str], columns: Sequence[str]) -> dict[str, str]:
    return {name: str(row[name])[:MAX_HEAD_CHARS] for name in columns}


def _find_row(rows: Sequence[dict[str, str]], words: Iterable[str]) -> dict[str, str] | None:
    """The first row in which one of the words stands."""
    for row in rows:
        cells = str(list(row.values())).lower()
        if any(word in cells for word in words):
            return row
    return None


def _list_few_values(name: str, rows: Sequence[dict[str, str]]) -> list[str]:
    """The words that stand in a column, where it is always one of a few."""
    values = sorted({str(row.get(name) or "").strip() for row in rows})
    is_few = 1 < len(values) <= min(len(rows) // 2, MAX_VALUES)
    return values if is_few and all(map(_is_short_word, values)) else []


def _is_short_word(value: str) -> bool:
    return len(value) <= MAX_VALUE_CHARS and not re.search(r"\d", value)


def _render_json_head(path: str, data: object) -> str:
    if isinstance(data, list) and data:
        shown = f"a list of {len(data)}, the first {json.dumps(data[0], ensure_ascii=False)[:200]}"
    else:
        shown = json.dumps(data, ensure_ascii=False)[:300]
    return f"- {path}: JSON, load_json({path!r}) is {shown}"
