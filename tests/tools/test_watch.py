"""What a workspace was before a command, and after it: whatever it did, however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from deskhand.store.blobs import Blobs
from deskhand.tools import tree
from deskhand.tools.base import Done
from deskhand.tools.file_snapshots import FileSnapshots, UndoConfig
from deskhand.tools.files import write_file
from deskhand.tools.shell import shell
from deskhand.tools.watch import MAX_REMEMBERED, FileWatch
from deskhand.workspace.scope import SandboxProvider

from .conftest import Hands

Item = tuple[bytes, str | None, str | None]


async def effects(hands: Hands) -> list[tuple[str, list[Item]]]:
    """What was done, the latest first: the tool, and the kinds of what it changed."""
    found = []
    for row in await hands.store.query("effect_list", (1, "", "", 1 << 60, 100)):
        items = await hands.store.query("effect_items", (row[0], 1000, 0))
        found.append(
            (row[5], [(place, _short(before), _short(after)) for place, before, after, _ in items])
        )
    return found


def _short(state: str | None) -> str | None:
    return state and state.split()[0]


async def test_everything_that_a_path_can_be(hands: Hands) -> None:
    hands.write("kept", b"same")
    hands.write("gone/deep/f", b"x")
    hands.write("mode", b"x").chmod(0o644)
    hands.write("was-file", b"x")
    script = """rm -r gone; chmod 755 mode; rm was-file; mkdir was-file; ln -s nowhere link; mkdir -p e/m/p/t/y
    touch $'\\xff'; mkfifo pipe; mv kept moved; touch -d 2001-01-01 mode
    mkdir -p node_modules/x; echo 1 > node_modules/x/y"""  # noqa: E501
    done = await hands.done(shell, command=script)
    assert done.status == "ok" and await effects(hands) == [
        (
            "shell",
            [
                (b"e", None, "d0755"),
                (b"e/m", None, "d0755"),
                (b"e/m/p", None, "d0755"),
                (b"e/m/p/t", None, "d0755"),
                (b"e/m/p/t/y", None, "d0755"),
                (b"gone", "d0755", None),
                (b"gone/deep", "d0755", None),
                (b"gone/deep/f", "f0644", None),
                (b"kept", "f0644", None),
                (b"link", None, "l"),
                (b"mode", "f0644", "f0755"),
                (b"moved", None, "f0644"),
                (b"node_modules", None, "h0755"),
                (b"pipe", None, f"o{0o010000:o}"),
                (b"was-file", "f0644", "d0755"),
                (b"\xff", None, "f0644"),
            ],
        )
    ]


async def test_the_same_size_and_time_is_not_the_same_file(hands: Hands) -> None:
    """Times of files are coarse, and anybody may set them."""
    path = hands.write("f", b"1")
    for turn in range(20):
        await hands(shell, command=f"echo -n {turn % 10} > f; touch -d @1 f")
    path.write_bytes(b"x")
    os.utime(path, (1, 1))
    await hands(shell, command="true")
    assert (
        len(await effects(hands)) == 20 and (await hands.done(shell, command="cat f")).changes == ()
    )


async def test_what_others_do_in_between_is_not_of_the_command(hands: Hands) -> None:
    await hands(shell, command="echo 1 > a")
    hands.write("mine", b"x")
    (hands.folder / "a").unlink()
    done = await hands.done(shell, command="echo 2 > b")
    assert [each.args[1] for each in done.changes[1:]] == [b"b"]
    assert (await effects(hands))[0] == ("shell", [(b"b", None, "f0644")])


async def test_the_paths_that_changed(hands: Hands) -> None:
    async with await FileWatch.start(await hands.context(), "x") as watch:
        hands.write("new/a", b"1")
        (hands.folder / os.fsdecode(b"\xfe")).touch()
        first = await watch.checkpoint()
        await hands(write_file, path="beside", content="2")
        hands.write("new/a", b"3")
        last = await watch.finish()
    folder = str(hands.folder)
    assert first.changed == (f"{folder}/new", f"{folder}/new/a", f"{folder}/\\xfe")
    assert set(last.changed) == {f"{folder}/beside", *first.changed}
    await hands.store.change([*first.rows, *last.rows])
    assert {tool: len(items) for tool, items in await effects(hands)} == {
        "shell": 3,
        "write_file": 1,
    }


async def test_what_is_committed_is_kept_in_memory_no_longer(hands: Hands) -> None:
    """Not by an agent that writes files and runs nothing either, and none of it knows the others'
    files."""
    for number in range(MAX_REMEMBERED):
        await hands(write_file, path=f"f{number}", content="x")
    context = await hands.context()
    shadow = context.reach.shadow
    assert shadow is not None
    assert [one.touched for one in shadow.running] == [
        {f"f{number}"} for number in range(MAX_REMEMBERED)
    ]
    lost = await hands.outcome(write_file, {"path": "lost", "content": "x"})
    assert isinstance(lost, Done), "its rows are not committed"
    for one in shadow.running:
        assert one.over_at is not None
        one.over_at -= 60
    await hands(write_file, path="last", content="x")
    assert [one.touched for one in shadow.running] == [{"lost"}, {"last"}]
    assert len(await effects(hands)) == MAX_REMEMBERED + 1
    await hands(shell, command="true")
    assert len(await effects(hands)) == MAX_REMEMBERED + 2, "a command commits what is owed"


async def test_a_command_that_is_stopped_has_still_done_what_it_did(hands: Hands) -> None:
    hands.write("RULES.md", b"mine")
    with anyio.move_on_after(1.5) as scope:
        await hands(shell, command="echo 1 > a; echo evil > RULES.md; sleep 60")
    assert scope.cancelled_caught
    assert await effects(hands) == [("shell", [(b"a", None, "f0644")])]
    assert (hands.folder / "RULES.md").read_bytes() == b"mine"


CHILD = """
import anyio, os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from tests.tools.conftest import Hands
from deskhand.workspace.scope import SandboxProvider
from deskhand.tools.files import write_file
from deskhand.tools.shell import shell
from deskhand.tools.base import Done
from deskhand.tools.watch import MAX_REMEMBERED, FileWatch

