"""Which programs a command would run: what is certain to be listed is free, all else is asked."""

from __future__ import annotations

import pytest

from deskhand.policy.commands import find_doubt
from deskhand.policy.words import MAX_COMMAND_CHARS
from deskhand.testing.effort import least_cpu_s

WIDE = frozenset(
    {"ls", "git", "echo", "cat", "find", "grep", "python", "env", "awk", "sed", "tar"}
    | {"xargs", "sort", "printf", "command", "timeout", "rg"}
)
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
    assert find_doubt(command, ALLOWED) == ""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("rm x", "'rm'"),
        ("ls | rm x", "'rm'"),
        ("ls;rm x", "'rm'"),
        ("ls&&rm x", "'rm'"),
        ("ls &rm x", "'rm'"),
        ("ls |& rm x", "'rm'"),
        ("ls\nrm x", "'rm'"),
        ("(rm x)", "'rm'"),
        ("ls a#b; rm x", "'rm'"),
        ("ls # no\nrm x", "'rm'"),
        ("ls # it's\nrm x #'", "'rm'"),
        ("ls $(rm x)", "runs: $(rm x)"),
        ('ls "$(rm x)"', 'runs: "$(rm x)"'),
        ("ls `rm x`", "runs: `rm x`"),
        ("cat <(rm x)", "runs: <(rm x)"),
        ("ls > $(rm x)", "runs: > $(rm x)"),
        ("ls | xargs rm", "'rm'"),
        ("xargs -n 1 rm", "runs: xargs -n"),
        ("> out rm x", "'rm'"),
        ("2>/dev/null rm x", "'rm'"),
        ("A=1 ls", "'A=1'"),
        ("$RM x", "runs: $RM x"),
        ("r\\m x", "'rm'"),
        ("'rm' x", "'rm'"),
        ("./ls", "'./ls'"),
        ("/tmp/ls", "'/tmp/ls'"),
        ("/bin/../tmp/ls", "'/bin/../tmp/ls'"),
        ("if true; then rm x; fi", "'if'"),
        ("f() { rm x; }; f", "'f'"),
        ("ls() (rm x)", "runs: () (rm x)"),
        ("cat <<EOF\nrm x\nEOF", "runs: <<EOF"),
        ("bash -c 'rm x'", "'bash'"),
        ("ls 'unended", "runs: 'unended"),
        ("! rm x", "'!'"),
        ("{ rm x; }", "runs: { rm x; }"),
        ("ls ${x:=$(rm x)}", "runs: ${x:=$(rm x)}"),
        ("ls > ../out", "runs: > ../out"),
        ("cat < /dev/tcp/a/1", "runs: < /dev/tcp/a/1"),
    ],
)
def test_not_listed(command: str, told: str) -> None:
    assert told in find_doubt(command, ALLOWED)


def test_an_empty_list_lists_nothing() -> None:
    assert find_doubt("ls", ())


@pytest.mark.parametrize(
    "command",
    [
        "sed -n '1,5p' f",
        "sed -e 's/a\\/b/c/g' -e '/x/d' f",
        "awk -F: '{print $1}' f",
        "tar czf a.tgz folder",
        "tar -xzf a.tgz -C folder --strip-components=1",
        "find . -name '*.py' -type f",
        "git --no-pager log --oneline -5",
        "env",
        "command -v rm",
        "timeout 5s ls",
        "python build.py --fast",
        "printf '%s\\n' a",
        "xargs -0 -r cat",
        "sort -n f",
    ],
)
def test_what_only_does_what_its_name_says(command: str) -> None:
    assert find_doubt(command, WIDE) == ""


