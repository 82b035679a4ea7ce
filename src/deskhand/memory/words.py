"""The words of a text that a search looks for, without stop words."""

from __future__ import annotations

import re

MAX_WORDS = 32
TEXT_CHARS = 4_000
STEM_CHARS = 5
_WORD = re.compile(r"[^\W_]+")
"""Splits a text into words as the full-text index does."""

_STOP_WORD_LIST = """
a about after all also am an and any are as at be because been before but by can could did do does doing done for from
get got had has have having he her here hers him his how i if in into is it its just know let like ll make may me
might mine more most my need no nor not now of off on one only or other our out over please re s same say see she
should so some such t tell than that the their them then there these they this those thing to too up us use ve very
want was we were what when where which while who whom whose why will with would yes you your yours hello hi hey thanks
thank ok okay again another anything something give put take much many new
aber als am an auch auf aus bei bin bist bitte da dann das dass de dem den denn der des die dir doch du ein eine einem
einen einer es für hat ich ihm ihn ihr im in ist ja kann kein man mein meine meinem meinen meiner mich mir mit nach
nein nicht noch nur ob oder schon sich sie sind so und uns vom von vor wann war warum was wenn wer wie wir wird wo zu
zum zur
al como con cuál cuando cuándo de del dónde el ella en es esta este está la las le lo los me mi mis muy más no nos o
para pero por que qué quién se si sin sobre son su sus sí te tu un una y ya yo
au aux avec ce ces cette c d dans de des du elle en est et il ils j je l la le les leur lui ma mais me mes mon n ne
nous on ou où par pas pour qu que quel quelle quand qui sa ses son sont sur ta te tes toi ton tu un une vos votre vous
"""
STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
"""English, German, Spanish and French."""


def extract_words(text: str) -> list[str]:
    """The words of a text without stop words, each once, at most MAX_WORDS."""
    found = dict.fromkeys(
        word for word in _WORD.findall(text[:TEXT_CHARS].casefold()) if word not in STOP_WORDS
    )
    return list(found)[:MAX_WORDS]


def build_fts_query(text: str) -> str:
    """The full-text query for any of the words of this text, or '' when it has none."""
    return " OR ".join(f'"{word}"' for word in extract_words(text))


def compute_word_overlap(words: list[str], text: str) -> float:
    """The share of these words that are in a text, compared by their first letters: 0 to 1. At
    least one counts as found, since the index found the text by it."""
    if not words:
        return 0.0
    known = {_stem(word) for word in _WORD.findall(text.casefold())}
    return max(1, sum(_stem(word) in known for word in words)) / len(words)


def extract_names(text: str) -> frozenset[str]:
    """The names in a text: capitalised words that are no stop words, in lower case."""
    found = (word for word in _WORD.findall(text) if word[:1].isupper())
    return frozenset(word.casefold() for word in found if word.casefold() not in STOP_WORDS)


def normalize_text(text: str) -> str:
    """The text without case and punctuation, to compare two texts."""
    return " ".join(_WORD.findall(text.casefold())) or text.strip()


def _stem(word: str) -> str:
    return word[:STEM_CHARS]
