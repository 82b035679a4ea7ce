"""What one agent is, and what it needs of the house around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import tzinfo
from functools import cached_property
from typing import Protocol

import msgspec
from anyio import CapacityLimiter
from msgspec.structs import replace

from ..models.answer_schema import make_check_limiter
from ..models.base import Model, ToolSchema
from ..models.base import ThinkingLevel as ThinkingLevel
from ..models.meter import UsageMeter
from ..policy.rules import Case, Decision
from ..store.base import Store
from ..tools.base import Tools, ToolScope
from ..tools.deferred import make_schemas
from ..tools.hooks import PluginHooks
from ..types.budget import Budgets, no_budget
from ..types.clock import Clock, Ids
from ..types.commit import Change, Outgoing
from ..types.door import Progress
from ..types.events import AnyEvent, ModelFailed, Recalled, Recorded, Turn
from ..types.identity import Address, Principal
from ..types.limits import Limits
from ..types.messages import Message
from ..types.options import SessionOptions
from ..types.secret_search import SecretStream
from ..types.steps import Condensed
from .admit import CommandRunner
from .state import State


class Agent(msgspec.Struct, frozen=True, dict=True):
    """One agent of the configuration, ready to be driven.

    `models` is the fallback chain, the first one first, each `provider/name`. `prompt` gives the
    blocks of the system prompt for a conversation, the stable ones first. `decide` judges a call.
    `reach` is what its tools may touch now, `folder` its workspace. `zone` dates what people say.
    `profile` names the rules of the sandbox. `hooks` are None where nobody has any. `commands`
    carries out chat commands and sets options. `fit` gives the limits with another model in front.
    `cheap_model` is asked first what is asked aside. `recall` looks up in memory what was just
    said, `condense` sums up messages that are to go, above all what a focus says; it never raises.
    """

    name: str
    models: tuple[str, ...]
    prompt: Callable[[State], tuple[str, ...]]
    tools: Tools
    decide: Callable[[Case], Decision]
    open_scope: Callable[[], Awaitable[ToolScope]]
    folder: str
    limits: Limits = Limits()
    thinking: ThinkingLevel = "off"
    temperature: float | None = None
    zone: tzinfo | None = None
    profile: str = "default"
    hooks: PluginHooks | None = None
    commands: CommandRunner = lambda state, waiting: None
    limits_for: Callable[[str], Limits] | None = None
    cheap_model: str = ""
    recall: Callable[[State], Awaitable[Recalled | None]] | None = None
    summarize: Callable[[State, Sequence[Message], str], Awaitable[Condensed]] | None = None

    @cached_property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """What models are told of its tools; made once for all of its conversations."""
        return make_schemas(self.tools)


def with_options(agent: Agent, options: SessionOptions) -> Agent:
    """The agent as a session with these options has it."""
    model = options.model
    thinking = options.thinking or agent.thinking
    if not model:
        return replace(agent, thinking=thinking)
    models = (model, *(other for other in agent.models if other != model))
    return replace(
        agent,
        models=models,
        thinking=thinking,
        limits=agent.limits_for(model) if agent.limits_for else agent.limits,
    )


class Hiding(Protocol):
    """Takes secrets out of what is about to be remembered or shown."""

    def redact_event(self, event: AnyEvent) -> AnyEvent:
        """The event without any."""
        ...

    def redact_outgoing(self, outgoing: Outgoing) -> Outgoing:
        """What is to be said without any."""
        ...

    def stream(self) -> SecretStream | None:
        """For a text that comes in pieces; None: there are no secrets."""
        ...


class NoSecrets:
    """Where there are none."""

    def redact_event(self, event: AnyEvent) -> AnyEvent:
        return event

    def redact_outgoing(self, outgoing: Outgoing) -> Outgoing:
        return outgoing

    def stream(self) -> SecretStream | None:
        return None


class Ports(msgspec.Struct, frozen=True):
    """What drivers share.

    `model` opens a model of the chain; raises ModelError. `retry` says which model to try next, and
    when, after these failures of the step, or None for no more. `publish` hands events and progress
    to whoever follows and never waits. `posts` tells whether answers at this address go through the
    outbox; elsewhere people read them from the log. `back` puts back the files and key-values of
    the turns that these events take back, and says so in the reply. `elsewhere` names who may allow
    what is asked in a session, where nobody may who takes part in it, `owners_at` tells where
    owners can be asked alone. `closing` gives what people are told at the end of a turn beside its
    answer, and the rows that say so. `secrets` takes them out before anything is remembered or
    shown. `meter` compares how models count with how we do, `budgets` keep what they use within
    what was set. `checkers` are the places for checks of an answer's schema.
    """

    store: Store
    open_model: Callable[[str], Model]
    next_try: Callable[[Sequence[str], Sequence[ModelFailed], float], tuple[str, float] | None]
    clock: Clock
    ids: Ids
    publish: Callable[[str, Recorded | Progress], None]
    uses_outbox: Callable[[Address], bool]
    blob: Callable[[str], Awaitable[bytes]] | None = None
    find_approvers: Callable[[str], Awaitable[tuple[str, ...]]] | None = None
    secrets: Hiding = NoSecrets()
    revert_effects: Callable[[str, Principal, list[AnyEvent]], Awaitable[list[AnyEvent]]] | None = (
        None
    )
    meter: UsageMeter = msgspec.field(default_factory=UsageMeter)
    schema_limiter: CapacityLimiter = msgspec.field(default_factory=make_check_limiter)
    budgets: Budgets = no_budget
    owner_addresses: Callable[[], Awaitable[Sequence[Address]]] | None = None
    close_turn: Callable[[str, Turn], Awaitable[tuple[str, tuple[Change, ...]]]] | None = None
