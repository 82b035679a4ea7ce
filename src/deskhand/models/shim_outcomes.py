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
    return next(
        (
            each.loses
            for each in came.changes
            if each.loses and not is_loss_requested(each, request)
        ),
        "",
    )


def find_program_problem(tried: ProgramTry, turn: ShimTurn, *, wants: bool, assist: bool) -> str:
    """What is wrong with a program, for who writes the next one; '' where it may be done."""
    came = tried.rehearsed
    if not assist and (word := find_borrowed_word(tried.program, turn.request, turn.did[0].result)):
        return f"{word!r} is only in an example; use the names and texts of the request"
    if came.failed or came.stopped:
        return (came.failed or came.stopped).rstrip(".")
    if came.needs is not None:
        return "it waits for an answer"
    changed = bool(came.changes or came.calls)
    if changed and not (wants or assist):
        return "it changes files, and the request only asks; only say the answer"
    if changed and (unmeant_by := _find_unasked_change(tried, turn)):
        return unmeant_by
    told_to = turn.did[0].move.arguments.get("purpose") == "change" or CHANGE_VERB.search(
        turn.request
    )
    must = wants and bool(
        FREE_EDIT.search(turn.request) or (told_to and not QUESTION.search(turn.request))
    )
    if not changed and not came.ran and not assist and (must or CLAIMED_DEED.search(came.said)):
        return "it changes nothing"
    if re.search(r"\bnan\b", came.said):
        return "a value is empty; leave those rows out"
    if not changed and not came.said:
        return "it says nothing; end with say(...)"
    if not changed and (claim := find_invented_number(tried.program, turn.request)):
        return f"the number {claim} is not computed; compute it from the files"
    return "" if assist else _find_mistake(tried, turn)


def _find_mistake(tried: ProgramTry, turn: ShimTurn) -> str:
    """What a program takes for something else than it is; '' for nothing."""
    came = tried.rehearsed
    if came.changes and (sample := find_sample_value(tried.program, turn)):
        return f"{sample} is only the first row; take it from the rows"
    if sample := find_compared_sample(tried.program, turn):
        return f"{sample!r} is only the first row; look for what the request names"
    if cut := _find_cut_line(came):
        return f"{cut!r} is only a piece; split the lines at another place"
    if (told_apart := _find_case_duplicates(came)) and CASELESS.search(turn.request):
        return f"{told_apart} are the same, and stand there twice; compare them with .lower()"
    return ""


def _find_cut_line(came: Rehearsed) -> str:
    """A line of a new list whose bracket has no end, as most of them; '' for none."""
    for each in came.changes:
        lines = _added_lines(each) if each.kind == "new" and not each.path.endswith(".py") else []
        pieces = [
            line for line in lines if any(line.count(a) != line.count(b) for a, b in ("[]", "()"))
        ]
        if 2 * len(pieces) > len(lines):
            return pieces[0]
    return ""


def _added_lines(change: FileChange) -> list[str]:
    """The lines that a change adds, as far as its diff shows them."""
    return [line[1:] for line in change.diff.splitlines() if re.match(r"\+(?!\+\+)", line)]


def _find_case_duplicates(came: Rehearsed) -> str:
    """Two lines that a program leaves, or says, which begin alike but for their capital letters; ''
    for none."""
    lines = [line for each in came.changes for line in _added_lines(each)]
    begins = dict.fromkeys(
        re.split(r"[,;:\t]", line)[0].strip() for line in (*lines, *came.said.splitlines())
    )
    same = [[other for other in begins if other.lower() == each.lower()] for each in begins]
    return next((" and ".join(map(repr, each)) for each in same if len(each) > 1), "")


