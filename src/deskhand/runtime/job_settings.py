"""What can be set for jobs."""

from __future__ import annotations

from typing import Annotated

import msgspec


class JobsConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """`enabled: false` runs none. After `storm_starts` starts within `storm_minutes` no job runs any more until
    somebody says so: one of them may be the cause; 0 never does that."""

    enabled: bool = True
    storm_starts: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 3
    storm_minutes: Annotated[float, msgspec.Meta(gt=0, le=1440)] = 10.0
