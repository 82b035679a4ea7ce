"""How our count of tokens compares with that of each model, learned from what it reports."""

from __future__ import annotations

from .base import Request
from .window import estimate_request_tokens

MIN_SCALE = 0.6
MAX_SCALE = 4.0
WEIGHT = 0.2
"""How much one report counts against all before it, once there are some."""
MAX_MESSAGES = 40
"""It learns from requests with up to so many messages: longer ones would cost more to count."""


class UsageMeter:
    """Learns by model. A count that was too low is learned at once, one that was too high slowly:
    it is better to be short too soon than to be refused."""

    def __init__(self) -> None:
        self._scales: dict[str, float] = {}

    def learn(self, model: str, request: Request, reported: int) -> None:
        """The model (`provider/name`) reported so many tokens for this request; 0 where it does not
        say."""
        if reported <= 0 or len(request.messages) > MAX_MESSAGES:
            return
        seen = min(max(reported / estimate_request_tokens(request), MIN_SCALE), MAX_SCALE)
        known = self.scale(model)
        self._scales[model] = seen if seen > known else known + WEIGHT * (seen - known)

    def scale(self, model: str) -> float:
        """By what our counts are to be multiplied; 1 for a model that has not reported yet."""
        return self._scales.get(model, 1.0)
