"""Reactions and edits, as the model is told of them."""

from __future__ import annotations

import pytest

from deskhand.agent.pending_annotations import MAX_ENTRIES, add_annotation, add_sent_answer
from deskhand.models.base import ContextMessage
from deskhand.types.events import MessageDelivered, MessageEdited, Reacted
from deskhand.types.identity import Principal
from deskhand.types.labels import LOCAL, OWNER, UNTRUSTED
from deskhand.types.messages import Message, Text

ANN = Principal("ann", ("owner",))
BOB = Principal("bob")


def reacted(of: str = "p1", emoji: str = "👍", added: bool = True, who: Principal = ANN) -> Reacted:
    return Reacted(1, who, of, emoji, added)


def edited(text: str, of: str = "m1", label: object = OWNER) -> MessageEdited:
    return MessageEdited(1, of, Message("user", (Text(text, label),)))  # type: ignore[arg-type]


def told(*events: MessageEdited | Reacted, sent: dict[str, str] | None = None) -> list[str]:
    asides: dict[str, Text] = {}
    for event in events:
        add_annotation(asides, sent or {}, event)
    return [aside.text for aside in asides.values()]


def test_reactions() -> None:
    sent = {"p1": "It is done."}
    assert told(reacted(), reacted(who=BOB, emoji="👎"), sent=sent) == [
        "[ann reacted 👍 to your answer “It is done.”]\n",
        "[bob reacted 👎 to your answer “It is done.”]\n",
    ]
    assert told(reacted(of="p9"), sent=sent) == ["[ann reacted 👍 to an earlier message]\n"]
    assert told(reacted(), reacted(who=BOB), reacted(added=False), sent=sent) == [
        "[bob reacted 👍 to your answer “It is done.”]\n"
    ]
    assert told(reacted(added=False)) == []
    assert told(reacted(emoji="x" * 99 + "\ud800")) == [
        f"[ann reacted {'x' * 32}… to an earlier message]\n"
    ]


def test_edits() -> None:
    assert told(edited("one"), edited("other", "m2"), edited("two")) == [
        "[edited an earlier message: other]\n",
        "[edited an earlier message: two]\n",
    ]
    assert len(told(edited("x" * 9000))[0]) < 2100


def test_labels() -> None:
    asides: dict[str, Text] = {}
    for event in (edited("a"), edited("b", "m2", UNTRUSTED), reacted()):
        add_annotation(asides, {}, event)
    assert [aside.label for aside in asides.values()] == [OWNER, UNTRUSTED, LOCAL]


def test_few_are_kept() -> None:
    many = told(*(edited(str(i), f"m{i}") for i in range(MAX_ENTRIES + 5)))
    assert (
        len(many) == MAX_ENTRIES and many[-1] == f"[edited an earlier message: {MAX_ENTRIES + 4}]\n"
    )


def said(n: int, text: str, role: str = "assistant") -> ContextMessage:
    return ContextMessage(n, Message(role, (Text(text),)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "quoted"),
    [
        ("agent/chat:1#3.0", "first answer"),
        ("agent/chat:1#4.1", "first answer"),
        ("agent/chat:1#6.0", "second"),
        ("agent/chat:#9#99.0", "second"),
        ("agent/chat:1#1.0", ""),
        ("agent/chat:1#6.call_1:send", None),
        ("agent/chat:1#6.²", None),
        ("k", None),
        ("", None),
    ],
)
def test_answers_are_known_by_the_event_after_which_they_were_said(
    key: str, quoted: str | None
) -> None:
    messages = [
        said(1, "hello", "user"),
        said(2, "first\n  answer"),
        said(3, "x", "tool"),
        said(5, "second"),
        said(6, " "),
    ]
    sent: dict[str, str] = {}
    add_sent_answer(sent, MessageDelivered(key, "p1"), messages)
    assert sent == ({} if quoted is None else {"p1": quoted})
