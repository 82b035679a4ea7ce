"""Reads the public async functions of a file, without running it: each is a tool."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from math import isfinite

from ..tools.documents.invisible_characters import escape_invisible
from ..tools.paths import Place
from ..types.messages import clean_text
from .definitions import FileTool, FoundTools, Parameter, ToolFile

MOST_PARAMETERS = 20
DOC_CHARS = 300
NAME_CHARS = 64
DEFAULT_CHARS = 200
KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
DECLARING_MODULES = (
    "deskhand.customtools",
    "operator_use.tools.service",
    "operator_use.agent.tools.service",
)
"""What a file imports that says itself what its tools are."""


def parse_functions(source: bytes, file: str) -> FoundTools:
    """The tools of a file. The file is parsed and not run; one that says itself what its tools
    are is `undescribed`."""
    try:
        tree = ast.parse(source, file)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = ""
        if isinstance(error, SyntaxError) and error.lineno:
            where = f" in line {error.lineno}"
        why = getattr(error, "msg", None) or type(error).__name__
        return FoundTools((), (f"{file} is not valid Python{where}: {why}",))
    if _is_declaring(tree):
        return FoundTools(undescribed=(ToolFile(file, source, b"", Place("")),))
    tools: dict[str, FileTool] = {}
    problems: list[str] = []
    for node in tree.body:
        if not isinstance(node, ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        try:
            tools[node.name] = FileTool(
                _check_name(node.name), _describe(node), file, tuple(_parse_parameters(node))
            )
        except (ValueError, RecursionError) as error:
            tools.pop(node.name, None)
            why = "it is nested too deeply" if isinstance(error, RecursionError) else error
            problems.append(f"{file}: {node.name[:NAME_CHARS]} is not a tool: {why}")
    return FoundTools(tuple(tools.values()), tuple(problems))


def _is_declaring(tree: ast.Module) -> bool:
    """Whether the file says itself what its tools are: then it has to be run to find out."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str() as name) if name in DECLARING_MODULES:
                return True
            case ast.Import(names=names) if any(each.name in DECLARING_MODULES for each in names):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="registry"), attr="register")):
                return True
            case _:
                pass
    return False


def _check_name(name: str) -> str:
    if not name.isascii() or len(name) > NAME_CHARS:
        raise ValueError(f"its name must be of at most {NAME_CHARS} letters, digits and _")
    return name


def _describe(node: ast.AsyncFunctionDef) -> str:
    doc = escape_invisible(clean_text(ast.get_docstring(node) or ""))
    first = next((" ".join(line.split()) for line in doc.splitlines() if line.strip()), node.name)
    return f"[skill] {first[:DOC_CHARS]}"


def _parse_parameters(node: ast.AsyncFunctionDef) -> Iterator[Parameter]:
    """Raises ValueError for parameters that a model cannot give."""
    given = node.args
    if given.vararg or given.kwarg or given.posonlyargs:
        raise ValueError("its parameters must all be named: no *, ** or /")
    if len(given.args) + len(given.kwonlyargs) > MOST_PARAMETERS:
        raise ValueError(f"it has more than {MOST_PARAMETERS} parameters")
    missing = len(given.args) - len(given.defaults)
    defaults: list[ast.expr | None] = [*[None] * missing, *given.defaults, *given.kw_defaults]
    for argument, default in zip((*given.args, *given.kwonlyargs), defaults, strict=True):
        if argument.arg == "context" or argument.arg.startswith("_") or not argument.arg.isascii():
            raise ValueError(f"a parameter cannot be called {argument.arg!a}")
        kind = _parse_kind(argument.annotation)
        value = None
        if default is not None:
            with suppress(ValueError, RecursionError, TypeError, MemoryError):
                value = ast.literal_eval(default)
        if not _is_valid_default(value, kind):
            value = None
        yield Parameter(argument.arg, kind, required=default is None, default=value)


def _is_valid_default(value: object, kind: str) -> bool:
    """Whether a model can be shown this default: short, and the same as JSON."""
    match value:
        case bool():
            return kind == "bool"
        case int():
            return kind in ("int", "float") and abs(value) < 2**53
        case float():
            return kind == "float" and isfinite(value)
        case str():
            return (
                kind == "str"
                and len(value) <= DEFAULT_CHARS
                and escape_invisible(clean_text(value)) == value
            )
        case _:
            return False


def _parse_kind(node: ast.expr | None) -> str:
    """The name of the type, `str` without an annotation. `X | None` and `Optional[X]` are X."""
    match node:
        case None:
            return "str"
        case ast.Name(id=name) if name in KINDS:
            return name
        case ast.Constant(value=str() as name) if name in KINDS:
            return name
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return _parse_kind(left)
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _parse_kind(inner)
        case _:
            raise ValueError(
                f"{ast.unparse(node)[:60]} is not a supported type of a parameter: use str, int, "
                "float or bool"
            )
