"""What Deskhand says in whole sentences, in another language. They are written in English, and what
is filled into them is only known to who wrote them: a sentence is recognised by what stands around
that, as `js/server-texts.js` does it on the page.

No regular expression looks for it: the fixed pieces of a text are looked for one after the other,
so that no sentence takes longer than its length allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter

import msgspec

from .catalogue import ENGLISH, Language, find_language

MAX_DEPTH = 4
MAX_SENTENCES = 12
"""A line of more is said sentence by sentence."""
_EDGE_CHARS = 3
"""Templates are looked up by so many characters at the beginning of a text, or at its end."""
_JOINTS = ("; ", " · ")
"""Between sentences that were joined."""
_INNER_JOINTS = (*_JOINTS, ", ")
"""Between those that are named in one."""
_THROUGH = "{first_days} through {last_days}"
_PLACE = re.compile(r"\{(\w+)\}")
_INDENT = re.compile(r"\s*(?:[•*-] )?")
_SENTENCE_END = re.compile(r"(?<=[.!?”]) (?=[A-ZÄÖÜ/“])")
_LIST = re.compile(r", and |, | and ")
_FIGURE = re.compile(r"[\d,]+(?:\.\d+)?")
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d:\d\d)")
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)

_SHAPES = {
    kind: re.compile(shape)
    for kind, shape in {
        "number": r"\d[\d,]*(?:\.\d+)?[kM]?",
        "size": r"\d[\d,]*(?:\.\d+)? ?[kMG]?B",
        "time": _TIME.pattern,
        "numbers": r"\d+(?:(?:, and|,| and) \d+)*",
        "ordinal": r"(?:fir|seco|thi|four|fif|six|seven|eigh|nin)(?:st|nd|rd|th)|\d+th",
        "clocks": r"\d\d:\d\d(?::\d\d)?(?:(?:,| and|, and) \d\d:\d\d(?::\d\d)?)*",
        "days": r"(?:(?:, and|,| and| through|^) ?(?:Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)day)+",
        "name": r"\S+",
        "code": r"`[^`\n]+`",
        "month": "|".join(_MONTHS),
    }.items()
}
"""What a value is, by the last word of its name: a value of another shape does not fit there."""


class _Template(msgspec.Struct, frozen=True):
    """A text as its fixed pieces, and the names of what stands between them."""

    text: str
    pieces: tuple[str, ...]
    names: tuple[str, ...]
    fixed_chars: int

    def match(self, text: str) -> dict[str, str] | None:
        """What the text has in its places, by name; None where it is another sentence."""
        first, *others = self.pieces
        if not text.startswith(first) or not text.endswith(others[-1]):
            return None
        end = len(text) - len(others[-1])
        at = len(first)
        values: dict[str, str] = {}
        for name, piece in zip(self.names, others, strict=True):
            after = end if len(values) == len(self.names) - 1 else text.find(piece, at)
            value = text[at:after] if at <= after <= end else ""
            if not value or "\n" in value or not _fits(name, value):
                return None
            values[name] = value
            at = after + len(piece)
        return values


class _Templates:
    """The templates that a text can be, without a look at each of them."""

    def __init__(self, templates: Sequence[_Template]) -> None:
        self._by_edge: dict[tuple[str, str], list[tuple[int, _Template]]] = {}
        longest_first = sorted(templates, key=lambda each: -each.fixed_chars)
        for place, template in enumerate(longest_first):
            edge = _edge_of(template)
            self._by_edge.setdefault(edge, []).append((place, template))

    def find(self, text: str) -> list[_Template]:
        """Those with the most words of their own come first."""
        edges = ((text[:_EDGE_CHARS], ""), ("", text[-_EDGE_CHARS:]), ("", ""))
        found = [
            each
            for edge in edges
            for each in self._by_edge.get(edge, ())
            if each[1].fixed_chars < len(text)
        ]
        return [template for _, template in sorted(found, key=itemgetter(0))]


def _edge_of(template: _Template) -> tuple[str, str]:
    """How each text of this template begins; where that is open, how it ends."""
    first, last = template.pieces[0], template.pieces[-1]
    if len(first) >= _EDGE_CHARS:
        return first[:_EDGE_CHARS], ""
    if len(last) >= _EDGE_CHARS:
        return "", last[-_EDGE_CHARS:]
    return "", ""


def say_notice(text: str, language: str) -> str:
    """What Deskhand itself has written to somebody, in the language of this code: all of it, or
    line by line what is known of it. What is not known stays as it is."""
    translator = _translator(language) if language and text else None
    return translator.say_notice(text) if translator is not None else text


class _Translator:
    def __init__(self, language: Language) -> None:
        self._formats = language.formats
        self._texts = {text: said for text, said in language.sentences.items() if said}
        templates = [_read_template(text) for text in self._texts if "{" in text]
        self._templates = _Templates(templates)
        self._through = language.say(_THROUGH)
        self.say_notice = lru_cache(500)(self._say_notice)
        self._forms: dict[str, Callable[[str, int], str]] = {
            "text": lambda value, depth: self._say(value, depth + 1),
            "ordinal": lambda value, depth: self._say(value, depth + 1),
            "numbers": lambda value, depth: self._join(value, str),
            "number": lambda value, depth: self._format_number(value),
            "size": lambda value, depth: self._format_number(value),
            "time": lambda value, depth: self._format_time(value),
            "clocks": lambda value, depth: self._join(value, str),
            "days": lambda value, depth: self._join(value, self._name_day),
            "month": lambda value, depth: _rename(value, _MONTHS, self._formats.months),
        }

    def _say_notice(self, text: str) -> str:
        if (whole := self._find(text, 0, in_one=True)) is not None:
            return whole
        return "\n".join(map(self._say_line, text.split("\n")))

    def _say_line(self, line: str) -> str:
        indent = _INDENT.match(line)
        start = indent[0] if indent else ""
        sentences = _SENTENCE_END.split(line[len(start) :])
        longest = len(sentences) if len(sentences) <= MAX_SENTENCES else 1
        said = []
        while sentences:
            count, found = self._find_longest(sentences[:longest])
            said.append(found)
            del sentences[:count]
        return start + " ".join(said)

    def _find_longest(self, sentences: Sequence[str]) -> tuple[int, str]:
        """How many of these are known together, the most, and what they are. What is filled into
        them may hold a sentence of its own only where nothing else fits."""
        for in_one, least in ((True, 1), (False, 2)):  # `_say` looks for one alone below
            for count in range(len(sentences), least - 1, -1):
                found = self._find(" ".join(sentences[:count]), 0, in_one=in_one)
                if found is not None:
                    return count, found
        said = self._say(sentences[0], 0)
        return 1, said if said != sentences[0] else self._say_sentence(sentences[0])

    def _find(self, text: str, depth: int, *, in_one: bool = False) -> str | None:
        """The text in this language; None where it is not known as a whole. With `in_one`, no value
        of it goes over the end of a sentence."""
        if text in self._texts:
            return self._texts[text]
        if not text:
            return None
        for template in self._templates.find(text):
            values = template.match(text)
            if values is not None and not (in_one and _has_sentences(values)):
                said = {name: self._form(name, value, depth) for name, value in values.items()}
                return _fill(self._texts[template.text], said)
        return None

    def _say_sentence(self, text: str) -> str:
        """A fragment of which somebody has made a sentence: with a capital letter, and a full
        stop."""
        plain = (text[:1].lower() + text[1:]).removesuffix(".")
        said = self._find(plain, 0)
        return f"{said[0].upper()}{said[1:]}." if said else text

    def _say(self, text: str, depth: int) -> str:
        if depth > MAX_DEPTH:
            return text
        said = self._find(text, depth)
        if said is not None:
            return said
        joint = next((each for each in (_INNER_JOINTS if depth else _JOINTS) if each in text), "")
        if not joint:
            return text
        return joint.join(self._say(part, depth + 1) for part in text.split(joint))

    def _form(self, name: str, value: str, depth: int) -> str:
        form = self._forms.get(_kind_of(name))
        return form(value, depth) if form is not None else value

    def _join(self, value: str, say: Callable[[str], str]) -> str:
        *first, last = map(say, _LIST.split(value))
        and_ = f" {self._formats.last} " if self._formats.last else " and "
        return f"{', '.join(first)}{and_}{last}" if first else last

    def _format_number(self, value: str) -> str:
        formats = self._formats
        separators = str.maketrans({",": formats.group, ".": formats.decimal})
        return _FIGURE.sub(lambda figure: figure[0].translate(separators), value, count=1)

    def _format_time(self, value: str) -> str:
        found = _TIME.fullmatch(value)
        if found is None or not self._formats.time:
            return value
        year, month, day, clock = found.groups()
        return self._formats.time.format(year=year, month=month, day=day, clock=clock)

    def _name_day(self, value: str) -> str:
        first, through, last = value.partition(" through ")
        if through:
            named = {"first_days": self._name_day(first), "last_days": self._name_day(last)}
            return self._through.format(**named)
        return _rename(value, _WEEKDAYS, self._formats.weekdays)


@lru_cache(100)
def _translator(code: str) -> _Translator | None:
    language = find_language(code)
    return None if language is None or language is ENGLISH else _Translator(language)


def _read_template(text: str) -> _Template:
    parts = _PLACE.split(text)
    pieces = tuple(parts[::2])
    return _Template(text, pieces, tuple(parts[1::2]), sum(map(len, pieces)))


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), text)


def _has_sentences(values: Mapping[str, str]) -> bool:
    """Whether one of them goes over the end of a sentence."""
    return any(map(_SENTENCE_END.search, values.values()))


def _kind_of(name: str) -> str:
    return name.rpartition("_")[2]


def _fits(name: str, value: str) -> bool:
    shape = _SHAPES.get(_kind_of(name))
    return shape is None or shape.fullmatch(value) is not None


def _rename(value: str, names: Sequence[str], others: Sequence[str]) -> str:
    return others[names.index(value)] if value in names and len(others) == len(names) else value
