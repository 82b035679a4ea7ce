"""Builds what the tools of all agents share: files, commands, the network, undo, and processes."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from ..assembly.host import Host
from ..config.config import Config, workspace_path
from ..gateway.housekeeping import SWEEP_S
from ..secrets.command_egress import Egress
from ..secrets.inbound_redaction import redact_message
from ..secrets.proxy_keys import ProxyKeys
from ..tools.label_marks import encode_path
from ..tools.queries import set_label
from ..types.errors import StoreUnavailable, ToolError
from ..types.labels import Label
from ..types.messages import Message
from ..workspace.attachments import unpack_files
from ..workspace.diffs import Diffs
from ..workspace.processes import Background
from ..workspace.scope import Outward, ToolScopes
from ..workspace.undo_journal import UndoJournal

log = logging.getLogger(__name__)

RECOVERY_RETRY_S = 1.0


class ToolWiring:
    """The tool `scopes` of agents, the undo journal `effects` with its `diffs`, the processes in
    the `background`, and the `egress` of what runs in the sandbox."""

    def __init__(self, ground: Host) -> None:
        self.host = ground
        home = ground.settings().home
        keys = ProxyKeys(ground.secrets, home, ground.clock, ground.net)
        self.egress = egress = Egress(
            ground.store, ground.net, lambda: self._config.egress, ground.clock, keys
        )
        self.background = Background(ground)
        self.scopes = ToolScopes(
            ground.store,
            ground.blobs,
            ground.sandbox,
            net=ground.net,
            undo=lambda: self._config.undo,
            outward=Outward(
                egress.open_network, ground.redact, self.background, editors=home.editors
            ),
        )
        self.effects = UndoJournal(ground.store, ground.open_scope, ground.clock, ground.ids)
        self.diffs = Diffs(ground.store, ground.open_scope)

    @property
    def _config(self) -> Config:
        return self.host.settings().config

    async def unpack_message(self, session: str, message: Message) -> Message:
        """Put the files of a message into the workspace, and add to the message what the model is
        shown of them. A message whose files cannot be opened stays as it is."""
        ground = self.host
        try:
            reach = await ground.agent_of(session).workspace.open_scope()
        except ToolError as error:
            log.warning("Could not open the files of a message: %s", error)
            return message

        async def mark(real: str, label: Label) -> None:
            row = set_label(encode_path(real), label, session, ground.clock.now())
            await ground.store.change((row,))

        return redact_message(
            await unpack_files(message, ground.blobs.get, reach.files, mark), ground.redact
        )

    async def recover(self, agents: Collection[str]) -> None:
        """Record and label what commands of these agents did that were killed with the process that
        drove them. Nothing of them is driven before that, so nobody reads it without its label."""
        self.scopes.require_recovery()
        while True:
            try:
                await self.effects.record_interrupted(agents)
                if self.host.store.shares_work:
                    await self.background.recover(agents)
            except StoreUnavailable as error:
                log.warning(
                    "Waiting to start: the store is not available (%s). Retrying in %.0f s.",
                    error,
                    RECOVERY_RETRY_S,
                )
                await anyio.sleep(RECOVERY_RETRY_S)
            else:
                return

    async def clean_up(self) -> None:
        """Delete what is no longer kept to undo changes."""
        kept = self._config.undo
        await self.effects.expire(self.host.blobs, kept.days, kept.mb)

    def _prune(self, places: Sequence[Path]) -> None:
        self.scopes.prune({os.path.realpath(place) for place in places})

    async def run_tidying(self) -> None:
        """Now and then record what killed commands of the agents did that are driven here, and
        delete the copies of their files that are not needed any more. For ever."""
        while True:
            settings = self.host.settings()
            own = [name for name in settings.agents if self.host.dispatch.may_drive(f"{name}/")]
            await self.effects.record_interrupted(own)
            places = [workspace_path(settings, name) for name in own]
            await anyio.to_thread.run_sync(self._prune, places)
            await anyio.sleep(SWEEP_S)
