"""What the readers of several systems share: files that tell an agent something, notes, facts,
skills, jobs and times."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..types.errors import JobInvalid
from ..types.jobs import Job, validate_job
from .model import ImportedFolder, JobFound
from .safe_files import Tree, Unread

WORKSPACE_FILES = ("RULES.md", "SOUL.md", "USER.md", "CODE.md", "AGENTS.md", "HEARTBEAT.md")
"""What an agent is told, by the names that these systems have for it."""
BUNDLED = frozenset({"skill-creator", "job-creator"})
"""Skills that come with these systems and are about them."""
_DAILY = re.compile(r"\d{4}-\d{2}-\d{2}\.md")


def parse_time(text: Any) -> float | None:
    """A time as these systems write it, without a zone in UTC; None for anything else."""
    with suppress(ValueError, OverflowError, TypeError):
        at = datetime.fromisoformat(str(text))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return None


def load_zone_or_utc(name: Any) -> tzinfo:
    """The time zone of this name; UTC where there is none."""
    try:
        return ZoneInfo(str(name)) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def plain_text(content: Any) -> str:
    """The text of a message; what is no text in it is named, since it was not kept."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part for part in content if isinstance(part, dict)]
    return "\n".join(
        str(part["text"]) if isinstance(part.get("text"), str) else f"[{part.get('type')}]"
        for part in parts
    )


def read_skills(tree: Tree, inner: str = "skills") -> Iterator[ImportedFolder]:
    """The skills in a folder: folders with a SKILL.md. Those that the systems themselves bring
    along are passed over."""
    for entry in tree.entries(inner):
        if (
            entry.kind == "folder"
            and entry.name not in BUNDLED
            and tree.has_file(f"{inner}/{entry.name}/SKILL.md")
        ):
            folder = tree.read_folder(f"{inner}/{entry.name}")
            if folder is not None:
                yield folder


def read_notes(tree: Tree, home: str) -> Iterator[tuple[str, bytes]]:
    """knowledge/ and the daily logs memory/YYYY-MM-DD.md, by their paths in the workspace."""
    if tree.has_folder(f"{home}/knowledge") and (folder := tree.read_folder(f"{home}/knowledge")):
        for path, data in folder.files.items():
            yield f"knowledge/{path}", data
    yield from read_daily_notes(tree, home)


def read_daily_notes(
    tree: Tree, home: str, names: re.Pattern[str] = _DAILY
) -> Iterator[tuple[str, bytes]]:
    """The files of these names in memory/, by their paths in the workspace."""
    for entry in tree.entries(f"{home}/memory"):
        inner = f"{home}/memory/{entry.name}"
        if names.fullmatch(entry.name) and tree.has_file(inner):
            try:
                yield f"memory/{entry.name}", tree.read_bytes(inner)
            except Unread as error:
                tree.note_unread(inner, error)


def parse_facts(files: Mapping[str, str]) -> Iterator[str]:
    """The facts in a file of notes: each item of a list, each paragraph; short ones with the
    heading above them."""
    for text in files.values():
        heading = ""
        paragraph = list[str]()
        for line in [*text.splitlines(), ""]:
            plain = line.strip()
            if (
                plain.startswith("#")
                or not plain
                or plain[:2] in ("- ", "* ")
                or plain in ("---", "***")
            ):
                if paragraph:
                    yield _with_heading(heading, " ".join(paragraph))
                paragraph = [plain[2:].strip()] if plain[:2] in ("- ", "* ") else []
                heading = plain.lstrip("# ").strip() if plain.startswith("#") else heading
            elif not (plain.startswith("(") and plain.endswith(")")) and not plain.startswith(
                "*This file"
            ):
                paragraph.append(plain)


def _with_heading(heading: str, text: str) -> str:
    return f"{heading}: {text}" if heading and len(text) < 60 else text


def read_jobs(
    tree: Tree,
    inner: str,
    make: Callable[[Mapping[str, Any], str], Job | None],
    fields: Mapping[str, Collection[str]],
    names: tuple[str, ...] = ("name", "id"),
) -> Iterator[JobFound]:
    """The jobs of a JSON file that is a list of them, or has one as `jobs`. `make` makes the job of
    an entry, under this name; None where it has noted why there is none. `fields` are those of an
    entry ('') and of what is in it that `make` uses. What an entry is called stands in one of
    `names`."""
    if not tree.has_file(inner):
        return
    try:
        found = tree.read_json(inner)
    except Unread as error:
        tree.note_unread(inner, error)
        return
    listed = found.get("jobs", []) if isinstance(found, dict) else found
    if not isinstance(listed, list):
        tree.notes.fail(inner, "it contains no list of jobs")
        return
    yield from convert_jobs(tree, inner, listed, make, fields, names)


def convert_jobs(
    tree: Tree,
    where: str,
    listed: list[Any],
    make: Callable[[Mapping[str, Any], str], Job | None],
    fields: Mapping[str, Collection[str]],
    names: tuple[str, ...] = ("name", "id"),
) -> Iterator[JobFound]:
    """The same of entries that were read already; `where` they stand."""
    taken: set[str] = set()
    for number, each in enumerate(listed, 1):
        if not isinstance(each, Mapping):
            tree.notes.leave_out(f"entry {number} of {where}", "it is not a job")
            continue
        called = next((str(each[name]) for name in names if each.get(name)), "job")
        name = unique_job_name(called, taken)
        for part, used in fields.items():
            inner = each.get(part) if part else each
            kind = f"jobs in {where} ({part})" if part else f"jobs in {where}"
            tree.notes.count_unused_fields(kind, inner if isinstance(inner, Mapping) else {}, used)
        try:
            job = make(each, name)
            if job is not None:
                yield JobFound(validate_job(job))
        except (JobInvalid, TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
            tree.notes.leave_out(
                f"{where}: {called}", str(error), "create it again: deskhand jobs add"
            )


def unique_job_name(text: str, taken: set[str]) -> str:
    """A name that a job's folder can have, and none has yet."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50] or "job"
    name = next(
        name
        for n in range(1, 100_000)
        if (name := plain if n == 1 else f"{plain}-{n}") not in taken
    )
    taken.add(name)
    return name