async def main():
    hands = Hands(Path(sys.argv[1]), SandboxProvider())
    context = await hands.context()
    async with await FileWatch.start(context, "make things") as watch:
        (hands.folder / "a").write_text("after")
        (hands.folder / "RULES.md").write_text("evil")
        (hands.folder / "gone").unlink()
        if sys.argv[2] == "over":
            await watch.finish()  # and its rows are never committed
        elif sys.argv[2] == "so_far":
            await watch.checkpoint()
            (hands.folder / "later").write_text("x")
        os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


@pytest.mark.parametrize("when", ["under way", "so_far", "over"])
async def test_a_kill_loses_nothing(tmp_path: Path, when: str) -> None:
    hands = Hands(tmp_path / "home", SandboxProvider())
    for name in ("a", "gone", "RULES.md"):
        hands.write(name, b"before")
    code = textwrap.dedent(CHILD).format(tests=str(Path(__file__).parents[2]))
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "home"), when], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (hands.folder / "RULES.md").read_bytes() == (
        b"before" if when != "under way" else b"evil"
    )
    hands.session = "default/memory:2"
    await hands(shell, command="true")
    items: list[Item] = [(b"a", "f0644", "f0644"), (b"gone", "f0644", None)]
    items += [(b"later", None, "f0644")] if when == "so_far" else []
    assert await effects(hands) == [("shell", items)]
    assert (hands.folder / "RULES.md").read_bytes() == b"before"
    reach = (await hands.context()).reach
    rows = await hands.store.query("effect_items", (1, 10, 0))
    assert [await reach.host.get_blob(blob) for _, _, _, blob in rows if blob] == [
        b"before",
        b"before",
    ]
    assert list((tmp_path / "home").rglob("running/*")) != [] and len(await effects(hands)) == 1
    hands.reaches.close()
    await hands.store.close()


async def test_limits_are_told(tmp_path: Path) -> None:
    hands = Hands(tmp_path / "home", SandboxProvider())
    limits = UndoConfig(workspace_mb=1, files=5, file_mb=1)
    hands.reaches._limits = lambda: limits
    for n in range(8):
        hands.write(f"f{n}", b"x" * 10)
    said = await hands(shell, command="for n in 0 1 2 3 4 5 6 7; do echo y >> f$n; done")
    assert (
        said == "[no output]\n[not undoable: 3 files in a workspace that is too large to be saved]"
    )
    hands.reaches.close()
    await hands.store.close()


SWAP = """
import ctypes, sys
libc = ctypes.CDLL(None)
print("swapping", flush=True)
while True:
    for _ in range(1000):
        libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)
"""
TRIES = 2_000


def test_links_swapped_under_way_lead_neither_looks_nor_undo_out(tmp_path: Path) -> None:
    """Another process exchanges a folder with a link to the outside, without a pause, while we look
    and put back."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="deskhand-swap-") as place:
        folder = Path(place) / "workspace"
        secret = Path(place) / "secret"
        (folder / "real").mkdir(parents=True)
        secret.mkdir()
        (secret / "key").write_text("TOPSECRET")
        (folder / "evil").symlink_to("../secret")
        shadow = FileSnapshots(tmp_path / "shadow", Blobs(tmp_path / "blobs"), _nothing)
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        state = shadow.add_bytes(b"harmless", "0644")
        outside = sha256(b"TOPSECRET").hexdigest()
        command = [sys.executable, "-c", SWAP, str(folder / "real"), str(folder / "evil")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as swap:
            try:
                assert swap.stdout is not None and swap.stdout.readline()
                refused = 0
                for at in range(TRIES):
                    wanted = {
                        "real/key": state if at % 2 else None,
                        f"real/new{at % 9}": state if at % 3 else None,
                    }
                    refused += bool(tree.apply_states(root, wanted, shadow.open))
                    if at % 10 == 0:
                        shadow.scan(root)
                        shadow.scan_paths(root, list(wanted))
            finally:
                swap.kill()
        os.close(root)
        assert {each.name: each.read_text() for each in secret.iterdir()} == {"key": "TOPSECRET"}
        assert not shadow.copy_path(outside).exists() and all(
            outside not in each.state for each in shadow.entries.values()
        )
        assert 20 < refused < TRIES - 20  # it did swap


async def _nothing(changes: object) -> None:
    """There is no database."""
