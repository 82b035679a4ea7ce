"""What the words of a request tell without a model: what it is for, and what it speaks of. Pure."""

from __future__ import annotations

import re

from ..types.programs import SURVEY_FILES
from .shim_prompts import RequestKind
from .shim_turn import ShimTurn

URL = re.compile(r"https?://\S+")
UNDO_REQUEST = re.compile(
    r"(please )?((undo|revert)( (that|this|it|the last change|your last change))?"
    r"|(take|bring|get|put) (that|it|this|them) back|restore (it|that|this|them))"
    r"( please)?[.!]*"
)
_CLAUSE = re.compile(r"[.!?;,]\s+")
_HELD_BACK = re.compile(
    r"\b(if|when|unless|until|not|never|without|dont)\b|n['\u2019]t\b", re.IGNORECASE
)
"""Words with which a request says what is not to be done, or not now."""


def is_undo(request: str) -> bool:
    """Whether it asks for the latest change to be undone, with its last words at least, and for
    nothing else."""
    *before, last = _CLAUSE.split(" ".join(request.lower().split()).rstrip(" .!?"))
    if any(
        _HELD_BACK.search(each) or CHANGE_VERB.search(each) or FILE_NAME.search(each)
        for each in before
    ):
        return False
    return bool(UNDO_REQUEST.fullmatch(last.removeprefix("so ").removeprefix("and ").strip()))


_SELF = re.compile(
    r"(hi|hello|hey)?[,! ]*(what (all )?(can|do) you do|who are you|what are you|how can "
    r"you help( me)?|help)"
    r"( (exactly|now|here|for me))?"
)
_ABOUT_US = re.compile(
    r"\bwhat (can|could|should|may) (i|we) ask you\b|\bwhat (kinds? of )?(things "
    r")?(can|could) you (all )?(do|help)\b"
    r"[^,;]{0,30}$|\bwhat('s| is) your name\b|\bwhat (are you|you are|you're) good (for|at)\b"
)
_QUOTES = re.compile(r"[\"\u201c\u201d\u201e«»]|(?<!\w)['\u2018]")
ASSIST_PATTERN = re.compile(
    r"((please|can you|could you|hey|and|also|then|ok|now|oh),? )*"
    r"(remind me\b|set (me )?(a|an) (reminder|alarm)|wake me\b|every "
    r"(other "
    r")?(day|week|month|hour|morning|evening|night|weekday|mon|tues|wednes|thurs|fri|satur|sun|\d+)"
    r"|cancel\b|remember (that|this|:|my|i )|(cancel|delete|remove|stop|list|show) (all "
    r"|the |my |me )*(reminder|alarm)"
    r"|what (did|have) you (just )?(change|do)|forget (that|what|my|about)|undo\b)"
)
_BEYOND = re.compile(
    r"((please|can you|could you|hey),? )*"
    r"(book|buy|order|reserve|purchase)( me| us)? (a|an|the|some|two|three|\d+|my) \w+"
)
"""What nobody can do from here."""


def classify_obvious(request: str) -> RequestKind | None:
    """The word for a request that needs no model to be sorted."""
    plain = " ".join(request.lower().split())
    about_us = (
        _ABOUT_US.search(plain.rstrip("?!. "))
        and not FILE_NAME.search(plain)
        and not _QUOTES.search(plain)
    )
    if about_us or _SELF.fullmatch(plain.rstrip("?!. ")):
        return "self"
    if ASSIST_PATTERN.match(plain) or is_undo(request):
        return "assist"
    if is_purchase(request):
        return "talk"
    reads = (
        URL.search(plain)
        and not FILE_NAME.search(URL.sub("", plain))
        and not CHANGE_VERB.search(plain)
    )
    return "read" if reads else None


def is_purchase(request: str) -> bool:
    """Whether it asks for something to be bought or booked."""
    return bool(_BEYOND.match(" ".join(request.lower().split())) and not FILE_NAME.search(request))


