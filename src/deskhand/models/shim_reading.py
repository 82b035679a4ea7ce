"""How a small model reads texts to answer from them: without the orders that stand in them, the
nearest words last, and with the passage that its answer comes from. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from math import log

import msgspec

from .shim_request import STOP_WORDS, split_words

_ORDER = re.compile(
    r"\b(ignore|disregard|forget) (all|any|the|your|every|what|previous|these|this)\b"
    r"|\byou (must|should|have to|are to) (now |always |instead )?"
    r"(say|answer|reply|tell|ignore|delete|send|write)\b"
    r"|\b(system|developer) (prompt|message|note)\b"
    r"|\binstead of (answering|an answer)\b",
    re.IGNORECASE,
)
_ASSISTANT = re.compile(
    r"\b(?:ai|chat ?bots?|language models?|llms?|assistants?|agents?)\b", re.IGNORECASE
)
_ORDERING_WORD = re.compile(
    r"\b(?:ignore|must|say|tell|answer|reply|delete|send|write"
    r"|do not|before|instead|please|should)\b",
    re.IGNORECASE,
)
ORDER_REACH = 80
"""So many characters behind the word for an assistant an ordering word is looked for."""


def _gives_order(line: str) -> bool:
    """Whether a line without breaks speaks to who reads it as to an assistant."""
    if _ORDER.search(line):
        return True
    words = [word.start() for word in _ORDERING_WORD.finditer(line)]
    if not words:
        return False

    next_word = 0
    for assistant in _ASSISTANT.finditer(line):
        while next_word < len(words) and words[next_word] < assistant.end():
            next_word += 1
        if next_word == len(words):
            return False
        if words[next_word] - assistant.end() <= ORDER_REACH:
            return True
    return False


def strip_orders(texts: str) -> str:
    """The texts without sentences that give orders to who reads them: a small model follows them
    whatever it is told. This keeps answers right; what may be done is decided elsewhere, and not by
    it."""
    kept = list[str]()
    inside = False
    for line in texts.split("\n"):
        goes_on = inside and line.lstrip()[:1].islower()
        if line.startswith("--- ") or not (goes_on or _gives_order(line)):
            inside = False
            kept.append(line)
            continue
        kept += [_ORDERED] * (not goes_on)
        inside = not line.rstrip().endswith((".", "!", "?"))
    return "\n".join(kept)


def strip_listed_orders(listing: str) -> str:
    """A listing of files without such sentences among the lines that it shows of texts."""
    shown = listing.split("\n")
    return "\n".join(
        f"    {_ORDERED}" if line.startswith("    ") and _gives_order(line) else line
        for line in shown
    )


def sort_by_relevance(texts: str, question: str) -> str:
    """The texts with the one that shares most words with the question at the end, and without those
    that share none where others share two: a small model takes the nearest."""
    files = _split_files(texts)
    if len(files) < 2 or "".join(files).strip() != texts.strip():
        return texts
    words = {_stem(word) for word in split_words(question)} - _SMALL_STEMS
    scores = [
        len(words & {_stem(word) for word in split_words(file.replace("_", " "))}) for file in files
    ]
    least = 1 if max(scores) > 1 else 0
    kept = [n for n in range(len(files)) if scores[n] >= least]
    likest_last = sorted(kept, key=lambda n: scores[n])
    return "".join(files[n] for n in likest_last).rstrip("\n")


def _split_files(texts: str) -> list[str]:
    """The texts of a survey, each from the line with its name to the one that ends it."""
    found = list[str]()
    start = -1
    at = 0
    for line in texts.split("\n"):
        end = min(at + len(line) + 1, len(texts))
        end = min(at + len(line) + 1, len(texts))
        if line.startswith("--- end of "):
            if start >= 0:
                found.append(texts[start:end])
            start = -1
        elif line.startswith("--- ") and start < 0:
            start = at
        at = end
    return found


def _stem(word: str) -> str:
    return word.rstrip("s") if word.isalpha() else word


_SMALL_STEMS = frozenset(
    map(
        _stem,
        (*STOP_WORDS, "what", "who", "where", "which", "when", "how", "did", "do", "i", "it", "be"),
    )
)
_ORDERED = "(Orders to an assistant stood here, and are left out.)"


class Passage(msgspec.Struct, frozen=True):
    """A sentence of a file, or a line where lines stand for themselves. `after` is the one that
    follows it."""

    path: str
    text: str
    after: str = ""
    heading: str = ""


def split_passages(texts: str) -> list[Passage]:
    """What stands in the texts of a survey, in pieces that can be quoted."""
    return [passage for block in _split_files(texts) for passage in _split_block(block)]


def _split_block(block: str) -> Iterator[Passage]:
    """The passages of one text of a survey."""
    path, *lines = block.removeprefix("--- ").split("\n")
    lines = list(takewhile(lambda line: not line.startswith("--- end of "), lines))
    heading = ""
    for part in re.split(r"\n\s*\n", "\n".join(lines)):
        if part.lstrip().startswith("#"):
            title, _, part = part.strip().partition("\n")
            heading = title.lstrip("# ")
        pieces = [each.strip() for each in _split_paragraph(part)]
        said = [each for each in pieces if each and _ORDERED not in each]
        for one, after in pairwise([*said, ""]):
            yield Passage(path, one, after, heading)


def _split_paragraph(paragraph: str) -> list[str]:
    """The lines of a list or a table, or the sentences of prose."""
    lines = [line for line in paragraph.splitlines() if line.strip()]
    alone = sum(bool(_LINE_OF_ITS_OWN.match(line)) for line in lines)
    if len(lines) == 1 or 2 * alone >= len(lines):
        return lines
    return _SENTENCE_END.split(" ".join(lines))


_SENTENCE_END = re.compile(
    r"(?<=[.!?])"
    r"(?<!\b[A-Z]\.)(?<!\b[A-Z][a-z]\.)(?<!\bMrs\.)"  # initials, `Dr.` and the like
    r"\s+(?=[^a-z\s])"
)


_LINE_OF_ITS_OWN = re.compile(
    r"\s*+"
    r"(?:[-*+|]"  # a point of a list, a row of a table
    r"|\d+[.)]"  # a numbered point
    r"|[^\s:][^:]{0,30}:(?:\s|$)"  # a name and its value
    r"|[^,]+,[^ ,]"  # a row of values
    r"|\d\d)"  # a date or a time
)


def find_nearest_passage(texts: str, question: str, answer: str = "") -> Passage | None:
    """The passage that shares most with a question, and half as much with its answer, in words that
    few passages have; None where none shares one."""
    asked = _telling_stems(question)
    wanted = asked | _telling_stems(answer)
    found = split_passages(texts)
    stems = [_telling_stems(f"{each.text} {each.heading}") for each in found]
    seen = Counter(stem for each in stems for stem in each)

    def weigh(stem: str) -> float:
        rarity = log(1 + len(found) / seen[stem])
        return rarity if stem in asked else rarity / 2

    # In order, so that equal passages have equal sums.
    scores = [sum(weigh(stem) for stem in sorted(each & wanted)) for each in stems]
    best = max(scores, default=0.0)
    if best <= 0:
        return None
    nearest = [each for each, score in zip(found, scores, strict=True) if score == best]
    return _choose_by_date(nearest, question)


def _choose_by_date(found: Sequence[Passage], question: str) -> Passage:
    """Of passages that are as near as each other the latest or the earliest, where the question
    asks for that."""
    wants_latest = _LATEST.search(question)
    if not wants_latest and not _EARLIEST.search(question):
        return found[0]
    dated = [(day[0], each) for each in found if (day := _ISO.search(each.text))]
    if len(dated) < len(found):
        return found[0]
    choose = max if wants_latest else min
    return choose(dated, key=lambda pair: pair[0])[1]


_ISO = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_LATEST = re.compile(r"\b(last|latest|most recent(ly)?|newest)\b", re.IGNORECASE)
_EARLIEST = re.compile(r"\b(first|earliest|oldest)\b", re.IGNORECASE)


def is_relevant(texts: str, question: str) -> bool:
    """Whether a telling word of a question stands in the texts, or in the name of one of them."""
    stems = _telling_stems(question)
    return any(
        stems & _telling_stems(f"{each.path} {each.text} {each.heading}")
        for each in split_passages(texts)
    )


def find_invented_figure(answer: str, *known: str) -> str:
    """A number of an answer that stands in nothing that is known: it was worked out, or made up; ''
    for none."""
    there = {_normalize_figure(each) for text in known for each in _FIGURE.findall(text)}
    parts = {_strip_zeros(part) for text in known for part in re.findall(r"\d+", text)}
    for figure in map(str, _FIGURE.findall(_NUMBERING.sub("", answer))):
        if _normalize_figure(figure) in there:
            continue
        if any(_strip_zeros(part) not in parts for part in re.split(r"\D", figure)):
            return figure
    return ""


def _normalize_figure(figure: str) -> str:
    if not re.fullmatch(r"[\d,]+(\.\d+)?", figure):
        return figure
    return f"{float(figure.replace(',', '')):g}"


def _strip_zeros(digits: str) -> str:
    return digits.lstrip("0") or "0"


_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_NUMBERING = re.compile(r"^[^\S\n]*\d+[.)] ", re.MULTILINE)


def _telling_stems(text: str) -> set[str]:
    """The beginnings of its words, names as a whole beside, and numbers without what makes an
    ordinal of them."""
    words = [word for word in split_words(text) if _stem(word) not in _SMALL_STEMS]
    said = [_ORDINAL.sub(r"\1", word) for word in words]
    names = {word.lower() for word in re.findall(r"\b[A-Z]\w+", text)} - _SMALL_STEMS
    return {_stem(word)[:STEM_CHARS] for word in said} | names


_ORDINAL = re.compile(r"^(\d+)(st|nd|rd|th)$")


STEM_CHARS = 6


def render_nearest_passage(passage: Passage | None) -> str:
    """The passage as it is put before a question: a small model takes what stands nearest."""
    if passage is None:
        return ""
    nearest = f"Nearest to the question ({passage.path}): {passage.text} {passage.after}".rstrip()
    return f"{nearest}\n"


def add_source(answer: str, texts: str, question: str) -> str:
    """The answer with the words that it comes from, where they say more: who reads it need not
    believe it."""
    nearest = find_nearest_passage(texts, question)
    if nearest and _is_unsupported(answer, texts, nearest):
        return f"{NOT_FOUND}\n{_render_quote(nearest)}"
    source = find_nearest_passage(texts, question, answer)
    if source is None:
        return answer
    new = _telling_stems(source.text) - _telling_stems(answer)
    return f"{answer}\n{_render_quote(source)}" if len(new) >= MIN_NEW_STEMS else answer


def _render_quote(passage: Passage) -> str:
    text = passage.text
    if len(text) > QUOTE_CHARS:
        text = f"{text[:QUOTE_CHARS].rstrip()}…"
    return f"> {text} ({passage.path})\n"


MIN_NEW_STEMS = 2
QUOTE_CHARS = 240
NOT_FOUND = "I do not find that. The nearest to it is:"


def _is_unsupported(answer: str, texts: str, passage: Passage) -> bool:
    """Whether a long number of the answer stands only where the texts speak of something else than
    the question."""
    said = [each.text for each in split_passages(texts)]
    for figure in re.findall(r"\d[\d ./-]{4,}\d", answer):
        holders = [text for text in said if figure in text]
        if holders and passage.text not in holders:
            return True
    return False
