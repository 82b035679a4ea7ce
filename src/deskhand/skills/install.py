"""Takes in a skill that somebody else has made: from a folder, an archive or a git repository. It
is scanned, and shown with what it can do, before it is anywhere where skills are looked for."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import msgspec

from ..tools.approved import MAX_BYTES as MAX_LOCKED_BYTES
from ..tools.approved import MAX_FILES as MAX_LOCKED_FILES
from ..types.errors import Refused
from ..types.folders import make_private_folder
from .archive import MAX_BYTES, MAX_DEPTH, MAX_FILES, REFUSED_SUFFIXES, unpack_archive
from .scan import ScanFinding, scan_files, scan_skill
from .skill import (
    FILE_NAME,
    NAME,
    NAME_CHARS,
    Skill,
    Skills,
    SkillSource,
    parse_front_matter,
    split_front_matter,
)

GIT_S = 120.0
GIT_ADDRESS = re.compile(r"https://\S+|ssh://\S+|git@\S+:\S+|file:///\S+")
ENDINGS = (".py", ".sh", ".js", ".rb", ".pl")
_URL = re.compile(r"https?://([A-Za-z0-9.-]+)")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_(?:KEY|TOKEN|SECRET|PASSWORD)\b")
_GIT = (
    *("git", "-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"),
    *("-c", "core.symlinks=false", "clone", "--quiet", "--depth", "1", "--no-tags"),
)


class Capabilities(msgspec.Struct, frozen=True):
    """What a skill brings, and names: programs, hosts, variables with keys, and the secrets that it
    declares."""

    programs: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


class FoundSkill(msgspec.Struct, frozen=True):
    """A skill that could be taken in. `commit` is that of its repository, '' for others."""

    skill: Skill
    capabilities: Capabilities
    findings: tuple[ScanFinding, ...] = ()
    files: tuple[str, ...] = ()
    commit: str = ""


def fetch_skills(source: str, staging: Path) -> list[FoundSkill]:
    """The skills of this source, in the empty folder `staging`, by their names. Raises Refused."""
    folder = staging / "source"
    folder.mkdir(mode=0o700)
    commit = ""
    if GIT_ADDRESS.fullmatch(source):
        commit = _clone(source, folder)
    elif (path := Path(source).expanduser()).is_dir():
        _copy_folder(path.resolve(), folder)
    elif path.is_file():
        unpack_archive(path, folder)
    else:
        raise Refused(f"there is no folder, archive or address {source!r}")
    _name_by_skill(folder)
    found = [_examine(each, commit) for each in _iter_skills(folder)]
    if not found:
        raise Refused(f"{source} holds no folder with a {FILE_NAME}")
    return sorted(found, key=lambda each: each.skill.name)


def _name_by_skill(folder: Path) -> None:
    """A skill that is the whole of its source has the name of the archive or repository: give it
    its own."""
    inside = [*folder.iterdir()]
    if (folder / FILE_NAME).is_file():
        top = folder / ".top"
        top.mkdir(mode=0o700)
        for each in inside:
            each.rename(top / each.name)
    elif len(inside) == 1 and (inside[0] / FILE_NAME).is_file():
        top = inside[0]
    else:
        return
    front, _ = parse_front_matter((top / FILE_NAME).read_text("utf-8", "replace"))
    name = front.get("name", "")
    name = name if NAME.fullmatch(name) and len(name) <= NAME_CHARS else "skill"
    if top.name != name:
        top.rename(folder / name)


def _clone(address: str, folder: Path) -> str:
    """Fetch the latest commit. Returns its name."""
    place = folder / "repository"
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0", "HOME": "/"}
    try:
        subprocess.run(
            [*_GIT, "--", address, str(place)],
            check=True,
            capture_output=True,
            timeout=GIT_S,
            env=environment,
        )
        shown = subprocess.run(
            ["git", "-C", str(place), "rev-parse", "HEAD"],
            check=True,
            capture_output=True,
            timeout=GIT_S,
            env=environment,
        )
    except FileNotFoundError as error:
        raise Refused("git is not installed: get an archive, and install that") from error
    except subprocess.TimeoutExpired as error:
        raise Refused(f"{address} did not answer within {GIT_S:.0f} s") from error
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise Refused(f"{address} was not fetched: {why}") from error
    shutil.rmtree(place / ".git")
    _check_tree(place)
    return shown.stdout.decode().strip()


def _copy_folder(source: Path, folder: Path) -> None:
    _check_tree(source)
    hidden = shutil.ignore_patterns(".*", "__pycache__")
    shutil.copytree(source, folder / source.name, symlinks=True, ignore=hidden)


def _check_tree(folder: Path) -> None:
    """Raises Refused for links and other things, and for what is too much."""
    count = size = 0
    for path in folder.rglob("*"):
        inner = path.relative_to(folder)
        if any(part.startswith(".") or part == "__pycache__" for part in inner.parts):
            continue
        status = path.lstat()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise Refused(f"{str(inner)!r} is a link or a device")
        count += path.is_file()
        size += status.st_size if path.is_file() else 0
        if count > 20 * MAX_FILES or size > 10 * MAX_BYTES or len(inner.parts) > 2 * MAX_DEPTH:
            raise Refused(f"{folder.name} holds too much to be skills")


def _iter_skills(folder: Path) -> Iterator[Skill]:
    """Those in it, at whatever depth; none inside another."""
    for file in sorted(folder.rglob(FILE_NAME)):
        place = file.parent
        if any(parent != place and (parent / FILE_NAME).exists() for parent in place.parents):
            continue
        found = Skills((SkillSource("new", place.parent),)).find()
        yield from (each for each in found.values() if each.folder == place)


def _examine(skill: Skill, commit: str) -> FoundSkill:
    files: list[str] = []
    texts: list[str] = []
    size = 0
    for path in sorted(skill.folder.rglob("*")):
        if not path.is_file():
            continue
        inner = str(path.relative_to(skill.folder))
        if inner.lower().endswith(REFUSED_SUFFIXES):
            raise Refused(f"{skill.name}: {inner!r} is a program that cannot be read")
        files.append(inner)
        size += path.stat().st_size
        if len(files) > MAX_LOCKED_FILES or size > MAX_LOCKED_BYTES:
            raise Refused(
                f"{skill.name} holds more than {MAX_LOCKED_FILES} files, or more than "
                f"{MAX_LOCKED_BYTES >> 20} MB: it could not be bound to what it is now"
            )
        texts.append(path.read_bytes().decode("utf-8", "replace"))
    body = split_front_matter((skill.folder / FILE_NAME).read_text("utf-8", "replace"))[1]
    findings = (*scan_skill(skill.name, skill.description, body), *scan_files("", texts))
    once = {(each.rule, each.words): each for each in findings}
    capabilities = Capabilities(
        tuple(
            each for each in files if each.startswith("scripts/") or each.endswith((".py", ".sh"))
        ),
        tuple(sorted({*_find_all(_URL, texts), *skill.hosts})),
        _find_all(_VARIABLE, texts),
        skill.secrets,
    )
    return FoundSkill(skill, capabilities, tuple(once.values()), tuple(files), commit)


def _find_all(pattern: re.Pattern[str], texts: list[str]) -> tuple[str, ...]:
    found = {match for text in texts for match in pattern.findall(text)}
    return tuple(sorted(found))


def examine_installed(skill: Skill) -> FoundSkill:
    """The same of one that is there already, to compare. Raises Refused."""
    return _examine(skill, "")


def compare(before: FoundSkill, after: FoundSkill) -> list[str]:
    """What an update changes, a line each: what it can do first, then its instructions."""
    lines = []
    for name in Capabilities.__struct_fields__:
        old, new = (set(getattr(each.capabilities, name)) for each in (before, after))
        lines += [f"+ {name}: {each}" for each in sorted(new - old)]
        lines += [f"- {name}: {each}" for each in sorted(old - new)]
    texts = [
        (each.skill.folder / FILE_NAME).read_text("utf-8", "replace").splitlines()
        for each in (before, after)
    ]
    return lines + list(unified_diff(texts[0], texts[1], "before", "after", lineterm=""))


def place_skill(found: FoundSkill, folder: Path) -> Path:
    """Put it into a folder of skills, in one step. What was there under its name must be gone."""
    make_private_folder(folder)
    part = folder / f".{found.skill.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    for inner in found.files:
        target = part / inner
        make_private_folder(target.parent)
        target.write_bytes((found.skill.folder / inner).read_bytes())
        target.chmod(0o600)
    return part.rename(folder / found.skill.name)
