"""What is said at the end of a turn: what has happened, and not what a program says of itself.
Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..types.programs import RUN_PROGRAM, FileChange, Rehearsed
from .shim_programs import ProgramTry, has_computed_output
from .shim_request import FILE_NAME
from .shim_turn import Did, Move


def render_halt(step: Did, done: str) -> str:
    """What is said where a step was not allowed, or was cut off. `done` is what had been done
    before it."""
    if step.status not in ("denied", "expired", "unasked"):
        return f"I was interrupted: {step.first_line}"
    if done:
        return f"{done}\nI did not do the rest: {step.first_line}"
    return f"I did not do that: {step.first_line} {NOTHING_CHANGED}"


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
    if len(good) > 1:
        why = "the programs that I wrote for it came to different results"
        return f"I could not do this: {why}. {NOTHING_CHANGED} {TRY_SIMPLER}"
    empty = [found[1] for each in tries if (found := _EMPTY.search(each.rehearsed.failed))]
    if len(empty) > 1:
        return f"I could not do this: I found nothing for {empty[0]}. {NOTHING_CHANGED}"
    return f"I could not do this: {NO_PROGRAM_WORKED}. {NOTHING_CHANGED} {TRY_SIMPLER}"


_EMPTY = re.compile(r"nothing was found for (.{1,300}?)(?= in the line: |$)")


def render_outcome(tried: ProgramTry, since: Sequence[Did]) -> tuple[str, bool]:
    """What is said when all is done, and whether something failed: by what happened, not by what
    the program says."""
    said = list[str]()
    for step in since:
        if step.failed:
            done = " ".join(said)
            rest = "the rest" if done else "this"
            return f"{done}\nI could not do {rest}: {step.first_line}".strip(), True

        if step.move.tool == RUN_PROGRAM:
            said.append(render_done(tried))
        elif step.move.tool == "save_memory" and not step.result.startswith("ok"):
            said.append(f"About that: {step.result}")
        else:
            said.append(_find_call_words(tried.rehearsed, step.move) or step.result)
    return "\n".join(said), False


def _find_call_words(came: Rehearsed, move: Move) -> str:
    """What the program says that this call comes to; else the words of its first call of the
    tool."""
    calls = [call for call in came.calls if call.tool == move.tool]
    same = [call.words for call in calls if call.arguments == move.arguments]
    words = [call.words for call in calls if call.words]
    return (same or words or [""])[0]


def render_done(tried: ProgramTry) -> str:
    """What was done: the program's own words where they say something that it has worked out and
    name no file that is not there, and what became of each file."""
    came = tried.rehearsed
    facts = [_render_change(change) for change in came.changes[:MAX_CHANGES]]
    if len(came.changes) > MAX_CHANGES:
        facts.append(f"and {len(came.changes) - MAX_CHANGES} more")
    text = "; ".join(facts)
    text = f"{text[:1].upper()}{text[1:]}."

    if came.said and has_computed_output(tried.program) and not _has_strange_files(came):
        return f"{came.said}\n({text})"
    return text


MAX_CHANGES = 8
"""So many changes are told one by one."""


def _render_change(change: FileChange) -> str:
    lines = change.diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    match change.kind:
        case "new":
            count = f" with {added} line{'' if added == 1 else 's'}" if added else ""
            return f"made {change.path}{count}"
        case "folder":
            return f"made the folder {change.path}"
        case "deleted":
            return f"deleted {change.path}"
        case "moved":
            return f"moved {change.path} to {change.to}"
        case _:
            parts = list[str]()
            if added:
                parts.append(f"{added} added")
            if removed:
                parts.append(f"{removed} removed")
            if not parts:
                return f"changed {change.path}"
            lines_word = "line" if added + removed == 1 else "lines"
            return f"changed {change.path} ({lines_word}: {', '.join(parts)})"


def _has_strange_files(came: Rehearsed) -> bool:
    """Whether the words name a file that was neither read nor changed."""
    known = {each for change in came.changes for each in (change.path, change.to)} | set(came.read)
    names = {path.rpartition("/")[2].lower() for path in known if path}
    return any(name.lower() not in names for name in FILE_NAME.findall(came.said))


CLAIMED_DEED = re.compile(
    r"\bI(?:'ve| have| just| will| am going to|'ll)? "
    r"(?:now |already |successfully )?"
    r"(?:booked?|bought|buy|sent|send|ordered?|set|add(?:ed)?"
    r"|creat(?:ed|e)|delet(?:ed|e)|remov(?:ed|e)|sav(?:ed|e)|updat(?:ed|e)|chang(?:ed|e)"
    r"|renamed|moved|wrote|written|kept|sorted|replaced|converted|fixed|merged|put"
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
