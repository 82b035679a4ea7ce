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
        try:
            return (
                None
                if b"\0" in data
                else data.decode("utf-8-sig", "strict" if len(data) < PEEK_BYTES else "ignore")
            )
        except UnicodeDecodeError:
            return None

    def places(self, paths: Iterable[str]) -> list[Place]:
        """Where these lay when they were listed, and when they were read."""
        return [place for path in paths for place in dict.fromkeys(self._places[path])]


def survey_source(source: Source, request: str, purpose: Purpose) -> tuple[str, list[Place]]:
    """The listing, with the files that the request names first; and the places of those whose words
    or names are in it."""
    seen = SurveyedFile(source)
    said, shown = _render_survey(seen, request, purpose)
    return said, seen.places(shown)


def _render_survey(seen: SurveyedFile, request: str, purpose: Purpose) -> tuple[str, list[str]]:
    paths = seen.files
    called = [path for path in paths if is_file_mentioned(path, request)]
    others = [path for path in paths if path not in called]
    if purpose == "read" and (texts := _select_to_read(seen, paths, called, request)):
        return _render_texts(seen, texts)
    heads = [*called, *([] if called else _select_likely(others, request))][:MAX_HEADS]
    lines = [_render_head(seen, path, request) for path in heads]
    rest = [path for path in paths if path not in heads]
    if heads and all(Path(path).name.lower() in request.lower() for path in heads):
        # A small model works on whatever it is shown: other files are told where the request may
        # mean them.
        rest = rest[:MAX_NAMES] if _MENTIONS_OTHERS.search(request) else []
        lines += ["- also here: " + ", ".join(rest)] * bool(rest)
    else:
        lines += [_render_head(seen, path) for path in rest]
    more = len(lines) - MAX_NAMES
    said = lines[:MAX_NAMES] + ([f"- and {more} more files"] if more > 0 else [])
    empty = [path for path in seen.folders if not any(p.startswith(f"{path}/") for p in paths)]
    said += [f"- {path}/ is an empty folder" for path in empty]
    return "Files here:\n" + "\n".join(said) if said else "Files here: none", [
        *heads,
        *rest,
        *empty,
    ]


_MENTIONS_OTHERS = re.compile(
    (
        r"\b(files?|folders?|others?|rest|everything|anything|documents?|pictures|photos|same "
        r"name|both)\b"
    ),
    re.IGNORECASE,
)


def _select_to_read(
    seen: SurveyedFile, paths: Sequence[str], called: list[str], request: str
) -> list[str]:
    """The files that are to be read: those that are named, with their endings or else before all
    others."""
    if any(Path(path).name.lower() in request.lower() for path in called):
        return called
    others = [path for path in _find_small_texts(seen, paths) if path not in called]
    room = MAX_WHOLE_BYTES - sum(seen.size(path) for path in called)
    fits = (
        len(called) + len(others) <= MAX_HEADS and sum(seen.size(path) for path in others) <= room
    )
    return [*called, *others] if fits or not called else called


