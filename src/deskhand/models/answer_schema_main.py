"""Checks one answer: `python -m deskhand.models.answer_schema_main` reads a `Checked` on stdin. Run
by `answer_schema.py`, in a process of its own; needs the extra [schema]."""

from __future__ import annotations

import resource
import sys

import jsonschema_rs
import msgspec

from .answer_schema import CHECK_S, MISMATCH_EXIT_CODE, Checked

MEMORY_BYTES = 1 << 30
MAX_PROBLEMS = 5
PROBLEM_CHARS = 300


def find_problem(checked: Checked) -> str:
    """Why the schema is none, or why the answer does not fit it; '' where all is right. Nothing is
    fetched, and patterns take time that grows no faster than the text."""
    try:
        patterns = jsonschema_rs.RegexOptions()
        validator = jsonschema_rs.validator_for(
            checked.schema, offline=True, pattern_options=patterns
        )
    except ValueError as error:
        return f"the schema is not valid: {str(error).splitlines()[0][:PROBLEM_CHARS]}"
    if checked.answer is None:
        return ""
    problems = []
    for found in validator.iter_errors(msgspec.json.decode(checked.answer)):
        place = "".join(f"[{step!r}]" for step in found.instance_path)
        problems.append(f"{place or 'the answer'}: {found.message[:PROBLEM_CHARS]}")
        if len(problems) == MAX_PROBLEMS:
            break
    return "; ".join(problems)


def main() -> int:
    """Check what stands on stdin, within limits of memory and time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(CHECK_S), int(CHECK_S)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    problem = find_problem(msgspec.json.decode(sys.stdin.buffer.read(), type=Checked))
    sys.stdout.write(problem)
    return MISMATCH_EXIT_CODE if problem else 0


if __name__ == "__main__":
    sys.exit(main())
