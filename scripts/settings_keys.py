"""Writes what the page says of each key of the configuration: its default and what it does, from
the table in docs/configuration.md, and its type, from docs/configuration-reference.md.

Run it after these have changed; a test compares them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "configuration.md"
REFERENCE = ROOT / "docs" / "configuration-reference.md"
MADE = ROOT / "src" / "deskhand" / "web" / "static" / "js" / "panels" / "keys.js"
HEAD = (
    "// biome-ignore-all format: one line for each key, as scripts/settings_keys.py writes it\n"
    "// What each key of the configuration does: [without it, with it, its type]. Made from "
    "docs/configuration.md.\n"
)

_ROW = re.compile(r"^\| `([\w.]+)` \| (.*?) ?\| (.+) \|$", re.MULTILINE)
_TYPE = re.compile(r"^\| `([\w.]+)` \| (.*?) \| ", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_POINTER = re.compile(r"(?<=\.)(?: See)? \[[^\]]+\]\([^)]+\)\.$")


def plain(text: str) -> str:
    """Words without marks; a sentence that only points to another page is left out."""
    return _LINK.sub(r"\1", _POINTER.sub("", text)).replace("`", "").strip()


def module(docs: str, reference: str) -> str:
    """The JavaScript with a line for each key."""
    types = dict(_TYPE.findall(reference))
    lines = []
    for key, without, does in _ROW.findall(docs):
        said = [plain(without), plain(does), plain(types[key])]
        lines.append(f"  {json.dumps(key)}: {json.dumps(said, ensure_ascii=False)},")
    return HEAD + "export const KEYS = {\n" + "\n".join(lines) + "\n};\n"


if __name__ == "__main__":
    MADE.write_text(module(DOCS.read_text(), REFERENCE.read_text()))
