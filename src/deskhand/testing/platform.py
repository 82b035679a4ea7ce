"""A chat platform, a language model and an effect sink in one server, with the habits of real ones,
and a truth log.

The platform keeps an update until a higher offset is asked for, sends one in ten twice, answers
late, and now and then drops the connection after it has taken a message. The model asks for one
effect for each new message, then answers. Where they are told to, both ask now and then to be left
alone for a while.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from time import monotonic

import anyio
import msgspec
from aiohttp import ClientError, ClientSession, web  # noqa: TID251 -- loopback

from ..channels.base import Channel
from ..types.commit import Outgoing
from ..types.errors import ChannelError
from ..types.identity import Address, Inbound, Said
from ..types.messages import Message, Text

CHATS = 5
DUPLICATES = 0.1
DROPPED = 0.03
HANDED_OVER_S = 0.1
"""How long the mutant takes from one message to the next, so that any kill finds some confirmed and
not yet safe."""
_WORD = re.compile(r"\bm\d+\b")
_TOLD = ("[sub-agent ", "[teammate ")
_TAKEN_IN = "write to it with message_teammate"
MATES = 2


class Update(msgspec.Struct, frozen=True):
    """A message that somebody wrote. `id` grows by one."""

    id: int
    chat: str
    text: str


class PlatformMessage(msgspec.Struct, frozen=True):
    """A message as the platform took it."""

    key: str
    chat: str
    text: str
    mark: str


class Platform:
    """The server. All lists are the truth, in the order in which it happened. `busy` is the share
    of messages, and of questions to the model, of which it wants to hear only after one of `busy_s`
    seconds. With `teams` each chat begins by allowing them."""

    def __init__(
        self, seed: int, latency_s: tuple[float, float] = (0.02, 0.08), *, teams: bool = False
    ) -> None:
        self.random = random.Random(seed)
        self.latency_s = latency_s
        self._teams = teams
        self.dropped = DROPPED
        self.busy = 0.0
        self.busy_s = (2, 8)
        self.updates: list[Update] = []
        self.sent: list[PlatformMessage] = []
        self.sent_at: list[float] = []
        self.effects: list[str] = []
        self.polls = self.confirmed = self.put_off = 0

    def write(self) -> Update:
        """Somebody writes the next message."""
        number = len(self.updates) + 1
        text = "/teams on" if self._teams and number <= CHATS else f"please do m{number}"
        update = Update(number, f"chat{number % CHATS}", text)
        self.updates.append(update)
        return update

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/updates", self._updates)
        app.router.add_post("/send", self._send)
        app.router.add_post("/effect", self._effect)
        app.router.add_post("/v1/chat/completions", self._model)
        return app

    async def _updates(self, request: web.Request) -> web.Response:
        offset = (await request.json())["offset"]
        self.polls += 1
        self.confirmed = max(self.confirmed, offset - 1)
        found = [update for update in self.updates if update.id > self.confirmed][:3]
        if found and self.random.random() < DUPLICATES:
            found.append(found[0])
        await anyio.sleep(self.random.uniform(0, 0.004) if found else 0.01)
        return web.Response(body=msgspec.json.encode(found))

    def _is_busy(self) -> web.Response | None:
        if self.random.random() >= self.busy:
            return None
        self.put_off += 1
        return web.Response(
            status=429, headers={"Retry-After": str(self.random.randint(*self.busy_s))}
        )

    async def _send(self, request: web.Request) -> web.Response:
        if (busy := self._is_busy()) is not None:
            return busy
        sent = msgspec.json.decode(await request.read(), type=PlatformMessage)
        self.sent.append(sent)
        self.sent_at.append(monotonic())
        await anyio.sleep(self.random.uniform(0.01, 0.06))
        if self.random.random() < self.dropped and request.transport is not None:
            request.transport.abort()
        return web.json_response({"id": str(len(self.sent))})

    async def _effect(self, request: web.Request) -> web.Response:
        self.effects.append((await request.json())["key"])
        await anyio.sleep(self.random.uniform(0.01, 0.05))
        return web.json_response(True)

    async def _model(self, request: web.Request) -> web.Response:
        asked = await request.json()
        messages = asked["messages"]
        if _WORD.search(str(messages)) and (busy := self._is_busy()) is not None:
            return busy
        await anyio.sleep(self.random.uniform(*self.latency_s))
        names = {tool["function"]["name"] for tool in asked.get("tools", ())}
        delta = _reply(messages, helpers="spawn_agent" in names)
        finish = "tool_calls" if "tool_calls" in delta else "stop"
        choices = ({"index": 0, "delta": delta}, {"index": 0, "delta": {}, "finish_reason": finish})
        body = [msgspec.json.encode({"id": "x", "choices": [choice]}) for choice in choices]
        return web.Response(
            body=b"".join(b"data: " + line + b"\n\n" for line in (*body, b"[DONE]")),
            headers={"Content-Type": "text/event-stream"},
        )


def _reply(messages: list[dict[str, object]], *, helpers: bool) -> dict[str, object]:
    """One effect for each word that was written since the last answer, then the answer with all of
    them. With `helpers` some are left to a sub-agent, a teammate or a script; what is told of these
    later is only noted."""
    words: list[str] = []
    called: set[str] = set()
    taken_in: list[str] = []
    for message in messages:
        content = str(message["content"])
        if message["role"] == "user" and any(mark in content for mark in _TOLD):
            continue
        if message["role"] == "user":
            words += [word for word in _WORD.findall(content) if word not in words]
        elif message["role"] == "assistant":
            calls = message.get("tool_calls")
            called |= set(_WORD.findall(str(calls))) if calls else set()
            words = words if calls else []
            taken_in = []
        elif _TAKEN_IN in content:
            taken_in.append(str(message["tool_call_id"]).removeprefix("c_"))
    missing = [word for word in words if word not in called]
    if not missing and not taken_in:
        said = f"done {' '.join(words)}" if words else "noted"
        return {"role": "assistant", "content": said}
    choose = _choose_call if helpers else _make_effect
    made = [(f"w_{word}", *_write_to_mate(word)) for word in taken_in]
    made += [(f"c_{word}", *choose(word)) for word in missing]
    calls_ = [
        {
            "index": i,
            "id": id_,
            "type": "function",
            "function": {"name": name, "arguments": msgspec.json.encode(given).decode()},
        }
        for i, (id_, name, given) in enumerate(made)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls_}


_MadeCall = tuple[str, dict[str, str]]


def _choose_call(word: str) -> _MadeCall:
    """The call that does this: the effect itself, or something that makes it."""
    match int(word[1:]) % 4:
        case 1:
            return "spawn_agent", {"task": f"please do {word}"}
        case 2:
            given = {"name": _name_mate(word), "role": "helper", "prompt": f"please do {word}"}
            return "spawn_teammate", given
        case 3:
            return "run_script", {"script": f"print(call('effect', text={word!r}))"}
        case _:
            return _make_effect(word)


def _make_effect(word: str) -> _MadeCall:
    return "effect", {"text": word}


def _write_to_mate(word: str) -> _MadeCall:
    """To a teammate that could not be taken in, as it is in the team already."""
    return "message_teammate", {"to": _name_mate(word), "content": f"please do {word}"}


def _name_mate(word: str) -> str:
    return f"mate{int(word[1:]) // 4 % MATES}"


class HttpChannel:
    """The platform's channel. With `ack_first` it confirms all that it got and only then hands it
    over, one by one: the mutant that must be caught."""

    name = "platform"
    idempotent = False

    def __init__(self, url: str, session: ClientSession, *, ack_first: bool = False) -> None:
        self._url = url
        self._session = session
        self._ack_first = ack_first

    async def receive(self) -> AsyncIterator[Inbound]:
        offset = 0
        while True:
            updates = msgspec.json.decode(
                await self._post("/updates", {"offset": offset}), type=list[Update]
            )
            if self._ack_first and updates:
                await self._post("/updates", {"offset": max(update.id for update in updates) + 1})
            for update in updates:
                offset = max(offset, update.id + 1)
                if self._ack_first:
                    await anyio.sleep(HANDED_OVER_S)
                message = Message("user", (Text(update.text),))
                yield Inbound(
                    str(update.id),
                    Address(self.name, chat=update.chat),
                    "ann",
                    float(update.id),
                    Said(message),
                )

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        text = "".join(part.text for part in outgoing.parts if isinstance(part, Text))
        sent = PlatformMessage(outgoing.key, outgoing.address.chat, text, mark)
        answer = await self._post("/send", msgspec.to_builtins(sent))
        return str(msgspec.json.decode(answer)["id"])

    async def _post(self, path: str, body: object) -> bytes:
        try:
            async with self._session.post(self._url + path, json=body) as response:
                answer = await response.read()
        except (ClientError, OSError) as error:
            raise ChannelError(f"the platform is away: {error}", retry_after_s=0.05) from error
        if response.status == 429:
            raise ChannelError(
                "too much at once", float(response.headers["Retry-After"]), unsent=True
            )
        return answer


_: type[Channel] = HttpChannel
