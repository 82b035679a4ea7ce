"""Every fault of a provider, through the real wires and real sockets."""

from __future__ import annotations

import pytest

from deskhand.models.transport import Transport, TransportLimits
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import OVERFLOWS, Behaviour
from deskhand.types import errors
from deskhand.types.errors import ModelError

from .tools import KEY, WIRES, open_wire, reply_of

pytestmark = pytest.mark.parametrize("wire", WIRES)


async def failure(wire: str, transport: Transport, url: str) -> ModelError:
    """The error of one call, after the checks that hold for every error."""
    with pytest.raises(ModelError) as raised:
        await reply_of(open_wire(wire, transport, url))
    message = str(raised.value)
    assert message.startswith(("fake/m ", "The conversation is too long for fake/m"))
    assert KEY not in message
    assert len(message) < 600
    assert message.endswith(".")
    assert "\n" not in message
    return raised.value


@pytest.mark.parametrize(
    ("named", "wait"),
    [
        ("429", None),
        ("429_2", 2),
        ("429_ms", 1.5),
        ("429_date", 7),
        ("429_9999", 9999),
        ("429_google", 37),
        ("529", None),
    ],
)
async def test_an_overloaded_provider_says_how_long_to_wait(
    fake: FakeLLM, transport: Transport, wire: str, named: str, wait: float | None
) -> None:
    fake.script(Behaviour(named=named))
    error = await failure(wire, transport, fake.url)
    assert type(error) is errors.ModelOverloaded
    assert error.retry_after_s == wait


@pytest.mark.parametrize(
    ("named", "kind"),
    [
        ("408", errors.ModelUnavailable),
        ("500", errors.ModelUnavailable),
        ("502", errors.ModelUnavailable),
        ("503", errors.ModelUnavailable),
        ("reset", errors.ModelUnavailable),
        ("cut", errors.ModelUnavailable),
        ("401", errors.ModelKeyRefused),
        ("402", errors.ModelKeyRefused),
        ("403", errors.ModelKeyRefused),
        ("400_key", errors.ModelKeyRefused),
        ("429_quota", errors.ModelKeyRefused),
        ("404", errors.ModelUnknown),
        ("400_model", errors.ModelUnknown),
        ("400", errors.ModelRequestRefused),
        ("301", errors.ModelRequestRefused),
        ("garbage", errors.MalformedReply),
        ("huge_line", errors.MalformedReply),
        ("html", errors.MalformedReply),
        ("error_event", errors.ModelOverloaded),
        ("hang", errors.ModelTimeout),
        ("hang_mid", errors.ModelTimeout),
    ],
)
async def test_a_fault_has_its_class(
    fake: FakeLLM, transport: Transport, wire: str, named: str, kind: type[ModelError]
) -> None:
    fake.script(Behaviour(named=named))
    assert type(await failure(wire, transport, fake.url)) is kind


@pytest.mark.parametrize("named", OVERFLOWS)
async def test_a_conversation_that_is_too_long(
    fake: FakeLLM, transport: Transport, wire: str, named: str
) -> None:
    fake.script(Behaviour(named=f"overflow_{named}"))
    assert type(await failure(wire, transport, fake.url)) is errors.ContextOverflow


async def test_the_key_is_never_quoted(fake: FakeLLM, transport: Transport, wire: str) -> None:
    fake.script(Behaviour(named="401"))
    assert "[key]" in str(await failure(wire, transport, fake.url))


async def test_a_long_error_is_quoted_in_part(
    fake: FakeLLM, transport: Transport, wire: str
) -> None:
    fake.script(Behaviour(status=500, error="x" * 1_000_000))
    assert "x" * 299 + "…" in str(await failure(wire, transport, fake.url))


async def test_names_that_do_not_resolve(transport: Transport, wire: str) -> None:
    assert (
        type(await failure(wire, transport, "http://nowhere.invalid/v1")) is errors.ModelUnavailable
    )


async def test_a_port_where_nobody_listens(transport: Transport, wire: str) -> None:
    assert type(await failure(wire, transport, "http://127.0.0.1:9/v1")) is errors.ModelUnavailable


async def test_an_address_that_is_none(transport: Transport, wire: str) -> None:
    assert type(await failure(wire, transport, "no address")) is errors.ModelUnavailable


async def test_no_tls_where_it_is_expected(fake: FakeLLM, transport: Transport, wire: str) -> None:
    url = fake.url.replace("http:", "https:")
    assert type(await failure(wire, transport, url)) is errors.ModelUnavailable


async def test_one_byte_now_and_then_ends_at_the_total(
    fake: FakeLLM, transport: Transport, wire: str
) -> None:
    fake.script(Behaviour(fault="drip", gap_s=0.05))
    error = await failure(wire, transport, fake.url)
    assert type(error) is errors.ModelTimeout
    assert "did not finish within 3 s" in str(error)


async def test_bytes_that_come_too_rarely_are_silence(
    fake: FakeLLM, transport: Transport, wire: str
) -> None:
    fake.script(Behaviour(named="drip"))
    assert "stopped sending" in str(await failure(wire, transport, fake.url))


async def test_comments_are_life(fake: FakeLLM, wire: str) -> None:
    fake.script(Behaviour(fault="comments", gap_s=0.25))
    async with Transport(TransportLimits(first_s=1, idle_s=1)) as transport:
        reply = await reply_of(open_wire(wire, transport, fake.url))
    assert reply.message.text == "This is the answer of a fake model."


async def test_a_timeout_frees_the_connection(
    fake: FakeLLM, transport: Transport, wire: str
) -> None:
    for named in ("hang", "hang_mid"):
        fake.script(Behaviour(named=named))
        await failure(wire, transport, fake.url)
    fake.script()
    await reply_of(open_wire(wire, transport, fake.url))
    assert fake.open == 0


async def test_a_reply_that_never_ends(fake: FakeLLM, wire: str) -> None:
    fake.script(Behaviour(text="x" * 100_000))
    async with Transport(TransportLimits(reply_bytes=50_000)) as transport:
        error = await failure(wire, transport, fake.url)
    assert "longer than 50000 bytes" in str(error)


@pytest.mark.parametrize("named", ["empty", "blank", "length"])
async def test_little_or_no_text_is_a_reply(
    fake: FakeLLM, transport: Transport, wire: str, named: str
) -> None:
    fake.script(Behaviour(named=named))
    reply = await reply_of(open_wire(wire, transport, fake.url))
    assert reply.finish == ("length" if named == "length" else "stop")
    assert reply.message.text == {"empty": "", "blank": " \n\t ", "length": "It goes on and"}[named]


@pytest.mark.parametrize(
    ("named", "count", "first"),
    [
        ("bad_json", 1, b"\"{path: 'a.txt'}\""),
        ("cut_json", 1, b'"{\\"path\\": \\"a.t"'),
        ("wrong_types", 1, b'{"path": [1, null]}'),
        ("no_arguments", 1, b"{}"),
        ("unknown_tool", 1, b"{}"),
        ("many_calls", 200, b'{"path": "0"}'),
    ],
)
async def test_odd_calls_are_kept_as_they_are(
    fake: FakeLLM, transport: Transport, wire: str, named: str, count: int, first: bytes
) -> None:
    fake.script(Behaviour(named=named))
    reply = await reply_of(open_wire(wire, transport, fake.url))
    calls = reply.message.calls
    assert len(calls) == len({call.id for call in calls}) == count
    assert bytes(calls[0].arguments) == first
    assert reply.finish == ("length" if named == "cut_json" else "calls")
