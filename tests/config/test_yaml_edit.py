"""A key is changed, and nothing else of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.config import keys
from deskhand.config.config import Config
from deskhand.config.yaml_edit import set_key, unset_key

from ..examples import examples

TEXT = """\
# mine
defaults:            # for all
  models:            # the chain
    - a/b  # first
    - c/d
  # how many
  steps: 5  # few

agents:
  a: {steps: 1}
  b:
    thinking: high
# the end
"""
EDITS = [
    ("defaults.steps", 9, TEXT.replace("steps: 5", "steps: 9")),
    ("agents.b.thinking", "low", TEXT.replace("high", "low")),
    ("defaults.tokens", 7, TEXT.replace("few\n", "few\n  tokens: 7\n")),
    ("timezone", "Asia/Tokyo", TEXT.replace("high\n", "high\ntimezone: Asia/Tokyo\n")),
    (
        "providers.x.base_url",
        "http://h:1/v1",
        TEXT.replace("high\n", "high\nproviders:\n  x:\n    base_url: http://h:1/v1\n"),
    ),
    ("agents.b.steps", 3, TEXT.replace("high\n", "high\n    steps: 3\n")),
]


@pytest.mark.parametrize(("key", "value", "wanted"), EDITS, ids=[key for key, _, _ in EDITS])
def test_set(key: str, value: object, wanted: str) -> None:
    assert set_key(TEXT, key.split("."), value) == wanted


@pytest.mark.parametrize("key", [key for key, _, _ in EDITS[2:]])
def test_unset_undoes_a_set(key: str) -> None:
    path = key.split(".")
    text = unset_key(set_key(TEXT, path, 1), path, Config)
    assert yaml.safe_load(text).get("defaults") == yaml.safe_load(TEXT)["defaults"]
    assert "# for all" in text
    assert "# the end" in text


@pytest.mark.parametrize(
    "text", ["", "# nothing yet\n", "a: 1", "a:\n", "{a: 1}", '{"a": 1}', "a: {b: 1}", "a: null\n"]
)
@pytest.mark.parametrize("key", ["a", "a.b", "a.c.d", "z", "y.z"])
@pytest.mark.parametrize("value", [1, "x: y # z", ["p", "q"], {}])
def test_any_shape(text: str, key: str, value: object) -> None:
    path = key.split(".")
    data = yaml.safe_load(set_key(text, path, value))
    for part in path:
        data = data[part]
    assert data == value


def test_replacing_a_block_keeps_what_follows() -> None:
    text = set_key(TEXT, ["defaults", "models"], ["x/y"])
    assert yaml.safe_load(text)["defaults"] == {"models": ["x/y"], "steps": 5}
    assert "# how many" in text


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("defaults:\n  steps: 5\n", "defaults.steps", ""),
        (
            (
                "# mine\ndefaults:  # for all\n  # how many\n  steps: 5  # few\n# "
                "next\ntimezone: UTC\n"
            ),
            "defaults.steps",
            "# mine\n  # how many\n# next\ntimezone: UTC\n",
        ),
        (
            "x: 1 # x\nmemory:\n  harvester:\n    schedule: 0 3 * * *\ny: 2 # y\n",
            "memory.harvester.schedule",
            "x: 1 # x\ny: 2 # y\n",
        ),
        (
            "memory:\n  cleaner:\n    enabled: true\n  enabled: true\n",
            "memory.cleaner",
            "memory:\n  enabled: true\n",
        ),
        ("# a\ndefaults: {steps: 5}  # b\nx: 1  # c\n", "defaults.steps", "# a\nx: 1  # c\n"),
        (
            "# a\ndefaults: {steps: 5, tokens: 6}  # b\nx: 1  # c\n",
            "defaults.steps",
            "# a\ndefaults: {tokens: 6}  # b\nx: 1  # c\n",
        ),
        # an agent without keys is still an agent
        (
            "agents:\n  a:  # mine\n    # many\n    steps: 1\n  b: {steps: 2}  # theirs\n",
            "agents.a.steps",
            "agents:\n  a: {}  # mine\n    # many\n  b: {steps: 2}  # theirs\n",
        ),
        ("agents:\n  b: {steps: 2}  # theirs\n", "agents.b.steps", "agents:\n  b: {}  # theirs\n"),
        ("agents:\n  a:\n    steps: 1\n", "agents.a", ""),
        (
            '{"defaults": {"steps": 5}, "timezone": "UTC"}',
            "defaults.steps",
            '{\n  "timezone": "UTC"\n}\n',
        ),
        ("defaults:\n  steps: 5", "defaults.steps", ""),
    ],
)
def test_the_last_key_of_a_section_takes_the_section_with_it(
    before: str, key: str, after: str
) -> None:
    text = unset_key(before, key.split("."), Config)
    assert text == after
    assert None not in (yaml.safe_load(text) or {}).values()


def test_a_key_is_changed_under_the_name_that_it_is_written_with() -> None:
    old = "agents:\n  a:\n    posture: ask-me  # for now\n"
    path = ["agents", "a", "permission_mode"]
    assert set_key(old, path, "read-only") == old.replace("ask-me", "read-only")
    assert unset_key(old, path, Config) == "agents:\n  a: {}\n"


def test_a_key_that_is_not_there() -> None:
    with pytest.raises(KeyError):
        unset_key(TEXT, ["defaults", "nothing"], Config)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "defaults:\n  models: [a/b]\n"),
        ("timezone: UTC # mine\n", "timezone: UTC # mine\ndefaults:\n  models: [a/b]\n"),
        (
            "defaults:\n    steps: 3 # few\nx: 1\n",
            "defaults:\n    steps: 3 # few\n    models: [a/b]\nx: 1\n",
        ),
        (
            "# top\ndefaults: # all\n  models: [x/y]  # the best\n  steps: 3\n",
            "# top\ndefaults: # all\n  models: [a/b]  # the best\n  steps: 3\n",
        ),
        (
            (
                "defaults:\n  models:\n    - x/y\n    - z\n  # few\n  steps: 3\nagents:\n  n:\n "
                "   models: [k/l]\n"
            ),
            "defaults:\n  models: [a/b]\n  # few\n  steps: 3\nagents:\n  n:\n    models: [k/l]\n",
        ),
        ("defaults:\n  models:\n  - x/y\n", "defaults:\n  models: [a/b]\n"),
        (
            "# mine\ndefaults: {models: [x/y], steps: 3} # few\n# next\nx: 1 # y\n",
            "# mine\ndefaults: {models: [a/b], steps: 3} # few\n# next\nx: 1 # y\n",
        ),
    ],
)
def test_the_choice_of_a_model_is_written_between_the_comments(before: str, after: str) -> None:
    assert set_key(before, ["defaults", "models"], ["a/b"]) == after


NAMES = st.sampled_from(["a", "b", "models", "on", "x.y", "1", "k k", "yes", "ö", "a: b"])
SCALARS = st.sampled_from(
    (
        *(1, True, None, 1.5, "x", "", "yes", "on", "010", "1e3", "2001-01-01", "~", "a: b"),
        *("# no", "0 3 * * *", "http://h:1/v1", "it's", 'say "x"', "two\nlines\n", "@x", "- z"),
        *("*a", "&b", "!c", "[d", "{e", "%f", "| g", " h ", "i #j", "\u2028", "\x7f"),
    )
)
LISTS = st.lists(SCALARS, max_size=3)
TREES = st.dictionaries(
    NAMES,
    st.recursive(
        SCALARS | LISTS, lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=4)
    ),
    max_size=4,
)
OWN_LINE = re.compile(r"^ *# c\d+$", re.MULTILINE)


def iter_places(tree: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in tree.items():
        yield (name,), value
        if isinstance(value, dict):
            yield from (((name, *path), found) for path, found in iter_places(value))


@st.composite
def commented(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """A file with comments wherever they may be, and what it says."""
    tree = draw(TREES) | {"last": {"list": [[1]], "x": 1}}
    style = draw(st.sampled_from([False, None]))
    indent = draw(st.sampled_from([2, 4]))
    dumped = yaml.safe_dump(
        tree, sort_keys=False, allow_unicode=True, indent=indent, default_flow_style=style
    )
    text = ""
    for at, line in enumerate(dumped.split("\n")[:-1]):
        above = draw(
            st.sampled_from(
                ["", "", f"# c{at}\n", f"{' ' * (len(line) - len(line.lstrip()))}# c{at}\n"]
            )
        )
        behind = draw(st.sampled_from(["", "", f" # b{at}"]))
        text += f"{above}{line}{behind}\n"
    try:
        whole = yaml.safe_load(text) == tree
    except yaml.YAMLError:
        whole = False
    return tree, text if whole else dumped  # it is none within a text of several lines


@given(data=st.data(), file=commented(), value=SCALARS | LISTS | st.just("a\x85b"))
@settings(max_examples=examples(500, quick=60))
def test_no_comment_is_lost_where_a_value_is_set(
    data: st.DataObject, file: tuple[dict[str, Any], str], value: object
) -> None:
    tree, text = file
    places = [path for path, found in iter_places(tree) if not isinstance(found, dict | list)] + [
        (*path, "new") for path, found in iter_places(tree) if isinstance(found, dict)
    ]
    path = data.draw(st.sampled_from(places))
    wanted = deepcopy(tree)
    keys.set_value(wanted, path, value)
    edited = set_key(text, path, value)
    assert yaml.safe_load(edited) == wanted
    assert re.findall(r"# [bc]\d+$", edited, re.MULTILINE) == re.findall(
        r"# [bc]\d+$", text, re.MULTILINE
    )


@given(data=st.data(), file=commented())
@settings(max_examples=examples(500, quick=60))
def test_no_line_of_comment_is_lost_where_a_key_goes(
    data: st.DataObject, file: tuple[dict[str, Any], str]
) -> None:
    tree, text = file
    places = [path for path, found in iter_places(tree) if not isinstance(found, dict | list)]
    path = data.draw(st.sampled_from(places))
    edited = unset_key(text, path, Config)
    left = {
        other: found
        for other, found in iter_places(tree)
        if not isinstance(found, dict) and other[: len(path)] != path
    }
    after = yaml.safe_load(edited) or {}
    assert {o: f for o, f in iter_places(after) if not isinstance(f, dict)} == left
    assert OWN_LINE.findall(edited) == OWN_LINE.findall(text)
