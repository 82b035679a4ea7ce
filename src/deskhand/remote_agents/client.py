"""Asks agents elsewhere, over our guarded connections: one task is begun, looked at and cancelled
in the same way whichever protocol they speak."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import anyio
import msgspec
from msgspec.structs import replace

from ..config.remote_agents import RemoteAgentConfig
from ..net.client import Fetched, Net, NetLimits, OutboundRequest
from ..net.url import parse_url
from ..types.errors import AddressRefused, NetError, ToolError
from ..web.a2a_wire import CARD_PATH
from .wire import (
    MAX_SAID,
    AgentInterface,
    RemoteRun,
    make_a2a_message,
    make_a2a_request,
    make_acp_run,
    quote_remote,
    read_a2a_run,
    read_acp_run,
    read_card,
)

LIMITS = NetLimits(body_bytes=2 << 20, total_s=60.0, idle_s=50.0, redirects=0)
"""An address that leads elsewhere is not followed: the token would go along."""
MAX_LISTED = 50
MAX_FAILED = 4
FIRST_LOOK_S = 0.2
LONGEST_LOOK_S = 5.0
Sign = Callable[[bytes], Mapping[str, str]]
"""The headers that sign a request with this body."""


class TokenRefused(ToolError):
    """The agent wants a token, or another one."""


class RemoteAgent:
    """One of the settings, called `name`. All methods raise ToolError."""

    def __init__(
        self,
        name: str,
        config: RemoteAgentConfig,
        net: Net,
        token: str = "",
        sign: Sign | None = None,
        limits: NetLimits = LIMITS,
    ) -> None:
        self.name = name
        self.config = config
        self._token = token
        self._sign = sign
        self._limits = limits
        try:
            base = parse_url(config.url)
        except AddressRefused as error:
            raise ToolError(f"{name}: {error}") from error
        # The word of whoever sets it: it may stand on this machine.
        self._net = net.with_allowed_host(base.host, base.port)
        self._base = config.url.rstrip("/")
        self._interface: AgentInterface | None = None

    async def begin(
        self, text: str, *, message_id: str, session: str = "", run_id: str = ""
    ) -> RemoteRun:
        """Send a message, to a new task or to one that waits for an answer."""
        if self.config.protocol == "acp":
            body = make_acp_run(text, agent_id=self.config.agent_id, session=session)
            return read_acp_run(await self._ask("POST", f"{self._base}/runs", body))
        interface = await self._find_interface()
        method, params = make_a2a_message(
            text, interface.version, message_id=message_id, session=session, run_id=run_id
        )
        return await self._call(interface, method, params, message_id)

    async def look(self, run_id: str) -> RemoteRun:
        """How the task is now."""
        if self.config.protocol == "acp":
            return read_acp_run(await self._ask("GET", self._run_url(run_id)))
        interface = await self._find_interface()
        method = "GetTask" if interface.version == "1.0" else "tasks/get"
        return await self._call(interface, method, {"id": run_id}, "look")

    async def cancel(self, run_id: str) -> None:
        if self.config.protocol == "acp":
            await self._ask("DELETE", self._run_url(run_id))
            return
        interface = await self._find_interface()
        method = "CancelTask" if interface.version == "1.0" else "tasks/cancel"
        await self._call(interface, method, {"id": run_id}, "cancel")

    async def wait(self, run: RemoteRun, seconds: float, show: Callable[[str], None]) -> RemoteRun:
        """Until it rests, or so long, or it cannot be looked at: what is known of it is not lost
        then. `show` gets what it says meanwhile, piece by piece."""
        shown = 0
        pause = FIRST_LOOK_S
        failed = 0
        with anyio.move_on_after(seconds):
            while not run.rests and failed < MAX_FAILED:
                await anyio.sleep(pause)
                pause = min(pause * 1.5, LONGEST_LOOK_S)
                try:
                    run = await self.look(run.id)
                    failed = 0
                except ToolError as error:
                    failed += 1
                    run = replace(run, problem=str(error))
                if len(run.text) > shown:
                    show(run.text[shown:])
                    shown = len(run.text)
        return run

    async def list_agents(self) -> list[str]:
        """The agents at this address, with what they say they are."""
        if self.config.protocol == "acp":
            found = await self._ask("GET", f"{self._base}/agents")
            agents = found.get("agents") if isinstance(found, dict) else None
            if not isinstance(agents, list):
                raise ToolError("it answered something that is no list of agents")
            return [_describe(each, "id") for each in agents[:MAX_LISTED] if isinstance(each, dict)]
        card = await self._ask("GET", f"{self._base}{CARD_PATH}")
        read_card(card, f"{self._base}/")
        return [_describe(card, "name")]

    def _run_url(self, run_id: str) -> str:
        return f"{self._base}/runs/{quote(run_id, safe='~')}"

    async def _find_interface(self) -> AgentInterface:
        if self._interface is None:
            card = await self._ask("GET", f"{self._base}{CARD_PATH}")
            self._interface = read_card(card, f"{self._base}/")
        return self._interface

    async def _call(
        self, interface: AgentInterface, method: str, params: Mapping[str, Any], id_: str
    ) -> RemoteRun:
        body = make_a2a_request(method, params, id_)
        return read_a2a_run(await self._ask("POST", interface.url, body, interface.version))

    async def _ask(
        self, method: str, url: str, body: bytes | None = None, version: str = ""
    ) -> Any:
        """The JSON of the answer; None for an empty one."""
        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/json"
        if version:
            headers["a2a-version"] = version
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        if self._sign is not None:
            headers |= self._sign(body or b"")
        try:
            request = OutboundRequest(parse_url(url), headers, method, body)
            fetched = await self._net.send(request, self._limits)
        except NetError as error:
            # A model does not see the address.
            why = str(error).replace(parse_url(url).origin, "it")
            raise ToolError(f"{self.name} cannot be reached: {why}") from error
        return self._read(fetched)

    def _read(self, fetched: Fetched) -> Any:
        said = quote_remote(fetched.body[:MAX_SAID].decode(errors="replace"))
        if fetched.status in (401, 403):
            raise TokenRefused(
                f"{self.name} refused the token ({fetched.status}): {said or 'no reason'}"
            )
        if fetched.status >= 300:
            raise ToolError(f"{self.name} answered {fetched.status}: {said or 'no reason'}")
        if not fetched.body.strip():
            return None
        try:
            return msgspec.json.decode(fetched.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ToolError(f"{self.name} answered something that is no JSON") from error


def _describe(agent: Any, key: str) -> str:
    """A line about an agent, in its own words."""
    if not isinstance(agent, dict):
        raise ToolError("it answered something that is no agent")
    name = agent.get(key)
    if not isinstance(name, str) or not name.strip():
        raise ToolError("it answered something that is no agent")
    said = quote_remote(str(agent.get("description", "")))
    return f"{quote_remote(name)[:100]}: {said}".rstrip(": ")
