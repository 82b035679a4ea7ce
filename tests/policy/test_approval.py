"""What a yes binds, and what counts as one."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from deskhand.policy.approval import CallSetting, hash_call, hash_standing_call, parse_choice
from deskhand.types.identity import Principal
from deskhand.types.messages import ToolCall

CALL = ToolCall("c1", "shell", msgspec.Raw(b'{"command":"git status"}'))
SETTING = CallSetting("s", "agent", "folder", "default")
ANN = Principal("ann", ("owner",))

OTHERS = [
    (replace(CALL, arguments=msgspec.Raw(b'{"command":"git statuS"}')), SETTING, ANN),
    (replace(CALL, arguments=msgspec.Raw(b'{"command": "git status"}')), SETTING, ANN),
    (replace(CALL, name="shell2"), SETTING, ANN),
    (CALL, replace(SETTING, cwd="folder2"), ANN),
    (CALL, replace(SETTING, profile="net"), ANN),
    (CALL, replace(SETTING, agent="other"), ANN),
    (CALL, SETTING, Principal("bob")),
    (CALL, SETTING, Principal("ann", on_behalf_of="bob")),
    (
        ToolCall("c1", 'shell",', CALL.arguments),
        CallSetting("s", "agent", "folder", "default"),
        ANN,
    ),
]


@pytest.mark.parametrize("other", OTHERS)
def test_anything_else_is_another_question(other: tuple[ToolCall, CallSetting, Principal]) -> None:
    assert hash_call(*other) != hash_call(CALL, SETTING, ANN)
    assert hash_standing_call(*other) != hash_standing_call(CALL, SETTING, ANN)


def test_a_binding_is_for_one_call_and_a_standing_one_for_all_like_it() -> None:
    again = replace(CALL, id="c2")
    elsewhere = replace(SETTING, session="t")
    assert (
        hash_call(again, SETTING, ANN)
        != hash_call(CALL, SETTING, ANN)
        != hash_call(CALL, elsewhere, ANN)
    )
    assert hash_standing_call(again, elsewhere, ANN) == hash_standing_call(CALL, SETTING, ANN)
    assert hash_call(CALL, SETTING, ANN) == hash_call(
        replace(CALL), replace(SETTING), Principal("ann")
    )


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        *((word, "once") for word in ("yes", "Y", " ok ", "Okay.", "/yes", "!once", "allow")),
        *((word, "always") for word in ("always", "ALWAYS!")),
        *((word, "no") for word in ("no", "N", "deny", "Cancel.")),
        ("never", "never"),
        *(
            (word, None)
            for word in (
                "",
                "yes please",
                "not yes",
                "yess",
                "ye s",
                "oui",
                "1",
                "yes\nno",
                "once more",
            )
        ),
    ],
)
def test_read_choice(text: str, choice: str | None) -> None:
    assert parse_choice(text) == choice
