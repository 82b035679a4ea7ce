"""The words in which people say a time, in English: numbers, days, months, hours and dates. One
reader for each."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date

import msgspec

from .errors import TimeUnclear

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}
_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth"),
    *("seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"),
)
_NUMBERS = {
    **{word: f"{n}" for n, word in enumerate(_ONES + _TEENS, 1)},
    **{word: f"{n}th" for n, word in enumerate(_ORDINALS, 1)},
    **{word: f"{ten}" for word, ten in _TENS.items()},
    **{
        f"{word} {one}": f"{ten + n}"
        for word, ten in _TENS.items()
        for n, one in enumerate(_ONES, 1)
    },
    **{
        f"{word} {nth}": f"{ten + n}th"
        for word, ten in _TENS.items()
        for n, nth in enumerate(_ORDINALS[:9], 1)
    },
}
_NUMBER = "|".join(sorted(_NUMBERS, key=len, reverse=True))

WEEKDAY_PATTERN = r"(mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nesday|rs|rsday|urday)?"
_MONTH = (
    "(" + "|".join(rf"{month[:3].lower()}(?:{month[3:].lower()})?" for month in MONTHS) + "|sept)"
)
UNIT_PATTERN = r"(?:seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w|months?)"
_AMOUNT = rf"\d{{1,5}}(?:\.\d{{1,3}})? ?{UNIT_PATTERN}"
AMOUNTS_PATTERN = rf"{_AMOUNT}(?:(?: and)? ?{_AMOUNT})*"
ORDINAL_PATTERN = r"(\d{1,2})(?:st|nd|rd|th)"
_NAMED_HOURS = {
    "noon": 12,
    "midday": 12,
    "lunchtime": 12,
    "lunch": 12,
    "end of the day": 18,
    "midnight": 24,
}
DAY_PARTS = {"morning": 9, "afternoon": 15, "evening": 19, "night": 21}
_FILLERS = frozenset(
    ["every", "at", "on", "the", "of", "in", "this", "by", "around", "about", "from", "starting"]
)
_CLOCK = (
    # `in 5` is nothing that one can know
    r"(?<!in )(?:(?<!from )(\d{1,2}) (?:minutes? )?(past|to) )?"
    r"(\d{1,2})(?:[:.](\d{2})(?::\d{2})?| ([0-5]\d))?(?: ?(am|pm))?"
)
_MAX_CHARS = 200

_SPELLINGS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"\b([ap])\.? ?m\b\.?", r"\1m"),
    (r"\bo\W?clock\b|\bplease\b|\bsharp\b", " "),
    (r"\bmon(?:day)? ?(?:-|\u2013|to|through) ?fri(?:day)?\b", "every weekday"),
    (r"(?<=[a-z])[-\u2013](?=[a-z])", " "),
    (r"(?<=\d)t(?=\d)", " "),
    (r"(?<!\d)\.|\.(?!\d)|[,;!?]", " "),
    ("&", " and "),
    ("@", " at "),
    (r"['\u2019]s? time\b", ""),
    (r"\bin (?:about|around)\b", "in"),
    (r"\btmrw\b", "tomorrow"),
    (r"\b(?:a )?fortnight\b", "2 weeks"),
    (r"\b(every|each|an?) second$", r"\1 seconds"),  # not the ordinal
    (rf"\b(?:{_NUMBER})\b", lambda found: _NUMBERS[found[0]]),
    (r"\b(?:each|once (?:an?|per|every))\b", "every"),
    (r"\beveryday\b|\bdaily\b", "every day"),
    (
        r"\b(week|month|year|hour|night)ly\b|\bannually\b",
        lambda found: f"every {found[1] or 'year'}",
    ),
    (r"\b(?:working|business|work) ?day", "weekday"),
    (
        (
            r"(?<!\d "
            r")\b((?:mon|tues|wednes|thurs|fri|satur|sun|week)day|weekend|morning|afternoon|evening)s\b"
        ),
        r"every \1",
    ),
    (r"\btonight\b", "today night"),
    (r"\bthis (?=morning|afternoon|evening)", "today "),
    (r"\bhalf past\b", "30 past"),
    (r"\b(?:a )?quarter (?=past|to)", "15 "),
    (r"\b(?:a )?couple (?:of )?", "2 "),
    (r"\b3 quarters of an hour\b", "45 minutes"),
    (r"\b(?:a )?quarter (?:of an )?hour\b", "15 minutes"),
    (r"\bhalf (?:an )?hour\b", "30 minutes"),
    (rf"\ban?(?= {UNIT_PATTERN}\b)", "1"),
    (r"\b(\d+) (hours?) and a half\b", r"\1.5 \2"),
    (r"\b(\d+) and a half (?=hours?\b)", r"\1.5 "),
    (r"\bevery (?:every |1 )+", "every "),
)


def normalize_words(said: str) -> str:
    """In small letters, with numbers in digits, and one word for what has several: `every` for
    each, daily, Mondays."""
    text = " ".join(said.lower().split())
    for pattern, spelling in _SPELLINGS:
        text = re.sub(pattern, spelling, text)
    return " ".join(text.split())


class Words:
    """A sentence in plain words. Each reader takes what it knows, and nothing may be left."""

    def __init__(self, said: str, examples: str) -> None:
        self._said = " ".join(said.split())
        self._examples = examples
        if len(self._said) > _MAX_CHARS:
            raise self.make_error("is too long for a time")
        self._left = normalize_words(self._said)

    def take(self, pattern: str) -> re.Match[str] | None:
        """The first place where this stands as words of its own; it is not there any more for other
        readers."""
        found = re.search(rf"(?<![\w:./-])(?:{pattern})(?![\w:/]|[.-]\d)", self._left)
        if found:
            self._left = f"{self._left[: found.start()]}|{self._left[found.end() :]}"
        return found

    def finish(self) -> None:
        """Raises TimeUnclear if something is left that nobody could read."""
        left = " ".join(
            word for word in self._left.replace("|", " ").split() if word not in _FILLERS
        )
        if left:
            raise self.make_error(f"cannot be read: {left!r} is not part of a time")

    def make_error(self, why: str) -> TimeUnclear:
        return TimeUnclear(f"{self._said[:80]!r} {why}. Write a time such as {self._examples}")


class SpokenTime(msgspec.Struct, frozen=True):
    """A time of the day as it was said, in minutes from midnight."""

    minutes: int
    half_known: bool
    """Whether the half of the day is known: by am, pm, a zero in front or an hour above 12."""
    written: bool
    """With minutes, as on a clock."""

    def resolve_minutes(self, part: str) -> int:
        """Minutes from the midnight with which its day begins; 24 hours and more in the night after
        it."""
        if part == "night" and self.minutes < 5 * 60:
            return self.minutes + 24 * 60
        if self.half_known or part == "morning":
            return self.minutes
        later = (
            self.minutes < 13 * 60 if part == "night" else self.minutes < (12 if part else 7) * 60
        )
        return self.minutes + 12 * 60 if later and (part or not self.written) else self.minutes


def take_clock(words: Words) -> SpokenTime | None:
    if found := words.take("(?:12 )?(" + "|".join(_NAMED_HOURS) + ")"):
        return SpokenTime(_NAMED_HOURS[found[1]] * 60, half_known=True, written=True)
    found = words.take(_CLOCK)
    if not found:
        return None

    hour = int(found[3])
    minute = int(found[4] or found[5] or 0)
    half = found[6]
    if minute > 59 or hour * 60 + minute > 24 * 60 or (half and not 1 <= hour <= 12):
        raise words.make_error(f"names a time that no clock shows: {found[0]!r}")
    known = bool(half) or not 1 <= hour <= 12 or found[3].startswith("0")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    minutes = hour * 60 + minute
    if found[1]:
        minutes += int(found[1]) if found[2] == "past" else -int(found[1])
    if minutes < 60 and not known:  # a quarter to one
        minutes += 12 * 60
    return SpokenTime(
        minutes % (24 * 60) if found[1] else minutes, half_known=known, written=found[4] is not None
    )


def take_day_part(words: Words) -> str:
    found = words.take("|".join(DAY_PARTS))
    return found[0] if found else ""


def take_date(words: Words) -> tuple[int | None, int, int] | None:
    """Year (where it is said), month and day."""
    if found := words.take(r"(\d{4})-(\d{1,2})-(\d{1,2})"):
        return int(found[1]), int(found[2]), int(found[3])
    if found := words.take(
        r"(?<!at )(?<!around )(?<!about )(\d{1,2})\.(0?[1-9]|1[0-2])(?:\.(\d{4}|\d{2}))?"
    ):
        return _parse_year(found[3]), int(found[2]), int(found[1])
    if found := words.take(r"(\d{1,2})/(\d{1,2})(?:/(\d{4}|\d{2}))?"):
        low, high = sorted((int(found[1]), int(found[2])))
        if low != high <= 12:
            raise words.make_error("can be one of two days: name the month")
        return _parse_year(found[3]), low, high
    if found := words.take(rf"(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?: (\d{{4}}))?"):
        return _parse_year(found[3]), _month_number(found[2]), int(found[1])
    if found := words.take(rf"{_MONTH} (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?: (\d{{4}}))?"):
        return _parse_year(found[3]), _month_number(found[1]), int(found[2])
    return None


def take_dates(words: Words, today: date) -> list[date]:
    """The dates that can be meant, the nearest first; none where no date is named."""
    if named := take_date(words):
        year, month, day = named
        months = [(y, month) for y in ([year] if year else range(today.year, today.year + 9))]
    else:
        later = words.take("(?:of )?next month")
        nth = words.take(rf"(?:the )?{ORDINAL_PATTERN}(?: of (?:the|this) month)?")
        if not (later or nth):
            return []
        day = int(nth[1]) if nth else 1
        first = today.year * 12 + today.month - 1
        months = [
            (n // 12, n % 12 + 1) for n in ([first + 1] if later else range(first, first + 13))
        ]

    known = [(y, m) for y, m in months if 1970 <= y < 2100 and 1 <= m <= 12]
    days = [date(y, m, day) for y, m in known if 1 <= day <= monthrange(y, m)[1]]
    if not days:
        raise words.make_error("names a day that does not exist")
    return days


def weekday_index(name: str) -> int:
    return [weekday[:3].lower() for weekday in WEEKDAYS].index(name)


def _month_number(name: str) -> int:
    return [month[:3].lower() for month in MONTHS].index(name[:3]) + 1


def _parse_year(said: str | None) -> int | None:
    return None if said is None else int(said) + (2000 if len(said) == 2 else 0)
