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
from .generated_folders import GENERATED_FOLDERS
from .gitconfig import (
    MAX_CONFIG_BYTES,
    STEERING_KEYS,
    clean_config,
    is_inside_workspace,
    parse_config,
)
from .label_marks import is_private
from .path_states import ChangedPath, parse_digest
from .protected import why_protected

_CONFIG_NAMES = ("config", "config.worktree")
_GIT_FOLDER_NAMES = ("HEAD", "objects", "refs")
_COMMAND_WRITABLE = (".gitattributes", ".gitmodules")
"""Protected from the tools for files, but brought by every clone; git obeys them only as its
configuration says."""
MAX_LISTED = 10


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
        self._seen: Mapping[str, FileSnapshot] = shadow.entries

    def find_refused(self) -> list[PutBack]:
        """What has to be put back, the deepest first."""
        found = {each.path: each for each in self._iter_refused()}
        return [found[path] for path in sorted(found, key=lambda path: (-path.count("/"), path))]

    def _iter_refused(self) -> Iterator[PutBack]:
        steered = self._find_steered_files()
        for path in self._changed:
            yield from self._check_name(path, steered)
            yield from self._check_link(path)
        for folder in self._find_git_folders():
            yield from self._check_git_folder(folder)

    def _check_name(self, path: str, steered: Sequence[str]) -> Iterator[PutBack]:
        """What is protected by its name, wherever it stands; what lies in git's own folders is
        judged there."""
        parts = path.split("/")
        folded = [part.casefold().rstrip(". ") for part in parts]
        change = self._changed[path]
        if ".git" in folded[:-1] or (folded[-1] == ".git" and (change.after or "d")[0] == "d"):
            if parts[folded.index(".git")] != ".git" and change.after is not None:
                yield _make_put_back(path)  # another spelling, which some file systems take for it
            return
        if folded[-1] == ".git":
            if change.after is not None and not self._is_safe_gitfile(path, change.after):
                yield _put_back_redirect(path)
            return

        is_steered = any(path == each or path.startswith(f"{each}/") for each in steered)
        if not is_steered and not _is_protected_from_commands(parts):
            return
        above = posixpath.dirname(path)
        if change.after is None and above and above not in self._seen:
            return  # its whole folder is gone: that steers nobody, and can be undone
        yield _make_put_back(path)

    def _check_link(self, path: str) -> Iterator[PutBack]:
        """What is about the owner and was replaced by a link that leads elsewhere, so that what is
        written there would lie where others read. With it comes back what lay in it."""
        after = self._changed[path].after
        if after is None or after[0] != "l" or not is_private(self._real, f"{self._real}/{path}"):
            return
        top, _, inner = path.partition("/")
        if inner and self._link_target(path, after).split("/")[0] == top:
            return
        yield PutBack(
            path,
            None,
            f"{path} became a link, so it was restored: it is about the owner; ask them to move it",
        )
        for other, each in self._changed.items():
            if other.startswith(f"{path}/") and each.after is None:
                yield PutBack(other, None, "")

    def _link_target(self, path: str, state: str) -> str:
        """The path in the workspace to which a link leads, as it stands in it."""
        target = os.fsdecode(bytes.fromhex(state[2:]))
        if target.startswith("/"):
            return posixpath.relpath(target, self._real)
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))

    def _is_safe_gitfile(self, path: str, state: str) -> bool:
        """Whether a `.git` that is a file names a folder that we watch, below a `.git` in this
        workspace."""
        if state[0] != "f":
            return False
        said = self._read_text(parse_digest(state))
        where = said.removeprefix("gitdir:").strip(" \n") if said.startswith("gitdir:") else ""
        return self._leads_inside(posixpath.dirname(path), where, git=True)

    def _leads_inside(self, folder: str, where: str, git: bool) -> bool:
        """Whether `where`, as it stands in a file of `folder`, leads to a place in this workspace
        that we watch."""
        if not where or "\n" in where or "\0" in where:
            return False

        if where.startswith("/"):
            whole = posixpath.relpath(where, self._real)
        else:
            whole = f"{folder}/{where}" if folder else where
        if not is_inside_workspace(whole):
            return False

        parts = posixpath.normpath(whole).split("/")
        is_watched = GENERATED_FOLDERS.isdisjoint(parts)
        return is_watched and (not git or ".git" in parts)

    def _find_git_folders(self) -> list[str]:
        """The folders of git in which something that it obeys may have changed."""
        found = dict[str, None]()
        for path in self._changed:
            parts = path.split("/")
            for at in range(len(parts) - 1, -1, -1):
                folder = "/".join(parts[:at])
                if at and self._is_git_folder(folder):
                    found[folder] = None
        return list(found)

    def _is_git_folder(self, folder: str) -> bool:
        """Whether git would take it for one of its own: by name, by what lies in it, or as that of
        a worktree."""
        if posixpath.basename(folder) == ".git":
            return True
        if f"{folder}/HEAD" not in self._seen:
            return False
        if f"{folder}/commondir" in self._seen:
            return True
        return all(f"{folder}/{name}" in self._seen for name in _GIT_FOLDER_NAMES)

    def _was_git_folder(self, folder: str) -> bool:
        """Whether it was so before: then only what has changed is judged."""
        if posixpath.basename(folder) == ".git":
            return True
        gone = {path for path, each in self._changed.items() if each.before is None}
        return not any(f"{folder}/{name}" in gone for name in (*_GIT_FOLDER_NAMES, "commondir"))

    def _check_git_folder(self, folder: str) -> Iterator[PutBack]:
        """What git obeys in one of its folders."""
        fresh = not self._was_git_folder(folder)
        for path in self._seen if fresh else self._changed:
            after = self._seen.get(path)
            if not path.startswith(f"{folder}/") or after is None:
                continue  # what is gone steers nobody

            inner = path[len(folder) + 1 :]
            if inner in _CONFIG_NAMES:
                unchanged = None if fresh else after.state
                known = self._changed.get(path)
                before = known.before if known is not None else unchanged
                yield from self._check_config(path, folder, before, after.state)
            elif inner.startswith("hooks/"):
                if not inner.endswith(".sample") and after.state[0] != "d":
                    yield _make_put_back(path)
            elif inner == "hooks" and after.state[0] not in "dh":
                yield _make_put_back(path)
            elif inner in ("commondir", "gitdir"):
                yield from self._check_pointer(path, folder, inner, after.state)

    def _check_pointer(self, path: str, folder: str, inner: str, state: str) -> Iterator[PutBack]:
        text = self._read_text(parse_digest(state)) if state[0] == "f" else ""
        lines = text.strip("\n").split("\n")
        if not all(self._leads_inside(folder, line, git=inner == "commondir") for line in lines):
            yield _put_back_redirect(path)

    def _check_config(
        self, path: str, folder: str, before: str | None, after: str
    ) -> Iterator[PutBack]:
        if after[0] != "f":
            yield _make_put_back(path)
            return

        old_digest = parse_digest(before)
        old = self._read_bytes(old_digest) if old_digest else None
        try:
            content, keys = clean_config(old, self._read_bytes(parse_digest(after)), folder)
        except (ToolError, OSError):
            yield _make_put_back(path)
            return
        if not keys:
            return

        shown = [key if key.isprintable() else ascii(key) for key in keys[:MAX_LISTED]]
        names = ", ".join(shown)
        if len(keys) > MAX_LISTED:
            names += f" and {len(keys) - MAX_LISTED} more"
        why = "because git also uses it outside the sandbox; ask the person to set it"
        yield PutBack(path, content, f"in {path}, {names} was restored, {why}")

    def _find_steered_files(self) -> list[str]:
        """Files of the workspace that a person's configuration of git names, so that git obeys
        them."""
        found = list[str]()
        for path, each in self._seen.items():
            folder, name = posixpath.split(path)
            if name not in _CONFIG_NAMES or not self._is_git_folder(folder):
                continue
            known = self._changed.get(path)
            digest = parse_digest(known.before if known is not None else each.state)
            if not digest:
                continue
            with suppress(ToolError, OSError):
                for entry in parse_config(self._read_bytes(digest)):
                    if entry.pattern in STEERING_KEYS and entry.value:
                        found += self._resolve_steered_path(folder, entry.pattern, entry.value)
        return found

    def _resolve_steered_path(self, folder: str, name: str, value: str) -> Iterator[str]:
        base = posixpath.dirname(folder) if name == "core.hookspath" else folder
        if value.startswith("/"):
            whole = posixpath.relpath(value, self._real)
        else:
            whole = posixpath.join(base, value)
        if is_inside_workspace(whole):
            yield posixpath.normpath(whole)

    def _read_text(self, digest: str) -> str:
        with suppress(OSError):
            return self._read_bytes(digest).decode("utf-8", "surrogateescape")
        return ""

    def _read_bytes(self, digest: str) -> bytes:
        with self._shadow.open(digest) as file:
            return file.read(MAX_CONFIG_BYTES + 1)


