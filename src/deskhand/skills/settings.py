"""How proposed skills are looked at."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1, le=50)]


class SkillsReview(msgspec.Struct, frozen=True, omit_defaults=True):
    """`replay`: proposals are tried on recorded turns by themselves, each on so many `turns` and
    with so many `tokens` at most. `revert`: a skill that was taken in and does worse than before is
    taken out again."""

    replay: bool = True
    turns: _Count = 2
    tokens: Annotated[int, msgspec.Meta(ge=1)] = 60_000
    revert: bool = True
