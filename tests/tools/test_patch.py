"""Unified diffs as models write them: off by some lines, with and without newlines, in any line
ending."""

from __future__ import annotations

import contextlib
import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.testing.effort import least_cpu_s
from deskhand.tools.edits import Replacement, apply_edits
from deskhand.tools.patch import apply_patch
from deskhand.types.errors import ToolError

from ..examples import examples

TEN = "".join(f"{n}\n" for n in range(1, 11))

PATCHES = {
    "one line": (TEN, "@@ -3,1 +3,1 @@\n-3\n+three\n", TEN.replace("3\n", "three\n", 1)),
    "with its headers": (
        TEN,
        "--- a/f\n+++ b/f\n@@ -3 +3 @@\n-3\n+three\n",
        TEN.replace("3\n", "three\n", 1),
    ),
    "context kept": (
        TEN,
        "@@ -2,3 +2,3 @@ def f\n 2\n-3\n+three\n 4\n",
        TEN.replace("3\n", "three\n", 1),
    ),
    "far off": (TEN, "@@ -99,3 +99,3 @@\n 8\n-9\n+nine\n 10\n", TEN.replace("9\n", "nine\n")),
    "off before": (TEN, "@@ -8,2 +8,2 @@\n 2\n-3\n+three\n", TEN.replace("3\n", "three\n", 1)),
    "no numbers": (
        TEN,
        "@@\n 2\n-3\n+three\n@@\n-9\n+nine\n",
        TEN.replace("3\n", "three\n", 1).replace("9\n", "nine\n"),
    ),
    "at the start": (TEN, "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n" + TEN),
    "at the end": (TEN, "@@ -10,0 +11,1 @@\n+11\n", TEN + "11\n"),
    "beyond the end": (TEN, "@@ -50,0 +51,1 @@\n+11\n", TEN + "11\n"),
    "first deleted": (TEN, "@@ -1,1 +0,0 @@\n-1\n", TEN[2:]),
    "last deleted": (TEN, "@@ -10,1 +9,0 @@\n-10\n", TEN[:-3]),
    "all deleted": ("a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n", ""),
    "into an empty file": ("", "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n"),
    "several": (
        TEN,
        "@@ -1,2 +1,1 @@\n-1\n 2\n@@ -9,2 +8,3 @@\n 9\n+9.5\n 10\n",
        "2\n3\n4\n5\n6\n7\n8\n9\n9.5\n10\n",
    ),
    "several, all off by two": (
        "x\ny\n" + TEN,
        "@@ -1,1 +1,1 @@\n-1\n+one\n@@ -9,1 +9,1 @@\n-9\n+nine\n",
        "x\ny\n" + TEN.replace("1\n", "one\n", 1).replace("9\n", "nine\n"),
    ),
    "the nearest of many": (
        "a\nx\na\nx\na\nx\n",
        "@@ -4,1 +4,1 @@\n-x\n+y\n",
        "a\nx\na\ny\na\nx\n",
    ),
    "the nearest, a little off": (
        "x\n\n\nx\n\n\nx\n",
        "@@ -5,1 +5,1 @@\n-x\n+y\n",
        "x\n\n\ny\n\n\nx\n",
    ),
    "empty context without its blank": ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
    "no newline stays": ("a\nb", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n", "x\nb"),
    "newline taken away": ("a\nb\n", "@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file\n", "a\nc"),
    "newline added": ("a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n"),
    "neither has one": (
        "a",
        "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
        "b",
    ),
    "CRLF file, LF patch": (
        "a\r\nb\r\nc\r\n",
        "@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n",
        "a\r\nx\r\ny\r\nc\r\n",
    ),
    "LF file, CRLF patch": (
        "a\nb\nc\n",
        "@@ -1,3 +1,3 @@\r\n a\r\n-b\r\n+x\r\n c\r\n",
        "a\nx\nc\n",
    ),
    "mixed endings stay": ("a\r\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n b\n-c\n+x\n", "a\r\nb\nx\n"),
    "no line ends but LF": ("a\x0cb\u2028c\nd\n", "@@ -2 +2 @@\n-d\n+e\n", "a\x0cb\u2028c\ne\n"),
    "lines that begin with signs": (
        "- a\n+ b\n",
        "@@ -1,2 +1,2 @@\n-- a\n+- x\n + b\n",
        "- x\n+ b\n",
    ),
}


@pytest.mark.parametrize("name", PATCHES)
def test_patches(name: str) -> None:
    before, patch, after = PATCHES[name]
    assert apply_patch(before, patch) == after


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        ("", "no hunk"),
        ("@@ -1 +1 @@\n", "no hunk"),
        ("-1\n+2\n", "no hunk"),
        (
            "@@ -1,2 +1,2 @@\n 1\n-3\n+x\n",
            "hunk 1 of the patch does not apply: its old lines must occur",
        ),
        (
            "@@ -1 +1 @@\n-1\n+x\n@@ -4 +4 @@\n-four\n+x\n",
            "hunk 2 of the patch does not apply after the previous hunk",
        ),
        (
            "@@ -9 +9 @@\n-9\n+x\n@@ -1 +1 @@\n-1\n+x\n",
            "hunk 2 of the patch does not apply after the previous hunk",
        ),
        ("@@ -1 +1 @@\n- 1\n+x\n", "hunk 1 of the patch does not apply"),
        ("@@ -1 +1 @@\n-1\n+x\n*** End\n", "line 4 of the patch does not begin with"),
        (
            "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+x\n--- b\n+++ b\n@@ -1 +1 @@\n-1\n+x\n",
            "more than one file",
        ),
        ("@@ -1 +1 @@\n-1\n+x\ndiff --git a/b b/b\n", "more than one file"),
        ("@@\n+x\n", "hunk 1 of the patch does not apply"),
        ("@@ -1 +1 @@\n-1\n+x\n" * 501, "501 hunks"),
    ],
)
def test_what_is_refused(patch: str, sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        apply_patch(TEN, patch)


LINES = st.lists(st.sampled_from(["", "a", "b", "c", " d", "-e", "+f"]), max_size=30)


@given(LINES, LINES, st.integers(0, 3), st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_what_difflib_writes_applies(
    before: list[str], after: list[str], context: int, crlf: bool
) -> None:
    diff = "\n".join(difflib.unified_diff(before, after, "a", "b", n=context, lineterm=""))
    end = "\r\n" if crlf else "\n"
    old, new = ("".join(line + end for line in lines) for lines in (before, after))
    if diff:
        if not old:
            new = new.replace("\r\n", "\n")  # an empty file has no endings to keep
        assert apply_patch(old, diff) == new


@pytest.mark.parametrize(
    ("text", "patch"),
    [
        ("a\n" * 500_000, "@@ -9 +9 @@\n" + " a\n" * 240_000 + "-b\n"),
        ("a\n" * 500_000, "@@ -400000 +9 @@\n" + "-b\n" + " a\n" * 240_000),
        ("a\n" * 500_000, "@@ -499999 +9 @@\n" + " a\n" * 250_000 + "+b\n"),
        (TEN, "@@ -" + "1" * 1_000_000 + " +1 @@\n-1\n"),
        (TEN, "@@ " * 300_000),
        (TEN, "\n" * 1_000_000),
        (TEN, "@@ -1 +1 @@\n" * 80_000),
        ("ab" * 500_000, "@@ -1 +1 @@\n-" + "ab" * 500_000 + "\n+x\n"),
    ],
    ids=range(8),
)
def test_a_megabyte_takes_no_time(text: str, patch: str) -> None:
    def work() -> None:
        with contextlib.suppress(ToolError):
            apply_patch(text, patch)

    assert least_cpu_s(work, 1.0) < 1.0  # 250 ms where nothing else runs


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("a\r\n" * 300_000, "a\n" * 100_000 + "b"),
        ("a" * 1_000_000, "a" * 500_000 + "b"),
        ("\r" * 1_000_000, "\n" * 1000),
    ],
    ids=range(3),
)
def test_a_megabyte_of_edits_takes_no_time(text: str, old: str) -> None:
    def work() -> None:
        with pytest.raises(ToolError):
            apply_edits(text, [Replacement(old, "x")])

    assert least_cpu_s(work, 1.0) < 1.0
