"""Folders of the owner that an agent may write: who may change them, what is noted for review, what
stays kept."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.store.blobs import Blobs
from deskhand.tools.base import Tool
from deskhand.tools.files import edit_file, write_file
from deskhand.tools.read_tracking import CLOCK_TICK_NS
from deskhand.tools.shell import shell
from deskhand.tools.watch import FileWatch
from deskhand.types.commit import Change
from deskhand.types.errors import ToolError
from deskhand.types.labels import OWNER, Label
from deskhand.workspace.owner_folder_review import ReviewReader, Unreviewed, discard_changes
from deskhand.workspace.undo_journal import UndoJournal

from .conftest import ANN, Hands

OUTSIDE = Label("untrusted", source="https://evil.test/")


@pytest.fixture
async def repo(hands: Hands, tmp_path: Path) -> Path:
    folder = tmp_path / "src/app"
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text("all:\n\techo built\n")
    await hands.allow(folder, write=True)
    return folder


def written(hands: Hands) -> ReviewReader:
    return ReviewReader(hands.store, Blobs(hands.folder.parent / "blobs"))


async def listed(hands: Hands, where: str = "") -> dict[str, str]:
    return {
        each.path.rpartition("/")[2]: each.change_kind
        for each in await written(hands).list_unreviewed(where)
    }


async def ticked() -> None:
    """What was changed until now is older than what a command begins with: the times of files are
    that coarse."""
    until = time.time_ns() + 2 * CLOCK_TICK_NS
    while time.time_ns() < until:
        await anyio.sleep(0.005)


async def test_a_command_is_listed_with_its_diff_until_it_is_accepted(
    hands: Hands, repo: Path
) -> None:
    assert await listed(hands) == {}
    await hands(
        shell, command=f"cd {repo}; echo '\techo evil' >> Makefile; echo x > new; chmod 755 new"
    )
    assert await listed(hands) == {"Makefile": "changed", "new": "made"}
    assert (
        await listed(hands, f"{repo}/new") == {"new": "made"}
        and await listed(hands, f"{repo}/ne") == {}
    )
    found = await written(hands).list_unreviewed(str(repo))
    diff = await written(hands).diff(found)
    assert "+\techo evil" in diff.files[0].diff and diff.files[1].why == "It may be executed."
    assert not any(each.outside for each in found)
    assert await written(hands).accept(found) == 2 and await listed(hands) == {}
    await hands(shell, command=f"echo more >> {repo}/new")
    (one,) = await written(hands).list_unreviewed()
    assert (await written(hands).diff([one])).files[0].diff.endswith(" x\n+more")


async def test_what_was_changed_since_it_was_shown_is_not_accepted(
    hands: Hands, repo: Path
) -> None:
    await hands(shell, command=f"echo a > {repo}/a; echo b > {repo}/b")
    shown = await written(hands).list_unreviewed()
    await hands(shell, command=f"echo evil >> {repo}/a")
    assert await written(hands).accept(shown) == 1
    assert await listed(hands) == {"a": "made"}


async def test_what_is_as_it_was_is_not_listed(hands: Hands, repo: Path) -> None:
    await hands(
        shell,
        command=(
            f"cp -p {repo}/Makefile /tmp/m; echo x > {repo}/Makefile; cat /tmp/m > {repo}/Makefile"
        ),
    )
    await hands(shell, command=f"echo x > {repo}/a")
    await hands(shell, command=f"rm {repo}/a")
    assert await listed(hands) == {} and await hands.store.query("written_list", (b"",)) == []


async def test_tools_for_files_are_listed_too(hands: Hands, repo: Path) -> None:
    await hands(write_file, path=f"{repo}/conftest.py", content="import os\n")
    await hands(edit_file, path=f"{repo}/Makefile", edits=[{"old": "built", "new": "evil"}])
    assert await listed(hands) == {"conftest.py": "made", "Makefile": "changed"}


async def test_the_workspace_stays_free(hands: Hands, repo: Path) -> None:
    hands.label = OUTSIDE
    await hands(
        shell,
        command="echo x > Makefile; mkdir -p .github/workflows; echo x > .github/workflows/a.yml",
    )
    await hands(write_file, path="conftest.py", content="x\n")
    assert await listed(hands) == {} and (hands.folder / "Makefile").exists()


@pytest.mark.parametrize("tool", [shell, write_file, edit_file])
async def test_words_from_outside_change_nothing_there(
    hands: Hands, repo: Path, tool: Tool
) -> None:
    before = (repo / "Makefile").read_bytes()
    evil = "cat Makefile; echo evil >> Makefile; mv Makefile x; chmod 777 .; echo y > y"
    arguments: dict[str, dict[str, Any]] = {
        "shell": {"command": f"cd {repo} && {evil}"},
        "write_file": {"path": f"{repo}/Makefile", "content": "evil"},
        "edit_file": {"path": f"{repo}/Makefile", "edits": [{"old": "built", "new": "evil"}]},
    }
    hands.label = OUTSIDE
    if tool is shell:
        said = await hands(tool, **arguments[tool.spec.name])
        assert "echo built" in said and "Read-only file system" in said
    else:
        with pytest.raises(ToolError) as raised:
            await hands(tool, **arguments[tool.spec.name])
        said = str(raised.value)
    assert f"read-only: {repo}" in said and "https://evil.test/" in said
    assert f"deskhand allow path {repo} --write --outside" in said
    assert (repo / "Makefile").read_bytes() == before and [*repo.iterdir()] == [repo / "Makefile"]
    assert await listed(hands) == {}


async def test_the_owner_can_allow_it_for_good(hands: Hands, repo: Path) -> None:
    await hands.store.change((Change("path_grant_outside", ("default", str(repo))),))
    hands.label = OUTSIDE
    said = await hands(shell, command=f"echo evil >> {repo}/Makefile")
    assert "read-only" not in said
    (one,) = await written(hands).list_unreviewed()
    assert one.outside and one.path == f"{repo}/Makefile"
    await hands.allow(repo, write=True)
    assert "Read-only" in await hands(shell, command=f"echo evil >> {repo}/Makefile")


async def test_a_person_may_allow_exactly_this_call(hands: Hands, repo: Path) -> None:
    hands.label = OUTSIDE
    context = await hands.context()
    context = msgspec.structs.replace(context, approver=context.principal)
    outcome = await shell.run(
        msgspec.Raw(msgspec.json.encode({"command": f"echo x > {repo}/x"})), context
    )
    await hands.store.change(outcome.changes)  # type: ignore[union-attr]
    (one,) = await written(hands).list_unreviewed()
    assert one.outside and one.path == f"{repo}/x"


async def test_a_command_that_reads_from_outside_itself_is_listed_as_that(
    hands: Hands, repo: Path
) -> None:
    hands.write("mail.txt", b"words")
    row = (str(hands.folder / "mail.txt"), msgspec.json.encode(OUTSIDE), "s", 0.0)
    await hands.store.change((Change("file_label_set", row),))
    await hands(shell, command=f"cp mail.txt {repo}/Makefile")
    (one,) = await written(hands).list_unreviewed()
    assert one.outside


NESTED = [
    (("", False), ("in", False)),
    (("", True), ("in", False)),
    (("", False), ("in", True)),
]


@pytest.mark.parametrize("grants", NESTED)
async def test_folders_in_one_another(
    hands: Hands, repo: Path, grants: Sequence[tuple[str, bool]]
) -> None:
    (repo / "in").mkdir()
    for inner, outside in grants:
        folder = (repo / inner).resolve()
        await hands.allow(folder, write=True)
        if outside:
            await hands.store.change((Change("path_grant_outside", ("default", str(folder))),))
    command = f"echo x > {repo}/a; echo x > {repo}/in/b"
    hands.label = OUTSIDE
    await hands(shell, command=command)
    free = dict(grants)
    assert (repo / "a").exists() == free[""] and (repo / "in/b").exists() == free["in"]
    assert await listed(hands) == {
        name: "made" for name, inner in (("a", ""), ("b", "in")) if free[inner]
    }
    hands.label = OWNER
    await hands(shell, command=command)
    assert await listed(hands) == {"a": "made", "b": "made"}


async def test_folders_that_programs_make_are_told_of(hands: Hands, repo: Path) -> None:
    for name in ("node_modules/a", ".venv/lib", "x/__pycache__"):
        (repo / name).mkdir(parents=True)
        (repo / name / "f").write_text("old")
    await ticked()
    await hands(
        shell,
        command=(
            f"cd {repo}; echo evil > node_modules/a/f; rm .venv/lib/f; mkdir -p .tox; echo x > "
            ".tox/y"
        ),
    )
    assert await listed(hands) == {"node_modules": "changed", ".venv": "changed", ".tox": "made"}
    await written(hands).accept(await written(hands).list_unreviewed())
    await ticked()
    await hands(shell, command=f"cat {repo}/node_modules/a/f")
    assert await listed(hands) == {}
    await hands(
        shell,
        command=f"echo evil > {repo}/node_modules/a/f; touch -d 1990-01-01 {repo}/node_modules/a/f",
    )
    assert await listed(hands) == {"node_modules": "changed"}


async def test_what_git_obeys_is_put_back_and_kept_beside(hands: Hands, repo: Path) -> None:
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    said = await hands(
        shell, command=f"cd {repo}; git config core.fsmonitor 'touch x'; echo SECRET=1 > .env"
    )
    assert "core.fsmonitor was restored" in said and ".env is protected, so it was restored" in said
    assert b"fsmonitor" not in (repo / ".git/config").read_bytes() and not (repo / ".env").exists()
    kept = Path(said.partition("the previous content is saved in ")[2].partition("]")[0])
    assert {path.read_text() for path in kept.iterdir() if path.name.endswith("-.env")} == {
        "SECRET=1\n"
    }
    assert kept.stat().st_mode & 0o77 == 0


async def test_it_can_be_undone_and_put_back(hands: Hands, repo: Path) -> None:
    async def reach(agent: str) -> object:
        return await hands.reaches.open_scope(agent, hands.folder)

    context = await hands.context()
    effects = UndoJournal(hands.store, reach, context.clock, context.ids)  # type: ignore[arg-type]
    await hands(shell, command=f"echo x >> {repo}/Makefile; echo y > {repo}/new; echo z > w")
    for effect in await effects.list_undoable(ANN, 2):
        await effects.undo(ANN, effect)
    assert (repo / "Makefile").read_text() == "all:\n\techo built\n" and [*repo.iterdir()] == [
        repo / "Makefile"
    ]
    assert not (hands.folder / "w").exists() and await listed(hands) == {}
    for effect in await effects.list_redoable(ANN, 2):
        await effects.undo(ANN, effect)
    assert await listed(hands) == {"Makefile": "changed", "new": "made"}
    found = await written(hands).list_unreviewed()
    (repo / "new").write_text("mine")
    assert (await discard_changes(effects, ANN, found)) == [
        f"Nothing is put back in {repo}: changed since you looked: new."
    ]
    assert await discard_changes(effects, ANN, await written(hands).list_unreviewed()) == [
        f"Put back in {repo}: 2."
    ]
    assert [*repo.iterdir()] == [repo / "Makefile"] and await listed(hands) == {}


async def test_what_a_killed_command_did_is_listed(hands: Hands, repo: Path) -> None:
    (repo / "node_modules").mkdir()
    context = await hands.context()
    await FileWatch.start(context, "make")
    (repo / "Makefile").write_text("evil")
    (repo / "node_modules/x").write_text("evil")
    shadow = context.reach.shadow
    assert shadow is not None
    shadow.notes.close()
    shadow.for_folder(
        str(repo)
    ).notes.close()  # as the kernel does it: the locks go, what was noted stays
    hands.reaches = type(hands.reaches)(
        hands.store, Blobs(hands.folder.parent / "blobs"), hands.reaches._sandbox
    )
    await FileWatch.start(await hands.context(), "next")
    found: list[Unreviewed] = await written(hands).list_unreviewed()
    assert {(each.path.rpartition("/")[2], each.outside) for each in found} == {
        ("Makefile", True),
        ("node_modules", True),
    }
    assert hands.session in hands.reaches.untold


async def test_a_name_that_is_no_text_is_listed(hands: Hands, repo: Path) -> None:
    await hands.store.change((Change("path_grant_outside", ("default", str(repo))),))
    hands.label = OUTSIDE
    await hands(
        shell,
        command=f"cd {repo}; echo x > $'\\xff'; mkdir node_modules; echo x > node_modules/$'\\xfe'",
    )
    assert {each.place.rpartition(b"/")[2] for each in await written(hands).list_unreviewed()} == {
        b"\xff",
        b"node_modules",
    }