def find_demanded_words(request: str) -> list[str]:
    """The words that a text is to hold, as the request demands: `sunscreen must be on it`."""
    return [found[0] or found[1] for found in _DEMANDED.findall(request)]


_DEMANDED = re.compile(
    r"(?:^|[.,;:!?]|\band\b|\bbut\b)\s*(?:the |a |an )?([\w-]+(?: [\w-]+)?) "
    r"(?:must|should|has to|have to|needs? to)"
    r" be (?:on|in) (?:it|there)\b"
    r"|\b(?:do not|don['\u2019]t) forget (?:the |a |an |my )?([\w-]+)(?=[.,;!?]|$)",
    re.IGNORECASE,
)


def parse_swap(request: str) -> tuple[str, str] | None:
    """The words that become others, two or three with a number or a name: `from room 204 to room
    311`."""
    found = _SWAP.search(request)
    return (
        (found[1], found[2])
        if found and found[1].split()[0].lower() == found[2].split()[0].lower()
        else None
    )


_SWAP = re.compile(
    r"\bfrom ([\w-]+ [\w.:-]*\w(?: \w+)?) (?:in)?to ([\w-]+ [\w.:-]*\w)\b", re.IGNORECASE
)


def find_omitted_part(request: str, done: str) -> str:
    """The part of a request that asks for a change of its own of which no word occurs in what was
    `done`; '' for none. The first part is not looked at: a program that does nothing is known by
    that."""
    known = {word[:STEM_CHARS] for word in split_words(done)}
    for part in _AND_DO.split(request)[1:]:
        words = [
            word for word in split_words(part) if word not in STOP_WORDS and word not in _EVERYDAY
        ]
        if len(words) > 1 and not any(word[:STEM_CHARS] in known for word in words[1:]):
            return part.strip(" .,;!?\n")
    return ""


STEM_CHARS = 4
_EVERYDAY = frozenset(
    {"please", "then", "also", "it", "them", "that", "this", "too", "so", "new", "all", "one"}
)
_AND_DO = re.compile(
    r"\b(?:and|then|and then|and also)\b (?=(?:please "
    r")?(?:switch|turn|set|change|rename|delete|remove"
    r"|add|put|append|replace|move|copy|update|increase|raise|lower|mark|tick|cross|insert|correct|fix)\b)",
    re.IGNORECASE,
)


def split_questions(request: str) -> list[str]:
    """The questions of a request, where it asks two or three that stand on their own; else the
    request as it is."""
    asked = request[: request.find("?") + 1]
    parts = [part.strip(" ,") for part in _AND_ASKS.split(asked) if part.strip(" ,")]
    whole = request.count("?") == 1 and all(
        len(part.split()) >= MIN_QUESTION_WORDS for part in parts
    )
    return parts if 1 < len(parts) <= MAX_QUESTIONS and whole else [request]


MIN_QUESTION_WORDS = 4
MAX_QUESTIONS = 3
_AND_ASKS = re.compile(
    (
        r",? and (?=(?:what|who|which|where|why|how|whose|when "
        r"(?:is|are|was|were|do|does|did|will|can)|until when)\b)"
    ),
    re.IGNORECASE,
)


def is_reminder_followup(turn: ShimTurn) -> bool:
    """Whether a request that names nothing itself speaks of the reminders that were spoken of just
    before."""
    said = " ".join(text for role, text in turn.earlier[-4:] if role == "assistant")
    clauses = _CLAUSE.split(" ".join(turn.request.split()).rstrip(" .!?"))
    drops = any(_DROPS.fullmatch(clause) for clause in clauses) and not _OF_FILES.search(
        turn.request
    )
    return bool(drops and _OF_REMINDERS.search(said))


_OF_REMINDERS = re.compile(r"\bremind(er)?s?\b|\bI will (say|tell)\b", re.IGNORECASE)
_OF_FILES = re.compile(
    r"\.\w{2,4}\b|\b(files?|folders?|lines?|rows?|columns?|notes?|lists?|texts?|tables?|entry|entries|pictures?)\b",
    re.IGNORECASE,
)


