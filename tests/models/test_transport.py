"""The shared session: what it keeps, what it frees, what it refuses."""

from __future__ import annotations

import anyio
import pytest

from deskhand.models.base import TextDelta
from deskhand.models.transport import Transport, TransportLimits
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour
from deskhand.types.errors import ModelTimeout

from .tools import WIRES, ask, items_of, open_wire, reply_of

pytestmark = pytest.mark.parametrize("wire", WIRES)


async def until_free(fake: FakeLLM) -> None:
    with anyio.fail_after(30):
        while fake.open:
            await anyio.sleep(0.005)


async def test_closing_in_the_middle_hangs_up(
    fake: FakeLLM, transport: Transport, wire: str
) -> None:
    fake.script(Behaviour(named="hang_mid"))
    stream = open_wire(wire, transport, fake.url).reply(ask())
    assert isinstance(await anext(stream), TextDelta)
    assert fake.open == 1
    await stream.aclose()
    await until_free(fake)
    assert fake.aborted == 1


async def test_a_cancelled_call_hangs_up(fake: FakeLLM, transport: Transport, wire: str) -> None:
    for named in ("hang", "hang_mid"):
        fake.script(Behaviour(named=named))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(items_of, open_wire(wire, transport, fake.url))
            with anyio.fail_after(30):
                while not fake.open:
                    await anyio.sleep(0.005)
            tasks.cancel_scope.cancel()
        await until_free(fake)
        assert fake.aborted == 1


async def test_a_server_that_never_hangs_up(fake: FakeLLM, transport: Transport, wire: str) -> None:
    for finish, told in (("", "stop"), ("length", "length")):
        fake.script(Behaviour(fault="linger", finish=finish))
        with anyio.fail_after(20):
            assert (await reply_of(open_wire(wire, transport, fake.url))).finish == told
    await until_free(fake)


async def test_a_slow_reader_is_not_a_silent_provider(fake: FakeLLM, wire: str) -> None:
    fake.script(Behaviour(gap_s=0.01))
    async with Transport(TransportLimits(idle_s=0.5)) as transport:
        async for _ in open_wire(wire, transport, fake.url).reply(ask()):
            await anyio.sleep(0.1)
    async with Transport(TransportLimits(idle_s=0.5)) as transport:
        stream = open_wire(wire, transport, fake.url).reply(ask())
        await anext(stream)
        await anyio.sleep(0.8)
        assert [item async for item in stream]


async def test_silence_is_measured_from_the_last_byte(fake: FakeLLM, wire: str) -> None:
    fake.script(Behaviour(named="hang_mid"))
    async with Transport(TransportLimits(first_s=5, idle_s=0.2)) as transport:
        start = anyio.current_time()
        with pytest.raises(ModelTimeout, match=r"sending in the middle of a reply for 0\.2 s"):
            await reply_of(open_wire(wire, transport, fake.url))
        assert 0.19 < anyio.current_time() - start < 4


async def test_headers_alone_are_no_first_byte(fake: FakeLLM, wire: str) -> None:
    fake.script(Behaviour(named="headers_only"))
    async with Transport(TransportLimits(first_s=0.2, idle_s=5)) as transport:
        with pytest.raises(ModelTimeout, match=r"sent nothing within 0\.2 s"):
            await reply_of(open_wire(wire, transport, fake.url))


async def test_it_must_be_entered(wire: str) -> None:
    with pytest.raises(RuntimeError, match="outside"):
        await reply_of(open_wire(wire, Transport(), "http://127.0.0.1:9/v1"))
