"""What a small model does next, decided here from what has happened in the turn, and never left to
it. Pure.

A request becomes a word, then a program, which is rehearsed on a copy of the folder. Programs are
compared by what they come to: two that agree are believed, and one that is plain. What is said at
the end is what happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
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
    match _correct_word(word, turn):
        case "self":
            return SayStep(ABOUT_REPLY, failed=False)
        case "talk":
            return _step_to_talk(turn)
        case "assist":
            return _step_to_assist(turn)
        case "read" if found := URL.search(turn.request):
            return Do((Move(FETCH, {"url": found[0].rstrip(".,;:!?)")}),))
        case "change" | "compute" | "read" as purpose:
            return Do((make_survey(turn, "read" if _is_about_wording(turn) else purpose),))


def _correct_word(word: RequestKind, turn: ShimTurn) -> RequestKind:
    """The word for a request, where the model's is plainly wrong."""
    if word in ("change", "compute") and is_reminder_followup(turn):
        return "assist"
    if word == "read" and TABLE_NAME.search(turn.request) and not URL.search(turn.request):
        return "compute"
    if word == "assist" and FILE_NAME.search(turn.request) and not classify_obvious(turn.request):
        return "change"
    return word


def _step_to_talk(turn: ShimTurn) -> ShimStep:
    if is_purchase(turn.request):
        return SayStep(BEYOND_REPLY)
    if QUESTION.search(turn.request) and FIRST_PERSON.search(turn.request):
        return Do((make_survey(turn, "read"),))  # it may stand in a file
    return AnswerStep()


def _step_to_assist(turn: ShimTurn) -> ShimStep:
    if is_undo(turn.request):
        return Do((Move(UNDO, {}),))
    program = make_reminder_program(turn.request, cancels=is_reminder_followup(turn))
    return Do((make_rehearsal(program),)) if program else Write("assistant")


def _is_about_wording(turn: ShimTurn) -> bool:
    """Whether one text, or one script, is to be made better: it is read as a whole."""
    if not is_rewording(turn.request):
        return False
    files = FILE_NAME.findall(turn.request)
    scripts = [name for name in files if name.endswith(".py")]
    return len(files) == 1 or len(scripts) == 1


def next_step(turn: ShimTurn) -> ShimStep:
    """What comes next."""
    surveys = [at for at, step in enumerate(turn.did) if step.move.tool == SURVEY_FILES]
    if surveys and surveys[-1]:
        turn = msgspec.structs.replace(turn, did=turn.did[surveys[-1] :])
    did = turn.did
    if not did:
        return Sort()

    tries = list_tries(did, turn.request)
    halted = next((step for step in did if step.status not in ("ok", "error")), None)
    if halted is not None:
        return SayStep(render_halt(halted, _render_done_before(tries)))
    if not tries:
        return _step_after_first(turn, did[0])

    last = tries[-1]
    if last.since:
        return _step_after_calls(tries)
    if last.rehearsed.needs is not None:
        return Do((_make_move(last.rehearsed.needs),))

    assist = not surveys
    if assist and _has_found_nothing(did) and not classify_obvious(turn.request):
        return Do((make_survey(turn, "read"),))  # it may stand in a file
    return _decide(turn, tries, assist=assist)


def _step_after_calls(tries: Sequence[ProgramTry]) -> ShimStep:
    """After the calls of a program: rehearse it again with the answer that it needed, or say what
    was done."""
    last = tries[-1]
    if last.rehearsed.needs is None:
        words, failed = render_outcome(_find_chosen(tries), last.since)
        return SayStep(words, failed)

    answer = last.since[-1]
    if answer.failed:
        return SayStep(f"I could not do this: {answer.first_line}")
    return Do((make_rehearsal(last.program, (*last.answers, answer.result)),))


def _render_done_before(tries: Sequence[ProgramTry]) -> str:
    """What had been done when something was not allowed."""
    since = [step for step in (tries[-1].since if tries else ()) if not step.failed]
    if not any(step.move.tool == RUN_PROGRAM for step in since):
        return ""
    words, _ = render_outcome(_find_chosen(tries), since)
    return words


def _has_found_nothing(did: Sequence[Did]) -> bool:
    return any(
        step.move.tool == "search_memories" and step.result.startswith("nothing is known")
        for step in did
    )


def _step_after_first(turn: ShimTurn, step: Did) -> ShimStep:
    tool = step.move.tool
    if step.failed:
        return SayStep(f"I could not do this: {step.first_line}")
    if tool == SURVEY_FILES:
        return _step_after_survey(turn, step.result)
    if tool == FETCH:
        return AnswerStep(f"--- {step.move.arguments.get('url', '')}\n{step.result}\n--- end")
    return SayStep(step.result, failed=False)


