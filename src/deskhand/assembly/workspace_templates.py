"""Creates the folders and files of a home that people fill in. Existing files are never
overwritten."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ..config.config import Home, Settings
from ..config.home import SHARED
from ..types.folders import make_private_folder
from ..types.private_files import write_private_file
from .prompt import MEMORY_FILE

TEMPLATES = Path(__file__).parent / "templates"
FILE_PURPOSES = {
    "SYSTEM.md": "the beginning of every prompt, instead of Deskhand's own",
    "AGENT.md": "what this agent is for",
    "RULES.md": "what must never be done; no tool can change it",
    "SOUL.md": "name, manner and tone",
    "USER.md": "who you are and what you like",
    "CODE.md": "your projects",
    "AGENTS.md": "procedures",
    "HEARTBEAT.md": ("what to check from time to time, one per line (if `heartbeat` is on)"),
    "MEMORY.md": "what to remember, in private chats only",
}
"""What each file is for, as `init` shows it."""
WORKSPACE_TEMPLATES = (
    "RULES.md",
    "SOUL.md",
    "USER.md",
    "CODE.md",
    "AGENTS.md",
    "HEARTBEAT.md",
    MEMORY_FILE,
)
WORKSPACE_FOLDERS = ("memory", "knowledge", "skills", "tools")


def create_agent_files(settings: Settings, agent: str) -> list[Path]:
    """Create what is missing for an agent. Returns what was created. Raises OSError.

    Nothing is created in a workspace that the configuration puts elsewhere: that is a folder of the
    person.
    """
    home = settings.home
    made = [*_create_file(home.root / "SYSTEM.md"), *_create_file(home.agent(agent) / "AGENT.md")]
    if settings.agent(agent).workspace:
        return made
    workspace = home.workspace(agent)
    for folder in (workspace, *(workspace / name for name in WORKSPACE_FOLDERS)):
        if not folder.is_dir():
            make_private_folder(folder)
            made.append(folder)
    for name in WORKSPACE_TEMPLATES:
        made += _create_file(workspace / name)
    return made + _link_shared_folder(home, workspace)


def _create_file(path: Path) -> list[Path]:
    if os.path.lexists(path):
        return []
    whole = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    write_private_file(whole, (TEMPLATES / path.name).read_text(encoding="utf-8"))
    try:
        os.link(
            whole, path
        )  # never over a file that has just come, as another process may start too
    except FileExistsError:
        return []
    except OSError:  # a file system without hard links
        whole.replace(path)
    finally:
        whole.unlink(missing_ok=True)
    return [path]


def _link_shared_folder(home: Home, workspace: Path) -> list[Path]:
    """The link to the folder that all agents share."""
    link = workspace / SHARED
    folder = home.root / SHARED
    make_private_folder(folder)
    try:
        link.symlink_to(f"../../../{SHARED}")
    except FileExistsError:
        return []
    return [link]
