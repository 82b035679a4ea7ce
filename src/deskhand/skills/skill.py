"""Finds skills: folders with a SKILL.md, by the public specification at
https://agentskills.io/specification.

Only the name and the description are in the prompt. The body is read when the skill is used. A file
is parsed again when it has changed, so a new skill can be used at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from ..tools import tree
from ..tools.approved import CHANGED_TEXT, NO_APPROVALS, Bound
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.names import describe_lookalikes, display_name
from ..tools.paths import OpenedFile, Place, Workspace
from ..types.errors import ToolError
from ..types.messages import clean_text
from ..types.secrets import SECRET_NAME_PATTERN

FILE_NAME = "SKILL.md"
FILE_BYTES = 256 * 1024
FURTHER_BYTES = 10 << 20
FRONT_CHARS = 8 * 1024
NAME_CHARS = 64
DESCRIPTION_CHARS = 1024
INDEX_CHARS = 24_000
MOST_SKILLS = 500
MOST_BRACKETS = 200
BUNDLED = Path(__file__).parent / "bundled"
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_USABLE = re.compile(r"\w[\w.-]*")
SECRETS_KEY = "deskhand-secrets"
HOSTS_KEY = "deskhand-hosts"
MOST_DECLARED = 20
_HOST = re.compile(r"[A-Za-z0-9*][A-Za-z0-9.:-]{0,252}")


class SkillSource(msgspec.Struct, frozen=True):
    """A folder of skills: `inner` beneath `root`. Nothing outside `root` is read, unless `links` is
    set: then only the owner writes there, and links to other folders are followed."""

    name: str
    root: Path
    inner: str = "."
    links: bool = False


class Skill(msgspec.Struct, frozen=True):
    """A skill in `inner` beneath `root`. `source` is bundled, shared or agent; a later source hides
    skills of the same name. `problem` says what differs from the specification, or is ''. `digest`
    is the SHA-256 of its SKILL.md, and `place` where that was read. `secrets` are the names of
    those that it wants added to the requests of its programs, and `hosts` what those connect to."""

    name: str
    description: str
    source: str
    root: Path
    inner: str
    problem: str = ""
    digest: bytes = b""
    place: Place = Place("")
    secrets: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.root / self.inner


class Skills:
    """The skills of these sources whose names match one of the patterns in `allowed`. A later
    source wins over an earlier one."""

    def __init__(self, sources: Sequence[SkillSource], allowed: Sequence[str] = ("*",)) -> None:
        self._sources = sources
        self._allowed = allowed
        self._parsed: dict[tuple[Path, str], tuple[tuple[int, ...], Skill | None]] = {}
        self._watched: dict[str, tuple[int, ...]] = {}
        self._found: dict[str, Skill] = {}

    def find(self) -> dict[str, Skill]:
        """The skills there are now, sorted by name. A file that cannot be read is left out."""
        now = {path: _stat_version(path) for path in self._watched}
        if not self._watched or now != self._watched:
            self._watched = {path: _stat_version(path) for path in self._watched_paths()}
            self._found = self._scan_sources()
        return self._found

    def _watched_paths(self) -> Iterator[str]:
        """The paths that change when a skill is added, removed or edited. Most calls only check
        these."""
        for source in self._sources:
            folder = str(source.root / source.inner)
            yield folder
            if source.root == BUNDLED:
                continue  # they change with an update, which starts anew
            with suppress(OSError), tree.scan_folder(folder) as inside:
                for entry in inside:
                    yield f"{folder}/{entry.name}"
                    yield f"{folder}/{entry.name}/{FILE_NAME}"

    def _scan_sources(self) -> dict[str, Skill]:
        found: dict[str, Skill] = {}
        for source in self._sources:
            for skill in self._find_in(source):
                allowed = any(fnmatchcase(skill.name, pattern) for pattern in self._allowed)
                if allowed and not _is_shadowed(skill, found):
                    found[skill.name] = skill
        for name, note in describe_lookalikes(found).items():
            found[name] = replace(found[name], problem=note.strip("()"))
        return dict(sorted(found.items()))

    def _find_in(self, source: SkillSource) -> Iterator[Skill]:
        with suppress(ToolError), Workspace(str(source.root)) as files:
            for entry in files.list(source.inner, MOST_SKILLS):
                inner = str(PurePosixPath(source.inner) / entry.name)
                skill = None
                if entry.kind == "folder":
                    skill = self._load_skill(files, source.name, source.root, inner)
                elif entry.kind == "link" and source.links:
                    elsewhere = (source.root / inner).resolve()
                    with suppress(ToolError), Workspace(str(elsewhere)) as others:
                        skill = self._load_skill(others, source.name, elsewhere, ".")
                if skill is not None:
                    yield skill

    def _load_skill(self, files: Workspace, source: str, root: Path, inner: str) -> Skill | None:
        with suppress(ToolError):
            entry = files.stat(f"{inner}/{FILE_NAME}")
            version = (entry.changed_ns, entry.size_bytes, entry.inode)
            known = self._parsed.get((root, inner))
            if known is None or known[0] != version:
                read = files.read_opened(f"{inner}/{FILE_NAME}", FILE_BYTES)
                if read.place.inode != entry.inode:
                    self._watched = {}  # another file took its place: look again next time
                    return None
                made = _parse_skill(read.data.decode("utf-8-sig", "replace"), source, root, inner)
                place = replace(read.place, asked=f"{root / inner}/{FILE_NAME}")
                known = (
                    version,
                    made and replace(made, digest=sha256(read.data).digest(), place=place),
                )
                self._parsed[root, inner] = known
            return known[1]
        return None


def _is_shadowed(skill: Skill, found: Mapping[str, Skill]) -> bool:
    """Whether the same source has a skill of this name in a folder of this name: no other folder
    can take the name."""
    other = found.get(skill.name)
    return other is not None and other.source == skill.source and other.folder.name == other.name


def _stat_version(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)  # noqa: PTH116 -- before every model call, and a third of the cost
    except OSError:
        return 0, 0, 0
    return status.st_ctime_ns, status.st_size, status.st_ino


def _parse_skill(text: str, source: str, root: Path, inner: str) -> Skill | None:
    """The skill of a SKILL.md. Without a usable name it is called like its folder; None when that
    is not usable either."""
    front, problem = parse_front_matter(text)
    folder = (root / inner).name
    name = front.get("name", "")
    if not name or len(name) > NAME_CHARS or not _USABLE.fullmatch(name):
        problem = problem or f"its name {name[:NAME_CHARS]!r} cannot be used"
        name = folder
    if len(name) > NAME_CHARS or not _USABLE.fullmatch(name):
        return None
    description = " ".join(escape_invisible(front.get("description", "")).split())[
        :DESCRIPTION_CHARS
    ]
    if not NAME.fullmatch(name):
        problem = problem or f"its name {name!r} is not in lower case, digits and single hyphens"
    if name != folder and inner != ".":
        problem = problem or f"its name {name!r} is not the name of its folder"
    if not description:
        problem = problem or "it has no description"
    metadata = parse_metadata(text)
    return Skill(
        name,
        description,
        source,
        root,
        inner,
        problem,
        secrets=_split_names(metadata.get(SECRETS_KEY, ""), SECRET_NAME_PATTERN),
        hosts=_split_names(metadata.get(HOSTS_KEY, ""), _HOST),
    )


def _split_names(text: str, pattern: re.Pattern[str]) -> tuple[str, ...]:
    """The names that are listed there, with commas or spaces between."""
    found = [name for name in text.replace(",", " ").split() if pattern.fullmatch(name)]
    return tuple(dict.fromkeys(found))[:MOST_DECLARED]


def split_front_matter(text: str) -> tuple[list[str] | None, str]:
    """The lines of the front matter (None when there is none), and the rest."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return None, text
    end = next((i for i, line in enumerate(lines) if i and line.rstrip() == "---"), None)
    return (None, text) if end is None else (lines[1:end], "\n".join(lines[end + 1 :]))


