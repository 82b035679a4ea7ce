"""What the API shows of alerts."""

from __future__ import annotations

from typing import Literal

import msgspec

AlertState = Literal["sending", "sent", "unreached", "seen"]


class AlertView(msgspec.Struct, frozen=True):
    """`unreached`: nobody was told so far, on no channel. `at` is in seconds since the epoch."""

    id: int
    at: float
    text: str
    state: AlertState
