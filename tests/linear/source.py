"""Finds in the code what may take more time than its text is long, and the regular expressions in
it."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

ROOT: Final = Path(__file__).parent.parent.parent
SOURCE: Final = ROOT / "src" / "deskhand"
METHODS: Final = frozenset(
    ("match", "search", "fullmatch", "finditer", "findall", "sub", "subn", "split")
)
PARSERS: Final = frozenset(
    (
        *(
            "yaml.safe_load",
            "yaml.load",
            "yaml.compose",
            "csv.reader",
            "csv.DictReader",
            "shlex.split",
            "shlex.shlex",
        ),
        *(
            "ast.parse",
            "ast.literal_eval",
            "parse_python",
            "unicodedata.normalize",
            "normalize",
            "html.unescape",
            "unescape",
        ),
        *(
            "SequenceMatcher",
            "difflib.SequenceMatcher",
            "unified_diff",
            "difflib.unified_diff",
            "difflib.ndiff",
        ),
        *(
            "get_close_matches",
            "zipfile.ZipFile",
            "tarfile.open",
            "tomllib.loads",
            "fnmatchcase",
            "fnmatch.fnmatch",
        ),
        *(
            "idna.encode",
            "h11.Connection",
            "urlsplit",
            "urlparse",
            "parse_qs",
            "parse_qsl",
            "datetime.fromisoformat",
        ),
        *(
            "date.fromisoformat",
            "email.message_from_bytes",
            "message_from_bytes",
            "ElementTree.fromstring",
        ),
    )
)
DECODERS: Final = frozenset(("msgspec.json.decode", "json.loads", "json.load"))
INVALID: Final = frozenset(
    ("DecodeError", "MsgspecError", "ValidationError", "JSONDecodeError", "ValueError")
)


class Site(msgspec.Struct, frozen=True):
    """A function that does something which may take long, by its file and its name there."""

    path: str
    function: str
    why: str


class Use(msgspec.Struct, frozen=True):
    """A regular expression where it is used. `pattern` is None where it is only made at run
    time."""

    path: str
    line: int
    function: str
    method: str
    pattern: re.Pattern[Any] | None
    said: str


def files() -> Iterator[tuple[str, ast.Module]]:
    """All code but the fakes and the programs of skills, by its path."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(("testing/", "skills/bundled/")):
            yield name, _parsed(path)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_of(path: str) -> ModuleType:
    name = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return importlib.import_module(f"deskhand.{name}")


def dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
        case _:
            return "?"


class _Reader(ast.NodeVisitor):
    def __init__(self, path: str) -> None:
        self._path, self._names = path, list[str]()
        self._async = [False]
        self.sites = dict[str, Site]()

    def _note(self, why: str) -> None:
        name = ".".join(self._names)
        if name:
            self.sites.setdefault(name, Site(self._path, name, why))

    def _within(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, waits: bool
    ) -> None:
        self._names.append(node.name)
        self._async.append(waits)
        self.generic_visit(node)
        self._names.pop()
        self._async.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._within(node, waits=False)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._within(node, waits=True)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within(node, waits=False)

    def visit_While(self, node: ast.While) -> None:
        if not self._async[-1]:  # what waits in a loop is paced by what it waits for
            self._note("a loop")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = dotted(node.func)
        if name in PARSERS:
            self._note(name)
        elif self._names and name in (
            self._names[-1],
            f"self.{self._names[-1]}",
            f"cls.{self._names[-1]}",
        ):
            within = len(self._names) > 1 and self._names[-2][:1].isupper() | (
                self._names[-2][:2] == "_"
            )
            if not (within and "." not in name):  # a method does not call itself by its bare name
                self._note("recursion")
        self.generic_visit(node)


def sites() -> list[Site]:
    """Every function with a parser, a recursion or a loop that ends when it ends."""
    found = list[Site]()
    for path, tree in files():
        reader = _Reader(path)
        reader.visit(tree)
        found += reader.sites.values()
    return found


@cache
def uses() -> tuple[Use, ...]:
    """Every use of a regular expression. Raises ImportError."""
    return tuple(use for path, tree in files() for use in _uses(path, tree))


def _uses(path: str, tree: ast.Module) -> Iterator[Use]:
    nodes = [*ast.walk(tree)]
    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    named = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in METHODS]
    within = _functions(nodes) if named else {}
    for node in named:
        said = ast.unparse(node.value)
        place = (path, node.lineno, within.get(id(node), ""), node.attr)
        if said == "re" and (made := calls.get(id(node))) is not None:
            yield Use(*place, _inline(made, node.attr, module_of(path)), ast.unparse(made)[:90])
        elif said.rpartition(".")[2].lstrip("_").isupper():
            pattern = _valued(said, module_of(path))
            if isinstance(pattern, re.Pattern):
                yield Use(*place, pattern, said)


def _functions(nodes: list[ast.AST]) -> dict[int, str]:
    """The innermost function that each of these stands in."""
    found = dict[int, str]()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.update({id(each): node.name for each in ast.walk(node)})
    return found


def _inline(call: ast.Call, method: str, module: ModuleType) -> re.Pattern[Any] | None:
    where = {"sub": 4, "subn": 4, "split": 3}.get(method, 2)
    said = [each.value for each in call.keywords if each.arg == "flags"] + call.args[
        where : where + 1
    ]
    pattern = _valued(ast.unparse(call.args[0]), module)
    flags = _valued(ast.unparse(said[0]), module) if said else 0
    return (
        re.compile(pattern, flags)
        if isinstance(pattern, str | bytes) and isinstance(flags, int)
        else None
    )


def _valued(said: str, module: ModuleType) -> Any:
    try:
        return eval(said, vars(module))
    except (NameError, AttributeError):
        return None


def careless_decoders() -> Iterator[str]:
    """Where it is expected that a text is no JSON, and not that it is nested too deeply for the
    decoder."""
    for path, tree in files():
        for node in ast.walk(tree):
            if isinstance(node, ast.Try):
                caught = {name for each in node.handlers for name in _names(each.type)}
            elif isinstance(node, ast.With):
                calls = [
                    item.context_expr
                    for item in node.items
                    if isinstance(item.context_expr, ast.Call)
                ]
                caught = {
                    name
                    for call in calls
                    if dotted(call.func).endswith("suppress")
                    for each in call.args
                    for name in _names(each)
                }
            else:
                continue
            decodes = any(_is_decoder(each) for inner in node.body for each in ast.walk(inner))
            if decodes and caught & INVALID and not caught & {"RecursionError", "Exception"}:
                yield f"{path}:{node.lineno}"


def _names(kind: ast.expr | None) -> set[str]:
    if isinstance(kind, ast.Tuple):
        return {name for each in kind.elts for name in _names(each)}
    return {dotted(kind).rpartition(".")[2]} if kind is not None else {"Exception"}


def _is_decoder(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = dotted(node.func)
    return name in DECODERS or (
        name.endswith(".decode") and name.lower().endswith("decoder.decode")
    )
