"""What stands in files, as values: numbers with thousands, cells of a table, dates as people write
them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

_SHORT_YEAR_DIGITS = 2
_MIN_PHONE_DIGITS = 7
_DAY_MINUTES = 1440


class Stop(Exception):
    """The program ends here, with a sentence for the person. Nothing of it is kept."""


class Number(float):
    """A number that adds as people do: without what binary fractions leave behind, and written
    without it."""

    __slots__ = ()

    def _calculate(self, other: Any, act: Callable[[float, float], float]) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        return Number(round(act(float(self), float(other)), 10))

    def __add__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: b + a)

    def __sub__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a / b)

    def __floordiv__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a % b)

    def __neg__(self) -> Number:
        return Number(-float(self))

    def __abs__(self) -> Number:
        return Number(abs(float(self)))

    def __str__(self) -> str:
        return str(round_number(self)) if math.isfinite(self) else "nan"

    def __repr__(self) -> str:
        return str(self)

    def __format__(self, form: str) -> str:
        if form[-1:] == "d":
            return format(int(self), form)
        return float.__format__(self, form) if form else str(self)


def number(value: object) -> Number:
    """The number in a text such as `1,234.50 €`; of an empty one none that compares or counts
    (NaN). Raises ValueError where there is none."""
    if not str(value).strip(" -\u2013"):
        return Number(math.nan)
    found = parse_number(value)
    if found is None:
        raise ValueError(f"{str(value)!r} is no number")
    return Number(found)


def parse_number(value: object) -> float | None:
    """The number that a text is, with its sign, thousands and a unit behind or in front; None for
    anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    text = (
        str(value)
        .strip()
        .strip("$\u20ac\u00a3% \u00a0")
        .removesuffix("EUR")
        .removesuffix("USD")
        .strip()
    )
    text = text.replace("\u2212", "-").replace("\u00a0", " ")
    if _PLAIN.fullmatch(text):
        return float(text.replace(",", "."))
    for thousands, decimal in _SEPARATORS:
        whole = rf"[-+]?[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+"
        fraction = rf"(?:{re.escape(decimal)}\d+)?"
        if re.fullmatch(whole + fraction, text):
            return float(text.replace(thousands, "").replace(decimal, "."))
    return None


