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

from ..types.programs import (
    REHEARSE_PROGRAM,
    RUN_PROGRAM,
    SURVEY_FILES,
    ProgramCall,
    Purpose,
    Rehearsed,
    parse_rehearsal,
)
from .shim_correcting import make_correction_program
from .shim_library import has_example_shape
from .shim_mending import make_swap_program, mend_program
from .shim_outcomes import (
    find_agreed_program,
    find_program_problem,
    find_unmeant_loss,
    has_columns,
    has_only_stopped,
)
from .shim_programs import ProgramTry, is_by_example, is_plain, strip_sample_values
from .shim_prompts import ABOUT_REPLY, BEYOND_REPLY, RequestKind
from .shim_reading import is_relevant
from .shim_request import (
    ASSIST_PATTERN,
    FILE_NAME,
    FIRST_PERSON,
    ORDERING,
    QUESTION,
    TABLE_NAME,
    URL,
    classify_obvious,
    is_purchase,
    is_reminder_followup,
    is_undo,
    make_reminder_program,
    may_change_files,
)
from .shim_texts import find_new_text_path, is_rewording, is_rewrite
from .shim_turn import Did, Move, ShimTurn
from .shim_words import UNSURE, render_failure, render_halt, render_outcome, render_refusal

MAX_TRIES = 3
MIN_STOPS = 2
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


ShimStep = SayStep | Sort | Do | Write | AnswerStep


def first_step(word: RequestKind, turn: ShimTurn) -> ShimStep:
    """How a request that was sorted begins."""
    if program := make_correction_program(turn):
        return Do((make_rehearsal(program),))
    if word in ("change", "compute") and is_reminder_followup(turn):
        word = "assist"
    if word == "read" and TABLE_NAME.search(turn.request) and not URL.search(turn.request):
        word = "compute"
    match word:
        case "self":
            return SayStep(ABOUT_REPLY, failed=False)
        case "talk" if is_purchase(turn.request):
            return SayStep(BEYOND_REPLY)
        case "talk" if QUESTION.search(turn.request) and FIRST_PERSON.search(turn.request):
            return Do(
                (Move(SURVEY_FILES, {"about": turn.request, "purpose": "read"}),)
            )  # it may stand in a file
        case "talk":
            return AnswerStep()
        case "assist" if FILE_NAME.search(turn.request) and not classify_obvious(turn.request):
            return first_step("change", turn)
        case "assist":
            if is_undo(turn.request):
                return Do((Move(UNDO, {}),))
            program = make_reminder_program(turn.request, cancels=is_reminder_followup(turn))
            return Do((make_rehearsal(program),)) if program else Write("assistant")
        case "read" if found := URL.search(turn.request):
            return Do((Move(FETCH, {"url": found[0].rstrip(".,;:!?)")}),))
        case _:
            files = FILE_NAME.findall(turn.request)
            anew = is_rewording(turn.request) and 1 in (
                len(files),
                sum(each.endswith(".py") for each in files),
            )
            return Do(
                (Move(SURVEY_FILES, {"about": turn.request, "purpose": "read" if anew else word}),)
            )


def next_step(turn: ShimTurn) -> ShimStep:
    """What comes next."""
    surveys = [at for at, step in enumerate(turn.did) if step.move.tool == SURVEY_FILES]
    if surveys and surveys[-1]:
        turn = msgspec.structs.replace(turn, did=turn.did[surveys[-1] :])
    did = turn.did
    if not did:
        return Sort()
    tries = list_tries(did, turn.request)
    if halted := next((step for step in did if step.status not in ("ok", "error")), None):
        return SayStep(render_halt(halted, _render_done_before(tries)))
    if not tries:
        return _step_after_first(turn, did[0])
    last = tries[-1]
    assist = not any(step.move.tool == SURVEY_FILES for step in did)
    if last.rehearsed.needs is not None and last.since:
        if last.since[-1].failed:
            return SayStep(f"I could not do this: {last.since[-1].first_line}")
        return Do((make_rehearsal(last.program, (*last.answers, last.since[-1].result)),))
    if last.since:
        return SayStep(*render_outcome(_find_chosen(tries), last.since))
    if last.rehearsed.needs is not None:
        return Do((_make_move(last.rehearsed.needs),))
    if assist and _has_found_nothing(did) and not classify_obvious(turn.request):
        return Do(
            (Move(SURVEY_FILES, {"about": turn.request, "purpose": "read"}),)
        )  # it may stand in a file
    return _decide(turn, tries, assist=assist)


