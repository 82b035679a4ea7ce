"""Jobs in a whole Deskhand: a file, a time, a message, an answer."""

from __future__ import annotations

from pathlib import Path

from deskhand.testing.jobs import JobDesk
from deskhand.types.events import MessageReceived
from deskhand.types.identity import Principal
from deskhand.types.labels import Label
from deskhand.types.messages import Text

OWNER = Principal("owner", ("owner",))


async def test_a_file_becomes_a_message_and_an_answer_every_minute(tmp_path: Path) -> None:
    desk = JobDesk(tmp_path)
    desk.write("hello", "every 1m", "Say hello.")
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        run = await desk.ended(app, "hello")
        assert (run.state, run.slot) == ("done", "2023-11-14T22:14:00Z")
        assert run.session == "default/job:hello:1700000040"
        (message,) = [e.event for e in await app.store.events(run.session) if isinstance(e.event, MessageReceived)]
        assert message.principal == Principal("job:hello", ("owner",), "clock", "owner")
        assert message.message.text.endswith("Say hello.") and "send_message" in message.message.text
        assert message.message.parts[0] == Text(message.message.text, Label("tool_local", None, "job:hello"))
        await desk.pass_time(app, 60)
        await desk.ended(app, "hello", 2)
        view = await app.works.jobs.get("hello")
        assert view.counters.runs == 2 and view.last_result == "success" and view.next_at == 1700000160.0
        assert len(desk.model.requests) == 2