_PLAIN = re.compile(
    r"""
      [-+]? \d+ (?: \.\d+ )?
    | [-+]?
      (?:                 # a comma before what cannot be thousands
          \d+ , \d{1,2}
        | 0 , \d+
        | \d+ , \d{4,}
      )
    """,
    re.VERBOSE,
)
_SEPARATORS = ((",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("'", ","))
"""What stands between thousands and before a fraction, as people write it."""


def round_number(value: float) -> float | int:
    """A sum without what binary fractions add to it."""
    rounded = round(float(value), 10)
    return int(rounded) if rounded == int(rounded) else rounded


class TextValue(str):
    """Text of a file: what is looked for in it in small letters is found whatever its case."""

    __slots__ = ()

    def __contains__(self, key: object) -> bool:
        text = str(key)
        return text in (self.lower() if text == text.lower() else str(self))


class Cell(TextValue):
    """A value of a table: text that compares and adds as a number where it is one."""

    __slots__ = ()

    def _comparable_pair(self, other: object) -> tuple[Any, Any] | None:
        """Both as numbers, as dates or as texts; None where they cannot be compared."""
        mine = parse_number(self)
        theirs = parse_number(other)
        if mine is not None and theirs is not None:
            return mine, theirs
        if not isinstance(other, str):
            return None
        my_dates = dates(self)
        their_dates = dates(other)
        if my_dates and their_dates:
            return my_dates[0], their_dates[0]
        return str(self), str(other)

    def _calculate(self, other: object, act: Callable[[float, float], float]) -> Any:
        mine = parse_number(self)
        theirs = parse_number(other)
        if mine is None:
            raise ValueError(f"{str(self)!r} is no number")
        if theirs is None:
            raise ValueError(f"{str(other)!r} is no number")
        return round_number(act(mine, theirs))

    def __lt__(self, other: object) -> bool:
        pair = self._comparable_pair(other)
        return pair is not None and bool(pair[0] < pair[1])

    def __gt__(self, other: object) -> bool:
        pair = self._comparable_pair(other)
        return pair is not None and bool(pair[0] > pair[1])

    def __le__(self, other: object) -> bool:
        return self < other or self == other

    def __ge__(self, other: object) -> bool:
        return self > other or self == other

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return str(self) == str(other)
        return other is not None and parse_number(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __add__(self, other: object) -> Any:
        if isinstance(other, str) and (parse_number(self) is None or parse_number(other) is None):
            return str(self) + str(other)
        return self._calculate(other, lambda a, b: a + b)

    def __radd__(self, other: object) -> Any:
        if isinstance(other, str):
            return str(other) + str(self)
        return self._calculate(other, lambda a, b: b + a)

    def __sub__(self, other: object) -> Any:
        return self._calculate(other, lambda a, b: a - b)

    def __rsub__(self, other: object) -> Any:
        return self._calculate(other, lambda a, b: b - a)

    def __mul__(self, other: object) -> Any:
        return self._calculate(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        return self._calculate(other, lambda a, b: a / b)

    def __float__(self) -> float:
        if not self:
            raise ValueError("a value is empty where a number is needed")
        found = parse_number(self)
        if found is None:
            raise ValueError(f"{str(self)!r} is no number")
        return found

    def __int__(self) -> int:
        return int(float(self))

    def __format__(self, form: str) -> str:
        if form[-1:] in tuple("fdeg%"):
            return format(int(self) if form[-1:] == "d" else float(self), form)
        return format(str(self), form)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DOTTED = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2})\b(?!\.\d)")
_SLASHED = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})\b(?!/)")
_NAMED = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\.? (?:of )?([A-Za-z]{3,9})\.?,? (\d{4})\b")
_NAMED_FIRST = re.compile(r"\b([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b")