CHANGE_VERB = re.compile(
    r"\b(write|save|create|make|add|append|put|insert|remove|delete|drop|rename|move|copy|replace|change|set|update|fix"
    r"|sort|convert|turn|edit|merge|split|clean|organi[sz]e|tidy|mark|cross|tick|strike|correct|translate|pack"
    r"|zip|archive|export|extract|dedupe|deduplicate|empty|clear|build|generate|prepend|swap|throw|tick|untick|reorder"
    r"|shorten|(take|leave|cut|pull) (it|them|those|that|the|every|all|out|off|only)|bring "
    r".{0,100}? into)\b",
    re.IGNORECASE,
)
QUESTION = re.compile(
    r"\?\s*$|^\W*when (is|are|was|were|do|does|did|will|can)\b"
    r"|^\W*((please|can|could|would|will) )*(you )?(please )?"
    r"(how|what|whats|which|who|whose|where|why|is|are|was|were|does|do|did|has|have|tell"
    r"|show|count|list|find|give|calculate|compute|sum|add "
    r"up|run|execute|search|check|look|read|say|explain|compare"
    r"|summari[sz]e|print)\b",
    re.IGNORECASE,
)
FIRST_PERSON = re.compile(r"\b(my|mine|our|ours|us|we|i)\b", re.IGNORECASE)
"""Words of who speaks of himself: what he asks may stand in his files."""
ORDERING = re.compile(
    r"\b(sort|order|rank|first|last|top|newest|oldest|latest|alphabet|ascend|descend|cheap|revers|after|before|above"
    r"|below|under|beginning|end|start|between|behind|front|bottom|middle|line \d)",
    re.IGNORECASE,
)
READ_ONLY = re.compile(
    r"\b(do not|don't|dont|without) (chang|writ|touch|sav|edit|modif)\w*|\bonly (tell|say|show)\b",
    re.I,
)


def may_change_files(turn: ShimTurn) -> bool:
    """Whether the request may change files: the model's word says so, or a verb of the request."""
    first = turn.did[0].move
    if first.tool != SURVEY_FILES:
        return True
    if READ_ONLY.search(turn.request):
        return False
    new = [
        name
        for name in FILE_NAME.findall(turn.request.lower())
        if name not in turn.did[0].result.lower()
    ]
    asked = first.arguments.get("purpose") == "change" or bool(
        new or CHANGE_VERB.search(turn.request)
    )
    return asked or not QUESTION.search(turn.request)


FREE_EDIT = re.compile(
    r"\b(fix|correct|typo|spell|translat|improv|bug|mend|rewrite|rephrase|shorten|repair|wrong)",
    re.I,
)
STOP_WORDS = frozenset(
    ("the", "a", "an", "to", "of", "in", "by", "and", "is", "with", "my", "for", "at", "on", "it")
)


def split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


ALL_FILES = re.compile(
    (
        r"\b(all|every|each|both|any) (of )?(my |the |these |those )?(\w+ "
        r")?(files?|texts?|notes?|letters?)\b"
    ),
    re.I,
)
TABLE_NAME = re.compile(r"\b[\w-]{1,80}\.(?:csv|tsv|json|log)\b", re.IGNORECASE)
"""Files in which something is looked up by a program, and not by reading them."""
FILE_NAME = re.compile(
    r"\b[\w-]{1,80}\.(?:txt|md|csv|json|py|ini|toml|ya?ml|html|log|zip|gz|xml|tsv|sh|cfg)\b"
)


