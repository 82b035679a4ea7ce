"""Python that somebody else wrote, as a tree: it is read, and never run. Pure."""

from __future__ import annotations

import ast

MAX_SOURCE_CHARS = 128 * 1024
MAX_TREE_DEPTH = 100
"""Levels of a tree. Whatever walks one by recursion has room for these."""


def parse_python(source: str, longest: int = MAX_SOURCE_CHARS) -> ast.Module:
    """The tree of a source of at most so many characters. Raises SyntaxError for a longer one, for
    one that is nested more deeply than people write it, and for what is no Python."""
    if len(source) > longest:
        raise SyntaxError(f"it has more than {longest:,} characters")
    try:
        tree = ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(f"it cannot be read: {error}") from error
    level: list[ast.AST] = [tree]
    for _ in range(MAX_TREE_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise SyntaxError("it is nested too deeply")
