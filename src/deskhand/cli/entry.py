"""Between the operating system and the commands: arguments, standard streams, and what ends a
process early."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click

from ..types.interpreter import tune_interpreter
from .plain import escape_control
from .root import cli

FAILED = 1
INTERRUPTED = 130


def run_cli() -> int:
    """Run the command that the arguments name, and return its exit code. Other commands end by
    SystemExit.

    A reader of our output that has gone is no error; a disk that takes no more of it ends in a
    sentence.
    """
    _open_missing_streams()
    sys.argv[1:] = [argument.encode(errors="replace").decode() for argument in sys.argv[1:]]
    tune_interpreter()
    try:
        return _run_command()
    except OSError as error:
        _discard_output()
        if not isinstance(error, BrokenPipeError):
            what = (
                f"{error.filename}: {error.strerror}; check the installation with: deskhand doctor"
            )
            shown = what if error.filename else f"cannot write the output: {error.strerror}"
            with suppress(OSError):
                sys.stderr.write(f"deskhand: {escape_control(shown)}\n")
        return FAILED


def _run_command() -> int:
    try:
        try:
            code = cli(prog_name="deskhand", standalone_mode=False)
        finally:
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:  # Ctrl+C, or no more input, at a question
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _open_missing_streams() -> None:
    """Where we were started without a standard stream, nothing else may get its number: a database
    least of all."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            stream = os.fdopen(number, "w" if number else "r", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def _discard_output() -> None:
    """Let what was not written be forgotten, so that nobody complains of it at the very end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