def _render_done_before(tries: Sequence[ProgramTry]) -> str:
    """What had been done when something was not allowed."""
    since = [step for step in (tries[-1].since if tries else ()) if not step.failed]
    return (
        render_outcome(_find_chosen(tries), since)[0]
        if since and any(step.move.tool == RUN_PROGRAM for step in since)
        else ""
    )


def _has_found_nothing(did: Sequence[Did]) -> bool:
    return any(
        step.move.tool == "search_memories" and step.result.startswith("nothing is known")
        for step in did
    )


def _step_after_first(turn: ShimTurn, step: Did) -> ShimStep:
    tool = step.move.tool
    failed = step.failed
    if tool == SURVEY_FILES and not failed:
        if turn.known and step.result == NO_FILES and QUESTION.search(turn.request):
            return AnswerStep()  # it was said before
        if not step.result.startswith("---"):
            return Write(
                "new text" if find_new_text_path(turn.request, step.result) else "files",
                step.result,
            )
        if is_rewrite(turn, step.result):
            return Write("rewrite", step.result)
        if any(name not in step.result.lower() for name in FILE_NAME.findall(turn.request.lower())):
            return Do((make_survey(turn),))  # it is to be made
        return AnswerStep(
            step.result
            if is_relevant(step.result, turn.request) or not FIRST_PERSON.search(turn.request)
            else ""
        )
    if tool == FETCH and not failed:
        return AnswerStep(f"--- {step.move.arguments.get('url', '')}\n{step.result}\n--- end")
    if failed:
        return SayStep(f"I could not do this: {step.first_line}")
    return SayStep(step.result, failed=False)


def list_tries(did: Sequence[Did], request: str) -> list[ProgramTry]:
    """The programs that were rehearsed; one that was rehearsed again with an answer, or mended,
    counts once."""
    tries = list[ProgramTry]()
    for at, step in enumerate(did):
        if step.move.tool != REHEARSE_PROGRAM:
            continue
        program = str(step.move.arguments.get("program", ""))
        answers = step.move.arguments.get("answers", [])
        came = Rehearsed(failed=step.first_line) if step.failed else parse_rehearsal(step.result)
        end = next(
            (i for i in range(at + 1, len(did)) if did[i].move.tool == REHEARSE_PROGRAM), len(did)
        )
        new = ProgramTry(
            program,
            tuple(map(str, answers)),
            came or Rehearsed(failed=step.first_line),
            tuple(did[at + 1 : end]),
        )
        if tries and (
            mend_program(tries[-1], request) == program
            or (answers and tries[-1].program == program)
        ):
            tries.pop()
        tries.append(new)
    return tries


def is_stuck(turn: ShimTurn) -> bool:
    """Whether the same program was written twice."""
    written = [each.program for each in list_tries(turn.did, turn.request)]
    return len(set(written)) < len(written)


