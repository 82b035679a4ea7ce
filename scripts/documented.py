"""Takes the commands and the WebSocket messages out of a document, as data: `documented.py NAME
FILE > NAME.json`.

Only commands and message shapes are taken, never sentences. `tests/web/documented/` has what it
made of the documents of agent_computer and openagent-core.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

FIELDS = re.compile(r"`([\w]+)(?::[^`]*)?`")
ROW = re.compile(r"^\| `(\w+)` \| ([^|]*) \|", re.MULTILINE)
HTTP_ROW = re.compile(r"^\| `(GET|POST|DELETE|PUT|PATCH)` \| `(/[^`]*)` \|", re.MULTILINE)
FRAME = re.compile(r'^>? ?(\{"type": "(\w+)".*\})\s*$', re.MULTILINE)
SOCKET = re.compile(r"wss?://[^\s`\"']+")
DIRECTION = re.compile(r"^(?:\*\*)?(Client → Server|Server → Client|Send|Receive)", re.MULTILINE)


def commands(text: str) -> list[dict[str, object]]:
    """Each curl command: its method, path and body."""
    found = []
    for match in re.finditer(r"^curl\b(?:.*\\\n)*.*$", text, re.MULTILINE):
        words = shlex.split(match[0].replace("\\\n", " "))
        method = "GET"
        body = None
        url = ""
        at = 1
        while at < len(words):
            if words[at] in ("-X", "-d", "-H"):
                method = words[at + 1] if words[at] == "-X" else method
                body = words[at + 1] if words[at] == "-d" else body
                at += 2
                continue
            url = words[at]
            at = at + 1
        path = re.sub(r"^https?://[^/]+", "", url)
        found.append(
            {"method": method, "path": path, "body": None if body is None else json.loads(body)}
        )
    return found


def frames(text: str) -> list[dict[str, object]]:
    """Each example of a WebSocket message, and which way it goes; of the server's only the names of
    its fields."""
    found: list[dict[str, object]] = []
    turns = [
        (match.start(), match[1] in ("Client → Server", "Send"))
        for match in DIRECTION.finditer(text)
    ]
    for match in FRAME.finditer(text):
        sent = next((mine for start, mine in reversed(turns) if start < match.start()), True)
        if sent:
            found.append({"to": "server", "type": match[2], "frame": json.loads(match[1])})
        else:
            fields = re.findall(r'"(\w+)":', re.sub(r"\{[^{}]*\}", "0", match[1][1:-1]))
            found.append({"to": "client", "type": match[2], "fields": fields[1:]})
    for name, fields in ROW.findall(text):
        if (
            name.islower()
            and FIELDS.search(fields)
            and turns
            and text.index(f"| `{name}` |") > turns[-1][0]
        ):
            found.append({"to": "client", "type": name, "fields": FIELDS.findall(fields)})
    return found


def main() -> None:
    name = sys.argv[1]
    file = Path(sys.argv[2])
    text = file.read_text()
    endpoints = [{"method": method, "path": path} for method, path in HTTP_ROW.findall(text)]
    sockets = sorted(
        {re.sub(r"^wss?://[^/]+", "", each).rstrip(".,") for each in SOCKET.findall(text)}
    )
    taken = {
        "source": name,
        "commands": commands(text),
        "endpoints": endpoints,
        "sockets": [path for path in sockets if path],
        "frames": frames(text),
    }
    sys.stdout.write(json.dumps(taken, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
