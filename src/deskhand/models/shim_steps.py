"""What a small model does next, decided here from what has happened in the turn, and never left to it. Pure.

A request becomes a word, then a program, which is rehearsed on a copy of the folder. Programs are compared by what they
come to: two that agree are believed, and one that is plain. What is said at the end is what happened.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from ..types.losses import meant, named
from ..types.programs import REHEARSE, RUN, SURVEY, Call, FileChange, Rehearsed, read_rehearsed
from .shim_prompts import ABOUT, Word
from .shim_turn import Did, Move, Turn

TRIES = 3
STOPS = 2
"""So many programs that stop themselves for the same reason are believed."""
FETCH, UNDO = "web_fetch", "undo_change"


class Say(msgspec.Struct, frozen=True):
    """Words of ours, in place of the model's: it would say that all went well. `failed`: it did not."""

    text: str
    failed: bool = True


class Sort(msgspec.Struct, frozen=True):
    """The model sorts the request by one word."""


class Do(msgspec.Struct, frozen=True):
    """These calls, without asking the model."""

    moves: tuple[Move, ...]


class Write(msgspec.Struct, frozen=True):
    """The model writes a program, for the `number`-th time, or a text anew. `note` says what was wrong with an earlier
    one."""

    kind: Literal["files", "assistant", "rewrite"]
    listing: str = ""
    number: int = 0
    note: str = ""


class Answer(msgspec.Struct, frozen=True):
    """The model answers in words, from `texts` where there are any. It has no tools then."""

    texts: str = ""


Step = Say | Sort | Do | Write | Answer


class Try(msgspec.Struct, frozen=True):
    """A program that was rehearsed, and what it came to. `steps` are those since."""

    program: str
    answers: tuple[str, ...]
    rehearsed: Rehearsed
    since: tuple[Did, ...] = ()


# The first step

_URL = re.compile(r"https?://\S+")
_UNDO = re.compile(
    r"(please )?(undo|revert|take) ?(that|this|it|the last change|your last change)?( back)?( please)?[.!]*"
)
_SELF = re.compile(
    r"(hi|hello|hey)?[,! ]*(what (all )?(can|do) you do|who are you|what are you|how can you help( me)?|help)\b.{0,12}"
)
_ASSIST = re.compile(
    r"((please|can you|could you|hey|and|also|then|ok|now|oh),? )*"
    r"(remind me\b|set (me )?(a|an) (reminder|alarm)|wake me\b|every "
    r"(other )?(day|week|month|hour|morning|evening|night|weekday|mon|tues|wednes|thurs|fri|satur|sun|\d+)"
    r"|remember (that|this|:|my|i )|(cancel|delete|remove|stop|list|show) (all |the |my |me )*(reminder|alarm)"
    r"|what (did|have) you (just )?(change|do)|forget (that|what|my|about)|undo\b)"
)


def obvious(request: str) -> Word | None:
    """The word for a request that needs no model to be sorted."""
    plain = " ".join(request.lower().split())
    if _SELF.fullmatch(plain.rstrip("?!. ")):
        return "self"
    if _ASSIST.match(plain) or _UNDO.fullmatch(plain):
        return "assist"
    return "read" if _URL.search(plain) else None


def first_step(word: Word, turn: Turn) -> Step:
    """How a request that was sorted begins."""
    match word:
        case "self":
            return Say(ABOUT, failed=False)
        case "talk":
            return Answer()
        case "assist" if _NAMED.search(turn.request) and not obvious(turn.request):
            return first_step("change", turn)
        case "assist":
            undo = _UNDO.fullmatch(" ".join(turn.request.lower().split()))
            return Do((Move(UNDO, {}),)) if undo else Write("assistant")
        case "read" if found := _URL.search(turn.request):
            return Do((Move(FETCH, {"url": found[0].rstrip(".,;:!?)")}),))
        case _:
            anew = _FREE.search(turn.request) and len(_NAMED.findall(turn.request)) == 1
            return Do((Move(SURVEY, {"about": turn.request, "purpose": "read" if anew else word}),))


