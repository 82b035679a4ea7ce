"""What a person sets first, read from where it stands and written there: keys, their time zone,
their name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from ..tools.paths import Workspace
from ..types.errors import ConfigError, JobInvalid
from ..types.messages import clean_text
from ..types.private_files import write_private_file
from ..types.schedules import load_zone
from .config import Config, Settings, workspace_of
from .parse import read_data, read_env_file, read_text
from .yaml_edit import set_key, unset_key

NAME_CHARS = 80
MOST_FILES = 100_000
USER_FILE = "USER.md"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_LINE = re.compile(r"^- Name:(.*)$", re.MULTILINE)


def system_timezone(environment: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """The IANA name of the zone that this machine keeps; UTC where it does not say."""
    named = [environment.get("TZ", "").lstrip(":")]
    link = etc / "localtime"
    if link.is_symlink():
        named.append(str(link.resolve()).rpartition("zoneinfo/")[2])
    with suppress(FileNotFoundError, ConfigError):
        named.append(read_text(etc / "timezone").strip())
    return next((name for name in named if name and is_timezone(name)), "UTC")


def is_timezone(name: str) -> bool:
    try:
        load_zone(name)
    except JobInvalid:
        return False
    return bool(name)


def check_timezone(name: str) -> str:
    """Raises ConfigError, with the nearest that there is."""
    if is_timezone(name):
        return name
    near = get_close_matches(name[:64].replace(" ", "_"), available_timezones(), 1, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else "use a name such as 'Europe/Berlin'"
    raise ConfigError(f"there is no timezone {name!r}; {hint}")


def store_setting(settings: Settings, path: Sequence[str], value: Any) -> None:
    """Set one key of the configuration, and leave the rest of the file alone. Raises OSError,
    ConfigError."""
    write_private_file(settings.file, set_key(_read_or_empty(settings.file), path, value))


def has_setting(settings: Settings, name: str) -> bool:
    """Whether the file of the configuration has this key of the first level."""
    try:
        return name in read_data(settings.file)
    except (FileNotFoundError, ConfigError):
        return False


def remove_setting(settings: Settings, path: Sequence[str]) -> None:
    """Take one key out of the configuration. Raises OSError, ConfigError."""
    text = unset_key(_read_or_empty(settings.file), path, Config)
    write_private_file(settings.file, text)


def list_env_secrets(settings: Settings) -> list[str]:
    """The names of what `.env` holds."""
    try:
        return [name for name, value in read_env_file(settings.home.env).items() if value]
    except FileNotFoundError:
        return []


def key_variable(provider: str) -> str:
    """The environment variable for the key of a provider that the catalogue does not have."""
    return re.sub(r"\W", "_", provider).upper() + "_API_KEY"


def check_secret(name: str, value: str) -> str:
    """The secret as it can be kept in a file of variables. Raises ConfigError for what cannot."""
    value = clean_text(value.strip())
    if not _VARIABLE.fullmatch(name):
        raise ConfigError(f"{name!r} is not a variable name; write one such as OPENAI_API_KEY")
    if not value or not value.isprintable() or ("'" in value and '"' in value):
        raise ConfigError(f"invalid value for {name}: it must be one line, and not empty")
    return value


def store_secret(settings: Settings, name: str, value: str) -> None:
    """Put a secret into `.env`, readable by its owner alone; what stood under this name is
    replaced. Raises OSError, ConfigError for what cannot be written so that it is read back."""
    path = settings.home.env
    value = check_secret(name, value)
    quote = "'" if "'" not in value else '"'
    line = f"{name}={quote}{value}{quote}" if re.search(r"[\s#'\"]", value) else f"{name}={value}"
    text = _read_or_empty(path)
    mine = re.compile(rf"^[ \t]*(?:export[ \t]+)?{re.escape(name)}[ \t]*=.*$", re.MULTILINE)
    if mine.search(text):
        text = mine.sub(lambda _: line, text)
    else:
        text += ("\n" if text and not text.endswith("\n") else "") + f"{line}\n"
    write_private_file(path, text)


def read_owner_name(settings: Settings, agent: str) -> str:
    """What the owner is called, by the USER.md that this agent reads; '' where it does not say."""
    with Workspace(str(workspace_of(settings, agent))) as files:
        match = _NAME_LINE.search(_read_user_file(files))
    return match[1].strip(" \t") if match else ""


def write_owner_name(settings: Settings, agent: str, name: str) -> None:
    """Write it into USER.md, of which everything else stays. Raises ConfigError, and ToolError
    where that file leads out of the workspace: the agent can write there, and a link of its making
    is not followed."""
    name = " ".join(clean_text(name).split())
    if not name or len(name) > NAME_CHARS or not name.isprintable():
        raise ConfigError(f"a name must have 1 to {NAME_CHARS} characters on one line")
    line = f"- Name: {name}"
    with Workspace(str(workspace_of(settings, agent))) as files:
        text = _read_user_file(files)
        if _NAME_LINE.search(text):
            text = _NAME_LINE.sub(lambda _: line, text, count=1)
        else:
            text += ("\n" if text and not text.endswith("\n") else "") + f"{line}\n"
        files.write(USER_FILE, text.encode())


def _read_user_file(files: Workspace) -> str:
    """Raises ToolError where it is no file of the workspace."""
    if not any(entry.name == USER_FILE for entry in files.list(".", MOST_FILES)):
        return ""
    return files.read(USER_FILE).decode("utf-8", "replace")


def _read_or_empty(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""
