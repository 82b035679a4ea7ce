"""Which programs a command would run: what is certain to be listed is free, all else is asked."""

from __future__ import annotations

import pytest

from deskhand.policy.commands import unlisted

ALLOWED = ("ls", "grep", "git", "cat", "xargs", "./build.sh")


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "  ls -la /tmp  ",
        "ls | grep x",
        "ls|grep x|cat",
        "git add . && git commit -m 'rm; mv && x'",
        "ls; ls & ls || ls",
        "ls\ncat a\n",
        "(ls; cat a)",
        "ls > out.txt 2>&1",
        "cat < in.txt | grep -v 'a$' > /dev/null",
        "/bin/ls /usr/bin/grep",
        "ls | xargs -0 cat",
        "./build.sh",
        'grep "a|b;c" file',
        "ls a#b",
        "",
    ],
)
def test_listed(command: str) -> None:
    assert unlisted(command, ALLOWED) == ""


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("rm x", "rm"),
        ("ls | rm x", "rm"),
        ("ls;rm x", "rm"),
        ("ls&&rm x", "rm"),
        ("ls &rm x", "rm"),
        ("ls |& rm x", "rm"),
        ("ls\nrm x", "rm"),
        ("(rm x)", "rm"),
        ("ls a#b; rm x", "rm"),
        ("ls # no\nrm x", "rm"),
        ("ls $(rm x)", "$"),
        ('ls "$(rm x)"', "$(rm x)"),
        ("ls `rm x`", "`rm"),
        ("cat <(rm x)", "<("),
        ("ls > $(rm x)", "$"),
        ("ls | xargs rm", "rm"),
        ("xargs -n 1 rm", "1"),
        ("> out rm x", "rm"),
        ("2>/dev/null rm x", "rm"),
        ("A=1 ls", "A=1"),
        ("$RM x", "$RM"),
        ("r\\m x", "rm"),
        ("'rm' x", "rm"),
        ("./ls", "./ls"),
        ("/tmp/ls", "/tmp/ls"),
        ("/bin/../tmp/ls", "/bin/../tmp/ls"),
        ("if true; then rm x; fi", "if"),
        ("f() { rm x; }; f", "f"),
        ("cat <<EOF\nrm x\nEOF", "<<"),
        ("bash -c 'rm x'", "bash"),
        ("ls 'unended", "ls 'unended"),
        ("! rm x", "!"),
        ("{ rm x; }", "{"),
        ("ls ${x:=$(rm x)}", "${x:=$"),
    ],
)
def test_not_listed(command: str, program: str) -> None:
    assert unlisted(command, ALLOWED) == program


def test_an_empty_list_lists_nothing() -> None:
    assert unlisted("ls", ()) == "ls"
