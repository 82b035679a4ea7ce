"""Finds homes of other systems, and says which system's a folder is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ...types.errors import ConfigError
from . import agent_computer, openagent, operator_ai, operator_use
from .found import Found, System
from .tree import Tree, Unread

USUAL = (".operator", ".operator-use", ".operator_use", "agent_computer", "openagent", ".openagent")
"""Where they lie, from a person's home; the last two are put anywhere."""
READERS: Mapping[System, Callable[[Tree, float], Found]] = {
    "operator-ai": operator_ai.read,
    "operator-use": operator_use.read,
    "agent_computer": agent_computer.read,
    "openagent-core": openagent.read,
}
LOOKS_FOR = (
    "~/.operator of operator-ai, ~/.operator-use of operator-use, a folder of agent_computer (config.json with"
    " sessions/), or one of openagent-core (agent.db with workspace/)"
)


def system_of(folder: Path) -> System | None:
    """Which system's home this is; None for none. It looks at a few names and at nothing else."""
    try:
        tree = Tree(folder)
    except Unread:
        return None
    try:
        if tree.has("operator.yaml") or tree.has("state/operator.db"):
            return "operator-ai"
        if tree.has("crons.json") or (tree.has("config.json") and (tree.has("workspaces") or _lists_agents(tree))):
            return "operator-use"
        if tree.has("config.json") and (tree.has("sessions") or tree.has("workspace/cron.json")):
            return "agent_computer"
        if tree.has("agent.db") or (tree.has("workspace/.tasks") or tree.has("workspace/.agent")):
            return "openagent-core"
        return None
    finally:
        tree.close()


def _lists_agents(tree: Tree) -> bool:
    try:
        found = tree.json("config.json")
    except Unread:
        return False
    agents = found.get("agents") if isinstance(found, dict) else None
    return isinstance(agents, dict) and isinstance(agents.get("list"), list)


def homes_in(person: Path, here: Path | None = None) -> Iterator[tuple[System, Path]]:
    """The homes in a person's home, and the folder where one stands, if it is one."""
    seen: set[Path] = set()
    for folder in (*(person / name for name in USUAL), *([here] if here else [])):
        if not folder.is_dir() or (real := folder.resolve()) in seen:
            continue
        seen.add(real)
        if (system := system_of(folder)) is not None:
            yield system, folder


def read_home(folder: Path, now: float) -> Found:
    """All that a home holds; nothing of it is changed. Raises ConfigError where it is none, or cannot be opened."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}; give one of: {LOOKS_FOR}")
    system = system_of(folder)
    if system is None:
        raise ConfigError(f"{str(folder)!r} is no home that is known here; give one of: {LOOKS_FOR}")
    tree = Tree(folder)
    try:
        return READERS[system](tree, now)
    finally:
        tree.close()
