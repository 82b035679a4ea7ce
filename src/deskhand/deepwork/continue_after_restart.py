"""`restart(continue_with)`: the service ends and is started again, and goes on at the very place
where it was asked."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import msgspec

from ..assembly.host import Host
from ..gateway.inject import InboundInjector
from ..supervision.restart_command import RESTARTED
from ..tools.base import Context, Done, Tool, own
from ..tools.define import tool
from ..types.commit import Change
from ..types.errors import DeskhandError, ToolError
from ..types.events import Recorded, ToolFinished
from ..types.identity import SYSTEM, Address, Command, Inbound, Principal, Said, responsible_person
from ..types.labels import LOCAL, Label, join_labels
from ..types.messages import Message, Text, clean_text

log = logging.getLogger(__name__)

MOST_CHARS = 8_000
RETRY_S = 5.0


class Continuing:
    """What is owed after a restart. A row says so from the commit of the call on, and it is handed
    in under the name of that call: so it comes exactly once, whatever dies in between."""

    def __init__(self, ground: Host, waker: InboundInjector) -> None:
        self._ground = ground
        self._waker = waker
        self._run = ground.ids.new("run")

    def tools(self) -> tuple[Tool, ...]:
        """What agents can do with it."""
        continuing = self

        @tool(effect="host", replay="commit", name="restart")
        async def restart(context: Context, continue_with: str = "") -> Done:
            """Restart the service, for what holds only from its next start on: your own Python,
            plugins, some of the configuration. It ends this turn. For the owner alone, and not in
            jobs.

            continue_with: what you are to do afterwards, said to you here as soon as it works again
            """
            return continuing.request_restart(continue_with, context)

        return (restart,)

    def request_restart(self, text: str, context: Context) -> Done:
        """The end of the turn, with the row that has it restart. Raises ToolError for who may
        not."""
        if "owner" not in context.principal.roles:
            raise ToolError("only an owner may restart the service: ask them for it")
        if context.principal.kind != "person":
            raise ToolError(
                "the service is restarted only when a person has just asked for it, not by "
                "a job, and not by what goes "
                "on after a restart: say what is to be done, and end"
            )
        if len(text) > MOST_CHARS:
            raise ToolError(
                f"continue_with has {len(text):,} characters; at most {MOST_CHARS:,} fit: "
                "name a file"
            )
        encode = msgspec.json.encode
        who = (encode(context.principal), encode(context.address))
        label = encode(join_labels((LOCAL, context.label)))
        row = (
            context.key,
            context.session,
            *who,
            clean_text(text.strip()),
            label,
            self._run,
            context.clock.now(),
        )
        said = (
            "I restart, and go on here then." if text.strip() else "I restart, and write here then."
        )
        return Done(
            (Text(said, own(context)),), changes=(Change("restart_add", row),), end_turn=True
        )

    def is_restart_request(self, recorded: Recorded) -> bool:
        """An event passes: whether it is the call that asks this process to end."""
        event = recorded.event
        if not isinstance(event, ToolFinished) or not event.end_turn:
            return False
        return any(row[6] == self._run for row in self._ground.store.query_sync("restart_owed"))

    async def run(self) -> None:
        """Hand in what is owed since before this process. Only who drives may call it."""
        while owed := [row for row in await self._owed_rows() if row[6] != self._run]:
            for row in owed:
                await self._hand_in(row)
            if await self._owed_rows():
                await anyio.sleep(RETRY_S)
        await anyio.sleep_forever()

    async def hand_in_now(self) -> None:
        """Where nobody starts this process again: all that is owed, now."""
        for row in await self._owed_rows():
            await self._hand_in(row)

    async def _owed_rows(self) -> list[tuple[Any, ...]]:
        return await self._ground.store.query("restart_owed", ())

    async def _hand_in(self, row: tuple[Any, ...]) -> None:
        key, session, principal, address, text, label, _, _ = row
        asked = msgspec.json.decode(principal, type=Principal)
        place = msgspec.json.decode(address, type=Address)
        now = self._ground.clock.now()
        name = f"restart:{key}"
        try:
            who = await self._ground.with_current_roles(asked)
            if asked.roles and not who.roles:
                log.warning(
                    "%s does not go on after the restart: %s has no rights any more",
                    session,
                    asked.id,
                )
            elif text:
                going_on = Principal("restart", who.roles, "system", responsible_person(asked))
                part = Text(f"[after the restart] {text}", msgspec.json.decode(label, type=Label))
                said = Said(Message("user", (part,)))
                await self._waker.hand_in(
                    Inbound(name, place, going_on.id, now, said, session), going_on
                )
            else:
                note = Command("restarted", RESTARTED)
                await self._waker.hand_in(
                    Inbound(name, place, SYSTEM.id, now, note, session), SYSTEM
                )
            await self._ground.store.change((Change("restart_done", (key,)),))
        except DeskhandError as error:
            log.warning("what was to go on after the restart in %s waits: %s", session, error)
