"""What features stand on: the parts of one running Deskhand that they share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from ..agent.profile import Agent
from ..config.config import Settings
from ..gateway.dispatch import Dispatch
from ..gateway.machine_rounds import MachineRounds
from ..net.client import Net
from ..secrets.redaction import Redactor
from ..secrets.secrets import Secrets
from ..store.base import Store
from ..store.blobs import Blobs
from ..types.clock import Clock, Ids
from ..types.identity import Principal
from ..users.owner_alerts import Alerts
from ..workspace.scope import SandboxProvider


class Host(msgspec.Struct, frozen=True):
    """What they stand on. `settings` are those that hold now, `agent_of` says who drives a
    conversation, `as_now` gives a person the roles that they still have, `alerts` are how owners
    are told something, `rounds` count what programs begin."""

    store: Store
    blobs: Blobs
    sandbox: SandboxProvider
    net: Net
    clock: Clock
    ids: Ids
    secrets: Secrets
    redact: Redactor
    dispatch: Dispatch
    settings: Callable[[], Settings]
    agent_of: Callable[[str], Agent]
    with_current_roles: Callable[[Principal], Awaitable[Principal]]
    alerts: Alerts
    rounds: MachineRounds
