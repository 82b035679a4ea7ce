"""Finds skills: folders with a SKILL.md, by the public specification at
https://agentskills.io/specification.

Only name and description are in the prompt; the body is read when the skill is used. A file is
parsed again when its time or size has changed, so a skill is there as soon as its file is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path, PurePosixPath

import msgspec
import yaml
from msgspec.structs import replace

from ..tools import tree
from ..tools.approved import CHANGED_TEXT, NO_APPROVALS, Bound
from ..tools.documents.invisible import escape_invisible
from ..tools.names import describe_lookalikes, display_name
from ..tools.paths import OpenedFile, Place, Workspace
from ..types.errors import ToolError
from ..types.messages import clean_text

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
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_USABLE = re.compile(r"\w[\w.-]*")


class SkillSource(msgspec.Struct, frozen=True):
    """Where skills lie: in `inner` beneath `root`, which nothing read there can leave. `links`: the
    owner alone writes there, so a link to a folder elsewhere is meant."""

    name: str
    root: Path
    inner: str = "."
    links: bool = False


class Skill(msgspec.Struct, frozen=True):
    """A skill that was found, in `inner` beneath `root`. `source` says where: bundled, shared or
    agent; a later source hides an earlier one of the same name. `problem` is a sentence when it is
    not quite as the specification wants, `digest` the SHA-256 of its SKILL.md, and `place` where
    that was read."""

    name: str
    description: str
    source: str
    root: Path
    inner: str
    problem: str = ""
    digest: bytes = b""
    place: Place = Place("")

    @property
    def folder(self) -> Path:
        return self.root / self.inner


class Skills:
    """The skills of these sources, the strongest last, whose names one of the patterns of `allowed`
    covers."""

    def __init__(self, sources: Sequence[SkillSource], allowed: Sequence[str] = ("*",)) -> None:
        self._sources = sources
        self._allowed = allowed
        self._parsed: dict[tuple[Path, str], tuple[tuple[int, ...], Skill | None]] = {}
        self._watched: dict[str, tuple[int, ...]] = {}
        self._found: dict[str, Skill] = {}

    def find(self) -> dict[str, Skill]:
        """What there is now, by name in order. A file that cannot be read is left out."""
        if (
            not self._watched
            or {path: _stat_version(path) for path in self._watched} != self._watched
        ):
            self._watched = {path: _stat_version(path) for path in self._watched_paths()}
            self._found = self._scan_sources()
        return self._found

    def _watched_paths(self) -> Iterator[str]:
        """Whatever changes when a skill comes, goes or is edited. Looking at these is all that most
        calls cost."""
        for source in self._sources:
            folder = str(source.root / source.inner)
            yield folder
            with suppress(OSError), tree.scan_folder(folder) as inside:
                for entry in inside:
                    yield f"{folder}/{entry.name}"
                    yield f"{folder}/{entry.name}/{FILE_NAME}"

    def _scan_sources(self) -> dict[str, Skill]:
        found: dict[str, Skill] = {}
        for source in self._sources:
            for skill in self._find_in(source):
                if any(
                    fnmatchcase(skill.name, pattern) for pattern in self._allowed
                ) and not _is_shadowed(skill, found):
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
                    self._watched = {}  # it changed places with another one meanwhile: look again
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
    """Whether one of the same source has its name already, and it is that of its folder: none takes
    it from there."""
    other = found.get(skill.name)
    return other is not None and other.source == skill.source and other.folder.name == other.name


def _stat_version(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)  # noqa: PTH116 -- before every model call, and a third of the cost
    except OSError:
        return 0, 0, 0
    return status.st_ctime_ns, status.st_size, status.st_ino


def _parse_skill(text: str, source: str, root: Path, inner: str) -> Skill | None:
    """The skill that a SKILL.md describes; lenient: without a name that can be used it is called
    like its folder."""
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
    if not _NAME.fullmatch(name):
        problem = problem or f"its name {name!r} is not in lower case, digits and single hyphens"
    if name != folder and inner != ".":
        problem = problem or f"its name {name!r} is not that of its folder"
    if not description:
        problem = problem or "it has no description"
    return Skill(name, description, source, root, inner, problem)


def split_front_matter(text: str) -> tuple[list[str] | None, str]:
    """The lines of the front matter (None: there is none) and the rest."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return None, text
    end = next((i for i, line in enumerate(lines) if i and line.rstrip() == "---"), None)
    return (None, text) if end is None else (lines[1:end], "\n".join(lines[end + 1 :]))


