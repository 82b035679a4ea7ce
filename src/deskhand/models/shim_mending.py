"""What of a small model's program can be mended by code, so that the model is not asked again.
Pure."""

from __future__ import annotations

import ast
import re

from ..types.programs import FileChange
from ..types.python_source import parse_python
from .shim_programs import PROGRAM_CHARS, ProgramTry
from .shim_request import find_demanded_words, parse_swap
from .shim_texts import find_rewrite_target


def mend_program(tried: ProgramTry, request: str) -> str:
    """The program as it was meant, or with what the request says besides; '' where nothing is to be
    mended."""
    return (
        mend_by_failure(tried) or append_demanded(tried, request) or fix_delimiter(tried, request)
    )


def mend_by_failure(tried: ProgramTry) -> str:
    """The program in the way in which it was meant, where that is plain from how it failed; ''
    where it is not."""
    came = tried.rehearsed
    if "is not iterable" in came.failed or "object is not callable" in came.failed:
        return _aggregate_all_rows(tried.program)

    came_to_nothing = not (came.failed or came.changes or came.calls or came.said)
    if "nothing was found" in came.failed or came.stopped or came_to_nothing:
        return _loosen_date_pattern(tried.program)
    return ""


def _aggregate_all_rows(program: str) -> str:
    """`max(number(r['x']))` of one row, within a walk over rows, is meant of all of them; in the
    value of a dictionary of all those with the same key."""
    try:
        tree = parse_python(program, PROGRAM_CHARS)
    except SyntaxError:
        return ""
    before = ast.unparse(tree)
    after = ast.unparse(_OfAll().visit(tree))
    return after if after != before else ""


class _OfAll(ast.NodeTransformer):
    """Widens each aggregate of a single row that a comprehension walks."""

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        self.generic_visit(node)
        node.value = _widen_aggregates(node.value, node.generators, node.key)
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        for walk in node.generators:
            walk.ifs = [_widen_aggregates(each, node.generators, None) for each in walk.ifs]
        return node


def _widen_aggregates(
    value: ast.expr, walks: list[ast.comprehension], key: ast.expr | None
) -> ast.expr:
    """The expression with its aggregates over all that the one walk gives, of which `key` is the
    same."""
    if len(walks) != 1 or not isinstance(walks[0].target, ast.Name):
        return value
    name = walks[0].target.id
    source = walks[0].iter
    other = f"other_{name}"

    class Widen(ast.NodeTransformer):
        def visit_Compare(self, compared: ast.Compare) -> ast.AST:
            """What is compared with the highest value is such a value, and not the text in its
            cell."""
            given = [
                each.args[0]
                for each in compared.comparators
                if isinstance(each, ast.Call) and each.args
            ]
            left = ast.dump(compared.left)
            holders = [of for of in given if left in {ast.dump(part) for part in ast.walk(of)}]
            self.generic_visit(compared)
            if holders:
                compared.left = holders[0]
            return compared

        def visit_Call(self, call: ast.Call) -> ast.AST:
            self.generic_visit(call)
            if not _is_aggregate(call):
                return call
            of = call.args[0]
            if not isinstance(of, ast.Call | ast.Subscript) or name not in _names_in(of):
                return call

            same = list[ast.expr]()
            if key is not None:
                same.append(ast.Compare(_rename_variable(key, name, other), [ast.Eq()], [key]))
            walk = ast.comprehension(ast.Name(other), source, same, 0)
            call.args = [ast.ListComp(_rename_variable(of, name, other), [walk])]
            return call

    return ast.parse(ast.unparse(Widen().visit(value)), mode="eval").body


AGGREGATES = frozenset({"max", "min", "sum", "average", "median"})


def _is_aggregate(call: ast.Call) -> bool:
    """Whether a call gives one value for all those of a single argument."""
    if not isinstance(call.func, ast.Name) or call.func.id not in AGGREGATES:
        return False
    return len(call.args) == 1


