"""Writes the requests with which the parser llhttp is tested as JSON, with how llhttp reads each:
for tests that our own readers never understand another thing. Run it on a checkout of
https://github.com/nodejs/llhttp (MIT).

    python scripts/llhttp_cases.py CHECKOUT > tests/web/llhttp.json
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

META = re.compile(r"<!-- meta=(\{.*\}) -->")


def sent(written: str) -> str:
    """The bytes, one character each, as the project's own runner makes them (test/md-test.ts)."""
    text = re.sub(r"\\\n", "", written.removesuffix("\n")).replace("\n", "\r\n")
    for escaped, meant in (("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t"), ("\\f", "\f")):
        text = text.replace(escaped, meant)
    text = re.sub(r"\\x([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)
    return re.sub(r"\\([0-7]{1,3})", lambda found: chr(int(found[1], 8)), text)


def cases(text: str) -> Iterator[tuple[str, dict[str, str], str, str]]:
    """Of a file of tests: the name of each, its settings, what is sent, and what the parser
    logs."""
    name = ""
    meta = dict[str, str]()
    block = ""
    blocks = dict[str, list[str]]()
    for line in text.splitlines():
        if block and line != "```":
            blocks[block].append(f"{line}\n")
        elif line == "```" and block == "log":
            yield name, meta, "".join(blocks["http"]), "".join(blocks["log"])
            block = ""
        elif line.startswith("```"):
            block = line[3:]
            blocks[block] = []
        elif line.startswith("#"):
            name = line.lstrip("# ")
        elif found := META.match(line):
            meta = json.loads(found[1])


def main(checkout: Path) -> None:
    """Write the cases that llhttp reads strictly."""
    found = [
        {
            "name": f"{path.stem}: {name}",
            "sent": sent(written),
            "error": "error code=" in log,
            "messages": log.count("headers complete"),
            "whole": log.count("message complete"),
        }
        for path in sorted((checkout / "test/request").glob("*.md"))
        for name, meta, written, log in cases(path.read_text("utf-8"))
        if meta.get("type") == "request" and not meta.get("mode")
    ]
    sys.stdout.write(json.dumps(found, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
