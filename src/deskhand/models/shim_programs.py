"""What a small model wrote, as a program: out of its fence, without what nobody asked for, and
looked at. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Sequence

import msgspec

from ..types.intended_loss import is_file_mentioned
from ..types.programs import Rehearsed
from ..types.python_source import parse_python
from .shim_request import ALL_FILES, FREE_EDIT, STOP_WORDS, split_words
from .shim_turn import Did, ShimTurn


class ProgramTry(msgspec.Struct, frozen=True):
    """A program that was rehearsed with these answers, and what it came to. `since` are the steps
    after it."""

    program: str
    answers: tuple[str, ...]
    rehearsed: Rehearsed
    since: tuple[Did, ...] = ()


def prune_program(program: str, request: str) -> str:
    """The program without the statements that nobody asked for, beside some that were: replacements
    of which neither the old text nor the new one is the request's, and moves of files that it does
    not name. A small model goes on and on. Where nothing would be left of a kind, all of it stays;
    so does what keeps the data that others take away."""
    program = _FOLDER.sub(
        lambda found: found[0] if _is_named(found[2], request) else f"files({found[1]})", program
    )
    try:
        tree = parse_python(program, PROGRAM_CHARS)
    except SyntaxError:
        return program

    gone = _other_kind_lines(tree, request) | _repeated_lines(tree)
    takes = _has_removals(tree)
    if not takes:
        gone |= _unasked_file_lines(tree, request)
    for names in _PRUNED:
        if not (takes and names[0] in _KEEPING):
            gone |= _unasked_call_lines(tree, names, request)

    lines = program.splitlines()
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in gone)


_FOLDER = re.compile(r"""\bfiles\(\s*(['"][^'"]*['"])\s*,\s*['"]([^'"]+)['"]\s*\)""")
"""A look for files in one folder: who did not name it means them wherever they are."""


def _is_named(folder: str, request: str) -> bool:
    last = folder.rstrip("/").rpartition("/")[2].lower()
    return folder in (".", "/", "./") or (bool(last) and last in request.lower())


def _has_removals(tree: ast.Module) -> bool:
    """Whether a program takes data out of a file: what it writes elsewhere may be all that keeps
    them."""
    calls = [(_call_name(node), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    read = {_constant_argument(call, 0) for name, call in calls if name in _READERS}
    for name, call in calls:
        if name in _REMOVERS:
            return True
        if name in _WRITERS and _constant_argument(call, 0) in read:
            return True
    return False


_READERS = frozenset({"read", "lines", "rows", "cells", "load_json"})
_REMOVERS = frozenset({"delete", "remove_lines", "remove_rows"})
_KEEPING = frozenset({"append", "prepend", "copy", "move"})


def _line_numbers(statements: Iterable[ast.stmt]) -> set[int]:
    """The numbers of all lines of these statements."""
    numbers = set[int]()
    for each in statements:
        numbers.update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return numbers


def _unasked_call_lines(tree: ast.Module, names: tuple[str, ...], request: str) -> set[int]:
    """The lines that call one of these functions and that nobody asked for, beside some that were
    asked for."""
    if "replace" in names and FREE_EDIT.search(request):
        return set()

    own = list[tuple[ast.stmt, ast.Call]]()
    for statement in tree.body:
        call = _as_literal_call(statement, names)
        if call is not None:
            own.append((statement, call))

    strange = [statement for statement, call in own if _is_call_unasked(call, request)]
    if "move" in names and len(strange) in (0, len(own)):
        strange = [
            statement
            for statement, call in own
            if not _is_of_kind(str(_constant_argument(call, 0)), request)
        ]
    return _line_numbers(strange) if len(strange) < len(own) else set()


def _unasked_file_lines(tree: ast.Module, request: str) -> set[int]:
    """The lines that make a file which nobody asked for, beside one that the request names."""
    if _MORE.search(request):
        return set()

    asked = list[ast.stmt]()
    strange = list[ast.stmt]()
    for statement in tree.body:
        path = _find_written_path(statement)
        if path is None:
            continue
        if is_file_mentioned(path, request):
            asked.append(statement)
        else:
            strange.append(statement)
    return _line_numbers(strange) if asked else set()


def _find_written_path(statement: ast.stmt) -> str | None:
    """The file that a statement writes, where its name stands there."""
    call = _as_call(statement, _WRITERS)
    path = _constant_argument(call, 0) if call is not None else None
    return path if isinstance(path, str) else None


def _other_kind_lines(tree: ast.Module, request: str) -> set[int]:
    """The lines of loops over files of a kind that the request does not name, beside some that it
    names."""
    asked = list[ast.stmt]()
    strange = list[ast.stmt]()
    for statement in tree.body:
        pattern = _find_files_pattern(statement)
        if pattern is None:
            continue
        if _is_of_kind(pattern, request):
            asked.append(statement)
        else:
            strange.append(statement)
    return _line_numbers(strange) if asked else set()


def _find_files_pattern(statement: ast.stmt) -> str | None:
    """The pattern of the files that a statement loops over, where it stands there."""
    call = statement.iter if isinstance(statement, ast.For) else None
    if not isinstance(call, ast.Call) or _call_name(call) != "files":
        return None
    pattern = _constant_argument(call, 0)
    return pattern if isinstance(pattern, str) else None


def _repeated_lines(tree: ast.Module) -> set[int]:
    """The lines of calls that stand in the program a second time."""
    names = {name for group in _PRUNED for name in group}
    seen = set[str]()
    repeated = list[ast.stmt]()
    for statement in tree.body:
        written = ast.unparse(statement)
        if written in seen and _as_literal_call(statement, names):
            repeated.append(statement)
        seen.add(written)
    return _line_numbers(repeated)


_MORE = re.compile(
    r"\b("
    r"new|own|other|another|separate|different|copy|backup"
    r"|each|every|per|split|archive|both|files"
    r")\b",
    re.IGNORECASE,
)
"""Words with which a file may be meant that is not named."""


_WRITERS = frozenset(
    {"write", "append", "prepend", "replace", "remove_lines", "save_rows", "save_json"}
)


def _constant_argument(call: ast.Call, at: int) -> object:
    given = call.args[at] if len(call.args) > at else None
    return given.value if isinstance(given, ast.Constant) else None


def _is_of_kind(path: str, request: str) -> bool:
    """Whether a file is of a kind that the request names, and in the folder that it names; where it
    names none, all are."""
    words = set(re.findall(r"\w+", request.lower()))
    kinds = set[str]()
    for word, endings in _KINDS.items():
        if words & {word, f"{word}s"}:
            kinds.update(endings)

    ending = path.rpartition(".")[2].lower()
    if kinds and ending not in kinds:
        return False
    folder = path.rpartition("/")[0].lower()
    return not folder or folder.split("/")[0] in request.lower()


_PICTURES = ("jpg", "jpeg", "png", "gif", "webp", "heic", "svg", "bmp")
_KINDS = {
    **{
        ending: (ending,)
        for ending in ("pdf", "csv", "txt", "md", "json", "log", "py", "html", "zip", "mp3", "wav")
    },
    **{
        ending: (ending,)
        for ending in ("png", "gif", "docx", "xlsx", "doc", "xls", "tmp", "bak", "mp4", "xml")
    },
    **dict.fromkeys(("jpg", "jpeg"), ("jpg", "jpeg")),
    **dict.fromkeys(("picture", "photo", "image"), _PICTURES),
    **dict.fromkeys(("song", "music"), ("mp3", "wav", "flac", "ogg", "m4a")),
    **dict.fromkeys(("video", "film"), ("mp4", "mov", "avi", "mkv")),
}
"""The endings that a word of a request means."""


_PRUNED = (
    ("replace",),
    ("move",),
    ("rename",),
    ("copy",),
    ("delete",),
    ("append",),
    ("prepend",),
    ("remind", "every", "remember"),
)
"""Functions whose calls are weighed against each other."""


def _call_name(call: ast.Call) -> str:
    """The function that is called, where it is one of ours."""
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _as_call(statement: ast.stmt, names: Collection[str]) -> ast.Call | None:
    """The call that a statement is, of one of these functions."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return call if isinstance(call, ast.Call) and _call_name(call) in names else None