def date_of(value: object) -> date:
    """The first date in a text: 2025-05-03, 3.5.2025, 3 May 2025, May 3, 2025, 5/3/2025. Raises
    Stop for none."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    found = dates(str(value))
    if not found:
        raise Stop(f"{str(value)[:60]!r} is no date")
    return found[0]


def next_day(value: object, today: date) -> date:
    """When a day comes next: a date that is still to come as it is, else the next one of that month
    and day, which may be written without a year (`03-19`, `19.3.`, `19 March`). Raises Stop for
    none."""
    found = _MONTH_DAY.fullmatch(str(value).strip())
    if found:
        month = int(found["month"] or found["dotted_month"])
        day = int(found["day"] or found["dotted_day"])
    else:
        whole = date_of(value)
        if whole >= today:
            return whole
        month = whole.month
        day = whole.day
    for year in range(today.year, today.year + 9):
        try:
            coming = date(year, month, day)
        except ValueError:
            continue
        if coming >= today:
            return coming
    raise Stop(f"{str(value)[:60]!r} is no date")


_MONTH_DAY = re.compile(
    r"""
      (?P<month>\d{1,2}) - (?P<day>\d{1,2})
    | (?P<dotted_day>\d{1,2}) \. (?P<dotted_month>\d{1,2}) \.?
    """,
    re.VERBOSE,
)


def dates(text: str) -> list[date]:
    """All dates in a text, as they stand."""
    found: list[tuple[int, date]] = []
    for pattern, order in (
        (_ISO, "ymd"),
        (_DOTTED, "dmy"),
        (_SLASHED, "mdy"),
        (_NAMED, "dmy"),
        (_NAMED_FIRST, "mdy"),
    ):
        for match in pattern.finditer(text):
            given = dict(zip(order, match.groups(), strict=True))
            month = given["m"] if given["m"].isdigit() else str(_month_number(given["m"]))
            year = int(given["y"]) + (2000 if len(given["y"]) == _SHORT_YEAR_DIGITS else 0)
            try:
                found.append((match.start(), date(year, int(month), int(given["d"]))))
            except ValueError:
                continue
    return [day for _, day in sorted(found)]


def time_of(text: object) -> str:
    """The first time of day in a text (14:30, 2:30 pm, 5pm), as HH:MM, which can be compared.
    Raises Stop for none."""
    found = _TIME.search(str(text).lower())
    if not found:
        raise Stop(f"{str(text)[:60]!r} holds no time")
    hour = int(found["hour"] or found["bare_hour"])
    half = found["half"] or found["bare_half"]
    if half:
        hour = hour % 12 + 12 * (half == "p")
    return f"{hour:02}:{found['minute'] or '00'}"


_TIME = re.compile(
    r"""
      (?<! [\d:] )
      (?P<hour> [01]?\d | 2[0-3] ) : (?P<minute> [0-5]\d )
      (?: :\d\d )?                           # seconds
      (?: [ ]? (?P<half> [ap] ) \.?m )?      # am, p.m
      (?! \d )
    | \b (?P<bare_hour> 1[0-2] | [1-9] )     # 5pm
      [ ]? (?P<bare_half> [ap] ) \.?m \b
    """,
    re.VERBOSE,
)


def minutes_between(start: object, end: object) -> Number:
    """The minutes from one time to another, which may have dates in front. Raises Stop for none."""
    moments = []
    for text in (str(start), str(end)):
        hour, minute = map(int, time_of(text).split(":"))
        found = dates(text)
        moments.append((found[0].toordinal() if found else 0, hour * 60 + minute))
    (first_day, begins), (last_day, ends) = moments
    passed = ends - begins
    if first_day and last_day:
        passed += (last_day - first_day) * _DAY_MINUTES
        if passed < 0:
            raise ValueError(f"{str(end)[:30]!r} is before {str(start)[:30]!r}")
    elif passed < 0:  # past midnight
        passed += _DAY_MINUTES
    return Number(passed)


def _month_number(name: str) -> int:
    short = name[:3].lower()
    return _MONTHS.index(short) + 1 if short in _MONTHS else 0


_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_LINK = re.compile(r"https?://[^\s\"'<>)\]]+")
_PHONE = re.compile(
    r"""
    (?<! [\w.,-] )
    (?:
        \+                                  # +49 ...
      | \(?0                                # 030 ..., (030 ...
      | \(? \d{2,5} \)? [ /-] (?=\d)        # 555 ..., (555)-...
    )
    [\d ()/-]{5,} \d
    (?! [\w-] )
    """,
    re.VERBOSE,
)


def emails(text: str) -> list[str]:
    """The mail addresses in a text, each once."""
    return unique(_MAIL.findall(text))


def links(text: str) -> list[str]:
    """The addresses of pages in a text, each once."""
    return unique([link.rstrip(".,;:!?") for link in _LINK.findall(text)])


def phones(text: str) -> list[str]:
    """The telephone numbers in a text, each once; dates are none."""
    without_dates = _DOTTED.sub("|", _ISO.sub("|", text))
    found = list[str]()
    for match in _PHONE.findall(without_dates):
        digits = sum(map(str.isdigit, match))
        if digits >= _MIN_PHONE_DIGITS:
            found.append(match.strip())
    return unique(found)


def unique(items: Any, by: Any = "", *, last: bool = False) -> list[Any]:
    """Without what stands there twice, or rows without those that have the same `by` twice: a
    column, or a function. The first of each is kept, or the `last`."""
    found = list(items)
    if last:
        return unique(reversed(found), by)[::-1]
    kept = []
    seen = set()
    for item in found:
        key = _unique_key(item, by)
        if key not in seen:
            seen.add(key)
            kept.append(item)
    return kept


def _unique_key(item: Any, by: Any) -> Any:
    """What `unique` compares, as something that a set can hold."""
    if callable(by):
        value = by(item)
    elif by and isinstance(item, dict):
        value = item[by]
    else:
        value = item

    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value
