"""Importing a library without those parts of it that we never use, where it can do without them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import cast


@contextmanager
def leave_out(*modules: str) -> Iterator[None]:
    """Inside, these modules cannot be imported, unless they are there already; afterwards they
    can."""
    loaded = cast(dict[str, ModuleType | None], sys.modules)  # None stands for "cannot be imported"
    left_out = [name for name in modules if name not in loaded]
    for name in left_out:
        loaded[name] = None
    try:
        yield
    finally:
        for name in left_out:
            del loaded[name]
