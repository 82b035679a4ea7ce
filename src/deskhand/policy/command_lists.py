"""Lists of commands under a name, for rules: `commands: ["@looking"]`.

The lists of other systems look at the text alone, as they document, and are easily got round: what
a command can reach is the sandbox's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from .commands import find_doubt_in, list_programs
from .words import WordReader

_LOOKING_NAMES = (
    "ls cat head tail wc grep rg cut tr nl stat file du df pwd echo true false basename "
    "dirname realpath readlink diff"
    " cmp md5sum sha1sum sha256sum uname whoami id which printenv"
)
READ_ONLY_PROGRAMS = frozenset(_LOOKING_NAMES.split())
"""Programs that read and say; with a redirection to a file a command only looks no more."""

_OPERATOR_USE = (
    *(
        "rm -rf /",
        "rm -rf ~",
        "rm -rf /*",
        "dd if=/dev/zero",
        "dd if=/dev/random",
        "mkfs",
        "fdisk",
        "parted",
    ),
    *("chmod 777 /", "chmod -R 777", "shutdown", "reboot", "halt", "poweroff", "init 0", "init 6"),
)
_FORK_BOMB = ":(){:|:&};:"
AGENT_COMPUTER_TEXTS = (
    *("rm -rf /", "mkfs", "dd if=", ":(){ :|:& };:", "> /dev/sda", "chmod -R 777 /"),
    *("curl | sh", "wget | sh", "curl|sh", "wget|sh"),
)
_OPENAGENT = tuple(
    map(
        re.compile,
        (
            r"\brm\b[^\n;|&]*\s/(?:\s|$)",
            r"\bsudo\b",
            r"\bshutdown\b",
            r"\breboot\b",
            r">\s*/dev/",
            r"\bmkfs",
            r"\bdd\b[^\n;|&]*\bof=/dev/",
            r"\$\(",
            r"`",
        ),
    )
)


def _whole_word_pattern(text: str) -> str:
    """A pattern for this text where its first and last letters do not go on: `halt` does not stand
    in `asphalt`."""
    before = r"(?<!\w)" if text[0].isalnum() else ""
    after = r"(?!\w)" if text[-1].isalnum() else ""
    return before + re.escape(text.lower()) + after


_OPERATOR_USE_PATTERN = re.compile("|".join(map(_whole_word_pattern, _OPERATOR_USE)))


def _is_operator_use_hit(command: str) -> bool:
    """Anywhere in the text, however its blanks are."""
    squeezed = " ".join(command.split()).lower()
    return _OPERATOR_USE_PATTERN.search(squeezed) is not None or _FORK_BOMB in squeezed.replace(
        " ", ""
    )


def _is_agent_computer_hit(command: str) -> bool:
    return any(each in command for each in AGENT_COMPUTER_TEXTS)


def _is_openagent_hit(command: str) -> bool:
    return any(each.search(command) for each in _OPENAGENT)


COMMAND_LISTS: Mapping[str, frozenset[str] | Callable[[str], bool]] = {
    "@looking": READ_ONLY_PROGRAMS,
    "@operator-use": _is_operator_use_hit,
    "@agent-computer": _is_agent_computer_hit,
    "@openagent": _is_openagent_hit,
}
"""Programs by name, or what a text that is refused looks like."""


def find_commands_problem(commands: Collection[str], verdict: str) -> str:
    """What speaks against these in a rule, or ''."""
    for each in commands:
        if each.startswith("@") and each not in COMMAND_LISTS:
            return f"there is no list of commands {each!r}; there are: {', '.join(COMMAND_LISTS)}"
        if verdict == "allow" and callable(COMMAND_LISTS.get(each)):
            return f"{each!r} is a list of what is refused: it says nothing about what may run"
        if not each or any(blank in each for blank in " \t\n"):
            return f"{each!r} is not the name of a program: options and arguments are not checked"
    return ""


def is_limited_to(commands: Collection[str], reading: WordReader, *, strict: bool) -> bool:
    """Whether it is certain that nothing else is run than these. In a list with `@looking` no file
    may be written."""
    if reading.writes and "@looking" in commands:
        return False
    return not find_doubt_in(reading, _expand_programs(commands), strict=strict)


def may_run_any(commands: Collection[str], command: str, reading: WordReader) -> bool:
    """Whether one of these seems to be run."""
    texts = [check for each in commands if callable(check := COMMAND_LISTS.get(each))]
    return any(check(command) for check in texts) or bool(
        list_programs(reading) & _expand_programs(commands)
    )


def has_only_text_lists(commands: Collection[str]) -> bool:
    """Whether these name nothing but lists that look at the text alone."""
    return all(callable(COMMAND_LISTS.get(each)) for each in commands)


def _expand_programs(commands: Collection[str]) -> frozenset[str]:
    names = {each for each in commands if not each.startswith("@")}
    lists = [found for each in commands if isinstance(found := COMMAND_LISTS.get(each), frozenset)]
    return frozenset(names.union(*lists))