# The steps after it


def next_step(turn: Turn) -> Step:
    """What comes next."""
    surveys = [at for at, step in enumerate(turn.did) if step.move.tool == SURVEY]
    if surveys and surveys[-1]:
        turn = msgspec.structs.replace(turn, did=turn.did[surveys[-1] :])
    did = turn.did
    if not did:
        return Sort()
    if halted := next((step for step in did if step.status not in ("ok", "error")), None):
        return Say(_halted(halted))
    tries = tries_of(did)
    if not tries:
        return _after_first(turn, did[0])
    last, assist = tries[-1], not any(step.move.tool == SURVEY for step in did)
    if last.rehearsed.needs is not None and last.since:
        if last.since[-1].failed:
            return Say(f"I could not do this: {last.since[-1].first_line}")
        return Do((rehearse(last.program, (*last.answers, last.since[-1].result)),))
    if last.since:
        return Say(*told(_chosen(tries), last.since))
    if last.rehearsed.needs is not None:
        return Do((_call(last.rehearsed.needs),))
    if assist and _found_nothing(did) and not obvious(turn.request):
        return Do((Move(SURVEY, {"about": turn.request, "purpose": "read"}),))  # it may stand in a file
    return _decide(turn, tries, assist=assist)


def _found_nothing(did: Sequence[Did]) -> bool:
    return any(step.move.tool == "search_memories" and step.result.startswith("nothing is known") for step in did)


def _after_first(turn: Turn, step: Did) -> Step:
    tool, failed = step.move.tool, step.failed
    if tool == SURVEY and not failed:
        if not step.result.startswith("---"):
            return Write("files", step.result)
        return Write("rewrite", step.result) if is_rewrite(turn, step.result) else Answer(step.result)
    if tool == FETCH and not failed:
        return Answer(f"--- {step.move.arguments.get('url', '')}\n{step.result}\n--- end")
    if failed:
        return Say(f"I could not do this: {step.first_line}")
    return Say(step.result, failed=False)


def is_rewrite(turn: Turn, texts: str) -> bool:
    """Whether one small text is to be made better, which is written anew as a whole."""
    found = _TEXT.fullmatch(texts)
    wanted = _FREE.search(turn.request) and not _ONLY.search(turn.request)
    return bool(found and wanted and len(found[2]) < REWRITE_CHARS and "…" not in found[2])


_TEXT = re.compile(r"--- (.+)\n(.*)\n--- end of \1", re.DOTALL)
REWRITE_CHARS = 2_000


def rewriting(texts: str, written: str) -> str:
    """The program that gives the text of a survey these new words; '' where there are none."""
    found, new = _TEXT.fullmatch(texts), _BLOCK.search(written)
    if not found or not new or not new[1].strip():
        return ""
    path = found[1]
    return f"read({path!r})\nwrite({path!r}, {new[1].strip(chr(10))!r})\nsay('I have changed {path}.')"


_BLOCK = re.compile(r"```[\w]*\n(.*?)(?:\n```|$)", re.DOTALL)


def _halted(step: Did) -> str:
    if step.status in ("denied", "expired", "unasked"):
        return f"I did not do that: {step.first_line} Nothing was changed."
    return f"I was interrupted: {step.first_line}"


def tries_of(did: Sequence[Did]) -> list[Try]:
    """The programs that were rehearsed, in turn; one that was rehearsed again with an answer counts once."""
    tries = list[Try]()
    for at, step in enumerate(did):
        if step.move.tool != REHEARSE:
            continue
        program, answers = str(step.move.arguments.get("program", "")), step.move.arguments.get("answers", [])
        came = Rehearsed(failed=step.first_line) if step.failed else read_rehearsed(step.result)
        end = next((i for i in range(at + 1, len(did)) if did[i].move.tool == REHEARSE), len(did))
        new = Try(
            program, tuple(map(str, answers)), came or Rehearsed(failed=step.first_line), tuple(did[at + 1 : end])
        )
        if answers and tries and tries[-1].program == program:
            tries.pop()
        tries.append(new)
    return tries


