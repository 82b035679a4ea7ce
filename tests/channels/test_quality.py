"""Every channel says of each rule of `quality.toml` which tests prove it, or why it has none."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from deskhand.channels.base import Editing, Speaking, Typing
from deskhand.channels.discord.channel import DiscordChannel
from deskhand.channels.mail.channel import MailChannel
from deskhand.channels.matrix.channel import MatrixChannel
from deskhand.channels.mqtt.channel import MqttChannel
from deskhand.channels.slack.channel import SlackChannel
from deskhand.channels.telegram.channel import TelegramChannel
from deskhand.channels.twitch.channel import TwitchChannel
from deskhand.testing.channel_suite import CASES

from .stages import DiscordStage, MailStage, MatrixStage, MqttStage, SlackStage, TwitchStage
from .test_suite import TelegramStage

TESTS = Path(__file__).parents[1]
PACKAGE = files("deskhand.channels")
CHANNELS: dict[str, tuple[Any, Any]] = {
    "telegram": (TelegramStage, TelegramChannel),
    "slack": (SlackStage, SlackChannel),
    "discord": (DiscordStage, DiscordChannel),
    "matrix": (MatrixStage, MatrixChannel),
    "mail": (MailStage, MailChannel),
    "mqtt": (MqttStage, MqttChannel),
    "twitch": (TwitchStage, TwitchChannel),
}
KINDS = tuple(CHANNELS)
SKIPS = {"skip", "skipif", "xfail", "importorskip"}
NAME = re.compile(r"[a-z]+(-[a-z]+)+")
SENTENCE = re.compile(r"[A-Z][^\n]{15,200}\.")
CONFORMANCE = re.compile(r"channels/test_suite\.py::test_conformance\[(\w+)-(\w+)\]")
NEED_KEEPING = {
    "what_was_not_confirmed_comes_again",
    "nothing_is_lost_however_often_it_ends",
}
NEED_PROTOCOL = {
    "a_message_is_changed_in_place": Editing,
    "that_it_is_typing_is_no_message": Typing,
    "a_voice_message_arrives": Speaking,
}
NEED_METHOD = {
    "what_is_passed_on_is_not_their_word": "passes_on",
    "a_bot_is_no_person": "bot_says",
    "what_is_spoken_comes_in_as_a_recording": "speaks",
    "a_button_is_a_command_of_who_presses": "presses",
    "a_used_button_leaves_the_others": "presses",
    "a_long_answer_offers_a_document": "presses",
}
"""Cases that check nothing where the method of the stage says that the platform has no such
thing."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def load(*place: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(PACKAGE.joinpath(*place, "quality.toml").read_text())


RULES = load()
STATES = [(kind, rule, each) for kind in KINDS for rule, each in load(kind).items()]


def test_there_are_twelve_rules() -> None:
    assert len(RULES) == 12
    for name, rule in RULES.items():
        assert NAME.fullmatch(name), name
        assert SENTENCE.fullmatch(rule["must"]), name
        assert set(rule) <= {"must", "shared"}, name


def test_every_channel_has_a_file() -> None:
    assert set(KINDS) == set(entry_points(group="deskhand.channels").names)


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_is_left_out(kind: str) -> None:
    assert list(load(kind)) == list(RULES)


@pytest.mark.parametrize(("kind", "rule", "each"), STATES)
def test_each_is_done_or_has_a_reason(kind: str, rule: str, each: dict[str, Any]) -> None:
    (state,) = each
    if state == "done":
        tests = each["done"]
        assert tests and len(tests) == len(set(tests))
        assert any(is_about(kind, test) for test in tests), f"none is about {kind}"
    else:
        assert state == "exempt"
        assert SENTENCE.fullmatch(each[state]), f"{each[state]!r} is no sentence"


NAMED = sorted(
    {test for _, _, each in STATES for test in each.get("done", ())}
    | {test for rule in RULES.values() for test in rule.get("shared", ())}
)


@pytest.mark.parametrize("test", NAMED)
def test_what_is_named_exists_and_runs(test: str) -> None:
    path, _, name = test.partition("[")[0].partition("::")
    module = parse(TESTS / path)
    (found,) = [each for each in module.body if isinstance(each, Function) and each.name == name]
    assert name.startswith("test_")
    assert list(find_skips(found)) == [], f"{test} may be left out"
    marks = [each for each in module.body if isinstance(each, ast.Assign | ast.Expr)]
    assert [skip for mark in marks for skip in find_skips(mark)] == [], f"{path} may be left out"


@pytest.mark.parametrize("test", [each for each in NAMED if "[" in each])
def test_a_case_that_is_named_checks_something(test: str) -> None:
    found = CONFORMANCE.fullmatch(test)
    assert found, "only cases of the suite are named with parameters"
    kind, case = found[1], found[2]
    assert case in {each.__name__ for each in CASES}
    assert checks_something(kind, case)


def test_a_case_that_checks_nothing_is_found() -> None:
    nothing = {
        (kind, case.__name__)
        for kind in KINDS
        for case in CASES
        if not checks_something(kind, case.__name__)
    }
    assert {case for kind, case in nothing if kind == "twitch"} == {
        *NEED_KEEPING,
        *NEED_PROTOCOL,
        *NEED_METHOD,
    }
    assert [case for kind, case in nothing if kind in ("telegram", "discord")] == []
    without_buttons = {case for case, method in NEED_METHOD.items() if method == "presses"}
    assert {case for kind, case in nothing if kind == "matrix"} == without_buttons
    assert ("slack", "that_it_is_typing_is_no_message") in nothing
    assert ("mqtt", "what_is_passed_on_is_not_their_word") not in nothing


def test_the_table_of_the_page_is_up_to_date() -> None:
    script = runpy.run_path(str(TESTS.parent / "scripts/make_quality_table.py"))
    page = (TESTS.parent / "docs/channels.md").read_text()
    assert set(script["KINDS"]) == set(KINDS)
    assert script["BEGIN"] in page and script["END"] in page
    assert page == script["make_page"](page), "run scripts/make_quality_table.py"


def is_about(kind: str, test: str) -> bool:
    """Whether a test runs on this platform."""
    found = CONFORMANCE.fullmatch(test)
    return found[1] == kind if found else Path(test.partition("::")[0]).stem.endswith(f"_{kind}")


def checks_something(kind: str, case: str) -> bool:
    """Whether the suite does not pass over this case on this platform."""
    stage, channel = CHANNELS[kind]
    if case in NEED_KEEPING and not stage.keeps:
        return False
    protocol = NEED_PROTOCOL.get(case)
    if protocol is not None and not has_all_of(channel, protocol):
        return False
    method = NEED_METHOD.get(case)
    return method is None or not says_no(getattr(stage, method))


def has_all_of(channel: Any, protocol: Any) -> bool:
    wanted = {name for name in vars(protocol) if not name.startswith("_")}
    return all(hasattr(channel, name) for name in wanted)


def says_no(method: Any) -> bool:
    """Whether all that a method does is to answer False or 0."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(method))).body
    assert isinstance(function, Function)
    match function.body[-1]:
        case ast.Return(value=ast.Constant(value=answer)):
            return not answer and len(function.body) <= 2
    return False


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def find_skips(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        name = getattr(inner, "attr", getattr(inner, "id", ""))
        if name in SKIPS:
            yield name