def parse_front_matter(text: str) -> tuple[dict[str, str], str]:
    """The keys of the front matter whose values are text, and what is wrong with it ('' for
    nothing)."""
    lines, _ = split_front_matter(text)
    if lines is None:
        return {}, "it has no front matter"
    front = "\n".join(lines)
    data, problem = _load_front_matter(front)
    if data is not None:
        return _only_texts(data), ""
    front = front[:FRONT_CHARS]
    pairs = [
        line.partition(":") for line in front.split("\n") if ":" in line and line[:1].isalpha()
    ]
    return {key.strip(): clean_text(value.strip().strip("\"'")) for key, _, value in pairs}, problem


def parse_metadata(text: str) -> dict[str, str]:
    """The texts under `metadata` in the front matter, where the specification has what is the
    client's own."""
    lines, _ = split_front_matter(text)
    if lines is None or not any(line.startswith("metadata:") for line in lines):
        return {}
    data, _ = _load_front_matter("\n".join(lines))
    metadata = data.get("metadata") if data is not None else None
    return _only_texts(metadata) if isinstance(metadata, dict) else {}


def _load_front_matter(front: str) -> tuple[dict[Any, Any] | None, str]:
    """The keys, or None and what is wrong with it. Scalars are read as text only."""
    if len(front) > FRONT_CHARS:
        return None, f"its front matter is longer than {FRONT_CHARS} characters"
    if front.count("[") + front.count("{") > MOST_BRACKETS:
        # The parser takes quadratic time for nested brackets.
        return None, "its front matter has too many brackets"
    try:
        data = yaml.load(front, yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return None, "its front matter is not valid YAML"
    return (data, "") if isinstance(data, dict) else (None, "its front matter has no keys")


def _only_texts(data: dict[Any, Any]) -> dict[str, str]:
    """Nested values, which aliases could multiply, are dropped."""
    return {
        key: clean_text(value)
        for key, value in data.items()
        if isinstance(key, str) and isinstance(value, str)
    }


def read_skill(skill: Skill, path: str = "", bound: Bound = NO_APPROVALS) -> str:
    """The instructions of a skill with a list of its other files, or one of its files. Raises
    ToolError, also for a skill that was changed since it was approved."""
    return load_skill(skill, path, bound).text


class LoadedSkill(msgspec.Struct, frozen=True):
    """The text of a skill, where it was read, and the places of the files that it lists."""

    text: str
    place: Place
    named_places: tuple[Place, ...] = ()


def load_skill(skill: Skill, path: str = "", bound: Bound = NO_APPROVALS) -> LoadedSkill:
    """As `read_skill`, with where it was read."""
    with Workspace(str(skill.root)) as files:
        if path:
            asked = PurePosixPath(path)
            if asked.is_absolute() or ".." in asked.parts:
                raise ToolError(f"{path!r} is not in the skill {skill.name!r}")
            further = _read_approved(files, skill, path, FURTHER_BYTES, bound)
            text = escape_invisible(further.data.decode("utf-8-sig", "replace"))
            return LoadedSkill(text, further.place)
        read = _read_approved(files, skill, FILE_NAME, FILE_BYTES, bound)
        body = escape_invisible(
            split_front_matter(read.data.decode("utf-8-sig", "replace"))[1].strip()
        )
        others = [each for each in _list_files(files, skill.inner) if each[0] != FILE_NAME]
    more = ""
    if others:
        names = ", ".join(name for name, _ in others)
        more = f"\n\n[files, in {skill.folder}: {names}]"
    text = f'<skill-loaded name="{skill.name}">\n{body}{more}\n</skill-loaded>'
    return LoadedSkill(text, read.place, tuple(place for _, place in others))


def _read_approved(
    files: Workspace, skill: Skill, path: str, limit: int, bound: Bound
) -> OpenedFile:
    read = files.read_opened(f"{skill.inner}/{path}", limit)
    place = replace(read.place, asked=str(skill.folder / path))
    if not all(
        bound.allows(real, sha256(read.data).digest())
        for real in (place.real, os.path.realpath(place.asked))
    ):
        raise ToolError(CHANGED_TEXT.format(what=f"the skill {skill.name!r}"))
    return replace(read, place=place)


def _list_files(files: Workspace, inner: str, deeper: bool = True) -> list[tuple[str, Place]]:
    """The files of a folder, two levels deep, by their paths."""
    found: list[tuple[str, Place]] = []
    listed = files.list_folder(inner, 100)
    for entry in listed.entries:
        if entry.name.startswith("."):
            continue  # earlier versions, and what git keeps
        if entry.kind == "folder" and deeper and entry.name.isprintable():
            beneath = _list_files(files, f"{inner}/{entry.name}", deeper=False)
            found += [(f"{display_name(entry.name)}/{name}", place) for name, place in beneath]
        elif entry.kind == "file":
            found.append((display_name(entry.name), listed.place_of(entry)))
    return found


def render_skill_index(skills: dict[str, Skill]) -> str:
    """The list of skills for the prompt; '' without skills. The names of bundled ones say what they
    are for, and every request has them."""
    if not skills:
        return ""
    lines = [
        "# Skills",
        "Read the one that fits first, with read_skill.",
    ]
    bundled = [each.name for each in skills.values() if each.source == "bundled"]
    if bundled:
        lines.append(", ".join(bundled))
    others = [each for each in skills.values() if each.source != "bundled"]
    size = 0
    twins = describe_lookalikes(skills)
    for number, skill in enumerate(others):
        size += len(skill.name) + len(skill.description)
        if size > INDEX_CHARS:
            lines.append(f"[and {len(others) - number} more: list_skills]")
            break
        twin = f" {twins[skill.name]}" if skill.name in twins else ""
        lines.append(f"- {display_name(skill.name)}: {skill.description}{twin}")
    return "\n".join(lines)