def _as_literal_call(statement: ast.stmt, names: Collection[str]) -> ast.Call | None:
    """The call that a statement is, of one of these functions and with texts alone."""
    call = _as_call(statement, names)
    return call if call and all(isinstance(each, ast.Constant) for each in call.args) else None


def is_say_call(statement: ast.stmt) -> bool:
    """Whether a statement only says something."""
    return _as_call(statement, ("say",)) is not None


def _is_call_unasked(call: ast.Call, request: str) -> bool:
    """Whether the texts of a call have nothing to do with the request."""
    texts = [str(each.value) for each in call.args if isinstance(each, ast.Constant)]
    match _call_name(call):
        case "replace":
            return _is_replacement_unasked(texts, request)
        case "remind" | "every" | "remember":
            said = set(split_words(texts[-1] if texts else "")) - STOP_WORDS
            return bool(said) and said.isdisjoint(split_words(request))
        case _:
            path = texts[0].rpartition("/")[2].lower() if texts else ""
            stem = path.rpartition(".")[0]
            return path not in request.lower() and stem not in request.lower()


def _is_replacement_unasked(texts: Sequence[str], request: str) -> bool:
    """Whether a replacement is of words that the request does not hold, or in a file that it does
    not speak of. `texts` are the file, what stands there, and what is to stand there."""
    asked = set(split_words(request)) - STOP_WORDS
    if len(texts) == 3 and not any(set(split_words(text)) & asked for text in texts[1:]):
        return True
    if not texts or ALL_FILES.search(request):
        return False
    return not is_file_mentioned(texts[0], request)


