"""Texts that a small model writes as a whole: new ones out of its head, and small ones that are
made better. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..types.intended_loss import is_file_mentioned
from ..types.python_source import parse_python
from .shim_request import FILE_NAME, FREE_EDIT, READ_ONLY
from .shim_turn import ShimTurn


def is_rewrite(turn: ShimTurn, texts: str) -> bool:
    """Whether one small text is to be made better, which is written anew as a whole."""
    if READ_ONLY.search(turn.request) or not is_rewording(turn.request):
        return False
    return find_rewrite_target(texts) != ""


def is_rewording(request: str) -> bool:
    """Whether it speaks of making words better; dates and amounts are changed by a program."""
    return bool(FREE_EDIT.search(request) and not _WORKED_OUT.search(request))


_WORKED_OUT = re.compile(
    r"\b(dates|prices|amounts|(every|each) (date|price|amount|number))\b", re.IGNORECASE
)


def find_rewrite_target(texts: str) -> str:
    """Of the texts of a survey the one that may be written anew: the only one, or the only script;
    '' for none."""
    found = [
        path
        for path, text in _split_texts(texts)
        if len(text) < MAX_REWRITE_CHARS and "…" not in text
    ]
    paths = list(dict.fromkeys(found))
    scripts = [path for path in paths if path.endswith((".py", ".sh", ".js"))]
    if len(scripts) == 1:
        return scripts[0]
    return paths[0] if len(paths) == 1 else ""


def _split_texts(texts: str) -> Iterator[tuple[str, str]]:
    """The names and the texts of a survey that have an end."""
    lines = texts.split("\n")
    # The numbers of the lines that end a text, by its name; the last one comes first.
    ends = dict[str, list[int]]()
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].startswith(_END):
            ends.setdefault(lines[number].removeprefix(_END), []).append(number)
    over = 0
    for number, line in enumerate(lines):
        path = line.removeprefix("--- ")
        is_beginning = path != line and path.strip() and not path[0].isspace()
        if number < over or not is_beginning:
            continue
        after = ends.get(path, [])
        while after and after[-1] <= number:
            after.pop()
        if after:
            yield path, "".join(f"{each}\n" for each in lines[number + 1 : after[-1]])
            over = after[-1] + 1


_END = "--- end of "


def make_rewrite_program(texts: str, written: str) -> str:
    """The program that gives a text of a survey these new words; '' where there are none."""
    path = find_rewrite_target(texts)
    block = _find_block(written) or ""
    frame = {f"--- {path}", f"--- end of {path}"}
    new = "\n".join(line for line in block.split("\n") if line.strip() not in frame).strip("\n")
    if not path or not new.strip():
        return ""
    if path.endswith(".py") and not _is_python(new):
        return ""
    return f"read({path!r})\nwrite({path!r}, {new!r})\nsay('I have changed {path}.')"


def _is_python(text: str) -> bool:
    try:
        parse_python(text)
    except SyntaxError:
        return False
    return True


def find_new_text_path(request: str, listing: str) -> str:
    """The file that is to hold a text which is made up, from the words of the request alone; '' for
    none."""
    asked = [
        name
        for name in _NEW_TEXT.findall(request)
        if name.rpartition("/")[2].lower() not in listing.lower()
    ]
    if len(asked) != 1 or len(FILE_NAME.findall(request.lower())) != 1:
        return ""
    if _GIVEN.search(request) or not _COMPOSED.search(request):
        return ""

    rest = request.replace(asked[0], " ")
    listed = re.findall(r"^- ([^:\n]+):", listing, re.MULTILINE)
    speaks_of_file = any(is_file_mentioned(path, rest) for path in listed)
    return "" if speaks_of_file else asked[0]


_NEW_TEXT = re.compile(r"(?:[\w-]{1,80}/){0,4}[\w-]{1,80}\.(?:txt|md)\b")
_COMPOSED = re.compile(
    r"\b("
    r"letters?|e-?mails?|mails?|messages?"
    r"|poems?|limericks?|haikus?|stor(y|ies)"
    r"|notes?|notices?|invitations?|cards?|speech|essay|recipe|ideas?|checklist"
    r"|lists? of (\w+ )?(\d+|three|four|five|six|seven|eight|ten|\w+ things)"
    r"|plan|greeting|thank[- ]you|reply|introduction|paragraphs?|sentences?"
    r"|tips|questions|description|announcement|agenda"
    r")\b",
    re.IGNORECASE,
)
"""Kinds of texts that somebody writes out of his head."""
_GIVEN = re.compile(
    r"[\"\u201c\u201d\u201e«»]"
    r"|(?<!\w)'\w"
    r"|\b("
    r"from (my|the|it|them|[\w-]+\.\w+)"
    r"|all|each|every|of my|these|those"
    r"|column|rows?|lines?|translat\w*|summar\w*|folder|copy|contents?|names? of"
    r"|same|existing|count|total|sum|dates?"
    r")\b"
    r"|\bwith [^.,]{1,200}, [^.]{1,200} and ",
    re.IGNORECASE,
)
"""What is to be written stands somewhere already, or is to be worked out."""


def make_text_program(path: str, written: str, request: str = "") -> str:
    """The program that writes a new text, signed as the request says; '' where there is none."""
    text = _find_block(written)
    if text is None:
        text = _find_unfenced_text(written)
    if not text:
        return ""

    lines = [_BLANK_NAME.sub(r"Hello\2", line) for line in text.strip("\n").split("\n")]
    if signed := _SIGNED.search(request):
        lines = [signed[1] if _MY_NAME.fullmatch(line.strip()) else line for line in lines]
    kept = "\n".join(line for line in lines if not _BLANK.fullmatch(line.strip()))
    return f"write({path!r}, {kept!r})" if kept.strip() else ""


def _find_unfenced_text(written: str) -> str:
    """The text that was written without a fence; '' where something else was said."""
    said = written.strip()
    if "```" in said or "\n" not in said or _REFUSED.match(said):
        return ""
    return _INTRODUCED.sub("", said)


def close_fence(written: str) -> str:
    """What was written to its end, with the end of its fence, which a small model forgets."""
    return f"{written}\n```" if written.count("```") == 1 else written


_INTRODUCED = re.compile(r"^(sure|certainly|of course|here)\b.*:\n+", re.IGNORECASE)
"""What stands before a text that has no fence."""
_REFUSED = re.compile(r"(i'?m sorry|sorry|i can(no|')t|unfortunately)\b", re.IGNORECASE)
_SIGNED = re.compile(
    r"\bsign(?:ed)?(?: it)? (?:as|with|by|from) ((?!(?:my|me|the|a)\b)\w+)", re.IGNORECASE
)
_MY_NAME = re.compile(r"\[(your|my) (full )?name\][,.]?", re.IGNORECASE)
_BLANK = re.compile(r"\[[A-Z][^\]]*\][,.]?")
_BLANK_NAME = re.compile(r"^(Dear|Hi|Hello) \[[A-Z][^\]]*\](,?)$")
"""What a person is to fill in: a small model leaves it though it is told not to."""


def _find_block(written: str) -> str | None:
    """What stands between the first fence and the last: a text may have fences of its own. None
    where there is none, or it was cut off."""
    opening = _FENCE.search(written)
    if opening is None:
        return None
    end = written.rfind("\n```", opening.end())
    return written[opening.end() : end] if end >= 0 else None


_FENCE = re.compile(r"```\w*\n")
MAX_REWRITE_CHARS = 2_000
