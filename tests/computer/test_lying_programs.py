"""Programs that say of their windows what is not so: they are cut short, and bring nobody else
down."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import pytest

from deskhand.computer.desktop.base import NoAnswer, NodeKey
from deskhand.computer.desktop.windows import MAX_NODES, Window, WindowReader
from deskhand.computer.snapshot import render_snapshot

WINDOW = Window(("liar", "/w"), "liar", "w", "gtk")


class LyingBus:
    """Answers with what `children` says of each path; `states` and `count` are those of all."""

    is_connected = True

    def __init__(self, children: Any, states: Any = None, count: Any = 3) -> None:
        self._children = children
        self._states = [(1 << 25) | (1 << 30) | (1 << 1), 0] if states is None else states
        self._count = count
        self.calls = 0

    async def call(
        self, node: NodeKey, interface: str, member: str, signature: str = "", *body: Any
    ) -> list[Any]:
        self.calls += 1
        await anyio.sleep(0)
        match member:
            case "GetChildren":
                return [self._children(node[1])]
            case "GetRole":
                return [23 if node[1] == "/w" else 39]
            case "GetState":
                return [self._states]
            case "GetInterfaces":
                return [[]]
            case _:
                raise NoAnswer("no")

    async def get(self, node: NodeKey, interface: str, name: str) -> Any:
        return self._count if name == "ChildCount" else f"name of {node[1]}"


LIES = {
    "itself": lambda path: [("liar", "/w")] * 3,
    "in a circle": lambda path: [("liar", "/a"), ("liar", "/b"), ("liar", "/w")],
    "a thousand times the same": lambda path: [("liar", "/x")] * 1_000,
    "without end": lambda path: [("liar", f"{path}/{n}") for n in range(50)],
}


@pytest.mark.parametrize("lie", LIES)
async def test_it_ends(lie: str) -> None:
    bus = LyingBus(LIES[lie], count=1_000)
    with anyio.fail_after(25):
        root = await WindowReader(bus).read_window(WINDOW)
    assert sum(1 for _ in root.walk()) <= MAX_NODES + 1
    assert bus.calls <= 8 * MAX_NODES and len(render_snapshot(root)) < 20_000


@pytest.mark.parametrize("states", [7, "x", [], [None], None])
async def test_what_is_no_answer_is_left_out(states: Any) -> None:
    bus = LyingBus(lambda path: 5, states=states)
    with suppress(NoAnswer):
        root = await WindowReader(bus).read_window(WINDOW)
        assert not root.children


async def test_one_that_lies_takes_no_others_down() -> None:
    class TwoPrograms(LyingBus):
        async def call(
            self, node: NodeKey, interface: str, member: str, signature: str = "", *body: Any
        ) -> list[Any]:
            if member == "GetState" and node[0] == "liar":
                return []
            return await super().call(node, interface, member, signature, *body)

    def children(path: str) -> list[NodeKey]:
        return {
            "/org/a11y/atspi/accessible/root": [("liar", "/a"), ("honest", "/a")],
            "/a": [("honest", "/w")],
        }.get(path, [])

    windows = await WindowReader(TwoPrograms(children)).list_windows()
    assert [each.key[0] for each in windows] == ["honest", "honest"]