def _find_calls(program: str, name: str) -> list[ast.Call]:
    """The calls of one of our functions in a program."""
    try:
        tree = parse_python(program, PROGRAM_CHARS)
    except SyntaxError:
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if _call_name(call) == name]


def find_invented_number(program: str, request: str) -> str:
    """A number that a program says and has not computed, nor found in the request; '' for none."""
    for say in _find_calls(program, "say"):
        texts = [str(each.value) for each in say.args if isinstance(each, ast.Constant)]
        if len(texts) < len(say.args):
            continue  # a part of it is computed
        for number in re.findall(r"\d[\d.,]*", " ".join(texts)):
            figure = str(number).rstrip(".,")
            if figure not in request:
                return figure
    return ""


def find_unasked_column(program: str, request: str) -> str:
    """A column by which doubles are looked for though the request does not name it; '' for none."""
    calls = _find_calls(program, "unique")
    given = [each for call in calls for each in call.args[1:2]]
    given += [each.value for call in calls for each in call.keywords if each.arg == "by"]
    for each in given:
        column = each.value if isinstance(each, ast.Constant) else None
        if isinstance(column, str) and not is_file_mentioned(column, request):
            return column
    return ""


def find_sample_value(program: str, turn: ShimTurn) -> str:
    """A value of the row that a listing shows which the program says or writes as it stands; '' for
    none."""
    known = " ".join([turn.request, *(text for _, text in turn.earlier)]).lower()
    rows = re.findall(r"\)\[0\] is [{\[](.*?)[}\]]", turn.did[0].result)
    values = [value for row in rows for value in re.findall(r"(?:: |^|, )'([^']{4,})'(?!:)", row)]
    strange = [value for value in values if value.lower() not in known]
    texts = list[str]()
    for name in ("say", "write", "append"):
        for call in _find_calls(program, name):
            texts += [str(node.value) for node in ast.walk(call) if isinstance(node, ast.Constant)]
    return next((value for value in strange if any(value in text for text in texts)), "")


def find_compared_sample(program: str, turn: ShimTurn) -> str:
    """A value of the row that a listing shows, of a column with many, for which a program looks
    though nobody named it; '' for none."""
    listing = turn.did[0].result
    kinds = set(re.findall(r"; ([^;{}]+?) is [^;{}]* or ", listing))
    rows = re.findall(r"\)\[0\] is {([^{}\n]*)}", listing)
    pairs = [pair for row in rows for pair in re.findall(r"'([^']+)': '([^']{3,})'", row)]

    known = " ".join([turn.request, *(text for _, text in turn.earlier)]).lower()
    strange = {
        value for column, value in pairs if column not in kinds and value.lower() not in known
    }
    return min(strange & _compared_texts(program), default="")


def _compared_texts(program: str) -> set[str]:
    """The texts with which a program compares something."""
    try:
        tree = parse_python(program, PROGRAM_CHARS)
    except SyntaxError:
        return set()
    sides = list[ast.expr]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides += [node.left, *node.comparators]
    values = [side.value for side in sides if isinstance(side, ast.Constant)]
    return {value for value in values if isinstance(value, str)}


def strip_sample_values(tried: ProgramTry, turn: ShimTurn) -> str:
    """What a program says, without values that it has not worked out but taken from the row that
    the listing shows."""
    said = tried.rehearsed.said
    while (sample := find_sample_value(tried.program, turn)) and sample in said:
        said = re.sub(rf"\s*{re.escape(sample)}", "", said)
        tried = msgspec.structs.replace(tried, program=tried.program.replace(sample, ""))
    return said


def is_by_example(request: str) -> bool:
    """Whether a request speaks of many things by one, or of every one of them."""
    return bool(_BY_EXAMPLE.search(request))


