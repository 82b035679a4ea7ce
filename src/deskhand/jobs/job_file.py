"""JOB.md: a job as a file, with front matter in YAML and the prompt below it.

The front matter of operator-ai is accepted as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args

import msgspec
import yaml
from msgspec.structs import replace

from ..config.foreign_keys import normalize_model_name, to_snake_case
from ..config.parse import parse_plain
from ..types.errors import ConfigError, JobInvalid
from ..types.identity import Address
from ..types.jobs import Hooks, Job, JobKind, Misfire, Overlap, validate_job
from ..types.marked_texts import mark_text

_KEYS = tuple(name for name in Job.__struct_fields__ if name not in ("name", "prompt", "more"))
_ALIASES = {
    "for": "person",
    "model": "models",
    "max_iterations": "steps",
    "cron": "schedule",
    "tz": "timezone",
    "timeout": "timeout_s",
    "grace": "grace_s",
}
"""Short keys and those of other programs -> ours."""
_FILE_KEYS = {"person": "for", "timeout_s": "timeout", "grace_s": "grace"}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LISTS = ("on", "models", "tools")
_BOOLEAN_KEYS = ("delete_after_run", "alert", "enabled")
_CHOICES: dict[str, tuple[str, ...]] = {
    "kind": get_args(JobKind),
    "misfire": get_args(Misfire),
    "overlap": get_args(Overlap),
}
_SCHEDULE_KEYS = ("every", "at", "daily", "hourly")
"""Keys that are a schedule of their own: `every: 90s`."""
_EXAMPLE = '---\nschedule: "0 9 * * *"\n---\n\nWhat the agent should do.'


class Parsed(msgspec.Struct, frozen=True):
    """A job, and a sentence for each thing that is odd in its file."""

    job: Job
    notes: tuple[str, ...] = ()


def parse_job(text: str, name: str, zone: str = "UTC") -> Parsed:
    """The job that this file describes, in the folder of that name. Raises JobInvalid that says
    what is wrong and what would be right."""
    front, body = split_front_matter(text)
    if front is None:
        raise JobInvalid(f"it has no front matter; it must begin like this:\n{_EXAMPLE}")
    try:
        data = parse_front_matter(front)
    except ConfigError as error:
        star = re.search(r"^[^\S\n]*[\w-]+:\s*\*", front, re.MULTILINE)
        hint = ""
        if star:
            hint = '; a value that begins with * needs quotes, as in schedule: "*/30 * * * *"'
        raise JobInvalid(f"its front matter cannot be read: {error}{hint}") from error
    job = validate_job(make_job(data, body, name), zone)
    return Parsed(job, tuple(_find_oddities(data, job)))


def split_front_matter(text: str) -> tuple[str | None, str]:
    """The front matter, None when there is none, and the text below it."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return None, text
    for end, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).strip()
    return None, text


def parse_front_matter(front: str) -> dict[str, Any]:
    """The keys and values. Raises ConfigError."""
    data = parse_plain(front)
    if data in (None, ""):
        return {}
    if not isinstance(data, dict):
        raise ConfigError("it holds no keys and values, such as `schedule: daily 09:00`")
    return data


def make_job(front: Mapping[str, Any], body: str, name: str) -> Job:
    """The job with these keys and this text. Only the type of each value is checked. Raises
    JobInvalid."""
    known: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for key, value in front.items():
        plain = to_snake_case(str(key))
        ours = _ALIASES.get(plain, plain)
        if plain in _SCHEDULE_KEYS and isinstance(value, str | int):
            ours = "schedule"
            value = f"{plain} {value}"
        if ours == "name" or (ours in _KEYS and value in ("", None)):
            continue
        if ours not in _KEYS:
            more[str(key)] = value
        elif known.setdefault(ours, value) != value:
            raise JobInvalid(
                mark_text(
                    "`{key}` says again, and differently, what {other} is; leave one of them"
                ).format(key=key, other=repr(_FILE_KEYS.get(ours, ours)))
            )
    try:
        for key in known:
            known[key] = _convert_value(key, known[key])
        job = msgspec.convert(known | {"name": name}, Job, strict=False)
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise JobInvalid(_explain_error(error)) from error
    return replace(job, prompt=body, more=more)


_BOOLEAN_WORDS = {
    "on": True,
    "yes": True,
    "true": True,
    "1": True,
    "off": False,
    "no": False,
    "false": False,
    "0": False,
}


