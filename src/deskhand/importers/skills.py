"""What a skill of another system is called here, and why it may stay behind."""

from __future__ import annotations

import re

from ..skills.scan import scan_files
from ..skills.skill import FILE_NAME, parse_front_matter
from .model import ImportedFolder
from .safe_files import to_utf8

MAX_TEXT_CHARS = 300_000
"""A skill with more text than this is not looked through."""
_READABLE = re.compile(rb"[\t\r\n\x20-\x7e]{6,}")


def skill_name(skill: ImportedFolder) -> str:
    """What it is called here: as its own file says."""
    return _read_front_matter(skill).get("name") or skill.name


def _read_front_matter(skill: ImportedFolder) -> dict[str, str]:
    return parse_front_matter(skill.files.get(FILE_NAME, b"").decode("utf-8-sig", "replace"))[0]


def explain_unsafe(skill: ImportedFolder) -> str:
    """Why a skill stays behind: what skills have been used for against people, in any of its files;
    '' for nothing."""
    texts = [_extract_text(data) for data in skill.files.values()]
    if sum(map(len, texts)) > MAX_TEXT_CHARS:
        return (
            f"it has too much text to be scanned ({MAX_TEXT_CHARS // 1000} kB): read it, and "
            "copy its folder yourself"
        )
    front = _read_front_matter(skill)
    found = scan_files(f"{front.get('name', '')}\n{front.get('description', '')}", texts)
    wrong = [each for each in found if each.severity == "bad"]
    return f"{wrong[0].words} (“{wrong[0].excerpt}”)" if wrong else ""


def _extract_text(data: bytes) -> str:
    """What can be read of a file: all of a text, of anything else its readable parts."""
    data = to_utf8(data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "\n".join(part.decode("ascii") for part in _READABLE.findall(data))