def _step_after_survey(turn: ShimTurn, found: str) -> ShimStep:
    """After the files were listed, or texts of them were shown."""
    request = turn.request
    if turn.known and found == NO_FILES and QUESTION.search(request):
        return AnswerStep()  # it was said before
    if not found.startswith("---"):
        is_new_text = find_new_text_path(request, found) != ""
        return Write("new text" if is_new_text else "files", found)

    if is_rewrite(turn, found):
        return Write("rewrite", found)
    if any(name not in found.lower() for name in FILE_NAME.findall(request.lower())):
        return Do((make_survey(turn),))  # it is to be made
    is_about_texts = is_relevant(found, request) or not FIRST_PERSON.search(request)
    return AnswerStep(found if is_about_texts else "")


def list_tries(did: Sequence[Did], request: str) -> list[ProgramTry]:
    """The programs that were rehearsed; one that was rehearsed again with an answer, or mended,
    counts once."""
    tries = list[ProgramTry]()
    for at, step in enumerate(did):
        if step.move.tool != REHEARSE_PROGRAM:
            continue
        new = _read_try(step, did[at + 1 :])
        if tries and _is_same_try(tries[-1], new, request):
            tries.pop()
        tries.append(new)
    return tries


def _read_try(step: Did, after: Sequence[Did]) -> ProgramTry:
    """The program of a rehearsal; `after` are all steps after it."""
    came = Rehearsed(failed=step.first_line)
    if not step.failed:
        came = parse_rehearsal(step.result) or came
    since = takewhile(lambda each: each.move.tool != REHEARSE_PROGRAM, after)
    return ProgramTry(
        program=str(step.move.arguments.get("program", "")),
        answers=tuple(map(str, step.move.arguments.get("answers", []))),
        rehearsed=came,
        since=tuple(since),
    )


def _is_same_try(last: ProgramTry, new: ProgramTry, request: str) -> bool:
    """Whether the program is the one before, mended or with an answer."""
    if new.answers and new.program == last.program:
        return True
    return mend_program(last, request) == new.program


def is_stuck(turn: ShimTurn) -> bool:
    """Whether the same program was written twice."""
    written = [each.program for each in list_tries(turn.did, turn.request)]
    return len(set(written)) < len(written)


