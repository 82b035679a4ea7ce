"""What triggers look at: files of workspaces, pages, secrets, and the configured broker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from ..assembly.host import Host
from ..config.config import workspace_of
from ..net.message_broker import MessageBroker
from ..tools.base import Context
from ..tools.label_marks import load_scope_marks
from ..tools.pages import read_page
from ..types.identity import Address, Principal
from ..types.jobs import Job
from ..types.labels import Label
from ..types.people import OWNER_NAME
from .triggers.queries import load_state, save_state
from .triggers.triggers import TriggerSources

BROKER_KEY = ("", "mqtt")
"""Where the name is stored under which the broker knows this home."""


class HostSources:
    """Sources as they are on this machine. Implements `TriggerSources`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def agent_of(self, job: Job) -> str:
        agents = self._host.settings().agents
        return job.agent if job.agent in agents else agents[0]

    def workspace_of(self, job: Job) -> Path:
        return workspace_of(self._host.settings(), self.agent_of(job)).resolve()

    async def labels_of(self, job: Job, paths: Sequence[str]) -> Sequence[Label]:
        if not paths:
            return ()
        agent = job.agent or self._host.settings().agents[0]
        scope = await self._host.agent_of(f"{agent}/").workspace.open_scope()
        marks = await load_scope_marks(scope)
        return await anyio.to_thread.run_sync(
            lambda: [marks.listing_label_by_name((path,)) for path in paths]
        )

    async def fetch_page(self, job: Job, url: str) -> str:
        host = self._host
        agent = self.agent_of(job)
        fetched = await host.net.get(url)
        session = f"{agent}/job:{job.name}"
        context = Context(
            session=session,
            principal=Principal(f"job:{job.name}", (), "clock", job.person or OWNER_NAME),
            address=Address("job", "", job.name),
            agent=agent,
            reach=await host.agent_of(session).workspace.open_scope(),
            clock=host.clock,
            ids=host.ids,
            key=f"{session}:page",
        )
        return (await read_page(fetched, "", context)).text

    def find_secret(self, name: str) -> str:
        for secret in self._host.secrets.list_secrets():
            if secret.name == name:
                return secret.value
        return ""

    async def find_broker(self) -> MessageBroker | None:
        """The broker of the configuration, None when it names no host."""
        config = self._host.settings().config.jobs.mqtt
        if not config.host:
            return None
        return MessageBroker(
            host=config.host,
            port=config.port,
            username=config.username,
            password=self.find_secret(config.secret) if config.username else "",
            client_id=await self._broker_client_id(),
            tls=config.tls,
        )

    async def _broker_client_id(self) -> str:
        """The name under which a broker knows this home. It never changes."""
        store = self._host.store
        name = await load_state(store, *BROKER_KEY)
        if not name:
            name = self._host.ids.new("deskhand")
            await store.change([save_state(*BROKER_KEY, name, self._host.clock.now())])
        return name


_sources: type[TriggerSources] = HostSources
