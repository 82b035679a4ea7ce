"""Thinking aloud, asking, sending, and reading on."""

from __future__ import annotations

import msgspec
import pytest

from deskhand.tools.base import PersonQuestion
from deskhand.tools.conversation_tools import SendMessage, ask_user, read_output, think
from deskhand.tools.kv import kv_delete, kv_get, kv_list, kv_set
from deskhand.tools.output import EDGE_BYTES, MAX_OUTPUT_BYTES, make_bounded_result, utf8_boundary
from deskhand.tools.queries import find_value
from deskhand.types.commit import Outgoing
from deskhand.types.errors import ToolError
from deskhand.types.identity import Address
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Text

from .conftest import Hands, text_of

SEND = SendMessage(frozenset({"terminal"}))


async def test_think_and_ask(hands: Hands) -> None:
    assert await hands(think, thought="hm") == "noted"
    assert await hands.outcome(ask_user, {"question": "Which?"}) == PersonQuestion("Which?")
    assert await hands.outcome(
        ask_user, {"question": "Which?", "choices": ["a", "b"]}
    ) == PersonQuestion("Which?", ("a", "b"))


HERE = Address("memory", "bot", "1", "t", group=True)
SENT = [
    ({}, HERE, "send_owner"),
    ({"chat": "1"}, HERE, "send_owner"),
    ({"channel": "memory"}, HERE, "send_owner"),
    ({"thread_id": "u"}, Address("memory", "bot", "1", "u", group=True), "send_other"),
    ({"chat": "2"}, Address("memory", "bot", "2"), "send_other"),
    ({"channel": "mail", "chat": "x@y"}, Address("mail", "", "x@y"), "send_other"),
]


@pytest.mark.parametrize(("to", "address", "effect"), SENT)
async def test_send(hands: Hands, to: dict[str, str], address: Address, effect: str) -> None:
    hands.address = HERE
    done = await hands.done(SEND, text="hello", **to)
    key = f"{hands.session}#1.c:send"
    assert (
        done.outbox == (Outgoing(key, address, (Text("hello"),)),)
        and text_of(done) == f"on its way, as {key}"
    )
    assert SEND.effect_of(msgspec.Raw(msgspec.json.encode({"text": "x"} | to)), HERE) == effect


async def test_what_is_not_sent(hands: Hands) -> None:
    for arguments in (
        {"text": " "},
        {"text": "x", "channel": "mail"},
        {"text": "x", "channel": "terminal", "chat": "z"},
    ):
        with pytest.raises(ToolError):
            await hands(SEND, **arguments)
    hands.address = Address("terminal", chat="z")
    done = await hands.done(SEND, text="x")
    assert done.outbox == () and text_of(done) == "shown in the conversation"


async def test_key_values(hands: Hands) -> None:
    assert await hands(kv_get, key="a_b") == "[not found]"
    assert await hands(kv_set, key="a_b", value="1") == "ok, a_b is set"
    await hands(kv_set, key="axb", value="2")
    await hands(kv_set, key="a_b", value="other", namespace="n")
    await hands(kv_set, key="a_b", value="3")
    assert (
        await hands(kv_get, key="a_b") == "3"
        and await hands(kv_get, key="a_b", namespace="n") == "other"
    )
    assert await hands(kv_list) == '{"a_b":"3","axb":"2"}'
    assert await hands(kv_list, prefix="a_") == '{"a_b":"3"}'
    await hands(kv_delete, key="a_b")
    assert await hands(kv_list) == '{"axb":"2"}' and await hands(kv_get, key="a_b") == "[not found]"
    with pytest.raises(ToolError, match="write a file"):
        await hands(kv_set, key="big", value="x" * 300_000)


async def test_what_has_expired_is_gone_for_good(hands: Hands) -> None:
    await hands(kv_set, key="short", value="1", ttl_hours=1e-9)
    await hands(kv_set, key="long", value="2", ttl_hours=1)
    assert (
        await hands(kv_list) == '{"long":"2"}' and await hands(kv_get, key="short") == "[not found]"
    )
    await hands(kv_set, key="any", value="3")
    found = await find_value(hands.store, "default", "", "short", 0.0)
    assert found is None  # not even for a clock that is behind


async def test_a_long_list_becomes_a_handle(hands: Hands) -> None:
    for number in range(40):
        await hands(kv_set, key=str(number), value="x" * 1000)
    assert "read_output(handle=" in await hands(kv_list)


async def test_read_output(hands: Hands) -> None:
    text = "0123456789" * 10_000 + "€" * 10_000
    done = await make_bounded_result(text, await hands.context(), LOCAL)
    said = text_of(done)
    handle = said.split("handle='")[1].split("'")[0]
    assert (
        said.startswith(text[:EDGE_BYTES])
        and said.endswith("€" * (EDGE_BYTES // 3))
        and "\ufffd" not in said
    )
    first = await hands(read_output, handle=handle)
    assert first.startswith("0123") and first.endswith(
        "\n[bytes 0-24000 of 130000; go on with offset=24000]"
    )
    assert (
        await hands(read_output, handle=f" '{handle}'", offset=129_997)
    ) == "€\n[bytes 129997-130000 of 130000]"
    for arguments in (
        {"offset": 130_000},
        {"offset": -1},
        {"handle": "sha256:" + "0" * 64},
        {"handle": "../../etc"},
    ):
        with pytest.raises(ToolError):
            await hands(read_output, **{"handle": handle} | arguments)


async def test_what_fits_is_shown_whole(hands: Hands) -> None:
    context = await hands.context()
    for text in ("", "x", "x" * MAX_OUTPUT_BYTES, "€" * (MAX_OUTPUT_BYTES // 3)):
        assert text_of(await make_bounded_result(text, context, LOCAL)) == (text or "[no output]")
    assert "read_output" in text_of(
        await make_bounded_result("x" * (MAX_OUTPUT_BYTES + 1), context, LOCAL)
    )
    assert text_of(await make_bounded_result("half \ud800\0", context, LOCAL)) == "half ?\ufffd"


def test_no_character_is_cut() -> None:
    data = "aé€🎉".encode()
    assert [utf8_boundary(data, at) for at in range(-1, 13)] == [
        0,
        0,
        1,
        1,
        3,
        3,
        3,
        6,
        6,
        6,
        6,
        10,
        10,
        10,
    ]
    assert utf8_boundary(b"\x80" * 20, 10) == 10