def _decide(turn: Turn, tries: Sequence[Try], *, assist: bool) -> Step:
    """After a rehearsal: do what was found, try once more, or say why not."""
    wants = changes_wanted(turn)
    notes = [problem(each, turn, wants=wants, assist=assist) for each in tries]
    fine = [each for each, note in zip(tries, notes, strict=True) if not note]
    lossy = [each for each in fine if _unmeant(each.rehearsed, turn.request)]
    good = [each for each in fine if each not in lossy] or ([] if len(tries) < TRIES else lossy)
    stops = [each.rehearsed.stopped for each in tries if each.rehearsed.stopped]
    agreed = _agreed(good, wants=wants, ordered=bool(_ORDER.search(turn.request)))
    plain = bool(good) and (assist or is_plain(good[0], turn) or is_rewrite(turn, turn.did[0].result))
    alone = len(good) == 1 and good[0] is tries[0] and len(tries) > 1 and not stops
    if good and (agreed or plain or alone) and len(stops) < STOPS:
        return finish(agreed or good[0], wants=wants or assist)
    if lossy and not good and len(lossy) > 1 and not stops:
        return finish(lossy[0], wants=wants)  # a person is asked about it
    if assist and stops and not _ASSIST.match(" ".join(turn.request.lower().split())):
        return Do((Move(SURVEY, {"about": turn.request, "purpose": "change"}),))  # it was sorted wrongly
    if len(stops) >= STOPS or (len(tries) >= TRIES and stops):
        return Say(_refusal(stops))
    if len(tries) >= TRIES:
        why = "the programs that I wrote for it came to different results" if len(good) > 1 else FAILED
        return Say(f"I could not do this: {why}. {NOTHING} {SIMPLER}")
    listing = turn.did[0].result if turn.did[0].move.tool == SURVEY else ""
    if is_rewrite(turn, listing):
        return Write("rewrite", listing, len(tries))
    if lossy and not good:
        lost = _unmeant(lossy[-1].rehearsed, turn.request)
        notes[-1] = f"it {lost}; keep what is there and only add to it, unless the request says otherwise"
    # Who is told that something is not there makes it up: only what went wrong is told, to others after it as well.
    before = tries.index(good[0]) if good else len(tries)
    mended = before > 0 and not tries[before - 1].rehearsed.stopped
    wrong = (
        f"\n(An earlier program was wrong: {notes[before - 1]}. Write a simple one that avoids this.)" if mended else ""
    )
    return Write("assistant" if assist else "files", listing, len(tries), wrong)


def _unmeant(came: Rehearsed, request: str) -> str:
    """What a program would lose that the request does not speak of; '' for nothing."""
    return next((each.loses for each in came.changes if each.loses and not meant(each, request)), "")


FAILED = "none of the programs that I wrote for it worked"
NOTHING = "Nothing was changed."
SIMPLER = "Say it in other words or in smaller steps, or choose a bigger model."


def _refusal(stops: Sequence[str]) -> str:
    said = max(stops, key=stops.count).rstrip(".")
    return f"I could not do this: {said}. Nothing was changed."


_CHANGE = re.compile(
    r"\b(write|save|create|make|add|append|put|insert|remove|delete|drop|rename|move|copy|replace|change|set|update|fix"
    r"|sort|convert|turn|edit|merge|split|clean|organi[sz]e|tidy|mark|cross|tick|strike|correct|translate|number|pack"
    r"|zip|archive|store|export|extract|dedupe|deduplicate|empty|clear|build|generate|prepend|swap|store|log|note)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\?\s*$|^\W*(please )?(how|what|whats|which|who|whose|when|where|why|is|are|was|were|does|do|did|has|have|tell"
    r"|show|count|list|find|give|calculate|compute|sum|add up|run|execute|search|check|look|read|say|explain|compare"
    r"|summari[sz]e|print)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(sort|order|rank|first|last|top|newest|oldest|latest|alphabet|ascend|descend|cheap|revers)", re.I
)
_ONLY = re.compile(r"\b(do not|don't|dont|without) (chang|writ|touch|sav|edit|modif)\w*|\bonly (tell|say|show)\b", re.I)


