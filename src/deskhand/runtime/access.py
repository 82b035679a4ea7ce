"""Decides who may come in through the door, by the settings that hold now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from zoneinfo import ZoneInfo

from ..agent.state import State
from ..assembly.factory import make_options_check
from ..config.routing import route
from ..gateway.door import Access, AnswerRouter
from ..gateway.handoffs import Handoffs
from ..gateway.thread_history import ThreadHistory
from ..models.base import Model
from ..types.identity import Inbound, Principal
from ..types.options import SessionOptions
from ..users.notification_commands import NotificationCommands
from ..users.private_chats import PrivateChats
from ..users.users import LocalPeople
from .host import RunningHost
from .tool_wiring import ToolWiring


class LocalAccess:
    """Implements `gateway.door.Access`. Without `authorize` the users in the store are asked;
    `model` opens `provider/name`."""

    def __init__(
        self,
        host: RunningHost,
        people: LocalPeople,
        tools: ToolWiring,
        model: Callable[[str], Model],
        authorise: Callable[[Inbound], Principal | None] | None,
        answers: AnswerRouter,
    ) -> None:
        self.answers = answers
        self.rounds = host.rounds
        self.threads = ThreadHistory(host.channels)
        self.notifications = NotificationCommands(host.store)
        self.languages = host.languages
        chats = PrivateChats(host.store, tuple(each.name for each in host.channels))
        self.handoffs = Handoffs(host.store, chats, self.route)
        self.redact = host.redact
        self.zone: tzinfo | None = ZoneInfo(host.settings().config.timezone)
        self.authorize = authorise or people.authorize
        self.may_talk = people.may_talk
        self.note_refusal = people.add_audit_note
        self.unpack_message = tools.unpack_message
        self._host = host
        self._model = model

    def route(self, inbound: Inbound) -> str:
        settings = self._host.settings()
        return route(settings.config.bindings, settings.agents, inbound.address)

    def accepts_bots(self, channel: str) -> bool:
        config = self._host.settings().config.channels.get(channel)
        return config is not None and config.bots

    def options_problem(self, principal: Principal, session: str, options: SessionOptions) -> str:
        check = make_options_check(self._host.settings(), self._model)
        return check(principal, session, options)

    def render_prompt(self, state: State) -> tuple[str, ...]:
        return self._host.agent_of(state.session).context.blocks(state)


_: type[Access] = LocalAccess