CASELESS = re.compile(
    r"\b(capitals?( letters)?|(upper|lower|letter)? ?case)\b[^.;]{0,20}(not\b|n['\u2019]t\b|no )"
    r"|\b(ignor\w*|regardless of|whatever|no matter)( the| their| its)? "
    r"(upper|lower)?(case|capitals?)\b",
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
    lost = [column for each in came.changes for column in find_lost_columns(each)]
    if missing := _find_missing_file(came, turn):
        return f"the request names {missing}, and you made another file; use exactly that name"
    if outside := _find_unnamed_file(came, asked, turn.did[0].result):
        return f"it changes {outside}, which nobody named"
    if column := find_unasked_column(tried.program, asked):
        return f"nobody said that {column} alone makes a double: use unique(rows)"
    if part := _find_omission(came, tried.program, asked):
        return part
    if wrong := next(
        (why for each in came.changes if (why := find_table_problem(each, asked))), ""
    ):
        return wrong
    if lost and not _FEWER.search(asked):
        return f"the column {lost[0]} is gone; keep all columns"
    if sum(call.tool == CRON for call in came.calls) > 1 and _ONE.search(asked):
        return "it cancels more than one; cancel only the one that is meant"
    return ""


def _find_omission(came: Rehearsed, program: str, request: str) -> str:
    """What the request asks for beside, or of the text itself, and does not find; '' for
    nothing."""
    lines = [
        line for each in came.changes for line in each.diff.splitlines() if line[:1] in ("+", "-")
    ]
    added = "\n".join(line for line in lines if line[0] == "+").lower()
    if missing := [word for word in find_demanded_words(request) if word.lower() not in added]:
        return f"{missing[0]!r} must be in it"
    if (
        _OF_EVERY.search(request)
        and len(came.changes) == 1
        and len(_added_lines(came.changes[0])) == 1 < len(lines)
    ):
        return "it changes one line, and the request speaks of every one"
    if came.changes and (part := find_omitted_part(request, "\n".join([program, *lines]))):
        return f"it leaves out: {part}. Do all of it"
    swap = parse_swap(request)
    taken = [line.lower() for line in lines if line[0] == "-" and not line.startswith("---")]
    if swap and any(swap[0].lower() in line for line in taken):
        strange = [line for line in taken if swap[0].lower() not in line]
        return f"it changes a line without {swap[0]!r}" if strange else ""
    return ""


_OF_EVERY = re.compile(
    r"\b(half|double|twice|third|quarter|more|less|percent|%) (of |for |to )?(every|each|all)\b",
    re.I,
)
CRON = "cron"
_ONE = re.compile(
    r"\b(cancel|delete|remove|drop|stop)\b(?!.*\b(all|both|every|each|reminders|alarms|them|two|and)\b)",
    re.IGNORECASE,
)
_FEWER = re.compile(
    r"\b(drop|remove|delete|without|only|rename|call|replace|throw|take|reorder|columns|split|merge)\b",
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
    after = next((line for line in hunk.splitlines() if line.startswith("+")), "")
    columns, kept = (re.split(r"[,;\t]", line[1:]) for line in (lines[0], after))
    return [column.strip() for column in columns if column not in kept and column.strip()]


def find_table_problem(change: FileChange, request: str) -> str:
    """What is wrong with how a table was changed: rows that no longer fit its columns, or rows of
    others than the one that the request names; '' for nothing."""
    if change.kind != "changed" or not change.path.lower().endswith((".csv", ".tsv")):
        return ""
    lines = [line for line in change.diff.splitlines() if re.match(r"[+-](?!--|\+\+)", line)]
    sign = (
        "\t"
        if change.path.lower().endswith(".tsv")
        else ";"
        if sum(";" in line for line in lines) > len(lines) / 2
        else ","
    )
    was, now = (
        [next(csv.reader([line[1:]], delimiter=sign), []) for line in lines if line[0] == mark]
        for mark in "-+"
    )
    if (
        was
        and len({len(row) for row in was}) == 1
        and len(was) == len(now)
        and len({len(row) for row in now}) > 1
    ):
        return "rows no longer fit the columns; use rows and save_rows"
    if _SEVERAL.search(request) or len(was) < 2 or len(was) != len(now):
        return ""
    words = set(re.findall(r"\b[A-Z]\w+", request))
    meant = [row for row in was if words & {cell.strip() for cell in row[:1]}]
    return f"it changes other rows than that of {meant[0][0]}" if len(meant) == 1 else ""


_SEVERAL = re.compile(
    r"\b(all|every|each|everybody|everyone|both|those|sort|order)\b", re.IGNORECASE
)


def _find_unnamed_file(came: Rehearsed, request: str, listing: str) -> str:
    """A file that is changed though the request names another one that was there; '' for none."""
    left = [each.path for each in came.changes if each.kind == "moved"]
    paths = [each.path for each in came.changes if each.kind in ("changed", "deleted")]
    paths = [
        path for path in paths if not any(moved.startswith(f"{path}/") for moved in left)
    ]  # it is only empty now
    strange = [path for path in paths if not is_file_mentioned(path, request)]
    there = re.findall(r"^- ([^:\n]+?):", listing, re.MULTILINE)
    others = len(strange) < len(paths) or any(is_file_mentioned(path, request) for path in there)
    return strange[0] if strange and others and not ALL_FILES.search(request) else ""


def _find_missing_file(came: Rehearsed, turn: ShimTurn) -> str:
    """A file that the request names, that was not there and was not made, though something else was
    changed; '' for none. A name that was written into a file is only a word of its text."""
    made = {
        (each.to or each.path).lower() for each in came.changes if each.kind in ("new", "moved")
    }
    asked = turn.request.lower()
    listing = turn.did[0].result.lower()
    written = "\n".join(
        line for each in came.changes for line in each.diff.lower().splitlines() if line[:1] == "+"
    )
    found = {path.rpartition("/")[2].lower() for path in (*made, *came.read)}
    missing = [
        name for name in FILE_NAME.findall(asked) if name not in listing and name not in found
    ]
    strange = [path for path in made if path.rpartition("/")[2] not in asked]
    if strange or any(each.kind == "changed" for each in came.changes):
        return next((name for name in missing if name not in written), "")
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
    head = next(
        (line[1:] for line in made[0].diff.splitlines() if re.match(r"\+(?!\+\+)", line)), ""
    )
    return [each.strip().lower() for each in head.split(",")] == [
        each.strip().lower() for each in asked[1].split(",")
    ]


_COLUMNS = re.compile(r"\(([\w ]+(?:,[\w ]+)+)\)")


def _has_more_names(one: Rehearsed, other: Rehearsed) -> bool:
    """Whether both only say something, and one tells names beside the same figures."""
    if one.changes or one.calls or other.changes or other.calls:
        return False
    names, others = (
        {each for each in extract_data(came) if not _FIGURE.fullmatch(each)}
        for came in (one, other)
    )
    return bool(names and extract_data(other)) and not others


def is_same_outcome(
    one: Rehearsed, other: Rehearsed, *, wants: bool = True, ordered: bool = True
) -> bool:
    """Whether two programs come to the same. Without `ordered` the order of lines does not
    count."""
    if wants and (one.changes or one.calls or other.changes or other.calls):
        return one.calls == other.calls and _list_changes(one, ordered) == _list_changes(
            other, ordered
        )
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
    words = {
        word
        for word in re.findall(r"(?<![.!?] )(?<!^)\b[\w-]+", said)
        if re.search(r"[A-Z]|\d", word)
    }
    plain = {word.lower() for word in words if not re.fullmatch(r"[\d-]+", word)}
    return frozenset(figures | names | plain)


def _sorted_lines(change: FileChange) -> str:
    """What a change adds and removes, in no order."""
    lines = [line.rstrip() for line in change.diff.splitlines() if line[:1] in ("+", "-")]
    return (
        "\n".join(sorted(lines)) if 0 < len(change.diff) < MAX_WHOLE_DIFF_CHARS else change.digest
    )


MAX_WHOLE_DIFF_CHARS = 1_900
"""A longer diff may have been cut."""
_FIGURE = re.compile(r"(?<![\w.-])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])\d+(?:\.\d+)?")
