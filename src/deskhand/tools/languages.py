"""Reads definitions and uses of names out of code: Python by its syntax tree, other languages line
by line.

Every pattern takes time in proportion to its line, and longer lines than code has are left out:
whoever wrote the file may have written it against us.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import msgspec

from ..types.python_source import parse_python

MAX_LINE_CHARS = 500
"""A longer line is generated; nothing is defined there that anybody looks for."""

_LANGUAGES = {
    "python": "py pyi",
    "c": "c h cc cpp cxx hh hpp hxx",
    "script": "js jsx mjs cjs ts tsx mts cts",
    "go": "go",
    "rust": "rs",
    "java": "java",
}
_LANGUAGE_BY_EXTENSION = {
    ending: name for name, endings in _LANGUAGES.items() for ending in endings.split()
}

_IDENTIFIER = r"[A-Za-z_$][\w$]*"
_SCRIPT = r"\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?"
_PUB = r"\s*(?:pub(?:\([^()]*\))?\s+)?"
_RUST = r"(?:(?:async|const|unsafe|default|extern(?:\s+\"[^\"]*\")?)\s+)*"
_TYPEDEF = r"\s*(?:typedef\s+)?"
_BODY = r"(?=\s*(?:\{|$|:(?!:)|final\b))"
_LINES = {
    "python": (rf"\s*(?:async\s+)?(def|class)\s+({_IDENTIFIER})",),
    "c": (
        rf"{_TYPEDEF}(struct|class|enum|union|namespace)\s+(?:class\s+)?({_IDENTIFIER}){_BODY}",
        rf"#\s*(define)\s+({_IDENTIFIER})",
    ),
    "script": (
        rf"{_SCRIPT}(function)\s*\*?\s*({_IDENTIFIER})",
        rf"{_SCRIPT}(class|interface|enum|namespace)\s+({_IDENTIFIER})",
        rf"{_SCRIPT}(type)\s+({_IDENTIFIER})\s*[<=]",
        rf"(?:export\s+)?(const|let|var)\s+({_IDENTIFIER})\s*[:=]",
    ),
    "go": (rf"(func)\s+(?:\([^()]*\)\s*)?({_IDENTIFIER})", rf"(type|var|const)\s+({_IDENTIFIER})"),
    "rust": (
        rf"{_PUB}{_RUST}(fn|struct|enum|trait|mod|type|union|static)\s+(?:mut\s+)?({_IDENTIFIER})",
        rf"{_PUB}(const)\s+({_IDENTIFIER})\s*:",
        rf"\s*(macro_rules!)\s*({_IDENTIFIER})",
    ),
    "java": (rf"[\w\s@]*\b(class|interface|enum|record)\s+({_IDENTIFIER})",),
}
_PATTERNS = {
    language: [re.compile(pattern) for pattern in patterns] for language, patterns in _LINES.items()
}
_FUNCTION_PREFIXES = {
    "c": re.compile(r"[\w\s*&:<>,~\[\]]+"),
    "java": re.compile(r"[\w\s<>,.?@\[\]&]+"),
    "script": re.compile(r"[\w\s*]*"),
}
"""What may stand before the name of a function."""
_KEYWORD_TEXT = """
if else for while do switch case return new throw catch try sizeof defined delete await yield typeof
with super this function synchronized assert using import package
"""
_KEYWORDS = frozenset(_KEYWORD_TEXT.split())


class Symbol(msgspec.Struct, frozen=True):
    """A name and the line that it stands in, from 1; for a use, `name` is what the line says."""

    line: int
    name: str
    kind: str = ""


def detect_language(path: str) -> str:
    """The language by the file's ending; '' for no code that we read."""
    name = path.rpartition("/")[2]
    return _LANGUAGE_BY_EXTENSION.get(name.rpartition(".")[2].lower(), "") if "." in name else ""


def find_definitions(path: str, text: str) -> Iterator[Symbol]:
    """What a file defines, in the order of its lines."""
    language = detect_language(path)
    if language == "python":
        tree = _parse_python(text)
        if tree is not None:
            return iter(sorted(_find_in_python(tree), key=lambda symbol: symbol.line))
    return _find_in_lines(language, text) if language else iter(())