MAX_REMINDER_CHARS = 300
_ASKING = (
    r"(?:(?:please|can you|could you|you "
    r"can|hey|hi|and|so|also|then|ok|okay|now|oh|pls|just|actually),? +)*"
)
_CANCELS = re.compile(
    rf"{_ASKING}(?:cancel|drop|delete|remove|stop|skip|scrap|forget)\b", re.IGNORECASE
)
_DROPS = re.compile(
    rf"{_CANCELS.pattern}(?: "
    r"(?:it|that|this|one|those|these|them|all|both|the|of|first|second|last|other|again|about"
    r"|please|now|reminders?|alarms?))+",
    re.IGNORECASE,
)
_ALL_OF_THEM = re.compile(
    rf"{_CANCELS.pattern} (?:all|every one|each|both)(?: of)?(?: my| the| these| those)?"
    r"(?: (?:reminders|alarms|them))?(?: please| now)*",
    re.IGNORECASE,
)
_REMINDER = re.compile(r"\b(reminders?|alarms?)\b", re.IGNORECASE)
_ANOTHER_DEED = re.compile(
    r"(?:\b(?:and|then|also)\b|,) (?:please |then |also |instead "
    r")*(?:remind|write|save|add|put|delete|remove|cancel"
    r"|set|tell|make|create|send|show|list|move|change|copy|rename|wake)\b",
    re.IGNORECASE,
)
_FACT = re.compile(
    rf"{_ASKING}(?:remember|keep in mind|note)(?: also)?(?: for me)?(?:,? that|,? this|:)*:? "
    r"(?!to |when |how |what )(.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMIND = re.compile(
    rf"{_ASKING}(?:remind|tell) me (?!to |that )(.+?) (?:to|that) (.+)", re.IGNORECASE
)
_REMIND_AT = re.compile(
    (
        rf"{_ASKING}remind me (?:to|that) (.+?) ((?:tomorrow|today|tonight|the day "
        r"after|on|at|in|next|every) .+|tomorrow)"
    ),
    re.IGNORECASE,
)
_AND_MORE = re.compile(
    (
        r"\b(?:and|then|also)\b.*\b(?:every|remind|tomorrow|remember|at \d|in \w+ "
        r"(?:minutes?|hours?|days?|weeks?)\b)"
    ),
    re.IGNORECASE,
)


def make_reminder_program(request: str, *, cancels: bool = False) -> str:
    """The program for a reminder or a fact whose words need no model; '' for all else. Its times
    are read later. `cancels`: it is known that it speaks of a reminder."""
    plain = " ".join(request.split()).rstrip(" .!")
    if plain.endswith("?"):
        plain = plain[:-1] if re.match(r"(?:can|could|would) you\b", plain, re.IGNORECASE) else ""
    if not plain or len(plain) > MAX_REMINDER_CHARS or re.search(r"[.!?] [A-Z]", plain):
        return ""
    if found := _FACT.fullmatch(plain):
        whole = not _ANOTHER_DEED.search(found[1]) and found[1].lower() not in (
            "this",
            "that",
            "it",
        )
        return f"remember({_format_sentence(found[1])!r})" if whole else ""
    when = ""
    what = ""
    if found := _REMIND.fullmatch(plain):
        when = found[1]
        what = found[2]
    elif found := _REMIND_AT.fullmatch(plain):
        when = found[2]
        what = found[1]
    if not when and (cancels or _REMINDER.search(plain)):
        return _make_cancel_program(plain)
    if not when or _AND_MORE.search(what):
        return ""
    if every := re.fullmatch(r"every (.+)", when, re.IGNORECASE):
        return f"every({every[1]!r}, {_format_sentence(what)!r})"
    return f"remind({when!r}, {_format_sentence(what)!r})"


def _make_cancel_program(plain: str) -> str:
    """The program for a request that drops one reminder or all of them; '' where it wants something
    else as well."""
    clause = next((each for each in _CLAUSE.split(plain) if _CANCELS.match(each)), "")
    if (
        not clause
        or _HELD_BACK.search(clause)
        or _ANOTHER_DEED.search(plain)
        or "remind me" in plain.lower()
    ):
        return ""
    if _ALL_OF_THEM.fullmatch(clause):
        return "for line in reminders():\n    cancel(line)"
    several = re.search(r"\b(?:all|every|both|each|except|but)\b", clause, re.IGNORECASE)
    return "" if several else f"cancel({plain!r})"


def _format_sentence(text: str) -> str:
    text = text.strip(" .!,'\"")
    return f"{text[:1].upper()}{text[1:]}."
