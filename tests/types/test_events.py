"""The stored form of events: whoever changes it breaks the logs of everyone."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from deskhand.types.events import (
    AnyEvent,
    Compacted,
    MessageReceived,
    decode_event,
    encode_event,
    event_kind,
)

GOLDEN = (Path(__file__).parent / "golden_events.jsonl").read_bytes().splitlines()


def test_every_kind_is_stored_as_it_was() -> None:
    """To add a kind or a field, add a line. A line that is there is never edited: somebody's log
    holds it."""
    for line in GOLDEN:
        event = decode_event(line)
        assert encode_event(event) == line
        assert decode_event(encode_event(event)) == event


def test_every_kind_has_a_line() -> None:
    kinds = {event_kind(decode_event(line)) for line in GOLDEN}
    assert kinds == {str(event.__struct_config__.tag) for event in get_args(AnyEvent)}


def test_a_log_written_before_a_field_was_added_is_read() -> None:
    old = decode_event(b'{"type":"compacted","kept":[],"note":"","dropped":0,"ledger":{}}')
    assert isinstance(old, Compacted) and old.ledger.turn is None
    bare = (
        b'{"type":"message_received","inbox_id":1,"principal":{"id":"a"},"address":{"channel":"c"},'
    )
    message = decode_event(
        bare
        + b'"message":{"role":"user","parts":[{"type":"text","text":"x","new_field":1}]},"new":2}'
    )
    assert isinstance(message, MessageReceived) and message.message.text == "x"
