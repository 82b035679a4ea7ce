"""Writes the table of channels and rules in docs/channels.md, from the quality.toml of each kind.

A test compares the page with what this makes.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CHANNELS = ROOT / "src/deskhand/channels"
PAGE = ROOT / "docs/channels.md"
KINDS = {
    "telegram": "Telegram",
    "discord": "Discord",
    "slack": "Slack",
    "matrix": "Matrix",
    "mail": "mail",
    "mqtt": "MQTT",
    "twitch": "Twitch",
}
"""The channels as the page calls them, in its order."""
BEGIN = "<!-- Made by scripts/make_quality_table.py from the files quality.toml. -->\n"
END = "<!-- The end of what is made. -->\n"
CELLS = {"done": "yes", "exempt": ""}


def make_table() -> str:
    """The rules as rows."""
    found = {kind: load(CHANNELS / kind / "quality.toml") for kind in KINDS}
    lines = [f"| | {' | '.join(KINDS.values())} |", "|---" * (len(KINDS) + 1) + "|"]
    for rule, about in load(CHANNELS / "quality.toml").items():
        cells = [CELLS[state] for kind in KINDS for state in found[kind][rule]]
        lines.append(f"| {about['must']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def load(file: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(file.read_text())


def make_page(page: str) -> str:
    """The page with the table of now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{make_table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(make_page(PAGE.read_text()))
