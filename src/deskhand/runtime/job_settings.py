"""What can be set for jobs."""

from __future__ import annotations

from typing import Annotated

import msgspec

TIMEOUT_S = 30.0


class JobsConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """`enabled: false` runs none. After `storm_starts` starts within `storm_minutes` no job runs any more until
    somebody says so: one of them may be the cause; 0 never does that. A hook may take `hook_timeout_s`."""

    enabled: bool = True
    storm_starts: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 3
    hook_timeout_s: Annotated[float, msgspec.Meta(ge=1, le=600)] = TIMEOUT_S
    storm_minutes: Annotated[float, msgspec.Meta(gt=0, le=1440)] = 10.0
