"""A shell command as plain words, or the reason why its words do not tell what it runs.

Only this much of bash is read: words with quotes and backslashes, `&& || ; & |`, line ends,
subshells, comments and redirections to files. Everything else (substitutions, variables,
assignments before a command, here-documents, braces, functions, control and invisible characters)
makes it unclear, as does more than LONGEST characters. The time is linear.
"""

from __future__ import annotations

import re

import msgspec

MAX_COMMAND_CHARS = 16 * 1024

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]++)
    |(?P<comment>\#[^\n]*+)
    |(?P<redirect>\d*+(?:&>>?|>>|>\||[<>]&|<>|>|<(?![<(])|>(?!\()))
    |(?P<end>&&|\|\||\|&|[;&|\n])
    |(?P<bracket>[()])
    |(?P<word>(?:[\w@%+=:,./^\-~*?\[\]!\#]|[^\x00-\x7f]|'[^']*+'|"(?:[^"\\$`]|\\["\\])*+"|\\[\x20-\x7e]|\{\})++)""",
    re.VERBOSE,
)
_PIECE = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)|([^'\"\\]+)", re.DOTALL)
_QUOTED = re.compile(r"['\"\\]")
_GLOB = re.compile(r"[*?\[]")
_ESCAPED = re.compile(r'\\(["\\])')
_BLANK = re.compile(r"[ \t]*")
_NOWHERE = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})


class ShellWord(msgspec.Struct, frozen=True, gc=False):
    """A word as the program gets it. `glob`: bash makes names of files of it, and the first may
    begin with anything."""

    text: str
    glob: bool = False


class WordReader(msgspec.Struct, frozen=True, gc=False):
    """The simple commands of a line, in order, without their redirections. `unclear` is the first
    piece that may mean more than it says; then the commands are those before it. `writes`: a
    redirection writes a file."""

    commands: tuple[tuple[ShellWord, ...], ...] = ()
    unclear: str = ""
    writes: bool = False


def parse_command(command: str) -> WordReader:
    """What a command says. Never raises."""
    if len(command) > MAX_COMMAND_CHARS:
        return WordReader(unclear=f"more than {MAX_COMMAND_CHARS:,} characters")
    hidden = next((char for char in command if not (char.isprintable() or char in "\n\t")), "")
    if hidden:
        return WordReader(unclear=f"the character U+{ord(hidden):04X}, which is invisible")
    return _Reader(command).read()


class _Reader:
    def __init__(self, command: str) -> None:
        self._command = command
        self._at = 0
        self._commands: list[tuple[ShellWord, ...]] = []
        self._words: list[ShellWord] = []
        self._depth = 0
        self._writes = False
        self._closed = False

    def read(self) -> WordReader:
        unclear = self._read_tokens()
        self._end_command()
        return WordReader(tuple(self._commands), unclear, self._writes)

    def _read_tokens(self) -> str:
        """Read to the end, or to what is unclear, which is returned."""
        while self._at < len(self._command):
            if (found := _TOKEN.match(self._command, self._at)) is None:
                return self._unclear_piece()
            kind = str(found.lastgroup)
            text = found.group()
            if not self._take_token(kind, text, found.end()):
                return self._unclear_piece()
        return "" if self._depth == 0 else "("

    def _take_token(self, kind: str, text: str, end: int) -> bool:
        """Whether this token is as plain as it seems."""
        if kind == "redirect":
            return self._take_redirect(text, end)
        if kind == "bracket" and not self._take_bracket(text):
            return False
        if kind == "word":
            if self._closed:
                return False
            self._words.append(_parse_word(text))
        elif kind == "end":
            if self._command.startswith(";;", self._at):
                return False
            self._end_command()
        self._at = end
        return True

    def _take_bracket(self, text: str) -> bool:
        if text == "(":
            if self._words or self._closed or self._command.startswith("((", self._at):
                return False
            self._depth += 1
            return True
        self._end_command()
        self._depth -= 1
        self._closed = True
        return self._depth >= 0

    def _take_redirect(self, text: str, end: int) -> bool:
        """A redirection with its target: a file beneath the folder, nowhere, or another
        descriptor."""
        blank = _BLANK.match(self._command, end)
        at = blank.end() if blank else end
        found = _TOKEN.match(self._command, at)
        target = _parse_word(found.group()) if found and found.lastgroup == "word" else None
        if target is None or target.glob or found is None:
            return False
        name = target.text
        if text.endswith("&") and not text.startswith("&"):
            if not (name == "-" or name.isdecimal()):
                return False
        elif name not in _NOWHERE:
            outside = name.startswith(("/", "~", "-")) or ".." in name.split("/")
            if outside and (">" in text or name.startswith(("/dev", "/proc", "~", "-"))):
                return False
            self._writes |= ">" in text
        self._at = found.end()
        return True

    def _end_command(self) -> None:
        if self._words:
            self._commands.append(tuple(self._words))
        self._words = []
        self._closed = False

    def _unclear_piece(self) -> str:
        return self._command[self._at : self._at + 40].split("\n")[0].strip() or "a line end"


def _parse_word(raw: str) -> ShellWord:
    if not _QUOTED.search(raw):
        return ShellWord(raw, raw[0] in "*?[" or (raw[0] == "-" and bool(_GLOB.search(raw))))
    text = ""
    globs = False
    for piece in _PIECE.finditer(raw):
        single, double, escaped, plain = piece.groups()
        if plain and (not text or text[0] == "-") and (found := _GLOB.search(plain)):
            globs |= bool(text) or found.start() == 0 or plain[0] == "-"
        text += (
            _ESCAPED.sub(r"\1", double) if double is not None else single or escaped or plain or ""
        )
    return ShellWord(text, globs)
