"""What is set for single groups holds in them, and nowhere else."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from deskhand.channels.group_rules import GroupRules
from deskhand.channels.settings import ChannelConfig
from deskhand.types.identity import Address, Deletion, Inbound, Said
from deskhand.types.messages import Message

CONFIG = {
    "groups": "mention",
    "group_rules": {
        "C1": {"answers": "all"},
        "C2": {"answers": "none"},
        "C3": {"allow_from": [77, "U1"]},
    },
}


def rules(**more: object) -> GroupRules:
    return GroupRules(msgspec.convert({**CONFIG, **more}, ChannelConfig))


def said(chat: str, sender: str = "U1", *, group: bool = True) -> Inbound:
    address = Address("slack", "", chat, group=group)
    return Inbound("1", address, sender, 0.0, Said(Message("user", ())))


def test_where_everything_is_read() -> None:
    assert [rules().reads_everything(chat) for chat in ("C1", "C2", "C3", "C4")] == [
        True,
        False,
        False,
        False,
    ]
    everywhere = rules(groups="all")
    assert everywhere.reads_everything("C4") and not everywhere.reads_everything("C2")
    assert rules().reads_everything_somewhere()
    assert not rules(group_rules={}).reads_everything_somewhere()


@pytest.mark.parametrize(
    ("inbound", "heard"),
    [
        (said("C1"), True),
        (said("C2"), False),
        (said("C3"), True),
        (said("C3", "77"), True),
        (said("C3", "U2"), False),
        (said("C4", "U2"), True),
        (said("C2", group=False), True),
        (said("C3", "U2", group=False), True),
    ],
)
def test_who_is_heard(inbound: Inbound, *, heard: bool) -> None:
    assert rules().admits(inbound) is heard


def test_a_deletion_needs_no_sender() -> None:
    """Discord does not say whose message it was."""
    gone = replace(said("C3", ""), body=Deletion("1"))
    assert rules().admits(gone)
    assert not rules().admits(replace(said("C2", ""), body=Deletion("1")))


def test_other_words_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="sometimes"):
        rules(group_rules={"C1": {"answers": "sometimes"}})
