"""An MCP server that does what it is asked once for each call, and now and then dies, hangs or
floods: before it or after. Nothing of it needs a library, so that it begins at once.

python wild_server.py
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

DONE = "effects.txt"
"""In its folder: a line for each thing that it did."""
TROUBLE = {"": 80, "die before": 4, "die after": 4, "hang before": 4, "hang after": 4, "flood": 4}
HANG_S = 60.0
FLOOD_BYTES = 20 << 20
TOOL = {
    "name": "effect",
    "description": "Does it.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The result, or the error, of one request."""
    match request["method"]:
        case "initialize":
            return {
                "result": {
                    "protocolVersion": request["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "wild", "version": "1"},
                }
            }
        case "tools/list":
            return {"result": {"tools": [TOOL]}}
        case "tools/call":
            text = request["params"]["arguments"]["text"]
            _do(text)
            return {"result": {"content": [{"type": "text", "text": f"did {text}"}]}}
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}


def _do(text: str) -> None:
    (trouble,) = random.choices([*TROUBLE], [*TROUBLE.values()])
    _make_trouble(trouble, "before")
    with Path(DONE).open("a") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    _make_trouble(trouble, "after")
    if trouble == "flood":
        sys.stdout.write("x" * FLOOD_BYTES)


def _make_trouble(trouble: str, when: str) -> None:
    if trouble == f"die {when}":
        os._exit(1)
    if trouble == f"hang {when}":
        time.sleep(HANG_S)  # noqa: TID251 -- a program of its own


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            made = {"jsonrpc": "2.0", "id": request["id"], **answer(request)}
            sys.stdout.write(json.dumps(made) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
