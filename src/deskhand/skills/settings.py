"""Settings for reviewing proposed skills."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1, le=50)]


class SkillsReview(msgspec.Struct, frozen=True, omit_defaults=True):
    """`replay` tries each proposal on recorded turns: at most `turns` of them, with at most
    `tokens`. `revert` removes an accepted skill that does worse than before."""

    replay: bool = True
    turns: _Count = 2
    tokens: Annotated[int, msgspec.Meta(ge=1)] = 60_000
    revert: bool = True
