"""The seven tools that a small model knows, over a folder and nothing else: same names, arguments and words as ours."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec

from ..tools.base import Ask, Context, Done, Tools
from ..tools.define import tool
from ..types.errors import ToolError
from ..types.labels import LOCAL
from ..types.messages import Text

SHELL_S = 30.0


class Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`old` must stand in the file exactly once."""

    old: str
    new: str


def _path(path: str, context: Context) -> Path:
    found = (context.workspace / path).resolve()
    if not found.is_relative_to(context.workspace.resolve()):
        raise ToolError(f"{path!r} is outside of the workspace")
    return found


def _text(path: str, context: Context) -> str:
    try:
        return _path(path, context).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"there is no file {path!r}") from error


@tool
async def read_file(path: str, context: Context, start_line: int = 0, end_line: int = 0) -> str:
    """Read a text file; each line comes with its number."""
    lines = _text(path, context).splitlines()
    first, last = max(start_line, 1), end_line or len(lines)
    shown = (f"{n} | {line}" for n, line in enumerate(lines, 1) if first <= n <= last)
    return "\n".join(shown) or "[the file is empty]"


@tool(effect="local_write", replay="never")
async def write_file(path: str, content: str, context: Context, mode: str = "overwrite") -> str:
    """Write a file."""
    target = _path(path, context)
    if target.is_dir():
        raise ToolError(f"{path!r} is a folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    before = target.read_text() if mode == "append" and target.exists() else ""
    text = before + ("\n" if before and not before.endswith("\n") else "") + content
    target.write_text(text)
    return f"ok, {'added to' if before else 'wrote'} {path}: {len(text.splitlines())} lines, {len(text)} bytes"


@tool(effect="local_write", replay="never")
async def edit_file(path: str, edits: list[Replacement], context: Context) -> str:
    """Replace exact passages of a file."""
    text = _text(path, context)
    for number, edit in enumerate(edits, 1):
        count = text.count(edit.old) if edit.old else 0
        if count != 1:
            what = "is empty" if not edit.old else "stands nowhere" if count == 0 else f"stands {count} times"
            raise ToolError(f"edit {number} of {path!r}: the old text {what}; copy exactly one passage from the file")
        text = text.replace(edit.old, edit.new)
    _path(path, context).write_text(text)
    return f"ok, {path} changed"


@tool
async def list_files(context: Context, path: str = ".", depth: int = 2) -> str:
    """List a folder: folders first, then files with their sizes."""
    folder = _path(path, context)
    if not folder.is_dir():
        raise ToolError(f"there is no folder {path!r}")
    return "\n".join(_listed(folder, depth, "")) or "[the folder is empty]"


def _listed(folder: Path, depth: int, indent: str) -> Iterator[str]:
    for entry in sorted(folder.iterdir(), key=lambda entry: (not entry.is_dir(), entry.name)):
        if entry.is_dir():
            yield f"{indent}{entry.name}/"
            if depth > 1:
                yield from _listed(entry, depth - 1, indent + "  ")
        else:
            yield f"{indent}{entry.name}  {entry.stat().st_size} bytes"


@tool
async def search_files(text: str, context: Context, path: str = ".") -> str:
    """Find lines that contain a text, without regard to case, and files whose name does."""
    if not text.strip():
        raise ToolError("say what to look for")
    hits = []
    for file in sorted(file for file in _path(path, context).rglob("*") if file.is_file()):
        name = file.relative_to(context.workspace.resolve())
        hits += [str(name)] if text.lower() in file.name.lower() else []
        lines = file.read_text(errors="replace").splitlines()
        hits += [f"{name}:{n}: {line[:300]}" for n, line in enumerate(lines, 1) if text.lower() in line.lower()]
    return "\n".join(hits[:200]) or f"nothing contains {text!r}"


@tool(effect="local_write", replay="never", timeout_s=SHELL_S + 5)
async def shell(command: str, context: Context) -> Done:
    """Run a bash command in the workspace, which is all that it can change."""
    folder = str(context.workspace.resolve())
    if not (bubblewrap := shutil.which("bwrap")):
        raise ToolError("bubblewrap is not installed, so nothing is run")
    places = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", folder, folder, "--chdir", folder]
    words = [bubblewrap, *places, "--unshare-all", "--die-with-parent", "/bin/bash", "-c", command]
    try:
        with anyio.fail_after(SHELL_S):
            ran = await anyio.run_process(words, check=False, stderr=subprocess.STDOUT)
    except TimeoutError as error:
        raise ToolError(f"it took longer than {SHELL_S:.0f} s and was killed") from error
    text = ran.stdout.decode(errors="replace")
    if ran.returncode:
        return Done((Text(f"{text}\n[exit code: {ran.returncode}]", LOCAL),), "error")
    return Done((Text(text or "[no output]", LOCAL),))


@tool
async def ask_user(question: str, choices: list[str] = []) -> Ask:  # noqa: B006 -- becomes a schema
    """Ask the person."""
    return Ask(question, tuple(choices))


FOLDER_TOOLS: Tools = {
    each.spec.name: each for each in (read_file, write_file, edit_file, list_files, search_files, shell, ask_user)
}
