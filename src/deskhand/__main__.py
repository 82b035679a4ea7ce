"""The command `deskhand`."""

from __future__ import annotations

from .cli.root import cli
from .types.tuning import tune


def main() -> None:
    """Run the command line."""
    tune()
    cli(prog_name="deskhand")


if __name__ == "__main__":
    main()
