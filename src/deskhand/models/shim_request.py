"""What the words of a request tell without a model: what it is for, and what it speaks of. Pure."""

from __future__ import annotations

import re

from ..types.programs import SURVEY_FILES
from .shim_prompts import RequestKind
from .shim_turn import ShimTurn

URL = re.compile(r"https?://\S+")
UNDO_REQUEST = re.compile(
    r"(please )?"
    r"("
    r"(undo|revert)( (that|this|it|the last change|your last change))?"
    r"|(take|bring|get|put) (that|it|this|them) back"
    r"|restore (it|that|this|them)"
    r")"
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
    for clause in before:
        if _HELD_BACK.search(clause) or CHANGE_VERB.search(clause) or FILE_NAME.search(clause):
            return False

    deed = last.removeprefix("so ").removeprefix("and ").strip()
    return UNDO_REQUEST.fullmatch(deed) is not None


_SELF = re.compile(
    r"(hi|hello|hey)?[,! ]*"
    r"("
    r"what (all )?(can|do) you do"
    r"|who are you"
    r"|what are you"
    r"|how can you help( me)?"
    r"|help"
    r")"
    r"( (exactly|now|here|for me))?"
)
_ABOUT_US = re.compile(
    r"\bwhat (can|could|should|may) (i|we) ask you\b"
    r"|\bwhat (kinds? of )?(things )?(can|could) you (all )?(do|help)\b[^,;]{0,30}$"
    r"|\bwhat('s| is) your name\b"
    r"|\bwhat (are you|you are|you're) good (for|at)\b"
)
_QUOTES = re.compile(r"[\"\u201c\u201d\u201e«»]|(?<!\w)['\u2018]")
ASSIST_PATTERN = re.compile(
    r"((please|can you|could you|hey|and|also|then|ok|now|oh),? )*"
    r"("
    r"remind me\b"
    r"|set (me )?(a|an) (reminder|alarm)"
    r"|wake me\b"
    r"|every (other )?"
    r"(day|week|month|hour|morning|evening|night|weekday|mon|tues|wednes|thurs|fri|satur|sun|\d+)"
    r"|cancel\b"
    r"|remember (that|this|:|my|i )"
    r"|(cancel|delete|remove|stop|list|show) (all |the |my |me )*(reminder|alarm)"
    r"|what (did|have) you (just )?(change|do)"
    r"|forget (that|what|my|about)"
    r"|undo\b"
    r")"
)
_BEYOND = re.compile(
    r"((please|can you|could you|hey),? )*"
    r"(book|buy|order|reserve|purchase)( me| us)? "
    r"(a|an|the|some|two|three|\d+|my) \w+"
)
"""What nobody can do from here."""


def classify_obvious(request: str) -> RequestKind | None:
    """The word for a request that needs no model to be sorted."""
    plain = " ".join(request.lower().split())
    asked = plain.rstrip("?!. ")
    if _SELF.fullmatch(asked) or (_ABOUT_US.search(asked) and not _names_text(plain)):
        return "self"
    if ASSIST_PATTERN.match(plain) or is_undo(request):
        return "assist"
    if is_purchase(request):
        return "talk"
    if _is_about_page(plain):
        return "read"
    return None


def _names_text(plain: str) -> bool:
    """Whether it speaks of a file, or quotes something."""
    return FILE_NAME.search(plain) is not None or _QUOTES.search(plain) is not None


def _is_about_page(plain: str) -> bool:
    """Whether it speaks of a page in the web, and neither of a file nor of a change."""
    if not URL.search(plain) or CHANGE_VERB.search(plain):
        return False
    return FILE_NAME.search(URL.sub("", plain)) is None


def is_purchase(request: str) -> bool:
    """Whether it asks for something to be bought or booked."""
    if FILE_NAME.search(request):
        return False
    return _BEYOND.match(" ".join(request.lower().split())) is not None


def find_demanded_words(request: str) -> list[str]:
    """The words that a text is to hold, as the request demands: `sunscreen must be on it`."""
    return [found[0] or found[1] for found in _DEMANDED.findall(request)]


_DEMANDED = re.compile(
    r"(?:^|[.,;:!?]|\band\b|\bbut\b)\s*"
    r"(?:the |a |an )?([\w-]+(?: [\w-]+)?) "
    r"(?:must|should|has to|have to|needs? to) be (?:on|in) (?:it|there)\b"
    r"|\b(?:do not|don['\u2019]t) forget "
    r"(?:the |a |an |my )?([\w-]+)(?=[.,;!?]|$)",
    re.IGNORECASE,
)


def parse_swap(request: str) -> tuple[str, str] | None:
    """The words that become others, two or three with a number or a name: `from room 204 to room
    311`."""
    found = _SWAP.search(request)
    if found is None:
        return None

    old = found[1]
    new = found[2]
    is_same_thing = old.split()[0].lower() == new.split()[0].lower()
    return (old, new) if is_same_thing else None


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
    r"\b(?:and|then|and then|and also)\b "
    r"(?=(?:please )?"
    r"(?:switch|turn|set|change|rename|delete|remove"
    r"|add|put|append|replace|move|copy|update"
    r"|increase|raise|lower|mark|tick|cross|insert|correct|fix)\b)",
    re.IGNORECASE,
)


