"""Joining labels: the order in which content was mixed does not matter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskhand.types.labels import (
    MAX_SOURCES,
    MORE_SOURCES,
    OWNER,
    UNNAMED_SOURCE,
    Label,
    join_labels,
)

readers = st.none() | st.lists(st.sampled_from("abc"), unique=True).map(tuple)
labels = st.builds(
    Label,
    st.sampled_from(["untrusted", "tool_local", "member", "owner"]),
    readers,
    st.sampled_from(["", "x", "y"]),
)


def what(label: Label) -> tuple[str, frozenset[str] | None]:
    """What the gate looks at."""
    return label.integrity, None if label.readers is None else frozenset(label.readers)


@given(labels, labels, labels)
def test_join_is_a_meet(a: Label, b: Label, c: Label) -> None:
    assert what(join_labels((a, b))) == what(join_labels((b, a)))
    assert (
        what(join_labels((join_labels((a, b)), c)))
        == what(join_labels((a, join_labels((b, c)))))
        == what(join_labels((c, b, a)))
    )
    assert join_labels((a, a)) == join_labels((a,)) and what(join_labels((a,))) == what(a)
    assert what(join_labels((a, OWNER))) == what(a) and join_labels(()) == OWNER
    joined = join_labels((a, b))
    assert joined.readers is None or all(
        r in (x.readers or "abc") for x in (a, b) for r in joined.readers
    )


@given(st.lists(labels, min_size=1))
def test_the_source_is_that_of_the_lowest(mixed: list[Label]) -> None:
    joined = join_labels(mixed)
    lowest = {label.source for label in mixed if label.integrity == joined.integrity}
    if joined.integrity != "untrusted":
        assert joined.source in lowest and (joined.source or lowest == {""})
    elif lowest == {""}:
        assert joined.source == ""
    else:
        assert set(joined.sources) == {source or UNNAMED_SOURCE for source in lowest}


def test_no_source_of_untrusted_content_is_left_out_in_silence() -> None:
    many = join_labels([Label("untrusted", source=f"https://{i}.example/") for i in range(30)])
    assert len(many.sources) == MAX_SOURCES and many.sources[-1] == MORE_SOURCES
    more = join_labels([many, Label("untrusted", source="https://late.example/")])
    assert more.sources == many.sources
    assert join_labels([many, many]) == many


def test_unlabelled_is_untrusted_and_nobody_else_is_blamed() -> None:
    assert Label().integrity == "untrusted"
    assert join_labels((Label("untrusted"), Label("owner", source="ann"))).source == ""