def _names_in(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _rename_variable(node: ast.expr, old: str, new: str) -> ast.expr:
    """A copy in which another name stands."""
    copy = ast.parse(ast.unparse(node), mode="eval").body
    for each in ast.walk(copy):
        if isinstance(each, ast.Name) and each.id == old:
            each.id = new
    return copy


def make_swap_program(request: str, texts: str) -> str:
    """The program for a request that says which words become which, `from room 204 to room 311`,
    and speaks of one text in which they stand; '' for another request."""
    words = parse_swap(request)
    path = find_rewrite_target(texts)
    if not words or not path:
        return ""
    if not re.search(rf"\b{re.escape(words[0])}\b", texts, re.IGNORECASE):
        return ""
    return f"replace({path!r}, {words[0]!r}, {words[1]!r})"


def append_demanded(tried: ProgramTry, request: str) -> str:
    """The program with the lines that the request demands in the new list that it makes: `soap must
    be on it`; '' where nothing is missing, and where it makes no list."""
    made = tried.rehearsed.changes
    if len(made) != 1 or made[0].kind != "new":
        return ""
    lines = [
        line[1:]
        for line in made[0].diff.splitlines()
        if line.startswith("+") and not line.startswith("+++")
    ]
    is_list = len(lines) >= MIN_LIST_LINES and all(len(line) <= MAX_LINE_CHARS for line in lines)
    if not is_list:
        return ""

    text = "\n".join(lines).lower()
    missing = [word for word in find_demanded_words(request) if word.lower() not in text]
    if not missing:
        return ""
    mark = "- " if lines[-1].startswith("- ") else ""
    added = [f"append({made[0].path!r}, {mark + word!r})" for word in missing]
    return "\n".join([tried.program, *added])


def fix_delimiter(tried: ProgramTry, request: str) -> str:
    """The program with the sign between the columns that the request wants, `semicolons instead of
    commas`, where the table that it saves has another one; '' where nothing is wrong."""
    found = _DELIMITER_REQUEST.search(request)
    if found is None:
        return ""
    sign = _DELIMITERS[(found[1] or found[2]).lower()]
    heads = [
        _find_head(each)
        for each in tried.rehearsed.changes
        if each.path.lower().endswith((".csv", ".tsv", ".txt"))
    ]
    if all(sign in head for head in heads):
        return ""

    tree = parse_python(tried.program, PROGRAM_CHARS)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    saves = [call for call in calls if ast.unparse(call.func) == "save_rows"]
    for call in saves:
        call.keywords = [each for each in call.keywords if each.arg != "delimiter"]
        call.keywords.append(ast.keyword("delimiter", ast.Constant(sign)))
    return ast.unparse(tree) if saves else ""


def _find_head(change: FileChange) -> str:
    """The first line of a file that its diff shows as it is now; '' for none."""
    lines = change.diff.splitlines()
    return next((line for line in lines if re.match(r"[+ ](?!\+\+)", line)), "")


_DELIMITERS = {"semicolon": ";", "comma": ",", "tab": "\t"}
_DELIMITER_REQUEST = re.compile(
    r"\b(?:with|by|to|into|wants|needs|use|using) (?:a )?(semicolon|comma|tab)s?\b"
    r"|\b(semicolon|comma|tab)s? instead of\b",
    re.IGNORECASE,
)


MIN_LIST_LINES = 3
MAX_LINE_CHARS = 40
"""A list has so many lines at least, and none that is longer."""


def _loosen_date_pattern(program: str) -> str:
    """A pattern for dates that found none, as dates are usually written."""
    loose = _DATE_PATTERN.sub(lambda _: _ANY_DATE, program)
    return loose if loose != program and _ANY_DATE not in program else ""


_ANY_DATE = r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})"
_NUMBER = r"\\d(?:\{[\d,]+\}|\+)"
_BETWEEN = r"(?:\\?[./-])"
_DATE_PATTERN = re.compile(f"{_NUMBER}{_BETWEEN}{_NUMBER}{_BETWEEN}{_NUMBER}")
r"""A date in a pattern of a program, such as `\d{4}-\d{2}-\d{2}`."""