def _convert_value(key: str, value: Any) -> Any:
    if key in _BOOLEAN_KEYS and isinstance(value, str):
        if (switch := _BOOLEAN_WORDS.get(value.strip().lower())) is None:
            raise ValueError(
                mark_text("`{key}: {value}` must be true or false").format(
                    key=key, value=value[:40]
                )
            )
        return switch
    if (words := _CHOICES.get(key)) and value not in words:
        raise ValueError(
            mark_text("`{key}: {value}` must be one of: {choices}").format(
                key=key, value=str(value)[:40], choices=", ".join(words)
            )
        )
    if key in ("timeout_s", "grace_s"):
        found = _DURATION.fullmatch(str(value).strip())
        if found is None:
            raise ValueError(
                mark_text(
                    "`{key}: {value}` is no duration; write one such as 90s, 5m or 2h"
                ).format(key=_FILE_KEYS[key], value=value)
            )
        return float(found[1]) * _SECONDS[found[2] or ""]
    if key in _LISTS:
        listed = value if isinstance(value, list | tuple) else [value]
        lines = [_to_line(each) for each in listed]
        return [normalize_model_name(line) for line in lines] if key == "models" else lines
    if key == "to" and isinstance(value, str):
        channel, colon, chat = value.partition(":")
        if not colon or not chat:
            raise ValueError(
                mark_text(
                    "`to: {value}` names no chat; write channel:chat, as in telegram:12345"
                ).format(value=value)
            )
        return {"channel": channel, "chat": chat}
    if (
        key == "to"
        and isinstance(value, Mapping)
        and (wrong := {*value} - {*Address.__struct_fields__})
    ):
        raise ValueError(
            mark_text("`to` has no {key}; it has channel, account, chat, thread and group").format(
                key=repr(sorted(map(str, wrong))[0])
            )
        )
    return value


def _to_line(value: Any) -> str:
    """A line of text, also when it is written as a map of one key: `file: notes/*.md`."""
    if isinstance(value, Mapping) and len(value) == 1:
        ((word, about),) = value.items()
        return f"{word} {about}".strip()
    if not isinstance(value, str):
        raise TypeError(
            mark_text("{value} is not understood here; write one line of text").format(
                value=repr(value)
            )
        )
    return value.strip()


_KINDS = {
    "str": "one line of text",
    "str | null": "one line of text",
    "int": "a whole number",
    "int | null": "a whole number",
    "array": "a list",
    "object": "keys and values",
}


def _explain_error(error: Exception) -> str:
    """The error in words for the person who wrote the file."""
    text = str(error)
    if found := re.search(r"^Expected `([^`]*)`, got `([^`]*)` - at `\$\.?([^`]*)`$", text):
        wanted, given = (_KINDS.get(each, each) for each in (found[1], found[2]))
        wanted = wanted if wanted != given else "another kind of value"
        return f"`{_FILE_KEYS.get(found[3], found[3])}` must be {wanted}, and is {given}"
    if found := re.search(r"contains unknown field `([^`]*)` - at `\$\.?([^`]*)`$", text):
        return f"`{found[2]}` has no {found[1]!r}" + (
            "; it has prerun and postrun" if found[2] == "hooks" else ""
        )
    return text


def _find_oddities(front: Mapping[str, Any], job: Job) -> Iterator[str]:
    for key in job.more:
        near = get_close_matches(to_snake_case(key[:64]), (*_KEYS, *_ALIASES, "every", "at"), 1)
        if near:
            yield mark_text("the key {key} means nothing here; did you mean {near}?").format(
                key=repr(key), near=repr(near[0])
            )
        else:
            yield mark_text("the key {key} means nothing here").format(key=repr(key))
    if (called := front.get("name", job.name)) != job.name:
        yield mark_text("it is called like its folder, {name}, and not {called}").format(
            name=repr(job.name), called=repr(called)
        )
    if not job.schedule.strip() and not job.on:
        yield mark_text(
            "it has neither a schedule nor an event, so it runs only when somebody runs it"
        )


def render_job_file(job: Job) -> str:
    """The text of JOB.md: the values that are not the default, and unknown keys as they were."""
    front: dict[str, Any] = {"name": job.name}
    usual = Job(job.name)
    for key in _KEYS:
        value = getattr(job, key)
        if value == getattr(usual, key) and key != "enabled":
            continue
        if key == "models" and len(value) == 1:
            front["model"] = value[0]
        else:
            front[_FILE_KEYS.get(key, key)] = _to_yaml_value(value)
    text = yaml.safe_dump(front | job.more, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{text}---\n\n{job.prompt.strip()}\n"


def _to_yaml_value(value: Any) -> Any:
    if isinstance(value, Address | Hooks):
        return {key: each for key, each in msgspec.structs.asdict(value).items() if each}
    if isinstance(value, float):
        return f"{value:g}s"
    return list(value) if isinstance(value, tuple) else value


_ENABLED = re.compile(r"^enabled[ \t]*:.*$", re.MULTILINE | re.IGNORECASE)


def with_enabled(text: str, enabled: bool) -> str:
    """The same text with `enabled` set. Everything else stays, also comments."""
    line = f"enabled: {'true' if enabled else 'false'}"
    front, _ = split_front_matter(text)
    if front is None:
        return text
    if _ENABLED.search(front):
        changed = _ENABLED.sub(line, front, count=1)
    else:
        changed = f"{front}\n{line}" if front.strip() else line
    head = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not front:
        return head.replace("---\n", f"---\n{line}\n", 1)
    return head.replace(f"---\n{front}", f"---\n{changed}", 1)
