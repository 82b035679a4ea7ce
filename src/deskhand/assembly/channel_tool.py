"""The tool `channel`: where people can reach the agents, and switching such a place on and off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

import anyio.to_thread

from ..config.config import Settings
from ..config.first_settings import store_setting
from ..tools.base import Context, Done, Tool, call_label, make_result
from ..tools.define import tool
from ..types.errors import ConfigError, ToolError
from ..types.health import Health

Mode = Literal["list", "status", "enable", "disable"]
PREFIX = "channel "


def make_channel_tool(
    settings: Callable[[], Settings], health: Callable[[], Awaitable[Health]]
) -> Tool:
    """For owners. Switching asks, as everything does that reaches the host."""

    @tool(effect="host", replay="commit", name="channel")
    async def channel(mode: Mode, context: Context, name: str = "") -> Done:
        """List the channels on which people write, show how one fares, or switch it on or off.

        name: of the channel; not for list
        """
        if "owner" not in context.principal.roles:
            raise ToolError("only an owner may see and switch channels: ask them for it")
        known = settings().config.channels
        if mode != "list" and name not in known:
            named = ", ".join(known) or "none; deskhand channels add adds one"
            raise ToolError(f"there is no channel {name!r}; there are: {named}")
        if mode in ("enable", "disable"):
            await _switch(settings(), context, name, on=mode == "enable")
        shown = known if mode == "list" else {name: known[name]}
        facts = {fact.name: fact for fact in (await health()).facts}
        lines = []
        for each in shown:
            fact = facts.get(f"{PREFIX}{each}")
            on = settings().config.channels[each].enabled
            if mode in ("enable", "disable") and each == name:
                on = mode == "enable"
            state = fact.state if fact and on else "on" if on else "off"
            why = f": {fact.last_error}" if fact and on and fact.state != "ok" else ""
            lines.append(f"{each} ({known[each].type or each}): {state}{why}")
        return make_result("\n".join(lines) or "no channels", call_label(context))

    return channel


async def _switch(settings: Settings, context: Context, name: str, *, on: bool) -> None:
    if context.principal.kind != "person":
        raise ToolError("a channel is switched only when a person has just asked for it")
    if not on and name == context.address.channel:
        raise ToolError("this conversation is on that channel: nobody could read the answer")
    try:
        write = partial(store_setting, settings, ["channels", name, "enabled"], on)
        await anyio.to_thread.run_sync(write)
    except (OSError, ConfigError) as error:
        raise ToolError(f"the configuration was not changed: {error}") from error
