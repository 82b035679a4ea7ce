"""What the tools of all agents reach, wired once: files, commands, the network, undo, and what runs
beside."""

from __future__ import annotations

import logging

import anyio.to_thread
import msgspec

from ..assembly.host import Host
from ..config.config import Config
from ..secrets.egress_rules import Egress
from ..secrets.inbound_redaction import hidden_message
from ..secrets.proxy_keys import keys
from ..tools.base import ToolScope
from ..tools.label_marks import stored_as
from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import Label
from ..types.messages import Message
from ..workspace.attachments import with_files
from ..workspace.diffs import Diffs
from ..workspace.processes import Background, Beside
from ..workspace.scope import Outward, ToolScopes
from ..workspace.undo_journal import Effects

log = logging.getLogger(__name__)


class ToolWiring:
    """`reaches` of agents, `effects` that can be undone, their `diffs`, and the `background`, where
    commands go on."""

    def __init__(self, ground: Host) -> None:
        self.ground = ground
        home = ground.settings().home
        held = keys(ground.secrets, home, ground.clock, ground.net)
        egress = Egress(ground.store, ground.net, lambda: self._config.egress, ground.clock, held)
        outward = Outward(egress.way, ground.redact.data)
        undo = lambda: self._config.undo  # noqa: E731 -- beside its neighbours
        self.reaches = ToolScopes(
            ground.store, ground.blobs, ground.room, ground.net, undo, outward
        )
        self.effects = Effects(ground.store, self._reach, ground.clock, ground.ids)
        self.diffs = Diffs(ground.store, self._reach)
        beside = Beside(
            self._reach,
            lambda: self._config.processes,
            ground.dispatch,
            ground.as_now,
            ground.redact,
            ground.rounds,
        )
        self.background = Background(ground.store, home.processes, ground.clock, ground.ids, beside)
        self.reaches.processes = lambda: self.background

    @property
    def _config(self) -> Config:
        return self.ground.settings().config

    async def _reach(self, agent: str) -> ToolScope:
        return await self.ground.agent_of(agent).reach()

    async def unpack(self, session: str, message: Message) -> Message:
        """The message with what the model is to be shown of the files in it, which come to lie in
        the workspace."""
        ground = self.ground
        try:
            reach = await ground.agent_of(session).reach()
        except ToolError as error:
            log.warning("the files of a message were not opened: %s", error)
            return message

        async def mark(real: str, label: Label) -> None:
            row = (stored_as(real), msgspec.json.encode(label), session, ground.clock.now())
            await ground.store.change((Change("file_label_set", row),))

        return hidden_message(
            await with_files(message, ground.blobs.get, reach.files, mark), ground.redact
        )

    async def look_back(self) -> None:
        """Note and mark what commands did that were killed with a process that was here until
        now."""
        self.reaches.look_again()
        await self.effects.make_up(self.ground.settings().agents)

    async def tidy(self) -> None:
        """Note what commands did that were killed with a process, and let go of what was kept to
        undo changes, by the settings."""
        await self.effects.make_up(self.ground.settings().agents)
        kept = self._config.undo
        await self.effects.expire(self.ground.blobs, kept.days, kept.mb)
        await anyio.to_thread.run_sync(self.reaches.prune)
