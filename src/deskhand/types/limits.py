"""What one turn may use."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one turn may use. `window` and all tokens are the model's own count; `output_tokens`
    None means the model's maximum. At the end of any of them the turn ends with words, and the next
    message goes on from there. `model_window` is what the model itself has room for, `window` what
    is taken for it; 0: the same. `scale` is how many of its tokens make one of ours. `guessed`:
    nobody knows this model's window, so nothing is refused for it."""

    steps: int = 50
    tokens: int = 500_000
    output_tokens: int | None = None
    window: int = 128_000
    model_window: int = 0
    scale: float = 1.0
    guessed: bool = False
