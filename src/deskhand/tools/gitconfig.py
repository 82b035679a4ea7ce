"""Git's configuration files: read as git reads them, and what in them a command may set.

The grammar is that of `git help config` and of git's config.c. What a command sets there is obeyed
outside the sandbox, when a person uses git in the same folder: so what names a program, or leads
elsewhere, is not for commands to set.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from ..types.errors import ToolError

MAX_CONFIG_BYTES = 1 << 20
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}
_BLANK = " \t\n\r"
_HEADER = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\]')
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")

_HARMLESS_TEXT = """
core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase
core.precomposeunicode core.symlinks core.autocrlf core.eol core.safecrlf core.quotepath
core.abbrev core.compression core.bigfilethreshold core.trustctime core.checkstat core.whitespace
core.protecthfs core.protectntfs core.sparsecheckout core.sparsecheckoutcone core.untrackedcache
core.preloadindex core.commentchar core.worktree
extensions.worktreeconfig extensions.objectformat extensions.partialclone extensions.refstorage
extensions.noop
remote.*.url remote.*.fetch remote.*.mirror remote.*.prune remote.*.prunetags remote.*.tagopt
remote.*.promisor remote.*.partialclonefilter remote.*.skipdefaultupdate remote.*.skipfetchall
remote.*.followremotehead
branch.*.remote branch.*.merge branch.*.rebase branch.*.description branch.*.vscode-merge-base
submodule.*.url submodule.*.active submodule.*.branch submodule.*.ignore
submodule.*.fetchrecursesubmodules submodule.*.update submodule.active
user.name user.email init.defaultbranch pull.rebase pull.ff push.default push.autosetupremote
push.followtags fetch.prune fetch.prunetags merge.ff merge.conflictstyle rebase.autosquash
rebase.autostash rerere.enabled rerere.autoupdate log.date gc.auto gc.autodetach gc.pruneexpire
gc.reflogexpire gc.writecommitgraph maintenance.auto index.version advice.* color.* color.*.*
column.* status.* diff.renames diff.algorithm diff.colormoved diff.mnemonicprefix diff.context
pack.window pack.threads pack.depth feature.manyfiles lfs.repositoryformatversion
"""
HARMLESS_KEYS = tuple(_HARMLESS_TEXT.split())
"""What a command may set. Others are not known to be harmless."""
ADD_ONLY_KEYS = ("remote.*.url", "branch.*.remote", "branch.*.merge", "submodule.*.url", "user.*")
"""Of these a command may set new ones. To aim what a person has set elsewhere is the person's to
do."""
STEERING_KEYS = ("core.hookspath", "include.path", "includeif.*.path")
"""These name files that git obeys, too."""


class GitSetting(msgspec.Struct, frozen=True, gc=False):
    """One setting: `key` is `section.name`, or `section.subsection.name`, as git compares them."""

    section: str
    subsection: str | None
    name: str
    value: str | None

    @property
    def key(self) -> str:
        middle = "" if self.subsection is None else f"{self.subsection}."
        return f"{self.section}.{middle}{self.name}"

    @property
    def pattern(self) -> str:
        """The key with `*` for the subsection, as the lists of keys here have it."""
        middle = "" if self.subsection is None else "*."
        return f"{self.section}.{middle}{self.name}"


def parse_config(data: bytes) -> list[GitSetting]:
    """The settings in their order. Raises ToolError for what git does not read either."""
    if len(data) > MAX_CONFIG_BYTES:
        raise ToolError("it is too large")
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.endswith("\n"):
        text += "\n"
    if "\0" in text:
        raise ToolError("git could not read it")
    entries = list[GitSetting]()
    at = 0
    section = ""
    subsection = None
    while at < len(text):
        char = text[at]
        if char in _BLANK:
            at += 1
        elif char in "#;":
            at = text.index("\n", at)
        elif char == "[":
            header = _HEADER.match(text, at)
            if header is None:
                raise ToolError(f"git could not read its section at {at}")
            section, subsection = _split_header(header)
            at = header.end()
        elif (name := _NAME.match(text, at)) is not None and section:
            value, at = _parse_value(text, name.end())
            entries.append(GitSetting(section, subsection, name[0].lower(), value))
        else:
            raise ToolError(f"git could not read it at {at}")
    return entries


def _split_header(header: re.Match[str]) -> tuple[str, str | None]:
    """The section and the subsection: what is before the first dot, and all behind it, however it
    was written. So git takes `[a.b "c"]` for `[a "b.c"]`."""
    whole = header[1].lower()
    if header[2] is not None:
        quoted = re.sub(r"\\(.)", r"\1", header[2])
        whole = f"{whole}.{quoted}"
    section, dot, subsection = whole.partition(".")
    return section, subsection if dot else None


def _parse_value(text: str, at: int) -> tuple[str | None, int]:
    """The value behind a name, and where it ends."""
    while text[at] in " \t":
        at += 1
    if text[at] == "\n":
        return None, at + 1
    if text[at] != "=":
        raise ToolError(f"git could not read the value at {at}")
    at += 1
    value = ""
    blanks = ""
    quoted = False
    while (char := text[at]) != "\n":
        at += 1
        if char in _BLANK and not quoted:
            blanks += char if value else ""
        elif char in "#;" and not quoted:
            at = text.index("\n", at)
        elif char == '"':
            value = value + blanks
            blanks = ""
            quoted = not quoted
        else:
            value = value + blanks
            blanks = ""
            if char == "\\":
                char = _decode_escape(text, at)
                at = at + 1
            value += char
    if quoted:
        raise ToolError(f"git could not read the quotes at {at}")
    return value, at + 1


def _decode_escape(text: str, at: int) -> str:
    """What a backslash before this stands for: a line that goes on is nothing."""
    if text[at] == "\n" and at + 1 < len(text):
        return ""
    if text[at] not in _ESCAPES:
        raise ToolError(f"git could not read the value at {at}")
    return _ESCAPES[text[at]]


def render_config(entries: Sequence[GitSetting]) -> bytes:
    """The settings as a file that git reads as just these."""
    lines = list[str]()
    last = ""
    for each in entries:
        header = _render_header(each)
        if header != last:
            lines.append(header)
            last = header
        value = "" if each.value is None else f" = {_quote_value(each.value)}"
        lines.append(f"\t{each.name}{value}")
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _render_header(entry: GitSetting) -> str:
    if entry.subsection is None:
        return f"[{entry.section}]"
    quoted = entry.subsection.replace("\\", "\\\\").replace('"', '\\"')
    return f'[{entry.section} "{quoted}"]'


def _quote_value(value: str) -> str:
    plain = (
        value.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\n", "\\n")
        .replace("\t", "\\t")
        .replace("\b", "\\b")
    )
    has_outer_blanks = value != value.strip(_BLANK)
    has_special_chars = not set(value).isdisjoint("#;\r")
    return f'"{plain}"' if has_outer_blanks or has_special_chars else plain


def _matches_any(key: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def is_allowed_setting(entry: GitSetting, before: Sequence[GitSetting], inside: str) -> bool:
    """Whether a command may leave this setting, where `before` stood there. `inside` is the git
    folder, relative to the workspace: what leads to a folder must stay in the workspace."""
    if entry in before:
        return True
    if not _matches_any(entry.pattern, HARMLESS_KEYS):
        return False
    if _matches_any(entry.pattern, ADD_ONLY_KEYS) and _has_key(before, entry.key):
        return False

    value = entry.value or ""
    match entry.pattern:
        case "remote.*.mirror":
            remotes = [each.subsection for each in before if each.section == "remote"]
            return entry.subsection not in remotes
        case "core.worktree":
            return is_inside_workspace(f"{inside}/{value}" if not value.startswith("/") else value)
        case "submodule.*.update":
            return value in ("checkout", "rebase", "merge", "none")
        case "remote.*.url" | "submodule.*.url":
            return not value.startswith("-") and not re.match(r"\w+::", value)
        case "branch.*.remote":
            return not re.search(r"[:/]", value)
        case _:
            return True


def is_inside_workspace(path: str) -> bool:
    """Whether a path that is relative to the workspace stays in it."""
    whole = posixpath.normpath(path)
    return not whole.startswith(("/", "../")) and whole != ".."


def clean_config(before: bytes | None, after: bytes, inside: str) -> tuple[bytes, list[str]]:
    """What may stay of a file that a command has written, and the keys of what was taken out or put
    back. Raises ToolError where git could not read it."""
    try:
        old = parse_config(before or b"")
    except ToolError:
        old = []
    new = parse_config(after)
    bad = [each for each in new if not is_allowed_setting(each, old, inside)]
    lost = [each for each in old if each not in new and not _may_remove(each, new)]
    if not bad and not lost:
        return after, []

    keys = list(dict.fromkeys(each.key for each in (*bad, *lost)))
    kept = [each for each in new if each.key not in keys]
    restored = [each for each in old if each.key in keys]
    return render_config([*kept, *restored]), keys


def _may_remove(entry: GitSetting, new: Sequence[GitSetting]) -> bool:
    """Whether a command may take this setting away. What is aimed may go whole, as by `git remote
    remove`."""
    if not _matches_any(entry.pattern, HARMLESS_KEYS):
        return False
    is_aimed_elsewhere = _matches_any(entry.pattern, ADD_ONLY_KEYS) and _has_key(new, entry.key)
    return not is_aimed_elsewhere


def _has_key(entries: Sequence[GitSetting], key: str) -> bool:
    return any(each.key == key for each in entries)
