"""What a tool does to the world, and what a crash in the middle of it means."""

from __future__ import annotations

from typing import Literal

Effect = Literal[
    "none", "local_write", "send_owner", "send_other", "fetch", "network", "host", "irreversible"
]
"""What the gate looks at, weakest first. `fetch` is a GET through the guarded client: it changes
nothing, but its address tells the other side something."""

Replay = Literal["commit", "again", "never"]
"""After a crash: `commit`, the effect is rows in the commit that journals the result, so it
happened exactly if the result is there; `again`, running it once more does no harm; `never`, it is
not repeated but reported as interrupted."""

OUTWARD: frozenset[Effect] = frozenset({"send_other", "network", "host", "irreversible"})
"""Effects that reach beyond the owner and the workspace."""

EFFECT_PHRASES: dict[Effect, str] = {
    "none": "look at something",
    "local_write": "write files",
    "send_owner": "write to its owner",
    "send_other": "write to others",
    "fetch": "read from the network",
    "network": "open network access",
    "host": "run commands on this machine",
    "irreversible": "do what cannot be undone",
}
"""What a call of each effect would do, for the person who is asked."""
