"""What features share of a running Deskhand."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..agent.agent import Agent
from ..assembly.host import Host
from ..channels.base import Channel
from ..config.config import Settings
from ..gateway.dispatch import Dispatch
from ..gateway.machine_rounds import MachineRounds
from ..gateway.publisher import EventPublisher
from ..net.client import Net
from ..secrets.redaction import Redactor
from ..secrets.secrets import Secrets
from ..store.base import Store
from ..store.blobs import Blobs
from ..tools.base import ToolScope
from ..types.clock import Clock, Ids
from ..types.identity import Principal
from ..types.people import People
from ..users.owner_alerts import Alerts
from ..users.reader_languages import ReaderLanguages
from ..workspace.processes import with_current_roles
from ..workspace.scope import SandboxProvider
from .reload import Current


class RunningHost(msgspec.Struct, kw_only=True):
    """Implements `assembly.host.Host`. `channels` are all that people write on. Without `people`
    the roles of principals never change: they are known elsewhere."""

    store: Store
    blobs: Blobs
    sandbox: SandboxProvider
    net: Net
    clock: Clock
    ids: Ids
    secrets: Secrets
    redact: Redactor
    dispatch: Dispatch
    publisher: EventPublisher
    alerts: Alerts
    rounds: MachineRounds
    languages: ReaderLanguages
    current: Current
    channels: Sequence[Channel] = ()
    people: People | None

    def settings(self) -> Settings:
        return self.current.settings

    def agent_of(self, session: str) -> Agent:
        return self.current.agent_of(session)

    async def open_scope(self, agent: str) -> ToolScope:
        return await self.current.agent_of(agent).workspace.open_scope()

    async def with_current_roles(self, principal: Principal) -> Principal:
        if self.people is None:
            return principal
        return with_current_roles(principal, await self.people.users())


_: type[Host] = RunningHost
