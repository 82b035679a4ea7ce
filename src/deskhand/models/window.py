"""What of a conversation is shown to a model that has room for less. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import msgspec

from ..types.errors import ContextOverflow
from ..types.labels import LOCAL
from ..types.limits import Limits
from ..types.messages import Message, Text
from ..types.turn import OMITTED_MARKER, RUNTIME_PREFIXES
from .base import ContextMessage, Encoded, Request, ToolSchema, make_tool_schema
from .token_estimate import CHARS_PER_TOKEN, CUT_LIMITS, estimate_tokens, shorten_message, text_size

KEPT_STEPS = 4
"""So many of the last steps stay: a reply of the model, with the results of its calls."""
READABLE_LIMITS = tuple(limit for limit in CUT_LIMITS if limit >= 250)
"""What people added to a turn is not cut further before the oldest of it is dropped."""
ANSWER_TOKENS = 4096
"""Room that is left for an answer where nobody said how long it may be; never more than a quarter
of the window."""
MIN_SHARE = 0.15
MIN_TOKENS = 200
"""What is less than this part of the window is not shortened, and nothing to fewer tokens."""
TIGHT_WINDOW = 16_000
"""Below this a model may have a way of its own to fit what it is given."""
UNMEASURED_SHARE = 0.75
"""A request below this part of the room is not measured again."""


class Cut(msgspec.Struct, frozen=True):
    """`kept` are messages by their place, some of them shortened, `dropped` the places of all
    others."""

    kept: tuple[tuple[int, Message], ...]
    dropped: tuple[int, ...] = ()


def fit_messages(
    messages: Sequence[Message], drop_to: int, cut_to: int | None = None, in_turn: int = 0
) -> Cut:
    """Drop the oldest whole exchanges until about `drop_to` tokens are left (0: half of what there
    is), then the oldest steps of the last exchange; then cut long texts in their middle until about
    `cut_to` tokens are (None: as many).

    What people said since the last answer stays, with the last steps: at least the last `in_turn`
    things that they said, those of the turn that goes on. Only where that is too much even with
    short texts, nothing but what was said last stays. A call never loses its result.
    """
    drop_to = drop_to or sum(map(estimate_tokens, messages)) // 2
    cut_to = drop_to if cut_to is None else cut_to
    spoken = [i for i, message in enumerate(messages) if _is_spoken(message)] or [0]
    added = spoken[len(spoken) - in_turn + 1 :] if in_turn else []
    exchanges = [i for i in _find_exchanges(messages, spoken) if i not in added]
    ways: list[tuple[list[int], Sequence[int]]] = [(spoken, CUT_LIMITS)]
    if exchanges != spoken:
        ways.insert(0, (exchanges, READABLE_LIMITS))
    for (starts, limits), keep in product(ways, (KEPT_STEPS, 1)):
        places = _choose_places(messages, starts, drop_to, keep)
        kept = [messages[i] for i in places]
        for limit in limits:
            if sum(map(estimate_tokens, kept)) <= cut_to:
                break
            kept = [shorten_message(message, limit) for message in kept]
        if sum(map(estimate_tokens, kept)) <= cut_to:
            break
    dropped = sorted(set(range(len(messages))) - set(places))
    return Cut(tuple(zip(places, kept, strict=True)), tuple(dropped))


def _find_exchanges(messages: Sequence[Message], spoken: Sequence[int]) -> list[int]:
    """Where exchanges begin: with what is said first after an answer. What people add while the
    agent works belongs to the exchange that goes on."""
    found = list[int]()
    answered = True
    after = 0
    for i in spoken:
        # A reply with a hint behind it was no answer: the agent was told to go on.
        ends = (at for at in range(after, i) if _ends_turn(messages[at]))
        answered = answered or any(at + 1 == i or not _is_told(messages[at + 1]) for at in ends)
        if answered:
            found.append(i)
        answered = is_omission(messages[i])
        after = i
    return found


def _ends_turn(message: Message) -> bool:
    return message.role == "assistant" and not message.calls


def _is_told(message: Message) -> bool:
    return message.role == "user" and is_hint(message)


def _choose_places(
    messages: Sequence[Message], starts: Sequence[int], budget: int, keep: int
) -> list[int]:
    """The places of what stays without being cut: from one of these `starts`, with all that people
    said since, and at least so many of the last steps."""
    sizes = [estimate_tokens(message) for message in messages]
    left = sum(sizes)
    start = 0
    before = 0
    for i in starts:
        left = left - sum(sizes[before:i])
        start = i
        before = i
        if left <= budget:
            break
    steps = [i for i in range(start + 1, len(messages)) if messages[i].role == "assistant"]
    dropped = set[int]()
    for i, end in pairwise(steps[: len(steps) - keep + 1]):
        if left <= budget:
            break
        step = [place for place in range(i, end) if not _is_spoken(messages[place])]
        left = left - sum(sizes[place] for place in step)
        dropped.update(step)
    return [i for i in range(start, len(messages)) if i not in dropped]


def is_omission(message: Message) -> bool:
    """It stands for earlier messages, which are no longer shown."""
    first = message.parts[0] if message.parts else None
    return isinstance(first, Text) and first.label == LOCAL and OMITTED_MARKER in first.text[:80]


def _is_spoken(message: Message) -> bool:
    return message.role == "user" and not is_hint(message)


def is_hint(message: Message) -> bool:
    """The runtime said it to the model, not a person."""
    return all(
        isinstance(part, Text) and (part.label == LOCAL or is_context_note(part))
        for part in message.parts
    )


def is_context_note(part: Text) -> bool:
    """The runtime tells it beside a person's words: what memory holds, how the tasks stand."""
    return part.label.integrity in ("tool_local", "untrusted") and part.text.startswith(
        RUNTIME_PREFIXES
    )


