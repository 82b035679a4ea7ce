"""Whether a request speaks of a file, and of losing what stands in it. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from .programs import FileChange

_REPLACES = re.compile(
    r"\b(overwrit|rewrit|re-write|empty|clear|start (it )?over|new version|from scratch|reset)\w*"
    r"|\breplac\w+ (it|everything|((all|the|its|what|whole|entire|old|current|of) )*"
    r"(contents?|text|words|file|list|letter|note|lines|rest|[\w-]+\.\w{1,5}))\b",
    re.IGNORECASE,
)
"""A whole text is spoken of: who replaces a word in a file does not mean the rest of it."""
_DELETES = re.compile(
    r"\b(delet|remov|drop|erase|throw|get rid|trash|clean|clear|wipe|discard)\w*", re.IGNORECASE
)


def is_loss_requested(change: FileChange, said: str) -> bool:
    """Whether the request speaks of losing this: by the file's name, or by the kind of files that
    it is one of."""
    if change.kind == "deleted":
        return bool(_DELETES.search(said)) and (
            is_file_mentioned(change.path, said) or _is_kind_mentioned(change.path, said)
        )
    return (
        bool(_REPLACES.search(said)) and is_file_mentioned(change.path, said)
    ) or _is_replacement_requested(change.path, said)


def _is_replacement_requested(path: str, said: str) -> bool:
    """Whether the file itself is what is replaced, as in `replace my diary by a poem`, and not a
    word in one."""
    name = _normalize_words(PurePosixPath(path).stem)
    words = _normalize_words(said)
    found = name and re.search(
        rf"\breplac\w* (?:(?:my|the|our|this|that|old|whole) )*{re.escape(name)}\b(.*)", words
    )
    return bool(found and not re.search(r"\b(in|inside|within|of)\b", found[1]))


def _is_kind_mentioned(path: str, said: str) -> bool:
    """Whether files of this ending, or those in this folder, are what is spoken of: `*.tmp`, `the
    tmp files`. The ending of a name, as in `notes.txt`, speaks of no other file."""
    place = PurePosixPath(path)
    names = _NAMES.findall(said)
    words = f" {_normalize_words(_NAMES.sub(' ', said))} "
    ending = place.suffix.removeprefix(".").lower()
    folders = [] if names and not _MANY.search(said) else place.parts[:-1]
    return bool(ending and f" {ending} " in words) or any(
        f" {_normalize_words(part)} " in words for part in folders
    )


_NAMES = re.compile(r"(?<![\w-])[\w-]++\.\w{1,5}\b")
_MANY = re.compile(r"\b(all|every|everything|each|files|contents?|whole)\b|\*", re.IGNORECASE)


def is_file_mentioned(path: str, said: str) -> bool:
    """Whether the file's name, with or without its ending, occurs in what was said: `todo.md` in
    `my To-Do list`."""
    name = PurePosixPath(path.rstrip("/")).name
    words = f" {_normalize_words(said)} "
    return any(
        f" {word} " in words or f" {word}s " in words
        for word in {_normalize_words(name), _normalize_words(PurePosixPath(name).stem)}
        if word
    ) or (bool(name) and name.lower() in said.lower())


def _normalize_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower().replace("_", " ")))