@pytest.mark.parametrize(
    "command",
    [
        *(
            "sed '1e id' f",
            "sed 's/a/b/e' f",
            "sed 's/a/b/w x' f",
            "sed -f x",
            "sed f -e 'e id'",
            "sed 'p;e id' f",
        ),
        *("sed -n 's/x/y/\ne id' f", "sed --expression='e id' f", "sed '1r /etc/passwd' f"),
        *(
            "awk 'BEGIN{system(1)}'",
            "awk -f x",
            "awk '{print | \"sh\"}'",
            "awk '{\"id\" | getline}'",
            "awk '{@f()}'",
        ),
        *("awk '{print > \"f\"}'",),
        *(
            "tar cIf sh x",
            "tar -I sh -c x",
            "tar xf host:x",
            "tar cf x --checkpoint-action=exec=id",
            "tar x --to-c=id",
        ),
        *(
            "tar cf x *",
            "find *",
            "find . ''*",
            "find -*",
            "find . -exec id +",
            "find . -delete",
            "find -fprint x",
        ),
        *(
            "git -c a=b log",
            "git -C x log",
            "git surprise",
            "git config a b",
            "git clone x",
            "git log --output=x",
        ),
        *(
            "git diff --ext-diff",
            "git grep -O x",
            "git *",
            "sort --compress-program=sh",
            "rg --pre sh x",
        ),
        *(
            "env A=1 ls",
            "env -S'sh -c id'",
            "env -i ls",
            "xargs find",
            "xargs -I{} ls {}",
            "timeout -k 1 ls",
        ),
        *(
            "python",
            "python -c 1",
            "python -m x",
            "python - x",
            "python *",
            "printf -v 'a[$(id)]' x",
        ),
        *(
            "eval ls",
            "export PATH=.",
            "alias ls=rm",
            "trap ls EXIT",
            "source x",
            "read x",
            "vim x",
            "bash",
            "bash -i",
        ),
    ],
)
def test_options_that_run_something_else(command: str) -> None:
    listed = {*WIDE, command.split()[0]}
    assert "is not certain" in find_doubt(command, listed)


def test_an_interpreter_is_never_plain_where_it_reaches_far() -> None:
    assert (
        find_doubt("python build.py", WIDE)
        == ""
        != find_doubt("python build.py", WIDE, strict=True)
    )
    assert find_doubt("python --version", WIDE, strict=True) == ""


@pytest.mark.parametrize(
    "filler",
    ["a", " ", "\n", "'", '"', "(", ";", "\\", "{}", "''", "a'", "$", "&", "<", "ls;", "*?"],
)
def test_a_long_command_is_asked_about_and_takes_no_time(filler: str) -> None:
    longest = (filler * MAX_COMMAND_CHARS)[:MAX_COMMAND_CHARS]
    assert least_cpu_s(lambda: find_doubt(longest, WIDE)) < 0.25
    assert f"more than {MAX_COMMAND_CHARS:,} characters" in find_doubt(longest + "a", WIDE)
    assert find_doubt("ls " + "a" * (MAX_COMMAND_CHARS - 3), WIDE) == ""


@pytest.mark.parametrize(
    "sign",
    ["\0", "\r", "\x1b", "\x7f", "\u202e", "\u200b", "\u00a0", "\u2028", "\ufeff", "\U000e0041"],
)
def test_what_nobody_sees_is_asked_about(sign: str) -> None:
    assert f"U+{ord(sign):04X}" in find_doubt(f"ls {sign}a", WIDE)


def test_a_chain_of_programs_that_run_others_is_followed_to_its_end() -> None:
    """However long it is: the words are walked, and no function calls itself."""
    allowed = {"nohup", "time", "ls", "timeout", "command"}
    assert find_doubt("nohup time " * 1_000 + "ls", allowed) == ""
    assert "'make'" in find_doubt("nohup time " * 1_000 + "make", allowed)
    assert "timeout -s" in find_doubt("nohup " * 1_000 + "timeout -s 9 ls", allowed)
    assert find_doubt("nohup " * 1_000 + "command -v make", allowed) == ""
    assert find_doubt("nohup " * 1_000, allowed) == ""
