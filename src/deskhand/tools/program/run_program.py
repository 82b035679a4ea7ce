"""`survey_files`, `rehearse_program` and `run_program`: what is here, and one short program that
does what was asked.

A program is rehearsed on a copy of the workspace, in the sandbox and without a network. What it
would change is told, and binds: the run that counts must come to exactly that, or nothing is done.
Then all of it is one change of the journal, which one undo takes back.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio.to_thread
import msgspec

from ...sandbox.base import Exit, Mount
from ...types.commit import Change
from ...types.errors import SandboxError, TimeUnclear, ToolError
from ...types.labels import LOCAL, Label, join_labels
from ...types.messages import Text, clean_text
from ...types.programs import (
    REHEARSE_PROGRAM,
    RUN_PROGRAM,
    SURVEY_FILES,
    Purpose,
    Rehearsed,
    RunArguments,
)
from ..base import Context, Done, Outcome, Spec, Tool
from ..convert import make_python_command
from ..define import decode_arguments, make_schema, tool
from ..journal import files_made_in
from ..label_marks import LabelMarks, listing_label, load_marks, needs_mark
from ..notes import By, RunningEffect
from ..path_states import ChangedPath, parse_digest
from ..undo import parent_folders
from ..watch import commit_owed
from ..watched_folder import WatchedFolder, find_watched_folder, make_by, mark_effect
from . import acts
from .copying import CopiedChanges, Copy, arm_marked, copy_source, find_changes, find_read_paths
from .source import Source
from .survey import survey_source

MODULE = "deskhand.tools.program.inside.main"
TIMEOUT_S = 20.0
MEMORY_BYTES = 1 << 30
FILE_BYTES = 64 << 20
MAX_PROCESSES = 64
MAX_ANSWER_BYTES = 1 << 20
MAX_COMPLAINT_BYTES = 2_000
MAX_SAID_CHARS = 6_000
MAX_CHANGES = 200


@tool(effect="none", name=SURVEY_FILES)
async def survey_files(about: str, context: Context, purpose: Purpose = "change") -> Done:
    """List the files of the workspace, and how each is read: the columns of a CSV, the shape of
    JSON, the first lines of a text.

    about: the request; the files that it names are shown first
    purpose: read gives the whole text of the files that it names
    """
    source = Source(context.reach.files.roots[0][1])
    try:
        said, shown = await anyio.to_thread.run_sync(survey_source, source, about, purpose)
    except OSError as error:
        raise ToolError(f"the workspace cannot be read: {error.strerror}") from error
    return Done((Text(clean_text(said), await listing_label(shown, context)),))


class _Program:
    """What both tools do: run it on a copy. `zone` is that of the person."""

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)

    async def _try_program(self, given: RunArguments, context: Context) -> _Tried:
        if not given.program.strip():
            raise ToolError("the program is empty")
        where, _ = find_watched_folder(context.reach)
        await commit_owed(context.reach, where, context.clock.now())
        with tempfile.TemporaryDirectory(prefix="deskhand-program-") as place:
            copy = await anyio.to_thread.run_sync(copy_source, Source(where.root), Path(place))
            marks = await load_marks(context)  # when all of it was read
            labels = await anyio.to_thread.run_sync(_find_labels, copy, marks)
            copy = await anyio.to_thread.run_sync(arm_marked, copy, labels)
            ended = await self._run_on_copy(given, copy, context)
            read = await anyio.to_thread.run_sync(find_read_paths, copy)  # before we look ourselves
            made = await _list_own_files(context)
            try:
                found = await anyio.to_thread.run_sync(
                    find_changes, copy, ended.read, ended.blind, made
                )
                rehearsed = self._make_rehearsed(ended, found, context)
            except ToolError as error:
                found = CopiedChanges((), {}, {})
                rehearsed = Rehearsed(stopped=str(error))
        told = list[Label]()
        for path, each in labels.items():
            folder = path.rpartition("/")[0]
            if path in read or folder in read:  # of a folder the names were read
                told.append(each)
        label = join_labels((LOCAL, *told))
        return _Tried(where, marks, label, found, rehearsed)

    async def _run_on_copy(self, given: RunArguments, copy: Copy, context: Context) -> _Ended:
        """What the program said of itself. It may be under somebody else's control, so its shape is
        checked."""
        today = datetime.fromtimestamp(context.clock.now(), self._zone).date().isoformat()
        asked = {"program": given.program, "today": today, "answers": given.answers}
        command = make_python_command(MODULE, msgspec.json.encode(asked) + b"\n")
        # Sets come in the same order each time, so that a program comes out as it was rehearsed:
        # not with -I.
        python, _, *rest = command.argv
        command = msgspec.structs.replace(
            command,
            argv=(python, "-P", "-s", *rest),
            env=(("PYTHONHASHSEED", "0"),),
            cwd=str(copy.root),
            mounts=(*command.mounts, Mount(str(copy.root), write=True)),
            timeout_s=TIMEOUT_S,
            memory_bytes=MEMORY_BYTES,
            file_bytes=FILE_BYTES,
            processes=MAX_PROCESSES,
        )
        said = bytearray()
        complained = bytearray()

        def on_output(piece: bytes, is_error: bool) -> None:
            if is_error:
                complained.extend(piece[: MAX_COMPLAINT_BYTES - len(complained)])
            else:
                said.extend(piece[: MAX_ANSWER_BYTES - len(said)])

        try:
            sandbox = await context.reach.host.open_sandbox()
            ended = await sandbox.run(command, on_output)
        except SandboxError as error:
            raise ToolError(f"programs run only in the sandbox: {error}") from error
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(bytes(said), type=_Ended)
        return _Ended(failed=_describe_failure(ended, bytes(complained)))

    def _make_rehearsed(self, ended: _Ended, found: CopiedChanges, context: Context) -> Rehearsed:
        now = datetime.fromtimestamp(context.clock.now(), self._zone)
        stopped = clean_text(ended.stopped)[:MAX_SAID_CHARS]
        said = clean_text(ended.said)[:MAX_SAID_CHARS]
        if len(found.changes) > MAX_CHANGES:
            stopped = f"it would change {len(found.changes)} files, more than {MAX_CHANGES}"
        if stopped or ended.failed:
            return Rehearsed(said, stopped, clean_text(ended.failed)[:MAX_SAID_CHARS])
        try:
            calls = tuple(acts.call_for_act(act, now) for act in ended.acts)
            needs = acts.call_for_need(ended.needs) if ended.needs else None
        except TimeUnclear as error:
            return Rehearsed(said, stopped=str(error))
        except (KeyError, ValueError, IndexError):
            return Rehearsed(said, failed="it asks for something that there is not")
        return Rehearsed(
            said, "", "", found.changes, calls, needs, tuple(ended.read)[:MAX_CHANGES], ended.ran
        )


class RehearseProgram(_Program):
    """One for an agent."""

    def __init__(self, zone: str) -> None:
        super().__init__(zone)
        described = make_schema(RunArguments)
        del described["properties"]["changes"]
        described["properties"]["program"]["description"] = (
            "Python; it has functions for files (read, lines, rows, write, append, replace, "
            "save_rows, move, copy, delete, run, say ...) and for reminders and memory (remind, "
            "every, remember, recall, undo ...)"
        )
        described["properties"]["answers"]["description"] = (
            "the results of the calls that it needed, in turn"
        )
        description = (
            "Try a short Python program on a copy of the workspace. You are told as JSON what it "
            "says and what it would change; nothing is changed."
        )
        self.spec = Spec(REHEARSE_PROGRAM, description, described, timeout_s=3 * TIMEOUT_S)

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        tried = await self._try_program(
            decode_arguments(arguments, RunArguments, REHEARSE_PROGRAM), context
        )
        return Done((Text(msgspec.json.encode(tried.rehearsed).decode(), tried.label),))


class RunProgram(_Program):
    """One for an agent."""

    def __init__(self, zone: str) -> None:
        super().__init__(zone)
        described = make_schema(RunArguments)
        described["properties"]["changes"]["description"] = (
            "as its rehearsal has told them: nothing else is done"
        )
        description = (
            "Do what a rehearsed program has come to: all of its changes at once, as one that can "
            "be undone. It is run again, and where it comes out differently nothing is changed."
        )
        self.spec = Spec(
            RUN_PROGRAM, description, described, "local_write", "never", timeout_s=3 * TIMEOUT_S
        )

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, RunArguments, RUN_PROGRAM)
        tried = await self._try_program(given, context)
        rehearsed = tried.rehearsed
        why = rehearsed.stopped or rehearsed.failed
        if why:
            raise ToolError(f"{why.rstrip('.')}. Nothing was changed.")
        if rehearsed.needs is not None:
            raise ToolError(
                "it waits for an answer, so nothing was changed: rehearse it with the answer"
            )
        if rehearsed.changes != given.changes:
            raise ToolError(
                "it came out differently than it was rehearsed, so nothing was changed: "
                "rehearse it again"
            )

        rows = await _apply_changes(tried, context) if given.changes else ()
        label = join_labels((LOCAL, tried.label))
        return Done((Text(rehearsed.said or "[no output]", label),), changes=rows)


class _Tried(msgspec.Struct, frozen=True):
    """A program that was run on a copy. `label` is that of what it has read."""

    where: WatchedFolder
    marks: LabelMarks
    label: Label
    found: CopiedChanges
    rehearsed: Rehearsed


class _Ended(msgspec.Struct):
    """What the program in the sandbox answers."""

    said: str = ""
    stopped: str = ""
    failed: str = ""
    needs: dict[str, str] | None = None
    read: list[str] = []
    blind: list[str] = []
    ran: bool = False
    acts: list[dict[str, str]] = []


def _describe_failure(ended: Exit, complained: bytes) -> str:
    if ended.timeout:
        return f"it ran longer than {TIMEOUT_S:.0f} s"
    if ended.limit:
        return f"it went over its limit of {ended.limit}"
    last_line = complained.decode(errors="replace").strip().rpartition("\n")[2]
    return last_line[:200] or "it ended without a word"


def _find_labels(copy: Copy, marks: LabelMarks) -> dict[str, Label]:
    """Whose word that is in the copy, names included, which is not this house's own for all. It
    blocks."""
    found = ((path, marks.file_label(place)) for path, place in copy.places.items())
    return {path: label for path, label in found if needs_mark(label)}


async def _list_own_files(context: Context) -> list[str]:
    """The files that the agent has made in this conversation."""
    folder = context.reach.files.roots[0][0]
    return await files_made_in(context.reach.reader, context.session, folder)


async def _apply_changes(tried: _Tried, context: Context) -> tuple[Change, ...]:
    """Do what the program came to. Returns the rows of it, and of whose word the files are now."""
    doer = make_by(context, RUN_PROGRAM, ", ".join(change.path for change in tried.found.changes))
    label = join_labels((context.label, tried.label))
    one, rows = await anyio.to_thread.run_sync(
        _write_changes, tried.where, doer, label, tried.found
    )
    marks = await load_marks(context)
    marked = list[Change]()
    for path in sorted(one.touched):
        marked += marks.mark_entry(f"{tried.where.real}/{path}", label, context)
    marked += mark_effect(context, tried.label)
    if marked:
        with anyio.CancelScope(shield=True):
            await tried.where.shadow.commit((*rows, *marked))
    tried.where.release(one)
    return rows


def _write_changes(
    where: WatchedFolder, doer: By, label: Label, found: CopiedChanges
) -> tuple[RunningEffect, tuple[Change, ...]]:
    """Bring the change about as one, on the word of this label. Returns it, and its rows. Raises
    ToolError where something has changed meanwhile."""
    shadow = where.shadow
    with shadow.lock:
        # It looks at everything: what was there before is nobody's, even if we are killed.
        one = where.begin(doer, label)
        try:
            wanted = _target_states(where, found)
            before = {path: _last_state(where, path) for path in wanted}
            one.add([ChangedPath(path, before[path], state) for path, state in wanted.items()])
            digests = map(parse_digest, before.values())
            shadow.move_to_blobs([digest for digest in digests if digest])
            failed = where.apply_planned(one)
            one.touched.update(wanted)
        except BaseException:
            where.release(one, doer.at)
            raise
        where.mark_ended(one, doer.at)
        if failed:
            raise ToolError("; ".join(f"{path}: {why}" for path, why in failed.items()))
        return one, where.effect_rows(one)


def _target_states(where: WatchedFolder, found: CopiedChanges) -> dict[str, str | None]:
    """What each path is to be. Raises ToolError where it is not as the program has found it."""
    for change in found.changes:
        for path in filter(None, (change.path, change.to)):
            if parse_digest(_last_state(where, path)) != found.before.get(path, ""):
                raise ToolError(
                    f"{path} was changed by somebody else meanwhile, so nothing was changed: "
                    "try again"
                )

    wanted = dict[str, str | None]()
    for change in found.changes:
        if change.kind == "folder":
            wanted[change.path] = "d0755"
            continue
        target = change.to or change.path
        if change.kind in ("deleted", "moved"):
            wanted[change.path] = None
        if change.kind != "deleted":
            mode = (_last_state(where, change.path) or "f0644 ")[1:5]
            wanted[target] = where.shadow.add_bytes(found.content[target], mode)
    made = [path for path, state in wanted.items() if state is not None]
    for path in made:
        for folder in parent_folders(path):
            if _last_state(where, folder) is None:
                wanted.setdefault(folder, "d0755")
    return wanted


def _last_state(where: WatchedFolder, path: str) -> str | None:
    """What a path was when it was looked at last."""
    seen = where.shadow.entries.get(path)
    return seen.state if seen is not None else None


def make_program_tools(zone: str) -> Sequence[Tool]:
    """All of them, for people in this zone."""
    return (survey_files, RehearseProgram(zone), RunProgram(zone))
