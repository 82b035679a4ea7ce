"""Folders beside the workspace: which may be allowed, and what allowing one changes."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..config.config import Settings
from ..sandbox.base import Mount
from ..sandbox.launcher import check_mounts
from ..store.queries import PathGrant, drop_path_grant, set_path_grant
from ..types.commit import Change
from ..types.errors import ConfigError, SandboxError
from ..users.queries import audit_note


def resolve_folder(settings: Settings, agent: str, folder: str, *, write: bool) -> str:
    """The real path of a folder that this agent may be given. Raises ConfigError for one that is
    not there, or that no agent may have."""
    settings.agent(agent)
    try:
        real = Path(folder).expanduser().resolve()
        is_file, is_folder = real.is_file(), real.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # no such user, a loop of links, a NUL
        raise ConfigError(f"there is no folder {folder!r}: {error}") from error
    if is_file:
        command = f"deskhand allow path {shlex.quote(str(real.parent))}"
        if write:
            command += " --write"
        raise ConfigError(f"{folder!r} is a file; allow the folder that holds it: {command}")
    if not is_folder:
        raise ConfigError(f"there is no folder {folder!r}")
    try:
        check_mounts([Mount(str(real))])
    except SandboxError as error:
        raise ConfigError(str(error)) from error
    if settings.home.is_protected(real, write):
        raise ConfigError(
            f"{str(real)!r} contains Deskhand's own files and keys; allow a different folder"
        )
    return str(real)


def allow_folder(agent: str, grant: PathGrant) -> list[Change]:
    """Let the agent use a folder, with a line in the audit trail."""
    what = "folder allowed, to write" if grant.write else "folder allowed, to read"
    note = audit_note(grant.at, grant.by, what, f"{grant.path} {agent}")
    return [*set_path_grant(agent, grant), note]


def revoke_folder(agent: str, path: str, at: float, by: str) -> list[Change]:
    """Let the agent no longer use a folder, with a line in the audit trail."""
    return [drop_path_grant(agent, path), audit_note(at, by, "folder revoked", f"{path} {agent}")]
