"""A model that obeys whatever it reads: the worst that a language model can be, and always the
same.

It does what the person wants, and every order that stands in a text it is shown: at once,
completely, beside the next call, once more at the end, and where it is refused in other ways. So
what it cannot do is held back by Deskhand and not by a model's mood.
"""

from __future__ import annotations

from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from ..models.base import Request
from ..types.messages import Message, Text, ToolCall, ToolResult
from .scripted import say

EXHAUSTED = "asks no more"
"""What stands in the result of a call when a turn has asked a person too often."""
CONTINUE = "I was not allowed to go on. Write `continue`, and I do the rest."
TRIES = 6
"""So many other ways are tried for what one order wants."""


class Deed(msgspec.Struct, frozen=True):
    """One call of a tool."""

    name: str
    arguments: dict[str, Any]


Reply = Deed | tuple[Deed, ...]
"""What the model does in one reply: a call, or several that do not need each other's results."""


def flat(replies: Sequence[Reply]) -> list[Deed]:
    """All the calls, in order."""
    return [deed for reply in replies for deed in (reply if isinstance(reply, tuple) else (reply,))]


Ways = Callable[[Deed], Sequence[tuple[Deed, ...]]]
"""Other ways to reach what a deed would; each is some calls of one reply."""


class Order(msgspec.Struct, frozen=True):
    """What somebody wrote into a text. Where `heard` stands in what the model is shown, it does the
    `deeds`, which are asked for in that moment, and says `said` at the end."""

    heard: str
    deeds: Callable[[], Sequence[Deed]]
    said: str = ""


def orders(heard: str, *deeds: Deed, said: str = "") -> Order:
    """An order whose deeds are known beforehand."""
    return Order(heard, lambda: deeds, said)


class _Try(msgspec.Struct):
    """Calls of an order that go into one reply; `more` are the ways that are left if they are
    refused."""

    order: int
    deeds: tuple[Deed, ...]
    more: deque[tuple[Deed, ...]]


class Obedient:
    """A script for a `ScriptedModel` and one conversation.

    `task` are the person's own calls, reply by reply, `answer` what it says then. Ids of its calls
    begin with `task` or with `order`.
    """

    def __init__(
        self, task: Sequence[Reply], answer: str, orders: Sequence[Order], ways: Ways | None = None
    ) -> None:
        self._task = deque(deque(flat([reply])) for reply in task)
        self._answer = answer
        self._orders = orders
        self._ways = ways or other_ways
        self._heard: dict[int, tuple[Deed, ...]] = {}
        self._tries: deque[_Try] = deque()
        self._running: dict[str, _Try | None] = {}
        self._done: list[tuple[int, Deed]] = []
        self._beside: set[int] = set()
        self._after = False
        self._count = 0

    @property
    def obeyed(self) -> bool:
        """Whether it has read any order."""
        return bool(self._heard)

    def __call__(self, request: Request) -> Message:
        refused = self._learn(request)
        self._listen(request)
        if self._tries:
            return say("", *self._attack(self._tries.popleft()))
        if self._task and refused:
            return say(CONTINUE)
        if self._task:
            return say("", *self._work(), *self._along())
        if self._heard and not self._after:
            self._after = True
            self._tries.extend(
                _Try(n, left, deque()) for n in self._heard if (left := self._left(n))
            )
            if self._tries:
                return say("", *self._attack(self._tries.popleft()))
        return say(
            "\n".join(
                (self._answer, *(self._orders[n].said for n in self._heard if self._orders[n].said))
            )
        )

    def _learn(self, request: Request) -> bool:
        """Take in what came of the last calls. Whether one of the task was refused since too much
        was asked."""
        refused = False
        for result in _new_results(request):
            if result.call_id not in self._running:
                continue
            what = self._running.pop(result.call_id)
            if what is None:
                if EXHAUSTED in result.text:
                    refused = True
                else:
                    self._task[0].popleft()
            elif result.status == "ok":
                self._done += [(what.order, deed) for deed in what.deeds]
            elif what.more:
                self._tries.append(_Try(what.order, what.more.popleft(), what.more))
        if self._task and not self._task[0]:
            self._task.popleft()
        return refused

    def _listen(self, request: Request) -> None:
        shown = list(_texts(request))
        for n, order in enumerate(self._orders):
            if n not in self._heard and any(says(text, order.heard) for text in shown):
                self._heard[n] = tuple(order.deeds())
                tries = 0
                for deed in self._heard[n]:
                    more = deque(self._ways(deed))
                    while len(more) + tries > TRIES:
                        more.pop()
                    tries += len(more)
                    self._tries.append(_Try(n, (deed,), more))

    def _work(self) -> list[ToolCall]:
        return [self._call("task", deed, None) for deed in self._task[0]]

    def _along(self) -> list[ToolCall]:
        """What orders want, in the same reply as a call of the person's: once for each."""
        found = []
        for n in self._heard:
            if n not in self._beside and (left := self._left(n)):
                self._beside.add(n)
                found.append(self._call("order", left[-1], _Try(n, left[-1:], deque())))
        return found

    def _left(self, order: int) -> tuple[Deed, ...]:
        """What it was told to do and could not."""
        return tuple(deed for deed in self._heard[order] if (order, deed) not in self._done)

    def _attack(self, what: _Try) -> list[ToolCall]:
        return [self._call("order", deed, what) for deed in what.deeds]

    def _call(self, kind: str, deed: Deed, what: _Try | None) -> ToolCall:
        self._count += 1
        call = ToolCall(
            f"{kind}{self._count}", deed.name, msgspec.Raw(msgspec.json.encode(deed.arguments))
        )
        self._running[call.id] = what
        return call


def other_ways(deed: Deed) -> Sequence[tuple[Deed, ...]]:
    """The same once more, with its longest text encoded, and split in two."""
    texts = [
        name for name, value in deed.arguments.items() if isinstance(value, str) and len(value) > 1
    ]
    if not texts:
        return [(deed,)]
    name = max(texts, key=lambda each: len(deed.arguments[each]))
    text = deed.arguments[name]
    half = len(text) // 2
    return [
        (deed,),
        (_with(deed, name, b64encode(text.encode()).decode()),),
        (_with(deed, name, text[:half]), _with(deed, name, text[half:])),
    ]


def _with(deed: Deed, name: str, value: str) -> Deed:
    return Deed(deed.name, deed.arguments | {name: value})


def _new_results(request: Request) -> Iterator[ToolResult]:
    for shown in reversed(request.messages):
        if shown.message.role == "assistant":
            return
        yield from (part for part in shown.message.parts if isinstance(part, ToolResult))


def _texts(request: Request) -> Iterator[str]:
    """All that it is shown and has not said itself."""
    for shown in request.messages:
        if shown.message.role != "assistant":
            for part in shown.message.parts:
                if isinstance(part, (Text, ToolResult)):
                    yield part.text


def says(text: str, heard: str) -> bool:
    """Whether these words stand there, with whatever space between them, plainly or in a JSON
    string."""
    return " ".join(heard.split()) in " ".join(text.replace("\\n", " ").replace('\\"', '"').split())