def find_uses(path: str, text: str, name: str) -> Iterator[Symbol]:
    """The lines in which the name stands as a whole word, in Python only where it is a name.
    Definitions are marked."""
    if len(name) > MAX_LINE_CHARS or name not in text:
        return
    language = detect_language(path)
    lines = text.split("\n")
    tree = _parse_python(text) if language == "python" else None
    if tree is not None:
        numbers = sorted({line for line in _find_uses_in_python(tree, name) if line <= len(lines)})
    else:
        numbers = _find_word(lines, name)

    defined = set[int]()
    for symbol in find_definitions(path, text):
        if symbol.name.rpartition(".")[2] == name:
            defined.add(symbol.line)
    for number in numbers:
        line = lines[number - 1].strip()
        yield Symbol(number, line, "[definition]" if number in defined else "")


def _find_word(lines: Sequence[str], name: str) -> list[int]:
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    return [number for number, line in enumerate(lines, 1) if name in line and word.search(line)]


def _parse_python(text: str) -> ast.Module | None:
    try:
        return parse_python(text)
    except SyntaxError:
        return None


def _find_in_python(tree: ast.Module) -> Iterator[Symbol]:
    """Classes, functions and what is assigned at the top of the module or of a class."""
    todo: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while todo:
        within, node = todo.pop()
        match node:
            case ast.ClassDef(name=name, body=body):
                yield Symbol(node.lineno, within + name, "class")
                todo += [(f"{within}{name}.", inner) for inner in body]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield Symbol(node.lineno, within + name, "method" if within else "def")
            case ast.Assign(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield Symbol(node.lineno, within + target.id, "var")
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield Symbol(node.lineno, within + name, "var")
            case ast.If(body=body, orelse=orelse):
                todo += [(within, inner) for inner in (*body, *orelse)]
            case ast.Try(body=body, handlers=handlers, orelse=orelse):
                todo += [(within, inner) for inner in (*body, *orelse)]
                for handler in handlers:
                    todo += [(within, inner) for inner in handler.body]
            case _:
                pass


def _find_uses_in_python(tree: ast.Module, name: str) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=found) | ast.Attribute(attr=found) if found == name:
                yield node.end_lineno or node.lineno
            case (
                ast.FunctionDef(name=found)
                | ast.AsyncFunctionDef(name=found)
                | ast.ClassDef(name=found)
            ):
                if found == name:
                    yield node.lineno
            case ast.alias(name=found, asname=asname) if name in (asname, *found.split(".")):
                yield node.lineno
            case ast.arg(arg=found) | ast.keyword(arg=found) if found == name:
                yield node.lineno
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                yield node.lineno
            case _:
                pass


def _find_in_lines(language: str, text: str) -> Iterator[Symbol]:
    for number, line in enumerate(text.split("\n"), 1):
        is_comment = line.lstrip().startswith(("//", "*", "/*"))
        if len(line) > MAX_LINE_CHARS or not line.strip() or is_comment:
            continue

        matches = (pattern.match(line) for pattern in _PATTERNS[language])
        found = next(filter(None, matches), None)
        if found is not None:
            yield Symbol(number, found[2], found[1])
        elif language in _FUNCTION_PREFIXES:
            name = _function_name(language, line)
            if name:
                yield Symbol(number, name, "function" if language == "c" else "method")


def _function_name(language: str, line: str) -> str:
    """The name before the first bracket, if the line looks like the head of a function that has a
    body."""
    head, bracket, rest = line.partition("(")
    ends = rest.rstrip()
    if not bracket or ends.endswith((";", ",")) or (language == "c" and head[:1].isspace()):
        return ""
    if language == "script" and not (head[:1].isspace() and ends.endswith("{")):
        return ""
    before = head.rstrip()
    while before and (before[-1].isalnum() or before[-1] in "_$"):
        before = before[:-1]
    name = head[len(before) :].rstrip()
    if not name or name[0].isdigit() or name in _KEYWORDS:
        return ""
    words = before.split()
    if language != "script" and not words:
        return ""
    if words and (words[0] in _KEYWORDS or not _FUNCTION_PREFIXES[language].fullmatch(before)):
        return ""
    return name
