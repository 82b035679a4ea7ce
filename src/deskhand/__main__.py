"""The command `deskhand`."""

from __future__ import annotations

import sys

from .cli.root import cli


def main() -> None:
    """Run the command line. The writer thread and the event loop share the interpreter: switching often keeps both
    prompt, where the default of 5 ms makes them wait for each other in turn."""
    sys.setswitchinterval(0.0005)
    cli(prog_name="deskhand")


if __name__ == "__main__":
    main()
