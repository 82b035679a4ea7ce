"""What the words of a request tell without a model: what it is for, and what it speaks of. Pure."""

from __future__ import annotations

import re

from ..types.programs import SURVEY
from .shim_prompts import Word
from .shim_turn import Turn

URL = re.compile(r"https?://\S+")
TAKE_BACK = re.compile(
    r"(please )?((undo|revert)( (that|this|it|the last change|your last change))?|take (that|it|this) back)"
    r"( please)?[.!]*"
)
_CLAUSE = re.compile(r"[.!?;:,]\s+")


def takes_back(request: str) -> bool:
    """Whether it asks for the latest change to be undone, with its last words at least."""
    last = _CLAUSE.split(" ".join(request.lower().split()).rstrip(" .!?"))[-1]
    return bool(TAKE_BACK.fullmatch(last.removeprefix("so ").removeprefix("and ").strip()))


_SELF = re.compile(
    r"(hi|hello|hey)?[,! ]*(what (all )?(can|do) you do|who are you|what are you|how can you help( me)?|help)"
    r"( (exactly|now|here|for me))?"
)
_ABOUT_US = re.compile(
    r"\bwhat (can|could|should|may) (i|we) ask you\b|\bwhat (kinds? of )?(things )?(can|could) you (all )?(do|help)\b"
    r"[^,;]{0,30}$|\bwhat('s| is) your name\b|\bwhat (are you|you are|you're) good (for|at)\b"
)
ASSIST = re.compile(
    r"((please|can you|could you|hey|and|also|then|ok|now|oh),? )*"
    r"(remind me\b|set (me )?(a|an) (reminder|alarm)|wake me\b|every "
    r"(other )?(day|week|month|hour|morning|evening|night|weekday|mon|tues|wednes|thurs|fri|satur|sun|\d+)"
    r"|cancel\b|remember (that|this|:|my|i )|(cancel|delete|remove|stop|list|show) (all |the |my |me )*(reminder|alarm)"
    r"|what (did|have) you (just )?(change|do)|forget (that|what|my|about)|undo\b)"
)
_BEYOND = re.compile(
    r"((please|can you|could you|hey),? )*"
    r"(book|buy|order|reserve|purchase)( me| us)? (a|an|the|some|two|three|\d+|my) \w+"
)
"""What nobody can do from here."""


def obvious(request: str) -> Word | None:
    """The word for a request that needs no model to be sorted."""
    plain = " ".join(request.lower().split())
    if _SELF.fullmatch(plain.rstrip("?!. ")) or (_ABOUT_US.search(plain.rstrip("?!. ")) and not NAMED.search(plain)):
        return "self"
    if ASSIST.match(plain) or takes_back(request):
        return "assist"
    if _BEYOND.match(plain) and not NAMED.search(plain):
        return "talk"
    reads = URL.search(plain) and not NAMED.search(URL.sub("", plain)) and not CHANGE.search(plain)
    return "read" if reads else None


def questions_in(request: str) -> list[str]:
    """The questions of a request, where it asks two or three that stand on their own; else the request as it is."""
    asked = request[: request.find("?") + 1]
    parts = [part.strip(" ,") for part in _AND_ASKS.split(asked) if part.strip(" ,")]
    whole = request.count("?") == 1 and all(len(part.split()) >= LEAST_WORDS for part in parts)
    return parts if 1 < len(parts) <= MOST_QUESTIONS and whole else [request]


LEAST_WORDS, MOST_QUESTIONS = 4, 3
_AND_ASKS = re.compile(
    r",? and (?=(?:what|who|which|where|why|how|whose|when (?:is|are|was|were|do|does|did|will|can)|until when)\b)",
    re.IGNORECASE,
)


def goes_on(turn: Turn) -> bool:
    """Whether a request without a file speaks of the reminders that were spoken of just before."""
    said = " ".join(text for role, text in turn.earlier[-4:] if role == "assistant")
    return bool(_OF_REMINDERS.search(said) and _DROPS.search(turn.request) and not NAMED.search(turn.request))


_OF_REMINDERS = re.compile(r"\bremind(er)?s?\b|\bI will (say|tell)\b", re.IGNORECASE)
_DROPS = re.compile(
    r"\b(cancel|drop|delete|remove|stop|skip|forget|scrap)\b.*\b(it|that|this|one|those|them|all)\b", re.I
)


