"""One agent of the configuration, ready to be driven."""

from __future__ import annotations

from datetime import tzinfo
from functools import cached_property

import msgspec
from msgspec.structs import replace

from ..models.base import ThinkingLevel
from ..tools.base import Tools
from ..tools.deferred import ToolSchemas
from ..tools.hooks import PluginHooks
from ..types.limits import Limits
from ..types.options import SessionOptions
from ..types.teams import TeamMembership
from .protocols import Commands, ContextSource, Judge, ModelLimits, ScopeSource


class Agent(msgspec.Struct, frozen=True, dict=True, kw_only=True):
    """What an agent is made of.

    `models` is its fallback chain, the first one first, each `provider/name`; `cheap_model` is
    tried before them for what is asked beside the conversation, `compact_model` before that for
    summaries. `folder` is the path of its
    workspace, `zone` the time zone in which messages are dated, `profile` the name of the rules of
    the sandbox. `hooks` is None where no plugin has any; without `model_limits` the limits are the
    same with every model. `depth` is 1 for a sub-agent, 2 for one that a sub-agent has begun.
    `membership` is its place in a team, where it is a teammate. `stands_in_for` are the models in
    whose place a script stands: it is not to be replaced, and they are asked beside it.
    """

    name: str
    models: tuple[str, ...]
    tools: Tools
    context: ContextSource
    judge: Judge
    workspace: ScopeSource
    commands: Commands
    folder: str
    limits: Limits = Limits()
    model_limits: ModelLimits | None = None
    cheap_model: str = ""
    compact_model: str = ""
    compact_temperature: float | None = None
    thinking: ThinkingLevel = "off"
    temperature: float | None = None
    zone: tzinfo | None = None
    profile: str = "default"
    hooks: PluginHooks | None = None
    depth: int = 0
    membership: TeamMembership | None = None
    stands_in_for: tuple[str, ...] = ()

    @cached_property
    def schemas(self) -> ToolSchemas:
        """What models are told of its tools; made once for all of its conversations."""
        return ToolSchemas(self.tools)

    def limits_for(self, model: str) -> Limits:
        """What a turn may use while this model is asked."""
        if self.model_limits is None or model in self.models[:1]:
            return self.limits
        return self.model_limits.of(model)


def with_options(agent: Agent, options: SessionOptions) -> Agent:
    """The agent as a session with these options has it."""
    thinking = options.thinking or agent.thinking
    model = options.model
    if not model or agent.stands_in_for:
        return replace(agent, thinking=thinking)

    others = (other for other in agent.models if other != model)
    return replace(
        agent, models=(model, *others), thinking=thinking, limits=agent.limits_for(model)
    )
