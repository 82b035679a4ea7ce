"""Makes settings of a server from what a person types, or from the file of another program. Pure
but for looking at which programs and folders are there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..config.mcp_servers import McpServerConfig
from ..config.parse import read_data
from ..sandbox.launcher import SYSTEM_FOLDERS
from ..types.errors import ConfigError

NPM_HOSTS = ("registry.npmjs.org",)
PYPI_HOSTS = ("pypi.org", "files.pythonhosted.org")
REGISTRIES = {
    "npx": NPM_HOSTS,
    "npm": NPM_HOSTS,
    "bunx": NPM_HOSTS,
    "uvx": PYPI_HOSTS,
    "uv": PYPI_HOSTS,
    "pipx": PYPI_HOSTS,
}
"""What fetches a server the first time, and from where."""
CONTAINERS = frozenset({"docker", "podman"})


def make_program_config(argv: Sequence[str], **more: Any) -> McpServerConfig:
    """The settings of a server that is started so: with the folders that its program needs to be
    seen, and the hosts that it is fetched from. Raises ConfigError."""
    command, *args = argv
    name = Path(command).name
    if name in CONTAINERS:
        raise ConfigError(
            f"{name} cannot be run in the sandbox: start the container yourself, and add the "
            "address of its server"
        )
    program = shutil.which(command)
    if program is None:
        raise ConfigError(f"there is no program {command!r} here: install it first")
    folders = list(more.pop("folders", ()))
    folders += list_program_folders(Path(program).absolute())
    shown = []
    for each in args:
        path = Path(each)
        if each and not each.startswith("-") and path.exists():
            shown.append(str(path.absolute()))
            folders.append(str(find_project_folder(path.resolve())))
        else:
            shown.append(each)
    hosts = (*more.pop("hosts", ()), *REGISTRIES.get(name, ()))
    return McpServerConfig(
        command=str(Path(program).absolute()),
        args=tuple(shown),
        hosts=tuple(dict.fromkeys(hosts)),
        folders=tuple(_without_inner(folders)),
        **more,
    )


def list_program_folders(program: Path) -> list[str]:
    """The folders that a program outside the system's needs to be seen: where it is installed,
    where what it is a link to is, and the same of the program that a script names in its first
    line."""
    home = Path.home()
    shared = (Path("/"), home, home / ".local")
    found = []
    for path in {program, program.resolve(), *_find_interpreter(program)}:
        for each in {path, path.resolve()}:
            if any(each.is_relative_to(system) for system in SYSTEM_FOLDERS):
                continue
            if modules := _find_node_modules(each):
                found.append(str(modules))
                continue
            folder = each.parent
            is_own = folder.name == "bin" and folder.parent not in shared
            found.append(str((folder.parent if is_own else folder).resolve()))
    return sorted(set(found))


def _find_interpreter(program: Path) -> list[Path]:
    """What a script is run by, as it says; nothing for other programs."""
    try:
        with program.open("rb") as file:
            first = file.readline(256).decode(errors="replace").strip()
    except OSError:
        return []
    if not first.startswith("#!"):
        return []
    words = first[2:].split()
    if words and Path(words[0]).name == "env":
        named = next((each for each in words[1:] if not each.startswith("-")), "")
        words = [shutil.which(named) or ""]
    return [Path(words[0])] if words and words[0].startswith("/") else []


def _find_node_modules(path: Path) -> Path | None:
    """The outermost `node_modules` that it lies in: a package of npm needs those beside it."""
    return next((each for each in reversed(path.parents) if each.name == "node_modules"), None)


def find_project_folder(path: Path) -> Path:
    """The folder that what stands at this path needs around it: itself, where it is one; else the
    `node_modules` or the project that it belongs to."""
    if path.is_dir():
        return path
    if modules := _find_node_modules(path):
        return modules
    parents = list(path.parents)
    marks = ("package.json", "pyproject.toml")
    inside = [each for each in parents if each != Path.home() and len(each.parts) > 2]
    return next(
        (each for each in inside if any((each / mark).exists() for mark in marks)), path.parent
    )


def _without_inner(folders: Sequence[str]) -> list[str]:
    """Each once, and none that lies in another one."""
    kept: list[str] = []
    for each in sorted(dict.fromkeys(folders), key=len):
        path = Path(each.removesuffix(":rw"))
        if each.endswith(":rw") or not any(
            path.is_relative_to(other.removesuffix(":rw")) for other in kept
        ):
            kept.append(each)
    return kept


class ForeignServer(msgspec.Struct, frozen=True):
    """A server as the files of other programs have it: `mcp_servers.json` of openagent-core
    (`transport`, `mode`, `authorization_token`), and `mcpServers` of Claude Code and many others
    (`type`)."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}
    authorization_token: str = ""
    transport: str = ""
    type: str = ""
    disabled: bool = False


def read_foreign_servers(file: Path) -> dict[str, ForeignServer]:
    """The servers of such a file, JSON or YAML: alone, or in the configuration of another agent.
    Raises ConfigError, OSError."""
    data = read_data(file)
    for part in (data, data.get("tools"), data.get("mcp")):
        for key in ("mcpServers", "mcp_servers", "servers"):
            if isinstance(part, dict) and isinstance(part.get(key), dict):
                return _convert_servers(part[key])
    return _convert_servers(data)


def _convert_servers(found: dict[str, Any]) -> dict[str, ForeignServer]:
    try:
        return msgspec.convert(found, dict[str, ForeignServer])
    except msgspec.ValidationError as error:
        raise ConfigError(f"it does not list MCP servers: {error}") from error


def make_foreign_config(server: ForeignServer) -> McpServerConfig:
    """Its settings here. Raises ConfigError."""
    if server.url:
        headers = dict(server.headers)
        if server.authorization_token:
            headers["Authorization"] = f"Bearer {server.authorization_token}"
        return McpServerConfig(url=server.url, headers=headers, enabled=not server.disabled)
    if not server.command:
        raise ConfigError("it has neither a command nor a url")
    argv = (server.command, *server.args)
    return make_program_config(argv, env=dict(server.env), enabled=not server.disabled)
