"""What the tools of all agents reach, wired once: files, commands, the network, undo, and what runs
beside."""

from __future__ import annotations

import logging

import anyio.to_thread

from ..assembly.host import Host
from ..config.config import Config
from ..secrets.egress_rules import Egress
from ..secrets.inbound_redaction import redact_message
from ..secrets.proxy_keys import make_proxy_keys
from ..tools.label_marks import stored_as
from ..tools.queries import set_label
from ..types.errors import ToolError
from ..types.labels import Label
from ..types.messages import Message
from ..workspace.attachments import unpack_files
from ..workspace.diffs import Diffs
from ..workspace.processes import Background
from ..workspace.scope import Outward, ToolScopes
from ..workspace.undo_journal import UndoJournal

log = logging.getLogger(__name__)


class ToolWiring:
    """`reaches` of agents, `effects` that can be undone, their `diffs`, and the `background`, where
    commands go on."""

    def __init__(self, ground: Host) -> None:
        self.host = ground
        home = ground.settings().home
        held = make_proxy_keys(ground.secrets, home, ground.clock, ground.net)
        egress = Egress(ground.store, ground.net, lambda: self._config.egress, ground.clock, held)
        self.background = Background(ground)
        self.scopes = ToolScopes(
            ground.store,
            ground.blobs,
            ground.sandbox,
            net=ground.net,
            undo=lambda: self._config.undo,
            outward=Outward(egress.way, ground.redact, self.background),
        )
        self.effects = UndoJournal(ground.store, ground.open_scope, ground.clock, ground.ids)
        self.diffs = Diffs(ground.store, ground.open_scope)

    @property
    def _config(self) -> Config:
        return self.host.settings().config

    async def unpack_message(self, session: str, message: Message) -> Message:
        """The message with what the model is to be shown of the files in it, which come to lie in
        the workspace."""
        ground = self.host
        try:
            reach = await ground.agent_of(session).open_scope()
        except ToolError as error:
            log.warning("the files of a message were not opened: %s", error)
            return message

        async def mark(real: str, label: Label) -> None:
            row = set_label(stored_as(real), label, session, ground.clock.now())
            await ground.store.change((row,))

        return redact_message(
            await unpack_files(message, ground.blobs.get, reach.files, mark), ground.redact
        )

    async def recover(self) -> None:
        """Note and mark what commands did that were killed with a process that was here until
        now."""
        self.scopes.require_recovery()
        await self.effects.record_interrupted(self.host.settings().agents)

    async def clean_up(self) -> None:
        """Note what commands did that were killed with a process, and let go of what was kept to
        undo changes, by the settings."""
        await self.effects.record_interrupted(self.host.settings().agents)
        kept = self._config.undo
        await self.effects.expire(self.host.blobs, kept.days, kept.mb)
        await anyio.to_thread.run_sync(self.scopes.prune)