def split_questions(request: str) -> list[str]:
    """The questions of a request, where it asks two or three that stand on their own; else the
    request as it is."""
    asked = request[: request.find("?") + 1]
    parts = [part.strip(" ,") for part in _AND_ASKS.split(asked) if part.strip(" ,")]
    if request.count("?") != 1 or not 1 < len(parts) <= MAX_QUESTIONS:
        return [request]

    stand_alone = all(len(part.split()) >= MIN_QUESTION_WORDS for part in parts)
    return parts if stand_alone else [request]


MIN_QUESTION_WORDS = 4
MAX_QUESTIONS = 3
_AND_ASKS = re.compile(
    r",? and "
    r"(?=(?:what|who|which|where|why|how|whose"
    r"|when (?:is|are|was|were|do|does|did|will|can)"
    r"|until when)\b)",
    re.IGNORECASE,
)


def is_reminder_followup(turn: ShimTurn) -> bool:
    """Whether a request that names nothing itself speaks of the reminders that were spoken of just
    before."""
    if _OF_FILES.search(turn.request):
        return False
    clauses = _CLAUSE.split(" ".join(turn.request.split()).rstrip(" .!?"))
    if not any(_DROPS.fullmatch(clause) for clause in clauses):
        return False

    said = " ".join(text for role, text in turn.earlier[-4:] if role == "assistant")
    return _OF_REMINDERS.search(said) is not None


_OF_REMINDERS = re.compile(r"\bremind(er)?s?\b|\bI will (say|tell)\b", re.IGNORECASE)
_OF_FILES = re.compile(
    r"\.\w{2,4}\b"
    r"|\b(files?|folders?|lines?|rows?|columns?|notes?|lists?|texts?|tables?"
    r"|entry|entries|pictures?)\b",
    re.IGNORECASE,
)


