"""Diffs that people read: what they say, how they are cut, and how long they may take."""

from __future__ import annotations

import random

import pytest

from deskhand.tools.diffs import unified_diff
from deskhand.tools.patch import apply_patch


def diff(old: bytes | None, new: bytes | None, lines: int = 400, chars: int = 32_000) -> list[str]:
    return unified_diff("a.txt", old, new, lines=lines, chars=chars).split("\n")[2:]


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (b"one\ntwo\n", b"one\nTWO\n", ["@@ -1,2 +1,2 @@", " one", "-two", "+TWO"]),
        (None, b"one\n", ["@@ -0,0 +1 @@", "+one"]),
        (b"one\n", None, ["@@ -1 +0,0 @@", "-one"]),
        (b"one", b"one\n", ["@@ -1 +1 @@", "-one", "\\ No newline at end of file", "+one"]),
        (b"a\r\nb\r\n", b"a\nb\r\n", ["@@ -1,2 +1,2 @@", "-a\r", "+a", " b\r"]),
        (b"a\x0cb\n", b"a\x0cc\n", ["@@ -1 +1 @@", "-a\x0cb", "+a\x0cc"]),
        (b"same\n", b"same\n", []),
    ],
)
def test_what_is_different(old: bytes | None, new: bytes | None, lines: list[str]) -> None:
    assert diff(old, new) == lines


def test_names_and_what_is_no_text() -> None:
    assert unified_diff("a", None, b"x\n", lines=9, chars=999).split("\n")[:2] == [
        "--- /dev/null",
        "+++ a",
    ]
    assert unified_diff("a", b"\0\1", b"x", lines=9, chars=999) == "2 bytes before, 1 after"
    assert unified_diff("a", b"\xff", None, lines=9, chars=999) == "1 bytes before, 0 after"


def test_changes_far_from_each_other_are_hunks_of_their_own() -> None:
    old = [f"line {n % 500} {n}" if n % 3 else "}" for n in range(20_000)]
    new = list(old)
    new[5] = new[19_000] = "changed"
    del new[12_000:12_005]
    found = diff("\n".join(old).encode(), "\n".join(new).encode())
    assert [line for line in found if line.startswith("@@")] == [
        *("@@ -3,7 +3,7 @@", "@@ -11998,11 +11998,6 @@", "@@ -18998,7 +18993,7 @@"),
    ]


def test_what_is_long_is_cut_by_lines_and_says_so() -> None:
    new = "".join(f"line {n}\n" for n in range(2_000)).encode()
    assert diff(b"", new, lines=40)[-1] == "… 1,963 more lines"
    cut = unified_diff("a.txt", b"", new, lines=9_999, chars=500)
    assert (
        len(cut) <= 500 and cut.split("\n")[-2].startswith("+line ") and cut.endswith(" more lines")
    )
    wide = unified_diff("a.txt", b"", b"x" * 9_000, lines=40, chars=500)
    assert len(wide) <= 500 and "x…" in wide


def test_a_diff_makes_the_one_of_the_other() -> None:
    """Tried with many random texts, by the code that applies patches."""
    made = random.Random(15)
    for _ in range(400):
        old = [f"l{made.randrange(9)}\n" for _ in range(made.choice((1, 3, 10, 60)))]
        new = list(old)
        for _ in range(made.randrange(1, 5)):
            at = made.randrange(len(new) + 1)
            new[at : at + made.randrange(3)] = [f"x{made.randrange(3)}\n"] * made.randrange(3)
        if old != new:
            patch = unified_diff(
                "a", "".join(old).encode(), "".join(new).encode(), lines=10**6, chars=10**6
            )
            assert apply_patch("".join(old), patch) == "".join(new)


@pytest.mark.parametrize("kinds", [2, 95, 10**9])
def test_no_text_takes_long(kinds: int) -> None:
    """A textbook comparison of the second takes hours: it would be over the limit of a test."""
    made = random.Random(kinds)
    texts = (
        "\n".join(str(made.randrange(kinds)) for _ in range(90_000)).encode() for _ in range(2)
    )
    assert unified_diff("a", *(text[: 1 << 20] for text in texts), lines=40, chars=32_000).endswith(
        " more lines"
    )
