"""Trees of elements, their refs and their text, without any program."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskhand.computer.elements import Element, RefTable, StaleRef, quote
from deskhand.computer.repeats import RepeatWatch
from deskhand.computer.snapshot import list_lines, render_changes, render_lines, render_snapshot

NAMES = st.sampled_from(["", "Save", "Delete", "Ann", "Bob"])


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> Element:
    """A tree whose keys are set by `numbered`."""
    role = draw(st.sampled_from(["button", "list", "listitem", "row", "text", "group"]))
    children = []
    if depth and role not in ("button", "text"):
        children = draw(st.lists(elements(depth=depth - 1), max_size=4))
    return Element(role, draw(NAMES), key=0 if role != "text" else None, children=children)


def numbered(root: Element, start: int = 0) -> Element:
    for n, each in enumerate(root.walk()):
        if each.role != "text":
            each.key = start + n
    return root


@given(st.lists(NAMES, max_size=6), st.lists(NAMES, max_size=6))
def test_a_ref_goes_over_only_where_nothing_else_could_be_meant(
    old: list[str], new: list[str]
) -> None:
    """All was drawn anew: no key is left."""
    table = RefTable()
    before = [Element("button", name, key=n) for n, name in enumerate(old)]
    after = [Element("button", name, key=100 + n) for n, name in enumerate(new)]
    table.assign(Element("page", children=before))
    table.assign(Element("page", children=after))
    refs = {each.name: each.ref for each in before}
    for each in after:
        if old.count(each.name) == 1 and new.count(each.name) == 1:
            assert each.ref == refs[each.name]
        else:
            assert each.ref not in {known.ref for known in before}


@given(elements())
def test_refs_stay_while_the_keys_do(root: Element) -> None:
    table = RefTable()
    table.assign(numbered(root))
    first = [each.ref for each in root.walk()]
    table.assign(root)
    assert [each.ref for each in root.walk()] == first
    given_refs = [ref for ref in first if ref]
    assert len(set(given_refs)) == len(given_refs)


def test_a_number_is_never_used_again() -> None:
    table = RefTable()
    table.assign(Element("page", children=[Element("button", "A", key=1)]))
    table.clear()
    table.assign(Element("page", children=[Element("button", "A", key=1)]))
    try:
        table.find("e1")
    except StaleRef as error:
        assert "there is no 'e1' now" in str(error)
    assert table.find("e2").name == "A"


@given(st.text())
def test_a_name_stays_on_its_line(name: str) -> None:
    root = Element("page", children=[Element("button", name, key=1), Element("text", name)])
    RefTable().assign(root)
    text = render_snapshot(root)
    assert len(text.splitlines()) <= 2
    inside = quote(name)[1:-1].replace("\\\\", "").replace('\\"', "")
    assert '"' not in inside and "\n" not in inside


@given(st.integers(0, 3_000), st.integers(200, 5_000))
def test_it_has_no_more_characters_than_wanted(rows: int, limit: int) -> None:
    children = [Element("button", f"Button number {n}", key=n) for n in range(rows)]
    root = Element("page", children=[Element("list", "All", key="l", children=children)])
    RefTable().assign(root)
    text = render_snapshot(root, limit)
    assert len(text) <= limit + 100
    if rows > 200:
        assert "more" in text


@given(elements(), elements())
def test_changes_are_what_was_not_there(old: Element, new: Element) -> None:
    table = RefTable()
    table.assign(numbered(Element("page", children=[old])))
    before = list_lines(Element("page", children=[old]))
    table.assign(numbered(Element("page", children=[new]), 5_000))
    now = list_lines(Element("page", children=[new]))
    said = render_changes(before, now)
    texts = {each.text for each in before}
    for line in now:
        if line.text not in texts:
            assert line.text in said
    assert render_changes(now, now) == ""
    assert render_lines(now) == render_lines(list_lines(Element("page", children=[new])))


def test_who_goes_in_circles_is_told() -> None:
    watch = RepeatWatch()
    assert watch.add("a", "1") == [] and watch.add("a", "2") == []
    assert watch.add("a", "3") == ["this was done 3 times in the last 3 steps"]
    watch = RepeatWatch()
    assert watch.add("a", "1", failed=True) == []
    assert "failed just before" in watch.add("a", "1", failed=True)[0]
    watch = RepeatWatch()
    said = [watch.add(str(n), "same") for n in range(6)]
    assert [bool(each) for each in said] == [False, False, False, False, True, False]
    watch = RepeatWatch()
    said = [watch.add(str(n), "xyxyx"[n]) for n in range(5)]
    assert "3rd time" in said[4][0] and not any(said[:4])
