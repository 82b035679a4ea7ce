"""Texts that a small model writes as a whole."""

from __future__ import annotations

import pytest

from deskhand.models.shim_texts import (
    close_fence,
    find_new_text_path,
    is_rewording,
    make_rewrite_program,
    make_text_program,
)

TEXTS = "--- a.md\nOld\n--- end of a.md"


@pytest.mark.parametrize(
    ("written", "new"),
    [
        ("```\nNew\n```", "New"),
        (
            "Here it is:\n```md\nRun:\n```sh\nls\n```\nand go.\n```\nDone.",
            "Run:\n```sh\nls\n```\nand go.",
        ),
        ("```\nNew, and then it was cut o", ""),
        ("New", ""),
        ("```\n\n```", ""),
    ],
)
def test_a_text_is_written_anew_only_where_all_of_it_came(written: str, new: str) -> None:
    program = make_rewrite_program(TEXTS, written)
    assert program == (
        f"read('a.md')\nwrite('a.md', {new!r})\nsay('I have changed a.md.')" if new else ""
    )


@pytest.mark.parametrize(
    ("request_", "anew"),
    [
        ("fix the typos in a.md", True),
        ("rewrite a.md in a friendly tone", True),
        ("rewrite the dates in a.md as 2026-03-05", False),
        ("correct the prices in a.md", False),
        ("sort a.md", False),
    ],
)
def test_words_are_made_better_by_the_model_and_figures_by_a_program(
    request_: str, anew: bool
) -> None:
    assert is_rewording(request_) == anew


def test_the_frame_of_a_text_is_no_part_of_it_and_a_script_stays_one() -> None:
    shown = "--- a.py\nprint(1)\n--- end of a.py"
    assert make_rewrite_program(
        shown, "```python\n--- a.py\nprint(2)\n--- end of a.py\n```"
    ).startswith("read('a.py')\nwrite('a.py', 'print(2)')")
    assert make_rewrite_program(shown, "```\nprint(2\n```") == ""


LISTING = "Files here:\n- notes.txt: 3 lines\n- guests.txt: 4 lines"


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ("make gifts.txt with three ideas for a present", "gifts.txt"),
        (
            "Could you put a polite letter to them into Letters/gym.txt? Sign it with Leonie.",
            "Letters/gym.txt",
        ),
        ("write a poem", ""),
        ("write a poem to notes.txt", ""),
        ("write a letter to all guests, see guests.txt, to letter.txt", ""),
        ("write a letter to the guests into letter.txt", ""),
        ("write a note 'call Ben' to call.txt", ""),
        ("write a summary of my notes to sum.txt", ""),
        ("copy the plan to b.txt", ""),
        ("make a.txt and b.txt with ideas", ""),
        ("start a checklist bag.md with passports, towels and a charger", ""),
        ("we close from 3 to 17 May, write a notice to door.txt", "door.txt"),
    ],
)
def test_a_text_that_is_made_up_for_a_new_file(request_: str, path: str) -> None:
    assert find_new_text_path(request_, LISTING) == path


def test_a_new_text_becomes_a_program() -> None:
    assert (
        make_text_program("a.txt", close_fence("```letter\nTea\nMilk"))
        == "write('a.txt', 'Tea\\nMilk')"
    )
    assert (
        make_text_program("a.txt", "Here:\n```\nTea\nMilk\n```") == "write('a.txt', 'Tea\\nMilk')"
    )
    letter = "```\nDear [Guest's Name],\n\nCome at 4.\n[Your Name]\n```"
    assert make_text_program("a.txt", letter) == "write('a.txt', 'Hello,\\n\\nCome at 4.')"
    signed = make_text_program(
        "a.txt", "```\nCome at 4.\n\nYours,\n[Your Name]\n```", "write to Bo, sign it as Ida"
    )
    assert signed == "write('a.txt', 'Come at 4.\\n\\nYours,\\nIda')"
    assert make_text_program("a.txt", "Tea") == make_text_program("a.txt", "```\nTea") == ""
    assert (
        make_text_program("a.txt", "Sure, here is the card:\n\nDear Bo,\ncome at 4")
        == "write('a.txt', 'Dear Bo,\\ncome at 4')"
    )
    assert make_text_program("a.txt", "I'm sorry.\nI cannot do that.") == ""
