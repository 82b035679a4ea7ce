"""A key is changed, and nothing else of the file."""

from __future__ import annotations

import pytest
import yaml

from deskhand.runtime.edit import set_key, unset_key

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
    text = unset_key(set_key(TEXT, path, 1), path)
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


def test_a_key_that_is_not_there() -> None:
    with pytest.raises(KeyError):
        unset_key(TEXT, ["defaults", "nothing"])
