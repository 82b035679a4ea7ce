"""What of a conversation is shown to a model that has room for less. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..types.errors import ContextOverflow
from ..types.labels import LOCAL
from ..types.limits import Limits
from ..types.messages import Message, Text
from ..types.turn import BESIDE
from .base import ContextMessage, Encoded, Request, ToolSchema, schema_of
from .tokens import CHARS_PER_TOKEN, CUTS, length, shorten, tokens

KEEP = 4
"""So many of the last steps stay: a reply of the model, with the results of its calls."""
ANSWER_TOKENS = 4096
"""Room that is left for an answer where nobody said how long it may be; never more than a quarter
of the window."""
WORTH = 0.15
LEAST = 200
"""What is less than this part of the window is not shortened, and nothing to fewer tokens."""
TIGHT = 16_000
"""Below this a model may have a way of its own to fit what it is given."""
SURE = 0.75
"""A request below this part of the room is not measured again."""


class Cut(msgspec.Struct, frozen=True):
    """`kept` are messages by their place, some of them shortened, `dropped` the places of all
    others."""

    kept: tuple[tuple[int, Message], ...]
    dropped: tuple[int, ...] = ()


def fit(messages: Sequence[Message], drop_to: int, cut_to: int | None = None) -> Cut:
    """Drop the oldest whole exchanges until about `drop_to` tokens are left (0: half of what there
    is), then the oldest steps of the last exchange; then cut long texts in their middle until about
    `cut_to` tokens are (None: as many).

    What a person said last stays, with the last steps; a call never loses its result.
    """
    drop_to = drop_to or sum(map(tokens, messages)) // 2
    cut_to = drop_to if cut_to is None else cut_to
    for keep in (KEEP, 1):
        places = _left(messages, drop_to, keep)
        kept = [messages[i] for i in places]
        for limit in CUTS:
            if sum(map(tokens, kept)) <= cut_to:
                break
            kept = [shorten(message, limit) for message in kept]
        if sum(map(tokens, kept)) <= cut_to:
            break
    return Cut(
        tuple(zip(places, kept, strict=True)), tuple(sorted({*range(len(messages))} - {*places}))
    )


def _left(messages: Sequence[Message], budget: int, keep: int) -> list[int]:
    """The places of what stays without being cut, with at least so many steps of the last
    exchange."""
    sizes = [tokens(message) for message in messages]
    left = sum(sizes)
    start = 0
    before = 0
    for i in [
        i for i, message in enumerate(messages) if message.role == "user" and not is_hint(message)
    ] or [0]:
        left = left - sum(sizes[before:i])
        start = i
        before = i
        if left <= budget:
            break
    steps = [i for i in range(start + 1, len(messages)) if messages[i].role == "assistant"]
    end = first = steps[0] if steps else len(messages)
    for i in steps[1 : len(steps) - keep + 1]:
        if left <= budget:
            break
        left = left - sum(sizes[end:i])
        end = i
    return [i for i in range(start, len(messages)) if not first <= i < end]


def is_hint(message: Message) -> bool:
    """The runtime said it to the model, not a person."""
    return all(
        isinstance(part, Text) and (part.label == LOCAL or is_beside(part))
        for part in message.parts
    )


def is_beside(part: Text) -> bool:
    """The runtime tells it beside a person's words: what memory holds, how the tasks stand."""
    return part.label.integrity in ("tool_local", "untrusted") and part.text.startswith(BESIDE)


def fresh(messages: Sequence[ContextMessage]) -> int:
    """About how many tokens came since the model last replied."""
    found = 0
    for shown in reversed(messages):
        if shown.message.role == "assistant":
            break
        found += tokens(shown.message)
    return found


def room(window: int, output_tokens: int | None) -> int:
    """How many tokens a request may have, so that there is room for an answer."""
    return window - min(output_tokens or ANSWER_TOKENS, window // 4)


def budget(messages: Sequence[Message], wanted: int, context_tokens: int, limits: Limits) -> int:
    """How many tokens, by our count, messages may keep so that about `wanted` are used in all: what
    the model counted beyond them is the prompt. Where that leaves too little, half of what is
    free."""
    beside = max(0, context_tokens - int(limits.scale * sum(map(tokens, messages))))
    free = room(limits.model_window or limits.window, limits.output_tokens) - beside
    return max(
        LEAST, int((wanted - beside if wanted - beside >= free // 4 else free // 2) / limits.scale)
    )


def worth_it(messages: Sequence[ContextMessage], limits: Limits) -> bool:
    """Whether shortening them would make room: not where the prompt alone is what takes it."""
    return limits.scale * sum(tokens(shown.message) for shown in messages) > WORTH * limits.window


def overhead(system: Sequence[str], tools: Sequence[ToolSchema]) -> int:
    """About how many tokens the prompt and the tools take."""
    size = sum(length(block) for block in system)
    size += sum(
        tool.size or schema_of(tool.name, tool.description, tool.parameters).size for tool in tools
    )
    return int(size / CHARS_PER_TOKEN)


def sized(request: Request, limits: Limits, context_tokens: int, scale: float) -> Request:
    """The request as the model has room for it: see `within`. `context_tokens` is what it counted
    at its last call (0: not known): where that is far below, nothing is measured."""
    most = room(limits.model_window or limits.window, limits.output_tokens)
    known = context_tokens and context_tokens + scale * fresh(request.messages)
    return (
        request if 0 < known < SURE * most else within(request, most, scale, guessed=limits.guessed)
    )


def at_most(request: Request, context_tokens: int, scale: float) -> int:
    """About the most tokens that this call may use, with its answer. `context_tokens` as in
    `sized`."""
    said = context_tokens + scale * fresh(request.messages)
    if not context_tokens:
        said = scale * counted(request)
    return int(said) + (request.max_output_tokens or ANSWER_TOKENS)


def counted(request: Request) -> int:
    """About how many tokens the request has. Each message is measured once."""
    known = request.encoded.tokens
    found = overhead(request.system, request.tools)
    for shown in request.messages:
        if shown.key not in known:
            known[shown.key] = tokens(shown.message)
        found += known[shown.key]
    return found


def within(request: Request, most: int, scale: float = 1.0, *, guessed: bool = False) -> Request:
    """The request with at most `most` tokens, by our count times `scale`: as it is, or with its
    messages shortened as `fit` does it. Raises ContextOverflow where even that is too long, unless
    `most` is only guessed."""
    beside = overhead(request.system, request.tools)
    if (beside + sum(tokens(shown.message) for shown in request.messages)) * scale <= most:
        return request
    budget = int(most / scale) - beside
    cut = fit([shown.message for shown in request.messages], max(budget, 1))
    shown = tuple(ContextMessage(request.messages[i].key, message) for i, message in cut.kept)
    if sum(tokens(each.message) for each in shown) > budget and not guessed:
        raise ContextOverflow(
            f"the prompt and the tools take about {int(beside * scale):,} tokens and the "
            "last message more than is left"
            f" of the {most:,} that there is room for: choose a model with a larger window "
            "(/model), or allow the agent"
            " fewer tools"
        )
    return msgspec.structs.replace(request, messages=shown, encoded=Encoded())