def parse_front_matter(text: str) -> tuple[dict[str, str], str]:
    """The keys of the front matter that have plain text, and what is wrong with it ('' for
    nothing)."""
    lines, _ = split_front_matter(text)
    if lines is None:
        return {}, "it has no front matter"
    front = "\n".join(lines)
    problem = ""
    if len(front) > FRONT_CHARS:
        front = front[:FRONT_CHARS]
        problem = f"its front matter is longer than {FRONT_CHARS} characters"
    elif (
        front.count("[") + front.count("{") > MOST_BRACKETS
    ):  # the parser takes quadratic time for nested ones
        problem = "its front matter has too many brackets"
    else:
        try:
            # Scalars only, as text: no dates, no numbers, no objects; nested values, and what they
            # multiply, are left.
            data = yaml.load(front, yaml.BaseLoader)
            if isinstance(data, dict):
                return {
                    k: clean_text(v)
                    for k, v in data.items()
                    if isinstance(k, str) and isinstance(v, str)
                }, ""
            problem = "its front matter holds no keys"
        except (yaml.YAMLError, RecursionError):
            problem = "its front matter is not valid YAML"
    pairs = [
        line.partition(":") for line in front.split("\n") if ":" in line and line[:1].isalpha()
    ]
    return {key.strip(): clean_text(value.strip().strip("\"'")) for key, _, value in pairs}, problem


def read_skill(skill: Skill, path: str = "", bound: Bound = NO_APPROVALS) -> str:
    """The instructions, with what else there is to read, or a file of the skill. Raises ToolError;
    also for what is not as it was approved."""
    return load_skill(skill, path, bound).text


class LoadedSkill(msgspec.Struct, frozen=True):
    """What a skill says, where it was read, and what is `named` in it."""

    text: str
    place: Place
    named_places: tuple[Place, ...] = ()


def load_skill(skill: Skill, path: str = "", bound: Bound = NO_APPROVALS) -> LoadedSkill:
    """The same, with where it was read."""
    with Workspace(str(skill.root)) as files:
        if path:
            asked = PurePosixPath(path)
            if asked.is_absolute() or ".." in asked.parts:
                raise ToolError(f"{path!r} does not lie in the skill {skill.name!r}")
            further = _read_approved(files, skill, path, FURTHER_BYTES, bound)
            return LoadedSkill(
                escape_invisible(further.data.decode("utf-8-sig", "replace")), further.place
            )
        read = _read_approved(files, skill, FILE_NAME, FILE_BYTES, bound)
        body = escape_invisible(
            split_front_matter(read.data.decode("utf-8-sig", "replace"))[1].strip()
        )
        others = [
            (name, place) for name, place in _list_files(files, skill.inner) if name != FILE_NAME
        ]
    more = (
        f"\n\n[files, in {skill.folder}: {', '.join(name for name, _ in others)}]" if others else ""
    )
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
    """The files beneath, two levels deep."""
    found: list[tuple[str, Place]] = []
    listed = files.list_folder(inner, 100)
    for entry in listed.entries:
        if entry.kind == "folder" and deeper and entry.name.isprintable():
            beneath = _list_files(files, f"{inner}/{entry.name}", deeper=False)
            found += [(f"{display_name(entry.name)}/{name}", place) for name, place in beneath]
        elif entry.kind == "file":
            found.append((display_name(entry.name), listed.place_of(entry)))
    return found


def render_skill_index(skills: dict[str, Skill]) -> str:
    """The lines for the prompt; '' without any skill."""
    if not skills:
        return ""
    lines = [
        "# Skills",
        "Before you do something that one of these is for, read it with read_skill.",
    ]
    size = 0
    twins = describe_lookalikes(skills)
    for number, skill in enumerate(skills.values()):
        size += len(skill.name) + len(skill.description)
        if size > INDEX_CHARS:
            lines.append(f"[and {len(skills) - number} more: list_skills]")
            break
        twin = f" {twins[skill.name]}" if skill.name in twins else ""
        lines.append(f"- {display_name(skill.name)}: {skill.description}{twin}")
    return "\n".join(lines)