def is_plain(tried: ProgramTry, turn: ShimTurn) -> bool:
    """Whether a program needs no second one to be believed: it only calls our functions, with words
    of the request, or with a text that is made up for a new file. What it says beside is not looked
    at: see `done_words`."""
    if is_by_example(turn.request) and "replace(" in tried.program:
        return False
    try:
        statements = parse_python(tried.program, PROGRAM_CHARS).body
    except SyntaxError:
        return False

    simple = [each for each in statements if isinstance(each, ast.Expr | ast.Assign)]
    only_says = all(is_say_call(each) for each in statements)
    if only_says or len(simple) < len(statements):
        return False

    asked = turn.request.lower()
    known = f"{asked}\n{turn.did[0].result.lower()}" if turn.did else asked
    if not all(_is_plain(each.value, asked, known) for each in simple):
        return False
    makes_file = any(change.kind == "new" for change in tried.rehearsed.changes)
    return makes_file or "write" not in tried.program


_BY_EXAMPLE = re.compile(
    r"\b("
    r"formats?|styles?|such as|written (as|like)|like (this|\d+)"
    r"|e\.g|for example"
    r"|(every|each|all)( the)? \w+"
    r")\b",
    re.IGNORECASE,
)
"""What is asked for stands in the request as an example of more."""


def _is_plain(value: ast.expr, asked: str, known: str) -> bool:
    """`known` is the request with the listing: a command may name a file with its ending."""
    if not isinstance(value, ast.Call):
        return False
    name = _call_name(value)
    if name == "say":
        return True
    given = [_text_of(each) for each in value.args]
    texts = [text for text in given if text is not None]
    if name not in _PLAIN or len(texts) < len(given) or value.keywords:
        return False
    if name == "run":
        words = [word for text in texts for word in split_words(text)]
        return all(word in known or word in _RUNNERS for word in words)

    paths = _PATHS.get(name, 1)
    if not all(_is_asked(path, asked) for path in texts[:paths]):
        return False
    return name == "write" or all(_has_words_of(text, asked) for text in texts[paths:])


def _text_of(given: ast.expr) -> str | None:
    """The text that is given, or the lines of a list; None for what is worked out."""
    if isinstance(given, ast.Constant):
        return str(given.value)
    if not isinstance(given, ast.List):
        return None
    lines = [_text_of(each) for each in given.elts]
    return None if None in lines else "\n".join(map(str, lines))


_RUNNERS = frozenset({"python", "python3", "sh", "bash"})
_PATHS = {"move": 2, "rename": 2, "copy": 2}
"""How many of the arguments are paths, where it is not one."""


def _is_asked(path: str, asked: str) -> bool:
    return is_file_mentioned(path, asked) or _has_words_of(path, asked)


_PLAIN = frozenset(
    {
        "write",
        "append",
        "prepend",
        "replace",
        "move",
        "rename",
        "copy",
        "delete",
        "make_folder",
        "run",
        "tick",
    }
)


def _has_words_of(text: str, asked: str) -> bool:
    """Whether all words of a text stand in the request."""
    return all(word in asked for word in split_words(text))


def has_computed_output(program: str) -> bool:
    """Whether what a program says holds something that it has computed."""
    given = [each for say in _find_calls(program, "say") for each in say.args]
    return any(not isinstance(each, ast.Constant) for each in given)


def is_repeating(written: str) -> bool:
    """Whether a model repeats itself: the same lines for the third time."""
    lines = [line.strip() for line in written.splitlines() if len(line.strip()) > MIN_LINE_CHARS]
    return len(lines) > MAX_REPEATS and lines.count(lines[-1]) >= MAX_REPEATS


def is_enumerating(written: str) -> bool:
    """Whether a model writes one line for each thing, where it should write a loop."""
    lines = [
        line[:MIN_LINE_CHARS]
        for line in written.splitlines()
        if len(line) > MIN_LINE_CHARS and _CALLED.match(line)
    ]
    return len(lines) > MAX_ALIKE_LINES and len(set(lines[-MAX_ALIKE_LINES:])) == 1


MIN_LINE_CHARS = 12
MAX_REPEATS = 3
MAX_ALIKE_LINES = 8
_CALLED = re.compile(r"\s*\w+\(")
ENDLESS_ERROR = "raise RuntimeError('one line for each: write a loop over them')"
"""The end of a program that goes on and on."""


_FENCE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:\n```|$)", re.DOTALL)


PROGRAM_CHARS = 8_000


def extract_program(written: str) -> str:
    """The program in what a model wrote, fenced or not; '' for one that is longer than a small
    model writes."""
    found = _FENCE.search(written)
    program = (found[1] if found else written.strip().strip("`")).strip()
    return program if len(program) <= PROGRAM_CHARS else ""
