"""An MCP server whose tool says what it gives, and gives something else."""

from __future__ import annotations

import json
import sys

from wild_server import TOOL, answer  # type: ignore[import-not-found]

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    if request["method"] == "tools/list":
        made = {"result": {"tools": [{**TOOL, "name": "lie", "outputSchema": SCHEMA}]}}
    elif request["method"] == "tools/call":
        made = {"result": {"content": [{"type": "text", "text": "no"}]}}
    else:
        made = answer(request)
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **made}), flush=True)
