"""The command `deskhand`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl+C ends it without a traceback from the first moment on."""
    try:
        from .cli.entry import run_cli  # noqa: PLC0415 -- what is imported here takes longest

        code = run_cli()
    except KeyboardInterrupt:
        code = 130
    except RuntimeError as error:  # so Python 3.11 tells what interrupts the making of a class
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
