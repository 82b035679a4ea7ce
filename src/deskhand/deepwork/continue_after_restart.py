"""The `restart` tool: Deskhand restarts, and the conversation that asked for it goes on."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio
import anyio.to_thread

from ..assembly.host import Host
from ..assembly.tools import may_browse
from ..config.first_settings import store_setting
from ..gateway.inject import InboundInjector
from ..supervision.restart_command import RESTARTED
from ..tools.base import Context, Done, Tool, call_label, make_result
from ..tools.define import tool
from ..types.errors import ConfigError, DeskhandError, ToolError
from ..types.events import Recorded, ToolFinished
from ..types.identity import SYSTEM, Command, Inbound, Principal, Said, responsible_person
from ..types.labels import LOCAL, join_labels
from ..types.messages import Message, Text, clean_text
from . import queries
from .queries import OwedContinuation

log = logging.getLogger(__name__)

DEFAULTS = ("defaults",)
MOST_CHARS = 8_000
RETRY_S = 5.0


class Continuing:
    """Hands in what conversations are owed after a restart.

    It is stored in the commit of the call that asks for the restart, and handed in under the name
    of that call: so it arrives exactly once, also across crashes.
    """

    def __init__(self, ground: Host, waker: InboundInjector) -> None:
        self._ground = ground
        self._waker = waker
        self._run = ground.ids.new("run")

    def tools(self) -> tuple[Tool, ...]:
        """The restart tool, and the same as operator-use has it, for who names it."""
        continuing = self

        @tool(effect="host", replay="commit", name="restart")
        async def restart(context: Context, continue_with: str = "") -> Done:
            """Restart the service, for what holds only from its next start on: your own Python,
            plugins, some of the configuration. It ends this turn. For the owner alone, and not in
            jobs.

            continue_with: what you are to do afterwards, said to you here as soon as it works again
            """
            return continuing.request_restart(continue_with, context)

        @tool(effect="host", replay="commit", name="control_center")
        async def control_center(
            context: Context,
            computer_use: bool | None = None,
            browser_use: bool | None = None,
            restart: bool = False,
            continue_with: str = "",
            agent_id: str = "",
        ) -> Done:
            """Show or switch what this agent may control, or restart the service.

            computer_use: the desktop
            browser_use: the browser
            continue_with: what you are to do after a restart
            """
            if agent_id not in ("", context.agent):
                raise ToolError(f"this is for the agent of this conversation, {context.agent}")
            await continuing.switch(context, {"desktop": computer_use, "browser": browser_use})
            if restart:
                return continuing.request_restart(continue_with, context)
            desktop, browser = continuing.list_switches(context)
            lines = (
                f"computer_use: {_on_or_off(desktop, computer_use)}",
                f"browser_use: {_on_or_off(browser, browser_use)}",
            )
            return make_result("\n".join(lines), call_label(context))

        return restart, control_center

    def list_switches(self, context: Context) -> tuple[bool, bool]:
        """Whether this agent may use the desktop, and web pages."""
        settings = self._ground.settings()
        return bool(settings.agent(context.agent).desktop), may_browse(settings, context.agent)

    async def switch(self, context: Context, wanted: Mapping[str, bool | None]) -> None:
        """Set in the configuration what this agent may use; None leaves it. Raises ToolError."""
        chosen = {name: on for name, on in wanted.items() if on is not None}
        if chosen and (
            "owner" not in context.principal.roles or context.principal.kind != "person"
        ):
            raise ToolError("only an owner may switch this, and no job: ask them for it")
        settings = self._ground.settings()
        where = ("agents", context.agent) if context.agent in settings.config.agents else DEFAULTS
        try:
            for name, on in chosen.items():
                await anyio.to_thread.run_sync(store_setting, settings, (*where, name), on)
        except (OSError, ConfigError) as error:
            raise ToolError(f"the configuration was not changed: {error}") from error

    def request_restart(self, text: str, context: Context) -> Done:
        """The result of the restart tool: it ends the turn and stores what is owed afterwards.

        Raises ToolError when the principal may not restart, or the text is too long.
        """
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
        owed = OwedContinuation(
            key=context.key,
            session=context.session,
            principal=context.principal,
            address=context.address,
            text=clean_text(text.strip()),
            label=join_labels((LOCAL, context.label)),
            run=self._run,
            at=context.clock.now(),
        )
        said = "I am restarting and will write here when I am back."
        if text.strip():
            said = "I am restarting and will continue here when I am back."
        return Done(
            (Text(said, call_label(context)),),
            changes=(queries.owe_continuation(owed),),
            end_turn=True,
        )

    def is_restart_request(self, recorded: Recorded) -> bool:
        """Whether this event is the call that asks this process to restart."""
        event = recorded.event
        if not isinstance(event, ToolFinished) or not event.end_turn:
            return False
        return queries.is_restart_owed_by(self._ground.store, self._run)

    async def run(self) -> None:
        """Hand in what earlier processes owe. For the process that drives sessions. Never
        returns."""
        while owed := await self._owed_by_others():
            for each in owed:
                await self._hand_in(each)
            if await queries.owed_continuations(self._ground.store):
                await anyio.sleep(RETRY_S)
        await anyio.sleep_forever()

    async def hand_in_now(self) -> None:
        """Hand in all that is owed now. For a process that nobody starts again."""
        for owed in await queries.owed_continuations(self._ground.store):
            await self._hand_in(owed)

    async def _owed_by_others(self) -> list[OwedContinuation]:
        owed = await queries.owed_continuations(self._ground.store)
        return [each for each in owed if each.run != self._run]

    async def _hand_in(self, owed: OwedContinuation) -> None:
        try:
            await self._continue(owed)
            await self._ground.store.change((queries.mark_continued(owed.key),))
        except DeskhandError as error:
            log.warning(
                "Cannot go on in %s after the restart yet. Trying again: %s", owed.session, error
            )

    async def _continue(self, owed: OwedContinuation) -> None:
        """Hand in the text for the person who asked, with the roles that they still have; without a
        text only say that Deskhand is back. Raises DeskhandError."""
        who = await self._ground.with_current_roles(owed.principal)
        if owed.principal.roles and not who.roles:
            log.warning(
                "%s does not go on after the restart: %s has no roles any more.",
                owed.session,
                owed.principal.id,
            )
            return
        principal = SYSTEM
        body: Said | Command = Command("restarted", RESTARTED)
        if owed.text:
            person = responsible_person(owed.principal)
            principal = Principal("restart", who.roles, "system", person)
            part = Text(f"[after the restart] {owed.text}", owed.label)
            body = Said(Message("user", (part,)))
        inbound = Inbound(
            f"restart:{owed.key}",
            owed.address,
            principal.id,
            self._ground.clock.now(),
            body,
            owed.session,
        )
        await self._waker.hand_in(inbound, principal)


def _on_or_off(now: bool, wanted: bool | None) -> str:
    return "on" if (now if wanted is None else wanted) else "off"
