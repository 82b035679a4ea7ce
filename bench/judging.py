"""What it costs to judge one call under a policy of fifty rules."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import msgspec

from deskhand.assembly.judge import make_judge
from deskhand.config.config import Config, Home, Settings
from deskhand.policy.rules import Case
from deskhand.types.effects import Effect
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER

TIMES = 1000
ROUNDS = 7
RULES = (
    *(
        {"verdict": "deny", "tool": f"tool{n}", "who": f"user{n}", "effect": "host"}
        for n in range(20)
    ),
    *({"verdict": "ask", "tool": f"plugin_{n}_*"} for n in range(10)),
    *({"verdict": "deny", "effect": "fetch", "host": f"h{n}.example.org"} for n in range(10)),
    *(
        {"verdict": "ask", "channel": "web", "who": "role:member", "group": True, "tool": f"x{n}"}
        for n in range(10)
    ),
)
CALLS: tuple[tuple[str, Effect, bytes], ...] = (
    ("read_file", "none", b'{"path": "notes/today.md"}'),
    ("shell", "local_write", b'{"command": "git status && ls -la"}'),
    ("web_fetch", "fetch", b'{"url": "https://docs.example.com/page"}'),
)


def figure(home: Path) -> float:
    """Milliseconds of CPU for one call, the dearest of three kinds."""
    config = msgspec.convert({"policy": RULES}, Config)
    judge = make_judge(Settings(Home(home), config), "default")
    who = Principal("ann", ("owner",))
    found = []
    for tool, effect, arguments in CALLS:
        case = Case("default", tool, effect, who, OWNER, arguments, channel="terminal")
        rounds = []
        for _ in range(ROUNDS):
            began = time.process_time()
            for _ in range(TIMES):
                judge.judge(case)
            rounds.append((time.process_time() - began) * 1e3 / TIMES)
        found.append(statistics.median(rounds))
    return max(found)
