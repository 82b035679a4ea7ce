"""Finds homes of other systems, and says which system's a folder is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..types.errors import ConfigError
from . import agent_computer, hermes, nanobot, openagent, openclaw, operator_ai, operator_use
from .model import Broken, ImportedHome, System
from .safe_files import Tree, Unread

USUAL_FOLDERS = (
    ".operator",
    ".operator-use",
    ".operator_use",
    ".nanobot",
    ".hermes",
    *openclaw.FOLDERS,
    "agent_computer",
    "openagent",
    ".openagent",
)
"""Where they lie, from a person's home; the last three are put anywhere."""
READERS: Mapping[System, Callable[[Tree, float], ImportedHome]] = {
    "operator-ai": operator_ai.read,
    "operator-use": operator_use.read,
    "agent_computer": agent_computer.read,
    "openagent-core": openagent.read,
    "nanobot": nanobot.read,
    "hermes": hermes.read,
    "openclaw": openclaw.read,
}
KNOWN_HOMES = (
    "~/.operator of operator-ai, ~/.operator-use of operator-use, ~/.openclaw of OpenClaw, "
    "~/.hermes of Hermes Agent, ~/.nanobot of nanobot, a folder of agent_computer (config.json with"
    " sessions/), or one of openagent-core (agent.db with workspace/)"
)
_UNEXPECTED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading a value raises that no version of a system writes: such a home is reported as
broken, and the others are still found."""


def detect_system(folder: Path) -> System | None:
    """Which system's home this is; None for none. It looks at a few names and at nothing else."""
    try:
        tree = Tree(folder)
    except Unread:
        return None
    try:
        return _detect_from_names(tree)
    finally:
        tree.close()


def _detect_from_names(tree: Tree) -> System | None:
    """By the names in it, whatever they are: a home whose files are broken is a home."""
    names = {entry.name for entry in tree.all_entries()}
    in_workspace = {entry.name for entry in tree.all_entries("workspace")}
    config = _config(tree)
    if "operator.yaml" in names or tree.kind("state/operator.db"):
        return "operator-ai"
    if not names.isdisjoint(openclaw.CONFIGS) or tree.kind(openclaw.STATE):
        return "openclaw"
    if _is_hermes(names):
        return "hermes"
    if _is_nanobot(names, in_workspace, config):
        return "nanobot"
    if names & {"crons.json", "workspaces", "restart.json"} or _is_operator_use(config):
        return "operator-use"
    if "config.json" in names and (
        "sessions" in names or "cron.json" in in_workspace or "agent" in config
    ):
        return "agent_computer"
    if "agent.db" in names or in_workspace & {".tasks", ".agent"}:
        return "openagent-core"
    return None


def _config(tree: Tree) -> dict[str, Any]:
    try:
        found = tree.read_json("config.json")
    except Unread:
        return {}
    return found if isinstance(found, dict) else {}


def _is_operator_use(config: dict[str, Any]) -> bool:
    """agent_computer has the one `agent`, operator-use has `agents` with a list and defaults."""
    agents = config.get("agents")
    lists = isinstance(agents, dict) and ("list" in agents or "defaults" in agents)
    return "agent" not in config and (lists or "bindings" in config or "channels" in config)


def _is_hermes(names: Collection[str]) -> bool:
    known = {"state.db", "memories", "SOUL.md", "cron", "platforms", "sessions", "skills"}
    return "config.yaml" in names and len(known.intersection(names)) > 1


def _is_nanobot(
    names: Collection[str], in_workspace: Collection[str], config: dict[str, Any]
) -> bool:
    """It has `agents` with defaults alone, which say a model as a text; operator-use has a map
    there."""
    if not {"crons.json", "workspaces"}.isdisjoint(names) or "agent" in config:
        return False
    agents = config.get("agents")
    defaults = agents.get("defaults") if isinstance(agents, dict) else None
    if isinstance(agents, dict) and isinstance(defaults, dict):
        says_a_model = isinstance(defaults.get("model"), str) or "modelPreset" in defaults
        return says_a_model and "list" not in agents and "bindings" not in config
    return (
        not config and "config.json" in names and not {"cron", ".nanobot"}.isdisjoint(in_workspace)
    )


def find_homes_in(person: Path, here: Path | None = None) -> Iterator[tuple[System, Path]]:
    """The homes in a person's home, and the folder where one stands, if it is one."""
    seen: set[Path] = set()
    for folder in (*(person / name for name in USUAL_FOLDERS), *([here] if here else [])):
        if not folder.is_dir() or (real := folder.resolve()) in seen:
            continue
        seen.add(real)
        if (system := detect_system(folder)) is not None:
            yield system, folder


def read_home(folder: Path, now: float) -> ImportedHome:
    """All that a home holds; nothing of it is changed. Raises ConfigError where it is none, or
    cannot be opened."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}; give one of: {KNOWN_HOMES}")
    system = detect_system(folder)
    if system is None:
        raise ConfigError(
            f"{str(folder)!r} is not a home of a known system; give one of: {KNOWN_HOMES}"
        )
    tree = Tree(folder)
    try:
        return READERS[system](tree, now)
    except _UNEXPECTED as error:  # a value that no version of it writes
        why = f"something in it is not as {system} writes it: {type(error).__name__}"
        return ImportedHome(system, "", str(folder), broken=(Broken(".", why),))
    finally:
        tree.close()
