"""A browser for tests: a real Chromium in the real sandbox, for which local sites are public."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import ByteStream
from msgspec.structs import replace

from deskhand.computer.browser.browsers import Browsers
from deskhand.computer.browser.sign_ins import SignIns
from deskhand.computer.browser.tool import BrowserTool
from deskhand.net.client import NetLimits
from deskhand.net.egress import EgressHost, find_target_problem
from deskhand.net.egress_door import Slots, open_egress_socket
from deskhand.net.egress_proxy import Use
from deskhand.net.egress_secrets import SecretBroker
from deskhand.testing.site import PUBLIC, LocalSite
from deskhand.tools.base import Context, Done
from deskhand.tools.command_network import CommandNetwork, NetworkUser
from deskhand.types.errors import ToolError
from tests.tools.conftest import Hands, OtherHost, hands, room, text_of

__all__ = ["hands", "room"]


class Surfer:
    """Calls the tool as the agent does. `refused` says why nothing may be sent, '' that it may;
    `allowed` are the hosts to which alone it may, where that is set."""

    def __init__(self, hands: Hands, site: LocalSite, browsers: Browsers | None = None) -> None:
        self.hands = hands
        self.site = site
        self.net = site.net({"other.test": (PUBLIC,), "evil.test": (PUBLIC,)}, NetLimits())
        self.browsers = browsers or Browsers()
        self.sign_ins = SignIns(hands.folder.parent / "sign_ins")
        self.tool = BrowserTool(self.browsers, self._find_refusal, self.sign_ins)
        self.refused = ""
        self.allowed: tuple[str, ...] | None = None
        self.uses: list[Use] = []

    async def _find_refusal(self, user: NetworkUser, host: str, port: int) -> str:
        if self.allowed is not None and host not in self.allowed:
            return f"{host} is not allowed"
        return self.refused

    @asynccontextmanager
    async def open_network(self, network_user: NetworkUser) -> AsyncIterator[CommandNetwork]:
        network = CommandNetwork(reached={}, refused={})
        policy = _SitePolicy(self, network_user, network)
        async with open_egress_socket(policy, Slots()) as network.path:
            yield network

    async def context(self) -> Context:
        context = await self.hands.context()
        host = OtherHost(context.reach.host, network=self.open_network)
        return replace(context, reach=replace(context.reach, net=self.net, host=host))

    async def done(self, action: str, **arguments: Any) -> Done:
        raw = msgspec.Raw(msgspec.json.encode({"action": action, **arguments}))
        outcome = await self.tool.run(raw, await self.context())
        assert isinstance(outcome, Done)
        await self.hands.store.change(outcome.changes)
        return outcome

    async def __call__(self, action: str, **arguments: Any) -> str:
        return text_of(await self.done(action, **arguments))

    async def fails(self, action: str, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            await self(action, **arguments)
        return str(caught.value)

    async def open(self, html: str, path: str = "/page") -> str:
        """Have the site show this, and open it."""
        self.site.page(path, html)
        return await self("open", url=self.site.url(path))

    async def ref(self, name: str, role: str = "") -> str:
        """The ref of what is called so."""
        found = await self("find", text=name, role=role)
        line = found.splitlines()[1]
        assert line.startswith("e"), found
        return line.partition(" ")[0]

    async def title(self) -> str:
        """The title of the tab that is shown."""
        browser = self.browsers.peek(self.hands.session)
        assert browser is not None and browser.current is not None
        await browser.current.look()
        return browser.current.title


class _SitePolicy:
    """What the proxy of the browser lets through: the site's port on three names."""

    def __init__(self, surfer: Surfer, user: NetworkUser, network: CommandNetwork) -> None:
        self._surfer = surfer
        self._user = user
        self._network = network

    async def find_refusal(self, host: str, port: int) -> str:
        site = self._surfer.site
        names = (site.host, "other.test", "evil.test")
        entries = [EgressHost(name, ports=(site.port,)) for name in names]
        return find_target_problem(host, port, public=self._user.public, entries=entries)

    async def get_label(self) -> object:
        return None

    async def connect(self, host: str, port: int) -> ByteStream:
        return await self._surfer.net.connect(host, port)

    def secrets_for(self, host: str, port: int) -> SecretBroker | None:
        return None

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def server_context(self, host: str) -> ssl.SSLContext | None:
        return None

    def record_use(self, use: Use) -> None:
        self._surfer.uses.append(use)
        if use.refused:
            self._network.refused[use.host] = use.refused


@pytest.fixture
async def surfer(hands: Hands) -> AsyncIterator[Surfer]:
    async with LocalSite() as site, anyio.create_task_group() as tasks:
        surfer = Surfer(hands, site)
        tasks.start_soon(surfer.browsers.run)
        await anyio.sleep(0)
        yield surfer
        tasks.cancel_scope.cancel()
