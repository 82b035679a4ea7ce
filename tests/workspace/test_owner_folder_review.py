"""The owner is told what there is to review: at the end of a turn, once; also of what ran beside it
or was killed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
import pytest

from deskhand.runtime.app import App
from deskhand.testing.conversations import Conversations
from deskhand.testing.injections import deed
from deskhand.testing.obedient import Obedient
from deskhand.testing.person import no
from deskhand.testing.temporary_home import TemporaryHome, at_rest, wait_for
from deskhand.types.commit import Change
from deskhand.types.events import TurnEnded
from deskhand.types.labels import Label
from deskhand.types.messages import Text
from deskhand.workspace.owner_folder_review import ReviewReader, describe_unreviewed

SESSION = "default/terminal:1"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "src/app").mkdir(parents=True)
    return tmp_path / "src/app"


async def allow(app: App, repo: Path) -> None:
    await app.store.change((Change("path_grant_set", ("default", str(repo), 1, 0.0, "owner")),))


async def notes(app: App) -> list[str]:
    events = [each.event for each in await app.store.events(SESSION)]
    return [event.note for event in events if isinstance(event, TurnEnded)]


async def places(app: App) -> set[str]:
    found = await ReviewReader(app.store, app.blobs).list_unreviewed()
    return {each.path.rpartition("/")[2] for each in found}


async def test_each_turn_that_wrote_there_says_so(tmp_path: Path, repo: Path) -> None:
    desk = TemporaryHome(tmp_path / "home")
    async with desk.running() as app:
        await allow(app, repo)
        await desk.call(
            app,
            "shell",
            command=f"echo x > {repo}/a; mkdir {repo}/d; echo x > {repo}/d/b; echo x > here",
        )
        await desk.call(app, "shell", command="echo y > here")
        await desk.call(app, "shell", command=f"echo z > {repo}/c")
        assert await notes(app) == [
            describe_unreviewed(str(repo), 2),
            "",
            describe_unreviewed(str(repo), 3),
        ]
        assert "3 files in" in describe_unreviewed(
            str(repo), 3
        ) and f"`deskhand written {repo}`" in describe_unreviewed(str(repo), 3)
        await desk.call(app, "shell", chat="2", command="true")
        ended = [each.event for each in await app.store.events("default/terminal:2")]
        assert not any(isinstance(event, TurnEnded) and event.note for event in ended)


async def test_an_answer_on_a_channel_ends_with_it(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "home").mkdir()
    desk = Conversations(tmp_path / "home")
    async with desk.running():
        await allow(desk.app, repo)
        await desk.hold(
            "a",
            "do it",
            Obedient([deed("shell", command=f"echo x > {repo}/a")], "it is done", ()),
            no,
        )
        await desk.settled()
        said = "".join(part.text for part in desk.sent[-1].parts if isinstance(part, Text))
        assert said == f"it is done\n\n{describe_unreviewed(str(repo), 1)}"


async def test_what_ran_beside_is_told_with_its_end(tmp_path: Path, repo: Path) -> None:
    desk = TemporaryHome(tmp_path / "home")
    async with desk.running() as app:
        await allow(app, repo)
        await desk.call(app, "background_run", command=f"echo x > {repo}/Makefile")
        assert await wait_for(partial(_noted, app)) == describe_unreviewed(str(repo), 1)
        assert await places(app) == {"Makefile"}


async def _noted(app: App) -> str:
    return "\n".join(filter(None, await notes(app)))


async def test_what_a_program_does_while_it_runs_is_listed(tmp_path: Path, repo: Path) -> None:
    desk = TemporaryHome(tmp_path / "home")
    async with desk.running() as app:
        await allow(app, repo)
        await desk.call(
            app, "process", action="start", command=f"echo x > {repo}/Makefile; sleep 600", wait_s=0
        )
        await wait_for(partial(places, app))
        assert await places(app) == {"Makefile"}


async def test_a_session_takes_nothing_from_outside_where_it_may_write(
    tmp_path: Path, repo: Path
) -> None:
    desk = TemporaryHome(tmp_path / "home")
    async with desk.running() as app:
        await allow(app, repo)
        work = desk.settings.home.workspace("default")
        started = await desk.call(
            app, "process", action="start", command="echo ready; cat", wait_s=9
        )
        assert "ready" in started
        id_ = started.split()[1]
        assert "hello" in await desk.call(
            app, "process", action="write", id=id_, input="hello\n", wait_s=2
        )
        (work / "page.txt").write_text("words")
        label = msgspec.json.encode(Label("untrusted", source="https://evil.test/"))
        await app.store.change(
            (Change("file_label_set", (str(work / "page.txt"), label, "s", 0.0)),)
        )
        await desk.call(app, "read_file", path="page.txt")
        said = await desk.call(
            app, "process", action="write", id=id_, input=f"echo x > {repo}/a\n", wait_s=0
        )
        assert f"it may write in {repo}" in said and "https://evil.test/" in said
        other = await desk.call(
            app, "process", action="start", command=f"echo x > {repo}/a; sleep 60", wait_s=2
        )
        assert f"read-only: {repo}" in other and "Read-only file system" in other
        said = await desk.call(app, "background_run", command=f"echo x > {repo}/a")
        await wait_for(partial(at_rest, app, SESSION))
        assert not (repo / "a").exists() and await places(app) == set()


async def test_a_restart_forgets_nothing(tmp_path: Path, repo: Path) -> None:
    desk = TemporaryHome(tmp_path / "home")
    async with desk.running() as app:
        await allow(app, repo)
        row = (bytes(repo / "a"), str(repo), None, "f0644 x", None, "default", SESSION, 1.0, 0)
        await app.store.change((Change("written_add", row),))
    async with desk.running() as app:
        await desk.call(app, "shell", command="true")
        assert await notes(app) == [describe_unreviewed(str(repo), 1)]
