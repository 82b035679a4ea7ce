"""How much of the suite runs: a part that answers within minutes, or all of it."""

from __future__ import annotations

import os

ALL = os.environ.get("TESTS") == "all"
"""`make test-all` sets it: slow tests run too, and properties get all of their examples."""
TIMES = int(os.environ.get("EXAMPLES", "1"))
"""So many times as many examples, for who hunts a fault."""
QUICK_EXAMPLES = 25


def examples(full: int, quick: int = QUICK_EXAMPLES) -> int:
    """How many examples a property gets that deserves `full` of them."""
    return TIMES * (full if ALL else min(full, quick))
