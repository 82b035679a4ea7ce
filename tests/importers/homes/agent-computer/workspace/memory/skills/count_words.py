"""Count the words of a text.

Auto-extracted from session bread.
Dependencies: none
"""


async def count_words(text: str) -> str:
    return str(len(text.split()))