def changes_wanted(turn: Turn) -> bool:
    """Whether the request may change files: the model's word says so, or a verb of the request."""
    first = turn.did[0].move
    if first.tool != SURVEY:
        return True
    if _ONLY.search(turn.request):
        return False
    new = [name for name in _NAMED.findall(turn.request.lower()) if name not in turn.did[0].result.lower()]
    asked = first.arguments.get("purpose") == "change" or bool(new or _CHANGE.search(turn.request))
    return asked or not _QUESTION.search(turn.request)


def problem(tried: Try, turn: Turn, *, wants: bool, assist: bool) -> str:
    """What is wrong with a program, for who writes the next one; '' where it may be done."""
    came = tried.rehearsed
    if came.failed or came.stopped:
        return (came.failed or came.stopped).rstrip(".")
    if came.needs is not None:
        return "it waits for an answer"
    changed = bool(came.changes or came.calls)
    if changed and not (wants or assist):
        return "it changes files, and the request only asks; only say the answer"
    if changed and (missing := _unmade(came, turn)):
        return f"the request names {missing}, and you made another file; use exactly that name"
    if outside := _outside(came, turn.request):
        return f"it changes {outside}, which nobody named"
    must = wants and not _QUESTION.search(turn.request)
    if not changed and not came.ran and not assist and (must or _DEEDS.search(came.said)):
        return "it changes nothing"
    if re.search(r"\bnan\b", came.said):
        return "a value is empty; leave those rows out"
    if not changed and not came.said:
        return "it says nothing; end with say(...)"
    if not changed and (claim := _invented(tried.program, turn.request)):
        return f"the number {claim} is not computed; compute it from the files"
    if sample := _from_sample(tried.program, turn):
        return f"{sample} is only the first row; take it from the rows"
    return ""


_FREE = re.compile(r"\b(fix|correct|typo|spell|translat|improv|bug|mend|rewrite|rephrase|shorten|repair|wrong)", re.I)


def pruned(program: str, request: str) -> str:
    """The program without the statements that nobody asked for, beside some that were: replacements of which neither
    the old text nor the new one is the request's, and moves of files that it does not name. A small model goes on and
    on. Where nothing would be left of a kind, all of it stays."""
    try:
        tree = ast.parse(program)
    except SyntaxError:
        return program
    gone = set[int]()
    for name in _PRUNED:
        own = [(each, call) for each in tree.body if (call := _call_in(each, name)) is not None]
        strange = [each for each, call in own if _is_strange(call, name, request)]
        if len(strange) < len(own) and not (name == "replace" and _FREE.search(request)):
            gone |= {n for each in strange for n in range(each.lineno, (each.end_lineno or each.lineno) + 1)}
    seen = set[str]()
    for each in tree.body:
        said = ast.unparse(each)
        if said in seen and any(_call_in(each, name) for name in _PRUNED):
            gone |= set(range(each.lineno, (each.end_lineno or each.lineno) + 1))
        seen.add(said)
    return "\n".join(line for n, line in enumerate(program.splitlines(), 1) if n not in gone)


_PRUNED = ("replace", "move", "rename", "copy", "delete", "append", "prepend")