CHANGE = re.compile(
    r"\b(write|save|create|make|add|append|put|insert|remove|delete|drop|rename|move|copy|replace|change|set|update|fix"
    r"|sort|convert|turn|edit|merge|split|clean|organi[sz]e|tidy|mark|cross|tick|strike|correct|translate|pack"
    r"|zip|archive|export|extract|dedupe|deduplicate|empty|clear|build|generate|prepend|swap|throw|tick|untick|reorder"
    r"|shorten|(take|leave|cut|pull) (it|them|those|that|the|every|all|out|off|only)|bring .* into)\b",
    re.IGNORECASE,
)
QUESTION = re.compile(
    r"\?\s*$|^\W*when (is|are|was|were|do|does|did|will|can)\b"
    r"|^\W*((please|can|could|would|will) )*(you )?(please )?"
    r"(how|what|whats|which|who|whose|where|why|is|are|was|were|does|do|did|has|have|tell"
    r"|show|count|list|find|give|calculate|compute|sum|add up|run|execute|search|check|look|read|say|explain|compare"
    r"|summari[sz]e|print)\b",
    re.IGNORECASE,
)
ORDER = re.compile(
    r"\b(sort|order|rank|first|last|top|newest|oldest|latest|alphabet|ascend|descend|cheap|revers)", re.I
)
ONLY = re.compile(r"\b(do not|don't|dont|without) (chang|writ|touch|sav|edit|modif)\w*|\bonly (tell|say|show)\b", re.I)


def changes_wanted(turn: Turn) -> bool:
    """Whether the request may change files: the model's word says so, or a verb of the request."""
    first = turn.did[0].move
    if first.tool != SURVEY:
        return True
    if ONLY.search(turn.request):
        return False
    new = [name for name in NAMED.findall(turn.request.lower()) if name not in turn.did[0].result.lower()]
    asked = first.arguments.get("purpose") == "change" or bool(new or CHANGE.search(turn.request))
    return asked or not QUESTION.search(turn.request)


FREE = re.compile(r"\b(fix|correct|typo|spell|translat|improv|bug|mend|rewrite|rephrase|shorten|repair|wrong)", re.I)
SMALL = frozenset(("the", "a", "an", "to", "of", "in", "by", "and", "is", "with", "my", "for", "at", "on", "it"))


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


ALL = re.compile(
    r"\b(all|every|each|both|any) (of )?(my |the |these |those )?(\w+ )?(files?|texts?|notes?|letters?)\b", re.I
)
TABLES = re.compile(r"\b[\w-]+\.(?:csv|tsv|json|log)\b", re.IGNORECASE)
"""Files in which something is looked up by a program, and not by reading them."""
NAMED = re.compile(r"\b[\w-]+\.(?:txt|md|csv|json|py|ini|toml|ya?ml|html|log|zip|gz|xml|tsv|sh|cfg)\b")


SHORT_CHARS = 300
_CANCELS = re.compile(r"\b(cancel|drop|delete|remove|stop|skip|scrap)\b", re.IGNORECASE)
_REMINDER = re.compile(r"\b(reminders?|alarms?)\b", re.IGNORECASE)
_ASKING = r"(?:(?:please|can you|could you|hey|hi|and|also|then|ok|okay|now|oh|pls|just),? +)*"
_FACT = re.compile(
    rf"{_ASKING}(?:remember|keep in mind|note)(?: also)?(?: for me)?(?:,? that|,? this|:)*:? "
    r"(?!to |when |how |what )(.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMIND = re.compile(rf"{_ASKING}(?:remind|tell) me (?!to |that )(.+?) (?:to|that) (.+)", re.IGNORECASE)
_REMIND_AT = re.compile(
    rf"{_ASKING}remind me (?:to|that) (.+?) ((?:tomorrow|today|tonight|the day after|on|at|in|next|every) .+|tomorrow)",
    re.IGNORECASE,
)
_AND_MORE = re.compile(r"\b(?:and|then|also)\b.*\b(?:every|remind|tomorrow|remember|at \d)", re.IGNORECASE)


def program_said(request: str, *, cancels: bool = False) -> str:
    """The program for a reminder or a fact whose words need no model; '' for all else. Its times are read later.
    `cancels`: it is known that it speaks of a reminder."""
    plain = " ".join(request.split()).rstrip(" .!")
    if plain.endswith("?"):
        plain = plain[:-1] if re.match(r"(?:can|could|would) you\b", plain, re.IGNORECASE) else ""
    if not plain or len(plain) > SHORT_CHARS or re.search(r"[.!?] [A-Z]", plain):
        return ""
    if found := _FACT.fullmatch(plain):
        return f"remember({_sentence(found[1])!r})"
    when, what = "", ""
    if found := _REMIND.fullmatch(plain):
        when, what = found[1], found[2]
    elif found := _REMIND_AT.fullmatch(plain):
        when, what = found[2], found[1]
    if (
        not when
        and _CANCELS.search(plain)
        and (cancels or _REMINDER.search(plain))
        and "remind me" not in plain.lower()
    ):
        every = re.search(r"\b(all|both|every)\b.*\b(reminders|alarms|them)\b", plain, re.IGNORECASE)
        return "for line in reminders():\n    cancel(line)" if every else f"cancel({plain!r})"
    if not when or _AND_MORE.search(what):
        return ""
    if every := re.fullmatch(r"every (.+)", when, re.IGNORECASE):
        return f"every({every[1]!r}, {_sentence(what)!r})"
    return f"remind({when!r}, {_sentence(what)!r})"


def _sentence(text: str) -> str:
    text = text.strip(" .!,'\"")
    return f"{text[:1].upper()}{text[1:]}."
