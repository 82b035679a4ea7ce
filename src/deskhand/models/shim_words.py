"""What is said at the end of a turn: what has happened, and not what a program says of itself.
Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..types.programs import RUN_PROGRAM, FileChange, Rehearsed
from .shim_programs import ProgramTry, has_computed_output
from .shim_request import FILE_NAME
from .shim_turn import Did


def render_halt(step: Did, done: str) -> str:
    """What is said where a step was not allowed, or was cut off. `done` is what had been done
    before it."""
    if step.status not in ("denied", "expired", "unasked"):
        return f"I was interrupted: {step.first_line}"
    return (
        f"{done}\nI did not do the rest: {step.first_line}"
        if done
        else f"I did not do that: {step.first_line} {NOTHING_CHANGED}"
    )


NO_PROGRAM_WORKED = "none of the programs that I wrote for it worked"
NOTHING_CHANGED = "Nothing was changed."
UNSURE = "(I am not sure of this: another program that I wrote for it came to a different result.)"
TRY_SIMPLER = "Say it in other words or in smaller steps, or choose a bigger model."


def render_refusal(stops: Sequence[str]) -> str:
    """What is said where programs stopped themselves, each with its sentence."""
    said = max(stops, key=stops.count).rstrip(".")
    return f"I could not do this: {said}. {NOTHING_CHANGED}"


def render_failure(tries: Sequence[ProgramTry], good: Sequence[ProgramTry]) -> str:
    """What is said where no program could be believed."""
    empty = [found[1] for each in tries if (found := _EMPTY.search(each.rehearsed.failed))]
    if len(good) > 1:
        why = "the programs that I wrote for it came to different results"
    elif len(empty) > 1:
        return f"I could not do this: I found nothing for {empty[0]}. {NOTHING_CHANGED}"
    else:
        why = NO_PROGRAM_WORKED
    return f"I could not do this: {why}. {NOTHING_CHANGED} {TRY_SIMPLER}"


_EMPTY = re.compile(r"nothing was found for (.{1,300}?)(?= in the line: |$)")


def render_outcome(tried: ProgramTry, since: Sequence[Did]) -> tuple[str, bool]:
    """What is said when all is done, and whether something failed: by what happened, not by what
    the program says."""
    came = tried.rehearsed
    said = list[str]()
    for step in since:
        if step.failed:
            did = " ".join(said)
            return (
                f"{did}\nI could not do {'the rest' if did else 'this'}: {step.first_line}".strip(),
                True,
            )
        if step.move.tool == RUN_PROGRAM:
            said.append(render_done(tried))
            continue
        words = next(
            (call.words for call in came.calls if call.tool == step.move.tool and call.words), ""
        )
        same = [
            c.words
            for c in came.calls
            if c.tool == step.move.tool and c.arguments == step.move.arguments
        ]
        said.append((same[0] if same else words) or step.result)
        if step.move.tool == "save_memory" and not step.result.startswith("ok"):
            said[-1] = f"About that: {step.result}"
    return "\n".join(said), False


def render_done(tried: ProgramTry) -> str:
    """What was done: the program's own words where they say something that it has worked out and
    name no file that is not there, and what became of each file."""
    came = tried.rehearsed
    facts = "; ".join(map(_render_change, came.changes[:8]))
    more = len(came.changes) - 8
    facts += f"; and {more} more" if more > 0 else ""
    facts = facts[:1].upper() + facts[1:] + "."
    own = came.said if has_computed_output(tried.program) and not _has_strange_files(came) else ""
    return f"{own}\n({facts})" if own else facts


def _render_change(change: FileChange) -> str:
    added = sum(
        line.startswith("+") and not line.startswith("+++") for line in change.diff.splitlines()
    )
    removed = sum(
        line.startswith("-") and not line.startswith("---") for line in change.diff.splitlines()
    )
    match change.kind:
        case "new":
            return f"made {change.path}" + (
                f" with {added} line{'' if added == 1 else 's'}" if added else ""
            )
        case "folder":
            return f"made the folder {change.path}"
        case "deleted":
            return f"deleted {change.path}"
        case "moved":
            return f"moved {change.path} to {change.to}"
        case _:
            parts = [f"{added} added"] * bool(added) + [f"{removed} removed"] * bool(removed)
            lines = "line" if added + removed == 1 else "lines"
            return f"changed {change.path}" + (f" ({lines}: {', '.join(parts)})" if parts else "")


def _has_strange_files(came: Rehearsed) -> bool:
    """Whether the words name a file that was neither read nor changed."""
    known = {each for change in came.changes for each in (change.path, change.to)} | set(came.read)
    names = {path.rpartition("/")[2].lower() for path in known if path}
    return any(name.lower() not in names for name in FILE_NAME.findall(came.said))


CLAIMED_DEED = re.compile(
    r"\bI(?:'ve| have| just| will| am going to|'ll)? (?:now |already |successfully )?"
    r"(?:booked?|bought|buy|sent|send|ordered?|set|add(?:ed)?|creat(?:ed|e)|delet(?:ed|e)|remov(?:ed|e)|sav(?:ed|e)"
    r"|updat(?:ed|e)|chang(?:ed|e)|renamed|moved|wrote|written|kept|sorted|replaced|converted|fixed|merged|put"
    r"|scheduled?|remind(?:ed)?|cancell?ed|made a (?:reservation|booking)|call(?:ed)?)\b",
    re.IGNORECASE,
)


def replace_false_claim(said: str, *, asked: str) -> str:
    """An answer in words, in place of one that claims a deed: nothing was done for it."""
    if not said.strip():
        return "I have no answer to that."
    if CLAIMED_DEED.search(said) and not asked.rstrip().endswith("?"):
        return f"I cannot do that from here, and nothing was done. {TRY_SIMPLER}"
    return said
