"""Somebody answers what a job sent them."""

from __future__ import annotations

from pathlib import Path

from deskhand.testing.channel import MemoryChannel
from deskhand.testing.jobs import JobDesk
from deskhand.testing.temporary_home import wait_for
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text
from deskhand.types.people import Identity

from .seen import messages, texts, truth


async def test_a_reply_goes_on_with_the_run_that_sent_the_message(tmp_path: Path) -> None:
    """Over a restart, and with all that the run knew; what is no reply goes on in the chat."""
    desk = JobDesk(tmp_path)
    channel = MemoryChannel()
    desk.write("brief", "every 1h", "Brief me about otters.", to="memory:7")
    async with desk.running([channel]) as app:
        await app.people.link("owner", Identity("memory", "7"))
        await desk.pass_time(app, 3600)
        run = await desk.ended(app, "brief")
        await wait_for(lambda: truth(texts(channel) == [("7", "done")]))
    async with desk.running([channel]) as app:
        for number, reply_to in (("50", "1"), ("51", "")):
            said = Said(Message("user", (Text(f"tell me more {number}"),)))
            place = Address("memory", chat="7")
            channel.waiting.append(
                Inbound(number, place, "7", desk.clock.now(), said, reply_to=reply_to)
            )
            await wait_for(lambda number=number: truth(len(channel.sent) == int(number) - 48))  # type: ignore[misc]
        assert [event.message.text[-15:] for event in await messages(app, run.session)][1:] == [
            "tell me more 50"
        ]
        chat = [event.message.text for event in await messages(app, "default/memory:7")]
        assert [text[-15:] for text in chat] == ["tell me more 51"]
        shown = [
            [each.message.text for each in request.messages] for request in desk.model.requests[-2:]
        ]
        assert "Brief me about otters." in shown[0][0] and not any(
            "otters" in text for text in shown[1]
        )
        assert {outgoing.address.chat for outgoing, _ in channel.sent} == {"7"}
