"""Answers to people who are not known here: none, a rejection, or a pairing code."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

import anyio

from ..channels.base import Channel
from ..languages.catalogue import find_language
from ..languages.sentences import say_notice
from ..types.clock import Clock
from ..types.commit import Outgoing
from ..types.errors import ChannelError
from ..types.identity import Answer, Command, Inbound, Said
from ..types.labels import LOCAL
from ..types.marked_texts import mark_text
from ..types.messages import Text
from .users import LocalPeople

log = logging.getLogger(__name__)

NO_ACCESS = mark_text("You don't have access to this agent.")
ASK_OWNER = mark_text("My owner can let you in.")
REJECTION = f"{NO_ACCESS} {ASK_OWNER}"
PAIRING_LINES = (
    mark_text("I am somebody's own assistant, and I do not know you yet. Your code is {code_name}"),
    mark_text(
        "Am I yours? Then run this where I am installed, within an hour: "
        "deskhand pair approve {code_name}"
    ),
    mark_text("Otherwise give the code to my owner, who can let you in."),
)
REPEAT_AFTER_S = 3600.0
"""How often the same person is answered, so that two machines do not talk for ever."""
MAX_REMEMBERED = 1000
SEND_TIMEOUT_S = 10.0

Response = Literal["auto", "pair", "announce", "ignore"]


class Strangers:
    """Answers people who are not known here. An answer is sent at once or never: nothing that a
    stranger wrote is stored.

    `response` is the setting that holds now, `reject_response` of the configuration, and `language`
    the one in which they read where nothing says another.
    """

    def __init__(
        self,
        clock: Clock,
        people: LocalPeople,
        response: Callable[[], Response],
        language: Callable[[], str],
    ) -> None:
        self._clock = clock
        self._people = people
        self._response = response
        self._language = language
        self._told: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    async def refuse(self, inbound: Inbound, channel: Channel) -> None:
        """Answer a person who is no user here."""
        first = self._claim_first_reply(inbound)
        if first:
            log.info("%s: %s is not a user here. Ignored.", channel.name, inbound.sender)
        if _is_press(inbound):  # a button needs an answer, which only they see
            await self._reply(inbound, channel, REJECTION)
            return
        response = self._response()
        if response == "auto":
            response = "ignore" if self._people.admits_anyone() else "pair"
        if response == "announce" and first:
            await self._reply(inbound, channel, REJECTION)
        elif response == "pair" and isinstance(inbound.body, Said | Command):
            code = await self._people.request_pairing(inbound)
            if code:
                await self._reply(inbound, channel, _render_pairing(code))

    async def refuse_agent(self, inbound: Inbound, channel: Channel) -> None:
        """Answer a user who may not talk to this agent."""
        pressed = _is_press(inbound)
        if pressed or (self._response() != "ignore" and self._claim_first_reply(inbound)):
            await self._reply(inbound, channel, NO_ACCESS)

    def _claim_first_reply(self, inbound: Inbound) -> bool:
        """True when they were not answered for a while. Notes that they are now."""
        address = inbound.address
        now = self._clock.monotonic()
        who = (address.channel, address.account, inbound.sender)
        if now - self._told.get(who, -REPEAT_AFTER_S) < REPEAT_AFTER_S:
            return False
        self._told[who] = now
        self._told.move_to_end(who)
        if len(self._told) > MAX_REMEMBERED:
            self._told.popitem(last=False)
        return True

    async def _reply(self, inbound: Inbound, channel: Channel, text: str) -> None:
        address = inbound.address
        reply_to = inbound.external_id if address.group or _is_press(inbound) else ""
        key = f"stranger:{address.channel}:{address.account}:{inbound.external_id}"
        language = find_language(inbound.language) or find_language(self._language())
        code = language.code if language is not None else ""
        words = Text(say_notice(text, code), LOCAL)
        outgoing = Outgoing(key, address, (words,), reply_to, language=code)
        try:
            with anyio.fail_after(SEND_TIMEOUT_S):
                await channel.send(outgoing, "")
        except (ChannelError, TimeoutError) as error:
            log.warning("%s: cannot answer a stranger: %s", channel.name, error)


def _render_pairing(code: str) -> str:
    return "\n".join(line.format(code_name=code) for line in PAIRING_LINES)


def _is_press(inbound: Inbound) -> bool:
    """Whether somebody pressed a button, and sees what is answered to that."""
    body = inbound.body
    return isinstance(body, Answer) or (isinstance(body, Command) and body.turn > 0)
