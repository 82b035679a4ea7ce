"""The programs that a small model is shown because they are like what it is asked for, and whether
it followed one. Pure."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import groupby, pairwise
from math import log, sqrt

import msgspec

from ..types.python_source import parse_python
from .shim_programs import PROGRAM_CHARS, extract_program, is_say_call
from .shim_prompts import PROGRAM_SHOTS, Shots

MAX_EXAMPLES = 2
MIN_SIMILARITY = 0.15
"""Below this likeness (0 to 1) a program has nothing to do with the request."""
SECOND_EXAMPLE_RATIO = 0.75
"""A second one is shown where it is at least so like as the first."""
OTHER_KIND_WEIGHT = 0.6
"""What the likeness of an example for files of another kind is worth."""
MAX_FOLLOWED = 6
"""A program may follow one of so many, which need not all be shown."""
STEM_CHARS = 5
PAIR_WEIGHT = 0.5
"""The letters of a stem, and how much two that follow each other count beside one."""
_WORD = re.compile(r"[a-z]+|\d")


class Example(msgspec.Struct, frozen=True):
    """What is asked, how the files are listed, and the program that does it."""

    files: str
    asked: str
    program: str
    always: bool = False
    """It is shown with every request."""

    @property
    def shot(self) -> tuple[str, str]:
        """As a turn of a chat."""
        return (
            f"Files here:\n- {self.files}\nRequest: {self.asked}",
            f"```python\n{self.program}\n```",
        )


@cache
def _load_examples() -> tuple[Example, ...]:
    text = resources.files(__package__).joinpath("shim_library.toml").read_text("utf-8")
    own = msgspec.convert(tomllib.loads(text)["example"], list[Example])
    always = [_read_shot(said, shown) for said, shown in PROGRAM_SHOTS]
    return (*own, *always)


def _read_shot(said: str, shown: str) -> Example:
    """An example that is always shown."""
    listing, _, asked = said.partition("\nRequest: ")
    files = listing.removeprefix("Files here:\n- ")
    return Example(files, asked, extract_program(shown), always=True)


def count_stems(text: str) -> Counter[str]:
    """The beginnings of its words, and of each two that follow each other; numbers are all one."""
    words = _WORD.findall(text.lower())
    stems = ["0" if word.isdigit() else word[:STEM_CHARS] for word in words]
    pairs = [f"{one} {other}" for one, other in pairwise(stems)]
    return Counter([*stems, *pairs])


@cache
def _stem_weights() -> dict[str, float]:
    """How much a stem tells: the less often it stands in the examples, the more."""
    found = [count_stems(f"{each.asked} {each.files}") for each in _load_examples()]
    seen = Counter(stem for each in found for stem in each)
    return {stem: log(1 + len(found) / count) for stem, count in seen.items()}


def _vector(text: str) -> dict[str, float]:
    weights = _stem_weights()
    values = dict[str, float]()
    for stem, count in count_stems(text).items():
        if stem in weights:
            share = PAIR_WEIGHT if " " in stem else 1.0
            values[stem] = (1 + log(count)) * weights[stem] * share
    length = sqrt(sum(value * value for value in values.values())) or 1.0
    return {stem: value / length for stem, value in values.items()}


@cache
def _example_vectors() -> tuple[dict[str, float], ...]:
    return tuple(_vector(each.asked) for each in _load_examples())


def find_similar_examples(request: str, listing: str = "") -> Shots:
    """The examples to show besides those that always are: the likest last, as what stands near is
    followed most."""
    ranked = _rank_examples(request, listing)
    best = [(score, each) for score, each in ranked if not each.always][:MAX_EXAMPLES]
    return tuple(
        each.shot for score, each in reversed(best) if score >= SECOND_EXAMPLE_RATIO * best[0][0]
    )


def _rank_examples(request: str, listing: str = "") -> list[tuple[float, Example]]:
    """The examples that have to do with the request, with their likeness, the likest first. One
    that is about files of another kind than the listed ones counts less."""
    asked = _vector(request)
    here = _file_kinds(listing)
    ranked = list[tuple[float, Example]]()
    for example, vector in zip(_load_examples(), _example_vectors(), strict=True):
        score = sum(value * vector.get(stem, 0.0) for stem, value in asked.items())
        if here and not here & _file_kinds(example.files):
            score *= OTHER_KIND_WEIGHT
        if score >= MIN_SIMILARITY:
            ranked.append((score, example))
    return sorted(ranked, key=lambda pair: pair[0], reverse=True)


def _file_kinds(listing: str) -> frozenset[str]:
    """How the files of a listing are read; nothing where none is told."""
    return frozenset(kind for kind, told in _KIND_MARKS.items() if told in listing)


_KIND_MARKS = {
    "csv": "a CSV with",
    "json": ": JSON, ",
    "cells": "without a header",
    "rows": "with a table",
    "text": ", begins",
}


def has_example_shape(program: str, request: str, listing: str) -> bool:
    """Whether a program has the shape of an example that is like the request: only names, texts and
    numbers are others, and those texts stand in the request or in the listing of files. What is
    only said does not count."""
    form = compute_shape(program)
    if not form:
        return False
    like = [each for _, each in _rank_examples(request, listing)[:MAX_FOLLOWED]]
    same = [each for each in like if form == compute_shape(each.program)]
    if all(_direction(each.asked) != _direction(request) for each in same):
        return False

    known = f"{request}\n{listing}".lower()
    for number in map(str, _find_numbers(program)):
        if not re.search(rf"(?<![\w.]){re.escape(number)}(?![\w:]|\.\d)", known):
            return False
    for text in _find_texts(program):
        lower = text.lower()
        if text.isalnum() and not re.search(rf"\b{re.escape(lower)}\b", known):
            return False
        if any(word not in known for word in re.findall(r"\w{3,}", lower)):
            return False
    return True


def _direction(request: str) -> tuple[bool, bool, bool]:
    """Whether it asks for what is not so, for the most, and for the least: programs for these
    differ in a sign."""
    return (bool(_NOT.search(request)), bool(_MOST.search(request)), bool(_LEAST.search(request)))


_NOT = re.compile(
    r"\b(not|no|without|never|except|unless|other than|missing|cannot)\b"
    r"|n['\u2019]t\b"
    r"|\bun(?!der|til|ique|ion|it|cle)[a-z]{3,}",
    re.IGNORECASE,
)
_MOST = re.compile(
    r"\b("
    r"most|descending|newest|latest|more|over|above"
    r"|(larg|bigg|high|long|dear|great|fast)e(st|r)"
    r")\b",
    re.IGNORECASE,
)
_LEAST = re.compile(
    r"\b("
    r"least|ascending|fewe(st|r)|less|under|below"
    r"|(small|low|short|cheap|old|earli|slow)e(st|r)"
    r")\b",
    re.IGNORECASE,
)


def _find_numbers(program: str) -> Iterator[int | float]:
    """The numbers of a program, but for those that mean the first, the last or one more."""
    for node in ast.walk(parse_python(program, PROGRAM_CHARS)):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, int | float) and value not in (0, 1):
            yield value


def find_borrowed_word(program: str, request: str, listing: str) -> str:
    """A word of the program that stands in what it was shown, and not in the request or the
    listing; '' for none."""
    try:
        texts = list(_find_texts(program))
    except SyntaxError:
        return ""
    known = f"{request}\n{listing}".lower()
    examples = (*PROGRAM_SHOTS, *find_similar_examples(request, listing))
    shown = " ".join(f"{said} {answer}" for said, answer in examples).lower()
    words = [word for text in texts for word in re.findall(r"\w{3,}", text.lower())]
    return next((word for word in words if word not in known and word in shown), "")


def compute_shape(program: str) -> tuple[str, ...]:
    """What is left of a program without its names, texts and numbers, and without what it says
    beside what it does."""
    try:
        statements = parse_python(program, PROGRAM_CHARS).body
    except SyntaxError:
        return ()
    acts = [each for each in statements if not is_say_call(each)]
    signs = [tuple(_shape_tokens(each)) for each in (acts or statements)]
    different = [sign for sign, _ in groupby(signs)]  # the same again and again counts once
    return tuple(token for sign in different for token in sign)


def _shape_tokens(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.JoinedStr(values=parts):
            yield "text"
            for part in parts:
                is_worked_out = any(isinstance(each, ast.Call) for each in ast.walk(part))
                if is_worked_out:
                    yield from _shape_tokens(part)
        case ast.Constant(value=value):
            yield str(value) if isinstance(value, bool) else "text"
        case ast.Name(id=name, ctx=ast.Load()) if name in _example_functions():
            yield name
        case ast.Name() | ast.arg():
            yield "name"
        case ast.expr_context():
            return
        case ast.Dict(values=[first, *_]):  # however many
            yield from ("Dict", *_shape_tokens(first))
        case ast.List(elts=[ast.Constant(), *_]):
            yield "List"
        case _:
            yield getattr(node, "attr", None) or getattr(node, "arg", None) or type(node).__name__
            for child in ast.iter_child_nodes(node):
                yield from _shape_tokens(child)


@cache
def _example_functions() -> frozenset[str]:
    """The functions that are called in examples: what they are called matters."""
    trees = [ast.parse(each.program) for each in _load_examples()]
    calls = [node.func for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {call.id for call in calls if isinstance(call, ast.Name)}
    return frozenset(names | {"reverse", "replace", "today"})


def _find_texts(program: str) -> Iterator[str]:
    """The texts that a program works with, but for those that it says, writes or runs."""
    tree = parse_python(program, PROGRAM_CHARS)
    skipped = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for given in _free_arguments(node):
                skipped |= {id(each) for each in ast.walk(given)}

    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and id(node) not in skipped:
            yield value


def _free_arguments(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call whose words are up to the program: what it says, writes or runs."""
    match call.func:
        case ast.Name(id="say" | "run"):
            return call.args
        case ast.Name(id="write"):
            return call.args[1:]
        case _:
            return []