class _Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the programs of a turn came to. `wants`: the request wants a change. `notes` says for
    each program what is wrong with it, '' for nothing. `good` may be done; `lossy` would lose
    something that the request does not speak of; `stops` are the sentences of those that only
    stopped themselves."""

    wants: bool
    notes: list[str]
    good: list[ProgramTry]
    lossy: list[ProgramTry]
    stops: list[str]


def _judge_tries(turn: ShimTurn, tries: Sequence[ProgramTry], *, assist: bool) -> _Verdict:
    wants = may_change_files(turn)
    notes = [find_program_problem(each, turn, wants=wants, assist=assist) for each in tries]
    fine = [each for each, note in zip(tries, notes, strict=True) if not note]
    lossy = [each for each in fine if find_unmeant_loss(each.rehearsed, turn.request)]
    good = [each for each in fine if each not in lossy]
    if not good and len(tries) >= MAX_TRIES:
        good = lossy
    stops = [
        each.rehearsed.stopped
        for each, note in zip(tries, notes, strict=True)
        if has_only_stopped(each, note)
    ]
    return _Verdict(wants=wants, notes=notes, good=good, lossy=lossy, stops=stops)


def _decide(turn: ShimTurn, tries: Sequence[ProgramTry], *, assist: bool) -> ShimStep:
    """After a rehearsal: do what was found, try once more, or say why not."""
    better = mend_program(tries[-1], turn.request)
    if better:
        same = [each for each in tries if each.program == better]
        if not same:
            return Do((make_rehearsal(better),))
        tries = [*tries[:-1], same[0]]  # it was written a second time

    verdict = _judge_tries(turn, tries, assist=assist)
    good = verdict.good
    lossy = verdict.lossy
    stops = verdict.stops
    believed = _find_believed(turn, tries, verdict, assist=assist)
    if believed is not None:
        return make_final_step(believed, turn, wants=verdict.wants or assist)
    if len(lossy) > 1 and not good and not stops:
        return make_final_step(lossy[0], turn, wants=verdict.wants)  # a person is asked about it
    if assist and stops and not ASSIST_PATTERN.match(" ".join(turn.request.lower().split())):
        return Do((make_survey(turn),))  # it was sorted wrongly

    is_last = len(tries) >= MAX_TRIES
    if len(stops) >= MIN_STOPS or (is_last and stops):
        return SayStep(render_refusal(stops))
    if is_last:
        return _give_up(turn, tries, good)

    listing = _find_listing(turn)
    if is_rewrite(turn, listing):
        return _retry_rewrite(turn, listing, tries)
    note = _render_warning(turn, tries, verdict)
    return Write("assistant" if assist else "files", listing, len(tries), note)


def _find_listing(turn: ShimTurn) -> str:
    """The survey that the turn began with; '' for none."""
    first = turn.did[0]
    return first.result if first.move.tool == SURVEY_FILES else ""


def _find_believed(
    turn: ShimTurn, tries: Sequence[ProgramTry], verdict: _Verdict, *, assist: bool
) -> ProgramTry | None:
    """The program that may be done without another one; None where none is sure enough."""
    good = verdict.good
    if not good or len(verdict.stops) >= MIN_STOPS:
        return None
    ordered = ORDERING.search(turn.request) is not None
    agreed = find_agreed_program(good, wants=verdict.wants, ordered=ordered)
    if agreed is not None:
        return agreed

    listing = _find_listing(turn)
    if assist or is_rewrite(turn, listing):
        return good[0]
    for each in good:
        if _is_sure(each, turn, listing):
            return each

    # All that were written after the first one are wrong.
    is_first_alone = len(good) == 1 and good[0] is tries[0] and len(tries) > 1
    if is_first_alone and not verdict.stops and not is_by_example(turn.request):
        return good[0]
    return None


def _is_sure(tried: ProgramTry, turn: ShimTurn, listing: str) -> bool:
    """Whether a program is believed though no other one agrees with it."""
    return (
        is_plain(tried, turn)
        or has_example_shape(tried.program, turn.request, listing)
        or has_columns(tried, turn.request)
    )


def _give_up(turn: ShimTurn, tries: Sequence[ProgramTry], good: Sequence[ProgramTry]) -> SayStep:
    """After the last program: an answer of which nobody is sure, or why there is none."""
    acts = any(each.rehearsed.changes or each.rehearsed.calls for each in good)
    if good and not acts:
        return SayStep(f"{strip_sample_values(good[0], turn)}\n{UNSURE}", failed=False)
    return SayStep(render_failure(tries, good))


def _render_warning(turn: ShimTurn, tries: Sequence[ProgramTry], verdict: _Verdict) -> str:
    """What the next program is told of an earlier one; '' for nothing."""
    if verdict.lossy and not verdict.good:
        lost = find_unmeant_loss(verdict.lossy[-1].rehearsed, turn.request)
        wrong = (
            f"it {lost}; keep what is there and only add to it, unless the request says otherwise"
        )
    else:
        # Those after a good program are told of the one before it, as it was.
        before = tries.index(verdict.good[0]) if verdict.good else len(tries)
        if before == 0:
            return ""
        wrong = verdict.notes[before - 1]
        # Who is told that something is not there makes it up.
        if has_only_stopped(tries[before - 1], wrong):
            return ""
    return f"\n(An earlier program was wrong: {wrong}. Write a simple one that avoids this.)"


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
    """The survey of the files that a request is about."""
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
        if tried.answers:
            given["answers"] = list(tried.answers)
        moves.append(Move(RUN_PROGRAM, given))
    moves += _list_moves(came)
    if moves:
        return Do(tuple(moves))
    return SayStep(strip_sample_values(tried, turn), failed=False)


def _find_chosen(tries: Sequence[ProgramTry]) -> ProgramTry:
    """The program that was done in the end."""
    calls = [step.move for step in tries[-1].since]
    programs = [move.arguments.get("program") for move in calls if move.tool == RUN_PROGRAM]
    ran = [each for each in tries if each.program in programs]
    asked = [
        each for each in tries if each.rehearsed.calls and _list_moves(each.rehearsed) == calls
    ]
    return (ran or asked or tries)[-1]


def _list_moves(came: Rehearsed) -> list[Move]:
    return [_make_move(call) for call in came.calls]


def make_rehearsal(program: str, answers: Sequence[str] = ()) -> Move:
    """The call that tries a program, with the results of the calls that it needed."""
    given: dict[str, Any] = {"program": program}
    if answers:
        given["answers"] = list(answers)
    return Move(REHEARSE_PROGRAM, given)


def _make_move(call: ProgramCall) -> Move:
    return Move(call.tool, dict(call.arguments))


def has_file_texts(turn: ShimTurn) -> bool:
    """Whether the texts in a turn are those of files, on which a program can work."""
    return bool(turn.did) and turn.did[-1].move.tool == SURVEY_FILES
