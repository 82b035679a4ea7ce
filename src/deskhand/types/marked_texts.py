"""Marks the sentences that people read in their own language: on the page, in chats, in the
terminal."""

from __future__ import annotations


def mark_text(text: str) -> str:
    """The same text, a literal. `scripts/languages.py` collects what is marked, for translation.

    The API and the log have it in English; who shows it to people recognises it as a whole. What is
    filled in stands as it is, unless the name of its placeholder ends in one of these words:

    - `text`: another sentence that is marked;
    - `name`: without spaces, and `code`: between backticks;
    - `number` and `size`: digits, maybe with a unit behind them; `numbers`: several of them;
    - `time`: `2027-01-31 17:00`, and `clocks`: `08:00`, or several of them;
    - `days`, `month` and `ordinal`: their English names.
    """
    return text
