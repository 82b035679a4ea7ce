"""Writes what the page says of each key of the configuration, from the table in
docs/configuration.md.

Run it after that table has changed; a test compares the two.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "configuration.md"
MADE = ROOT / "src" / "deskhand" / "web" / "static" / "js" / "panels" / "keys.js"
HEAD = (
    "// biome-ignore-all format: one line for each key, as scripts/settings_keys.py writes it\n"
    "// What each key of the configuration does: [without it, with it]. Made from "
    "docs/configuration.md.\n"
)

_ROW = re.compile(r"^\| `([\w.]+)` \| (.*?) ?\| (.+) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_POINTER = re.compile(r"(?: See)? \[[^\]]+\]\([^)]+\)\.$")


def plain(text: str) -> str:
    """Words without marks; a sentence that only points to another page is left out."""
    return _LINK.sub(r"\1", _POINTER.sub("", text)).replace("`", "").strip()


def module(docs: str) -> str:
    """The JavaScript with a line for each key."""
    lines = [
        f"  {json.dumps(key)}: {json.dumps([plain(without), plain(does)], ensure_ascii=False)},"
        for key, without, does in _ROW.findall(docs)
    ]
    return HEAD + "export const KEYS = {\n" + "\n".join(lines) + "\n};\n"


if __name__ == "__main__":
    MADE.write_text(module(DOCS.read_text()))
