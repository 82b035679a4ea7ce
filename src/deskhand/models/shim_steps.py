"""What a small model does next, decided here from what has happened in the turn, and never left to
it. Pure.

A request becomes a word, then a program, which is rehearsed on a copy of the folder. Programs are
compared by what they come to: two that agree are believed, and one that is plain. What is said at
the end is what happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from ..types.programs import REHEARSE, RUN, SURVEY, ProgramCall, Purpose, Rehearsed, read_rehearsed
from .shim_correcting import corrected
from .shim_library import follows
from .shim_mending import mended, swapping
from .shim_outcomes import agreed_on, has_columns, problem, stopped_rightly, unmeant
from .shim_programs import ProgramTry, goes_by_example, is_plain, without_sample
from .shim_prompts import ABOUT, BEYOND, Word
from .shim_reading import speaks_of
from .shim_request import (
    ASSIST,
    NAMED,
    ORDER,
    OWN,
    QUESTION,
    TABLES,
    URL,
    changes_wanted,
    goes_on,
    is_beyond,
    obvious,
    program_said,
    takes_back,
)
from .shim_texts import is_anew, is_rewrite, new_text
from .shim_turn import Did, Move, ShimTurn
from .shim_words import UNSURE, failure_words, halted_words, refusal_words, told

TRIES = 3
STOPS = 2
"""So many programs that stop themselves for the same reason are believed."""


NO_FILES = "Files here: none"
FETCH = "web_fetch"
UNDO = "undo_change"


class SayStep(msgspec.Struct, frozen=True):
    """Words of ours, in place of the model's: it would say that all went well. `failed`: it did
    not."""

    text: str
    failed: bool = True


class Sort(msgspec.Struct, frozen=True):
    """The model sorts the request by one word."""


class Do(msgspec.Struct, frozen=True):
    """These calls, without asking the model."""

    moves: tuple[Move, ...]


class Write(msgspec.Struct, frozen=True):
    """The model writes a program, for the `number`-th time, or a text, new or anew. `note` says
    what was wrong with an earlier one."""

    kind: Literal["files", "assistant", "rewrite", "new text"]
    listing: str = ""
    number: int = 0
    note: str = ""


class AnswerStep(msgspec.Struct, frozen=True):
    """The model answers in words, from `texts` where there are any. It has no tools then."""

    texts: str = ""


Step = SayStep | Sort | Do | Write | AnswerStep


def first_step(word: Word, turn: ShimTurn) -> Step:
    """How a request that was sorted begins."""
    if program := corrected(turn):
        return Do((rehearse(program),))
    if word in ("change", "compute") and goes_on(turn):
        word = "assist"
    if word == "read" and TABLES.search(turn.request) and not URL.search(turn.request):
        word = "compute"
    match word:
        case "self":
            return SayStep(ABOUT, failed=False)
        case "talk" if is_beyond(turn.request):
            return SayStep(BEYOND)
        case "talk" if QUESTION.search(turn.request) and OWN.search(turn.request):
            return Do(
                (Move(SURVEY, {"about": turn.request, "purpose": "read"}),)
            )  # it may stand in a file
        case "talk":
            return AnswerStep()
        case "assist" if NAMED.search(turn.request) and not obvious(turn.request):
            return first_step("change", turn)
        case "assist":
            if takes_back(turn.request):
                return Do((Move(UNDO, {}),))
            program = program_said(turn.request, cancels=goes_on(turn))
            return Do((rehearse(program),)) if program else Write("assistant")
        case "read" if found := URL.search(turn.request):
            return Do((Move(FETCH, {"url": found[0].rstrip(".,;:!?)")}),))
        case _:
            files = NAMED.findall(turn.request)
            anew = is_anew(turn.request) and 1 in (
                len(files),
                sum(each.endswith(".py") for each in files),
            )
            return Do((Move(SURVEY, {"about": turn.request, "purpose": "read" if anew else word}),))


def next_step(turn: ShimTurn) -> Step:
    """What comes next."""
    surveys = [at for at, step in enumerate(turn.did) if step.move.tool == SURVEY]
    if surveys and surveys[-1]:
        turn = msgspec.structs.replace(turn, did=turn.did[surveys[-1] :])
    did = turn.did
    if not did:
        return Sort()
    tries = tries_of(did, turn.request)
    if halted := next((step for step in did if step.status not in ("ok", "error")), None):
        return SayStep(halted_words(halted, _done_before(tries)))
    if not tries:
        return _after_first(turn, did[0])
    last = tries[-1]
    assist = not any(step.move.tool == SURVEY for step in did)
    if last.rehearsed.needs is not None and last.since:
        if last.since[-1].failed:
            return SayStep(f"I could not do this: {last.since[-1].first_line}")
        return Do((rehearse(last.program, (*last.answers, last.since[-1].result)),))
    if last.since:
        return SayStep(*told(_chosen(tries), last.since))
    if last.rehearsed.needs is not None:
        return Do((_call(last.rehearsed.needs),))
    if assist and _found_nothing(did) and not obvious(turn.request):
        return Do(
            (Move(SURVEY, {"about": turn.request, "purpose": "read"}),)
        )  # it may stand in a file
    return _decide(turn, tries, assist=assist)


def _done_before(tries: Sequence[ProgramTry]) -> str:
    """What had been done when something was not allowed."""
    since = [step for step in (tries[-1].since if tries else ()) if not step.failed]
    return (
        told(_chosen(tries), since)[0]
        if since and any(step.move.tool == RUN for step in since)
        else ""
    )


def _found_nothing(did: Sequence[Did]) -> bool:
    return any(
        step.move.tool == "search_memories" and step.result.startswith("nothing is known")
        for step in did
    )


def _after_first(turn: ShimTurn, step: Did) -> Step:
    tool = step.move.tool
    failed = step.failed
    if tool == SURVEY and not failed:
        if turn.known and step.result == NO_FILES and QUESTION.search(turn.request):
            return AnswerStep()  # it was said before
        if not step.result.startswith("---"):
            return Write(
                "new text" if new_text(turn.request, step.result) else "files", step.result
            )
        if is_rewrite(turn, step.result):
            return Write("rewrite", step.result)
        if any(name not in step.result.lower() for name in NAMED.findall(turn.request.lower())):
            return Do((by_program(turn),))  # it is to be made
        return AnswerStep(
            step.result
            if speaks_of(step.result, turn.request) or not OWN.search(turn.request)
            else ""
        )
    if tool == FETCH and not failed:
        return AnswerStep(f"--- {step.move.arguments.get('url', '')}\n{step.result}\n--- end")
    if failed:
        return SayStep(f"I could not do this: {step.first_line}")
    return SayStep(step.result, failed=False)


def tries_of(did: Sequence[Did], request: str) -> list[ProgramTry]:
    """The programs that were rehearsed; one that was rehearsed again with an answer, or mended,
    counts once."""
    tries = list[ProgramTry]()
    for at, step in enumerate(did):
        if step.move.tool != REHEARSE:
            continue
        program = str(step.move.arguments.get("program", ""))
        answers = step.move.arguments.get("answers", [])
        came = Rehearsed(failed=step.first_line) if step.failed else read_rehearsed(step.result)
        end = next((i for i in range(at + 1, len(did)) if did[i].move.tool == REHEARSE), len(did))
        new = ProgramTry(
            program,
            tuple(map(str, answers)),
            came or Rehearsed(failed=step.first_line),
            tuple(did[at + 1 : end]),
        )
        if tries and (
            mended(tries[-1], request) == program or (answers and tries[-1].program == program)
        ):
            tries.pop()
        tries.append(new)
    return tries


def is_stuck(turn: ShimTurn) -> bool:
    """Whether the same program was written twice."""
    written = [each.program for each in tries_of(turn.did, turn.request)]
    return len(set(written)) < len(written)


def _decide(turn: ShimTurn, tries: Sequence[ProgramTry], *, assist: bool) -> Step:
    """After a rehearsal: do what was found, try once more, or say why not."""
    better = mended(tries[-1], turn.request)
    if better:
        same = [each for each in tries if each.program == better]
        if not same:
            return Do((rehearse(better),))
        tries = [*tries[:-1], same[0]]  # it was written a second time
    wants = changes_wanted(turn)
    notes = [problem(each, turn, wants=wants, assist=assist) for each in tries]
    fine = [each for each, note in zip(tries, notes, strict=True) if not note]
    lossy = [each for each in fine if unmeant(each.rehearsed, turn.request)]
    good = [each for each in fine if each not in lossy] or ([] if len(tries) < TRIES else lossy)
    stops = [
        each.rehearsed.stopped
        for each, note in zip(tries, notes, strict=True)
        if stopped_rightly(each, note)
    ]
    agreed = agreed_on(good, wants=wants, ordered=bool(ORDER.search(turn.request)))
    listing = turn.did[0].result if turn.did[0].move.tool == SURVEY else ""
    sure = [
        each
        for each in good
        if is_plain(each, turn)
        or follows(each.program, turn.request, listing)
        or has_columns(each, turn.request)
    ]
    if good and (assist or is_rewrite(turn, listing)):
        sure = good
    alone = len(good) == 1 and good[0] is tries[0] and len(tries) > 1 and not stops
    alone = alone and not goes_by_example(turn.request)
    if good and (agreed or sure or alone) and len(stops) < STOPS:
        return finish(agreed or [*sure, *good][0], turn, wants=wants or assist)
    if lossy and not good and len(lossy) > 1 and not stops:
        return finish(lossy[0], turn, wants=wants)  # a person is asked about it
    if assist and stops and not ASSIST.match(" ".join(turn.request.lower().split())):
        return Do((by_program(turn),))  # it was sorted wrongly
    if len(stops) >= STOPS or (len(tries) >= TRIES and stops):
        return SayStep(refusal_words(stops))
    if (
        len(tries) >= TRIES
        and good
        and not any(each.rehearsed.changes or each.rehearsed.calls for each in good)
    ):
        return SayStep(f"{without_sample(good[0], turn)}\n{UNSURE}", failed=False)
    if len(tries) >= TRIES:
        return SayStep(failure_words(tries, good))
    if is_rewrite(turn, listing):
        return _anew(turn, listing, tries)
    if lossy and not good:
        lost = unmeant(lossy[-1].rehearsed, turn.request)
        notes[-1] = (
            f"it {lost}; keep what is there and only add to it, unless the request says otherwise"
        )
    # Who is told that something is not there makes it up: only what went wrong is told, to others
    # after it as well.
    before = tries.index(good[0]) if good else len(tries)
    was_wrong = before > 0 and not stopped_rightly(tries[before - 1], notes[before - 1])
    why = (
        f"\n(An earlier program was wrong: {notes[before - 1]}. Write a simple one that avoids "
        "this.)"
    )
    return Write("assistant" if assist else "files", listing, len(tries), why if was_wrong else "")


def _anew(turn: ShimTurn, listing: str, tries: Sequence[ProgramTry]) -> Step:
    """Once more, where a text that was written anew is not right: by code where the request says
    which words become which, by a program where the text came out as it was."""
    swap = swapping(turn.request, listing)
    if swap and all(each.program != swap for each in tries):
        return Do((rehearse(swap),))
    if not tries[-1].rehearsed.changes:
        return Do((by_program(turn),))
    return Write("rewrite", listing, len(tries))


def by_program(turn: ShimTurn, purpose: Purpose = "change") -> Move:
    """The survey for a program, where the text itself was shown before."""
    return Move(SURVEY, {"about": turn.request, "purpose": purpose})


def finish(tried: ProgramTry, turn: ShimTurn, *, wants: bool) -> Step:
    """Do what a program came to, or say it where it changes nothing."""
    came = tried.rehearsed
    moves = list[Move]()
    if came.changes and wants:
        given: dict[str, Any] = {
            "program": tried.program,
            "changes": msgspec.to_builtins(came.changes),
        }
        moves.append(Move(RUN, given | ({"answers": list(tried.answers)} if tried.answers else {})))
    moves += [_call(each) for each in came.calls]
    return Do(tuple(moves)) if moves else SayStep(without_sample(tried, turn), failed=False)


def _chosen(tries: Sequence[ProgramTry]) -> ProgramTry:
    """The program that was done in the end."""
    calls = [step.move for step in tries[-1].since]
    ran = [
        each
        for each in tries
        for move in calls
        if move.tool == RUN and move.arguments.get("program") == each.program
    ]
    asked = [
        each
        for each in tries
        if each.rehearsed.calls and [_call(c) for c in each.rehearsed.calls] == calls
    ]
    return (ran or asked or tries)[-1]


def rehearse(program: str, answers: Sequence[str] = ()) -> Move:
    """The call that tries a program, with the results of the calls that it needed."""
    return Move(REHEARSE, {"program": program} | ({"answers": list(answers)} if answers else {}))


def _call(call: ProgramCall) -> Move:
    return Move(call.tool, dict(call.arguments))


def reads_files(turn: ShimTurn) -> bool:
    """Whether the texts in a turn are those of files, on which a program can work."""
    return bool(turn.did) and turn.did[-1].move.tool == SURVEY
