"""Git's configuration is read as git reads it, or not at all."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deskhand.tools.gitconfig import GitSetting, clean_config, parse_config, render_config
from deskhand.types.errors import ToolError

from ..examples import examples

HEADERS = (
    *(b"[core]\n", b"[x.Y]", b"[x.]", b"[.x]", b"[x..y]", b"[]", b'[x "y.Z"]', b'[x.Y "z"]'),
    *(b'[x ""]', b'[. "z"]', b'[x. "z"]', b'[x "a\\"b"]', b'[x "a]"]', b'[x\t"a"]', b'[x "a" ]'),
)
PIECES = (
    *(b"[", b"]", b'"', b"\\", b"\n", b"\r", b"\r\n", b" ", b"\t", b"#", b";", b"=", b".", b"-"),
    *(b"a", b"B", b"1", b"_", b"\0", b"\x01", b"\x0b", b"\x0c", b"\x7f", b"\x80", b"\xff"),
    *("ö".encode(), b"\xef\xbb\xbf", b"\\n", b"\\t", b"\\b", b"\\x", b'\\"', b"\\\\"),
    *(b"\\\n", b"\\\r\n", b"pager", b"\npager = x", b"\neditor", b" = ", b'"x"'),
)
FILES = st.lists(st.sampled_from(HEADERS + PIECES), max_size=16).map(b"".join)


def ask_git(data: bytes) -> list[tuple[str, str | None]] | None:
    """The settings as git lists them; None for what it does not read."""
    command = ["git", "config", "--file", "-", "--list", "-z", "--no-includes"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode:
        return None
    found = list[tuple[str, str | None]]()
    for each in done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        key, equals, value = each.partition("\n")
        found.append((key, fold_blanks(value) if equals else None))
    return found


def fold_blanks(value: str) -> str:
    """Git reads a blank in a value as a space before 2.45, and as it is since."""
    return re.sub(r"[ \t\r]", " ", value)


def listed(entries: list[GitSetting]) -> list[tuple[str, str | None]]:
    return [(each.key, None if each.value is None else fold_blanks(each.value)) for each in entries]


@given(start=st.sampled_from([b"", b"[core]\n\tx = "]), rest=FILES)
@example(b"", b"[]\n")
@example(b"", b"[x.]\na = 1\n")
@settings(max_examples=examples(1_500, quick=200))
def test_git_reads_the_same(start: bytes, rest: bytes) -> None:
    data = start + rest
    try:
        entries = parse_config(data)
    except ToolError:
        return  # it is put back: git may read more than we do
    assert ask_git(data) == listed(entries)
    for each in entries:  # as git takes a key apart: at its first and its last dot
        section, _, name = each.key.partition(".")
        subsection, dot, name = name.rpartition(".")
        assert (each.section, each.subsection, each.name) == (
            *(section, subsection if dot else None),
            name,
        )
    assert ask_git(render_config(entries)) == listed(entries)


def test_the_configuration_is_read_as_git_reads_it() -> None:
    text = b'\xef\xbb\xbf[a]x=1\r\n\ty = " q # " # c\n z\n[A "B\\"c"]\tk = a\\\n  b\\t"\\n"\n'
    text += b"[s.Sub]\nn = a  b ;x\n# [c]\n[d] e=\n"
    found = [(each.key, each.value) for each in parse_config(text)]
    wanted = [
        ("a.x", "1"),
        ("a.y", " q # "),
        ("a.z", None),
        ('a.B"c.k', "a  b\t\n"),
        ("s.sub.n", "a  b"),
        ("d.e", ""),
    ]
    assert found == wanted
    assert [
        (each.key, each.value) for each in parse_config(render_config(parse_config(text)))
    ] == wanted
    for wrong in (
        b"[a\n",
        b"x = 1\n",
        b"[a]\n1=2\n",
        b'[a]x="1\n',
        b"[a]x=\\q\n",
        b"[a b]\n",
        b"[a]x\0=1\n",
    ):
        with pytest.raises(ToolError):
            parse_config(wrong)


def test_what_is_taken_out_of_a_configuration() -> None:
    old = b"# mine\n[alias]\n\tlg = log\n"
    assert clean_config(old, old + b"[user]\n\tname = x\n", ".git") == (
        old + b"[user]\n\tname = x\n",
        [],
    )
    kept, keys = clean_config(old, b"[alias]\n\tlg = !evil\n[user]\n\tname = x\n", ".git")
    assert keys == ["alias.lg"] and kept == b"[user]\n\tname = x\n[alias]\n\tlg = log\n"
    assert clean_config(old, b"", ".git") == (b"[alias]\n\tlg = log\n", ["alias.lg"])
