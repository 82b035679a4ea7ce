"""Commands beside a conversation: it goes on at once, and is told once how they ended."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.runtime.app import App
from deskhand.testing.temporary_home import (
    OWNER,
    TemporaryHome,
    heard,
    processes_with,
    rows,
    wait_for,
)
from deskhand.tools.command_network import CommandNetwork, NetworkUser
from deskhand.types.events import CommandRun, MessageReceived, TurnEnded
from deskhand.types.identity import Principal
from deskhand.types.labels import UNTRUSTED
from deskhand.types.messages import Text
from deskhand.types.people import GUEST, User
from deskhand.types.process import Process
from deskhand.workspace.processes import with_current_roles

SESSION = "default/terminal:1"


async def test_the_result_comes_as_a_message(tmp_path: Path) -> None:
    """The turn ends before the command; its end opens another, in the person's name and at their
    place."""
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        started = await desk.call(
            app, "background_run", command="echo one; sleep 0.4; echo two >&2; exit 3"
        )
        id_ = started.split()[2]
        assert (
            started == f"Background task {id_} started: echo one; sleep 0.4; echo two >&2; exit 3"
        )
        assert len(id_) == 8 and not await heard(app, SESSION)
        assert (await desk.call(app, "check_background", id=id_)).startswith(f"{id_} running")
        told = (await wait_for(partial(heard, app, SESSION)))[0]
        said = "$ echo one; sleep 0.4; echo two >&2; exit 3\none\n[stderr]\ntwo\n"
        assert told == f"[background {id_} completed: exit code: 3]\n{said}"
        events = [each.event for each in await app.store.events(SESSION)]
        message = next(
            e for e in events if isinstance(e, MessageReceived) and e.principal.kind == "agent"
        )
        assert message.principal.on_behalf_of == "owner" and message.address.channel == "terminal"
        await wait_for(partial(_answered, app, f"heard [background {id_}"))
        assert await desk.call(app, "check_background", task_id=id_) == told
        assert f"{id_} completed" in await desk.call(app, "check_background")
    assert len(await _told(tmp_path)) == 1


async def _answered(app: App, words: str) -> bool:
    ended = [
        each.event for each in await app.store.events(SESSION) if isinstance(each.event, TurnEnded)
    ]
    return len(ended) >= 2 and any(words in turn.said or not turn.said for turn in ended)


async def _told(home: Path) -> list[str]:
    async with TemporaryHome(home).running() as app:
        return await heard(app, SESSION)


async def test_stop_ends_all_of_it_and_nobody_is_told(tmp_path: Path) -> None:
    mark = f"77{os.getpid()}"
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        for command in (f"sleep {mark}1", f"setsid sleep {mark}2 & sleep {mark}3"):
            await desk.call(app, "background_run", command=command)
        await desk.call(app, "process", action="start", command=f"sleep {mark}4", wait_s=0)
        await wait_for(partial(_count, mark, 4))
        await desk.say(app, "/status")
        await wait_for(partial(_replied, app, "Running in the background: "))
        await desk.say(app, "/stop")
        await wait_for(partial(_count, mark, 0))
        ended = await wait_for(partial(_ended, app, 3))
        assert [(each.state, each.detail) for each in ended] == [("error", "stopped by owner")] * 3
        await anyio.sleep(0.5)
        assert await heard(app, SESSION) == []


async def _count(mark: str, number: int) -> bool:
    """Whether so many `sleep`s of this mark run; the shells around them count for nothing."""
    return sum(b"sleep" in _command(pid) for pid in processes_with(mark)) == number


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/comm").read_bytes()
    except OSError:
        return b""


async def _replied(app: App, words: str) -> bool:
    events = [each.event for each in await app.store.events(SESSION)]
    return any(isinstance(event, CommandRun) and words in event.reply for event in events)


async def _ended(app: App, number: int) -> list[Process]:
    found = [each for each in await rows(app) if not each.is_live]
    return found if len(found) == number else []


async def test_what_may_run_is_limited(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path, processes={"per_session": 1, "per_agent": 2})
    async with desk.running() as app:
        assert "started" in await desk.call(app, "background_run", command="sleep 60")
        said = await desk.call(app, "background_run", command="sleep 60")
        assert said == (
            "1 commands of this conversation run already, and no more may; end one, or wait for it"
        )
        assert "started" in await desk.call(app, "background_run", chat="2", command="sleep 60")
        said = await desk.call(app, "process", chat="3", action="start", command="bash")
        assert (
            said == "2 commands of this agent run already, and no more may; end one, or wait for it"
        )


async def test_how_it_can_end(tmp_path: Path) -> None:
    """In time, killed for its time or its memory, or not begun at all: each is told in words."""
    desk = TemporaryHome(tmp_path)
    wanted: dict[str, dict[str, Any]] = {
        "timeout: timed out after 1 s; everything it started was killed": {
            "command": "sleep 60",
            "timeout_s": 1,
        },
        "error: killed by signal 15": {"command": "kill -TERM $$"},
        "completed: exit code: 127": {"command": "no-such-program-here"},
        "error: the command could not be confined": {"command": "true", "cwd": "no/such/folder"},
    }
    async with desk.running() as app:
        for arguments in wanted.values():
            await desk.call(app, "background_run", **arguments)
        told = "\n".join(await wait_for(partial(_heard, app, len(wanted))))
        for words in wanted:
            assert words in told, told


async def _heard(app: App, number: int) -> list[str]:
    found = await heard(app, SESSION)
    return found if len(found) >= number else []


async def test_much_output_is_told_by_its_ends(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        await desk.call(app, "background_run", command="echo begins; seq 100000; echo ends")
        told = (await wait_for(partial(_heard, app, 1)))[0]
        assert len(told) < 20_000 and "\nbegins\n" in told and told.endswith("ends\n")
        handle = told.partition("read_output(handle='")[2].partition("'")[0]
        assert "50000\n" in await desk.call(app, "read_output", handle=handle, offset=280_000)
        await wait_for(partial(_cleared, tmp_path))


async def _cleared(home: Path) -> bool:
    return not list((home / "state" / "processes").iterdir())


async def test_what_was_erased_ends(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    mark = f"78{os.getpid()}"
    async with desk.running() as app:
        await desk.call(app, "background_run", command=f"sleep {mark}")
        await wait_for(partial(_count, mark, 1))
        await app.store.erase(OWNER, SESSION, app.parts.clock.now())
        await wait_for(partial(_count, mark, 0))
        assert await rows(app) == [] and await heard(app, SESSION) == []


async def test_secrets_are_not_told(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    desk.settings = msgspec.structs.replace(
        desk.settings, environment={"A_TOKEN": "hunter2hunter2"}
    )
    async with desk.running() as app:
        await desk.call(
            app, "background_run", command="echo hunter2; echo hunter2hunter2; seq 100000"
        )
        told = (await wait_for(partial(_heard, app, 1)))[0]
        assert "hunter2hunter2" not in told and "hunter2" in told


async def test_a_rule_about_shell_is_one_about_every_command(tmp_path: Path) -> None:
    rules = [{"verdict": "deny", "tool": "shell", "who": "owner", "because": "no commands today"}]
    desk = TemporaryHome(tmp_path, policy=rules)
    async with desk.running() as app:
        for name, arguments in (
            ("background_run", {"command": "true"}),
            ("process", {"action": "spawn", "cmd": "true"}),
            ("process", {"action": "write", "session_id": "1", "input": "true\n"}),
        ):
            assert await desk.call(app, name, **arguments) == "not permitted: no commands today"
        assert await desk.call(app, "process", action="list") == "No sessions are running."


async def test_who_has_fewer_rights_now_acts_with_fewer() -> None:
    ann = Principal("ann", ("owner", "member"))
    assert with_current_roles(ann, [User("ann", ("owner",))]) == ann
    assert with_current_roles(ann, [User("ann", ("member",))]).roles == ("member",)
    assert with_current_roles(ann, [User("bob", ("owner",))]).roles == ()
    assert with_current_roles(Principal("+49", (GUEST,)), []).roles == (GUEST,)


async def test_its_result_leaves_an_open_question_open(tmp_path: Path) -> None:
    rules = [{"verdict": "ask", "tool": "write_file"}]
    desk = TemporaryHome(tmp_path, policy=rules)
    async with desk.running() as app:
        await desk.call(app, "background_run", command="sleep 0.5; echo said it")
        await desk.say(app, '[["write_file", {"path": "a.txt", "content": "x"}]]')
        (ask,) = await wait_for(partial(app.store.open_asks, OWNER))
        told = [row.state for row in await wait_for(partial(_ended, app, 1))]
        assert told == ["completed"]
        await anyio.sleep(0.5)
        assert [each.ask_id for each in await app.store.open_asks(OWNER)] == [
            ask.ask_id
        ] and not await heard(app, SESSION)
        await app.door.answer(ask.ask_id, "once", OWNER)
        assert "said it" in (await wait_for(partial(_heard, app, 1)))[0]
        assert (desk.settings.home.workspace("default") / "a.txt").read_text() == "x"


async def test_its_way_to_the_network(tmp_path: Path) -> None:
    """As that of `shell` for a command; a session has that of who has read untrusted content. What
    they hear from outside is untrusted."""
    asked: list[NetworkUser] = []

    @asynccontextmanager
    async def way(network_user: NetworkUser) -> AsyncIterator[CommandNetwork]:
        asked.append(network_user)
        yield CommandNetwork(
            reached={"example.org": 1}, refused={"evil.test": "evil.test is not allowed"}
        )

    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        app.scopes._outward = msgspec.structs.replace(app.scopes._outward, open_network=way)
        await desk.call(app, "background_run", command="echo hello")
        events = await wait_for(partial(_messages, app))
        (part,) = events[0].message.parts
        assert (
            isinstance(part, Text)
            and part.label.integrity == "untrusted"
            and "https://example.org/" in part.label.source
        )
        assert "[not reachable: evil.test is not allowed]" in part.text
        assert asked[0].label.integrity != "untrusted" and asked[0].session == SESSION
        await desk.call(app, "process", chat="2", action="start", command="echo hello")
        assert asked[1].label == UNTRUSTED


async def _messages(app: App) -> list[MessageReceived]:
    events = [each.event for each in await app.store.events(SESSION)]
    return [
        event
        for event in events
        if isinstance(event, MessageReceived) and event.principal.kind == "agent"
    ]
