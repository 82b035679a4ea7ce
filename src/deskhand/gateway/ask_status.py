"""Writes the outcome under a question, wherever it was answered, and removes its buttons.

It is not tried again after a crash: somebody who presses a button that is left is told that the
question is no longer open.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Mapping

import anyio
from msgspec.structs import replace

from ..channels.base import Channel, Editing
from ..store.base import Store
from ..types.errors import ChannelError
from ..types.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallClosed,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    ToolFinished,
)
from ..types.labels import LOCAL, UNTRUSTED, Label
from ..types.marked_texts import mark_text
from ..types.messages import Text
from .channel_switch import IsOn, always_on
from .queries import messages_of_ask
from .reader_language import Localize, leave_english

log = logging.getLogger(__name__)

MAX_OPEN_ASKS = 1000
"""So many open questions are remembered."""
SEND_S = 30.0
RETRY_S = 0.5
_NO_LONGER = mark_text("No longer asked: {reason_text}")
_NOBODY = mark_text("Nobody answered in time")
_CHOICE_TEXTS = {
    "once": mark_text("\N{CHECK MARK} Allowed, once, by {who}"),
    "always": mark_text("\N{CHECK MARK} Allowed from now on by {who}"),
    "each": mark_text("\N{BLACK RIGHTWARDS ARROW} Asked one by one, as {who} wished"),
    "no": mark_text("\N{CROSS MARK} Not allowed: {who} said no"),
    "never": mark_text("\N{CROSS MARK} Never allowed: {who} said so"),
}


class AskStatus:
    """Shows the outcome of questions on the channels that can edit messages."""

    def __init__(
        self, store: Store, channels: Mapping[str, Channel], is_on: IsOn = always_on
    ) -> None:
        self._store = store
        self._is_on = is_on
        self.localize: Localize = leave_english
        self.channels = {name: each for name, each in channels.items() if isinstance(each, Editing)}
        self._asks: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._due: deque[tuple[str, str, Text]] = deque(maxlen=MAX_OPEN_ASKS)
        self._news = anyio.Event()

    listens_to = (
        ApprovalAsked,
        QuestionAsked,
        ApprovalAnswered,
        QuestionAnswered,
        CallClosed,
        ToolFinished,
    )

    def on_event(self, recorded: Recorded) -> None:
        """Follow what happens to questions. Never waits."""
        session = recorded.session
        event = recorded.event
        match event:
            case (
                ApprovalAsked(ask_id=ask_id, call_id=call_id)
                | QuestionAsked(ask_id=ask_id, call_id=call_id)
            ):
                self._asks[session, call_id] = ask_id
                if len(self._asks) > MAX_OPEN_ASKS:
                    self._asks.popitem(last=False)
            case ApprovalAnswered(ask_id=ask_id, choice=choice, principal=principal):
                self._enqueue(session, ask_id, _CHOICE_TEXTS[choice].format(who=principal.id))
            case QuestionAnswered(ask_id=ask_id, principal=principal, message=message):
                self._enqueue(session, ask_id, f"{principal.id}: {message.text}", UNTRUSTED)
            case CallClosed(call_id=call_id, reason=reason):
                if open_ := self._asks.pop((session, call_id), ""):
                    self._enqueue(session, open_, _NO_LONGER.format(reason_text=reason))
            case ToolFinished(result=result):
                if open_ := self._asks.pop((session, result.call_id), ""):
                    self._enqueue(session, open_, _NOBODY)
            case _:
                pass

    def _enqueue(self, session: str, ask_id: str, words: str, label: Label = LOCAL) -> None:
        """Have this written under the question. What a person said is not LOCAL."""
        for key in [key for key, known in self._asks.items() if known == ask_id]:
            del self._asks[key]
        self._due.append((session, ask_id, Text(words, label)))
        self._news.set()

    async def run(self) -> None:
        """Edit the questions until cancelled."""
        while True:
            self._news = anyio.Event()
            waiting = [each for each in self._drain_queue() if not await self._edit_question(*each)]
            self._due.extendleft(reversed(waiting))
            with anyio.move_on_after(RETRY_S) if waiting else anyio.CancelScope():
                await self._news.wait()

    def _drain_queue(self) -> list[tuple[str, str, Text]]:
        taken = list(self._due)
        self._due.clear()
        return taken

    async def _edit_question(self, session: str, ask_id: str, outcome: Text) -> bool:
        """False while the question itself is still to be sent."""
        for sent in await messages_of_ask(self._store, session, ask_id):
            outgoing = sent.outgoing
            channel = self.channels.get(outgoing.address.channel)
            if channel is None or outgoing.ask is None or sent.state == "failed":
                continue
            if sent.state != "sent" or not self._is_on(outgoing.address.channel):
                return False
            ask = replace(outgoing.ask, decided=outcome.text)
            over = replace(outgoing, key=f"{outgoing.key}:decided", ask=ask)
            over = await self.localize(over)
            if over.ask is not None and outcome.label != LOCAL:
                over = replace(over, ask=replace(over.ask, decided=outcome.text))
            try:
                with anyio.fail_after(SEND_S):
                    await channel.edit(sent.platform_id, over, "")
            except (ChannelError, TimeoutError) as error:
                log.info(
                    "Could not show the outcome of a question at %s: %s",
                    outgoing.address.channel,
                    error,
                )
        return True
