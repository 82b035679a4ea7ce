"""Files that steer us or programs outside the sandbox: a command may write them, but not keep them
changed.

What git needs for its own work it may keep: of its configuration, what is known to be harmless.
Everything else below `.git` is data; what git runs or obeys (hooks, the rest of the configuration,
pointers to other folders) is put back.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from ..types.errors import ToolError
from . import tree
from .file_snapshots import FileSnapshot, FileSnapshots
from .gitconfig import LARGEST_BYTES, STEERING, cleaned, parse, stays
from .heavy import HEAVY
from .label_marks import is_private
from .protected import why_protected
from .states import ChangedPath, digest_of

_CONFIGS = ("config", "config.worktree")
_MEANS_GIT = ("HEAD", "objects", "refs")
_BY_COMMANDS = (".gitattributes", ".gitmodules")
"""Protected from the tools for files, but brought by every clone; git obeys them only as its
configuration says."""
SHOWN = 10


class PutBack(msgspec.Struct, frozen=True):
    """A path that may not stay as it is: what it is to hold (None: its state before), and what is
    said of it."""

    path: str
    content: bytes | None
    said: str


class Guard:
    """Judges what has changed in a workspace, by what was there before and what is there now."""

    def __init__(
        self, shadow: FileSnapshots, root: int, real: str, changed: Sequence[ChangedPath]
    ) -> None:
        self._shadow = shadow
        self._root = root
        self._real = real
        self._changed = {each.path: each for each in changed}
        self._seen: Mapping[str, FileSnapshot] = shadow.seen

    def refused(self) -> list[PutBack]:
        """What has to be put back, the deepest first."""
        found = {each.path: each for each in self._judged()}
        return [found[path] for path in sorted(found, key=lambda path: (-path.count("/"), path))]

    def _judged(self) -> Iterator[PutBack]:
        steered = self._steered()
        for path in self._changed:
            yield from self._plain(path, steered)
            yield from self._led_away(path)
        for folder in self._git_folders():
            yield from self._git(folder)

    def _plain(self, path: str, steered: Sequence[str]) -> Iterator[PutBack]:
        """What is protected by its name, wherever it stands; what lies in git's own folders is
        judged there."""
        parts = path.split("/")
        folded = [part.casefold().rstrip(". ") for part in parts]
        change = self._changed[path]
        if ".git" in folded[:-1] or (folded[-1] == ".git" and (change.after or "d")[0] == "d"):
            if parts[folded.index(".git")] != ".git" and change.after is not None:
                yield _plainly(path)  # another spelling, which some file systems take for it
            return
        if folded[-1] == ".git":
            if change.after is not None and not self._points_well(path, change.after):
                yield PutBack(
                    path,
                    None,
                    f"{path} leads git elsewhere, so it was put back; ask the person to change it",
                )
            return
        protected = bool(why_protected(parts)) and not (
            parts[-1] in _BY_COMMANDS and why_protected(parts[:-1]) == ""
        )
        if not protected and not any(
            path == each or path.startswith(f"{each}/") for each in steered
        ):
            return
        above = posixpath.dirname(path)
        if change.after is None and above and above not in self._seen:
            return  # its whole folder is gone: that steers nobody, and can be undone
        yield _plainly(path)

    def _led_away(self, path: str) -> Iterator[PutBack]:
        """What is about the owner and was replaced by a link that leads elsewhere, so that what is
        written there would lie where others read. With it comes back what lay in it."""
        after = self._changed[path].after
        if after is None or after[0] != "l" or not is_private(self._real, f"{self._real}/{path}"):
            return
        top, _, inner = path.partition("/")
        if inner and self._target(path, after).split("/")[0] == top:
            return
        yield PutBack(
            path,
            None,
            f"{path} became a link, so it was put back: it is about the owner; ask them to move it",
        )
        for other, each in self._changed.items():
            if other.startswith(f"{path}/") and each.after is None:
                yield PutBack(other, None, "")

    def _target(self, path: str, state: str) -> str:
        """The path in the workspace to which a link leads, as it stands in it."""
        target = os.fsdecode(bytes.fromhex(state[2:]))
        if target.startswith("/"):
            return posixpath.relpath(target, self._real)
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))

    def _points_well(self, path: str, state: str) -> bool:
        """Whether a `.git` that is a file names a folder that we watch, below a `.git` in this
        workspace."""
        if state[0] != "f":
            return False
        said = self._text(digest_of(state))
        where = said.removeprefix("gitdir:").strip(" \n") if said.startswith("gitdir:") else ""
        return self._inside(posixpath.dirname(path), where, git=True)

    def _inside(self, folder: str, where: str, git: bool) -> bool:
        """Whether `where`, as it stands in a file of `folder`, leads to a place in this workspace
        that we watch."""
        if not where or "\n" in where or "\0" in where:
            return False
        whole = (
            posixpath.relpath(where, self._real)
            if where.startswith("/")
            else f"{folder}/{where}"
            if folder
            else where
        )
        parts = posixpath.normpath(whole).split("/")
        return stays(whole) and not HEAVY & {*parts} and (not git or ".git" in parts)

    def _git_folders(self) -> list[str]:
        """The folders of git in which something that it obeys may have changed."""
        found = dict[str, None]()
        for path in self._changed:
            parts = path.split("/")
            for at in range(len(parts) - 1, -1, -1):
                folder = "/".join(parts[:at])
                if at and self._is_git(folder):
                    found[folder] = None
        return list(found)

    def _is_git(self, folder: str) -> bool:
        """Whether git would take it for one of its own: by name, by what lies in it, or as that of
        a worktree."""
        if posixpath.basename(folder) == ".git":
            return True
        seen = self._seen
        return f"{folder}/HEAD" in seen and (
            all(f"{folder}/{name}" in seen for name in _MEANS_GIT) or f"{folder}/commondir" in seen
        )

    def _was_git(self, folder: str) -> bool:
        """Whether it was so before: then only what has changed is judged."""
        if posixpath.basename(folder) == ".git":
            return True
        gone = {path for path, each in self._changed.items() if each.before is None}
        return not any(f"{folder}/{name}" in gone for name in (*_MEANS_GIT, "commondir"))

    def _git(self, folder: str) -> Iterator[PutBack]:
        """What git obeys in one of its folders."""
        fresh = not self._was_git(folder)
        for path in self._seen if fresh else self._changed:
            if not path.startswith(f"{folder}/") or (after := self._seen.get(path)) is None:
                continue  # what is gone steers nobody
            inner = path[len(folder) + 1 :]
            known = self._changed.get(path)
            before = known.before if known is not None else None if fresh else after.state
            if inner in _CONFIGS:
                yield from self._config(path, folder, before, after.state)
            elif inner.split("/")[0] == "hooks" and "/" in inner:
                if not inner.endswith(".sample") and after.state[0] != "d":
                    yield _plainly(path)
            elif inner == "hooks" and after.state[0] not in "dh":
                yield _plainly(path)
            elif inner in ("commondir", "gitdir"):
                yield from self._pointer(path, folder, inner, after.state)

    def _pointer(self, path: str, folder: str, inner: str, state: str) -> Iterator[PutBack]:
        lines = self._text(digest_of(state)).strip("\n").split("\n") if state[0] == "f" else [""]
        if not all(self._inside(folder, line, git=inner == "commondir") for line in lines):
            yield PutBack(
                path,
                None,
                f"{path} leads git elsewhere, so it was put back; ask the person to change it",
            )

    def _config(self, path: str, folder: str, before: str | None, after: str) -> Iterator[PutBack]:
        if after[0] != "f":
            yield _plainly(path)
            return
        old = self._bytes(digest_of(before)) if digest_of(before) else None
        try:
            content, keys = cleaned(old, self._bytes(digest_of(after)), folder)
        except (ToolError, OSError):
            yield _plainly(path)
            return
        if keys:
            names = ", ".join(key if key.isprintable() else ascii(key) for key in keys[:SHOWN])
            more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
            yield PutBack(
                path,
                content,
                f"in {path} {names}{more} was put back, because git obeys it outside the "
                "sandbox too; "
                "ask the person to set it",
            )

    def _steered(self) -> list[str]:
        """Files of the workspace that a person's configuration of git names, so that git obeys
        them."""
        found = list[str]()
        for path, each in self._seen.items():
            if posixpath.basename(path) not in _CONFIGS or not self._is_git(
                posixpath.dirname(path)
            ):
                continue
            known = self._changed.get(path)
            digest = digest_of(known.before if known is not None else each.state)
            with suppress(ToolError, OSError):
                for entry in parse(self._bytes(digest)) if digest else ():
                    folded = (
                        f"{entry.section}.{'*.' if entry.subsection is not None else ''}"
                        f"{entry.name}"
                    )
                    if folded in STEERING and entry.value:
                        found += self._steering(posixpath.dirname(path), folded, entry.value)
        return found

    def _steering(self, folder: str, name: str, value: str) -> Iterator[str]:
        base = posixpath.dirname(folder) if name == "core.hookspath" else folder
        whole = (
            posixpath.relpath(value, self._real)
            if value.startswith("/")
            else posixpath.join(base, value)
        )
        if stays(whole):
            yield posixpath.normpath(whole)

    def _text(self, digest: str) -> str:
        with suppress(OSError):
            return self._bytes(digest).decode("utf-8", "surrogateescape")
        return ""

    def _bytes(self, digest: str) -> bytes:
        with self._shadow.open(digest) as file:
            data = file.read(LARGEST_BYTES + 1)
        return data


def _plainly(path: str) -> PutBack:
    return PutBack(
        path, None, f"{path} is protected, so it was put back; ask the person to change it"
    )


def put_back(
    shadow: FileSnapshots, root: int, real: str, changed: Sequence[ChangedPath]
) -> tuple[list[ChangedPath], list[str]]:
    """Undo what a command did to protected files. Returns what has changed in the end, and a
    sentence for each."""
    refused = Guard(shadow, root, real, changed).refused()
    if not refused:
        return list(changed), []
    known = {each.path: each for each in changed}
    wanted = dict[str, str | None]()
    for each in refused:
        change = known.get(each.path) or ChangedPath(each.path, None, shadow.seen[each.path].state)
        wanted[each.path] = change.before
        if each.content is not None and change.after is not None:
            wanted[each.path] = shadow.add(each.content, change.after[1:5])
        known[each.path] = change
    failed = tree.put(root, wanted, shadow.open)
    shadow.look_at(root, list(wanted))
    now = {path: seen.state for path in known if (seen := shadow.seen.get(path)) is not None}
    left = [ChangedPath(path, each.before, now.get(path)) for path, each in known.items()]
    return [each for each in left if each.before != each.after], _sentences(refused, failed)


def _sentences(refused: Sequence[PutBack], failed: Mapping[str, str]) -> list[str]:
    """What is said of each that has something to say; of a folder only where nothing in it is
    told."""
    saying = [each for each in refused if each.said]
    told = [
        each
        for each in saying
        if not any(other.path.startswith(f"{each.path}/") for other in saying)
    ]
    said = [
        f"{each.path} is protected, but could not be put back: {failed[each.path]}"
        if each.path in failed
        else each.said
        for each in told[:SHOWN]
    ]
    return said + (
        [f"{len(told) - SHOWN} more protected files were put back"] if len(told) > SHOWN else []
    )
