"""Reads what people write by hand, YAML, JSON and KEY=VALUE lines, and refuses what was made to
hurt."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ..types.errors import ConfigError
from ..types.messages import clean_text

MAX_FILE_BYTES = 512_000
MAX_VALUES = 50_000
"""How many values a file may have once its aliases are written out."""
_BRACKET = re.compile(r"[\[\]{}]")
MOST_BRACKETS = 50
PLAIN_CHARS = 8_000
_LINE = re.compile(r"\s*+(?:export\s++)?([A-Za-z_][A-Za-z0-9_.]*)\s*=(.*)")


def read_data(path: Path) -> dict[str, Any]:
    """The keys and values of a YAML or JSON file, whichever its content is; strings are cleaned.

    An empty file has none. Raises ConfigError that names the file and the place, FileNotFoundError
    where there is none.
    """
    return parse_data(read_text(path), path)


def parse_data(text: str, path: Path) -> dict[str, Any]:
    """The same of what stands in this file."""
    data = _parse_any(text, path)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(
            f"{str(path)!r} must hold keys and values, such as `timezone: Europe/Berlin`"
        )
    return data


def read_any(path: Path) -> Any:
    """Whatever a YAML or JSON file holds, None for nothing; it raises as `read_data` does."""
    return _parse_any(read_text(path), path)


def _parse_any(text: str, path: Path) -> Any:
    try:
        data = json.loads(text) if text.lstrip().startswith(("{", "[")) else _load_yaml(text)
    except json.JSONDecodeError as json_error:
        try:
            data = _load_yaml(text)  # YAML may begin with a brace too
        except (yaml.YAMLError, RecursionError):
            raise ConfigError(f"{str(path)!r} is not valid JSON: {json_error}") from json_error
    except yaml.YAMLError as error:
        raise ConfigError(f"{str(path)!r} is not valid YAML: {_describe(error)}") from error
    except RecursionError:
        raise ConfigError(f"{str(path)!r} is nested too deeply") from None
    try:
        return _clean_strings(data)
    except RecursionError:
        raise ConfigError(f"{str(path)!r} is nested too deeply") from None


def _describe(error: yaml.YAMLError) -> str:
    """What is wrong and where, without the line itself: a key may stand in it."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    if mark is None or not problem:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def read_text(path: Path) -> str:
    """Raises ConfigError for what is no text or too long, FileNotFoundError where there is
    nothing."""
    try:
        kind = path.stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISCHR(kind)):  # /dev/null stands for an empty file
            raise ConfigError(
                f"{str(path)!r} cannot be read: it is not a file; replace it with a file, or "
                "remove it"
            )
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1) or b""
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(
            f"{str(path)!r} cannot be read: {error.strerror}; check its permissions"
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(
            f"{str(path)!r} is larger than {MAX_FILE_BYTES // 1000} kB, the limit for a "
            "configuration"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{str(path)!r} is not UTF-8 (line {line}): save it as UTF-8") from error


def read_env_file(path: Path) -> dict[str, str]:
    """KEY=VALUE lines; quotes around a value are stripped, `#` begins a comment. Raises as
    `read_text` does."""
    return parse_env(read_text(path))


def parse_env(text: str) -> dict[str, str]:
    """The same of a text."""
    found = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        found[match[1]] = clean_text(_parse_env_value(match[2].strip()))
    return found


def _parse_env_value(text: str) -> str:
    """What is between quotes; else all of it up to a comment."""
    if text[:1] in ("'", '"'):
        end = text.find(text[0], 1)
        if end > 0:
            return text[1:end]
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()


def parse_value(text: str) -> Any:
    """A value as it would be written in the file: `25`, `true`, `[a, b]`, or a word. Raises
    ConfigError."""
    try:
        return _clean_strings(_load_yaml(text))
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{text!r} is not a YAML value; put it in quotes") from error


def parse_plain(text: str, limit: int = PLAIN_CHARS) -> Any:
    """A YAML document of at most `limit` characters in which every scalar is taken as text, as it
    is written. Raises ConfigError."""
    if len(text) > limit:
        raise ConfigError(f"it has more than {limit:,} characters")
    try:
        return _clean_strings(_load_yaml(text, yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"it is not valid YAML: {' '.join(str(error).split())}") from error


def _load_yaml(
    text: str, kind: type[yaml.SafeLoader] | type[yaml.BaseLoader] = yaml.SafeLoader
) -> Any:
    if _is_too_nested(text):
        raise yaml.YAMLError("its brackets are nested too deeply")
    loader = kind(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count_values(node, {})
        return loader.construct_document(node)
    except (ValueError, OverflowError) as error:
        # A date that does not exist, an escape beyond Unicode.
        raise yaml.YAMLError(str(error)) from error
    finally:
        loader.dispose()


def _is_too_nested(text: str) -> bool:
    """Whether more brackets are open somewhere than a file of settings needs: what the parser does
    for each that is open, it does again for every word."""
    depth = 0
    for sign in _BRACKET.findall(text):
        depth = depth + 1 if sign in "[{" else max(depth - 1, 0)
        if depth > MOST_BRACKETS:
            return True
    return False


def _count_values(node: yaml.Node, known: dict[int, int]) -> int:
    """The number of values beneath a node, each alias counted as a copy. Raises YAMLError when
    there are too many."""
    if id(node) in known:
        if not known[id(node)]:
            raise yaml.YAMLError("an alias refers to itself")
        return known[id(node)]
    known[id(node)] = 0
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        inner = node.value
    size = 1 + sum(_count_values(part, known) for part in inner)
    if size > MAX_VALUES:
        raise yaml.YAMLError(f"its aliases expand to more than {MAX_VALUES} values")
    known[id(node)] = size
    return size


def _clean_strings(data: Any) -> Any:
    if isinstance(data, str):
        return clean_text(data)
    if isinstance(data, Mapping):
        return {clean_text(str(key)): _clean_strings(value) for key, value in data.items()}
    if isinstance(data, list | tuple | set):
        return [_clean_strings(value) for value in data]
    return data if isinstance(data, bool | int | float | None) else str(data)
