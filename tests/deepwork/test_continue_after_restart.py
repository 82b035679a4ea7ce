"""A restart that an agent asks for: the turn ends, and what was to go on comes in once, where it
was asked."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from deskhand.runtime.app import App, open_app
from deskhand.runtime.worker import run_worker
from deskhand.supervision.supervise import RESTART
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.temporary_home import OWNER, TemporaryHome, wait_for
from deskhand.testing.tools import owner_context
from deskhand.types.commit import Change, Outgoing
from deskhand.types.errors import ToolError
from deskhand.types.events import CommandRun, MessageReceived, Recorded, TurnEnded
from deskhand.types.identity import Address, Command, Inbound, Principal
from deskhand.types.labels import Label
from deskhand.types.messages import Text

SESSION = "default/terminal:1"
ALLOWED: dict[str, Any] = {"policy": [{"verdict": "allow", "tool": "restart"}]}


class Life:
    """One home whose service ends when it is asked to, and is started again."""

    def __init__(self, home: Path) -> None:
        self.desk = TemporaryHome(home, **ALLOWED)

    async def until_asked(self, arguments: str) -> None:
        async with self.desk.running() as app:
            app.supervised = True
            await self.desk.say(app, f"[['restart', {arguments}]]".replace("'", '"'))
            with anyio.fail_after(30):
                await app.restart.requested.wait()
            await app.drain()

    async def received(self, app: App) -> list[Recorded]:
        return [
            each
            for each in await app.store.events(SESSION)
            if isinstance(each.event, MessageReceived)
        ]


async def test_it_goes_on_where_it_was_asked(tmp_path: Path) -> None:
    life = Life(tmp_path)
    await life.until_asked("{'continue_with': 'say that all is well'}")
    for _ in range(2):  # and not again with the next start
        async with life.desk.running() as app:
            app.supervised = True
            await wait_for(partial(_ended, app, 2))
            assert await app.store.query("restart_owed", ()) == []
            asked, going_on = (each.event for each in await life.received(app))
            assert isinstance(going_on, MessageReceived) and isinstance(asked, MessageReceived)
            assert going_on.message.text == "[after the restart] say that all is well"
            assert going_on.address == asked.address
            assert going_on.principal == Principal("restart", ("owner",), "system", "owner")
            (part,) = going_on.message.parts
            assert isinstance(part, Text) and part.label.integrity == "tool_local", (
                "not the person's own word"
            )
            ends = [
                each.event
                for each in await app.store.events(SESSION)
                if isinstance(each.event, TurnEnded)
            ]
            assert [end.reason for end in ends] == ["done", "done"]
            assert not app.restart.requested.is_set()


async def _ended(app: App, number: int) -> bool:
    events = [each.event for each in await app.store.events(SESSION)]
    return sum(isinstance(event, TurnEnded) for event in events) == number


async def test_without_words_the_person_is_told(tmp_path: Path) -> None:
    life = Life(tmp_path)
    await life.until_asked("{}")
    async with life.desk.running() as app:

        async def told() -> list[str]:
            events = [each.event for each in await app.store.events(SESSION)]
            return [event.reply for event in events if isinstance(event, CommandRun)]

        assert await wait_for(told) == ["System restarted. Send me a message to continue."]
        assert len(await life.received(app)) == 1


@pytest.mark.parametrize("dies", ["before it ends", "between handing in and noting it"])
async def test_it_comes_once_whatever_dies(tmp_path: Path, dies: str) -> None:
    life = Life(tmp_path)
    if dies == "before it ends":  # as `kill -9` leaves it: nobody drains, nobody leaves a word
        async with life.desk.running() as app:
            app.supervised = True
            await life.desk.say(app, '[["restart", {"continue_with": "go on"}]]')
            await wait_for(lambda: app.store.query("restart_owed", ()))
    else:
        await life.until_asked('{"continue_with": "go on"}')
        (row,) = await _rows(life.desk)
        async with life.desk.running() as app:
            await wait_for(partial(_ended, app, 2))
            await app.store.change([Change("restart_add", row)])  # as if the note had been lost
    for _ in range(2):
        async with life.desk.running() as app:
            await wait_for(partial(_nothing_owed, app))
            assert len(await life.received(app)) == 2 and await _ended(app, 2)


async def _nothing_owed(app: App) -> bool:
    owed = [*await app.store.query("restart_owed", ()), *await app.store.list_waiting(SESSION)]
    return not owed and not await app.store.open_sessions()


async def _rows(desk: TemporaryHome) -> list[tuple[Any, ...]]:
    async with open_app(desk.settings, desk.parts()) as app:
        return await app.store.query("restart_owed", ())


class SlowChannel(MemoryChannel):
    """A platform that takes its time for each message."""

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        await anyio.sleep(0.3)
        return await super().send(outgoing, mark)


@pytest.mark.parametrize("asked_by", ["the tool", "the command"])
async def test_what_is_being_sent_is_sent_before_it_ends(tmp_path: Path, asked_by: str) -> None:
    """A send that is cut off may have arrived: it would come again, marked as a possible
    duplicate."""
    desk = TemporaryHome(tmp_path, **ALLOWED)
    channel = SlowChannel()
    parts = desk.parts(channels=(channel,), authorize=lambda inbound: OWNER)
    if asked_by == "the tool":
        channel.write('[["restart", {}]]')
    else:
        place = Address("memory", chat="1")
        channel.waiting.append(Inbound("1", place, "owner", 1.0, Command("restart")))
    async with open_app(desk.settings, parts) as app:
        with anyio.fail_after(30):
            assert await run_worker(app, lambda: None) == RESTART
    async with desk.running(channels=(channel,), authorize=lambda inbound: OWNER):
        await wait_for(partial(_sent, channel, 2))
    said = [
        "".join(part.text for part in out.parts if isinstance(part, Text))
        for out, _ in channel.sent
    ]
    assert said == [
        "I am restarting and will write here when I am back.",
        "System restarted. Send me a message to continue.",
    ]
    assert [mark for _, mark in channel.sent] == ["", ""]


async def _sent(channel: MemoryChannel, number: int) -> bool:
    return len(channel.sent) >= number


async def test_where_nobody_starts_it_again_it_goes_on_at_once(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.desk.running() as app:
        await life.desk.say(app, '[["restart", {"continue_with": "go on"}]]')
        await wait_for(lambda: _ended(app, 2))
        assert len(await life.received(app)) == 2


async def test_who_may_not(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        nothing: Any = None
        mine = owner_context(nothing, session=SESSION)
        wanted = app.features.continuing.request_restart
        for principal, why in (
            (Principal("anna", ("member",)), "only an owner"),
            (Principal("job:x", ("owner",), "clock", "owner"), "not by a job"),
            (Principal("restart", ("owner",), "system", "owner"), "what goes on after a restart"),
        ):
            with pytest.raises(ToolError, match=why):
                wanted("go on", replace(mine, principal=principal))
        with pytest.raises(ToolError, match="at most 8,000 fit"):
            wanted("x" * 8_001, mine)
        done = wanted(
            "go on", replace(mine, label=Label("untrusted", None, "https://example.org/"))
        )
        assert b"example.org" in done.changes[0].args[5], "what it had read goes along"  # type: ignore[operator]
        assert done.end_turn and not app.restart.requested.is_set(), (
            "nothing happens before the commit"
        )


async def test_it_is_asked_first(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        await desk.say(app, '[["restart", {}]]')
        asks = await wait_for(lambda: app.store.open_asks(OWNER))
        assert asks[0].tool == "restart" and await app.store.query("restart_owed", ()) == []


async def test_it_does_not_go_on_for_who_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = TemporaryHome(tmp_path)
    async with open_app(desk.settings, desk.parts()) as app:
        for key, text in (("k", "go on"), ("l", "")):
            who = b'{"id": "eve", "roles": ["owner"]}'
            place = b'{"channel": "terminal", "chat": "1"}'
            row = (key, SESSION, who, place, text, b'{"integrity": "tool_local"}', "run", 0.0)
            await app.store.change([Change("restart_add", row)])
    async with desk.running() as app:
        await wait_for(partial(_nothing_owed, app))
        assert await app.store.events(SESSION) == [] and "eve has no roles any more" in caplog.text


async def test_the_control_center(tmp_path: Path) -> None:
    """As operator-use has it."""
    named: dict[str, Any] = {"also_allow": ["control_center"]}
    allowed: dict[str, Any] = {"policy": [{"verdict": "allow", "tool": "control_center"}]}
    desk = TemporaryHome(tmp_path, defaults={"models": ["scripted/x"], **named}, **allowed)
    async with desk.running() as app:
        app.supervised = True
        shown = "computer_use: {}\nbrowser_use: {}"
        assert await desk.call(app, "control_center") == shown.format("off", "on")
        said = await desk.call(app, "control_center", computer_use=True, browser_use=False)
        assert said == shown.format("on", "off")
        written = desk.settings.file.read_text()
        assert "browser: false" in written and "desktop: true" in written
        said = await desk.call(app, "control_center", agent_id="other", restart=True)
        assert (
            "the agent of this conversation, default" in said and not app.restart.requested.is_set()
        )
        await desk.say(app, '[["control_center", {"restart": true, "continue_with": "go on"}]]')
        with anyio.fail_after(30):
            await app.restart.requested.wait()
        await app.drain()
    async with TemporaryHome(tmp_path).running() as app:
        assert "control_center" not in app.current.agent("default").tools, "it is for who names it"