CHANGE_VERB = re.compile(
    r"\b("
    r"write|save|create|make|add|append|put|insert"
    r"|remove|delete|drop|rename|move|copy|replace|change|set|update|fix"
    r"|sort|convert|turn|edit|merge|split|clean|organi[sz]e|tidy"
    r"|mark|cross|tick|strike|correct|translate"
    r"|pack|zip|archive|export|extract|dedupe|deduplicate|empty|clear"
    r"|build|generate|prepend|swap|throw|tick|untick|reorder|shorten"
    r"|(take|leave|cut|pull) (it|them|those|that|the|every|all|out|off|only)"
    r"|bring .{0,100}? into"
    r")\b",
    re.IGNORECASE,
)
QUESTION = re.compile(
    r"\?\s*$"
    r"|^\W*when (is|are|was|were|do|does|did|will|can)\b"
    r"|^\W*((please|can|could|would|will) )*(you )?(please )?"
    r"("
    r"how|what|whats|which|who|whose|where|why"
    r"|is|are|was|were|does|do|did|has|have"
    r"|tell|show|count|list|find|give|calculate|compute|sum|add up"
    r"|run|execute|search|check|look|read|say|explain|compare|summari[sz]e|print"
    r")\b",
    re.IGNORECASE,
)
FIRST_PERSON = re.compile(r"\b(my|mine|our|ours|us|we|i)\b", re.IGNORECASE)
"""Words of who speaks of himself: what he asks may stand in his files."""
ORDERING = re.compile(
    r"\b("
    r"sort|order|rank|first|last|top|newest|oldest|latest"
    r"|alphabet|ascend|descend|cheap|revers"
    r"|after|before|above|below|under|beginning|end|start"
    r"|between|behind|front|bottom|middle|line \d"
    r")",
    re.IGNORECASE,
)
READ_ONLY = re.compile(
    r"\b(do not|don't|dont|without) (chang|writ|touch|sav|edit|modif)\w*"
    r"|\bonly (tell|say|show)\b",
    re.IGNORECASE,
)


def may_change_files(turn: ShimTurn) -> bool:
    """Whether the request may change files: the model's word says so, or a verb of the request."""
    first = turn.did[0]
    if first.move.tool != SURVEY_FILES:
        return True
    if READ_ONLY.search(turn.request):
        return False
    if first.move.arguments.get("purpose") == "change" or CHANGE_VERB.search(turn.request):
        return True

    listing = first.result.lower()
    names_new_file = any(name not in listing for name in FILE_NAME.findall(turn.request.lower()))
    return names_new_file or not QUESTION.search(turn.request)


FREE_EDIT = re.compile(
    r"\b("
    r"fix|correct|typo|spell|translat|improv|bug|mend"
    r"|rewrite|rephrase|shorten|repair|wrong"
    r")",
    re.IGNORECASE,
)
STOP_WORDS = frozenset(
    ("the", "a", "an", "to", "of", "in", "by", "and", "is", "with", "my", "for", "at", "on", "it")
)


def split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


ALL_FILES = re.compile(
    r"\b(all|every|each|both|any) (of )?"
    r"(my |the |these |those )?(\w+ )?"
    r"(files?|texts?|notes?|letters?)\b",
    re.IGNORECASE,
)
TABLE_NAME = re.compile(r"\b[\w-]{1,80}\.(?:csv|tsv|json|log)\b", re.IGNORECASE)
"""Files in which something is looked up by a program, and not by reading them."""
FILE_NAME = re.compile(
    r"\b[\w-]{1,80}\."
    r"(?:txt|md|csv|json|py|ini|toml|ya?ml|html|log|zip|gz|xml|tsv|sh|cfg)\b"
)


