"""What features share of one running Deskhand."""

from __future__ import annotations

from typing import Protocol

from ..agent.agent import Agent
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
from ..users.owner_alerts import Alerts
from ..workspace.scope import SandboxProvider


class Host(Protocol):
    """The shared parts, and what holds now. Implemented by `runtime.host.RunningHost`."""

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

    def settings(self) -> Settings:
        """The settings that hold now. They change when the configuration is reloaded."""

    def agent_of(self, session: str) -> Agent:
        """The agent that drives this session: its own, or the first one when that is gone."""

    async def open_scope(self, agent: str) -> ToolScope:
        """What the tools of this agent may touch now. Raises ToolError when its workspace cannot be
        opened."""

    async def with_current_roles(self, principal: Principal) -> Principal:
        """The same person with those of their roles that they still have."""