def _call_in(statement: ast.stmt, name: str) -> ast.Call | None:
    """The call that a statement is, of this function and with texts alone."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name):
        return None
    return call if all(isinstance(each, ast.Constant) for each in call.args) else None


def _is_strange(call: ast.Call, name: str, request: str) -> bool:
    texts = [str(each.value) for each in call.args if isinstance(each, ast.Constant)]
    if name == "replace":
        asked = set(_words(request)) - _SMALL
        strange = len(texts) == 3 and not any(set(_words(text)) & asked for text in texts[1:])
        return strange or (bool(texts) and not named(texts[0], request) and not _ALL.search(request))
    path = texts[0].rpartition("/")[2].lower() if texts else ""
    return path not in request.lower() and path.rpartition(".")[0] not in request.lower()


_SMALL = frozenset(("the", "a", "an", "to", "of", "in", "by", "and", "is", "with", "my", "for", "at", "on", "it"))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _calls_of(program: str, name: str) -> list[ast.Call]:
    """The calls of one of our functions in a program."""
    try:
        tree = ast.parse(program)
    except SyntaxError:
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


_ALL = re.compile(
    r"\b(all|every|each|both|any) (of )?(my |the |these |those )?(\w+ )?(files?|texts?|notes?|letters?)\b", re.I
)


def _outside(came: Rehearsed, request: str) -> str:
    """A file that is changed beside one that the request names, though it names it not; '' for none."""
    paths = [each.path for each in came.changes if each.kind in ("changed", "deleted")]
    strange = [path for path in paths if not named(path, request)]
    return strange[0] if strange and len(strange) < len(paths) and not _ALL.search(request) else ""


def _unmade(came: Rehearsed, turn: Turn) -> str:
    """A file that the request names, that is not there, and in whose place another one was made; '' for none."""
    made = {(each.to or each.path).lower() for each in came.changes if each.kind in ("new", "moved")}
    asked, listing = turn.request.lower(), turn.did[0].result.lower()
    wanted = [name for name in _NAMED.findall(asked) if name not in listing]
    strange = [path for path in made if path.rpartition("/")[2] not in asked]
    missing = [name for name in wanted if not any(path.rpartition("/")[2] == name for path in made)]
    return missing[0] if missing and strange else ""


def _invented(program: str, request: str) -> str:
    """A number that a program says and has not computed, nor found in the request; '' for none."""
    for say in _calls_of(program, "say"):
        if all(isinstance(each, ast.Constant) for each in say.args):
            text = " ".join(str(each.value) for each in say.args if isinstance(each, ast.Constant))
            for number in re.findall(r"\d[\d.,]*", text):
                if number.rstrip(".,") not in request:
                    return str(number.rstrip(".,"))
    return ""


def _from_sample(program: str, turn: Turn) -> str:
    """A value of the row that a listing shows which the program says or writes as it stands; '' for none."""
    known = " ".join([turn.request, *(text for _, text in turn.earlier)]).lower()
    rows = re.findall(r"\)\[0\] is [{\[](.*?)[}\]]", turn.did[0].result)
    values = {value for row in rows for value in re.findall(r"(?:: |^|, )'([^']{4,})'", row)}
    strange = [value for value in values if value.lower() not in known]
    texts = [
        str(node.value)
        for name in ("say", "write", "append")
        for call in _calls_of(program, name)
        for node in ast.walk(call)
        if isinstance(node, ast.Constant)
    ]
    return next((value for value in strange if any(value in text for text in texts)), "")


def is_plain(tried: Try, turn: Turn) -> bool:
    """Whether a program needs no second one to be believed: it only calls our functions, with words of the request or
    with a text that is made up for a new file."""
    try:
        tree = ast.parse(tried.program)
    except SyntaxError:
        return False
    asked = turn.request.lower()
    for statement in tree.body:
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
            return False
        call = statement.value
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name == "say":
            continue
        if name not in _PLAIN or not all(isinstance(each, ast.Constant) for each in call.args):
            return False
        given = [str(each.value) for each in call.args if isinstance(each, ast.Constant)]
        free = given[1:] if name == "write" else ()
        for text in given:
            if text not in free and not _in_words(text, asked):
                return False
    return any(change.kind == "new" for change in tried.rehearsed.changes) or "write" not in tried.program


_PLAIN = frozenset({"write", "append", "prepend", "replace", "move", "rename", "copy", "delete", "make_folder", "run"})


def _in_words(text: str, asked: str) -> bool:
    """Whether all words of a text stand in the request."""
    words = re.findall(r"\w+", text.lower())
    return all(word in asked for word in words)


def _agreed(good: Sequence[Try], *, wants: bool, ordered: bool) -> Try | None:
    """The first program with which another one agrees: in what they change and call for, else in what they say."""
    for at, one in enumerate(good):
        for other in good[at + 1 :]:
            if agree(one.rehearsed, other.rehearsed, wants=wants, ordered=ordered):
                shorter = not one.rehearsed.changes and len(data_in(other.rehearsed)) < len(data_in(one.rehearsed))
                return other if shorter else one
    return None


def agree(one: Rehearsed, other: Rehearsed, *, wants: bool = True, ordered: bool = True) -> bool:
    """Whether two programs come to the same. Without `ordered` the order of lines does not count."""
    if wants and (one.changes or one.calls or other.changes or other.calls):
        return one.calls == other.calls and _changes_of(one, ordered) == _changes_of(other, ordered)
    mine, theirs = data_in(one), data_in(other)
    if not (mine and theirs):
        return mine == theirs and set(_words(one.said)) == set(_words(other.said))
    return mine <= theirs or theirs <= mine


def _changes_of(came: Rehearsed, ordered: bool) -> list[tuple[str, ...]]:
    return [(each.path, each.kind, each.to, each.digest if ordered else _lines_of(each)) for each in came.changes]


def data_in(came: Rehearsed) -> frozenset[str]:
    """What of the words comes from files: numbers, names of files, and words with digits or capitals."""
    said = came.said
    figures = {f"{float(each.replace(',', '')):g}" for each in _FIGURE.findall(said)}
    names = {each.lower() for each in _NAMED.findall(said)}
    words = {word for word in re.findall(r"(?<![.!?] )(?<!^)\b[\w-]+", said) if re.search(r"[A-Z]|\d", word)}
    plain = {word.lower() for word in words if not re.fullmatch(r"[\d-]+", word)}
    return frozenset(figures | names | plain)


def _lines_of(change: FileChange) -> str:
    """What a change adds and removes, in no order."""
    lines = [line.rstrip() for line in change.diff.splitlines() if line[:1] in ("+", "-")]
    return "\n".join(sorted(lines)) if 0 < len(change.diff) < WHOLE_DIFF else change.digest


WHOLE_DIFF = 1_900
"""A longer diff may have been cut."""
_FIGURE = re.compile(r"(?<![\w.-])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])\d+(?:\.\d+)?")


# The end


def finish(tried: Try, *, wants: bool) -> Step:
    """Do what a program came to, or say it where it changes nothing."""
    came, moves = tried.rehearsed, list[Move]()
    if came.changes and wants:
        given: dict[str, Any] = {"program": tried.program, "changes": msgspec.to_builtins(came.changes)}
        moves.append(Move(RUN, given | ({"answers": list(tried.answers)} if tried.answers else {})))
    moves += [_call(each) for each in came.calls]
    return Do(tuple(moves)) if moves else Say(came.said, failed=False)


def _chosen(tries: Sequence[Try]) -> Try:
    """The program that was done in the end."""
    calls = [step.move for step in tries[-1].since]
    ran = [
        each for each in tries for move in calls if move.tool == RUN and move.arguments.get("program") == each.program
    ]
    asked = [each for each in tries if each.rehearsed.calls and [_call(c) for c in each.rehearsed.calls] == calls]
    return (ran or asked or tries)[-1]


def told(tried: Try, since: Sequence[Did]) -> tuple[str, bool]:
    """What is said when all is done, and whether something failed: by what happened, not by what the program says."""
    came, said = tried.rehearsed, list[str]()
    for step in since:
        if step.failed:
            did = " ".join(said)
            return f"{did}\nI could not do {'the rest' if did else 'this'}: {step.first_line}".strip(), True
        if step.move.tool == RUN:
            said.append(done_words(tried))
            continue
        words = next((call.words for call in came.calls if call.tool == step.move.tool and call.words), "")
        same = [c.words for c in came.calls if c.tool == step.move.tool and c.arguments == step.move.arguments]
        said.append((same[0] if same else words) or step.result)
        if step.move.tool == "save_memory" and not step.result.startswith("ok"):
            said[-1] = f"About that: {step.result}"
    return "\n".join(said), False


def done_words(tried: Try) -> str:
    """What was done: the program's own words where they say something that it has worked out and name no file that is
    not there, and what became of each file."""
    came = tried.rehearsed
    facts = "; ".join(map(_changed_words, came.changes[:8]))
    more = len(came.changes) - 8
    facts += f"; and {more} more" if more > 0 else ""
    facts = facts[:1].upper() + facts[1:] + "."
    own = came.said if _worked_out(tried.program) and not _strange_files(came) else ""
    return f"{own}\n({facts})" if own else facts


def _changed_words(change: FileChange) -> str:
    added = sum(line.startswith("+") and not line.startswith("+++") for line in change.diff.splitlines())
    removed = sum(line.startswith("-") and not line.startswith("---") for line in change.diff.splitlines())
    match change.kind:
        case "new":
            return f"made {change.path}" + (f" with {added} line{'' if added == 1 else 's'}" if added else "")
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


def _worked_out(program: str) -> bool:
    """Whether what a program says holds something that it has computed."""
    return any(not isinstance(each, ast.Constant) for say in _calls_of(program, "say") for each in say.args)


_NAMED = re.compile(r"\b[\w-]+\.(?:txt|md|csv|json|py|ini|toml|ya?ml|html|log|zip|gz|xml|tsv|sh|cfg)\b")


def _strange_files(came: Rehearsed) -> bool:
    """Whether the words name a file that was neither read nor changed."""
    known = {each for change in came.changes for each in (change.path, change.to)} | set(came.read)
    names = {path.rpartition("/")[2].lower() for path in known if path}
    return any(name.lower() not in names for name in _NAMED.findall(came.said))


_DEEDS = re.compile(
    r"\bI(?:'ve| have| just| will| am going to|'ll)? (?:now |already |successfully )?"
    r"(?:booked?|bought|buy|sent|send|ordered?|set|add(?:ed)?|creat(?:ed|e)|delet(?:ed|e)|remov(?:ed|e)|sav(?:ed|e)"
    r"|updat(?:ed|e)|chang(?:ed|e)|renamed|moved|wrote|written|kept|sorted|replaced|converted|fixed|merged|put"
    r"|scheduled?|remind(?:ed)?|cancell?ed|made a (?:reservation|booking)|call(?:ed)?)\b",
    re.IGNORECASE,
)


def honest(said: str, *, asked: str) -> str:
    """An answer in words, in place of one that claims a deed: nothing was done for it."""
    if not said.strip():
        return "I have no answer to that."
    if _DEEDS.search(said) and not asked.rstrip().endswith("?"):
        return f"I cannot do that from here, and nothing was done. {SIMPLER}"
    return said


def rehearse(program: str, answers: Sequence[str] = ()) -> Move:
    return Move(REHEARSE, {"program": program} | ({"answers": list(answers)} if answers else {}))


def _call(call: Call) -> Move:
    return Move(call.tool, dict(call.arguments))


def turns_round(written: str) -> bool:
    """Whether a model repeats itself: the same lines for the third time."""
    lines = [line.strip() for line in written.splitlines() if len(line.strip()) > LONG_LINE]
    return len(lines) > ROUNDS and lines.count(lines[-1]) >= ROUNDS


LONG_LINE, ROUNDS = 12, 3
_FENCE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:\n```|$)", re.DOTALL)


def program_in(written: str) -> str:
    """The program in what a model wrote, fenced or not."""
    found = _FENCE.search(written)
    return (found[1] if found else written.strip().strip("`")).strip()
