"""Cuts a text into the pieces that BERT's uncased models know, as their own tokenizer does.

https://github.com/google-research/bert/blob/master/tokenization.py; the vocabulary is that of
bert-base-uncased and all-MiniLM-L6-v2 (Apache-2.0).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from importlib.resources import files

UNKNOWN = "[UNK]"
BEGIN = "[CLS]"
END = "[SEP]"
_WORD_CHARS = 100


def read_vocabulary() -> dict[str, int]:
    """Each piece with its number."""
    text = files(__package__).joinpath("minilm_vocab.txt").read_text("utf-8")
    return {piece: number for number, piece in enumerate(text.split("\n")[:-1])}


def tokenize(text: str, vocabulary: Mapping[str, int], limit: int) -> list[int]:
    """The numbers of its pieces between those that begin and end a text, at most `limit` in all."""
    found = [vocabulary[BEGIN]]
    for word in _split_words(text):
        found += [vocabulary[piece] for piece in _split_word(word, vocabulary)]
        if len(found) >= limit:
            break
    return [*found[: limit - 1], vocabulary[END]]


def _split_words(text: str) -> Iterator[str]:
    """Words in lower case without accents; each sign and each Chinese character is a word of its
    own."""
    plain = "".join(_clean_char(char) for char in text)
    decomposed = unicodedata.normalize("NFD", plain)
    bare = (char for char in decomposed if unicodedata.category(char) != "Mn")
    # One by one: no sigma of its own at the end of a word.
    lower = "".join(char.lower() for char in bare)
    word = list[str]()
    for char in lower:
        alone = _is_punctuation(char)
        if alone or char.isspace():
            if word:
                yield "".join(word)
                word = []
            if alone:
                yield char
        else:
            word.append(char)
    if word:
        yield "".join(word)


def _clean_char(char: str) -> str:
    if char in "\t\n\r" or char.isspace():
        return " "
    if char in "\0\N{REPLACEMENT CHARACTER}" or unicodedata.category(char)[0] == "C":
        return ""
    return f" {char} " if _is_chinese(ord(char)) else char


def _is_chinese(code: int) -> bool:
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )


def _is_punctuation(char: str) -> bool:
    if char.isascii():
        return not char.isalnum() and "!" <= char <= "~"
    return unicodedata.category(char)[0] == "P"


def _split_word(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    """The longest piece that fits, again and again."""
    if len(word) > _WORD_CHARS:
        return [UNKNOWN]
    found = list[str]()
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = word[start:end] if start == 0 else f"##{word[start:end]}"
            if piece in vocabulary:
                break
        else:
            return [UNKNOWN]
        found.append(piece)
        start = end
    return found
