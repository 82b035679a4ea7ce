"""What another worker is saying comes in pieces that fit, and is put together again."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from deskhand.gateway.live_relay import LivePiece, LiveSender, pack
from deskhand.gateway.remote_turns import RemoteTurns
from deskhand.store.base import TELL_BYTES, Store
from deskhand.types.door import Progress
from deskhand.types.events import MessageReceived, Recorded, TurnEnded
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text
from deskhand.types.turn import ReplyTarget

S = "ann/web:x"
WORDS = st.text(max_size=4_000)


def text(words: str, offset: int = 0, n: int = 2, attempt: int = 0) -> Progress:
    return Progress("text", n, attempt, offset, words)


def received(address: Address) -> MessageReceived:
    message = Message("user", (Text("hello"),))
    return MessageReceived(1, Principal("ann", ("owner",)), address, message, "77")


def recorded(event: MessageReceived | TurnEnded, n: int = 1) -> Recorded:
    return Recorded(n, S, n, 1.0, event)


@given(st.lists(WORDS, max_size=8))
def test_messages_fit_and_hold_everything(said: list[str]) -> None:
    pieces = []
    offset = 0
    for words in said:
        pieces.append(LivePiece(S, text(words, offset)))
        offset += len(words)
    messages = list(pack(pieces))
    assert all(len(message.encode()) <= TELL_BYTES for message in messages)

    turns = RemoteTurns()
    for message in messages:
        for piece in msgspec.json.decode(message, type=list[LivePiece]):
            turns.on_progress(piece.session, piece.progress)
    snapshot = turns.partials.get(S)
    assert (snapshot.text if snapshot else "") == "".join(said)


def test_a_text_whose_beginning_was_missed_is_not_shown() -> None:
    turns = RemoteTurns()
    turns.on_progress(S, text("world", 6))
    assert turns.partials.get(S) is None
    turns.on_progress(S, text("hello ", 0))
    turns.on_progress(S, text("moon", 7))
    assert turns.partials.get(S) is None, "a piece is missing"


def test_what_is_void_is_forgotten() -> None:
    turns = RemoteTurns()
    turns.on_progress(S, text("hello"))
    turns.on_progress(S, Progress("reset", 2))
    assert turns.partials.get(S) is None
    turns.on_progress(S, text("hello", attempt=1))
    turns.on_event(recorded(TurnEnded("done")))
    assert turns.partials.get(S) is None


def test_the_answer_goes_to_who_opened_the_turn() -> None:
    turns = RemoteTurns()
    first = Address("telegram", chat="1")
    turns.on_event(recorded(received(first)))
    turns.on_event(recorded(received(Address("telegram", chat="2")), 2))
    assert turns.target(S) == ReplyTarget(first, "", 1)
    turns.on_event(recorded(TurnEnded("done"), 3))
    assert turns.target(S) is None
    turns.on_event(recorded(received(Address("telegram", chat="3", group=True)), 4))
    target = turns.target(S)
    assert target is not None and target.reply_to == "77", "in a group it says what it answers"


class Telling:
    """As much of a store as a sender needs."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def tell(self, message: str) -> None:
        self.told.append(message)


def test_prompts_are_not_sent_and_pieces_are_joined() -> None:
    store: Store = Telling()  # type: ignore[assignment]  # it is asked for nothing else
    sender = LiveSender(store)
    sender.put(S, Progress("prompt", 2, text="secret rules"))
    for offset, letter in enumerate("hello"):
        sender.put(S, text(letter, offset))
    assert sender._waiting == [LivePiece(S, text("hello"))]
