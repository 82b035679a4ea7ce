"""What models used, as the API says it, for pages that are looked at without a month of work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

Answer = dict[str, Any]


def make_sum(tokens: int, calls: int, cost: float, unpriced: int = 0, **names: object) -> Answer:
    """A sum over calls, nine tenths of whose tokens were read."""
    written = tokens // 10
    return {
        **names,
        "prompt_tokens": tokens - written,
        "completion_tokens": written,
        "total_tokens": tokens,
        "api_calls": calls,
        "cost": None if unpriced else cost,
        "known_cost": cost,
        "unpriced_calls": unpriced,
    }


def make_usage(**parts: object) -> Answer:
    """A month with three models, of which one has no known price; `parts` replace what is there."""
    today = datetime.now(UTC).date()
    dates = [str(today - timedelta(days=ago)) for ago in (20, 3, 1)]
    return {
        "total": make_sum(4_310_000, 320, 3.82, 12),
        "days": [
            make_sum(900_000, 40, 0.5, id=dates[0]),
            make_sum(2_400_000, 200, 2.8, id=dates[1]),
            make_sum(1_010_000, 80, 0.52, 12, id=dates[2]),
        ],
        "models": [
            make_sum(3_080_000, 240, 3.2, id="anthropic/claude-sonnet-5"),
            make_sum(920_000, 68, 0.62, id="openai/gpt-5.4-mini"),
            make_sum(310_000, 12, 0, 12, id="home/made"),
        ],
        "agents": [
            make_sum(600_000, 30, 0.52, 2, id="careful"),
            make_sum(3_710_000, 290, 3.3, 10, id="main"),
        ],
        "people": [
            make_sum(3_090_000, 250, 2.9, id="owner"),
            make_sum(915_000, 50, 0.7, id="anna"),
            make_sum(305_000, 20, 0.22, 12, id="anna, ben"),
        ],
        "sessions": [
            make_sum(300_000, 10, 0.4, session_id="small", preview="A small one"),
            make_sum(
                4_010_000, 310, 3.42, 12, session_id="main~subagent:1", preview="Search the archive"
            ),
        ],
        "month": {
            "so_far": make_sum(2_050_000, 200, 2.21, 3),
            "total_tokens": 3_900_000,
            "known_cost": 4.10,
            "pace_days": 7,
        },
        **parts,
    }


def make_unused() -> Answer:
    """Before the first message."""
    nothing = make_sum(0, 0, 0.0)
    month = {"so_far": nothing, "total_tokens": 0, "known_cost": 0.0, "pace_days": 7}
    empty: Answer = {part: [] for part in ("days", "models", "agents", "people", "sessions")}
    return {"total": nothing, "month": month, **empty}