def _decide(turn: ShimTurn, tries: Sequence[ProgramTry], *, assist: bool) -> ShimStep:
    """After a rehearsal: do what was found, try once more, or say why not."""
    better = mend_program(tries[-1], turn.request)
    if better:
        same = [each for each in tries if each.program == better]
        if not same:
            return Do((make_rehearsal(better),))
        tries = [*tries[:-1], same[0]]  # it was written a second time
    wants = may_change_files(turn)
    notes = [find_program_problem(each, turn, wants=wants, assist=assist) for each in tries]
    fine = [each for each, note in zip(tries, notes, strict=True) if not note]
    lossy = [each for each in fine if find_unmeant_loss(each.rehearsed, turn.request)]
    good = [each for each in fine if each not in lossy] or ([] if len(tries) < MAX_TRIES else lossy)
    stops = [
        each.rehearsed.stopped
        for each, note in zip(tries, notes, strict=True)
        if has_only_stopped(each, note)
    ]
    agreed = find_agreed_program(good, wants=wants, ordered=bool(ORDERING.search(turn.request)))
    listing = turn.did[0].result if turn.did[0].move.tool == SURVEY_FILES else ""
    sure = [
        each
        for each in good
        if is_plain(each, turn)
        or has_example_shape(each.program, turn.request, listing)
        or has_columns(each, turn.request)
    ]
    if good and (assist or is_rewrite(turn, listing)):
        sure = good
    alone = len(good) == 1 and good[0] is tries[0] and len(tries) > 1 and not stops
    alone = alone and not is_by_example(turn.request)
    if good and (agreed or sure or alone) and len(stops) < MIN_STOPS:
        return make_final_step(agreed or [*sure, *good][0], turn, wants=wants or assist)
    if lossy and not good and len(lossy) > 1 and not stops:
        return make_final_step(lossy[0], turn, wants=wants)  # a person is asked about it
    if assist and stops and not ASSIST_PATTERN.match(" ".join(turn.request.lower().split())):
        return Do((make_survey(turn),))  # it was sorted wrongly
    if len(stops) >= MIN_STOPS or (len(tries) >= MAX_TRIES and stops):
        return SayStep(render_refusal(stops))
    if (
        len(tries) >= MAX_TRIES
        and good
        and not any(each.rehearsed.changes or each.rehearsed.calls for each in good)
    ):
        return SayStep(f"{strip_sample_values(good[0], turn)}\n{UNSURE}", failed=False)
    if len(tries) >= MAX_TRIES:
        return SayStep(render_failure(tries, good))
    if is_rewrite(turn, listing):
        return _retry_rewrite(turn, listing, tries)
    if lossy and not good:
        lost = find_unmeant_loss(lossy[-1].rehearsed, turn.request)
        notes[-1] = (
            f"it {lost}; keep what is there and only add to it, unless the request says otherwise"
        )
    # Who is told that something is not there makes it up: only what went wrong is told, to others
    # after it as well.
    before = tries.index(good[0]) if good else len(tries)
    was_wrong = before > 0 and not has_only_stopped(tries[before - 1], notes[before - 1])
    why = (
        f"\n(An earlier program was wrong: {notes[before - 1]}. Write a simple one that avoids "
        "this.)"
    )
    return Write("assistant" if assist else "files", listing, len(tries), why if was_wrong else "")


def _retry_rewrite(turn: ShimTurn, listing: str, tries: Sequence[ProgramTry]) -> ShimStep:
    """Once more, where a text that was written anew is not right: by code where the request says
    which words become which, by a program where the text came out as it was."""
    swap = make_swap_program(turn.request, listing)
    if swap and all(each.program != swap for each in tries):
        return Do((make_rehearsal(swap),))
    if not tries[-1].rehearsed.changes:
        return Do((make_survey(turn),))
    return Write("rewrite", listing, len(tries))


def make_survey(turn: ShimTurn, purpose: Purpose = "change") -> Move:
    """The survey for a program, where the text itself was shown before."""
    return Move(SURVEY_FILES, {"about": turn.request, "purpose": purpose})


def make_final_step(tried: ProgramTry, turn: ShimTurn, *, wants: bool) -> ShimStep:
    """Do what a program came to, or say it where it changes nothing."""
    came = tried.rehearsed
    moves = list[Move]()
    if came.changes and wants:
        given: dict[str, Any] = {
            "program": tried.program,
            "changes": msgspec.to_builtins(came.changes),
        }
        moves.append(
            Move(RUN_PROGRAM, given | ({"answers": list(tried.answers)} if tried.answers else {}))
        )
    moves += [_make_move(each) for each in came.calls]
    return Do(tuple(moves)) if moves else SayStep(strip_sample_values(tried, turn), failed=False)


def _find_chosen(tries: Sequence[ProgramTry]) -> ProgramTry:
    """The program that was done in the end."""
    calls = [step.move for step in tries[-1].since]
    ran = [
        each
        for each in tries
        for move in calls
        if move.tool == RUN_PROGRAM and move.arguments.get("program") == each.program
    ]
    asked = [
        each
        for each in tries
        if each.rehearsed.calls and [_make_move(c) for c in each.rehearsed.calls] == calls
    ]
    return (ran or asked or tries)[-1]


def make_rehearsal(program: str, answers: Sequence[str] = ()) -> Move:
    """The call that tries a program, with the results of the calls that it needed."""
    return Move(
        REHEARSE_PROGRAM, {"program": program} | ({"answers": list(answers)} if answers else {})
    )


def _make_move(call: ProgramCall) -> Move:
    return Move(call.tool, dict(call.arguments))


def has_file_texts(turn: ShimTurn) -> bool:
    """Whether the texts in a turn are those of files, on which a program can work."""
    return bool(turn.did) and turn.did[-1].move.tool == SURVEY_FILES