MAX_REMINDER_CHARS = 300
_ASKING = (
    r"(?:(?:please|can you|could you|you can|hey|hi|and|so|also|then"
    r"|ok|okay|now|oh|pls|just|actually),? +)*"
)
_CANCELS = re.compile(
    rf"{_ASKING}(?:cancel|drop|delete|remove|stop|skip|scrap|forget)\b", re.IGNORECASE
)
_DROPS = re.compile(
    rf"{_CANCELS.pattern}"
    r"(?: (?:it|that|this|one|those|these|them|all|both|the|of"
    r"|first|second|last|other|again|about|please|now|reminders?|alarms?))+",
    re.IGNORECASE,
)
_ALL_OF_THEM = re.compile(
    rf"{_CANCELS.pattern} "
    r"(?:all|every one|each|both)(?: of)?(?: my| the| these| those)?"
    r"(?: (?:reminders|alarms|them))?(?: please| now)*",
    re.IGNORECASE,
)
_REMINDER = re.compile(r"\b(reminders?|alarms?)\b", re.IGNORECASE)
_ANOTHER_DEED = re.compile(
    r"(?:\b(?:and|then|also)\b|,) "
    r"(?:please |then |also |instead )*"
    r"(?:remind|write|save|add|put|delete|remove|cancel|set|tell|make"
    r"|create|send|show|list|move|change|copy|rename|wake)\b",
    re.IGNORECASE,
)
_FACT = re.compile(
    rf"{_ASKING}"
    r"(?:remember|keep in mind|note)(?: also)?(?: for me)?"
    r"(?:,? that|,? this|:)*:? "
    r"(?!to |when |how |what )(.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMIND = re.compile(
    rf"{_ASKING}(?:remind|tell) me (?!to |that )(.+?) (?:to|that) (.+)", re.IGNORECASE
)
_REMIND_AT = re.compile(
    rf"{_ASKING}remind me (?:to|that) (.+?) "
    r"((?:tomorrow|today|tonight|the day after|on|at|in|next|every) .+|tomorrow)",
    re.IGNORECASE,
)
_AND_MORE = re.compile(
    r"\b(?:and|then|also)\b.*"
    r"\b(?:every|remind|tomorrow|remember|at \d|in \w+ (?:minutes?|hours?|days?|weeks?)\b)",
    re.IGNORECASE,
)


def make_reminder_program(request: str, *, cancels: bool = False) -> str:
    """The program for a reminder or a fact whose words need no model; '' for all else. Its times
    are read later. `cancels`: it is known that it speaks of a reminder."""
    plain = _read_statement(request)
    if not plain or len(plain) > MAX_REMINDER_CHARS or re.search(r"[.!?] [A-Z]", plain):
        return ""
    if fact := _FACT.fullmatch(plain):
        return _make_fact_program(fact[1])

    when, what = _split_reminder(plain)
    if not when:
        drops = cancels or _REMINDER.search(plain)
        return _make_cancel_program(plain) if drops else ""
    if _AND_MORE.search(what):
        return ""
    if schedule := re.fullmatch(r"every (.+)", when, re.IGNORECASE):
        return f"every({schedule[1]!r}, {_format_sentence(what)!r})"
    return f"remind({when!r}, {_format_sentence(what)!r})"


def _read_statement(request: str) -> str:
    """The request in one line, without the sign that ends it. A question is one only if it asks
    politely, `can you`; else ''."""
    plain = " ".join(request.split()).rstrip(" .!")
    if not plain.endswith("?"):
        return plain
    if re.match(r"(?:can|could|would) you\b", plain, re.IGNORECASE):
        return plain[:-1]
    return ""


def _make_fact_program(fact: str) -> str:
    """The program that remembers a fact; '' where the words hold no fact, or another deed."""
    if fact.lower() in ("this", "that", "it") or _ANOTHER_DEED.search(fact):
        return ""
    return f"remember({_format_sentence(fact)!r})"


def _split_reminder(plain: str) -> tuple[str, str]:
    """When a person is to be reminded, and of what; '' for both where nothing is said of it."""
    if found := _REMIND.fullmatch(plain):
        return found[1], found[2]
    if found := _REMIND_AT.fullmatch(plain):
        return found[2], found[1]
    return "", ""


def _make_cancel_program(plain: str) -> str:
    """The program for a request that drops one reminder or all of them; '' where it wants something
    else as well."""
    clause = next((each for each in _CLAUSE.split(plain) if _CANCELS.match(each)), "")
    if not clause or _HELD_BACK.search(clause):
        return ""
    if _ANOTHER_DEED.search(plain) or "remind me" in plain.lower():
        return ""
    if _ALL_OF_THEM.fullmatch(clause):
        return "for line in reminders():\n    cancel(line)"
    several = re.search(r"\b(?:all|every|both|each|except|but)\b", clause, re.IGNORECASE)
    return "" if several else f"cancel({plain!r})"


def _format_sentence(text: str) -> str:
    text = text.strip(" .!,'\"")
    return f"{text[:1].upper()}{text[1:]}."
