"""Which tools an agent is offered, and how free a role makes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.policy.permission_modes import (
    PERMISSION_MODES,
    PermissionMode,
    mode_rules,
    role_rules,
    stricter_mode,
)
from deskhand.policy.profiles import PROFILES, Offered, is_offered
from deskhand.policy.rules import Case
from deskhand.types.effects import OUTWARD, Effect
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER

from .deciding import decide


@pytest.mark.parametrize(
    ("offered", "names"),
    [
        (Offered(), {"think", "shell", "read_file", "kv_get"}),
        (Offered("minimal"), {"think"}),
        (Offered("coding"), {"think", "shell", "read_file"}),
        (Offered("minimal", also=("kv_*",)), {"think", "kv_get"}),
        (Offered("coding", deny=("shell",)), {"think", "read_file"}),
        (Offered("coding", also=("shell", "kv_get"), deny=("*e*",)), {"think"}),
        (Offered("coding", ("read_*", "kv_get")), {"read_file"}),
        (Offered("full", ()), set()),
        (Offered("full", (), ("think",)), {"think"}),
        (Offered("full", ("t*",)), {"think", "todo_add"}),
        (Offered("full", ("*", "todo_add"), deny=("*e*", "t*k")), {"todo_add"}),
        (Offered("full", ("think",), ("todo_*",)), {"think", "todo_add"}),
    ],
)
def test_offered(offered: Offered, names: set[str]) -> None:
    there = ("think", "shell", "read_file", "kv_get", "todo_add")
    assert {name for name in there if is_offered(offered, name)} == names


def test_profiles_grow() -> None:
    assert set(PROFILES["minimal"]) < set(PROFILES["coding"])


RANK = {"deny": 0, "ask": 1, "allow": 2}
EFFECTS: list[Effect] = ["none", "fetch", "send_owner", "local_write", *sorted(OUTWARD)]
modes = st.sampled_from(list(PERMISSION_MODES))
roles = st.dictionaries(st.sampled_from(["kids", "guests", "crew"]), modes)


@given(
    roles,
    st.sets(st.sampled_from(["kids", "guests", "crew", "owner"])),
    modes,
    st.sampled_from(EFFECTS),
)
def test_a_role_only_takes_away_and_the_strictest_counts(
    given_roles: dict[str, PermissionMode], theirs: set[str], agent: PermissionMode, effect: Effect
) -> None:
    who = Principal("x", tuple(sorted(theirs)))
    case = Case("main", "tool", effect, who, OWNER)
    found = decide((*role_rules(given_roles, agent), *mode_rules(agent)), case).verdict
    strictest = agent
    for role in theirs & set(given_roles):
        strictest = stricter_mode(strictest, given_roles[role])
    assert found == decide(mode_rules(strictest), case).verdict
    assert RANK[found] <= RANK[decide(mode_rules(agent), case).verdict]
