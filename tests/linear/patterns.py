"""What parsers and scanners are slow with, of any length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

Make = Callable[[int], str]
"""A text of about so many characters."""

SIGNS: Final = (
    *(
        "(",
        "[",
        "{",
        "<",
        '"',
        "'",
        "\\",
        "\n",
        " ",
        "\t",
        "\r\n",
        ",",
        ";",
        ":",
        "?",
        "!",
        "#",
        "&",
        "%",
        "+",
        "-",
        "*",
    ),
    *(
        "|",
        "/",
        "`",
        "_",
        "~~",
        "\0",
        "\x1b[",
        "\x1b]",
        "\u0301",
        "a\u0301",
        "\u200d",
        "\u202e",
        "\U0001f469\u200d",
    ),
    *("\u00e9", "\u4e2d", "\ufe0f"),
)
WORDS: Final = (
    *(
        "a",
        "A ",
        "aB",
        "1",
        "a ",
        "A b. ",
        "a.",
        "a@",
        "a/",
        "../",
        "a.txt ",
        "a && ",
        "a | ",
        "a;",
        "-a ",
        "a=",
        "a: ",
    ),
    *(
        "sudo ",
        "env a=b ",
        "nohup time ",
        "$(",
        "$a",
        ">a ",
        "<<a\n",
        "{{",
        "*a",
        "* ",
        "\\ud800",
        "\\u0041",
        "%41",
    ),
    *(
        "http://",
        "http://a.b/c ",
        "www.a.",
        "a@b.c ",
        "data:a,",
        "QUJD",
        "sha256:",
        "](",
        "[a]: ",
        "[a](http://b.c) ",
    ),
    *(
        "# ",
        "# a\n",
        "> ",
        "- ",
        "- a\n",
        " - a\n",
        "_a_ ",
        "**a",
        "`a` ",
        "``` ",
        "```\n",
        "![[",
        "| a | b |\n",
    ),
    *(
        "<a ",
        "<div>",
        "<!--",
        "<![CDATA[",
        "&amp;",
        "&#x41;",
        '"a",',
        '{"a":',
        '{"a":1}\n',
        "[a, ",
        "a:\n",
        "&a [*a,",
    ),
    *(
        "[[a]]\n",
        "A: b\r\n",
        "\r\n a",
        "---\n",
        "--- a\n",
        "@@ -1 +1 @@\n",
        "+a\n-b\n",
        "<think>",
        "{{secret:a}} ",
    ),
    *(
        "monday ",
        "every ",
        "at 5 ",
        "from 1 to 2 ",
        "2026-01-01 ",
        "1:11 ",
        "(0) 1",
        "and then ",
        "not ",
        "my name is ",
    ),
    *("a is b ", "remind me to ", "never ", "with a, b and "),
)
AROUND: Final = (
    *(
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{", "1", "}"),
        ('{"a":', "1", "}"),
        ('{"zzz":[', "1", "]}"),
        ("<a>", "", "</a>"),
    ),
    *(
        ("```\n", "a", "\n```"),
        ("**", "a", "**"),
        ("> ", "x", "\n"),
        ("<!--", "", "-->"),
        ("<think>", "a", "</think>"),
    ),
)
FRAMED: Final = (
    *(
        ("---\n", "a: ", "\n---"),
        ("---\n", "[", "\n---"),
        ("---\n", "\n", "x"),
        ("http://", "a", "\0"),
    ),
    *(
        ("http://a.b/", "a/", '"'),
        ("every ", "a ", "!"),
        ('"', "a", "\n"),
        ("`", "a", "\n"),
        ("[a](", "b", "\n"),
    ),
    *(
        ("a", " ", "b"),
        ("a", "\n", "b"),
        ('{"a":"', "\\u0041", '"}'),
        ("data: ", "a", "\n"),
        ("# ", "a ", "#x"),
    ),
    *(
        ("| a |\n|-|\n", "| b ", "\n"),
        ("remember that ", "a ", "?"),
        ("from a to ", "b ", ""),
        ("def f():\n", "    a\n", ""),
    ),
    *(
        ("[core]\n", "a = b\\\n", ""),
        ("--- a\n+++ b\n@@ -1 +1 @@\n", "+a\n", ""),
        ("a = ", "-", "1"),
        ("a", ".b", "("),
    ),
    *(
        ("*** Begin Patch\n*** Update File: a\n", "@@\n-a\n+b\n", "*** End Patch"),
        ("def f(a=", "(", ""),
        ("1", "0", "x"),
    ),
)
FEW: Final = ("(", "\\", "\n", " ", "a", "a ", "a/", "](", "- a\n", "\u0301")
"""Enough to tell what grows by the square; the others are for `make linear`."""


def patterns(few: bool = False) -> Iterator[tuple[str, Make]]:
    """Each under its name."""
    for unit in FEW if few else (*SIGNS, *WORDS):
        yield repr(unit), _repeated("", unit, "")
    for head, middle, tail in AROUND[3:4] if few else AROUND:
        yield f"{head!r} {middle!r} {tail!r}", _nested(head, middle, tail)
    for head, unit, tail in FRAMED[:2] if few else FRAMED:
        yield f"{head!r} + {unit!r} + {tail!r}", _repeated(head, unit, tail)


def _repeated(head: str, unit: str, tail: str) -> Make:
    return lambda chars: f"{head}{unit * (chars // len(unit))}{tail}"


def _nested(head: str, middle: str, tail: str) -> Make:
    def make(chars: int) -> str:
        times = chars // len(head + tail)
        return head * times + middle + tail * times

    return make


ARGUMENTS: Final = ("command", "url", "path", "query", "text", "content", "name", "action")


def as_arguments(text: str) -> bytes:
    """The text as what a model could have written for any of the usual arguments."""
    return msgspec.json.encode(dict.fromkeys(ARGUMENTS, text))
