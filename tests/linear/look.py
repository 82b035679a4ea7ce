"""Looks at a part of all that sees text, in a process of its own: `python -m tests.linear.look PART
OF [whole]`.

Prints what is found as JSON, and the names of the functions that were run.
"""

from __future__ import annotations

import sys

import msgspec

from .feeding import Measure, fed, grown, reached
from .scanning import all_uses, slow_ones
from .source import uses


def main(part: str, of: str, whole: str = "") -> None:
    mine = slice(int(part), None, int(of))
    functions = [*fed()][mine]
    uses()  # all modules are loaded before anything is closed to them
    measure = Measure()
    for name in reached(measure, functions):
        print(name)
    for function in functions:
        for finding in grown(measure, function, bool(whole)):
            print(msgspec.json.encode(finding).decode(), flush=True)
    for finding in slow_ones(measure, all_uses()[mine], bool(whole)):
        print(msgspec.json.encode(finding).decode(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
