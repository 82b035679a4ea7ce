"""What programs came to: what is wrong with it, and whether two of them came to the same. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from ..types.intended_loss import is_file_mentioned, is_loss_requested
from ..types.programs import FileChange, Rehearsed
from .shim_library import find_borrowed_word
from .shim_programs import (
    ProgramTry,
    find_compared_sample,
    find_invented_number,
    find_sample_value,
    find_unasked_column,
)
from .shim_request import (
    ALL_FILES,
    CHANGE_VERB,
    FILE_NAME,
    FREE_EDIT,
    QUESTION,
    find_demanded_words,
    find_omitted_part,
    parse_swap,
    split_words,
)
from .shim_turn import ShimTurn
from .shim_words import CLAIMED_DEED


def find_unmeant_loss(came: Rehearsed, request: str) -> str:
    """What a program would lose that the request does not speak of; '' for nothing."""
    for each in came.changes:
        if each.loses and not is_loss_requested(each, request):
            return each.loses
    return ""


def find_program_problem(tried: ProgramTry, turn: ShimTurn, *, wants: bool, assist: bool) -> str:
    """What is wrong with a program, for who writes the next one; '' where it may be done."""
    came = tried.rehearsed
    if not assist:
        word = find_borrowed_word(tried.program, turn.request, turn.did[0].result)
        if word:
            return f"{word!r} is only in an example; use the names and texts of the request"
    if came.failed or came.stopped:
        return (came.failed or came.stopped).rstrip(".")
    if came.needs is not None:
        return "it waits for an answer"

    changed = bool(came.changes or came.calls)
    if changed and not (wants or assist):
        return "it changes files, and the request only asks; only say the answer"
    if changed and (unasked := _find_unasked_change(tried, turn)):
        return unasked
    if not (changed or came.ran or assist) and _was_to_change(came, turn, wants=wants):
        return "it changes nothing"

    if re.search(r"\bnan\b", came.said):
        return "a value is empty; leave those rows out"
    if not changed and not came.said:
        return "it says nothing; end with say(...)"
    if not changed and (claim := find_invented_number(tried.program, turn.request)):
        return f"the number {claim} is not computed; compute it from the files"
    return "" if assist else _find_mistake(tried, turn)


def _was_to_change(came: Rehearsed, turn: ShimTurn, *, wants: bool) -> bool:
    """Whether a program that changed nothing had to change something, or says that it did."""
    if CLAIMED_DEED.search(came.said):
        return True
    if not wants:
        return False
    if FREE_EDIT.search(turn.request):
        return True
    if QUESTION.search(turn.request):
        return False
    is_sorted_so = turn.did[0].move.arguments.get("purpose") == "change"
    return is_sorted_so or CHANGE_VERB.search(turn.request) is not None


def _find_mistake(tried: ProgramTry, turn: ShimTurn) -> str:
    """What a program takes for something else than it is; '' for nothing."""
    came = tried.rehearsed
    if came.changes and (sample := find_sample_value(tried.program, turn)):
        return f"{sample} is only the first row; take it from the rows"
    if sample := find_compared_sample(tried.program, turn):
        return f"{sample!r} is only the first row; look for what the request names"
    if cut := _find_cut_line(came):
        return f"{cut!r} is only a piece; split the lines at another place"
    if CASELESS.search(turn.request) and (doubles := _find_case_duplicates(came)):
        return f"{doubles} are the same, and stand there twice; compare them with .lower()"
    return ""


def _find_cut_line(came: Rehearsed) -> str:
    """A line of a new list whose bracket has no end, as most of them; '' for none."""
    for each in came.changes:
        if each.kind != "new" or each.path.endswith(".py"):
            continue
        lines = _added_lines(each)
        pieces = [line for line in lines if _has_open_bracket(line)]
        if 2 * len(pieces) > len(lines):
            return pieces[0]
    return ""


def _has_open_bracket(line: str) -> bool:
    return line.count("[") != line.count("]") or line.count("(") != line.count(")")


def _added_lines(change: FileChange) -> list[str]:
    """The lines that a change adds, as far as its diff shows them."""
    return [line[1:] for line in change.diff.splitlines() if re.match(r"\+(?!\+\+)", line)]


def _find_case_duplicates(came: Rehearsed) -> str:
    """Two lines that a program leaves, or says, which begin alike but for their capital letters; ''
    for none."""
    lines = [line for each in came.changes for line in _added_lines(each)]
    lines += came.said.splitlines()

    begins = dict.fromkeys(re.split(r"[,;:\t]", line)[0].strip() for line in lines)

    spellings = dict[str, list[str]]()
    for begin in begins:
        spellings.setdefault(begin.lower(), []).append(begin)
    for same in spellings.values():
        if len(same) > 1:
            return " and ".join(map(repr, same))
    return ""


CASELESS = re.compile(
    r"\b(capitals?( letters)?|(upper|lower|letter)? ?case)\b"
    r"[^.;]{0,20}(not\b|n['\u2019]t\b|no )"
    r"|\b(ignor\w*|regardless of|whatever|no matter)"
    r"( the| their| its)? (upper|lower)?(case|capitals?)\b",
    re.IGNORECASE,
)
"""Words with which a request says that capital letters make no difference."""


def has_only_stopped(tried: ProgramTry, note: str) -> bool:
    """Whether a program stopped itself, and nothing else was wrong with it."""
    return bool(tried.rehearsed.stopped) and note == tried.rehearsed.stopped.rstrip(".")


def _find_unasked_change(tried: ProgramTry, turn: ShimTurn) -> str:
    """What a program changes that nobody asked for; '' for nothing."""
    came = tried.rehearsed
    asked = turn.request
    if missing := _find_missing_file(came, turn):
        return f"the request names {missing}, and you made another file; use exactly that name"
    if outside := _find_unnamed_file(came, asked, turn.did[0].result):
        return f"it changes {outside}, which nobody named"
    if column := find_unasked_column(tried.program, asked):
        return f"nobody said that {column} alone makes a double: use unique(rows)"
    if part := _find_omission(came, tried.program, asked):
        return part
    for each in came.changes:
        wrong = find_table_problem(each, asked)
        if wrong:
            return wrong
    lost = [column for each in came.changes for column in find_lost_columns(each)]
    if lost and not _FEWER.search(asked):
        return f"the column {lost[0]} is gone; keep all columns"
    if sum(call.tool == CRON for call in came.calls) > 1 and _ONE.search(asked):
        return "it cancels more than one; cancel only the one that is meant"
    return ""


def _find_omission(came: Rehearsed, program: str, request: str) -> str:
    """What the request asks for beside, or of the text itself, and does not find; '' for
    nothing."""
    lines = list[str]()
    for each in came.changes:
        lines += [line for line in each.diff.splitlines() if line.startswith(("+", "-"))]

    added = "\n".join(line for line in lines if line.startswith("+")).lower()
    for word in find_demanded_words(request):
        if word.lower() not in added:
            return f"{word!r} must be in it"

    if _OF_EVERY.search(request) and len(came.changes) == 1:
        adds_one = len(_added_lines(came.changes[0])) == 1
        if adds_one and len(lines) > 1:
            return "it changes one line, and the request speaks of every one"
    if came.changes:
        part = find_omitted_part(request, "\n".join([program, *lines]))
        if part:
            return f"it leaves out: {part}. Do all of it"
    return _find_swap_problem(lines, request)


def _find_swap_problem(lines: Sequence[str], request: str) -> str:
    """What lines of diffs take away beside the words that the request wants to become others; ''
    for nothing."""
    swap = parse_swap(request)
    if swap is None:
        return ""
    old = swap[0]
    taken = [line.lower() for line in lines if line[0] == "-" and not line.startswith("---")]
    meant = [line for line in taken if old.lower() in line]
    return f"it changes a line without {old!r}" if 0 < len(meant) < len(taken) else ""


_OF_EVERY = re.compile(
    r"\b(half|double|twice|third|quarter|more|less|percent|%) "
    r"(of |for |to )?(every|each|all)\b",
    re.IGNORECASE,
)
CRON = "cron"
_ONE = re.compile(
    r"\b(cancel|delete|remove|drop|stop)\b"
    r"(?!.*\b(all|both|every|each|reminders|alarms|them|two|and)\b)",
    re.IGNORECASE,
)
_FEWER = re.compile(
    r"\b("
    r"drop|remove|delete|without|only|rename|call|replace"
    r"|throw|take|reorder|columns|split|merge"
    r")\b",
    re.IGNORECASE,
)


def find_lost_columns(change: FileChange) -> list[str]:
    """The columns of a table that the change takes away, as far as its diff shows them."""
    if change.kind != "changed" or not change.path.lower().endswith((".csv", ".tsv")):
        return []
    _, _, hunk = change.diff.partition("@@ -1")
    lines = hunk.splitlines()[1:2]
    if not lines or not lines[0].startswith("-"):
        return []
    before = lines[0]
    after = next((line for line in hunk.splitlines() if line.startswith("+")), "")
    kept = re.split(r"[,;\t]", after[1:])
    columns = re.split(r"[,;\t]", before[1:])
    return [column.strip() for column in columns if column not in kept and column.strip()]


def find_table_problem(change: FileChange, request: str) -> str:
    """What is wrong with how a table was changed: rows that no longer fit its columns, or rows of
    others than the one that the request names; '' for nothing."""
    if change.kind != "changed" or not change.path.lower().endswith((".csv", ".tsv")):
        return ""
    lines = [line for line in change.diff.splitlines() if re.match(r"[+-](?!--|\+\+)", line)]
    delimiter = _guess_delimiter(change.path, lines)
    was = [_split_row(line[1:], delimiter) for line in lines if line[0] == "-"]
    now = [_split_row(line[1:], delimiter) for line in lines if line[0] == "+"]
    if len(was) != len(now):
        return ""

    widths = {len(row) for row in was}
    widths_now = {len(row) for row in now}
    if len(widths) == 1 and len(widths_now) > 1:
        return "rows no longer fit the columns; use rows and save_rows"

    if _SEVERAL.search(request) or len(was) < 2:
        return ""
    names = set(re.findall(r"\b[A-Z]\w+", request))
    meant = [row for row in was if row and row[0].strip() in names]
    return f"it changes other rows than that of {meant[0][0]}" if len(meant) == 1 else ""


def _guess_delimiter(path: str, lines: Sequence[str]) -> str:
    """The sign between the columns of a table of which these lines are known."""
    if path.lower().endswith(".tsv"):
        return "\t"
    with_semicolon = sum(";" in line for line in lines)
    return ";" if with_semicolon > len(lines) / 2 else ","


def _split_row(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


_SEVERAL = re.compile(
    r"\b(all|every|each|everybody|everyone|both|those|sort|order)\b", re.IGNORECASE
)


def _find_unnamed_file(came: Rehearsed, request: str, listing: str) -> str:
    """A file that is changed though the request names another one that was there; '' for none."""
    moved = [each.path for each in came.changes if each.kind == "moved"]
    paths = [each.path for each in came.changes if each.kind in ("changed", "deleted")]
    # A folder from which all was moved away is only empty now.
    paths = [path for path in paths if not any(each.startswith(f"{path}/") for each in moved)]
    strange = [path for path in paths if not is_file_mentioned(path, request)]
    if not strange or ALL_FILES.search(request):
        return ""
    if len(strange) < len(paths):
        return strange[0]

    there = re.findall(r"^- ([^:\n]+?):", listing, re.MULTILINE)
    names_another = any(is_file_mentioned(path, request) for path in there)
    return strange[0] if names_another else ""


def _find_missing_file(came: Rehearsed, turn: ShimTurn) -> str:
    """A file that the request names, that was not there and was not made, though something else was
    changed; '' for none. A name that was written into a file is only a word of its text."""
    asked = turn.request.lower()
    made = {
        (each.to or each.path).lower() for each in came.changes if each.kind in ("new", "moved")
    }
    makes_another = any(path.rpartition("/")[2] not in asked for path in made)
    if not makes_another and all(each.kind != "changed" for each in came.changes):
        return ""

    listing = turn.did[0].result.lower()
    found = {path.rpartition("/")[2].lower() for path in (*made, *came.read)}
    lines = [line for each in came.changes for line in each.diff.lower().splitlines()]
    written = "\n".join(line for line in lines if line.startswith("+"))
    for name in map(str, FILE_NAME.findall(asked)):
        if name not in listing and name not in found and name not in written:
            return name
    return ""


def find_agreed_program(
    good: Sequence[ProgramTry], *, wants: bool, ordered: bool
) -> ProgramTry | None:
    """The first program with which another one agrees: in what they change and call for, else in
    what they say. Where it says nothing but figures, the other one, which may tell whose they
    are."""
    for at, one in enumerate(good):
        for other in good[at + 1 :]:
            if is_same_outcome(one.rehearsed, other.rehearsed, wants=wants, ordered=ordered):
                return other if _has_more_names(other.rehearsed, one.rehearsed) else one
    return None


def has_columns(tried: ProgramTry, request: str) -> bool:
    """Whether a program makes a table with the columns that the request gives it: `save as sums.csv
    (name,sum)`."""
    asked = _COLUMNS.search(request)
    made = [each for each in tried.rehearsed.changes if each.kind == "new"]
    if not asked or len(made) != 1 or not made[0].path.lower().endswith(".csv"):
        return False
    head = next(iter(_added_lines(made[0])), "")
    return _split_columns(head) == _split_columns(asked[1])


def _split_columns(text: str) -> list[str]:
    return [column.strip().lower() for column in text.split(",")]


_COLUMNS = re.compile(r"\(([\w ]+(?:,[\w ]+)+)\)")


def _has_more_names(one: Rehearsed, other: Rehearsed) -> bool:
    """Whether both only say something, and one tells names beside the same figures."""
    if one.changes or one.calls or other.changes or other.calls:
        return False
    names = _list_names(one)
    return bool(names and extract_data(other)) and not _list_names(other)


def _list_names(came: Rehearsed) -> set[str]:
    return {each for each in extract_data(came) if not _FIGURE.fullmatch(each)}


def is_same_outcome(
    one: Rehearsed, other: Rehearsed, *, wants: bool = True, ordered: bool = True
) -> bool:
    """Whether two programs come to the same. Without `ordered` the order of lines does not
    count."""
    if wants and (one.changes or one.calls or other.changes or other.calls):
        same_changes = _list_changes(one, ordered) == _list_changes(other, ordered)
        return same_changes and one.calls == other.calls
    mine = extract_data(one)
    theirs = extract_data(other)
    if not (mine and theirs):
        return mine == theirs and set(split_words(one.said)) == set(split_words(other.said))
    return mine <= theirs or theirs <= mine


def _list_changes(came: Rehearsed, ordered: bool) -> list[tuple[str, ...]]:
    return [
        (each.path, each.kind, each.to, each.digest if ordered else _sorted_lines(each))
        for each in came.changes
    ]


def extract_data(came: Rehearsed) -> frozenset[str]:
    """What of the words comes from files: numbers, names of files, and words with digits or
    capitals."""
    said = came.said
    figures = {f"{float(each.replace(',', '')):g}" for each in _FIGURE.findall(said)}
    names = {each.lower() for each in FILE_NAME.findall(said)}
    words = re.findall(r"(?<![.!?] )(?<!^)\b[\w-]+", said)
    telling = {word.lower() for word in words if re.search(r"[A-Z]|\d", word)}
    plain = {word for word in telling if not re.fullmatch(r"[\d-]+", word)}
    return frozenset(figures | names | plain)


def _sorted_lines(change: FileChange) -> str:
    """What a change adds and removes, in no order."""
    if not 0 < len(change.diff) < MAX_WHOLE_DIFF_CHARS:
        return change.digest
    lines = [line.rstrip() for line in change.diff.splitlines() if line[:1] in ("+", "-")]
    return "\n".join(sorted(lines))


MAX_WHOLE_DIFF_CHARS = 1_900
"""A longer diff may have been cut."""
_FIGURE = re.compile(
    r"(?<![\w.-])\d{1,3}(?:,\d{3})+(?:\.\d+)?"
    r"|(?<![\w.])\d+(?:\.\d+)?"
)