def _is_protected_from_commands(parts: Sequence[str]) -> bool:
    if parts[-1] in _COMMAND_WRITABLE and not why_protected(parts[:-1]):
        return False
    return bool(why_protected(parts))


def _make_put_back(path: str) -> PutBack:
    said = f"{path} is protected, so it was restored; ask the person to change it"
    return PutBack(path, None, said)


def _put_back_redirect(path: str) -> PutBack:
    said = f"{path} would redirect git, so it was restored; ask the person to change it"
    return PutBack(path, None, said)


def restore_protected(
    shadow: FileSnapshots, root: int, real: str, changed: Sequence[ChangedPath]
) -> tuple[list[ChangedPath], list[str]]:
    """Undo what a command did to protected files. Returns what has changed in the end, and a
    sentence for each."""
    refused = Guard(shadow, root, real, changed).find_refused()
    if not refused:
        return list(changed), []
    known = {each.path: each for each in changed}
    wanted = dict[str, str | None]()
    for each in refused:
        change = known.get(each.path) or ChangedPath(
            each.path, None, shadow.entries[each.path].state
        )
        wanted[each.path] = change.before
        if each.content is not None and change.after is not None:
            wanted[each.path] = shadow.add_bytes(each.content, change.after[1:5])
        known[each.path] = change
    failed = tree.apply_states(root, wanted, shadow.open)
    shadow.scan_paths(root, list(wanted))

    left = list[ChangedPath]()
    for path, change in known.items():
        seen = shadow.entries.get(path)
        now = seen.state if seen is not None else None
        if now != change.before:
            left.append(ChangedPath(path, change.before, now))
    return left, _describe_restored(refused, failed)


def _describe_restored(refused: Sequence[PutBack], failed: Mapping[str, str]) -> list[str]:
    """What is said of each that has something to say; of a folder only where nothing in it is
    told."""
    saying = {each.path: each.said for each in refused if each.said}
    told = [path for path in saying if not any(other.startswith(f"{path}/") for other in saying)]

    said = list[str]()
    for path in told[:MAX_LISTED]:
        if path in failed:
            said.append(f"{path} is protected, but could not be restored: {failed[path]}")
        else:
            said.append(saying[path])
    if len(told) > MAX_LISTED:
        said.append(f"{len(told) - MAX_LISTED} more protected files were restored")
    return said
