"""Whose word comes in: what a person typed has their rank, everything else is from outside,
whatever a channel says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.gateway.inbound_body import label_parts
from deskhand.types.identity import Principal, principal_label
from deskhand.types.labels import Label
from deskhand.types.messages import Audio, File, Image, Message, Part, Text

from ..examples import examples

PEOPLE = (
    Principal("olga", ("owner",)),
    Principal("ann", ("member",)),
    Principal("guest"),
    Principal("token:ci", ("member",), "agent"),
)
RANK = {"untrusted": 0, "tool_local": 1, "member": 2, "owner": 3}

claims = st.builds(
    Label, st.sampled_from(list(RANK)), st.none(), st.sampled_from(["", "a page", "olga"])
)
parts = st.one_of(
    st.builds(Text, st.text(min_size=1, max_size=20), claims),
    st.builds(Image, st.just("sha256:a"), st.just("image/png"), st.text(max_size=9), claims),
    st.builds(Audio, st.just("sha256:a"), st.just("audio/ogg"), st.text(max_size=9), claims),
    st.builds(
        File, st.just("sha256:a"), st.text(max_size=9), st.just("text/plain"), st.just(1), claims
    ),
)


def rank(label: Label) -> int:
    return RANK[label.integrity]


@settings(max_examples=examples(500))
@given(st.lists(parts, min_size=1, max_size=4), st.sampled_from(PEOPLE))
def test_a_channel_can_only_lower_whose_word_it_is(sent: list[Part], principal: Principal) -> None:
    message = label_parts(Message("user", tuple(sent)), principal)
    for was, part in zip(sent, message.parts, strict=True):
        assert isinstance(was, Text | Image | Audio | File) and isinstance(
            part, Text | Image | Audio | File
        )
        assert part.label.readers is None and part.label.source, "somebody is named"
        most = rank(principal_label(principal)) if isinstance(part, Text) else 0
        lowered = was.label.integrity == "untrusted" and was.label.source
        assert rank(part.label) == (0 if lowered else most), "no claim of a channel lifts it"
    own = [part.text for part in message.parts if isinstance(part, Text) and rank(part.label) > 0]
    assert message.own_text == "".join(own)
