"""A model that says what a script says, for running other systems: chat completions (whole or
streamed), embeddings.

The script is JSON: a list of `{"when": text, "say": [step, ...]}`. The first whose text stands in
the last message of a person is taken; its steps are given one after another, for each call of the
model since then. A step is a text, or `{"text": …, "calls": [[tool, arguments], …]}`.
"""

from __future__ import annotations

import json
import math
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SEEN: list[str] = []


def text_of(content):
    if isinstance(content, list):
        return " ".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content or ""


def answer(script, messages):
    """The message of the assistant that comes next."""
    after = 0
    last = ""
    for message in reversed(messages):
        if message["role"] == "assistant":
            after += 1
        elif message["role"] in ("user", "system"):
            last = text_of(message["content"])
            break
    steps = next(
        (each["say"] for each in script if each["when"] in last), ["I have nothing to add."]
    )
    step = steps[min(after, len(steps) - 1)]
    if isinstance(step, str):
        return {"role": "assistant", "content": step}
    number = sum(len(message.get("tool_calls") or ()) for message in messages)
    calls = [
        {
            "id": f"call_{number + i}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for i, (name, args) in enumerate(step["calls"])
    ]
    return {"role": "assistant", "content": step.get("text"), "tool_calls": calls}


def vector(text, size):
    """Far from those of all other texts, and the same for the same."""
    if text not in SEEN:
        SEEN.append(text)
    turn = SEEN.index(text) * 0.62  # ten of them are farther apart than what counts as the same
    return [math.cos(turn), math.sin(turn), *[0.0] * (size - 2)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def send(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        SEEN.clear()
        self.send(
            json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).encode()
        )

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            given = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
            size = asked.get("dimensions") or 2
            data = [
                {"object": "embedding", "index": i, "embedding": vector(t, size)}
                for i, t in enumerate(given)
            ]
            used = {"prompt_tokens": 1, "total_tokens": 1}
            return self.send(
                json.dumps(
                    {"object": "list", "model": "scripted", "data": data, "usage": used}
                ).encode()
            )
        message = answer(self.server.script, asked["messages"])
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        used = {"prompt_tokens": 120, "completion_tokens": 14, "total_tokens": 134}
        whole = {"id": "c1", "created": 1760000000, "model": "scripted"}
        if not asked.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return self.send(
                json.dumps(
                    {**whole, "object": "chat.completion", "choices": [choice], "usage": used}
                ).encode()
            )
        for index, call in enumerate(message.get("tool_calls") or ()):
            call["index"] = index
        pieces = [
            {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {"choices": [], "usage": used},
        ]
        lines = [
            json.dumps({**whole, "object": "chat.completion.chunk", **piece}) for piece in pieces
        ]
        self.send(
            "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode(),
            "text/event-stream",
        )


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.script = json.loads(Path(sys.argv[2]).read_text())
    server.serve_forever()
