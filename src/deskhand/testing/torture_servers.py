"""The torture with an MCP server in the place of our own tool: it is killed with the process, and
dies, hangs and floods by itself. What it did stands in a file of its folder.

python -m deskhand.testing.torture_servers [--kills 40] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import anyio

from .torture import Torture, TortureReport
from .torture_child import SERVER, SERVERS, settings_at
from .wild_server import DONE

DRAIN_S = 240.0
"""A server that hangs is waited for, again and again."""
LIVES_S = 4.0
"""How long a life is at most: its server begins within a second."""


class ServersTorture(Torture):
    """One run of it."""

    def __init__(self, home: Path, kills: int, seed: int) -> None:
        super().__init__(home, kills, seed, SERVERS)
        self.drain_s = DRAIN_S

    def count_waiting(self) -> int:
        """Those without an answer: each takes seconds, and a turn that never ends would be cut down
        to what the model of the platform does not know any more."""
        told = {word for sent in self.platform.sent for word in sent.text.split() if word[0] == "m"}
        return len(self.platform.updates) - len(told)

    async def live(self, seconds: float) -> None:
        await anyio.sleep(self.platform.random.uniform(0, LIVES_S))

    async def compare(self) -> None:
        done = settings_at(self.home, self.url).home.mcp_server(SERVER) / DONE
        self.platform.effects = done.read_text().split() if done.exists() else []
        await super().compare()


async def torture_servers(kills: int, seed: int) -> TortureReport:
    """Run it in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="deskhand-torture-") as home:
        made = ServersTorture(Path(home), kills, seed)
        report = await made.run()
        if len(made.platform.effects) < report.messages / 10:
            report.faults.append(f"only {len(made.platform.effects)} effects were done")
        return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    report = anyio.run(torture_servers, chosen.kills, chosen.seed)
    sys.stdout.write(report.show() + "\n")
    sys.exit(0 if report.is_clean else 1)


if __name__ == "__main__":
    main()
