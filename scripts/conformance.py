"""Runs the public conformance suite of MCP against our client and our server, and says what has
passed.

python scripts/conformance.py NODE SUITE
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
CLIENT = ROOT / "tests" / "mcp_servers" / "conformance_client.py"
LIMIT_S = 120
SERVER_SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "dns-rebinding-protection",
)
"""Those that apply to our server: the others want tools, prompts and resources that only the
example of the suite has."""


def list_scenarios(suite: list[str]) -> list[str]:
    listed = subprocess.run([*suite, "list"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  - (\S+)", listed.partition("Client scenarios")[2], re.MULTILINE)


def run_scenario(suite: list[str], name: str, *how: str) -> tuple[bool, str]:
    """Whether it has passed, and the numbers of its checks."""
    ended = subprocess.run(
        [*suite, *how, "--scenario", name],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    found = re.search(r"^Passed: .*$", ended.stdout + ended.stderr, re.MULTILINE)
    return ended.returncode == 0, found[0] if found else "no result"


def show(results: Iterable[tuple[str, tuple[bool, str]]], what: str) -> None:
    """A line for each, and how many have passed."""
    verdicts = []
    for name, (is_passed, said) in results:
        verdicts.append(is_passed)
        print("ok    " if is_passed else "FAILED", name, said)
    print(f"{sum(verdicts)} of {len(verdicts)} scenarios for {what} have passed")


def main() -> None:
    suite = sys.argv[1:]
    client = ("client", "--command", f"{sys.executable} {CLIENT}")
    show(((name, run_scenario(suite, name, *client)) for name in list_scenarios(suite)), "clients")
    command = [sys.executable, "-m", "tests.mcp_servers.conformance_server"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        url = serving.stdout.readline().strip()
        server = ("server", "--url", url)
        found = ((name, run_scenario(suite, name, *server)) for name in SERVER_SCENARIOS)
        show(found, "servers that apply")


if __name__ == "__main__":
    main()
