"""What a hash binds, what words mean, and what is shown."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from deskhand.policy.approval import (
    CallSetting,
    hash_call,
    hash_standing_call,
    may_approve,
    parse_choice,
    render_arguments,
)
from deskhand.types.identity import Principal
from deskhand.types.messages import ToolCall


def call(
    arguments: str = '{"command":"git status"}', name: str = "shell", call_id: str = "c1"
) -> ToolCall:
    return ToolCall(call_id, name, msgspec.Raw(arguments.encode()))


SETTING = CallSetting("s", "agent", "/w", "default")
ANN = Principal("ann", ("owner",))
CASES = {
    "itself": (call(), SETTING, ANN),
    "one byte more": (call('{"command":"git status "}'), SETTING, ANN),
    "other white space": (call('{"command": "git status"}'), SETTING, ANN),
    "another tool": (call(name="bash"), SETTING, ANN),
    "another folder": (call(), msgspec.structs.replace(SETTING, cwd="/v"), ANN),
    "another profile": (call(), msgspec.structs.replace(SETTING, profile="wide"), ANN),
    "another agent": (call(), msgspec.structs.replace(SETTING, agent="b"), ANN),
    "another person": (call(), SETTING, Principal("bob", ("owner",))),
    "on another's behalf": (call(), SETTING, Principal("ann", ("owner",), on_behalf_of="bob")),
    "after untrusted content": (call(), msgspec.structs.replace(SETTING, untrusted=True), ANN),
    "moved between fields": (call('shell{"command":"git status"}', ""), SETTING, ANN),
}
ONE_TIME = {
    "another call": (call(call_id="c2"), SETTING, ANN),
    "another session": (call(), msgspec.structs.replace(SETTING, session="t"), ANN),
}


def test_every_difference_is_another_question() -> None:
    for one, other in itertools.combinations(CASES | ONE_TIME, 2):
        both = CASES | ONE_TIME
        assert hash_call(*both[one]) != hash_call(*both[other]), (one, other)
    for one, other in itertools.combinations(CASES, 2):
        assert hash_standing_call(*CASES[one]) != hash_standing_call(*CASES[other]), (one, other)
    for each in ONE_TIME.values():
        assert hash_standing_call(*each) == hash_standing_call(*CASES["itself"])


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        *[
            (word, "once")
            for word in ("yes", "Y", " ok. ", "okay", "once", "allow", "YES!", "/yes", "Ja.")
        ],
        *[("always", "always"), ("Never!", "never")],
        *[(word, "no") for word in ("no", "N", "deny", "cancel")],
        *[
            (word, None)
            for word in (
                "",
                "yes please",
                "yesno",
                "y e s",
                "\uff39\uff25\uff33",
                "oui",
                "no, wait",
                "y" * 1_000_000,
            )
        ],
    ],
)
def test_words(text: str, choice: str | None) -> None:
    assert parse_choice(text) == choice


@pytest.mark.parametrize(
    ("principal", "may"),
    [
        (Principal("ann", ("owner",)), True),
        (Principal("ann", ("member", "approver")), True),
        (Principal("bob", ("member",)), False),
        (Principal("bob"), False),
        (Principal("job", ("owner",), "clock", "ann"), False),
        (Principal("child", ("owner",), "agent", "ann"), False),
        (Principal("system", ("owner",), "system"), False),
    ],
)
def test_who_may_say_yes(principal: Principal, may: bool) -> None:
    assert may_approve(principal) is may


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a":"b c"}', '{"a":"b c"}'),
        ('{"a":"ü 漢 🎉"}', '{"a":"ü 漢 🎉"}'),
        ('{"a":\r"\u202e\u2066\u200b\u00ad"}', '{"a":\\u000d"\\u202e\\u2066\\u200b\\u00ad"}'),
        ('{"a":"\U000e0041"}', '{"a":"\\U000e0041"}'),
        ('{"a":"\u00a0\u3164\ufeff"}', '{"a":"\\u00a0\\u3164\\ufeff"}'),
    ],
)
def test_nothing_hides(arguments: str, expected: str) -> None:
    assert render_arguments(call(arguments)) == expected
