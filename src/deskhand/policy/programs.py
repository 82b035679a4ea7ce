"""Programs that do more than their name says: what among their words lets them run something
else."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .words import ShellWord

_RUNS_OTHERS_NAMES = (
    "sudo doas nice ionice env xargs time command nohup exec builtin timeout stdbuf setsid "
    "chroot watch parallel"
    " unshare nsenter strace ltrace script flock su runuser busybox toybox systemd-run chrt taskset"
)
WRAPPER_PROGRAMS = frozenset(_RUNS_OTHERS_NAMES.split())
"""Programs whose own first word is a program."""
_SHIFTY_NAMES = (
    "eval source . trap alias unalias bind complete compgen enable hash fc coproc export "
    "declare typeset readonly local"
    " let read mapfile readarray set shopt getopts wait at batch crontab"
)
REDEFINING_COMMANDS = frozenset(_SHIFTY_NAMES.split())
"""What makes the words behind it, or of later commands, mean something else."""
_INTERPRETERS_NAMES = (
    "python python2 python3 pypy pypy3 perl ruby node nodejs deno bun lua luajit php tclsh "
    "wish guile sbcl Rscript"
    " julia osascript pwsh sh bash dash zsh ksh mksh ash fish csh tcsh"
)
INTERPRETERS = frozenset(_INTERPRETERS_NAMES.split())
_VERSION = ("--version", "-V", "--help")
_GIT_NAMES = (
    "status log diff show add commit branch tag init rm mv restore switch checkout stash "
    "blame shortlog rev-parse"
    " ls-files ls-tree cat-file describe reset merge-base show-ref rev-list version help"
)
_GIT = frozenset(_GIT_NAMES.split())
"""Commands of git that run nothing by themselves. Any other name may be an alias."""
_GIT_LONG = ("--ex", "--up", "--rec", "--op", "--ou", "--te", "--ed", "--pag")
_AWK = re.compile(r"system|getline|[|>@]")
_SED_AT = r"(?:\d++|\$|/(?:[^/\\\n]|\\[^\n])*+/)?"
_SED = re.compile(
    rf"{_SED_AT}(?:,{_SED_AT})? *+(?:! "
    r"*+)?(?:[pdq=]?|s(?P<mark>[/|,:])(?:(?!(?P=mark))[^\\\n]|\\[^\n])*(?P=mark)"
    r"(?:(?!(?P=mark))[^\\\n]|\\[^\n])*(?P=mark)[gpiI\d]*)"
)
_TAR_SHORT = re.compile(r"-?[cxtvfzjJpkmhaOPruAC0-9]+")
_TAR_LONG = ("--exclude=", "--strip-components=", "--directory=")


def find_risk(words: Sequence[ShellWord], *, strict: bool = False) -> str:
    """What in this plain command may run another program than its first word, or '' for nothing.
    `strict`: an interpreter is never plain, whatever it is given."""
    name = words[0].text
    rest = words[1:]
    if name in REDEFINING_COMMANDS:
        return name
    if name in INTERPRETERS:
        return _find_interpreter_risk(name, rest, strict)
    check = _CHECKS.get(name)
    if check is None:
        return ""
    if loose := next((word for word in rest if word.glob), None):
        return f"{name} {loose.text}"  # a file could be called like an option
    bad = check([word.text for word in rest])
    return f"{name} {bad}".strip() if bad is not None else ""


def _find_interpreter_risk(name: str, rest: Sequence[ShellWord], strict: bool) -> str:
    if len(rest) == 1 and rest[0].text in _VERSION:
        return ""
    first = rest[0].text if rest else ""
    return (
        f"{name} {first}".strip()
        if strict or not first or first.startswith("-") or rest[0].glob
        else ""
    )


def _make_option_check(*starts: str) -> Callable[[Sequence[str]], str | None]:
    return lambda rest: next((word for word in rest if word.startswith(starts)), None)


def _git(rest: Sequence[str]) -> str | None:
    left = [word for word in rest if word != "--no-pager"]
    if not left or left == ["--version"]:
        return None
    if left[0] not in _GIT:
        return left[0]
    return next(
        (word for word in left[1:] if word.startswith(_GIT_LONG) or word.startswith("-O")), None
    )


def _tar(rest: Sequence[str]) -> str | None:
    for number, word in enumerate(rest):
        if ":" in word:
            return word  # a host, and a program that reaches it
        if word.startswith("--"):
            if not word.startswith(_TAR_LONG):
                return word
        elif (word.startswith("-") or number == 0) and not _TAR_SHORT.fullmatch(word):
            return word
    return None


def _sed(rest: Sequence[str]) -> str | None:
    scripts: list[str] = []
    plain: list[str] = []
    words = iter(rest)
    for word in words:
        if word == "-e":
            scripts.append(next(words, "\0"))
        elif word.startswith("-"):
            if word not in ("-n", "-E", "-r", "-i"):
                return word
        else:
            plain.append(word)
    scripts = scripts or plain[:1]
    return next((script for script in scripts if not _SED.fullmatch(script)), None)


def _awk(rest: Sequence[str]) -> str | None:
    words = iter(rest)
    for word in words:
        if word in ("-F", "-v"):
            next(words, "")
        elif word.startswith("-"):
            if not word.startswith("-F"):
                return word
        else:
            return word if _AWK.search(word) else None
    return None


def _subscripts(rest: Sequence[str]) -> str | None:
    """bash evaluates what stands in the brackets of a name, also where it was quoted."""
    return next(
        (word for word in rest if word == "-v" or ("[" in word and ("$" in word or "`" in word))),
        None,
    )


_CHECKS: dict[str, Callable[[Sequence[str]], str | None]] = {
    "find": _make_option_check("-exec", "-ok", "-delete", "-fprint", "-fls"),
    "fd": _make_option_check("-x", "-X", "--exec"),
    "git": _git,
    "tar": _tar,
    "sed": _sed,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    "sort": _make_option_check("--comp", "-o", "--out"),
    "rg": _make_option_check("--pre", "--hostname-bin"),
    "rsync": _make_option_check("-e", "--rsh", "--rsync-path"),
    "zip": _make_option_check("-T", "-TT", "--unzip-command"),
    **dict.fromkeys(
        ("vi", "vim", "nvim", "ed", "ex", "emacs", "less", "more", "man", "gdb"), lambda rest: ""
    ),
    **dict.fromkeys(("test", "[", "[[", "printf", "unset"), _subscripts),
}
