"""Which agent answers where."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.runtime.config import read_settings
from deskhand.runtime.routing import Binding, route
from deskhand.types.identity import Address

AGENTS = ("main", "coder", "sales")
BINDINGS = (
    Binding("sales", "chat", "shop"),
    Binding("coder", "chat", chat="7"),
    Binding("main", "chat", chat="7"),
    Binding("coder", "mail"),
)
PLACES = [
    (Address("chat", "shop", "7"), "sales", "the first that fits wins"),
    (Address("chat", "", "7"), "coder", "also of two that are the same"),
    (Address("chat", "shop2", "8"), "main", "none fits: the first agent"),
    (Address("chat", "sales", "8"), "sales", "none fits: the agent called as the account"),
    (Address("mail", "sales", "8"), "coder", "a binding is before the account"),
    (Address("other", "", "7"), "main", "the same chat of another channel"),
]


@pytest.mark.parametrize(("place", "agent", "why"), PLACES, ids=[why for _, _, why in PLACES])
def test_who_answers(place: Address, agent: str, why: str) -> None:
    assert route(BINDINGS, AGENTS, place) == agent


def test_bindings_as_two_systems_write_them(tmp_path: Path) -> None:
    (tmp_path / "deskhand.yaml").write_text("""
agents: {main: {}, coder: {}, sales: {}}
bindings:
- {agentId: sales, match: {channel: chat, accountId: shop, peer: {kind: direct, id: 12}}}
- {agent: coder, channel: mail, chat: 7}
""")
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)})
    assert settings.config.bindings == (Binding("sales", "chat", "shop", "12"), Binding("coder", "mail", chat="7"))
    assert settings.warnings == ()