def estimate_fresh_tokens(messages: Sequence[ContextMessage]) -> int:
    """About how many tokens came since the model last replied."""
    found = 0
    for shown in reversed(messages):
        if shown.message.role == "assistant":
            break
        found += estimate_tokens(shown.message)
    return found


def request_room(window: int, output_tokens: int | None) -> int:
    """How many tokens a request may have, so that there is room for an answer."""
    return window - min(output_tokens or ANSWER_TOKENS, window // 4)


def message_budget(
    messages: Sequence[Message], wanted: int, context_tokens: int, limits: Limits
) -> int:
    """How many tokens, by our count, messages may keep so that about `wanted` are used in all: what
    the model counted beyond them is the prompt. Where that leaves too little, half of what is
    free, or half of what they are now if that is less."""
    estimated = int(limits.scale * sum(map(estimate_tokens, messages)))
    beside = max(0, context_tokens - estimated)
    free = request_room(limits.model_window or limits.window, limits.output_tokens) - beside
    left = wanted - beside
    if left < free // 4:
        # At most half of what there is: where the provider counts far more than we estimate, all
        # would stay otherwise, and each turn would shorten it again in vain.
        left = min(free // 2, estimated // 2)
    return max(MIN_TOKENS, int(left / limits.scale))


def is_worth_compacting(messages: Sequence[ContextMessage], limits: Limits) -> bool:
    """Whether shortening them would make room: not where the prompt alone is what takes it."""
    tokens = sum(estimate_tokens(shown.message) for shown in messages)
    return limits.scale * tokens > MIN_SHARE * limits.window


def estimate_overhead(system: Sequence[str], tools: Sequence[ToolSchema]) -> int:
    """About how many tokens the prompt and the tools take."""
    size = sum(text_size(block) for block in system)
    size += sum(
        tool.size or make_tool_schema(tool.name, tool.description, tool.parameters).size
        for tool in tools
    )
    return int(size / CHARS_PER_TOKEN)


def fit_request(
    request: Request, limits: Limits, context_tokens: int, scale: float, in_turn: int = 0
) -> Request:
    """The request as the model has room for it: see `fit_request_to`. `context_tokens` is what it
    counted at its last call (0: not known): where that is far below, nothing is measured.
    `in_turn`: see `fit_messages`."""
    most = request_room(limits.model_window or limits.window, limits.output_tokens)
    known = context_tokens and context_tokens + scale * estimate_fresh_tokens(request.messages)
    if 0 < known < UNMEASURED_SHARE * most:
        return request
    return fit_request_to(request, most, scale, guessed=limits.guessed, in_turn=in_turn)


def estimate_max_tokens(request: Request, context_tokens: int, scale: float) -> int:
    """About the most tokens that this call may use, with its answer. `context_tokens` as in
    `fit_request`."""
    said = context_tokens + scale * estimate_fresh_tokens(request.messages)
    if not context_tokens:
        said = scale * estimate_request_tokens(request)
    return int(said) + (request.max_output_tokens or ANSWER_TOKENS)


def estimate_request_tokens(request: Request) -> int:
    """About how many tokens the request has. Each message is measured once."""
    known = request.encoded.tokens
    found = estimate_overhead(request.system, request.tools)
    for shown in request.messages:
        key = (shown.n, shown.variant)
        if key not in known:
            known[key] = estimate_tokens(shown.message)
        found += known[key]
    return found


def fit_request_to(
    request: Request, most: int, scale: float = 1.0, *, guessed: bool = False, in_turn: int = 0
) -> Request:
    """The request with at most `most` tokens, by our count times `scale`: as it is, or with its
    messages shortened as `fit_messages` does it. Raises ContextOverflow where even that is too
    long, unless `most` is only guessed."""
    beside = estimate_overhead(request.system, request.tools)
    tokens = beside + sum(estimate_tokens(shown.message) for shown in request.messages)
    if tokens * scale <= most:
        return request
    budget = int(most / scale) - beside
    messages = [shown.message for shown in request.messages]
    cut = fit_messages(messages, max(budget, 1), in_turn=in_turn)
    shown = tuple(
        msgspec.structs.replace(request.messages[i], message=message) for i, message in cut.kept
    )
    if sum(estimate_tokens(each.message) for each in shown) > budget and not guessed:
        raise ContextOverflow(
            f"the prompt and the tools take about {int(beside * scale):,} tokens, and the last "
            f"message does not fit into the rest of the {most:,} that are available: choose a "
            "model with a larger window (/model), or allow the agent fewer tools"
        )
    return msgspec.structs.replace(request, messages=shown, encoded=Encoded())
