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

HARMLESS_KEYS = (
    *(
        f"core.{key}"
        for key in ("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase")
    ),
    *(
        f"core.{key}"
        for key in (
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
            "abbrev",
        )
    ),
    *(
        f"core.{key}"
        for key in ("compression", "bigfilethreshold", "trustctime", "checkstat", "whitespace")
    ),
    *(
        f"core.{key}"
        for key in (
            "protecthfs",
            "protectntfs",
            "sparsecheckout",
            "sparsecheckoutcone",
            "untrackedcache",
        )
    ),
    *("core.preloadindex", "core.commentchar", "core.worktree"),
    *(
        f"extensions.{key}"
        for key in ("worktreeconfig", "objectformat", "partialclone", "refstorage", "noop")
    ),
    *(
        f"remote.*.{key}"
        for key in ("url", "fetch", "mirror", "prune", "prunetags", "tagopt", "promisor")
    ),
    *(
        f"remote.*.{key}"
        for key in ("partialclonefilter", "skipdefaultupdate", "skipfetchall", "followremotehead")
    ),
    *(
        f"branch.*.{key}"
        for key in ("remote", "merge", "rebase", "description", "vscode-merge-base")
    ),
    *(
        f"submodule.*.{key}"
        for key in ("url", "active", "branch", "ignore", "fetchrecursesubmodules", "update")
    ),
    *(
        "submodule.active",
        "user.name",
        "user.email",
        "init.defaultbranch",
        "pull.rebase",
        "pull.ff",
        "push.default",
    ),
    *(
        "push.autosetupremote",
        "push.followtags",
        "fetch.prune",
        "fetch.prunetags",
        "merge.ff",
        "merge.conflictstyle",
    ),
    *(
        "rebase.autosquash",
        "rebase.autostash",
        "rerere.enabled",
        "rerere.autoupdate",
        "log.date",
        "gc.auto",
    ),
    *(
        "gc.autodetach",
        "gc.pruneexpire",
        "gc.reflogexpire",
        "gc.writecommitgraph",
        "maintenance.auto",
        "index.version",
    ),
    *(
        "advice.*",
        "color.*",
        "color.*.*",
        "column.*",
        "status.*",
        "diff.renames",
        "diff.algorithm",
        "diff.colormoved",
    ),
    *(
        "diff.mnemonicprefix",
        "diff.context",
        "pack.window",
        "pack.threads",
        "pack.depth",
        "feature.manyfiles",
    ),
    "lfs.repositoryformatversion",
)
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
            if (header := _HEADER.match(text, at)) is None:
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
    last = ("", None)
    for each in entries:
        if (place := (each.section, each.subsection)) != last or not lines:
            name = each.subsection
            quoted = (
                "" if name is None else ' "' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
            )
            lines.append(f"[{each.section}{quoted}]")
            last = place  # type: ignore[assignment]
        lines.append(
            f"\t{each.name}" + ("" if each.value is None else f" = {_quote_value(each.value)}")
        )
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _quote_value(value: str) -> str:
    plain = (
        value.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\n", "\\n")
        .replace("\t", "\\t")
        .replace("\b", "\\b")
    )
    return f'"{plain}"' if value != value.strip(_BLANK) or set(value) & set("#;\r") else plain


def _matches_any(key: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def is_allowed_setting(entry: GitSetting, before: Sequence[GitSetting], inside: str) -> bool:
    """Whether a command may leave this setting, where `before` stood there. `inside` is the git
    folder, relative to the workspace: what leads to a folder must stay in the workspace."""
    if entry in before:
        return True
    key = entry.key
    value = entry.value or ""
    folded = f"{entry.section}.{'*.' if entry.subsection is not None else ''}{entry.name}"
    if not _matches_any(folded, HARMLESS_KEYS):
        return False
    if _matches_any(folded, ADD_ONLY_KEYS) and any(each.key == key for each in before):
        return False
    match folded:
        case "remote.*.mirror":
            return not any(
                (each.section, each.subsection) == ("remote", entry.subsection) for each in before
            )
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
    kept = [each for each in new if each not in bad and each.key not in keys]
    return render_config([*kept, *(each for each in old if each.key in keys)]), keys


def _may_remove(entry: GitSetting, new: Sequence[GitSetting]) -> bool:
    """Whether a command may take this setting away. What is aimed may go whole, as by `git remote
    remove`."""
    folded = f"{entry.section}.{'*.' if entry.subsection is not None else ''}{entry.name}"
    return _matches_any(folded, HARMLESS_KEYS) and not (
        _matches_any(folded, ADD_ONLY_KEYS) and any(each.key == entry.key for each in new)
    )
