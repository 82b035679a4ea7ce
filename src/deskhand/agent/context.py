"""The one place where a request is built: the prompt, the conversation as the model is shown it,
the tools, and how much of it fits."""

from __future__ import annotations

from collections.abc import Callable

from ..models.base import ContextMessage, Model, Request, is_selective
from ..models.client_request import apply_client_request
from ..models.window import TIGHT_WINDOW, fit_request
from .agent import Agent
from .masking import apply_variants
from .state import State


def build_request(
    agent: Agent, state: State, draft: Request, scale: float, open_model: Callable[[str], Model]
) -> Request:
    """What the model `provider/name` of the draft is asked, with the tools of the draft. `scale` is
    by how much that model counts more tokens than we do.

    Raises ContextOverflow when even the last message does not fit.
    """
    request = Request(
        model=draft.model.partition("/")[2],
        system=agent.context.blocks(state),
        messages=show_messages(state),
        tools=draft.tools,
        max_output_tokens=agent.limits.output_tokens,
        thinking=agent.thinking,
        temperature=agent.temperature,
        encoded=draft.encoded,
        blob=draft.blob,
    )
    turn = state.turn
    if turn is not None and turn.request is not None:
        with_tools = "final" not in turn.hinted
        request = apply_client_request(request, turn.request, tools=with_tools)

    limits = agent.limits_for(draft.model)
    if limits.window < TIGHT_WINDOW and is_selective(open_model(draft.model)):
        return request  # it takes of the request what it has room for
    in_turn = len(state.turn.said) if state.turn else 0
    return fit_request(request, limits, state.context_tokens, scale, in_turn)


def show_messages(state: State) -> tuple[ContextMessage, ...]:
    """The messages of a request. They only grow at their end, except where a `Masked` or
    `Compacted` event moved them, or a newer picture took the pixels of an older one."""
    return apply_variants(state.messages, state.pictures, state.masked_up_to)
