"""Who takes part in a conversation: the people behind its identities, as they are linked now."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from deskhand.agent.compaction import make_ledger
from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.types import events as e
from deskhand.types.identity import EVERYBODY, Address, Command, Inbound, Principal, Waiting
from deskhand.types.messages import Message, Text
from deskhand.types.turn import make_message_received

ANN = Principal("ann", ("member",))
BOSS = Principal("owner", ("owner",))
CHAT = Address("telegram", "bot", "42")
PAGE = Address("web")


class Log:
    """A conversation that grows."""

    def __init__(self) -> None:
        self.events: list[e.AnyEvent] = []

    @property
    def state(self) -> State:
        return fold(
            State("main/telegram:42"),
            [e.Recorded(0, "s", n, 1.0, each) for n, each in enumerate(self.events, 1)],
        )

    def say(
        self, who: Principal, at: Address = CHAT, sender: str = "42", *, old: bool = False
    ) -> State:
        row = Waiting(1, who, Inbound("1", at, sender, 1.0, Command("x")))
        event = make_message_received(
            row, Message("user", (Text("hello"),)), self.state.participants
        )
        if old:
            event = replace(event, sender="", succeeds="")
        self.events += [event, e.TurnEnded("done", (1,))]
        return self.state

    def start(self) -> State:
        self.events.append(e.CommandRun(1, BOSS, "start", "", "This is a new conversation"))
        return self.state

    def shorten(self) -> State:
        kept = make_ledger(self.state)
        stored = e.decode_event(e.encode_event(e.Compacted((), "", 0, kept)))
        self.events.append(stored)
        return self.state


def test_an_identity_that_is_linked_to_somebody_else_is_one_participant() -> None:
    log = Log()
    before = log.say(ANN)
    assert (before.person, before.shared) == ("ann", True)
    after = log.say(BOSS)
    assert (after.person, after.shared) == ("owner", False)


def test_two_people_are_two() -> None:
    log = Log()
    log.say(ANN)
    both = log.say(BOSS, PAGE, "owner")
    assert (both.person, both.shared) == (EVERYBODY, True)
    again = log.say(ANN)
    assert (again.person, again.shared) == (EVERYBODY, True)
    linked = log.say(BOSS)
    assert (linked.person, linked.shared) == ("owner", False)


def test_who_also_wrote_elsewhere_still_takes_part() -> None:
    log = Log()
    log.say(ANN)
    log.say(ANN, PAGE, "ann")
    linked = log.say(BOSS)
    assert (linked.person, linked.shared) == (EVERYBODY, True)


@pytest.mark.parametrize("channel", ["web", "api", "terminal", "door", "job"])
def test_our_own_surfaces_know_people_by_their_names(channel: str) -> None:
    """Whatever sender they name."""
    log = Log()
    log.say(ANN, Address(channel), "same")
    assert log.say(BOSS, Address(channel), "same").person == EVERYBODY


def test_a_group_stays_one() -> None:
    log = Log()
    log.say(BOSS, replace(CHAT, group=True))
    assert (log.state.person, log.state.shared) == (EVERYBODY, True)
    assert log.say(BOSS).person == EVERYBODY
    log.start()
    assert log.say(BOSS).person == "owner"


def test_who_wrote_alone_before_is_one_of_many_in_a_group() -> None:
    log = Log()
    log.say(BOSS)
    assert log.say(BOSS, replace(CHAT, group=True)).person == EVERYBODY


def test_what_acts_for_a_person_is_that_person() -> None:
    log = Log()
    log.say(BOSS)
    job = Principal("job", ("owner",), "clock", on_behalf_of="owner")
    assert log.say(job, CHAT, "job").person == "owner"


def test_a_summary_keeps_who_takes_part() -> None:
    log = Log()
    log.say(ANN)
    assert log.shorten().person == "ann"
    after = log.say(BOSS)
    assert (after.person, after.shared) == ("owner", False)


def test_a_log_of_an_older_version_keeps_everybody_until_a_fresh_start() -> None:
    """It does not say who wrote as whom."""
    log = Log()
    log.say(ANN, old=True)
    log.shorten()
    short = log.events[-1]
    assert isinstance(short, e.Compacted)
    log.events[-1] = replace(short, ledger=replace(short.ledger, participants={}))
    assert (log.state.person, log.state.shared) == ("ann", True)
    assert log.say(BOSS).person == EVERYBODY
    log.start()
    after = log.say(BOSS)
    assert (after.person, after.shared) == ("owner", False)


def test_before_the_first_message_of_a_fresh_conversation_nobody_takes_part() -> None:
    """A command between `/start` and the first message is answered as in a conversation of its
    own."""
    log = Log()
    log.say(BOSS, replace(CHAT, group=True))
    log.start()
    row = Waiting(2, BOSS, Inbound("2", CHAT, "42", 1.0, Command("memory")))
    assert [each.person for each in log.state.participants_with(row).values()] == ["owner"]


def test_the_log_says_who_takes_part_no_more() -> None:
    log = Log()
    log.say(ANN)
    assert [event.succeeds for event in log.events if isinstance(event, e.MessageReceived)] == [""]
    log.say(BOSS)
    log.say(BOSS)
    assert [event.succeeds for event in log.events if isinstance(event, e.MessageReceived)] == [
        "",
        "ann",
        "",
    ]
    log.say(ANN, PAGE, "ann")
    log.say(ANN)
    log.say(BOSS)
    last = log.events[-2]
    assert isinstance(last, e.MessageReceived)
    assert last.succeeds == "", "ann wrote on the page, too"