def _find_small_texts(seen: SurveyedFile, paths: Sequence[str]) -> list[str]:
    """The texts that there are, where there is room for all of them."""
    sizes = {path: seen.size(path) for path in paths}
    small = [path for path, size in sizes.items() if 0 < size <= MAX_WHOLE_BYTES]
    if len(small) > 2 * MAX_HEADS:
        return []
    texts = [path for path in small if seen.read_head(path)]
    return (
        texts
        if len(texts) <= MAX_HEADS and sum(sizes[path] for path in texts) <= MAX_WHOLE_BYTES
        else []
    )


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
    words = {word[:4] for word in re.findall(r"[a-z]{4,}", request.lower())}
    found = [
        path
        for path in paths
        if words & {word[:4] for word in re.findall(r"[a-z]{4,}", path.lower())}
    ]
    return found or [path for path in paths if "/" not in path][: MAX_HEADS // 2]


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
        if rows := parse_markdown_rows(text):
            return (
                f"- {path}: {count} with a table of {len(rows)} rows; rows({path!r})[0] is "
                f"{rows[0]}"
            )
        if cells := _first_cells(lines):
            return f"- {path}: {count} of a table without a header; cells({path!r})[0] is {cells}"
    most = (
        MAX_WHOLE_LINES
        if len(lines) <= MAX_WHOLE_LINES and is_file_mentioned(path, request)
        else MAX_HEAD_LINES
    )
    shown = "\n".join(f"    {line[:MAX_HEAD_CHARS]}" for line in lines[:most])
    hits = _find_matching_lines(lines[most:], request)
    more = "".join(f"\n    {line[:MAX_HEAD_CHARS]}" for line in hits)
    return f"- {path}: {count}, begins\n{shown}" + (f"\n  and has the lines{more}" if more else "")


def _find_matching_lines(lines: Sequence[str], request: str) -> list[str]:
    """The lines that have most of the telling words of a request, in their order."""
    words = sorted(_extract_keywords(request))[:MAX_WORDS]
    low = [line[:MAX_LINE_CHARS].lower() for line in lines]
    scores = [sum(word in line for word in words) for line in low]
    best = sorted((n for n, score in enumerate(scores) if score), key=lambda n: (-scores[n], n))[
        :MAX_HITS
    ]
    return [lines[n] for n in sorted(best)]


def _extract_keywords(request: str) -> set[str]:
    """The words of a request that can stand in a file: long ones, those with capitals and those
    with digits."""
    words = re.findall(r"[^\W_][\w.:-]*\w", request)
    return {
        word.lower()
        for n, word in enumerate(words)
        if word.lower() not in _STOP_WORDS
        and (
            len(word) >= MIN_WORD_CHARS
            or any(c.isdigit() for c in word)
            or (n and word[0].isupper())
        )
    }


MIN_WORD_CHARS = 5
MAX_WORDS = 40
MAX_LINE_CHARS = 400
_STOP_WORDS = frozenset(
    {
        *(
            "please",
            "could",
            "would",
            "should",
            "their",
            "there",
            "these",
            "those",
            "which",
            "where",
            "write",
        ),
        *(
            "every",
            "about",
            "after",
            "again",
            "before",
            "because",
            "file",
            "files",
            "folder",
            "lines",
            "column",
        ),
        *(
            "columns",
            "instead",
            "called",
            "named",
            "number",
            "always",
            "first",
            "second",
            "third",
            "other",
        ),
        *(
            "others",
            "thing",
            "things",
            "something",
            "everything",
            "nothing",
            "want",
            "wants",
            "need",
            "needs",
        ),
        *(
            "make",
            "makes",
            "change",
            "changes",
            "replace",
            "remove",
            "delete",
            "rename",
            "sort",
            "sorted",
            "list",
        ),
        *("lists", "save", "keep", "copy", "move", "moved", "convert", "count", "total", "still"),
        *("today", "tomorrow"),
    }
)
"""Words of requests that say nothing of what stands in a file."""


def _first_cells(lines: Sequence[str]) -> dict[int, str]:
    """The cells of the first line by their places, where all lines have as many, with a sign
    between that is no part of a sentence."""
    filled = [line for line in lines if line.strip()]
    sign = detect_delimiter(lines[0])
    counts = {line.count(sign) for line in filled}
    if (
        len(filled) < MIN_TABLE_LINES
        or counts != {max(counts)}
        or not max(counts)
        or (sign == "," and max(counts) == 1)
    ):
        return {}
    return {
        place: cell.strip()[:MAX_HEAD_CHARS] for place, cell in enumerate(filled[0].split(sign))
    }


def _render_table_head(path: str, lines: Sequence[str], request: str) -> str:
    sign = detect_delimiter(lines[0])
    rows = list(csv.DictReader(lines, delimiter=sign, skipinitialspace=True, restkey=""))
    columns = [name for name in rows[0] if name] if rows else lines[0].split(sign)
    line = f"- {path}: a CSV with {len(rows)} rows and the columns {', '.join(columns)}"
    if not rows:
        return line
    first = {name: str(rows[0][name])[:MAX_HEAD_CHARS] for name in columns}
    kinds = [
        f"{name} is {' or '.join(values)}"
        for name in first
        if (values := _list_few_values(name, rows))
    ]
    known = f"{first} {kinds}".lower()
    words = {word for word in _extract_keywords(request) if word not in known}
    hit = next(
        (row for row in rows[1:] if any(word in str(list(row.values())).lower() for word in words)),
        None,
    )
    more = (
        f"; another row is { ({name: str(hit[name])[:MAX_HEAD_CHARS] for name in columns}) }"
        if hit
        else ""
    )
    return f"{line}; rows({path!r})[0] is {first}{more}" + (
        f"; {'; '.join(kinds)}" if kinds else ""
    )


def _list_few_values(name: str, rows: Sequence[dict[str, str]]) -> list[str]:
    """The words that stand in a column, where it is always one of a few."""
    values = sorted({str(row.get(name) or "").strip() for row in rows})
    few = 1 < len(values) <= len(rows) // 2 and len(values) <= MAX_VALUES
    return (
        values
        if few
        and not any(re.search(r"\d", value) or len(value) > MAX_VALUE_CHARS for value in values)
        else []
    )


def _render_json_head(path: str, data: object) -> str:
    if isinstance(data, list) and data:
        shown = f"a list of {len(data)}, the first {json.dumps(data[0], ensure_ascii=False)[:200]}"
    else:
        shown = json.dumps(data, ensure_ascii=False)[:300]
    return f"- {path}: JSON, load_json({path!r}) is {shown}"
